"""Keys are heard within the limits of Q.24, once each, and nothing else is one; however the stream is cut."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from bench.dtmf import ACCEPT, EITHER, LIMITS, Tone, heard
from hypothesis import given, settings
from hypothesis import strategies as st

import callwright
from callwright.audio.dtmf import GAP_MS, KEYS, TONE_MS, KeyDetector, KeyHeard, checked_keys, tones
from callwright.audio.formats import PCM
from callwright.audio.g711 import pcmu_decode, pcmu_encode
from callwright.audio.levels import level_dbfs
from callwright.audio.resample import resample
from callwright.errors import AudioFormatError, UsageError
from callwright.sim.speech import RATE_HZ, Recording, Speech

RATES_HZ = (8_000, 16_000, 24_000, 48_000)


def quiet(ms: int, rate_hz: int) -> PCM:
    return np.zeros(ms * rate_hz // 1000, np.int16)


def detected(samples: PCM, rate_hz: int, cuts: list[int] | None = None) -> tuple[KeyHeard, ...]:
    detector = KeyDetector(rate_hz)
    ends = [0, *sorted(cuts or []), len(samples)]
    return tuple(key for start, end in pairwise(ends) for key in detector.take(samples[start:end]))


@pytest.mark.parametrize("rate_hz", [8_000, 24_000])
@pytest.mark.parametrize(("tone", "must"), [pytest.param(*row[1:], id=row[0]) for row in LIMITS if row[2] != EITHER])
def test_the_limits_of_q24_hold_for_every_key(tone: Tone, must: str, rate_hz: int) -> None:
    """At 8 kHz through μ-law."""
    assert heard(tone, KEYS, rate_hz, seed=1) == (KEYS if must == ACCEPT else "")


@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_keys_are_told_with_when_they_sounded(rate_hz: int) -> None:
    samples = np.concatenate((quiet(213, rate_hz), tones("0*", rate_hz), quiet(100, rate_hz)))
    keys = detected(samples, rate_hz)
    assert [key.key for key in keys] == ["0", "*"]
    for key, start in zip(keys, (213, 413), strict=True):
        assert key.started_ms == pytest.approx(start, abs=5)
        assert key.ended_ms == pytest.approx(start + TONE_MS, abs=5)


def test_a_key_is_told_within_60_ms_of_its_end() -> None:
    detector = KeyDetector(8_000)
    assert detector.take(np.concatenate((tones("5", 8_000, gap_ms=0), quiet(40, 8_000)))) == ()
    assert [key.key for key in detector.take(quiet(20, 8_000))] == ["5"]


@settings(max_examples=25, deadline=None)
@given(
    keys=st.text(KEYS, min_size=1, max_size=6),
    rate_hz=st.sampled_from(RATES_HZ),
    lengths=st.sampled_from([(100, 100), (50, 45), (40, 40)]),
)
def test_what_is_pressed_is_heard_at_any_rate(keys: str, rate_hz: int, lengths: tuple[int, int]) -> None:
    tone_ms, gap_ms = lengths
    samples = tones(keys, rate_hz, tone_ms=tone_ms, gap_ms=gap_ms)
    assert len(samples) == len(keys) * (tone_ms + gap_ms) * rate_hz // 1000
    assert "".join(key.key for key in detected(np.append(samples, quiet(60, rate_hz)), rate_hz)) == keys


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_any_cutting_of_the_stream_gives_the_same_keys(data: st.DataObject) -> None:
    rate_hz = data.draw(st.sampled_from([8_000, 24_000]))
    tone = data.draw(st.sampled_from([Tone(28), Tone(60, noise=-14), Tone(100, hole_ms=15), Tone(50, low_off=2.5)]))
    samples = tone.samples("19#", rate_hz, seed=data.draw(st.integers(0, 99)))
    cuts = data.draw(st.lists(st.integers(0, len(samples)), max_size=30))
    assert detected(samples, rate_hz, cuts) == detected(samples, rate_hz)
    frames = list(range(0, len(samples), rate_hz // 50))
    assert detected(samples, rate_hz, frames) == detected(samples, rate_hz)


def every_recording() -> Mapping[str, Recording]:
    """All recorded lines and beds that ship."""
    directories = sorted(path.parent for path in Path(callwright.__path__[0]).rglob("speech.json"))
    return {f"{each}/{line_id}": line for each in directories for line_id, line in Speech.load(each).items()}


def test_nobody_who_speaks_and_no_music_presses_a_key() -> None:
    recordings = every_recording()
    assert {line.kind for line in recordings.values()} >= {"caller", "agent", "murmur", "bed", "music"}
    through = np.concatenate([pcmu_decode(pcmu_encode(resample(r.pcm, RATE_HZ, 8_000))) for r in recordings.values()])
    assert detected(through, 8_000) == ()
    assert [key for line in recordings.values() for key in detected(line.pcm, RATE_HZ)] == []


def test_a_key_is_heard_over_the_hiss_of_a_line_and_after_any_pause() -> None:
    detector = KeyDetector(8_000)
    for _ in range(500):
        assert detector.take(quiet(20, 8_000)) == ()
    noise = np.random.default_rng(1).integers(-60, 60, 8_000).astype(np.int16)
    assert [key.key for key in detector.take(np.concatenate((noise, tones("7", 8_000) + noise[:1_600])))] == ["7"]


def test_tones_are_sent_at_minus_6_dbm0_with_the_high_one_2_db_louder() -> None:
    """0 dBm0 is a tone 3.17 dB below full scale, which is -6.2 dBFS."""
    tone = tones("5", 8_000, gap_ms=0)
    assert level_dbfs(tone) == -12
    spectrum = np.abs(np.fft.rfft(tone, 8_000))
    assert 20 * np.log10(spectrum[1_336] / spectrum[770]) == pytest.approx(2, abs=0.2)


@pytest.mark.parametrize(("text", "keys"), [("2", "2"), (" 0 0 7# ", "007#"), ("a*d", "A*D")])
def test_keys_are_text_without_blanks(text: str, keys: str) -> None:
    assert checked_keys(text) == keys


@pytest.mark.parametrize(
    ("text", "named"), [("12x", '"X"'), ("1,2", '","'), ("٣", '"٣"'), ("", "at least one"), (" ", "one of")]
)
def test_what_is_no_key_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        checked_keys(text)
    with pytest.raises(UsageError, match=named):
        tones(text, 8_000)


@pytest.mark.parametrize("rate_hz", [0, 11_025, 96_000])
def test_a_rate_that_it_does_not_know_is_refused(rate_hz: int) -> None:
    with pytest.raises(AudioFormatError, match=f"{rate_hz} Hz"):
        KeyDetector(rate_hz)


def test_a_gap_follows_every_key() -> None:
    np.testing.assert_array_equal(np.append(tones("1", 8_000), tones("2", 8_000)), tones("12", 8_000))
    assert not tones("1", 8_000)[TONE_MS * 8 : (TONE_MS + GAP_MS) * 8].any()

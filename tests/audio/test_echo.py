"""A canceller takes the loudspeaker's sound out, and leaves the caller's voice alone."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.audio.echo import CANCELS, ECHO_FRAME_MS, EchoReport, NoCanceller, OutputDevice
from callwright.audio.echo_kalman import KalmanCanceller, Timing
from callwright.audio.formats import PCM
from callwright.audio.levels import level_dbfs
from callwright.errors import AudioFormatError

RATE_HZ = 8_000
FRAME = RATE_HZ * ECHO_FRAME_MS // 1000


def pcm(samples: np.ndarray) -> PCM:
    return np.rint(samples).clip(-32768, 32767).astype(np.int16)


def voice(seconds: float, seed: int, rms: float = 3_000) -> np.ndarray:
    """Noise with the spectrum of speech, in syllables of 120 to 300 ms with pauses of 50 ms."""
    rng = np.random.default_rng(seed)
    count = int(seconds * RATE_HZ)
    hz = np.fft.rfftfreq(count, 1 / RATE_HZ)
    noise = np.fft.irfft(np.fft.rfft(rng.standard_normal(count)) / (1 + (hz / 500) ** 2), count)
    loud = np.zeros(count)
    at = 0
    while at < count:
        length = int(rng.integers(120, 300)) * RATE_HZ // 1000
        loud[at : at + length] = rng.uniform(0.4, 1.0)
        at += length + 50 * RATE_HZ // 1000
    return noise * loud * rms / np.sqrt(np.mean((noise * loud) ** 2))


def in_room(far: np.ndarray, delay_ms: int, gain: float = 0.3) -> np.ndarray:
    """What comes back of ``far``: late, and with a tail that decays by 60 dB in 0.25 s."""
    count = RATE_HZ * 150 // 1000
    tail = np.random.default_rng(7).standard_normal(count) * 10 ** (-3 * np.arange(count) / RATE_HZ / 0.25)
    tail[0] = np.sqrt((tail**2).sum())
    wet = np.convolve(far, tail / np.sqrt((tail**2).sum()))[: len(far)] * gain
    late = delay_ms * RATE_HZ // 1000
    return np.concatenate((np.zeros(late), wet))[: len(far)]


def drifted(samples: np.ndarray, ppm: float) -> np.ndarray:
    """The samples as a clock plays them that is so much fast."""
    dense = np.fft.irfft(np.fft.rfft(samples), 8 * len(samples)) * 8
    return np.interp(np.arange(len(samples)) * (1 + ppm * 1e-6) * 8, np.arange(len(dense)), dense)


def removed_db(echo: np.ndarray, left: np.ndarray, start_s: float, end_s: float) -> float:
    span = slice(int(start_s * RATE_HZ), int(end_s * RATE_HZ))
    return float(10 * np.log10((echo[span] ** 2).sum() / (left[span] ** 2).sum()))


class Played(NamedTuple):
    """One call's worth of a canceller, at the end of which it says what it knows."""

    echo: np.ndarray
    caller: np.ndarray
    out: PCM
    report: EchoReport


def play(echo: np.ndarray, far: np.ndarray, caller: np.ndarray | None = None) -> Played:
    said = np.zeros(len(far)) if caller is None else caller
    canceller = KalmanCanceller(RATE_HZ)
    out = canceller.process(pcm(echo + said), pcm(far))
    return Played(echo, said, out, canceller.report)


@cache
def settled(delay_ms: int, ppm: int) -> Played:
    """Seven seconds of an agent in a room, on a loudspeaker with a clock of its own."""
    far = voice(7, seed=1)
    return play(in_room(drifted(far, ppm), delay_ms), far)


def test_only_speakers_want_a_canceller() -> None:
    assert [device for device in OutputDevice if CANCELS[device]] == [OutputDevice.SPEAKERS]


def test_no_canceller_hands_on_what_the_microphone_brought() -> None:
    near = pcm(voice(0.1, seed=2))
    assert NoCanceller().process(near, near) is near


@pytest.mark.parametrize("canceller", [NoCanceller(), KalmanCanceller(RATE_HZ)])
def test_streams_of_different_lengths_are_refused(canceller: NoCanceller | KalmanCanceller) -> None:
    with pytest.raises(ValueError, match="160 near and 80 far samples"):
        canceller.process(np.zeros(160, np.int16), np.zeros(80, np.int16))


@pytest.mark.parametrize("rate_hz", [0, 7_000, 44_100, 96_000])
def test_rates_that_no_canceller_is_made_for_are_refused(rate_hz: int) -> None:
    with pytest.raises(AudioFormatError, match="multiples of 1000 Hz from 8000 to 48000"):
        KalmanCanceller(rate_hz)


@pytest.mark.parametrize("delay_ms", [0, 40, 200, 450])
def test_an_echo_is_20_db_down_after_two_seconds(delay_ms: int) -> None:
    played = settled(delay_ms, 0)
    assert removed_db(played.echo, played.out.astype(float), 3.0 if delay_ms > 200 else 2.5, 7) > 20


@pytest.mark.parametrize("delay_ms", [40, 200, 450])
def test_the_delay_is_reported(delay_ms: int) -> None:
    report = settled(delay_ms, 0).report
    assert report.delay_ms == pytest.approx(delay_ms, abs=1)
    assert report.erle_db is not None
    assert report.erle_db > 20


@pytest.mark.parametrize("ppm", [-200, 100, 200])
def test_a_loudspeaker_with_a_clock_of_its_own_is_followed(ppm: int) -> None:
    played = settled(40, ppm)
    assert played.report.drift_ppm == pytest.approx(ppm, abs=25)
    assert removed_db(played.echo, played.out.astype(float), 4, 7) > 18


@pytest.mark.parametrize("sign", [-1, 1])
def test_no_clock_is_believed_to_be_off_by_more_than_500_ppm(sign: int) -> None:
    timing = Timing(FRAME)
    predicted = voice(0.01, seed=1).astype(np.float32)
    for _ in range(1_000):
        timing.correct(predicted, sign * np.gradient(predicted))
    assert timing.drift == pytest.approx(-sign * 500e-6 * FRAME)


def test_a_caller_who_talks_over_the_agent_is_kept() -> None:
    """What the canceller does to his voice, and what it leaves of the echo, is together 15 dB below the voice."""
    far, caller = voice(6, seed=1), voice(6, seed=3)
    caller[: 3 * RATE_HZ] = 0
    played = play(in_room(far, 40), far, caller)
    assert removed_db(caller, played.out - caller, 3, 6) > 15


def test_a_caller_in_a_dry_room_is_kept_once_no_echo_was_found() -> None:
    far, caller = voice(4, seed=1), voice(4, seed=3)
    played = play(np.zeros(len(far)), far, caller)
    assert removed_db(caller, played.out - caller, 1.5, 4) > 25
    assert played.report.delay_ms is None


def test_an_echo_is_soft_before_anything_was_learned_of_it() -> None:
    """A greeting begins when nothing is learned yet, and a server cuts it at the first voice that it hears."""
    played = settled(40, 0)
    assert removed_db(played.echo, played.out.astype(float), 0, 0.5) > 15


def test_an_echo_that_moves_is_found_again() -> None:
    far = voice(9, seed=1)
    before, after = in_room(far, 40), in_room(far, 75)
    at = 4 * RATE_HZ
    played = play(np.concatenate((before[:at], after[at:])), far)
    assert played.report.delay_ms == 75
    assert removed_db(played.echo, played.out.astype(float), 6, 9) > 18


def test_an_echo_that_goes_away_is_not_made_up() -> None:
    """Headphones are plugged in: what is still expected is heard for 0.4 s at most."""
    far = voice(5, seed=1)
    echo = in_room(far, 40)
    echo[3 * RATE_HZ :] = 0
    out = play(echo, far).out
    assert level_dbfs(out[int(3.4 * RATE_HZ) :]) < level_dbfs(pcm(echo[: 3 * RATE_HZ])) - 20


def test_silence_stays_silence() -> None:
    far = pcm(voice(1, seed=1))
    silence = np.zeros(len(far), np.int16)
    assert not KalmanCanceller(RATE_HZ).process(silence, far).any()


@given(seed=st.integers(0, 99), rms=st.floats(1, 20_000))
@settings(max_examples=10)
def test_without_a_far_end_every_sample_is_the_microphones_own(seed: int, rms: float) -> None:
    near = pcm(voice(0.5, seed, rms))
    np.testing.assert_array_equal(KalmanCanceller(RATE_HZ).process(near, np.zeros(len(near), np.int16)), near)


@pytest.mark.parametrize("ppm", [0, 200])
def test_after_a_silence_of_the_far_end_the_echo_is_where_it_was_and_the_clock_has_drifted_on(ppm: int) -> None:
    far = voice(13, seed=1)
    far[6 * RATE_HZ : 10 * RATE_HZ] = 0
    echo, caller = in_room(drifted(far, ppm), 40), np.zeros(len(far))
    caller[8 * RATE_HZ : 10 * RATE_HZ] = voice(2, seed=2)
    played = play(echo, far, caller)
    quiet = slice(int(8.5 * RATE_HZ), 10 * RATE_HZ)
    np.testing.assert_array_equal(played.out[quiet], pcm(echo + caller)[quiet])
    assert removed_db(played.echo, played.out - played.caller, 10, 11) > 20


@given(seed=st.integers(0, 99), cuts=st.lists(st.integers(0, 4_000), max_size=8))
@settings(max_examples=10)
def test_any_cutting_gives_the_samples_of_one_piece(seed: int, cuts: list[int]) -> None:
    far = voice(0.5, seed)
    near = pcm(in_room(far, 20) + voice(0.5, seed + 100, 1_000))
    canceller = KalmanCanceller(RATE_HZ)
    ends = [0, *sorted(cuts), len(far)]
    pieces = [canceller.process(near[a:b], pcm(far)[a:b]) for a, b in pairwise(ends)]
    np.testing.assert_array_equal(np.concatenate(pieces), KalmanCanceller(RATE_HZ).process(near, pcm(far)))


@given(
    seed=st.integers(0, 99),
    far_rms=st.floats(0, 30_000),
    near_rms=st.floats(0, 30_000),
    gain=st.floats(0, 2),
)
@settings(max_examples=15)
def test_what_comes_out_is_never_much_louder_than_what_went_in(
    seed: int, far_rms: float, near_rms: float, gain: float
) -> None:
    far = voice(1, seed, far_rms)
    near = pcm(in_room(far, 10, gain) + voice(1, seed + 100, near_rms))
    out = KalmanCanceller(RATE_HZ).process(near, pcm(far))
    assert level_dbfs(out) <= level_dbfs(near) + 1


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 24_000, 48_000])
def test_every_frame_in_gives_a_frame_out_at_once(rate_hz: int) -> None:
    canceller = KalmanCanceller(rate_hz)
    frame = np.full(rate_hz // 50, 1_000, np.int16)
    assert [len(canceller.process(frame, frame)) for _ in range(3)] == [len(frame)] * 3

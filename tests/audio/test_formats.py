"""One parser for every spelling of a format, and lengths that follow from what was parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.audio.formats import (
    PCM16_8K,
    PCM16_16K,
    PCM16_24K,
    PCMA_8K,
    PCMU_8K,
    AudioFormat,
    Encoding,
    parse_format,
)
from callwright.audio.g711 import pcma_decode, pcmu_decode
from callwright.errors import AudioFormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

SPELLINGS: list[tuple[str | Mapping[str, object], AudioFormat]] = [
    ("pcm16", PCM16_24K),
    ("audio/pcm", PCM16_24K),
    ("audio/pcm;rate=24000", PCM16_24K),
    ("audio/pcm;rate=16000", PCM16_16K),
    ("audio/pcm; rate=8000; channels=1", PCM16_8K),
    ("audio/l16;rate=16000", PCM16_16K),
    ("audio/L16;rate=24000", PCM16_24K),
    ("L16", PCM16_8K),
    ("audio/x-l16", PCM16_8K),
    ("g711_ulaw", PCMU_8K),
    ("pcmu", PCMU_8K),
    ("PCMU", PCMU_8K),
    ("ulaw", PCMU_8K),
    ("audio/pcmu", PCMU_8K),
    ("audio/x-mulaw", PCMU_8K),
    ("audio/x-mulaw;rate=8000", PCMU_8K),
    ("g711_alaw", PCMA_8K),
    ("audio/pcma", PCMA_8K),
    ("PCMA", PCMA_8K),
    ({"type": "audio/pcm", "rate": 24000}, PCM16_24K),
    ({"type": "audio/pcm"}, PCM16_24K),
    ({"type": "audio/pcm", "rate": None}, PCM16_24K),
    ({"type": "audio/pcmu"}, PCMU_8K),
    ({"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1}, PCMU_8K),
    ({"encoding": "PCMU", "sample_rate": 8000, "channels": 1}, PCMU_8K),
    ({"encoding": "L16", "sample_rate": "16000"}, PCM16_16K),
    ({"contentType": "audio/x-l16;rate=16000", "sampleRate": 16000}, PCM16_16K),
    ({"content-type": "audio/l16;rate=8000"}, PCM16_8K),
]
formats = st.sampled_from([PCMU_8K, PCMA_8K]) | st.builds(
    AudioFormat, st.just(Encoding.PCM16), st.integers(1, 192).map(lambda khz: khz * 1000)
)


@pytest.mark.parametrize(("spelling", "expected"), SPELLINGS, ids=lambda value: str(value))
def test_c116_every_spelling_names_the_format_that_its_sender_means(
    spelling: str | Mapping[str, object], expected: AudioFormat
) -> None:
    assert parse_format(spelling) == expected


@pytest.mark.parametrize(
    "spelling",
    [
        "opus",
        "",
        "audio/",
        "audio/g722",
        {},
        {"rate": 24000},
        {"type": None},
        {"type": "media", "encoding": "PCMU"},
        {"type": ["audio/pcm"]},
    ],
)
def test_c021_an_unknown_format_is_refused_with_a_list_of_the_known(spelling: str | Mapping[str, object]) -> None:
    with pytest.raises(AudioFormatError, match=r"unknown audio format.*pcm16.*pcmu.*x-mulaw.*pcma"):
        parse_format(spelling)


@pytest.mark.parametrize(
    ("spelling", "complaint"),
    [
        ("audio/pcm;rate=fast", "'fast' is not a whole number"),
        ({"type": "audio/pcm", "rate": 24000.0}, "not a whole number"),
        ({"type": "audio/pcm;rate=16000", "rate": 24000}, r"two rates: \[24000, 16000\]"),
        ({"encoding": "PCMU", "channels": 2}, "not mono"),
        ("audio/l16;rate=16000;channels=2", "not mono"),
        ("audio/x-mulaw;rate=16000", "G.711 has 8000 Hz"),
        ("audio/pcm;rate=22050", "multiple of 1000"),
        ("audio/pcm;rate=0", "multiple of 1000"),
    ],
)
def test_c021_what_contradicts_itself_is_refused_not_guessed(
    spelling: str | Mapping[str, object], complaint: str
) -> None:
    with pytest.raises(AudioFormatError, match=complaint):
        parse_format(spelling)


@pytest.mark.parametrize(
    ("spelling", "nbytes"),
    [
        ("g711_ulaw", 24_000),
        ({"type": "audio/pcmu"}, 24_000),
        ({"type": "audio/pcm", "rate": 24000}, 144_000),
        ("audio/l16;rate=16000", 96_000),
        ("g711_alaw", 24_000),
    ],
)
def test_c021_three_seconds_are_3000_ms_in_every_spelling(spelling: str | Mapping[str, object], nbytes: int) -> None:
    fmt = parse_format(spelling)
    assert fmt.ms_of(nbytes) == 3000
    assert fmt.bytes_for_ms(3000) == nbytes
    assert fmt.samples_of(nbytes) == 3 * fmt.rate_hz


@pytest.mark.parametrize(
    ("fmt", "frame"), [(PCM16_24K, 960), (PCM16_16K, 640), (PCM16_8K, 320), (PCMU_8K, 160), (PCMA_8K, 160)]
)
def test_a_frame_is_20_ms(fmt: AudioFormat, frame: int) -> None:
    assert fmt.frame_bytes == frame == len(fmt.silence(20))


def test_silence_sounds_like_silence_in_every_encoding() -> None:
    """Zero bytes would be full scale in μ-law; A-law has no zero, its softest sample is 8."""
    assert not any(PCM16_24K.silence(20))
    assert not pcmu_decode(PCMU_8K.silence(20)).any()
    assert set(pcma_decode(PCMA_8K.silence(20)).tolist()) == {8}


@given(formats)
def test_c116_what_we_send_parses_to_the_same_format(fmt: AudioFormat) -> None:
    assert parse_format(fmt.to_wire()) == fmt


def test_pcm_always_declares_its_rate_on_the_wire() -> None:
    assert PCM16_24K.to_wire() == {"type": "audio/pcm", "rate": 24000}
    assert PCMU_8K.to_wire() == {"type": "audio/pcmu"}


@given(formats, st.integers(0, 10_000_000))
def test_whole_milliseconds_survive_the_way_through_bytes(fmt: AudioFormat, ms: int) -> None:
    assert fmt.ms_of(fmt.bytes_for_ms(ms)) == ms
    assert fmt.ms_of(fmt.bytes_for_ms(ms) + fmt.bytes_per_ms - 1) == ms

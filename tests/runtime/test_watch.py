"""What is watched of the caller's frames: that they come, and how loud they are over the noise around him."""

from __future__ import annotations

import numpy as np
import pytest

from callwright.audio.encodings import ENCODE
from callwright.audio.formats import FRAME_MS, PCM16_24K, PCMU_8K, AudioFormat
from callwright.runtime.watch import Loudness

BOTH_FORMATS = pytest.mark.parametrize("stream_format", [PCMU_8K, PCM16_24K], ids=["phone", "speaker"])


def frames(stream_format: AudioFormat, *levels_dbfs: int) -> list[bytes]:
    """A frame of noise at each of these levels."""
    chance = np.random.default_rng(7)
    size = stream_format.rate_hz * FRAME_MS // 1000
    encode = ENCODE[stream_format.encoding]
    return [
        encode((chance.standard_normal(size) * 32768 * 10 ** (level / 20)).clip(-32768, 32767).astype(np.int16))
        for level in levels_dbfs
    ]


def edges(stream_format: AudioFormat, *levels_dbfs: int) -> list[tuple[int, bool]]:
    """At which frame what was told."""
    loudness = Loudness(stream_format)
    told = []
    for number, frame in enumerate(frames(stream_format, *levels_dbfs)):
        if loudness.take(frame):
            told.append((number, loudness.is_loud))
    return told


@BOTH_FORMATS
def test_speech_in_a_quiet_room_rises_and_falls(stream_format: AudioFormat) -> None:
    assert edges(stream_format, *[-70] * 20, *[-25] * 10, *[-70] * 5) == [(20, True), (30, False)]


@BOTH_FORMATS
def test_a_steady_street_is_not_speech_and_a_voice_over_it_is(stream_format: AudioFormat) -> None:
    assert edges(stream_format, *[-35] * 150) == []
    assert edges(stream_format, *[-35] * 50, *[-18] * 10, *[-35] * 10) == [(50, True), (60, False)]


@BOTH_FORMATS
def test_who_speaks_as_the_watch_begins_is_loud_from_his_next_word_on(stream_format: AudioFormat) -> None:
    assert edges(stream_format, *[-20] * 5, *[-60] * 3, *[-20] * 5) == [(8, True)]


@BOTH_FORMATS
def test_a_street_that_sets_in_is_speech_only_until_it_is_known(stream_format: AudioFormat) -> None:
    """It rises by 1 dB in 200 ms: 20 dB more than before, of which 10 are allowed for."""
    told = edges(stream_format, *[-60] * 20, *[-40] * 200)
    assert told[0] == (20, True)
    assert told[-1][1] is False
    assert told[-1][0] < 20 + 150


@BOTH_FORMATS
def test_nothing_below_50_dbfs_is_speech(stream_format: AudioFormat) -> None:
    assert edges(stream_format, *[-100] * 20, *[-54] * 10) == []


def test_digital_silence_is_measured() -> None:
    loudness = Loudness(PCMU_8K)
    assert not loudness.take(PCMU_8K.silence(FRAME_MS))

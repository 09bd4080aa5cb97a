"""What is not sent on hold: music, as far as a client without a model of it can tell."""

from __future__ import annotations

import numpy as np
import pytest
from tests.measure.records import HZ, SPEECH

from callwright.audio.encodings import ENCODE
from callwright.audio.formats import FRAME_MS, PCM, Encoding
from callwright.audio.resample import resample
from callwright.sim.baselines.hold import MUSIC_MS, MusicGate
from callwright.sim.room import room_lines
from callwright.sim.speech import RATE_HZ

_FRAME = HZ * FRAME_MS // 1000


def let_through_ms(gate: MusicGate, samples: PCM) -> int:
    frames = samples[: len(samples) // _FRAME * _FRAME].reshape(-1, _FRAME)
    return FRAME_MS * sum(gate.lets(ENCODE[Encoding.PCMU](frame)) for frame in frames)


@pytest.mark.parametrize("line_id", ["check-in-deposit", "ask-pool"])
def test_speech_and_silence_are_sent_whole(line_id: str) -> None:
    samples = resample(SPEECH[line_id].pcm, RATE_HZ, HZ)
    both = np.concatenate((np.zeros(10 * HZ, np.int16), samples))
    assert let_through_ms(MusicGate(Encoding.PCMU), both) == len(both) // _FRAME * FRAME_MS


def test_of_music_the_first_seconds_are_sent_and_a_pause_ends_it() -> None:
    gate, music = MusicGate(Encoding.PCMU), resample(room_lines()["music"].pcm, RATE_HZ, HZ)
    assert let_through_ms(gate, music) == MUSIC_MS - FRAME_MS
    assert let_through_ms(gate, np.zeros(_FRAME, np.int16)) == FRAME_MS
    assert let_through_ms(gate, music) == MUSIC_MS - FRAME_MS

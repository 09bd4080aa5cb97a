"""What the far end sounds like: recorded lines, music and tones, at the line's rate and cut into frames.

Tones are recordings of kind ``music``, so that an ear can know them: a tone is nobody's turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np

from callwright.audio import progress
from callwright.audio.formats import FRAME_MS, PCM
from callwright.audio.progress import Rhythm
from callwright.audio.resample import resample
from callwright.ids import Ms
from callwright.sim.exchange.tree import BEEP, BUSY, RINGING
from callwright.sim.phone import over_phone
from callwright.sim.speech import RATE_HZ, Recording, Word

_WORD_MS: Ms = 500
_RHYTHMS: Mapping[str, Rhythm] = {RINGING: progress.RINGING, BUSY: progress.BUSY, BEEP: progress.BEEP}


@cache
def tones() -> Mapping[str, Recording]:
    """The tones by their ids, one round of each."""
    return {name: _tone(name, rhythm) for name, rhythm in _RHYTHMS.items()}


def _tone(name: str, rhythm: Rhythm) -> Recording:
    pcm = progress.one_round(rhythm, RATE_HZ)
    pcm.flags.writeable = False
    word, ends = f"[{name}]", [*range(0, rhythm.on_ms, _WORD_MS), rhythm.on_ms]
    words = tuple(Word(word, begin, end) for begin, end in pairwise(ends))
    return Recording(name, "nobody", "music", " ".join([word] * len(words)), pcm, words)


@cache
def as_telephoned(line: Recording) -> Recording:
    """A line as it comes over a telephone."""
    pcm = over_phone(line.pcm, RATE_HZ)
    pcm.flags.writeable = False
    return replace(line, pcm=pcm)


@cache
def framed(line: Recording, rate_hz: int, *, is_loop: bool) -> PCM:
    """A line at this rate in whole frames, read-only: of a loop what they hold, else with silence at the end."""
    audio = resample(line.pcm, RATE_HZ, rate_hz)
    frame = rate_hz * FRAME_MS // 1000
    length = len(audio) // frame * frame if is_loop else -(-len(audio) // frame) * frame
    audio = np.concatenate((audio, np.zeros(max(0, length - len(audio)), np.int16)))[:length]
    audio.flags.writeable = False
    return audio

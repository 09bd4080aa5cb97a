"""What the far end sounds like: recorded lines, music and tones, at the line's rate and cut into frames.

Tones are recordings of kind ``music`` that are made here, so that an ear can know them: a tone is nobody's turn. The
cadences are those of North America: ringing is 2 s of 440 and 480 Hz and 4 s of silence, busy half a second of 480 and
620 Hz and as much silence; the beep of a voicemail is 1 kHz.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import pairwise

import numpy as np

from callwright.audio.formats import FRAME_MS, PCM
from callwright.audio.resample import resample
from callwright.ids import Ms
from callwright.sim.exchange.tree import BEEP, BUSY, RINGING
from callwright.sim.speech import PER_MS, RATE_HZ, Recording, Word

_AMPLITUDE = 2300.0
"""Of each part of a tone, in int16 steps: -20 dBFS for two of them, as loud as a recorded line."""
_WORD_MS: Ms = 500


def _tone(name: str, hz: tuple[int, ...], on_ms: Ms, off_ms: Ms = 0) -> Recording:
    time = np.arange(on_ms * PER_MS) / RATE_HZ
    sound = np.rint(_AMPLITUDE * sum(np.sin(2 * np.pi * each * time) for each in hz))
    pcm = np.concatenate((sound, np.zeros(off_ms * PER_MS))).astype(np.int16)
    pcm.flags.writeable = False
    word = f"[{name}]"
    ends = [*range(0, on_ms, _WORD_MS), on_ms]
    words = tuple(Word(word, begin, end) for begin, end in pairwise(ends))
    return Recording(name, "nobody", "music", " ".join([word] * len(words)), pcm, words)


@cache
def tones() -> Mapping[str, Recording]:
    """The tones by their ids. What lasts longer sounds over and over."""
    return {
        RINGING: _tone(RINGING, (440, 480), 2000, 4000),
        BUSY: _tone(BUSY, (480, 620), 500, 500),
        BEEP: _tone(BEEP, (1000, 1000), 1000),
    }


@cache
def framed(line: Recording, rate_hz: int, *, is_loop: bool) -> PCM:
    """A line at this rate in whole frames, read-only: of a loop what they hold, else with silence at the end."""
    audio = resample(line.pcm, RATE_HZ, rate_hz)
    frame = rate_hz * FRAME_MS // 1000
    length = len(audio) // frame * frame if is_loop else -(-len(audio) // frame) * frame
    audio = np.concatenate((audio, np.zeros(max(0, length - len(audio)), np.int16)))[:length]
    audio.flags.writeable = False
    return audio

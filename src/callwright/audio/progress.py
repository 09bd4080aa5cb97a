"""What a telephone network lets a caller hear beside voices: ringing, busy, and the beep of a voicemail. int16, mono.

Frequencies, rhythm and levels of ringing and busy are those of North America (Precise Tone Plan).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callwright.audio.formats import PCM
from callwright.audio.levels import tone_amplitude
from callwright.audio.mix import saturated
from callwright.ids import Ms


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Tones that sound together, then pause."""

    tones_hz: tuple[int, ...]
    on_ms: Ms
    off_ms: Ms
    level_dbm0: int
    """Of each tone."""


RINGING = Rhythm((440, 480), 2_000, 4_000, -19)
BUSY = Rhythm((480, 620), 500, 500, -24)
BEEP = Rhythm((1_000,), 500, 0, -13)
"""After a voicemail's greeting: from here on it records."""


def one_round(rhythm: Rhythm, rate_hz: int) -> PCM:
    """The tones, then their pause. Rounds in a row are the signal."""
    time = np.arange(rhythm.on_ms * rate_hz // 1000) / rate_hz
    amplitude = tone_amplitude(rhythm.level_dbm0)
    sound = np.sum([amplitude * np.sin(2 * np.pi * hz * time) for hz in rhythm.tones_hz], axis=0)
    return np.append(saturated(sound), np.zeros(rhythm.off_ms * rate_hz // 1000, np.int16))

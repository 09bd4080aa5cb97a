"""Music that goes on: found once, by a fifth of a second of it, then followed for as long as it is what sounds.

A line of kind ``music`` is taken for a loop. It is looked for like other lines, below 1 kHz and pre-emphasised, with
one product of spectra for the whole loop; the end of a stretch is enough to find it by. What follows is then only held
against the place in the loop where it has to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import sqrt

import numpy as np

from callwright.audio.resample import resample
from callwright.sim.ear.bank import FIT_HZ, FIT_PER_MS, Floats, inverse_norms, lowered, narrow
from callwright.sim.speech import RATE_HZ, Pcm, Recording

SHORTEST = 160 * FIT_PER_MS
"""Samples at 8 kHz by which music is known."""
_ALIKE = 0.95
"""The least likeness, of 1, of music that is found."""
_GOES_ON = 0.7
"""That of a frame of music that is followed; less than half of the energy is then something else."""
_OFFS = (0, 1, -1)
"""Samples that it may come later, or sooner, from frame to frame."""


class Tune:
    """A line that sounds over and over."""

    def __init__(self, line: Recording) -> None:
        self._narrow = narrow(line.pcm, RATE_HZ)
        around = np.concatenate((self._narrow[-SHORTEST:], self._narrow, self._narrow[:SHORTEST]))
        low = lowered(around)[SHORTEST:]
        self._spectrum = np.fft.rfft(low[:-SHORTEST])
        self._scale = inverse_norms(low, SHORTEST)[: len(self._narrow)]

    @cached_property
    def sound(self) -> Floats:
        """The loop as a phone line lets it through, at 16 kHz."""
        return resample(self._narrow.astype(np.int16), FIT_HZ, RATE_HZ).astype(np.float64)

    def find(self, query: Floats) -> tuple[int, float]:
        """Where in the loop `query` (`SHORTEST` samples, lowered) begins, at 8 kHz, and how alike it is there."""
        length = len(self._narrow)
        product = np.fft.irfft(self._spectrum * np.conj(np.fft.rfft(query, length)), length)
        likeness = np.round(product * self._scale / np.sqrt(query @ query + 1.0), 4)
        best = int(likeness.argmax())
        return best, float(likeness[best])


class Music:
    """Music that is followed, frame by frame."""

    def __init__(self, tune: Tune, at: int) -> None:
        """``at`` is the sample of the tune, at 16 kHz, that comes next."""
        self._tune = tune
        self._at = at

    def goes_on(self, frame: Pcm) -> bool:
        """Whether these next samples (int16, mono, 16 kHz) are the music, and little else."""
        heard = frame.astype(np.float64)
        power = float(heard @ heard)
        now = next((off for off in _OFFS if self._likeness(heard, power, self._at + off) >= _GOES_ON), None)
        self._at = (self._at + (now or 0) + len(heard)) % len(self._tune.sound)
        return now is not None

    def _likeness(self, heard: Floats, power: float, at: int) -> float:
        expected = self._tune.sound[at : at + len(heard)]
        if at < 0 or len(expected) < len(heard):
            expected = self._tune.sound.take(range(at, at + len(heard)), mode="wrap")
        return round(float(heard @ expected) / sqrt(power * float(expected @ expected) + 1.0), 2)


def find_music(tunes: Sequence[Tune], samples: Pcm) -> Music | None:
    """The music at the end of `samples` (int16, mono, 16 kHz); None where there is none, or less than 160 ms."""
    count = SHORTEST * RATE_HZ // FIT_HZ
    if not tunes or len(samples) < count:
        return None
    query = lowered(narrow(samples[-count:], RATE_HZ))
    found = [(*tune.find(query), tune) for tune in tunes]
    at, alike, tune = max(found, key=lambda each: each[1])
    return Music(tune, at * RATE_HZ // FIT_HZ + count) if alike >= _ALIKE else None

"""The far end as the microphone's clock hears it: kept for a while, read late by any fraction of a sample.

The loudspeaker has a clock of its own. Read at a delay that moves along with it, its sound meets a room that stands
still, which is all that an adaptive filter can learn.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from callwright.ids import Samples

Floats = NDArray[np.float32]

_HALF: Final = 16
_STEPS: Final = 64
"""A delay is rounded to this part of a sample: at a quarter of the rate the error is 44 dB down."""


class FarEnd:
    """What was played; `delay` is how late it is read, in samples: from 0 to ``delay_max``, any fraction."""

    def __init__(self, frame: Samples, delay_max: Samples, read_max: Samples) -> None:
        self._frame = frame
        self._delay_max = delay_max
        self._kept = delay_max + read_max + _HALF
        self._samples = np.zeros(2 * self._kept + _HALF, np.float32)
        self._end = self._kept  # what is behind it is the future, and zero as far as it is read
        self.delay = 0.0

    def push(self, far: Floats) -> None:
        """Add one frame."""
        if self._end + self._frame + _HALF > len(self._samples):
            self._samples[: self._kept] = self._samples[self._end - self._kept : self._end]
            self._samples[self._kept :] = 0
            self._end = self._kept
        self._samples[self._end : self._end + self._frame] = far
        self._end += self._frame

    def move(self, samples: float) -> bool:
        """Read later by so many samples, or earlier; False where that is before 0 or past what is kept."""
        wanted = self.delay + samples
        self.delay = min(max(wanted, 0.0), float(self._delay_max))
        return self.delay == wanted

    def read(self, count: Samples) -> Floats:
        """The last ``count`` samples, as they were `delay` samples ago."""
        whole, step = divmod(round(self.delay * _STEPS), _STEPS)
        start = self._end - _HALF - whole - count
        return np.correlate(self._samples[start : start + count + 2 * _HALF - 1], _kernels()[step])


@cache
def _kernels() -> Floats:
    """Windowed sincs that delay by 0 to 1 sample; shape (`_STEPS`, 2 * `_HALF`), in the order of the samples."""
    at = np.arange(2 * _HALF) - _HALF + np.arange(_STEPS)[:, None] / _STEPS
    taps = np.sinc(at) * np.cos(np.pi / 2 * at / _HALF) ** 2
    return np.asarray(taps, np.float32)

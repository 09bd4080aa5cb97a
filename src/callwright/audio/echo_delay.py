"""How late an echo comes: found by comparing both streams, whatever the filter believes.

Every 100 ms, unless the delay is known to be right, the last half second of the microphone is correlated with the last
second of the far end, at 4 kHz and with flat spectra, so that an echo stands out as one sharp peak. It is believed when
several looks in a row agree.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from callwright.audio.formats import PCM
from callwright.audio.resample import Resampler
from callwright.ids import Ms, Samples

DELAY_MS_MAX: Final[Ms] = 512
"""The longest delay that is found."""

_HZ: Final = 4_000
_EVERY_MS: Final[Ms] = 100
_NEAR: Final = DELAY_MS_MAX * _HZ // 1000
_FAR: Final = 2 * _NEAR
_WINDOW: Final = np.concatenate((np.zeros(_NEAR), np.hanning(_NEAR))).astype(np.float32)
"""Fades the microphone's half second at both ends: two streams that are cut at one instant are alike there."""
_BAND: Final = 200 * _FAR // _HZ, 1_800 * _FAR // _HZ
"""The bins that count, in 200 to 1800 Hz: below is hum, above the edge of the resampler."""
_KEPT: Final = 0.7
_STANDS_OUT: Final = 20.0
"""A peak is an echo when it is so much above the mean of all delays. In simulated rooms the peak of an echo has 40 to
50 (median), and the highest without one 16 (30 s of speech on both sides)."""
_LOOKS: Final = 3
_ALIKE: Final = 2.0
"""Looks agree when their peaks lie this close together, in samples of 4 kHz (0.5 ms)."""
_WANDERS: Final = 2
"""How far, in samples of 4 kHz, a peak goes from one look to the next while clocks drift."""
_HOLDS: Final = 0.5
"""A peak that was confirmed stands while it has this part of the strongest one: a car's windows reflect half of it."""


class DelayFinder:
    """Finds the delay of an echo between two streams of ``rate_hz``, up to `DELAY_MS_MAX`."""

    def __init__(self, rate_hz: int) -> None:
        self._down = Resampler(rate_hz, _HZ), Resampler(rate_hz, _HZ)
        self._scale = rate_hz / _HZ
        self._every: Samples = rate_hz * _EVERY_MS // 1000
        self._new: list[tuple[PCM, PCM]] = []
        self._near = np.zeros(_FAR, np.float32)
        self._far = np.zeros(_FAR, np.float32)
        self._cross = np.zeros(_NEAR + 1, np.complex64)
        self._near_power = np.zeros(_NEAR + 1, np.float32)
        self._far_power = np.zeros(_NEAR + 1, np.float32)
        self._peaks: list[float] = []
        self._held: Samples | None = None

    def take(self, near: PCM, far: PCM, *, rests: bool = False) -> float | None:
        """Add a frame of both (int16, 10 ms); the delay in their samples where a look has just confirmed one.

        While it ``rests``, as the delay is known to be right, it only keeps what it is given.
        """
        self._new.append((near.copy(), far.copy()))
        if len(self._new) * len(near) < self._every:
            return None
        nears, fars = zip(*self._new, strict=True)
        self._new.clear()
        for stream, kept, down in ((nears, self._near, self._down[0]), (fars, self._far, self._down[1])):
            fresh = down.process(np.concatenate(stream))
            kept[: -len(fresh)] = kept[len(fresh) :]
            kept[-len(fresh) :] = fresh
        return None if rests else self._look()

    def _look(self) -> float | None:
        near, far = np.fft.rfft(self._near * _WINDOW), np.fft.rfft(self._far)
        mean: NDArray[np.inexact]
        for mean, now in (
            (self._cross, near * far.conj()),
            (self._near_power, near.real**2 + near.imag**2),
            (self._far_power, far.real**2 + far.imag**2),
        ):
            mean *= _KEPT
            mean += now
        flat = self._cross / (np.sqrt(self._near_power * self._far_power) + 1.0)
        flat[: _BAND[0]] = flat[_BAND[1] :] = 0
        alike = np.fft.irfft(flat)[:_NEAR]
        size = np.abs(alike)
        best = self._strongest(size)
        if size[best] <= _STANDS_OUT * size.mean():
            self._peaks.clear()
            return None
        self._peaks = [*self._peaks[1 - _LOOKS :], best + _vertex(alike, best)]
        if len(self._peaks) < _LOOKS or max(self._peaks) - min(self._peaks) > _ALIKE:
            return None
        self._held = best
        return self._peaks[-1] * self._scale

    def _strongest(self, size: NDArray[np.floating]) -> Samples:
        """Where the peak is: where it was, as long as nothing is much stronger."""
        best = int(size.argmax())
        if self._held is None:
            return best
        start = max(0, self._held - _WANDERS)
        there = start + int(size[start : self._held + _WANDERS + 1].argmax())
        return there if size[there] > _HOLDS * size[best] else best


def _vertex(values: NDArray[np.floating], at: int) -> float:
    """How far from its largest sample a peak lies: the vertex of the parabola through three samples."""
    if not 0 < at < len(values) - 1:
        return 0.0
    before, middle, after = (float(value) for value in values[at - 1 : at + 2])
    return 0.5 * (before - after) / (before - 2 * middle + after)

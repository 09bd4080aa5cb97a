"""How much of a sound known lines explain, when it is known, or supposed, which lines are where.

In every block of 480 ms the sound is fitted, by least squares, with the lines that are active there, each through its
own filter of 12 taps at 8 kHz: that takes up level, band, a shift of up to 0.7 ms and any short echo. A line's filtered
samples are its *part*; what no line explains is the *rest*.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from callwright.sim.ear.bank import FINE, FIT_PER_MS, Floats, Line, cut

TAPS = 12
BLOCK = 480 * FIT_PER_MS
_AHEAD = TAPS // 2
"""How many of the taps look at later samples of the line: sound that comes earlier than supposed."""
_RIDGE = 1e-6


@dataclass(frozen=True, eq=False)
class Track:
    """A line, or its samples from `first` up to `last`, that may sound in a segment; all in samples at 8 kHz.

    `at` is where the line's own first sample would be; `drift` says how much the line falls behind, per sample.
    """

    line: Line
    at: int
    first: int
    last: int
    drift: float = 0.0

    def when(self, sample: int) -> int:
        """Where in the segment a sample of the line sounds."""
        return self.at + round(sample * (1 + self.drift))

    def reference(self, begin: int, end: int) -> Floats:
        """What the track would sound like unfiltered, from `begin` to `end` of the segment."""
        if not self.drift:
            heard = cut(self.line.samples, begin - self.at, end - self.at)
            heard[: max(0, self.first + self.at - begin)] = 0.0
            heard[max(0, self.last + self.at - begin) :] = 0.0
            return heard
        wanted = (np.arange(begin, end) - self.at) / (1 + self.drift)
        fine = self.line.fine
        heard = np.interp(wanted * FINE, np.arange(len(fine)), fine)
        return np.where((wanted >= self.first) & (wanted < self.last), heard, 0.0)


@dataclass(frozen=True, eq=False)
class Fit:
    """What came out of a fit; `parts` and `references` have one row a track, `lags` one row a track and column a block.

    A lag is how many samples later than supposed the sound comes, by the weight of the filter's taps.
    """

    rest: Floats
    parts: Floats
    references: Floats
    lags: Floats


def fit(sound: Floats, tracks: list[Track], begin: int = 0) -> Fit:
    """Fits all `tracks` at once to `sound` (8 kHz, in int16 steps), which is a segment's samples from `begin` on."""
    blocks = -(-len(sound) // BLOCK)
    length = blocks * BLOCK
    wanted = np.pad(sound, (0, length - len(sound))).reshape(blocks, BLOCK, 1)
    margined = np.array([t.reference(begin - TAPS, begin + length + TAPS) for t in tracks])
    parts = np.zeros((len(tracks), blocks, BLOCK))
    lags = np.zeros((len(tracks), blocks))
    sounding = margined[:, TAPS:-TAPS].reshape(len(tracks), blocks, BLOCK) != 0
    for active, one, other in _runs(sounding.any(axis=2)):
        near = np.lib.stride_tricks.sliding_window_view(margined[active], TAPS, axis=1)
        near = near[:, TAPS - _AHEAD + 1 + one * BLOCK :][:, : (other - one) * BLOCK]
        rows = near.reshape(len(active), other - one, BLOCK, TAPS).transpose(1, 2, 0, 3).reshape(other - one, BLOCK, -1)
        taps = _solve(rows, wanted[one:other])
        for k, track in enumerate(active):
            own = slice(k * TAPS, (k + 1) * TAPS)
            parts[track, one:other] = (rows[:, :, own] @ taps[:, own])[:, :, 0]
            weight = taps[:, own, 0] ** 2
            lags[track, one:other] = weight @ (TAPS - _AHEAD - 1 - np.arange(TAPS)) / (weight.sum(axis=1) + 1e-12)
    flat = parts.reshape(len(tracks), length)[:, : len(sound)]
    return Fit(sound - flat.sum(axis=0), flat, margined[:, TAPS : TAPS + len(sound)], lags)


def _runs(active: npt.NDArray[np.bool_]) -> list[tuple[list[int], int, int]]:
    """Stretches of blocks in which the same tracks are active: the tracks, the first block, the one past the last."""
    keys = [tuple(np.flatnonzero(column)) for column in active.T]
    runs, at = [], 0
    for key, group in groupby(keys):
        count = len(list(group))
        if key:
            runs.append(([int(k) for k in key], at, at + count))
        at += count
    return runs


def _solve(rows: Floats, wanted: Floats) -> Floats:
    """Least squares of every block by its normal equations; the small ridge keeps empty columns at zero."""
    turned = rows.transpose(0, 2, 1)
    normal = turned @ rows
    size = normal.shape[1]
    ridge = np.trace(normal, axis1=1, axis2=2)[:, None, None] * _RIDGE + 1.0
    taps: Floats = np.linalg.solve(normal + ridge * np.eye(size), turned @ wanted)
    return taps

"""Intervals for medians over calls: what the calls that were played say about those that were not.

The bootstrap draws as many calls as there are, with replacement, takes the median of all their values, and does so
again and again; 95 % of these medians lie in the interval. What endlessly many draws come to can be counted out, so
nothing is drawn here, and the same calls have the same interval everywhere. A call is drawn whole: its values belong
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

INTERVAL_RUNS = 6
"""Fewer calls cannot bound a median: all of five lie on one side of it once in 16 times, which is more than 5 %."""
_OUTSIDE = 0.05
"""The part of the medians that lies outside the interval, half of it on either side."""
_ROUNDING = 1e-9


class Interval(NamedTuple):
    """Where a median lies, with 95 %: both ends are values that were measured."""

    low: float
    high: float


def median_interval(runs: Sequence[Sequence[float]]) -> Interval | None:
    """The interval of the median of all the runs' values; None below `INTERVAL_RUNS` runs that have any.

    Of an even number of values the lower of the middle two counts at the lower end and the upper one at the upper end,
    so that values with the other sign have the same interval with the other sign.
    """
    measured = [run for run in runs if run]
    if len(measured) < INTERVAL_RUNS:
        return None
    values = sorted({value for run in measured for value in run})
    return Interval(
        _first(measured, values, at_least=0, share=_OUTSIDE / 2),
        _first(measured, values, at_least=1, share=1 - _OUTSIDE / 2),
    )


def _first(runs: Sequence[Sequence[float]], values: Sequence[float], *, at_least: int, share: float) -> float:
    """The smallest of the sorted values that this share of the medians does not exceed."""
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        if _chance(runs, values[middle], at_least) >= share - _ROUNDING:
            high = middle
        else:
            low = middle + 1
    return values[low]


def _chance(runs: Sequence[Sequence[float]], value: float, at_least: int) -> float:
    """How likely the median of runs drawn with replacement is at most ``value``.

    It is when the values up to ``value`` are as many as those above it (``at_least`` 0, the lower median) or more (1,
    the upper one). By how many more each run has, is added up over as many draws as there are runs.
    """
    surplus = np.array([sum(1 if each <= value else -1 for each in run) for run in runs])
    least = int(surplus.min())
    shares = np.bincount(surplus - least) / len(runs)
    length = len(runs) * (len(shares) - 1) + 1
    sums = np.fft.irfft(np.fft.rfft(shares, 2 * length) ** len(runs), 2 * length)[:length]
    return float(sums[max(0, at_least - len(runs) * least) :].sum())

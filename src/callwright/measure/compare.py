"""Two batches of one scenario on the same seeds, compared call by call.

Each seed is a pair: the same caller in the same world, and another client or another setting. Of a figure the
difference is taken within each pair, so that what differs from seed to seed is in both and falls out. A call has its
median for a figure. What one side of a pair lacks is no zero: the pair is left out, and named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from callwright.measure.batch import RATE_RUNS
from callwright.measure.figures import METRICS
from callwright.measure.intervals import median_interval
from callwright.measure.metric import Aim

if TYPE_CHECKING:
    from callwright.measure.intervals import Interval


_LIVE = "live"
"""The setting that has the address of a live server."""


class Call(msgspec.Struct, frozen=True):
    """One call of a batch."""

    seed: int
    failed: tuple[str, ...]
    medians: dict[str, float]
    """By figure; what the call does not have is not there."""

    @property
    def is_scored(self) -> bool:
        """Whether it has figures."""
        return "void" not in self.failed and "censored" not in self.failed


class Side(msgspec.Struct, frozen=True):
    """A batch, as `summarise` puts it, as far as it is compared."""

    scenario: str
    client: str
    server: str
    settings: dict[str, Any]
    inputs: dict[str, str]
    """Hashes of what was played, by what it is."""
    by_seed: tuple[Call, ...]

    @property
    def named(self) -> dict[str, Any]:
        """What was chosen for it, by name. A live server is one choice, with its dialect."""
        others = {name: value for name, value in self.settings.items() if name != _LIVE}
        server = f"{self.server}, live at {self.settings[_LIVE]}" if _LIVE in self.settings else self.server
        return {"client": self.client, "server": server, **others}


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure on two sides, by pairs."""

    name: str
    pairs: int
    one: float
    """The median of its values on the one side, of pairs only."""
    other: float
    median: float
    """The median of the differences, one less the other."""
    interval: Interval | None
    """95 % of that median; None of too few pairs."""
    better: int
    """Pairs in which the one side has the better value; of a figure that has none, those in which it has the lower."""
    worse: int
    equal: int
    lacking: tuple[int, ...]
    """The seeds that have the figure on one side only."""

    @property
    def is_shown(self) -> bool:
        """Whether the pairs show a difference: 0 is not in the interval."""
        return self.interval is not None and not self.interval.low <= 0 <= self.interval.high


def compared(one: Side, other: Side) -> list[Difference]:
    """Every figure that both have, in the order of `METRICS`; shares of fewer than `RATE_RUNS` pairs are left out."""
    pairs = [(mine, its) for mine, its in _pairs(one, other) if mine.is_scored and its.is_scored]
    found = []
    for name, metric in METRICS.items():
        both = [(mine, its) for mine, its in pairs if name in mine.medians and name in its.medians]
        if both and not (metric.is_rate and len(both) < RATE_RUNS):
            lacking = [mine.seed for mine, its in pairs if (name in mine.medians) != (name in its.medians)]
            found.append(_difference(name, [(mine.medians[name], its.medians[name]) for mine, its in both], lacking))
    return found


def unpaired(one: Side, other: Side) -> list[int]:
    """The seeds that are not compared, because a call of theirs is void or censored."""
    return [mine.seed for mine, its in _pairs(one, other) if not (mine.is_scored and its.is_scored)]


def differing_inputs(one: Side, other: Side) -> list[str]:
    """What was played that must be the same on both sides, and is not."""
    found = _differing(one.inputs, other.inputs)
    return found + ["seeds"] * ([call.seed for call in one.by_seed] != [call.seed for call in other.by_seed])


def differing_settings(one: Side, other: Side) -> list[str]:
    """What was chosen differently for the two sides, by name."""
    return _differing(one.named, other.named)


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


def _pairs(one: Side, other: Side) -> list[tuple[Call, Call]]:
    theirs = {call.seed: call for call in other.by_seed}
    return [(call, theirs[call.seed]) for call in one.by_seed if call.seed in theirs]


def _difference(name: str, pairs: Sequence[tuple[float, float]], lacking: Sequence[int]) -> Difference:
    differences = [mine - its for mine, its in pairs]
    lower, higher = sum(each < 0 for each in differences), sum(each > 0 for each in differences)
    better, worse = (higher, lower) if METRICS[name].aim is Aim.MORE else (lower, higher)
    return Difference(
        name=name,
        pairs=len(pairs),
        one=median([mine for mine, _ in pairs]),
        other=median([its for _, its in pairs]),
        median=median(differences),
        interval=median_interval([[each] for each in differences]),
        better=better,
        worse=worse,
        equal=len(pairs) - lower - higher,
        lacking=tuple(lacking),
    )

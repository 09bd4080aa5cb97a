"""What a figure is: its name, its unit, what it says, and how it is found in a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from callwright.measure.hearing import HeardCall

Values: TypeAlias = Sequence[float]


class Aim(Enum):
    """Which of two values of a figure is the better one."""

    LESS = "less"
    MORE = "more"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure: its name, its unit, what it is, and over which events or window it is taken."""

    name: str
    unit: str
    definition: str
    window: str
    values: Callable[[HeardCall], Values]
    """Its values in one call, in order; none where the call cannot have it."""
    absent: str = ""
    """Why a call has none; empty where every call has one."""
    aim: Aim = Aim.LESS

    @property
    def is_rate(self) -> bool:
        """Whether it is a share of events, which says little of few."""
        return self.unit == "share"

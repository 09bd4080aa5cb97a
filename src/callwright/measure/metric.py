"""What a figure is: its name, its unit, what it says, and how it is found in a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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


class Elsewhere(Enum):
    """What a figure rests on in a call with a server that is not ours, of whose side only the wire tells."""

    SAME = "same"
    """What it always rests on: the recording, the line, the client's trace, the provider's book."""
    WIRE = "wire"
    """Also what client and server told each other; of a reply the audio that came."""
    ESTIMATED = "estimated"
    """Also where in a reply its words are supposed to lie; of one that was cut, those near its end are left out."""
    DOUBTED = "doubted"
    """Also whether certain words were heard; where that hangs on words near the end of a cut reply, there is none."""
    NONE = "none"
    """It needs what only the server knows, so there is none."""


class Lack(Enum):
    """What a server that is not ours may not tell, or never does; the value says it."""

    READ = "what a server that is not ours read of the caller is not known"
    LINES = "what a server that is not ours says is no recorded line"
    CUTS = "this server does not tell what it holds of a reply that was cut"
    TURNS = "this server did not tell the words of a turn of the caller's"
    WORDS = "this server did not tell the words of a reply that was heard"
    LENGTHS = "the client told by words what was heard of a reply, and by no length"
    ENDS = "whether something was heard hangs on words near a cut, which are placed by estimate"


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure: its name, its unit, what it is, and over which events or window it is taken."""

    name: str
    unit: str
    definition: str
    window: str
    values: Callable[[HeardCall], Values]
    """Its values in one call, in order; none where the call cannot have it."""
    elsewhere: Elsewhere = field(kw_only=True)
    """What it rests on where the server is not ours."""
    lacks: Lack | None = field(default=None, kw_only=True)
    """What it cannot do without."""
    absent: str = ""
    """Why a call has none; empty where every call has one."""
    aim: Aim = Aim.LESS

    @property
    def rests_on_words(self) -> bool:
        """Whether it needs the words of every reply that was heard."""
        return self.lacks is Lack.WORDS or self.elsewhere in (Elsewhere.ESTIMATED, Elsewhere.DOUBTED)

    @property
    def is_rate(self) -> bool:
        """Whether it is a share of events, which says little of few."""
        return self.unit == "share"


def share(happened: Sequence[bool]) -> Values:
    """How many of these happened; nothing of none."""
    return (sum(happened) / len(happened),) if happened else ()

"""The dialects that the local server speaks: what differs between them beside the profile that clients go by.

Differences are data. What a dialect does is a habit in a list; what it takes longer or shorter over is a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from callwright.errors import UsageError
from callwright.wire.profiles import OPENAI, PLAIN, POLYAI, Feature, Profile


class Habit(Enum):
    """Something that a server of one dialect does and another does not."""

    CONFIRMS_BARGE_IN = "over a reply it is judged what kind of sound is heard before it counts as the caller's turn"
    WRITES_ALONG = "words and arguments are told in pieces, and then whole"
    TELLS_LIMITS = "each response begins with the account's rate limits"


@dataclass(frozen=True, slots=True)
class Dialect:
    """One dialect of the server."""

    profile: Profile
    model: str
    """What a session says that its model is."""
    detectors: tuple[str, ...] = ("server_vad",)
    habits: tuple[Habit, ...] = ()
    ignores: tuple[str, ...] = ()
    """Client events that change nothing and are not answered."""
    settings: Mapping[str, tuple[object, str]] = field(default_factory=dict)
    """Settings with another default than `ServerSettings` has, each with its source."""

    @property
    def voices_arguments(self) -> bool:
        """Whether a tool's spoken argument is spoken by the server, beside its call; else the model says it first."""
        return Feature.SPOKEN_ARGUMENTS in self.profile.features

    @property
    def is_tunable(self) -> bool:
        """Whether a session may tune the detector of turns."""
        return "audio.input.turn_detection" in self.profile.session_fields


_DOCUMENTED = "documented for the API, Nov 2026"
_OURS = "chosen here; not measured"

_BY_VOICE = {
    "barge_in_told_ms": ((170, 200), "as in silence: a turn begins where voice begins"),
    "music_turn_rate": (1.0, "the detector tells voice, not kinds of sound"),
    "cancelled_first_rate": (0.0, _OURS),
}

DIALECTS = {
    "polyai": Dialect(POLYAI, "dialog-rsn-1", habits=(Habit.CONFIRMS_BARGE_IN,)),
    "openai": Dialect(
        OPENAI,
        OPENAI.model,
        ("server_vad", "semantic_vad"),
        (Habit.WRITES_ALONG, Habit.TELLS_LIMITS),
        settings={
            **_BY_VOICE,
            "pace": (10.0, f"faster than real time is {_DOCUMENTED}; the factor is chosen here"),
            "done_after_ms": ((20, 80), _OURS),
            "longest_silence_ms": (3_600_000, "no limit is documented"),
        },
    ),
    "plain": Dialect(
        PLAIN,
        "plain",
        ignores=("conversation.item.truncate",),
        settings={**_BY_VOICE, "item_events": (False, "the least that a server can send")},
    ),
}
"""All of them, by the name of their profile."""


def dialect_of(name: str) -> Dialect:
    """The dialect of this name. Raises UsageError."""
    if name not in DIALECTS:
        raise UsageError(f"the local server has no dialect {name!r}; dialects: {', '.join(DIALECTS)}")
    return DIALECTS[name]

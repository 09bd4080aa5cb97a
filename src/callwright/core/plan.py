"""What is fixed before a call begins, and how it can end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Flag, StrEnum, auto

from callwright.claims.facts import Milestone
from callwright.core.ports import PlayedReports
from callwright.core.toolcalls import AfterOutput
from callwright.ids import Ms


class Can(Flag):
    """What the model's server can be asked to do."""

    TRUNCATE = auto()
    RETRIEVE = auto()
    CANCEL = auto()
    MERGE = auto()
    """To answer a request for a reply that comes while the caller speaks, and his turn, with one reply."""
    REPORT = auto()
    """To take reports of what was heard of replies that our own voice says."""
    RESTATE = auto()
    """To have such a reply replaced by what was heard of it."""


class Keep(StrEnum):
    """What of a call's words may be kept beyond the call."""

    EVERYTHING = auto()
    """All of them: nobody has to be asked."""
    AFTER_NOTICE = auto()
    """What is said once the caller has heard that the call is recorded, unless he objects."""
    NOTHING = auto()


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What is fixed before a call begins."""

    output_rate_hz: int
    """Rate of the model's audio."""
    reports: PlayedReports
    """How the line tells how much it played."""
    can: Can
    tools: Mapping[str, AfterOutput]
    """The declared tools, by name; an action is one of them."""
    latency_ms: Ms = 0
    """How long what the line played is under way to the ear, as the line reports it."""
    ai_notice: str = ""
    """The words by which the caller is told that he talks to a machine; empty where there are none."""
    recording_notice: str = ""
    """The words by which he is told that the call is recorded."""
    keep: Keep = Keep.EVERYTHING
    actions: frozenset[str] = frozenset()
    """The tools that do something to be told of: nothing is told while one of them has no output."""
    max_hold_ms: Ms | None = None
    """How long somebody is waited for at most; None for as long as it takes."""
    longest_session_ms: Ms | None = None
    """How long a session of the model's lasts; None where no limit is known."""
    longest_turn_ms: Ms | None = None
    """How much audio of one turn the server keeps; None where no limit is known."""
    opens_after_ms: Ms | None = None
    """How long the line is quiet before the agent begins; None where it is never the first to speak."""
    own_voice: bool = False
    """Whether a voice of our own says what the model writes."""
    locale: str = "en"
    """The language that is spoken; claims are understood in those of ``claims.matcher.LOCALES``."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a call ended: ``by`` is ``caller``, ``agent``, ``model`` or ``fault``."""

    by: str
    reason: str

    @property
    def is_failure(self) -> bool:
        """Whether the call broke off rather than ended."""
        return self.by in ("model", "fault")


@dataclass(frozen=True, slots=True)
class Untold:
    """An operation whose outcome the caller did not hear: ``sentence`` is what may be said of it."""

    op_id: str
    milestone: Milestone
    sentence: str

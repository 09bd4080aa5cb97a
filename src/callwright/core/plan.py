"""What is fixed before a call begins, and how it can end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Flag, auto

from callwright.core.ports import PlayedReports
from callwright.core.toolcalls import AfterOutput
from callwright.ids import Ms


class Can(Flag):
    """What the model's server can be asked to do."""

    TRUNCATE = auto()
    RETRIEVE = auto()
    CANCEL = auto()


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What is fixed before a call begins."""

    output_rate_hz: int
    """Rate of the model's audio."""
    reports: PlayedReports
    """How the line tells how much it played."""
    can: Can
    tools: Mapping[str, AfterOutput]
    """The declared tools, by name."""
    latency_ms: Ms = 0
    """How long what the line played is under way to the ear, as the line reports it."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a call ended: ``by`` is ``caller``, ``agent``, ``model`` or ``fault``."""

    by: str
    reason: str

    @property
    def is_failure(self) -> bool:
        """Whether the call broke off rather than ended."""
        return self.by in ("model", "fault")

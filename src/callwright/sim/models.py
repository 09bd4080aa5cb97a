"""What a simulated model sees and what it answers.

A model sees the conversation's history and nothing else: not the script, not the line, not the clock. It
answers with recorded speech, a tool call, or both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from callwright.ids import ItemId, ToolCallId

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class CallerSaid:
    """One turn of the caller, as the server understood it."""

    item_id: ItemId
    text: str
    has_request: bool = False
    """A client asked for a reply while he spoke, and the one to this turn is to answer that, too."""


@dataclass(frozen=True, slots=True)
class AgentSaid:
    """One reply, as the history holds it: shortened when it was cut (``is_cut``, ``text`` ends in a hyphen)."""

    item_id: ItemId
    text: str
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class ToolRequested:
    """A tool call that the model issued; it stays in history even when its spoken line was cut."""

    item_id: ItemId
    tool_call_id: ToolCallId
    name: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ToolAnswered:
    """A tool's output as the client posted it."""

    item_id: ItemId
    tool_call_id: ToolCallId
    output: str


@dataclass(frozen=True, slots=True)
class SystemNote:
    """A system message that the client put into history."""

    item_id: ItemId
    text: str


HistoryItem = CallerSaid | AgentSaid | ToolRequested | ToolAnswered | SystemNote


@dataclass(frozen=True, slots=True)
class Clip:
    """Words ``first_word`` up to, not including, ``end_word`` of a recorded line; None is its last word."""

    line_id: str
    first_word: int = 0
    end_word: int | None = None


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call to issue. The clips of the reply that carries it are its spoken argument."""

    name: str
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says next: clips played one after the other, a tool call, or (empty) nothing."""

    clips: tuple[Clip, ...] = ()
    tool: ToolRequest | None = None


class Model(Protocol):
    """Decides replies from history."""

    def reply(self, history: Sequence[HistoryItem], rng: random.Random) -> Reply:
        """The next reply to this history; ``rng`` is the model's own stream of the call's seed."""

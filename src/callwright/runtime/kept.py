"""What of a call's words is kept beyond the call: in the trace, in the transcript and in the log of what was survived.

What was said, written, or passed to and from a tool is withheld where nothing may be kept: a length stands in its
place, and in a reply of the agent's also where a declared notice begins in it. The words of a turn, a reply or a tool
call that had begun by the time the permission came stay withheld, even those that become known later. Names, times,
lengths and the course of the call are always kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import msgspec

from callwright.core.commands import Command, NoteAnomaly
from callwright.core.events import Event
from callwright.core.plan import CallPlan, Ending
from callwright.core.transcript import Turn

WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "CallerTranscribed": ("text",),
    "ReplyWritten": ("text",),
    "ItemRetrieved": ("text",),
    "VoiceFailed": ("what",),
    "ToolCalled": ("arguments",),
    "ResponseEnded": ("cited",),
    "ToolFinished": ("output", "knowledge"),
    "FactChanged": ("facts", "sentence"),
    "RequestRefused": ("message",),
    "ModelClosed": ("reason",),
    "HangUpRequested": ("reason",),
    "KeysRequested": ("keys",),
    "PressKeys": ("keys",),
    "StartTool": ("arguments",),
    "PostToolOutput": ("output", "knowledge"),
    "PostFacts": ("text",),
    "ConfigureSession": ("more",),
    "CarryMessage": ("text",),
    "CarryCall": ("arguments",),
    "HangUp": ("reason",),
    "NoteAnomaly": ("quoted",),
}
"""The parts of events and commands that hold words, or may quote some."""
_LENGTH: Final = "characters"
_IDS: Final = ("item_id", "tool_call_id", "response_id")
_OF_THE_AGENT: Final = ("ReplyWritten", "ItemRetrieved")
Notices = Mapping[str, str]
"""The declared notices, by what the call's plan names them."""


class Kept:
    """What is kept of one call."""

    def __init__(self, *, is_kept: bool, notices: Notices = MappingProxyType({})) -> None:
        self.notices = notices
        self.is_kept = is_kept
        """Whether the words of what begins now are kept."""
        self._before: set[str] = set()
        """Turns, replies and tool calls that began while they were not."""

    def begin(self) -> None:
        """From here on words are kept."""
        self.is_kept = True

    def drop(self) -> None:
        """No more words are kept, and of those that were, none is told any more."""
        self.is_kept = False

    def content(self, content: Event | Command) -> object:
        """An event or command as it may be written down."""
        if self.is_kept and not self._before:
            return content
        ids = [each for each in (getattr(content, name, None) for name in _IDS) if each is not None]
        ids += getattr(content, "about", ())
        if not self.is_kept:
            self._before.update(ids)
        elif self._before.isdisjoint(ids):
            return content
        return withheld(type(content).__name__, msgspec.to_builtins(content), self.notices)

    def turns(self, turns: Iterable[Turn]) -> tuple[Turn, ...]:
        """The transcript as it may be told: who spoke and when he was cut, and the words that are kept."""
        return tuple(
            turn
            if self.is_kept and turn.item_id not in self._before
            else replace(turn, heard="", written="", cited_topics=())
            for turn in turns
        )

    def ending(self, ending: Ending) -> Ending:
        """How the call ended; the agent's reason is in the model's words."""
        return ending if self.is_kept or ending.by != "agent" else replace(ending, reason="")

    def anomaly(self, note: NoteAnomaly) -> str:
        """A note as it may be told."""
        return note.text if self.is_kept else note.what


def notices_of(plan: CallPlan) -> Notices:
    """The notices that are declared, without the end of their sentence."""
    declared = {"ai_notice": plan.ai_notice, "recording_notice": plan.recording_notice}
    return {name: words.rstrip(" .!?") for name, words in declared.items() if words}


def withheld(kind: str, content: dict[str, Any], notices: Notices = MappingProxyType({})) -> dict[str, Any]:
    """The content of a row of this kind with lengths in place of words."""
    for name in WORDS.get(kind, ()):
        text = content.get(name)
        content[name] = _length(text)
        if kind in _OF_THE_AGENT and isinstance(text, str):
            places = {notice: text.lower().find(words.lower()) for notice, words in notices.items()}
            content[name].update({notice: place for notice, place in places.items() if place >= 0})
    return content


def made_up(length: Mapping[str, int], notices: Notices) -> str:
    """A text of the length that stands in the place of one, with the notices that were in it where they were."""
    text = ["x"] * length[_LENGTH]
    for notice, words in notices.items():
        if notice in length:
            start, end = length[notice], length[notice] + len(words)
            text[start:end] = words
            text[end : end + 1] = " " if end < len(text) else ""
            text[max(0, start - 1) : start] = " " if start else ""
    return "".join(text)


def length_of(value: object) -> int | None:
    """How long the words were that a length stands for; None for anything else."""
    if isinstance(value, dict) and _LENGTH in value:
        return int(value[_LENGTH])
    return None


def _length(value: Any) -> Any:
    """How long a text is, or what is written of a value; what is nothing, or a length already, stays what it is."""
    if value is None or length_of(value) is not None:
        return value
    return {_LENGTH: len(value if isinstance(value, str) else msgspec.json.encode(value))}

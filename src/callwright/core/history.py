"""What a new session is told of the call so far: what was said, as it was heard; the tool calls; what may be said.

Owns the tool calls with their outputs and where the notes of the record stand; the words are those of ``heard``. A call
and its output go together.

What will have been heard of a reply that is still being said is not known: the caller may talk over it. It is told
behind the rest, once that is known, or as far as it will be heard when the model is asked for a reply before.

```
old session  ▓▓▓▓▓▓▓▓│ lost
line         ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│ played out, or cut
new session            │ the rest │ what was heard of the reply
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from callwright.core.commands import CarryCall, CarryMessage, ConfigureSession, PostFacts, PostToolOutput, Request
from callwright.core.events import FactChanged, ToolCalled
from callwright.core.heard import HeardRecord
from callwright.core.notes import note_of
from callwright.core.notice import Notice
from callwright.core.playout import Playout
from callwright.core.transcript import Source, Speaker, Turn
from callwright.ids import EventId, ItemId, ToolCallId

ITEMS_MAX = 256
"""How many of the latest items a new session is told: some 20 minutes of quick talk."""
SUMMARY_MAX = 12
"""How many of them a summary names."""

IN_PROGRESS = (
    "This call is in progress: the connection was renewed, and the caller has noticed nothing but a pause. Do not "
    "mention that, and go on where the conversation stands."
)
"""What the instructions of every session but the first end with ..."""
INTRODUCED = "You have greeted the caller and introduced yourself already: do not greet or introduce yourself again."
"""... where the caller has heard that much."""
SO_FAR = "What was said and done last, the latest at the end:"


class History:
    """The conversation of one call, as another session of the model's is told it."""

    def __init__(
        self, heard: HeardRecord, playout: Playout, outputs: Mapping[ToolCallId, PostToolOutput], notice: Notice
    ) -> None:
        """All of these are the session's; ``outputs`` are those of the tool calls, as they were posted.

        ``notice`` is that the caller talks to a machine: without it nobody is introduced.
        """
        self._heard = heard
        self._playout = playout
        self._outputs = outputs
        self._notice = notice
        self._calls: dict[ItemId, ToolCalled] = {}
        self._open: dict[ItemId, str] = {}
        """Replies that were being said when the session was told of the call, with what it was told of each."""
        self._looked: tuple[int, bool] | None = None
        """At which change of the record it was looked last what was heard of them, and whether that was pressing."""

    def preface(self) -> str:
        """What the instructions of another session end with."""
        has_spoken = any(turn.speaker is Speaker.AGENT and turn.heard for turn in self._heard.turns())
        return f"{IN_PROGRESS} {INTRODUCED}" if has_spoken and not self._notice.is_awaited else IN_PROGRESS

    def called(self, event: ToolCalled) -> None:
        """The model called a tool."""
        if event.item_id not in self._calls:
            self._calls[event.item_id] = event
            self._heard.stands(event.item_id)

    def noted(self, op_id: str) -> None:
        """What may be said of an operation stands in history from here on."""
        self._heard.stands(_place_of(op_id))

    def items(
        self, facts: Mapping[str, FactChanged], next_id: Callable[[], EventId], *, holds: bool = True
    ) -> list[Request]:
        """The requests that tell a new session of the call, in order; ``facts`` are the operations it is told of.

        ``holds`` leaves out replies that are still being said: ``late`` has them. Without it they are among the items
        as far as they will be heard, and ``is_outdated`` once something else was.
        """
        turns = {turn.item_id: turn for turn in self._heard.turns()}
        self._open = dict.fromkeys(self._being_said(), "")
        self._looked = None
        if not holds:
            self._open = {each: self._said(turns[each]) for each in self._open}
        notes = {_place_of(op_id): note_of(fact) for op_id, fact in facts.items()}
        items: list[Request] = []
        for item_id in self._heard.order():
            if item_id in self._open and holds:
                continue
            if item_id in turns and (said := self._said(turns[item_id])):
                turn = turns[item_id]
                items.append(CarryMessage(next_id(), item_id, turn.speaker.value, said))
            elif item_id in self._calls:
                call = self._calls[item_id]
                items.append(CarryCall(next_id(), call.tool_call_id, call.name, call.arguments or "{}"))
                if call.tool_call_id in self._outputs:
                    items.append(replace(self._outputs[call.tool_call_id], event_id=next_id()))
            elif item_id in notes:
                items.append(PostFacts(next_id(), notes[item_id]))
        latest = items[-ITEMS_MAX:]
        return latest[1:] if latest and isinstance(latest[0], PostToolOutput) else latest

    def late(self, next_id: Callable[[], EventId], *, is_pressing: bool) -> list[Request]:
        """The requests that tell of replies of which it has become known what was heard.

        ``is_pressing`` says that the caller speaks, or that the model is asked for a reply: what stands in history
        then comes before that.
        """
        if not self._has_news(is_pressing=is_pressing):
            return []
        carried: list[Request] = []
        for turn in self._heard.turns():
            if turn.item_id not in self._open or not (is_pressing or self._heard.is_through(turn.item_id)):
                continue
            said = self._said(turn)
            if said or self._heard.is_through(turn.item_id):
                del self._open[turn.item_id]
            if said:
                carried.append(CarryMessage(next_id(), turn.item_id, turn.speaker.value, said))
        return carried

    def is_outdated(self) -> bool:
        """Whether something else was heard than was told, without ``holds``, of a reply that was being said."""
        if not self._has_news(is_pressing=False):
            return False
        through = [each for each in self._open if self._heard.is_through(each)]
        heard = {turn.item_id: turn.heard for turn in self._heard.turns()}
        outdated = [each for each in through if self._open.pop(each) != heard[each]]
        return bool(outdated)

    def summary(self, items: list[Request], event_id: EventId) -> ConfigureSession:
        """The configuration of a session that is told the end of all this in a few words."""
        told = items[-SUMMARY_MAX:]
        lines = [_line(item) for item in told]
        about = tuple(item.item_id for item in told if isinstance(item, CarryMessage))
        calls = tuple(item.tool_call_id for item in told if isinstance(item, (CarryCall, PostToolOutput)))
        return ConfigureSession(event_id, "\n".join([self.preface(), SO_FAR, *lines]), (*about, *calls))

    def _has_news(self, *, is_pressing: bool) -> bool:
        looked, self._looked = self._looked, (self._heard.changes, is_pressing)
        return bool(self._open) and looked != self._looked

    def _being_said(self) -> list[ItemId]:
        """The replies that more may be heard of; of those that lack words, only what stands last is gone on with."""
        found: list[ItemId] = []
        is_last = True
        for turn in reversed(self._heard.turns()):
            is_open = turn.speaker is Speaker.AGENT and not self._heard.is_through(turn.item_id)
            is_last = is_last and is_open
            if is_last or (is_open and turn.source is Source.PENDING):
                found.append(turn.item_id)
        return found

    def _said(self, turn: Turn) -> str:
        if turn.speaker is Speaker.CALLER or turn.item_id not in self._playout.live():
            return turn.heard
        return self._heard.will_be_heard(turn.item_id, self._playout.item_ms(turn.item_id))


def _place_of(op_id: str) -> ItemId:
    return ItemId(f"what is known of {op_id}")


def _line(item: Request) -> str:
    match item:
        case CarryMessage(speaker=speaker, text=text):
            return f"{speaker}: {text}"
        case CarryCall(name=name, arguments=arguments):
            return f"you called {name} with {arguments}"
        case PostToolOutput(output=output):
            return f"it returned {output}"
        case PostFacts(text=text):
            return f"on record: {text}"
    return ""

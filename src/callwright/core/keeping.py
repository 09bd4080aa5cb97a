"""What of a call's words may be kept: all, none, or what is said once the caller knows, unless he objects.

Owns that permission. Does not own whether the notice was heard (``notice``), or the keeping itself (the shell's trace).

```
agent    "This call is recorded. Is that all right?"
caller                                             "Yes, go ahead."        ... "Please stop recording."
stage    WITHHELD ────────────────────────────────│ KEPT ─────────────────────│ REFUSED: nothing is kept of the call
```

He objects by what he says first behind the notice, where that is plainly a no, or at any time by way of the model,
which calls ``stop_recording``. Once he has, nothing brings the permission back.
"""

from __future__ import annotations

from enum import Enum, auto

from callwright.claims.words import plain
from callwright.core.commands import DropWords, KeepWords
from callwright.core.heard import HeardRecord
from callwright.core.notice import Notice
from callwright.core.outgoing import Outgoing
from callwright.core.plan import CallPlan, Keep
from callwright.core.table import Table
from callwright.core.transcript import Speaker, Turn
from callwright.ids import Ms

STOP_RECORDING = "stop_recording"
"""The tool by which the model tells that the caller objects."""

NO = ("no", "nope", "nah")
"""A first answer that begins with one of these is a no ..."""
NO_OBJECTION = (
    *("problem", "worries", "objection", "objections", "i do not mind", "not at all", "go ahead", "of course"),
    *("that is fine", "that is ok", "that is okay", "that is all right", "that is alright"),
    *("it is fine", "it is ok", "it is okay", "it is all right", "it is alright"),
)
"""... unless it goes on like this."""
OBJECTION = (
    *("not record", "not recorded", "not be recorded", "stop recording", "without recording", "no recording"),
    *("rather not", "not consent", "not agree", "not want", "do mind", "object to"),
    *("not all right", "not alright", "not okay", "not ok", "not fine"),
)
"""And any answer is one that holds one of these."""


class Stage(Enum):
    """Whether what is said now is kept."""

    WITHHELD = auto()
    """It is not, or not yet."""
    KEPT = auto()
    REFUSED = auto()
    """It is not: the caller objects."""


class Cue(Enum):
    """What happens to the permission."""

    ALLOWED = auto()
    OBJECTED = auto()


KEEPING: Table[Stage, Cue] = Table(
    "keeping",
    Stage.WITHHELD,
    {
        (Stage.WITHHELD, Cue.ALLOWED): Stage.KEPT,
        (Stage.WITHHELD, Cue.OBJECTED): Stage.REFUSED,
        (Stage.KEPT, Cue.OBJECTED): Stage.REFUSED,
    },
)


class Keeping:
    """The notices of one call, and what may be kept of it."""

    def __init__(self, plan: CallPlan, heard: HeardRecord, out: Outgoing) -> None:
        """The record of the heard and the commands are the session's; it goes on using them."""
        self.stage = KEEPING.start
        self.ai_notice = Notice(plan.ai_notice, plan.latency_ms)
        self.recording_notice = Notice(plan.recording_notice, plan.latency_ms)
        self._keep = plan.keep
        self._heard = heard
        self._out = out
        self._seen = 0
        """How many changes of the record have been looked at."""
        if plan.keep is Keep.EVERYTHING:
            self.stage = KEEPING.after(self.stage, Cue.ALLOWED)

    def tool_called(self, name: str) -> None:
        """The model called a tool, whatever becomes of the call."""
        if name == STOP_RECORDING:
            self._object()

    def look(self, now_ms: Ms) -> None:
        """Go on by what is known of the conversation now."""
        deadline_ms = self.next_deadline_ms()
        is_due = deadline_ms is not None and now_ms >= deadline_ms
        if self._seen == self._heard.changes and not is_due:
            return
        self._seen = self._heard.changes
        if not (self.ai_notice.is_awaited or self._may_change()):
            return
        turns = self._heard.turns()
        self.ai_notice.look(turns, now_ms)
        if self.recording_notice.look(turns, now_ms) and self.stage is Stage.WITHHELD and self._may_change():
            self.stage = KEEPING.after(self.stage, Cue.ALLOWED)
            self._out.add(KeepWords())
        if self._may_change() and is_no(self._answer(turns)):
            self._object()

    def next_deadline_ms(self) -> Ms | None:
        """When a notice that was played is at the ear."""
        deadlines = [notice.next_deadline_ms() for notice in (self.ai_notice, self.recording_notice)]
        return min((deadline_ms for deadline_ms in deadlines if deadline_ms is not None), default=None)

    def call_is_over(self, now_ms: Ms) -> None:
        """The call has ended, and what was heard of it is settled."""
        turns = self._heard.turns()
        is_missed = self.ai_notice.call_is_over(turns, now_ms)
        self.recording_notice.call_is_over(turns, now_ms)
        if is_missed and any(turn.speaker is Speaker.AGENT for turn in turns):
            self._out.note("the caller never heard that he talks to an AI")

    def _may_change(self) -> bool:
        return self._keep is Keep.AFTER_NOTICE and self.stage is not Stage.REFUSED

    def _answer(self, turns: tuple[Turn, ...]) -> str:
        """What the caller said first behind the reply that told him; empty while that is not known."""
        items = [turn.item_id for turn in turns]
        told = self.recording_notice.item_id
        behind = turns[items.index(told) + 1 :] if told is not None else ()
        return next((turn.heard for turn in behind if turn.speaker is Speaker.CALLER and turn.heard.strip()), "")

    def _object(self) -> None:
        if self._may_change():
            self.stage = KEEPING.after(self.stage, Cue.OBJECTED)
            self._out.add(DropWords())


def is_no(answer: str) -> bool:
    """Whether the answer to "is it all right that this call is recorded?" is plainly a no."""
    words = plain(answer)
    text = f" {' '.join(words)} "
    if any(f" {phrase} " in text for phrase in OBJECTION):
        return True
    goes_on = text.split(" ", 2)[-1]
    return bool(words) and words[0] in NO and not any(goes_on.startswith(f"{phrase} ") for phrase in NO_OBJECTION)

"""What the caller is owed: the outcome of every operation of this call, and the truth where he heard something else.

Owns, per operation and version of what may be said, whether the caller is to be told, how often that was asked for, and
whether he heard it. Does not own what a reply was worth (``judging``) or when a reply may be asked for (``turns``).

```
record   accepted │ confirmed (a note is put into history)
model             │     asks ─> reply ▒▒▒▒▒▒▒▒          asks ─> reply ▒▒▒▒▒▒▒▒
line              │             ▓▓▓▓▓▓/ talked over             ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│ heard whole
told     KNOWN    │OWED │ASKED        │OWED (a reminder) │ASKED                 │HEARD
```

A reply that began before the core knew of the fact tells nothing, whatever it says. One that began after it, on its own
or asked for, may tell it: until its hearing is known nothing more is asked for. A fact is asked for ``ASKS_MAX`` times
at most, refused requests and failed responses included; then it is DEFERRED, for somebody to tell it otherwise. A newer
version makes the telling of the older one VOID.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from callwright.claims.facts import OUTCOMES, Milestone, Said
from callwright.core.commands import RecordTold, Telling
from callwright.core.events import FactChanged
from callwright.core.notes import correction_of, reminder_of
from callwright.core.plan import Untold
from callwright.core.table import Table
from callwright.ids import ItemId, ResponseId

ASKS_MAX = 3
"""How often a reply that is to tell one fact is asked for: once, and two reminders."""


class State(Enum):
    """How far the telling of a fact has come."""

    KNOWN = auto()
    """It may be told; nothing is owed."""
    OWED = auto()
    """The caller is to be told."""
    ASKED = auto()
    """A reply that may tell it was asked for or is under way."""
    HEARD = auto()
    DEFERRED = auto()
    """Not in this call."""
    VOID = auto()
    """There is a newer version."""


class Cue(Enum):
    """What happens to the telling of a fact."""

    OWES = auto()
    """It is an outcome that this call has to tell."""
    ASKED = auto()
    BEGUN = auto()
    """A reply began that may tell it."""
    HEARD = auto()
    MISSED = auto()
    """What was to tell it did not, or was not heard."""
    UNHEARD = auto()
    """What told it did not reach the ear after all."""
    CONTRADICTED = auto()
    """The caller heard something that the record does not support."""
    GIVEN_UP = auto()
    CHANGED = auto()


_OPEN = (State.OWED, State.ASKED)

TOLD: Table[State, Cue] = Table(
    "told",
    State.KNOWN,
    {
        (State.KNOWN, Cue.OWES): State.OWED,
        (State.OWED, Cue.ASKED): State.ASKED,
        (State.OWED, Cue.BEGUN): State.ASKED,
        (State.ASKED, Cue.BEGUN): State.ASKED,
        (State.ASKED, Cue.MISSED): State.OWED,
        **{(state, Cue.HEARD): State.HEARD for state in (State.KNOWN, State.OWED, State.ASKED, State.DEFERRED)},
        (State.HEARD, Cue.UNHEARD): State.OWED,
        (State.ASKED, Cue.CONTRADICTED): State.ASKED,
        **{(state, Cue.CONTRADICTED): State.OWED for state in (State.KNOWN, State.OWED, State.HEARD, State.DEFERRED)},
        **{(state, Cue.GIVEN_UP): State.DEFERRED for state in (State.KNOWN, *_OPEN, State.HEARD)},
        **{(state, Cue.CHANGED): State.VOID for state in State if state is not State.VOID},
    },
)


@dataclass(slots=True)
class _Fact:
    fact: FactChanged
    state: State = TOLD.start
    asks: int = 0
    wrongly: Said | None = None
    """What the caller heard instead, until he has heard this."""
    heard_in: ItemId | None = None
    replies: dict[ResponseId, None] = field(default_factory=dict)
    """Replies that may tell it, and whose hearing is not known yet."""
    note: str | None = None
    """What the model is to be told before the next telling."""
    noted_asks: int = -1
    """How often it had been asked for when the latest note was made: one note for each telling is enough."""

    @property
    def is_undecided(self) -> bool:
        """Whether there is an outcome to come."""
        fact = self.fact
        return fact.is_ours and not fact.is_settled and fact.facts.milestone is not Milestone.PROPOSED

    @property
    def is_working(self) -> bool:
        """Whether it is one that the caller waits for: what is in doubt may take long."""
        return self.is_undecided and self.fact.facts.milestone is not Milestone.UNKNOWN


class Told:
    """What is told in one call."""

    def __init__(self) -> None:
        self._facts: dict[str, _Fact] = {}
        """The latest of each operation."""
        self._records: list[RecordTold] = []

    def known(self) -> dict[str, FactChanged]:
        """What may be said now, by operation."""
        return {op_id: each.fact for op_id, each in self._facts.items()}

    def changed(self, fact: FactChanged) -> bool:
        """What may be said of an operation has changed; false if this, or a later version, is known already."""
        before = self._facts.get(fact.op_id)
        if before is not None and before.fact.version >= fact.version:
            return False
        after = self._facts[fact.op_id] = _Fact(fact)
        is_owed = fact.is_ours or (before is not None and (before.state in _OPEN or before.state is State.HEARD))
        if before is not None:
            was = before.state
            if before.state in _OPEN:
                self._record(before, Telling.VOID)
            before.state = TOLD.after(before.state, Cue.CHANGED)
            if was is State.HEARD and _says_the_same(before.fact, fact):
                after.heard_in = before.heard_in
                self._move(after, Cue.HEARD)
                return True
        if is_owed and fact.facts.milestone in OUTCOMES:
            self._move(after, Cue.OWES)
        return True

    def is_owing(self, *, in_turn: bool = False) -> bool:
        """Whether a reply is to be asked for: something is owed, and nothing is under way that may tell it.

        ``in_turn`` says that the caller speaks: the last request for a fact is kept then, as the answer to his turn
        may be a farewell that tells nothing.
        """
        owed = [each for each in self._facts.values() if each.state is State.OWED]
        return bool(owed) and not (in_turn and any(each.asks >= ASKS_MAX - 1 for each in owed))

    def is_telling(self) -> bool:
        """Whether something is owed, or it is not known yet whether it was heard."""
        return any(each.state in _OPEN for each in self._facts.values())

    def outstanding(self) -> int:
        """How many operations the caller is not through with: an outcome is to be told, or to come."""
        return sum(each.state in _OPEN or each.is_working for each in self._facts.values())

    def notes(self) -> list[str]:
        """What the model is to be told before the next telling, once: reminders and corrections."""
        noted = [each for each in self._facts.values() if each.note is not None and each.state in _OPEN]
        notes = [each.note for each in noted if each.note is not None]
        for each in noted:
            each.note = None
        return notes

    def asked(self) -> None:
        """A reply was asked for: it is to tell everything that is owed."""
        for each in self._facts.values():
            if each.state is State.OWED:
                each.asks += 1
                self._move(each, Cue.ASKED)

    def begun(self, response_id: ResponseId) -> None:
        """A reply began: it may tell what is owed."""
        for each in self._facts.values():
            if each.state in _OPEN:
                each.replies[response_id] = None
                self._move(each, Cue.BEGUN)

    def never_began(self) -> None:
        """The reply that was asked for last does not come: it was refused, or nothing began in time."""
        for each in self._facts.values():
            if each.state is State.ASKED and not each.replies:
                self._missed(each)

    def heard(self, op_id: str, item_id: ItemId) -> None:
        """The caller heard what may be said of an operation, in this item."""
        each = self._facts[op_id]
        is_worth_it = each.state is not State.KNOWN or each.fact.facts.milestone in OUTCOMES
        if is_worth_it and TOLD.allows(each.state, Cue.HEARD):
            each.heard_in, each.wrongly, each.note = item_id, None, None
            self._move(each, Cue.HEARD)

    def unheard(self, op_id: str, item_id: ItemId) -> None:
        """It is known now that this item did not tell it; no effect if something else did."""
        each = self._facts[op_id]
        if each.state is State.HEARD and each.heard_in == item_id:
            self._move(each, Cue.UNHEARD)
            self._missed_once(each)

    def is_heard_in(self, op_id: str, item_id: ItemId) -> bool:
        """Whether it was this item that told it."""
        return self._facts[op_id].heard_in == item_id

    def is_open(self, op_id: str) -> bool:
        """Whether the caller is owed what may be said of it."""
        return self._facts[op_id].state in _OPEN

    def through(self, response_id: ResponseId) -> None:
        """All that will be heard of a reply is known: what it has not told is owed again."""
        for each in self._facts.values():
            if response_id in each.replies:
                del each.replies[response_id]
                if each.state is State.ASKED and not each.replies:
                    self._missed(each)

    def contradicted(self, op_id: str, said: Said) -> None:
        """The caller heard something of an operation that the record does not support."""
        each = self._facts[op_id]
        each.wrongly = said
        each.heard_in = None
        if each.asks < ASKS_MAX:  # nothing more is asked for that could follow it
            each.note, each.noted_asks = correction_of(each.fact, said), each.asks
        self._record(each, Telling.CORRECTION)
        self._move(each, Cue.CONTRADICTED)
        if each.state is State.OWED:
            self._give_up_if_asked_enough(each)

    def call_is_over(self) -> None:
        """Nothing more is told: what is owed, and what would have been, is for somebody else to tell."""
        for each in self._facts.values():
            if each.state in _OPEN or (each.is_undecided and each.state is not State.DEFERRED):
                self._move(each, Cue.GIVEN_UP)

    def untold(self) -> tuple[Untold, ...]:
        """What was given up, in the order in which the operations became known."""
        deferred = [each.fact for each in self._facts.values() if each.state is State.DEFERRED]
        return tuple(Untold(fact.op_id, fact.facts.milestone, fact.sentence) for fact in deferred)

    def take_records(self) -> list[RecordTold]:
        """What is to be kept of all this, in order; it is not given again."""
        records, self._records = self._records, []
        return records

    def _missed(self, each: _Fact) -> None:
        self._move(each, Cue.MISSED)
        self._missed_once(each)

    def _missed_once(self, each: _Fact) -> None:
        self._record(each, Telling.MISSED)
        if each.asks > each.noted_asks:
            each.note = correction_of(each.fact, each.wrongly) if each.wrongly else reminder_of(each.fact)
            each.noted_asks = each.asks
        self._give_up_if_asked_enough(each)

    def _give_up_if_asked_enough(self, each: _Fact) -> None:
        if each.asks >= ASKS_MAX:
            self._move(each, Cue.GIVEN_UP)

    def _move(self, each: _Fact, cue: Cue) -> None:
        each.state = TOLD.after(each.state, cue)
        if (cue, each.state) in _RECORDED:
            self._record(each, _RECORDED[cue, each.state])

    def _record(self, each: _Fact, state: Telling) -> None:
        fact = each.fact
        self._records.append(RecordTold(fact.op_id, fact.facts.milestone, fact.version, state))


_RECORDED = {
    (Cue.ASKED, State.ASKED): Telling.ASKED,
    (Cue.HEARD, State.HEARD): Telling.HEARD,
    (Cue.GIVEN_UP, State.DEFERRED): Telling.DEFERRED,
}


def _says_the_same(before: FactChanged, after: FactChanged) -> bool:
    return before.facts == after.facts and before.sentence == after.sentence

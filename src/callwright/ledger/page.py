"""One transaction's page: the only place where an operation is written.

Every change of an operation is one event, numbered by the operation's version, so events without a gap are the proof
that nothing was changed beside them. What may be said changes with the milestone, the terms, a wish and an escalation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from callwright.errors import LedgerError
from callwright.ids import Ms
from callwright.ledger import owing
from callwright.ledger.operation import LIVE, Actor, State, Step, after
from callwright.ledger.provider import Traits
from callwright.ledger.rows import Attempt, Authorization, Event, Operation, Outbox
from callwright.ledger.store import Transaction

_SAID = ("milestone", "rev", "terms_json", "amend_json", "escalated")
"""The columns that the canonical sentence is made of."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the ledger waits for what; all in milliseconds but the counts."""

    consent_ms: Ms = 600_000
    """A proposal, or leave to dispatch, is good for so long."""
    retry_ms: Ms = 250
    """After a send that provably did not leave; doubled each time."""
    tries_max: int = 3
    """So many sends may provably not leave before the operation counts as failed."""
    sends_max: int = 4
    """So often one key is sent."""
    ask_ms: Ms = 500
    """The least time between two look-ups; it grows with the time that has passed."""
    on_line_ms: Ms = 60_000
    """For so long somebody may be waiting on the line: a quarter of the time that has passed, and all of it later."""
    ask_max_ms: Ms = 21_600_000
    doubt_ms: Ms = 900_000
    """A doubt that look-ups do not settle goes to a person after so long."""
    pending_ms: Ms = 259_200_000
    """What a provider holds for so long without an outcome goes to a person."""
    watch_first_ms: Ms = 60_000
    """A confirmed one is looked up again first after so long, in case it comes back."""
    watch_ms: Ms = 259_200_000
    """And last after so long."""
    left_ms: Ms = 30_000
    """What has been due for so long, and nobody has seen to, is taken over from whoever had to; so often that is looked
    for."""
    tell_ms: Ms = 60_000
    """An outcome that no call has told for so long is owed outside the calls."""


@dataclass(slots=True)
class Page:
    """Reads and changes operations within one transaction, at one instant."""

    tx: Transaction
    now_ms: Ms
    traits: Mapping[str, Traits]
    """What each provider promises, by its name."""
    patience: Patience
    written: dict[str, Operation] = field(default_factory=dict)
    """The operations of which something else may be said now."""
    is_owing: bool = False
    """Whether something else is owed outside the calls."""

    def operation(self, op_id: str) -> Operation:
        """The operation of this name. Raises LedgerError if there is none."""
        found = self.tx.get(Operation, op_id)
        if found is None:
            raise LedgerError(f"there is no operation {op_id}")
        return found

    def attempts(self, op_id: str) -> list[Attempt]:
        """The attempts of an operation, oldest first."""
        return self.tx.find(Attempt, op_id=op_id)

    def traits_of(self, operation: Operation) -> Traits:
        """What the operation's provider promises. Raises LedgerError if the ledger was opened without it."""
        try:
            return self.traits[operation.provider]
        except KeyError:
            raise LedgerError(
                f"operation {operation.op_id} needs the provider {operation.provider!r}; open the ledger with it"
            ) from None

    def open(self, operation: Operation, actor: Actor, cause: str) -> Operation:
        """Store a new operation (T1)."""
        self.tx.insert(operation)
        self._event(operation, None, None, actor, cause)
        self.written[operation.op_id] = operation
        return operation

    def step(self, read: Operation, step: Step, actor: Actor, cause: str = "", **changes: Any) -> Operation:
        """Take one step of the table. Raises IllegalTransition, and nothing has changed then."""
        state = after(read.state, step, actor, attempted=bool(self.attempts(read.op_id)))
        is_repeat = read.state is State.UNKNOWN and step is Step.DISPATCH
        milestone = read.milestone if is_repeat else state.value
        return self._write(read, step, actor, cause, state=state, milestone=milestone, **changes)

    def note(self, read: Operation, actor: Actor, cause: str, **changes: Any) -> Operation:
        """Change columns of an operation that stays in its state."""
        return self._write(read, None, actor, cause, **changes)

    def escalate(self, read: Operation, actor: Actor, reason: str) -> Operation:
        """Let a person look at it, for the first reason that comes up."""
        if read.escalated:
            return read
        self.owe(read.op_id, read.state_version + 1, owing.PERSON, reason)
        return self.note(read, actor, f"escalated: {reason}", escalated=reason)

    def owe(self, op_id: str, version: int, kind: str, reason: str) -> None:
        """Put something on the outbox."""
        self.tx.insert(Outbox(op_id, version, kind, reason, None))
        self.is_owing = True

    def grant(self, operation: Operation, step: Step, actor: Actor) -> Operation:
        """Authorise the present revision, once, for a while (T2 or T14)."""
        written = self.step(operation, step, actor, "authorised")
        expires_at_ms = self.now_ms + self.patience.consent_ms
        self.tx.insert(
            Authorization(
                written.op_id, written.state_version, written.rev, written.params_hash, actor, expires_at_ms, None
            )
        )
        return written

    def leave(self, operation: Operation) -> Authorization | None:
        """What the present revision may be dispatched on now, if anything."""
        granted = self.tx.find(Authorization, op_id=operation.op_id, rev=operation.rev)
        if not granted:
            return None
        latest = granted[-1]
        is_good = latest.params_hash == operation.params_hash and self.now_ms < latest.expires_at_ms
        return latest if is_good else None

    def fits_cap(self, operation: Operation) -> bool:
        """Whether it and all that is live beside it on its subject stay within its cap."""
        terms = operation.terms
        if terms.cap is None or terms.amount is None:
            return True
        beside = self.tx.find(Operation, kind=operation.kind, subject=operation.subject, state=LIVE)
        amounts = [other.terms.amount for other in beside if other.op_id != operation.op_id]
        total = sum(amount.minor for amount in amounts if amount and amount.currency == terms.cap.currency)
        return total + terms.amount.minor <= terms.cap.minor

    def _write(self, read: Operation, step: Step | None, actor: Actor, cause: str, **changes: Any) -> Operation:
        version = read.state_version + 1
        written = replace(read, state_version=version, changed_at_ms=self.now_ms, **changes)
        if any(getattr(read, name) != getattr(written, name) for name in _SAID):
            written = replace(written, fact_version=version)
            self.written[read.op_id] = written
        self.tx.swap(read, written)
        self._event(written, step, read.state, actor, cause)
        if written.fact_version == version:
            owing.changed(self, written)
        return written

    def _event(self, written: Operation, step: Step | None, source: State | None, actor: Actor, cause: str) -> None:
        row = Event(written.op_id, written.state_version, step, source, written.state, actor, cause, self.now_ms)
        self.tx.insert(row)

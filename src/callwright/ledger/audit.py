"""What is held against what: the record against itself, against what its callers heard, and against its providers.

```
record     events without a gap, states that follow from them, claims with evidence        problems
heard      the last outcome that a caller heard, unless somebody is to tell him            unheard
provider   what a look-up says of each attempt                                             differs
```

Only what the record contradicts itself in makes it unfit to dispatch from.
"""

from __future__ import annotations

from collections.abc import Iterator

from callwright.errors import IllegalTransition
from callwright.ledger import owing
from callwright.ledger.folding import is_other
from callwright.ledger.operation import LIVE, Actor, State, after
from callwright.ledger.page import Page
from callwright.ledger.provider import Observed, Outcome
from callwright.ledger.rows import Attempt, Authorization, Event, Evidence, Operation, Outbox, Told, Waiting
from callwright.ledger.saying import OUTCOMES, fact_of

_SHOWN_BY: dict[State, tuple[Outcome, ...]] = {
    State.ACCEPTED: (Outcome.ACCEPTED,),
    State.CONFIRMED: (Outcome.APPLIED,),
    State.FAILED: (Outcome.NOT_APPLIED, Outcome.NOT_SENT),
    State.REVERSED: (Outcome.REVERSED, Outcome.NOT_APPLIED, Outcome.CANCELLED),
}
"""Which observations bear out a state that claims something about an effect."""
_NOTHING_KNOWN = (Outcome.UNKNOWN, Outcome.STILL_OPEN, Outcome.ABSENT)
_NO_EFFECT = (Outcome.NOT_APPLIED, Outcome.CANCELLED, Outcome.REVERSED, Outcome.ABSENT)
_FOUND: dict[State, tuple[Outcome, ...]] = {
    State.RUNNING: _NOTHING_KNOWN,
    State.UNKNOWN: _NOTHING_KNOWN,
    State.ACCEPTED: (Outcome.ACCEPTED,),
    State.CONFIRMED: (Outcome.APPLIED,),
    State.FAILED: _NO_EFFECT,
    State.CANCELLED: _NO_EFFECT,
    State.REVERSED: _NO_EFFECT,
}
"""What a look-up of the latest attempt finds where provider and record agree; of all others it finds no effect."""


def problems(page: Page) -> tuple[str, ...]:
    """What does not agree, each as one line with the operation's name."""
    return tuple(
        _named(operation, problem) for operation in page.tx.find(Operation) for problem in _of(page, operation)
    )


def unheard(page: Page) -> tuple[str, ...]:
    """Which outcomes a caller waited for and did not hear, though nobody is to tell him; each as one line."""
    return tuple(
        _named(operation, f"its caller has not heard that it is {operation.milestone}, and nobody is to tell him (I19)")
        for operation in page.tx.find(Operation)
        if operation.milestone in OUTCOMES and _is_unheard(page, operation)
    )


def differs(page: Page, read: Operation, n: int, seen: Observed) -> str | None:
    """In what a look-up of attempt ``n`` differs from the record; None if it does not, or if that went on meanwhile."""
    operation = page.operation(read.op_id)
    if operation.state_version != read.state_version:
        return None
    attempts = page.attempts(read.op_id)
    attempt = attempts[n - 1]
    is_latest = attempt is attempts[-1]
    found = _FOUND.get(operation.state, _NO_EFFECT) if is_latest else _NO_EFFECT
    if is_other(attempt, seen):
        return _named(operation, f"{operation.provider} has another amount, card or reference for attempt {n} (I5)")
    if seen.outcome in found:
        return None
    says = f"cannot say ({seen.reason})" if seen.outcome in _NOTHING_KNOWN[:2] else f"says {seen.outcome.value}"
    which = "" if is_latest else f" of attempt {n}"
    return _named(operation, f"the record says {operation.state.value}, and {operation.provider} {says}{which}")


def _named(operation: Operation, problem: str) -> str:
    return f"{operation.kind} {operation.subject} {operation.slot}: {problem}"


def _is_unheard(page: Page, operation: Operation) -> bool:
    """Whether he who waited for it heard another outcome last, or none."""
    told = page.tx.find(Told, op_id=operation.op_id)
    waited = page.tx.find(Waiting, op_id=operation.op_id)
    is_owed = bool(page.tx.find(Outbox, op_id=operation.op_id, done_at_ms=None))
    is_told_now = any(each.done_at_ms is None and not owing.is_late(page, each) for each in waited)
    if not (told or waited) or is_owed or is_told_now:
        return False
    came = [each.seq for each in page.tx.find(Event, op_id=operation.op_id) if each.target is not each.source]
    heard = [each for each in told if (each.state, each.milestone) == (owing.HEARD, operation.milestone)]
    return not owing.is_told(page, fact_of(operation)) and not any(each.version >= came[-1] for each in heard)


def _of(page: Page, operation: Operation) -> Iterator[str]:
    yield from _chain(page, operation)
    attempts = page.attempts(operation.op_id)
    evidence = page.tx.find(Evidence, op_id=operation.op_id)
    bearing = _SHOWN_BY.get(operation.state)
    if bearing and not any(row.outcome in bearing for row in evidence):
        yield f"{operation.state.value} without evidence (I5)"
    if sum(attempt.is_unresolved for attempt in attempts) > 1:
        yield "more than one attempt is unresolved (I3)"
    yield from _leave(page, operation, attempts)
    if operation.state in LIVE and not page.fits_cap(operation):
        yield "its subject is over its cap (I1)"


def _chain(page: Page, operation: Operation) -> Iterator[str]:
    """The state is what the events lead to, each step by somebody who may take it."""
    state: State | None = None
    events = page.tx.find(Event, op_id=operation.op_id)
    if [event.seq for event in events] != list(range(1, operation.state_version + 1)):
        yield "its events have a gap (I12)"
    attempted = False
    for event in events:
        if event.source is not state:
            yield f"event {event.seq} does not begin where the one before ended (I12)"
        attempted = attempted or event.actor is Actor.DISPATCHER
        if event.step and event.source:
            try:
                follows = after(event.source, event.step, event.actor, attempted=attempted)
            except IllegalTransition as problem:
                yield f"event {event.seq}: {problem} (I6)"
            else:
                if follows is not event.target:
                    yield f"event {event.seq} leads elsewhere than its step (I6)"
        state = event.target
    if state is not operation.state:
        yield "its state is not what its events lead to (I12)"


def _leave(page: Page, operation: Operation, attempts: list[Attempt]) -> Iterator[str]:
    """Each attempt was made on leave for its own revision, and one leave carries one chain of attempts."""
    granted = page.tx.find(Authorization, op_id=operation.op_id)
    for attempt in attempts:
        used = [each for each in granted if each.consumed_n is not None and each.consumed_n <= attempt.n]
        if not used or (used[-1].rev, used[-1].params_hash) != (attempt.rev, attempt.params_hash):
            yield f"attempt {attempt.n} was made without leave (I7)"
        elif any(
            each.outcome is not Outcome.NOT_SENT for each in attempts[(used[-1].consumed_n or 0) - 1 : attempt.n - 1]
        ):
            yield f"attempt {attempt.n} was made on leave that was used up (I7)"

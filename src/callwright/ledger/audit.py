"""Whether the record agrees with itself: events without a gap, states that follow from them, claims with evidence."""

from __future__ import annotations

from collections.abc import Iterator

from callwright.errors import IllegalTransition
from callwright.ledger.operation import LIVE, Actor, State, after
from callwright.ledger.page import Page
from callwright.ledger.provider import Outcome
from callwright.ledger.rows import Attempt, Authorization, Event, Evidence, Operation

_SHOWN_BY: dict[State, tuple[Outcome, ...]] = {
    State.ACCEPTED: (Outcome.ACCEPTED,),
    State.CONFIRMED: (Outcome.APPLIED,),
    State.FAILED: (Outcome.NOT_APPLIED, Outcome.NOT_SENT),
    State.REVERSED: (Outcome.REVERSED, Outcome.NOT_APPLIED, Outcome.CANCELLED),
}
"""Which observations bear out a state that claims something about an effect."""


def problems(page: Page) -> tuple[str, ...]:
    """What does not agree, each as one line with the operation's name."""
    return tuple(
        f"{operation.kind} {operation.subject} {operation.slot}: {problem}"
        for operation in page.tx.find(Operation)
        for problem in _of(page, operation)
    )


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

"""What is to be done about an operation next: send, look up, cancel, wait, or hand it to a person.

The decision is made and stored in one transaction, before anything leaves: a send is an attempt row first. The clock
alone never sends anything again; what may be sent again, and until when, is the provider's promise.

```
opened                                            window - margin      window
  │ send ░░░░░ timeout                                   │                │
  │          │ look up ── look up ───── look up ── found nothing          │
  │          └ absence_wait ─────────────┘ the same key again │ never again: a person
```
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from enum import Enum

from callwright.errors import LedgerError
from callwright.ids import Ms
from callwright.ledger import owing
from callwright.ledger.asking import Answer
from callwright.ledger.operation import Actor, State, Step
from callwright.ledger.page import Page
from callwright.ledger.provider import Dispatch, OnAmbiguous, Outcome, Traits
from callwright.ledger.rows import Attempt, Operation, provider_key, read_terms
from callwright.ledger.saying import fact_of
from callwright.ledger.store import Rehearsal


class Act(Enum):
    """What the dispatcher does next for one operation."""

    SEND = "send"
    LOOK_UP = "look_up"
    CANCEL = "cancel"
    WAIT = "wait"
    REST = "rest"
    """Nothing, until something else happens to it."""


@dataclass(frozen=True, slots=True)
class Next:
    """What is to be done, with what, or when to come back."""

    act: Act
    dispatch: Dispatch | None = None
    provider: str = ""
    at_ms: Ms = 0
    """When to come back; of a send the instant from which on it must not leave any more."""
    state_version: int = 0
    """That of the operation when it was decided."""


REST = Next(Act.REST)


def advance(page: Page, op_id: str) -> Next:
    """Do what is due for an operation in the record itself, and say what is to be done outside."""
    operation = page.operation(op_id)
    attempts = page.attempts(op_id)
    return _RULES[operation.state](page, operation, attempts)


def start(page: Page, answer: Answer) -> tuple[Answer, Next]:
    """Store the attempt of what was asked for in the transaction that asked, if it may be sent at once.

    Returns the answer as it holds then, and what is to be done outside.
    """
    operation = page.operation(answer.op_id) if answer.fact else None
    if operation is None or operation.state is not State.REQUESTED or operation.provider not in page.traits:
        return answer, REST
    upcoming = advance(page, answer.op_id)
    return replace(answer, fact=fact_of(page.operation(answer.op_id))), upcoming


def recover(page: Page) -> list[str]:
    """Take over what a process left behind: what was under way is in doubt, and its callers are gone.

    Returns all that is to be tended. A confirmed operation is tended as long as it is watched; the others that are
    settled are not.
    """
    owing.leave_all(page)
    for operation in page.tx.find(Operation, state=State.RUNNING):
        page.step(operation, Step.DOUBT, Actor.RECOVERY, "found running")
    return [each.op_id for each in page.tx.find(Operation, state=_TENDED)]


def join(page: Page) -> list[str]:
    """Begin beside neighbours that live: they have their calls, and what they have under way is in no doubt.

    Returns what nobody sees to, and what is confirmed: whoever watched that may be about to go.
    """
    watched = page.tx.find(Operation, state=State.CONFIRMED)
    return [*left(page, ()), *(operation.op_id for operation in watched)]


def left(page: Page, tended: Container[str]) -> list[str]:
    """What a neighbour has left: it was due long ago, and nobody has seen to it; but not what is ``tended`` here.

    To take it over is to advance it from the record like anybody: of two who do so, one stores the next send.
    """
    owing.leave_late(page)
    return [
        each.op_id
        for each in page.tx.find(Operation, state=_OPEN)
        if each.op_id not in tended and _is_overdue(page, each.op_id)
    ]


def _is_overdue(page: Page, op_id: str) -> bool:
    """Whether something was due ``left_ms`` ago: it is advanced at that instant, and nothing of that is written."""
    rehearsal = Rehearsal(page.tx)
    upcoming = advance(Page(rehearsal, page.now_ms - page.patience.left_ms, page.traits, page.patience), op_id)
    return rehearsal.is_written or upcoming.act not in (Act.WAIT, Act.REST)


def look_up(page: Page, op_id: str) -> Next:
    """A look-up now, whatever is due, for an operation that was ever sent."""
    operation = page.operation(op_id)
    attempts = page.attempts(op_id)
    return _act(Act.LOOK_UP, operation, attempts[-1]) if attempts else REST


def look_ups(page: Page) -> list[tuple[Operation, Next]]:
    """A look-up of every attempt that was ever made, beside its operation."""
    return [
        (operation, _act(Act.LOOK_UP, operation, attempt))
        for operation in page.tx.find(Operation)
        for attempt in page.attempts(operation.op_id)
    ]


_OPEN = (State.PROPOSED, State.REQUESTED, State.RUNNING, State.UNKNOWN, State.ACCEPTED)
_TENDED = (*_OPEN, State.CONFIRMED)


def _proposed(page: Page, operation: Operation, attempts: list[Attempt]) -> Next:
    expires_at_ms = operation.changed_at_ms + page.patience.consent_ms
    if page.now_ms < expires_at_ms:
        return Next(Act.WAIT, at_ms=expires_at_ms)
    page.step(operation, Step.WITHDRAW, Actor.CLOCK, "nobody authorised it")
    return REST


def _requested(page: Page, operation: Operation, attempts: list[Attempt]) -> Next:
    leave = page.leave(operation)
    used = attempts[leave.consumed_n - 1 :] if leave and leave.consumed_n else []
    if leave is None or any(each.outcome is not Outcome.NOT_SENT for each in used):
        page.step(operation, Step.WITHDRAW, Actor.CLOCK, "authorisation expired")
        return REST
    if not page.fits_cap(operation):
        page.escalate(page.step(operation, Step.WITHDRAW, Actor.POLICY, "over its cap"), Actor.POLICY, "over_cap")
        return REST
    due_at_ms = operation.changed_at_ms + (page.patience.retry_ms << (len(used) - 1) if used else 0)
    if page.now_ms < due_at_ms:
        return Next(Act.WAIT, at_ms=due_at_ms)
    page.traits_of(operation)
    n = len(attempts) + 1
    key = provider_key(operation.op_id, operation.rev, n)
    attempt = Attempt(
        operation.op_id, n, operation.rev, key, operation.params_hash, operation.terms_json, 1,
        page.now_ms, page.now_ms, page.now_ms, None, None,
    )  # fmt: skip
    page.tx.insert(attempt)
    page.tx.update(replace(leave, consumed_n=leave.consumed_n or n))
    page.step(operation, Step.DISPATCH, Actor.DISPATCHER, f"attempt {n}")
    return _send(page, operation, attempt)


def _running(page: Page, operation: Operation, attempts: list[Attempt]) -> Next:
    """Its sender answers for it; a sender that has been silent for twice a request's life is gone."""
    silent_at_ms = attempts[-1].sent_at_ms + 2 * page.traits_of(operation).request_max_ms + page.patience.ask_ms
    if page.now_ms < silent_at_ms:
        return Next(Act.WAIT, at_ms=silent_at_ms)
    return _unknown(page, page.step(operation, Step.DOUBT, Actor.CLOCK, "its sender is silent"), attempts)


def _unknown(page: Page, operation: Operation, attempts: list[Attempt]) -> Next:
    attempt, traits = attempts[-1], page.traits_of(operation)
    is_absent = attempt.outcome is Outcome.ABSENT and attempt.asked_at_ms >= attempt.sent_at_ms + traits.absence_wait_ms
    may_repeat = _may_repeat(page, attempt, traits)
    if may_repeat and (is_absent or traits.on_ambiguous is OnAmbiguous.SAME_KEY):
        return _repeat(page, operation, attempt)
    since = max(attempt.sent_at_ms, operation.changed_at_ms)
    was_asked = attempt.asked_at_ms > since
    if was_asked and ((is_absent and not may_repeat) or page.now_ms >= attempt.opened_at_ms + page.patience.doubt_ms):
        operation = page.escalate(operation, Actor.CLOCK, "unknown")
    due_at_ms = _ask_at(page, since, attempt.asked_at_ms) if was_asked else page.now_ms
    return _ask(page, Act.LOOK_UP, operation, attempt, due_at_ms)


def _may_repeat(page: Page, attempt: Attempt, traits: Traits) -> bool:
    is_open = page.now_ms < _window_ends_ms(attempt, traits)
    is_allowed = traits.idempotency.protects and traits.on_ambiguous is not OnAmbiguous.QUARANTINE
    return is_allowed and is_open and attempt.sends < page.patience.sends_max


def _window_ends_ms(attempt: Attempt, traits: Traits) -> Ms:
    return attempt.opened_at_ms + traits.window_ms - traits.margin_ms


def _repeat(page: Page, operation: Operation, attempt: Attempt) -> Next:
    """Send the same key again (T10), no sooner than the last answer is old enough."""
    due_at_ms = max(attempt.sent_at_ms, operation.changed_at_ms) + (page.patience.retry_ms << (attempt.sends - 1))
    if page.now_ms < due_at_ms:
        return Next(Act.WAIT, at_ms=due_at_ms)
    again = replace(attempt, sends=attempt.sends + 1, sent_at_ms=page.now_ms, outcome=None)
    page.tx.update(again)
    page.step(operation, Step.DISPATCH, Actor.DISPATCHER, f"attempt {attempt.n}, send {again.sends}")
    return _send(page, operation, again)


def _accepted(page: Page, operation: Operation, attempts: list[Attempt]) -> Next:
    attempt = attempts[-1]
    if page.now_ms >= attempt.opened_at_ms + page.patience.pending_ms:
        operation = page.escalate(operation, Actor.CLOCK, "pending_too_long")
    since = operation.changed_at_ms
    if operation.amend_json is not None and Outcome.ACCEPTED in page.traits_of(operation).cancels:
        due_at_ms = _ask_at(page, since, attempt.asked_at_ms) if attempt.asked_at_ms > since else page.now_ms
        return _ask(page, Act.CANCEL, operation, attempt, due_at_ms)
    return _ask(page, Act.LOOK_UP, operation, attempt, _ask_at(page, since, max(attempt.asked_at_ms, since)))


def _confirmed(page: Page, operation: Operation, attempts: list[Attempt]) -> Next:
    attempt, since = attempts[-1], operation.changed_at_ms
    asked_at_ms = max(attempt.asked_at_ms, since)
    due_at_ms = max(_ask_at(page, since, asked_at_ms), since + page.patience.watch_first_ms)
    if due_at_ms > attempt.opened_at_ms + page.patience.watch_ms:
        return REST
    return _ask(page, Act.LOOK_UP, operation, attempt, due_at_ms)


def _rests(page: Page, operation: Operation, attempts: list[Attempt]) -> Next:
    return REST


_RULES = {
    State.PROPOSED: _proposed,
    State.REQUESTED: _requested,
    State.RUNNING: _running,
    State.ACCEPTED: _accepted,
    State.CONFIRMED: _confirmed,
    State.FAILED: _rests,
    State.UNKNOWN: _unknown,
    State.CANCELLED: _rests,
    State.REVERSED: _rests,
}


def _ask_at(page: Page, since_ms: Ms, asked_at_ms: Ms) -> Ms:
    """When to ask next: the older the question, the rarer."""
    passed_ms = asked_at_ms - since_ms
    share = 4 if passed_ms < page.patience.on_line_ms else 1
    wait_ms = min(max(passed_ms // share, page.patience.ask_ms), page.patience.ask_max_ms)
    return asked_at_ms + wait_ms


def _ask(page: Page, act: Act, operation: Operation, attempt: Attempt, due_at_ms: Ms) -> Next:
    return _act(act, operation, attempt) if page.now_ms >= due_at_ms else Next(Act.WAIT, at_ms=due_at_ms)


def _send(page: Page, operation: Operation, attempt: Attempt) -> Next:
    """A send, with the instant from which on it must not leave.

    Whoever is held up between its commit and its first byte (a process that was stopped, a machine that slept) would
    otherwise send what others have looked up, settled and perhaps done anew since.
    """
    traits = page.traits_of(operation)
    leaves_ms = attempt.sent_at_ms + traits.request_max_ms
    if attempt.sends > 1:
        leaves_ms = min(leaves_ms, _window_ends_ms(attempt, traits))
    return replace(_act(Act.SEND, operation, attempt), at_ms=leaves_ms)


def _act(act: Act, operation: Operation, attempt: Attempt) -> Next:
    dispatch = Dispatch(
        operation.op_id,
        attempt.rev,
        attempt.n,
        attempt.provider_key,
        operation.kind,
        operation.slot,
        read_terms(attempt.terms_json),
        attempt.params_hash,
        attempt.reference,
    )
    return Next(act, dispatch, operation.provider, state_version=operation.state_version)


def attempt_of_key(page: Page, key: str) -> Attempt:
    """The attempt that owns a provider's key. Raises LedgerError if there is none: the effect is somebody else's."""
    found = page.tx.find(Attempt, provider_key=key)
    if not found:
        raise LedgerError("no attempt of this ledger has this key")
    return found[0]

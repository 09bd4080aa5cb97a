"""What evidence means: observations of an attempt go in, and its operation follows.

Evidence is stored first and folded second, and never by the order of its arrival. What all observations of an attempt
amount to is their join, which only ever rises:

```
nothing  <  ACCEPTED  <  FAILED, CANCELLED  <  CONFIRMED  <  REVERSED
```

So the same observations in any order, any number of times, end in the same state. A version that the provider gives
decides one thing only: whether "not applied" came after "applied" (then it was undone) or before (then it was done).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from callwright.declare.actions import Authority
from callwright.ledger.operation import OPERATION, UNDER_WAY, Actor, State, Step
from callwright.ledger.page import Page
from callwright.ledger.provider import Idempotency, Observed, Outcome
from callwright.ledger.rows import (
    NOTHING_INSTEAD,
    UNRESOLVED,
    Attempt,
    Evidence,
    Operation,
    evidence_id,
    params_hash,
    read_terms,
)

_SHOWN = (Step.ACCEPT, Step.APPLY, Step.REJECT, Step.CANCEL, Step.REVERSE)
_DONE = (State.CONFIRMED, State.REVERSED)
_REFUSED = (Outcome.NOT_APPLIED, Outcome.CANCELLED)


def fold(
    page: Page, op_id: str, n: int, observed: Observed, source: Actor, *, state_version: int | None = None
) -> Operation:
    """Store an observation of attempt ``n``, and let the operation follow what all of them amount to.

    ``state_version`` is that of the operation when the provider was asked, None where nobody asked. An answer to a
    question that is older than the operation's last change puts off no other question: a look-up that was under way
    when a change was asked for must not make the cancel wait.
    """
    operation = page.operation(op_id)
    attempts = page.attempts(op_id)
    attempt = next(each for each in attempts if each.n == n)
    seen = _weighed(page, operation, attempt, observed, source)
    before = page.tx.find(Evidence, op_id=op_id, n=n)
    row = Evidence(
        evidence_id(op_id, n, source, seen.outcome.value, seen.reference, seen.version, seen.reason),
        op_id, n, source, seen.outcome, seen.reference, seen.version, seen.reason, page.now_ms,
    )  # fmt: skip
    if page.tx.get(Evidence, row.evidence_id) is None:
        page.tx.insert(row)
    was, amounts_to = join(before), join([*before, row])
    is_asked = source is not Actor.ADAPTER and state_version in (None, operation.state_version)
    _keep(page, attempt, seen, is_asked=is_asked)
    if attempt is attempts[-1]:
        operation = _follow(page, operation, attempt, seen.outcome, source, None if was is amounts_to else amounts_to)
        operation = _settled(page, operation, source)
    elif amounts_to in _DONE and was not in _DONE:
        operation = page.escalate(operation, source, "earlier_attempt_applied")
    return page.escalate(operation, source, seen.reason or "mismatch") if seen.escalates else operation


def join(evidence: Iterable[Evidence]) -> State | None:
    """What observations of one attempt amount to; None if they say nothing about an effect."""
    rows = list(evidence)
    applied = [row for row in rows if row.outcome is Outcome.APPLIED]
    refused = [row for row in rows if row.outcome in _REFUSED]
    if any(row.outcome is Outcome.REVERSED for row in rows):
        return State.REVERSED
    if any(_follows(no, yes) for no in refused for yes in applied):
        return State.REVERSED
    if applied:
        return State.CONFIRMED
    if refused:
        return State.FAILED if any(row.outcome is Outcome.NOT_APPLIED for row in refused) else State.CANCELLED
    return State.ACCEPTED if any(row.outcome is Outcome.ACCEPTED for row in rows) else None


def is_other(attempt: Attempt, observed: Observed) -> bool:
    """Whether an observation shows another amount, card or reference than the attempt has."""
    terms = read_terms(attempt.terms_json)
    asked = (terms.amount, terms.card.token if terms.card else None, attempt.reference)
    shown = (observed.amount, observed.card_token, observed.reference)
    return any(None not in pair and pair[0] != pair[1] for pair in zip(asked, shown, strict=True))


def _follows(later: Evidence, earlier: Evidence) -> bool:
    return later.version is not None and earlier.version is not None and later.version > earlier.version


def _weighed(page: Page, operation: Operation, attempt: Attempt, observed: Observed, source: Actor) -> Observed:
    """What an observation is worth.

    It is a doubt if it is not what was asked for, and if it speaks of one send of several; that nothing left, only the
    send itself can say. Where a provider takes up again what came to nothing, that is final only when no other send of
    the same key can land any more.
    """
    if is_other(attempt, observed):
        return Observed(Outcome.UNKNOWN, reason="mismatch", escalates=True)
    is_answer = source is Actor.ADAPTER and attempt.sends == 1
    if observed.outcome is Outcome.NOT_SENT and not (is_answer and operation.state is State.RUNNING):
        return Observed(Outcome.UNKNOWN, reason="not_sent_now")
    if observed.outcome is Outcome.NOT_APPLIED and source is Actor.ADAPTER and not is_answer:
        return Observed(Outcome.UNKNOWN, reason="repeat_refused")
    traits = page.traits_of(operation)
    lands_ms = attempt.sent_at_ms + 2 * traits.request_max_ms  # it may leave as late as it may be under way for
    may_land = attempt.sends > 1 and page.now_ms < lands_ms
    if may_land and observed.outcome in _REFUSED and traits.idempotency is Idempotency.RESUME:
        return Observed(Outcome.UNKNOWN, observed.reference, reason=f"may_resume_{observed.outcome.value}")
    return observed


def _keep(page: Page, attempt: Attempt, seen: Observed, *, is_asked: bool) -> None:
    """Note on the attempt what was seen, and when it was asked about; a doubt does not replace what is known."""
    says_more = seen.outcome not in UNRESOLVED or attempt.is_unresolved
    page.tx.update(
        replace(
            attempt,
            outcome=seen.outcome if says_more else attempt.outcome,
            reference=attempt.reference or seen.reference,
            asked_at_ms=page.now_ms if is_asked else attempt.asked_at_ms,
        )
    )


def _follow(
    page: Page, operation: Operation, attempt: Attempt, outcome: Outcome, source: Actor, risen_to: State | None
) -> Operation:
    if risen_to is not None:
        return _walk(page, operation, attempt, risen_to, source)
    if operation.state is not State.RUNNING:
        return operation
    if outcome is Outcome.NOT_SENT:
        tried = [each for each in page.attempts(operation.op_id) if each.outcome is Outcome.NOT_SENT]
        again = len(tried) % page.patience.tries_max  # a failed one that is authorised anew has as many tries again
        return page.step(operation, Step.NOT_SENT if again else Step.REJECT, source, outcome.value)
    return page.step(operation, Step.DOUBT, source, outcome.value)


def _walk(page: Page, operation: Operation, attempt: Attempt, target: State, source: Actor) -> Operation:
    """Take the steps to what the evidence amounts to; against what was said before, a person looks at it."""
    if operation.state in (State.PROPOSED, State.REQUESTED):
        if target not in _DONE:
            return operation
        operation = page.step(operation, Step.WITHDRAW, Actor.POLICY, "done before")
    path = _path(operation.state, target)
    contradicts = operation.state in (State.FAILED, State.CANCELLED) and bool(path)
    for step in path:
        operation = page.step(operation, step, source, "evidence")
    if contradicts:
        operation = page.escalate(_restored(page, operation, attempt), source, "contradiction")
    return operation


def _restored(page: Page, operation: Operation, attempt: Attempt) -> Operation:
    """The terms of what was done after all, where others had been wished for since."""
    if operation.params_hash == attempt.params_hash:
        return operation
    return page.note(
        operation,
        Actor.POLICY,
        "terms of what was done",
        rev=operation.rev + 1,
        terms_json=attempt.terms_json,
        params_hash=attempt.params_hash,
    )


@lru_cache
def _path(state: State, target: State) -> tuple[Step, ...]:
    """The fewest steps of evidence from one state to another; none if there is no way."""
    waiting: list[tuple[State, tuple[Step, ...]]] = [(state, ())]
    for here, steps in waiting:
        if here is target:
            return steps
        if len(steps) < len(_SHOWN):
            waiting += [
                (OPERATION.after(here, step), (*steps, step)) for step in _SHOWN if OPERATION.allows(here, step)
            ]
    return ()


def _settled(page: Page, operation: Operation, source: Actor) -> Operation:
    """Decide a change that waited for the outcome."""
    if operation.amend_json is None or operation.state in UNDER_WAY:
        return operation
    wanted = operation.amend_json
    if wanted == NOTHING_INSTEAD:
        return page.note(operation, source, "withdrawal decided", amend_json=None)
    if operation.state in _DONE:
        operation = page.note(operation, source, "change came too late", amend_json=None)
        return page.escalate(operation, source, "change_too_late")
    return revise(page, operation, wanted, Actor.POLICY)


def revise(page: Page, operation: Operation, terms_json: str, actor: Actor) -> Operation:
    """Give an operation that is not under way other terms, as a new revision, authorised if its authority allows it."""
    changes = {
        "rev": operation.rev + 1,
        "terms_json": terms_json,
        "params_hash": params_hash(operation.kind, operation.slot, terms_json),
        "amend_json": None,
    }
    if operation.state is State.REQUESTED:
        operation = page.step(operation, Step.WITHDRAW, Actor.POLICY, "changed")
    if operation.state is State.CANCELLED:
        operation = page.step(operation, Step.RENEW, actor, "changed", **changes)
    else:
        operation = page.note(operation, actor, "changed", **changes)
    return authorise(page, operation)


def authorise(page: Page, operation: Operation) -> Operation:
    """Let the app's own rules authorise it, if they may and its cap holds."""
    if operation.authority is not Authority.AUTOMATIC or not page.fits_cap(operation):
        return operation
    return page.grant(operation, Step.RETRY if operation.state is State.FAILED else Step.AUTHORIZE, Actor.POLICY)

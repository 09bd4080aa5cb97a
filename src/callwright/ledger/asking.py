"""Asking for an action: the same wish, however often and by whomever, is one operation.

Every answer is made from the record and carries the sentence that may be said. None is an exception: the model always
gets an answer.

| the operation is | asked for again, the same terms | with other terms |
|---|---|---|
| not there | CREATED, or NEEDS_CONSENT | |
| PROPOSED, REQUESTED | JOINED | AMENDED: a new revision, authorised anew |
| RUNNING, UNKNOWN, ACCEPTED | JOINED | AMENDING if the provider cancels, else AMEND_BLOCKED |
| CONFIRMED | REPLAYED | CONFLICT |
| FAILED, CANCELLED | CREATED: a new attempt, authorised anew | AMENDED |
| REVERSED | REFUSED: a person has to | CONFLICT |

It is WITHDRAWN at once while PROPOSED or REQUESTED, and WITHDRAWING while under way at a provider that cancels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from callwright.declare.actions import Authority, Terms
from callwright.ledger import owing
from callwright.ledger.folding import authorise, revise
from callwright.ledger.operation import UNDER_WAY, Actor, State, Step
from callwright.ledger.page import Page
from callwright.ledger.provider import Outcome
from callwright.ledger.rows import NOTHING_INSTEAD, Operation, operation_id, params_hash, write_terms
from callwright.ledger.saying import FactChanged, fact_of


class Verdict(Enum):
    """What became of a wish."""

    CREATED = "created"
    JOINED = "joined"
    """It is under way already; nothing was added."""
    REPLAYED = "replayed"
    """It was done before."""
    AMENDED = "amended"
    """It was changed before anything was sent of it, or after it had come to nothing."""
    AMENDING = "amending"
    """The change is noted; it takes hold if the first one can still be stopped."""
    AMEND_BLOCKED = "amend_blocked"
    """The first one is on its way and cannot be stopped."""
    CONFLICT = "conflict"
    """It was done with other terms, or the terms changed since they were read out."""
    NEEDS_CONSENT = "needs_consent"
    WITHDRAWN = "withdrawn"
    WITHDRAWING = "withdrawing"
    """It was sent; the provider is asked to stop it as soon as it has it."""
    TOO_LATE = "too_late"
    """It cannot be withdrawn: something was sent that nobody can stop."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Ask:
    """A wish that something be done."""

    kind: str
    slot: str
    party: str
    """Who the caller is, as the app established it."""
    provider: str
    terms: Terms
    authority: Authority = Authority.AUTOMATIC
    must_hear: tuple[str, ...] = ()
    by: Actor = Actor.MODEL
    """Who asks: the model, or a person (CALLER, HUMAN)."""
    is_waited_for: bool = False
    """Whether a caller waits on the line for what becomes of it, and is owed that if the call ends without."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a wish, and what may be said now."""

    verdict: Verdict
    op_id: str
    reason: str = ""
    """A short code that says why, where the verdict does not."""
    rev: int = 0
    params_hash: str = ""
    """With ``rev`` what a consent has to name."""
    fact: FactChanged | None = None
    """None where the caller is not entitled to know anything."""


def propose(page: Page, ask: Ask) -> Answer:
    """Ask for an action. The same wish again changes nothing; see the table above."""
    answer = _propose(page, ask)
    if ask.is_waited_for and answer.fact is not None:
        owing.waits(page, answer.fact)
    return answer


def _propose(page: Page, ask: Ask) -> Answer:
    op_id = operation_id(ask.kind, ask.terms.subject, ask.slot)
    wanted = write_terms(ask.terms)
    operation = page.tx.get(Operation, op_id)
    if operation is None:
        return _create(page, ask, op_id, wanted)
    if operation.party != ask.party:
        return Answer(Verdict.REFUSED, op_id, "not_theirs")
    if operation.params_hash == params_hash(ask.kind, ask.slot, wanted):
        return _SAME[operation.state](page, operation, ask)
    before = operation.terms
    if before.card != ask.terms.card and not page.traits_of(operation).destination_change:
        return _answer(operation, Verdict.REFUSED, "destination_fixed")
    if not page.fits_cap(replace(operation, terms_json=wanted)):
        return _answer(operation, Verdict.REFUSED, "over_cap")
    return _OTHER[operation.state](page, operation, wanted, ask)


def authorize(page: Page, op_id: str, rev: int, consented_hash: str, by: Actor) -> Answer:
    """Authorise exactly the terms that were read out: ``rev`` and ``consented_hash`` are those of the answer."""
    operation = page.operation(op_id)
    if (operation.rev, operation.params_hash) != (rev, consented_hash):
        return _answer(operation, Verdict.CONFLICT, "changed_meanwhile")
    if operation.state not in (State.PROPOSED, State.FAILED):
        return _answer(operation, Verdict.JOINED)
    if operation.authority is Authority.HUMAN and by is not Actor.HUMAN:
        return _answer(operation, Verdict.REFUSED, "needs_person")
    if not page.fits_cap(operation):
        return _answer(operation, Verdict.REFUSED, "over_cap")
    if operation.state is State.PROPOSED:
        return _answer(page.grant(operation, Step.AUTHORIZE, by), Verdict.CREATED)
    renewer = Actor.HUMAN if by is Actor.HUMAN else Actor.POLICY
    return _answer(page.grant(operation, Step.RETRY, renewer), Verdict.CREATED)


def withdraw(page: Page, op_id: str, party: str, by: Actor) -> Answer:
    """Withdraw an action: for certain while nothing was sent; later as a wish, where the provider can stop it.

    A wish takes the place of any change that was asked for. What can no longer be stopped stays as it is.
    """
    operation = page.operation(op_id)
    if operation.party != party:
        return Answer(Verdict.REFUSED, op_id, "not_theirs")
    if operation.state in (State.PROPOSED, State.REQUESTED):
        return _answer(page.step(operation, Step.WITHDRAW, by, "withdrawn"), Verdict.WITHDRAWN)
    if operation.state in UNDER_WAY and Outcome.ACCEPTED in page.traits_of(operation).cancels:
        if operation.amend_json != NOTHING_INSTEAD:
            operation = page.note(operation, by, "withdrawal asked for", amend_json=NOTHING_INSTEAD)
        return _answer(operation, Verdict.WITHDRAWING)
    return _answer(operation, Verdict.WITHDRAWN if operation.state is State.CANCELLED else Verdict.TOO_LATE)


def _create(page: Page, ask: Ask, op_id: str, wanted: str) -> Answer:
    operation = Operation(
        op_id=op_id,
        kind=ask.kind,
        subject=ask.terms.subject,
        slot=ask.slot,
        party=ask.party,
        provider=ask.provider,
        authority=ask.authority,
        must_hear=",".join(ask.must_hear),
        rev=1,
        terms_json=wanted,
        params_hash=params_hash(ask.kind, ask.slot, wanted),
        state=State.PROPOSED,
        state_version=1,
        milestone=State.PROPOSED.value,
        fact_version=1,
        amend_json=None,
        escalated="",
        changed_at_ms=page.now_ms,
    )
    page.traits_of(operation)
    if not page.fits_cap(operation):
        return Answer(Verdict.REFUSED, op_id, "over_cap")
    return _begun(authorise(page, page.open(operation, ask.by, "asked")), Verdict.CREATED)


def _begun(operation: Operation, verdict: Verdict) -> Answer:
    """Under way, unless somebody has to say yes first."""
    return _answer(operation, verdict if operation.state is State.REQUESTED else Verdict.NEEDS_CONSENT)


def _answer(operation: Operation, verdict: Verdict, reason: str = "") -> Answer:
    fact = fact_of(operation)
    return Answer(verdict, operation.op_id, reason, operation.rev, operation.params_hash, fact)


def _join(page: Page, operation: Operation, ask: Ask) -> Answer:
    if operation.amend_json is not None:
        operation = page.note(operation, Actor.CALLER, "change withdrawn", amend_json=None)
    return _answer(operation, Verdict.JOINED)


def _replay(page: Page, operation: Operation, ask: Ask) -> Answer:
    return _answer(operation, Verdict.REPLAYED)


def _ask_again(page: Page, operation: Operation, ask: Ask) -> Answer:
    return _begun(authorise(page, operation), Verdict.JOINED)


def _again(page: Page, operation: Operation, ask: Ask) -> Answer:
    """What came to nothing is asked for again; a failed one keeps its revision, its next attempt has its own key."""
    if not page.fits_cap(operation):
        return _answer(operation, Verdict.REFUSED, "over_cap")
    if operation.state is State.CANCELLED:
        operation = page.step(operation, Step.RENEW, ask.by, "asked again", rev=operation.rev + 1)
    return _begun(authorise(page, operation), Verdict.CREATED)


def _reversed(page: Page, operation: Operation, ask: Ask) -> Answer:
    return _answer(operation, Verdict.REFUSED, "reversed")


_SAME = {
    State.PROPOSED: _ask_again,
    State.REQUESTED: _join,
    State.RUNNING: _join,
    State.ACCEPTED: _join,
    State.CONFIRMED: _replay,
    State.FAILED: _again,
    State.UNKNOWN: _join,
    State.CANCELLED: _again,
    State.REVERSED: _reversed,
}


def _revised(page: Page, operation: Operation, wanted: str, ask: Ask) -> Answer:
    return _begun(revise(page, operation, wanted, ask.by), Verdict.AMENDED)


def _under_way(page: Page, operation: Operation, wanted: str, ask: Ask) -> Answer:
    if Outcome.ACCEPTED not in page.traits_of(operation).cancels:
        return _answer(operation, Verdict.AMEND_BLOCKED, "under_way")
    if operation.amend_json != wanted:
        operation = page.note(operation, ask.by, "change asked for", amend_json=wanted)
    return _answer(operation, Verdict.AMENDING)


def _done(page: Page, operation: Operation, wanted: str, ask: Ask) -> Answer:
    return _answer(owing.conflict(page, operation, wanted, ask.by), Verdict.CONFLICT, "settled")


_OTHER = {
    State.PROPOSED: _revised,
    State.REQUESTED: _revised,
    State.RUNNING: _under_way,
    State.ACCEPTED: _under_way,
    State.CONFIRMED: _done,
    State.FAILED: _revised,
    State.UNKNOWN: _under_way,
    State.CANCELLED: _revised,
    State.REVERSED: _done,
}

"""An outcome that a caller did not hear is owed until he hears it, or a person has seen to it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.ledger.pages import Desk, ask
from tests.ledger.rows import MASTERCARD, OP_ID

from callwright.declare.actions import Money
from callwright.ledger import audit, owing
from callwright.ledger.asking import Verdict, propose
from callwright.ledger.operation import Actor
from callwright.ledger.page import Page
from callwright.ledger.provider import Outcome
from callwright.ledger.rows import Outbox
from callwright.ledger.saying import fact_of
from callwright.ledger.sending import recover


def accepted() -> Desk:
    desk = Desk()
    desk.do(propose, ask())
    desk.sent(OP_ID)
    desk.see(OP_ID, Outcome.ACCEPTED)
    return desk


def confirmed() -> Desk:
    desk = accepted()
    desk.see(OP_ID, Outcome.APPLIED)
    return desk


def note(desk: Desk, state: str, *, back: int = 0) -> None:
    """The telling of the present fact, or of one ``back`` versions before, has come so far."""

    def write(page: Page) -> None:
        operation = page.operation(OP_ID)
        owing.note(page, OP_ID, operation.milestone, operation.fact_version - back, state)

    desk.do(write)


def owed(desk: Desk) -> list[str]:
    """The sentences that somebody has to pass on."""

    def read(page: Page) -> list[str]:
        return [row.reason for row in page.tx.find(Outbox, kind=owing.UNTOLD, done_at_ms=None)]

    return list(desk.do(read))


def open_rows(desk: Desk) -> list[tuple[str, str]]:
    """Everything on the outbox, each with its kind and reason."""
    return list(desk.do(lambda page: [(row.kind, row.reason) for row in page.tx.find(Outbox, done_at_ms=None)]))


DONE = "The refund of 32 dollars to the Visa ending in 4 2 4 2 is done."


def test_an_outcome_that_a_call_ended_without_is_owed_once_with_its_sentence() -> None:
    desk = confirmed()
    note(desk, "deferred")
    note(desk, "deferred")
    assert owed(desk) == [DONE]


@pytest.mark.parametrize("state", ["asked", "missed", "void", "correction"])
def test_nothing_is_owed_while_a_call_still_tells_it(state: str) -> None:
    desk = confirmed()
    note(desk, state)
    assert owed(desk) == []


def test_what_has_no_outcome_yet_is_owed_when_it_has_one() -> None:
    desk = accepted()
    note(desk, "deferred")
    assert owed(desk) == []
    desk.see(OP_ID, Outcome.APPLIED)
    assert owed(desk) == [DONE]


def test_an_outcome_that_came_as_the_call_ended_is_owed() -> None:
    """The call deferred the fact that it knew; there was another one by then."""
    desk = confirmed()
    note(desk, "deferred", back=1)
    assert owed(desk) == [DONE]


def test_a_caller_who_hears_it_in_his_next_call_takes_it_off() -> None:
    desk = confirmed()
    note(desk, "deferred")
    note(desk, "heard")
    assert owed(desk) == []


def test_what_came_back_after_it_was_heard_is_owed_instead_of_what_was_heard() -> None:
    desk = confirmed()
    note(desk, "heard")
    desk.see(OP_ID, Outcome.REVERSED, Actor.WEBHOOK)
    assert owed(desk) == ["The refund of 32 dollars to the Visa ending in 4 2 4 2 was sent, but it came back."]


def test_of_one_operation_only_the_latest_outcome_is_owed() -> None:
    desk = confirmed()
    note(desk, "deferred")
    desk.see(OP_ID, Outcome.REVERSED, Actor.WEBHOOK)
    assert len(owed(desk)) == 1
    assert "came back" in owed(desk)[0]


def test_a_person_looks_at_what_a_caller_was_left_without() -> None:
    """He hung up on a doubt, and it was never resolved: one row, for the person, who tells him as well."""
    desk = accepted()
    desk.do(lambda page: page.tx.update(replace(page.attempts(OP_ID)[-1], outcome=Outcome.UNKNOWN)))
    note(desk, "deferred")
    desk.do(lambda page: page.escalate(page.operation(OP_ID), Actor.CLOCK, "pending_too_long"))
    assert open_rows(desk) == [("person", "pending_too_long")]
    desk.see(OP_ID, Outcome.APPLIED)
    assert open_rows(desk) == [("person", "pending_too_long"), ("untold", f"{DONE} Somebody will look at it.")]


@pytest.mark.parametrize("is_told_first", [False, True])
def test_of_a_doubt_that_was_left_the_persons_row_takes_the_place(is_told_first: bool) -> None:
    desk = Desk()
    desk.do(propose, ask())
    desk.sent(OP_ID)
    desk.see(OP_ID, Outcome.UNKNOWN)
    if is_told_first:
        note(desk, "heard")
    note(desk, "deferred")
    assert [kind for kind, _ in open_rows(desk)] == ["untold"]
    desk.do(lambda page: page.escalate(page.operation(OP_ID), Actor.CLOCK, "unknown"))
    assert open_rows(desk) == [("person", "unknown")]


# A caller on the line of a process that died


def left(**known: Outcome) -> Desk:
    """A caller waits on the line, and his process is gone."""
    desk = Desk()
    desk.do(propose, ask(is_waited_for=True))
    desk.sent(OP_ID)
    for outcome in known.values():
        desk.see(OP_ID, outcome)
    return desk


def test_what_a_dead_process_had_to_tell_is_owed_as_the_next_one_starts() -> None:
    desk = left(outcome=Outcome.APPLIED)
    assert owed(desk) == []
    desk.do(recover)
    desk.do(recover)
    assert owed(desk) == [DONE]


def test_what_it_did_not_know_is_owed_once_it_is_known() -> None:
    desk = left(outcome=Outcome.ACCEPTED)
    desk.do(recover)
    assert owed(desk) == []
    desk.see(OP_ID, Outcome.APPLIED)
    assert owed(desk) == [DONE]


def test_what_was_heard_is_not_owed_again() -> None:
    desk = left(outcome=Outcome.APPLIED)
    note(desk, "heard")
    desk.do(recover)
    assert owed(desk) == []
    desk.do(propose, ask(is_waited_for=True))
    desk.do(recover)
    assert owed(desk) == []


def test_a_doubt_that_was_heard_leaves_the_outcome_owed() -> None:
    desk = left(outcome=Outcome.UNKNOWN)
    note(desk, "heard")
    desk.see(OP_ID, Outcome.APPLIED, Actor.RECONCILER)
    desk.do(recover)
    assert owed(desk) == [DONE]


def test_what_no_call_tells_for_a_minute_is_owed_though_nobody_starts() -> None:
    desk = left(outcome=Outcome.APPLIED)
    desk.now_ms = 59_999
    desk.do(owing.leave_late)
    assert owed(desk) == []
    desk.now_ms = 60_000
    desk.do(owing.leave_late)
    assert owed(desk) == [DONE]


def test_a_call_that_still_tells_it_is_waited_for() -> None:
    desk = left(outcome=Outcome.APPLIED)
    desk.now_ms = 50_000
    note(desk, "asked")
    desk.now_ms = 100_000
    desk.do(owing.leave_late)
    assert owed(desk) == []


def test_what_a_call_of_a_neighbours_tells_after_all_is_taken_off() -> None:
    desk = left(outcome=Outcome.APPLIED)
    desk.do(recover)
    note(desk, "heard")
    assert owed(desk) == []


# Wishes that come too late


def test_what_was_wanted_after_other_terms_were_settled_is_a_persons() -> None:
    desk = confirmed()
    for _ in range(3):
        assert desk.do(propose, ask(card=MASTERCARD)).verdict is Verdict.CONFLICT
    assert open_rows(desk) == [("conflict", "refund of 32 dollars to the Mastercard ending in 8 8 1 2")]
    desk.do(propose, ask(amount=Money(1200, "USD")))
    assert [kind for kind, _ in open_rows(desk)] == ["conflict", "conflict"]


def test_a_conflict_changes_nothing_that_may_be_said_and_leaves_the_outcome_owed() -> None:
    desk = confirmed()
    before = desk.do(lambda page: fact_of(page.operation(OP_ID)))
    desk.do(propose, ask(card=MASTERCARD))
    assert desk.do(lambda page: fact_of(page.operation(OP_ID))) == before
    note(desk, "deferred")
    assert [kind for kind, _ in open_rows(desk)] == ["conflict", "untold"]
    assert desk.do(audit.problems) == ()


def test_what_nobody_asked_for_in_a_call_is_owed_to_nobody() -> None:
    desk = confirmed()
    assert owed(desk) == []
    desk.see(OP_ID, Outcome.REVERSED, Actor.WEBHOOK)
    assert owed(desk) == []

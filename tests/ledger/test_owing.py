"""An outcome that a caller did not hear is owed until he hears it, or a person has seen to it."""

from __future__ import annotations

import pytest
from tests.ledger.pages import Desk, ask
from tests.ledger.rows import OP_ID

from callwright.ledger import owing
from callwright.ledger.asking import propose
from callwright.ledger.operation import Actor
from callwright.ledger.page import Page
from callwright.ledger.provider import Outcome
from callwright.ledger.rows import Outbox


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


def test_what_nobody_asked_for_in_a_call_is_owed_to_nobody() -> None:
    desk = confirmed()
    assert owed(desk) == []
    desk.see(OP_ID, Outcome.REVERSED, Actor.WEBHOOK)
    assert owed(desk) == []

"""The record held against what its callers heard, and against its providers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.ledger.pages import Desk, ask
from tests.ledger.rows import MASTERCARD, OP_ID, SKILLET

from callwright.declare.actions import Money
from callwright.ledger import audit, owing
from callwright.ledger.asking import propose
from callwright.ledger.operation import Actor
from callwright.ledger.page import Page, Patience
from callwright.ledger.provider import Observed, Outcome

NAME = "refund order:4417 full: "


def sent() -> Desk:
    """Somebody waits on the line for a refund that is under way."""
    desk = Desk()
    desk.do(propose, ask(is_waited_for=True))
    desk.sent(OP_ID)
    return desk


def settled(*outcomes: Outcome) -> Desk:
    desk = sent()
    for outcome in outcomes:
        desk.see(OP_ID, outcome, Actor.RECONCILER)
    return desk


def note(desk: Desk, state: str) -> None:
    def write(page: Page) -> None:
        operation = page.operation(OP_ID)
        owing.note(page, OP_ID, operation.milestone, operation.fact_version, state)

    desk.do(write)


def nothing(*_: object) -> None:
    pass


# What was heard


@pytest.mark.parametrize("states", [(), ("asked",), ("asked", "missed"), ("heard",), ("asked", "deferred")])
def test_an_outcome_that_is_being_told_was_heard_or_is_owed_is_no_problem(states: tuple[str, ...]) -> None:
    desk = settled(Outcome.APPLIED)
    for state in states:
        note(desk, state)
    assert desk.do(audit.unheard) == ()


def test_an_outcome_that_nobody_waits_for_has_not_to_be_heard() -> None:
    desk = Desk()
    desk.do(propose, ask())
    desk.sent(OP_ID)
    desk.see(OP_ID, Outcome.APPLIED)
    assert desk.do(audit.unheard) == ()


def test_i19_an_outcome_that_a_call_left_without_anybody_to_tell_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owing, "_owe", nothing)
    desk = settled(Outcome.APPLIED)
    note(desk, "deferred")
    assert desk.do(audit.unheard) == (
        f"{NAME}its caller has not heard that it is confirmed, and nobody is to tell him (I19)",
    )


def test_i19_who_waits_on_the_line_for_what_has_been_known_for_long_is_told_by_nobody() -> None:
    """The call that had to is gone, and no process that lives has seen to it."""
    desk = settled(Outcome.APPLIED)
    desk.now_ms += Patience().tell_ms - 1
    assert desk.do(audit.unheard) == ()
    desk.now_ms += 1
    assert len(desk.do(audit.unheard)) == 1
    desk.do(owing.leave_late)
    assert desk.do(audit.unheard) == ()


def test_i19_who_heard_another_outcome_last_has_not_heard_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owing, "changed", nothing)
    desk = settled(Outcome.APPLIED)
    note(desk, "heard")
    assert desk.do(audit.unheard) == ()
    desk.see(OP_ID, Outcome.REVERSED, Actor.RECONCILER)
    assert desk.do(audit.unheard) == (
        f"{NAME}its caller has not heard that it is reversed, and nobody is to tell him (I19)",
    )


def test_what_was_heard_stays_heard_when_a_person_has_looked_at_it() -> None:
    """His looking is another version of the same outcome."""
    desk = settled(Outcome.APPLIED)
    note(desk, "heard")
    desk.do(lambda page: page.escalate(page.operation(OP_ID), Actor.CLOCK, "mismatch"))
    (row,) = desk.do(lambda page: page.tx.find(owing.Outbox, done_at_ms=None))
    desk.do(lambda page: page.note(page.operation(OP_ID), Actor.HUMAN, "seen to", escalated=""))
    desk.do(lambda page: page.tx.update(owing.replace(row, done_at_ms=1)))
    assert desk.do(audit.unheard) == ()


# What a provider says


def differs(desk: Desk, outcome: Outcome, n: int = 1, **more: object) -> str | None:
    seen = Observed(outcome, **more)  # type: ignore[arg-type]
    return desk.do(lambda page: audit.differs(page, page.operation(OP_ID), n, seen))


def failed_and_asked_again() -> Desk:
    desk = settled(Outcome.NOT_APPLIED)
    desk.do(propose, ask(is_waited_for=True))
    desk.sent(OP_ID)
    return desk


@pytest.mark.parametrize(
    ("record", "agrees"),
    [
        (sent, "unknown still_open absent"),
        (lambda: settled(Outcome.UNKNOWN), "unknown still_open absent"),
        (lambda: settled(Outcome.ACCEPTED), "accepted"),
        (lambda: settled(Outcome.APPLIED), "applied"),
        (lambda: settled(Outcome.APPLIED, Outcome.REVERSED), "not_applied cancelled reversed absent"),
        (lambda: settled(Outcome.NOT_APPLIED), "not_applied cancelled reversed absent"),
        (lambda: settled(Outcome.ACCEPTED, Outcome.CANCELLED), "not_applied cancelled reversed absent"),
    ],
    ids=["running", "unknown", "accepted", "confirmed", "reversed", "failed", "cancelled"],
)
def test_what_a_look_up_finds_of_a_state_is_what_the_record_says_or_named(
    record: Callable[[], Desk], agrees: str
) -> None:
    desk = record()
    looked_up = [outcome for outcome in Outcome if outcome is not Outcome.NOT_SENT]
    assert [each.value for each in looked_up if differs(desk, each) is None] == [
        each.value for each in looked_up if each.value in agrees.split()
    ]


def test_a_difference_names_both_and_a_provider_that_cannot_say_is_one() -> None:
    desk = settled(Outcome.APPLIED)
    assert differs(desk, Outcome.ABSENT) == f"{NAME}the record says confirmed, and payments says absent"
    assert (
        differs(desk, Outcome.UNKNOWN, reason="timeout")
        == f"{NAME}the record says confirmed, and payments cannot say (timeout)"
    )


@pytest.mark.parametrize("other", [{"amount": Money(3201, "USD")}, {"card_token": MASTERCARD.token}])
def test_i5_another_amount_or_card_at_the_provider_is_named(other: dict[str, object]) -> None:
    desk = settled(Outcome.APPLIED)
    assert differs(desk, Outcome.APPLIED, amount=SKILLET) is None
    assert (differs(desk, Outcome.APPLIED, **other) or "").startswith(f"{NAME}payments has another amount, card")


def test_an_effect_of_an_earlier_attempt_is_one_too_many() -> None:
    desk = failed_and_asked_again()
    assert differs(desk, Outcome.NOT_APPLIED) is None
    assert differs(desk, Outcome.APPLIED) == f"{NAME}the record says running, and payments says applied of attempt 1"
    assert differs(desk, Outcome.ABSENT, n=2) is None


def test_what_went_on_while_the_provider_was_asked_is_not_compared() -> None:
    desk = sent()
    read = desk.do(lambda page: page.operation(OP_ID))
    desk.see(OP_ID, Outcome.ACCEPTED)
    assert desk.do(audit.differs, read, 1, Observed(Outcome.APPLIED)) is None

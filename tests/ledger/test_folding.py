"""Evidence is folded by what it says, never by when or how often it came."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledger import mutants
from tests.ledger.pages import TRAITS, Desk, ask
from tests.ledger.rows import MASTERCARD, SKILLET, VISA

from callwright.declare.actions import Authority, Money
from callwright.errors import IllegalTransition
from callwright.ledger.asking import Verdict, propose
from callwright.ledger.operation import Actor, State, Step
from callwright.ledger.provider import Idempotency, Observed, Outcome
from callwright.ledger.rows import Attempt, Event, Evidence, Outbox, provider_key
from callwright.ledger.sending import Act

ENDINGS = {
    (): State.ACCEPTED,
    (Outcome.APPLIED,): State.CONFIRMED,
    (Outcome.NOT_APPLIED,): State.FAILED,
    (Outcome.CANCELLED,): State.CANCELLED,
    (Outcome.APPLIED, Outcome.REVERSED): State.REVERSED,
    (Outcome.APPLIED, Outcome.NOT_APPLIED): State.REVERSED,
}
"""What can become of an accepted object, and the state that all evidence of it amounts to."""


def running(**traits) -> tuple[Desk, str]:
    desk = Desk(**traits)
    op_id = desk.do(propose, ask()).op_id
    desk.sent(op_id)
    return desk, op_id


def history(later: tuple[Outcome, ...]) -> list[Observed]:
    outcomes = (Outcome.ACCEPTED, *later)
    return [Observed(outcome, "re_1", version=version) for version, outcome in enumerate(outcomes, 1)]


noise = st.sampled_from(
    [Observed(Outcome.UNKNOWN, reason="timeout"), Observed(Outcome.ABSENT), Observed(Outcome.STILL_OPEN)]
)


@given(later=st.sampled_from(list(ENDINGS)), data=st.data())
def test_i11_any_order_and_any_number_of_times_ends_in_the_same_state(later, data):
    shown = history(later)
    repeats = data.draw(st.lists(st.sampled_from(shown), max_size=3))
    doubts = data.draw(st.lists(noise, max_size=2))
    order = data.draw(st.permutations([*shown, *repeats, *doubts]))
    doors = data.draw(
        st.lists(st.sampled_from([Actor.RECONCILER, Actor.WEBHOOK]), min_size=len(order), max_size=len(order))
    )
    assert ended(order, doors) is ENDINGS[later]


def ended(order: list[Observed], doors: list[Actor]) -> State:
    """The state of an operation that all of this was seen of."""
    desk, op_id = running()
    for observed, door in zip(order, doors, strict=True):
        desk.see(
            op_id,
            observed.outcome,
            door,
            reference=observed.reference,
            version=observed.version,
            reason=observed.reason,
        )
    return desk.do(lambda page: page.operation(op_id)).state


def test_i11_catches_who_believes_the_order_of_arrival(monkeypatch):
    later = (Outcome.APPLIED, Outcome.NOT_APPLIED)
    backwards = history(later)[::-1]
    doors = [Actor.RECONCILER] * len(backwards)
    assert ended(backwards, doors) is ENDINGS[later]
    mutants.what_came_last_counts(monkeypatch)
    assert ended(backwards, doors) is not ENDINGS[later]


def test_the_same_observation_twice_is_one_row():
    desk, op_id = running()
    for _ in range(3):
        desk.see(op_id, Outcome.ACCEPTED, reference="re_1", version=1)
    assert len(desk.do(lambda page: page.tx.find(Evidence))) == 1


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_f14_a_stale_page_does_not_undo_a_reversal(order):
    shown = history((Outcome.APPLIED, Outcome.REVERSED))
    desk, op_id = running()
    for index in order:
        desk.see(op_id, shown[index].outcome, Actor.RECONCILER, reference="re_1", version=index + 1)
    assert desk.do(lambda page: page.operation(op_id)).state is State.REVERSED


def test_evidence_that_comes_again_after_a_renewal_stops_nothing():
    desk, op_id = running()
    desk.see(op_id, Outcome.ACCEPTED, reference="re_1", version=1)
    desk.see(op_id, Outcome.CANCELLED, Actor.RECONCILER, reference="re_1", version=2)
    assert desk.do(propose, ask()).verdict is Verdict.CREATED
    again = desk.see(op_id, Outcome.CANCELLED, Actor.WEBHOOK, reference="re_1", version=2)
    assert again.state is State.REQUESTED
    assert desk.sent(op_id).dispatch.n == 2


# What an answer to one send is worth


def test_a_refusal_of_the_only_send_is_a_failure():
    desk, op_id = running()
    assert desk.see(op_id, Outcome.NOT_APPLIED, reason="http_402").state is State.FAILED


@pytest.mark.parametrize("outcome", [Outcome.NOT_APPLIED, Outcome.NOT_SENT])
def test_i8_a_refusal_of_a_repeat_says_nothing_about_the_first_send(outcome):
    desk, op_id = running()
    desk.see(op_id, Outcome.UNKNOWN)
    desk.now_ms = 40_000
    desk.see(op_id, Outcome.ABSENT, Actor.RECONCILER)
    assert desk.sent(op_id).dispatch.n == 1
    assert desk.see(op_id, outcome).state is State.UNKNOWN


@pytest.mark.parametrize("door", [Actor.RECONCILER, Actor.WEBHOOK, Actor.HUMAN])
def test_that_nothing_left_only_the_send_itself_can_say(door):
    """Found by the stateful test: a resolved attempt under an operation in doubt."""
    desk, op_id = running()
    assert desk.see(op_id, Outcome.NOT_SENT, door).state is State.UNKNOWN
    assert desk.do(lambda page: page.attempts(op_id))[0].is_unresolved
    assert desk.see(op_id, Outcome.NOT_SENT).state is State.UNKNOWN  # a sender that was taken for gone
    assert desk.do(lambda page: page.attempts(op_id))[0].is_unresolved


def test_a_look_up_that_shows_a_failed_object_is_proof_after_any_number_of_sends():
    desk, op_id = running()
    desk.see(op_id, Outcome.UNKNOWN)
    desk.now_ms = 40_000
    desk.see(op_id, Outcome.ABSENT, Actor.RECONCILER)
    desk.sent(op_id)
    desk.see(op_id, Outcome.UNKNOWN)
    assert desk.see(op_id, Outcome.NOT_APPLIED, Actor.RECONCILER, reference="re_1").state is State.FAILED


def test_f4_where_a_provider_resumes_a_failed_object_is_final_only_when_no_other_send_can_land():
    """Found by a sweep: the second send made an object, that failed, and the first one landed late and resumed it.

    It may have been held up before its first byte for as long as it may be under way.
    """
    desk, op_id = running(idempotency=Idempotency.RESUME)
    desk.see(op_id, Outcome.UNKNOWN)
    desk.now_ms = 40_000
    desk.see(op_id, Outcome.ABSENT, Actor.RECONCILER)
    desk.sent(op_id)
    desk.see(op_id, Outcome.ACCEPTED, reference="re_1", version=1)
    assert desk.see(op_id, Outcome.NOT_APPLIED, Actor.RECONCILER, version=2).state is State.ACCEPTED
    desk.now_ms = 40_000 + 2 * TRAITS.request_max_ms - 1
    assert desk.see(op_id, Outcome.NOT_APPLIED, Actor.RECONCILER, version=2).state is State.ACCEPTED
    desk.now_ms += 1
    assert desk.see(op_id, Outcome.NOT_APPLIED, Actor.RECONCILER, version=2).state is State.FAILED


@pytest.mark.parametrize("outcome", [Outcome.UNKNOWN, Outcome.STILL_OPEN, Outcome.ABSENT])
def test_i9_what_proves_nothing_leaves_a_doubt(outcome):
    desk, op_id = running()
    assert desk.see(op_id, outcome).state is State.UNKNOWN
    assert desk.see(op_id, outcome, Actor.RECONCILER).state is State.UNKNOWN


# What was not asked for


@pytest.mark.parametrize(
    "other",
    [{"amount": Money(3201, "USD")}, {"amount": Money(3200, "EUR")}, {"card_token": MASTERCARD.token}],
)
@pytest.mark.parametrize("outcome", [Outcome.ACCEPTED, Outcome.APPLIED, Outcome.REVERSED])
def test_i5_what_was_not_asked_for_confirms_nothing_and_goes_to_a_person(other, outcome):
    desk, op_id = running()
    operation = desk.see(op_id, outcome, **other)
    assert (operation.state, operation.escalated) == (State.UNKNOWN, "mismatch")
    assert [row.kind for row in desk.do(lambda page: page.tx.find(Outbox))] == ["person"]


def test_i5_another_reference_confirms_nothing():
    desk, op_id = running()
    desk.see(op_id, Outcome.ACCEPTED, reference="re_1")
    operation = desk.see(op_id, Outcome.APPLIED, Actor.WEBHOOK, reference="re_2")
    assert (operation.state, operation.escalated) == (State.ACCEPTED, "mismatch")


def test_what_was_asked_for_matches():
    desk, op_id = running()
    operation = desk.see(op_id, Outcome.APPLIED, amount=SKILLET, card_token=VISA.token)
    assert (operation.state, operation.escalated) == (State.CONFIRMED, "")


# Against what was said


def test_t15_an_effect_after_failed_wins_and_a_person_looks_at_it():
    desk, op_id = running()
    desk.see(op_id, Outcome.NOT_APPLIED, reason="http_400")
    operation = desk.see(op_id, Outcome.APPLIED, Actor.WEBHOOK, reference="re_1", version=1)
    assert (operation.state, operation.escalated) == (State.CONFIRMED, "contradiction")


def test_t15_an_effect_that_shows_before_the_next_attempt_stops_it():
    """Failed, asked for with another card, and now the first one turns out to have been done."""
    desk, op_id = running()
    desk.see(op_id, Outcome.NOT_APPLIED, reason="http_400")
    desk.do(propose, ask(card=MASTERCARD))
    operation = desk.see(op_id, Outcome.APPLIED, Actor.WEBHOOK, reference="re_1", version=1)
    assert (operation.state, operation.escalated, operation.terms.card) == (State.CONFIRMED, "contradiction", VISA)
    assert operation.rev == 3
    assert desk.next(op_id).act is not Act.SEND


def test_an_effect_of_an_earlier_attempt_is_an_incident():
    desk, op_id = running()
    desk.see(op_id, Outcome.NOT_APPLIED, reason="http_400")
    desk.do(propose, ask())
    desk.sent(op_id)
    operation = desk.see(op_id, Outcome.APPLIED, Actor.WEBHOOK, n=1, reference="re_1", version=1)
    assert (operation.state, operation.escalated) == (State.RUNNING, "earlier_attempt_applied")


# Changes that waited


@pytest.mark.parametrize(
    ("outcomes", "state", "card", "reason"),
    [
        ([Outcome.ACCEPTED, Outcome.CANCELLED], State.REQUESTED, MASTERCARD, ""),
        ([Outcome.NOT_APPLIED], State.REQUESTED, MASTERCARD, ""),
        ([Outcome.NOT_SENT], State.REQUESTED, MASTERCARD, ""),
        ([Outcome.APPLIED], State.CONFIRMED, VISA, "change_too_late"),
        ([Outcome.UNKNOWN], State.UNKNOWN, VISA, ""),
    ],
)
def test_i10_a_change_waits_until_the_first_one_is_known_to_have_come_to_nothing(outcomes, state, card, reason):
    desk, op_id = running()
    assert desk.do(propose, ask(card=MASTERCARD)).verdict is Verdict.AMENDING
    for outcome in outcomes:
        operation = desk.see(op_id, outcome)
    assert (operation.state, operation.terms.card, operation.escalated) == (state, card, reason)


def test_a_change_that_needs_the_callers_yes_waits_for_it():
    desk = Desk()
    first = desk.do(propose, ask(authority=Authority.CALLER))
    desk.do(lambda page: page.grant(page.operation(first.op_id), Step.AUTHORIZE, Actor.CALLER))
    desk.sent(first.op_id)
    desk.see(first.op_id, Outcome.ACCEPTED)
    desk.do(propose, ask(authority=Authority.CALLER, card=MASTERCARD))
    assert desk.see(first.op_id, Outcome.CANCELLED).state is State.PROPOSED


def test_i4_every_attempt_has_a_key_of_its_own_and_a_repeat_has_none():
    desk, op_id = running()
    desk.see(op_id, Outcome.NOT_APPLIED)
    desk.do(propose, ask())
    desk.sent(op_id)
    keys = [attempt.provider_key for attempt in desk.do(lambda page: page.tx.find(Attempt))]
    assert keys == [provider_key(op_id, 1, 1), provider_key(op_id, 1, 2)]
    assert len(set(keys)) == 2


def test_nothing_is_written_when_a_step_is_illegal():
    desk, op_id = running()
    before = desk.do(lambda page: page.tx.find(Event))
    with pytest.raises(IllegalTransition):
        desk.do(lambda page: page.step(page.operation(op_id), Step.AUTHORIZE, Actor.POLICY))
    assert desk.do(lambda page: page.tx.find(Event)) == before

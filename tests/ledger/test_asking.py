"""The same wish, however often and by whomever, is one operation; each answer is made from the record."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.ledger.pages import Desk, ask
from tests.ledger.rows import MASTERCARD, TERMS

from callwright.declare.actions import Authority, Money
from callwright.ledger.asking import Answer, Ask, Verdict, authorize, propose, withdraw
from callwright.ledger.operation import UNDER_WAY, Actor, State
from callwright.ledger.provider import Outcome
from callwright.ledger.rows import Authorization, Event, Operation, operation_id
from callwright.ledger.sending import Act

SEEN = {
    State.ACCEPTED: [Outcome.ACCEPTED],
    State.CONFIRMED: [Outcome.APPLIED],
    State.FAILED: [Outcome.NOT_APPLIED],
    State.UNKNOWN: [Outcome.UNKNOWN],
    State.CANCELLED: [Outcome.ACCEPTED, Outcome.CANCELLED],
    State.REVERSED: [Outcome.APPLIED, Outcome.REVERSED],
}


def at(state: State, **traits) -> tuple[Desk, Answer]:
    """A desk whose one operation is in a state."""
    desk = Desk(**traits)
    wish = ask(authority=Authority.CALLER) if state is State.PROPOSED else ask()
    answer = desk.do(propose, wish)
    if state not in (State.PROPOSED, State.REQUESTED):
        desk.sent(answer.op_id)
        for outcome in SEEN.get(state, []):
            desk.see(answer.op_id, outcome)
    assert desk.do(lambda page: page.operation(answer.op_id)).state is state
    return desk, answer


def state_of(desk: Desk, answer: Answer) -> State:
    return desk.do(lambda page: page.operation(answer.op_id)).state


def again(state: State) -> Ask:
    return ask(authority=Authority.CALLER) if state is State.PROPOSED else ask()


@pytest.mark.parametrize(
    ("state", "verdict", "then"),
    [
        (State.PROPOSED, Verdict.NEEDS_CONSENT, State.PROPOSED),
        (State.REQUESTED, Verdict.JOINED, State.REQUESTED),
        (State.RUNNING, Verdict.JOINED, State.RUNNING),
        (State.ACCEPTED, Verdict.JOINED, State.ACCEPTED),
        (State.CONFIRMED, Verdict.REPLAYED, State.CONFIRMED),
        (State.FAILED, Verdict.CREATED, State.REQUESTED),
        (State.UNKNOWN, Verdict.JOINED, State.UNKNOWN),
        (State.CANCELLED, Verdict.CREATED, State.REQUESTED),
        (State.REVERSED, Verdict.REFUSED, State.REVERSED),
    ],
)
def test_the_same_wish_again(state, verdict, then):
    desk, first = at(state)
    answer = desk.do(propose, again(state))
    assert (answer.verdict, answer.op_id, state_of(desk, first)) == (verdict, first.op_id, then)
    assert answer.fact is not None
    assert answer.fact.milestone == then.value


@pytest.mark.parametrize(
    ("state", "verdict", "then"),
    [
        (State.PROPOSED, Verdict.NEEDS_CONSENT, State.PROPOSED),
        (State.REQUESTED, Verdict.AMENDED, State.REQUESTED),
        (State.RUNNING, Verdict.AMENDING, State.RUNNING),
        (State.ACCEPTED, Verdict.AMENDING, State.ACCEPTED),
        (State.CONFIRMED, Verdict.CONFLICT, State.CONFIRMED),
        (State.FAILED, Verdict.AMENDED, State.REQUESTED),
        (State.UNKNOWN, Verdict.AMENDING, State.UNKNOWN),
        (State.CANCELLED, Verdict.AMENDED, State.REQUESTED),
        (State.REVERSED, Verdict.CONFLICT, State.REVERSED),
    ],
)
def test_another_card(state, verdict, then):
    desk, first = at(state)
    answer = desk.do(propose, replace(again(state), terms=replace(TERMS, card=MASTERCARD)))
    assert (answer.verdict, state_of(desk, first)) == (verdict, then)
    if verdict in (Verdict.AMENDED, Verdict.NEEDS_CONSENT):
        assert (answer.rev, answer.fact.terms.card) == (2, MASTERCARD)
    else:
        assert (answer.rev, answer.fact.terms.card) == (1, TERMS.card)


@pytest.mark.parametrize("state", [State.RUNNING, State.ACCEPTED, State.UNKNOWN])
def test_a_provider_that_cancels_nothing_blocks_a_change_under_way(state):
    desk, _ = at(state, cancels=())
    answer = desk.do(propose, ask(card=MASTERCARD))
    assert (answer.verdict, answer.reason) == (Verdict.AMEND_BLOCKED, "under_way")


@pytest.mark.parametrize("state", list(State))
def test_another_destination_is_refused_before_it_is_promised_where_the_provider_knows_one_only(state):
    desk, first = at(state, destination_change=False)
    answer = desk.do(propose, ask(card=MASTERCARD))
    assert (answer.verdict, answer.reason) == (Verdict.REFUSED, "destination_fixed")
    assert state_of(desk, first) is state


@pytest.mark.parametrize("state", list(State))
def test_i14_somebody_elses_operation_is_neither_seen_nor_changed(state):
    desk, first = at(state)
    for answer in (
        desk.do(propose, ask(party="customer:82")),
        desk.do(propose, ask(party="customer:82", card=MASTERCARD)),
        desk.do(withdraw, first.op_id, "customer:82", Actor.CALLER),
    ):
        assert (answer.verdict, answer.reason, answer.fact, answer.rev) == (Verdict.REFUSED, "not_theirs", None, 0)
    assert state_of(desk, first) is state


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("cancels", [(), (Outcome.ACCEPTED,)])
def test_withdrawn_at_once_is_what_was_not_sent_and_nothing_else(state, cancels):
    desk, first = at(state, cancels=cancels)
    answer = desk.do(withdraw, first.op_id, "customer:81", Actor.CALLER)
    stopped = state in (State.PROPOSED, State.REQUESTED, State.CANCELLED)
    asked = Verdict.WITHDRAWING if cancels and state in UNDER_WAY else Verdict.TOO_LATE
    assert answer.verdict is (Verdict.WITHDRAWN if stopped else asked)
    assert state_of(desk, first) is (State.CANCELLED if stopped else state)


def test_what_is_withdrawn_under_way_is_cancelled_as_soon_as_the_provider_has_it_and_stays_so():
    desk, first = at(State.RUNNING)
    answer = desk.do(withdraw, first.op_id, "customer:81", Actor.CALLER)
    assert answer.fact.sentence.endswith("there is no result yet. It is to be stopped, if that is still possible.")
    desk.see(first.op_id, Outcome.ACCEPTED)
    assert desk.next(first.op_id).act is Act.CANCEL
    desk.see(first.op_id, Outcome.CANCELLED)
    assert state_of(desk, first) is State.CANCELLED
    assert desk.next(first.op_id).act is Act.REST
    assert desk.do(lambda page: page.operation(first.op_id)).amend_json is None


def test_what_was_done_before_it_could_be_stopped_is_done_and_nobody_s_task():
    desk, first = at(State.ACCEPTED)
    for _ in range(2):
        assert desk.do(withdraw, first.op_id, "customer:81", Actor.CALLER).verdict is Verdict.WITHDRAWING
    desk.see(first.op_id, Outcome.APPLIED)
    operation = desk.do(lambda page: page.operation(first.op_id))
    assert (operation.state, operation.amend_json, operation.escalated) == (State.CONFIRMED, None, "")


def test_what_was_withdrawn_under_way_and_is_asked_for_again_is_not_stopped():
    desk, first = at(State.ACCEPTED)
    desk.do(withdraw, first.op_id, "customer:81", Actor.CALLER)
    assert desk.do(propose, ask()).verdict is Verdict.JOINED
    assert desk.next(first.op_id).act is Act.WAIT  # and no cancel


def test_a_withdrawal_takes_the_place_of_a_change():
    desk, first = at(State.ACCEPTED)
    desk.do(propose, ask(card=MASTERCARD))
    desk.do(withdraw, first.op_id, "customer:81", Actor.CALLER)
    desk.see(first.op_id, Outcome.CANCELLED)
    assert desk.next(first.op_id).act is Act.REST
    assert state_of(desk, first) is State.CANCELLED


def test_a_change_taken_back_leaves_the_first_as_it_was():
    desk, first = at(State.ACCEPTED)
    desk.do(propose, ask(card=MASTERCARD))
    assert desk.do(propose, ask()).verdict is Verdict.JOINED
    assert desk.next(first.op_id).act is Act.WAIT  # and no cancel


# Consent


def test_i7_consent_is_bound_to_the_revision_and_terms_that_were_read_out():
    desk, first = at(State.PROPOSED)
    wish = replace(ask(card=MASTERCARD), authority=Authority.CALLER)
    second = desk.do(propose, wish)
    stale = desk.do(authorize, first.op_id, first.rev, first.params_hash, Actor.CALLER)
    assert (stale.verdict, stale.reason) == (Verdict.CONFLICT, "changed_meanwhile")
    assert state_of(desk, first) is State.PROPOSED
    assert desk.do(authorize, second.op_id, second.rev, second.params_hash, Actor.CALLER).verdict is Verdict.CREATED
    assert desk.sent(first.op_id).dispatch.terms.card == MASTERCARD


def test_a_second_yes_adds_nothing():
    desk, first = at(State.PROPOSED)
    desk.do(authorize, first.op_id, first.rev, first.params_hash, Actor.CALLER)
    assert desk.do(authorize, first.op_id, first.rev, first.params_hash, Actor.CALLER).verdict is Verdict.JOINED
    assert len(desk.do(lambda page: page.tx.find(Authorization))) == 1


def test_what_needs_a_person_is_not_authorised_by_the_caller():
    desk = Desk()
    first = desk.do(propose, ask(authority=Authority.HUMAN))
    assert first.verdict is Verdict.NEEDS_CONSENT
    by_caller = desk.do(authorize, first.op_id, first.rev, first.params_hash, Actor.CALLER)
    assert (by_caller.verdict, by_caller.reason) == (Verdict.REFUSED, "needs_person")
    assert desk.do(authorize, first.op_id, first.rev, first.params_hash, Actor.HUMAN).verdict is Verdict.CREATED


@pytest.mark.parametrize("authority", [Authority.CALLER, Authority.HUMAN])
def test_a_failed_one_that_needs_consent_is_tried_again_on_a_new_one_only(authority):
    desk = Desk()
    first = desk.do(propose, ask(authority=authority))
    by = Actor.CALLER if authority is Authority.CALLER else Actor.HUMAN
    desk.do(authorize, first.op_id, 1, first.params_hash, by)
    desk.sent(first.op_id)
    desk.see(first.op_id, Outcome.NOT_APPLIED)
    assert desk.do(propose, ask(authority=authority)).verdict is Verdict.NEEDS_CONSENT
    assert desk.next(first.op_id).act is Act.REST
    assert desk.do(authorize, first.op_id, 1, first.params_hash, by).verdict is Verdict.CREATED
    assert desk.sent(first.op_id).dispatch.n == 2


def test_f43_a_proposal_and_a_leave_expire():
    desk, first = at(State.PROPOSED)
    assert desk.next(first.op_id).at_ms == 600_000
    desk.next(first.op_id, 600_000)
    assert state_of(desk, first) is State.CANCELLED
    desk, first = at(State.REQUESTED)
    assert desk.next(first.op_id, 600_000).act is Act.REST
    assert state_of(desk, first) is State.CANCELLED


# Caps


def test_i1_parts_of_one_subject_stay_within_its_cap():
    desk = Desk()
    cap = Money(3200, "USD")
    parts = [ask(slot=f"line:{n}", amount=Money(minor, "USD"), cap=cap) for n, minor in enumerate((1200, 2000, 900))]
    answers = [desk.do(propose, part) for part in parts]
    assert [answer.verdict for answer in answers] == [Verdict.CREATED, Verdict.CREATED, Verdict.REFUSED]
    assert (answers[2].reason, answers[2].fact) == ("over_cap", None)
    desk.do(withdraw, answers[1].op_id, "customer:81", Actor.CALLER)
    assert desk.do(propose, parts[2]).verdict is Verdict.CREATED
    back = desk.do(propose, parts[1])
    assert (back.verdict, back.reason) == (Verdict.REFUSED, "over_cap")


def test_i1_a_part_in_doubt_counts_against_the_cap():
    desk = Desk()
    first = desk.do(propose, ask(slot="line:1", amount=Money(2000, "USD"), cap=Money(3200, "USD")))
    desk.sent(first.op_id)
    desk.see(first.op_id, Outcome.UNKNOWN)
    second = desk.do(propose, ask(slot="line:2", amount=Money(2000, "USD"), cap=Money(3200, "USD")))
    assert second.reason == "over_cap"


def test_a_refused_wish_leaves_no_trace():
    desk = Desk()
    desk.do(propose, ask(cap=Money(100, "USD")))
    assert desk.do(lambda page: page.tx.find(Operation) + page.tx.find(Event)) == []


def test_an_operation_is_named_by_what_it_acts_on_and_by_nothing_else():
    """Who asked, in which call, for which card: none of it is part of the name."""
    desk = Desk()
    answer = desk.do(propose, ask())
    assert answer.op_id == operation_id("refund", "order:4417", "full")
    assert "4417" not in answer.op_id
    others = {operation_id("refund", "order:4418", "full"), operation_id("refund", "order:4417", "line:1")}
    assert answer.op_id not in others
    assert len(others) == 2

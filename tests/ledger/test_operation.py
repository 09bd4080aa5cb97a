"""An operation takes the steps T2 to T17 and no others, and each is caused by those who may."""

from __future__ import annotations

import pytest
from tests.core.machines import every_cue, every_state, written_rows

from callwright.errors import IllegalTransition
from callwright.ledger.operation import OPERATION, ROWS, SETTLED, Actor, Attempted, State, Step, after

WRITTEN = """
PROPOSED AUTHORIZE -> REQUESTED
PROPOSED WITHDRAW -> CANCELLED
REQUESTED WITHDRAW -> CANCELLED
REQUESTED DISPATCH -> RUNNING
RUNNING ACCEPT -> ACCEPTED
RUNNING APPLY -> CONFIRMED
RUNNING REJECT -> FAILED
RUNNING NOT_SENT -> REQUESTED
RUNNING DOUBT -> UNKNOWN
UNKNOWN ACCEPT -> ACCEPTED
UNKNOWN APPLY -> CONFIRMED
UNKNOWN REJECT -> FAILED
UNKNOWN DISPATCH -> RUNNING
ACCEPTED APPLY -> CONFIRMED
ACCEPTED REJECT -> FAILED
ACCEPTED CANCEL -> CANCELLED
CONFIRMED REVERSE -> REVERSED
FAILED RETRY -> REQUESTED
FAILED APPLY -> CONFIRMED
CANCELLED APPLY -> CONFIRMED
CANCELLED RENEW -> PROPOSED
REVERSED RENEW -> PROPOSED
"""
EVERY = [(state, step, actor) for state in every_state(OPERATION) for step in every_cue(OPERATION) for actor in Actor]
LEGAL = {(row.source, row.step, actor): row for row in ROWS for actor in row.actors}


def reachable(without: State | None = None, *, guarded: bool = True) -> dict[State, None]:
    """The states that some order of steps leads to; ``guarded`` minds what a row asks of the attempts."""
    seen = {(State.PROPOSED, False): None}
    waiting = list(seen)
    while waiting:
        state, attempted = waiting.pop()
        for row in ROWS:
            if row.source is not state or without in (row.source, row.target):
                continue
            if guarded and row.attempted is Attempted.YES and not attempted:
                continue
            then = (row.target, attempted or row.step is Step.DISPATCH)
            if then not in seen:
                seen[then] = None
                waiting.append(then)
    return dict.fromkeys(state for state, _ in seen)


def test_rows():
    assert written_rows(OPERATION) == WRITTEN.split("\n")[1:-1]


def test_rows_are_numbered_as_in_the_documentation_and_none_is_missing():
    assert list(dict.fromkeys(row.name for row in ROWS)) == [f"T{n}" for n in range(2, 18)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}-{row.source.name}-{row.step.name}")
def test_a_row_is_followed_for_each_of_its_actors(row):
    for actor in row.actors:
        assert after(row.source, row.step, actor, attempted=True) is row.target


def test_whatever_else_is_refused_and_named():
    refused = [each for each in EVERY if each not in LEGAL]
    assert len(refused) + len(LEGAL) == len(EVERY)
    for state, step, actor in refused:
        with pytest.raises(IllegalTransition) as caught:
            after(state, step, actor, attempted=True)
        assert caught.value.state == state.name
        assert step.name in caught.value.event


def test_i6_the_model_appears_at_the_renewal_of_what_was_stopped_only():
    assert [row.name for row in ROWS if Actor.MODEL in row.actors] == ["T16"]


def test_i9_the_clock_never_claims_anything_about_an_effect():
    assert {row.step for row in ROWS if Actor.CLOCK in row.actors} == {Step.WITHDRAW, Step.DOUBT}


def test_only_the_dispatcher_dispatches():
    assert {actor for row in ROWS if row.step is Step.DISPATCH for actor in row.actors} == {Actor.DISPATCHER}


def test_every_state_is_reached_and_a_settled_one_from_each():
    assert set(reachable()) == set(State)
    for state in State:
        found, waiting = {state}, [state]
        while waiting:
            source = waiting.pop()
            new = {row.target for row in ROWS if row.source is source} - found
            found |= new
            waiting += new
        assert found & set(SETTLED), state


def test_without_an_attempt_nothing_is_ever_confirmed():
    """The cut: take RUNNING away, and no evidence leads to CONFIRMED, since T15 asks for an attempt."""
    assert State.CONFIRMED not in reachable(without=State.RUNNING)
    assert State.CONFIRMED in reachable(without=State.RUNNING, guarded=False)


@pytest.mark.parametrize("row", [row for row in ROWS if row.attempted is Attempted.YES], ids=lambda row: row.step.name)
def test_evidence_without_an_attempt_is_somebody_elses(row):
    with pytest.raises(IllegalTransition):
        after(row.source, row.step, row.actors[0], attempted=False)

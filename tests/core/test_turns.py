"""Whose turn it is, and when a reply may be asked for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.core.drive import R1, R2
from tests.core.machines import snapshot, written_rows

from callwright.core.turns import ASKS_MAX, REPLY_PATIENCE_MS, TURNS, Cue, Floor, Turns
from callwright.errors import IllegalTransition

ROWS = """
QUIET SPEECH_STARTED -> CALLER
QUIET RESPONSE_STARTED -> REPLY
QUIET ASKED -> ASKED
QUIET REFUSED -> QUIET
CALLER SPEECH_STOPPED -> AWAITED
CALLER RESPONSE_STARTED -> OVERLAP
CALLER ASKED -> HELD
CALLER REFUSED -> CALLER
HELD SPEECH_STOPPED -> AWAITED
HELD RESPONSE_STARTED -> OVERLAP
HELD REFUSED -> HELD
AWAITED SPEECH_STARTED -> CALLER
AWAITED RESPONSE_STARTED -> REPLY
AWAITED REFUSED -> AWAITED
AWAITED WAITED -> QUIET
ASKED SPEECH_STARTED -> HELD
ASKED RESPONSE_STARTED -> REPLY
ASKED REFUSED -> QUIET
ASKED WAITED -> QUIET
REPLY SPEECH_STARTED -> OVERLAP
REPLY RESPONSE_ENDED -> QUIET
REPLY REFUSED -> REPLY
OVERLAP SPEECH_STOPPED -> OWED
OVERLAP RESPONSE_ENDED -> CALLER
OVERLAP REFUSED -> OVERLAP
OWED SPEECH_STARTED -> OVERLAP
OWED RESPONSE_ENDED -> AWAITED
OWED REFUSED -> OWED
QUIET SESSION_LOST -> QUIET
CALLER SESSION_LOST -> QUIET
HELD SESSION_LOST -> QUIET
AWAITED SESSION_LOST -> QUIET
ASKED SESSION_LOST -> QUIET
"""

LATER_MS = 10 * REPLY_PATIENCE_MS
CUES: dict[Cue, Callable[[Turns], object]] = {
    Cue.SPEECH_STARTED: Turns.speech_started,
    Cue.SPEECH_STOPPED: lambda turns: turns.speech_stopped(0),
    Cue.RESPONSE_STARTED: lambda turns: turns.response_started(R1),
    Cue.RESPONSE_ENDED: lambda turns: turns.response_ended(R1, 0),
    Cue.ASKED: lambda turns: turns.asked(0),
    Cue.REFUSED: Turns.refused,
    Cue.WAITED: lambda turns: turns.timer(LATER_MS),
    Cue.SESSION_LOST: Turns.session_lost,
}
WAY = {
    Floor.QUIET: [],
    Floor.CALLER: [Cue.SPEECH_STARTED],
    Floor.HELD: [Cue.SPEECH_STARTED, Cue.ASKED],
    Floor.AWAITED: [Cue.SPEECH_STARTED, Cue.SPEECH_STOPPED],
    Floor.ASKED: [Cue.ASKED],
    Floor.REPLY: [Cue.RESPONSE_STARTED],
    Floor.OVERLAP: [Cue.RESPONSE_STARTED, Cue.SPEECH_STARTED],
    Floor.OWED: [Cue.RESPONSE_STARTED, Cue.SPEECH_STARTED, Cue.SPEECH_STOPPED],
}
PAIRS = [(floor, cue) for floor in Floor for cue in Cue]


def at(floor: Floor, *, merges: bool = False) -> Turns:
    turns = Turns(merges=merges)
    for cue in WAY[floor]:
        CUES[cue](turns)
    assert turns.floor is floor
    return turns


def test_rows():
    assert written_rows(TURNS) == ROWS.split("\n")[1:-1]


@pytest.mark.parametrize(("floor", "cue"), PAIRS, ids=lambda value: value.name)
def test_a_cue_is_followed_or_raises_and_changes_nothing(floor, cue):
    """A deadline can't be given wrongly: where nothing is awaited, a timer is no cue at all."""
    turns = at(floor)
    if (floor, cue) in TURNS.rows:
        CUES[cue](turns)
        assert turns.floor is TURNS.rows[floor, cue]
        return
    before = snapshot(turns)
    if cue is Cue.WAITED:
        assert turns.timer(LATER_MS) is False
    else:
        with pytest.raises(IllegalTransition):
            CUES[cue](turns)
    assert snapshot(turns) == before


def test_the_end_of_another_response_is_illegal_and_changes_nothing():
    turns = at(Floor.REPLY)
    before = snapshot(turns)
    with pytest.raises(IllegalTransition):
        turns.response_ended(R2, 0)
    assert snapshot(turns) == before


@pytest.mark.parametrize("floor", [floor for floor in Floor if floor is not Floor.QUIET])
def test_a_reply_may_be_asked_for_on_a_free_floor_only(floor):
    turns = at(floor)
    turns.want_reply()
    assert not turns.may_ask()


@pytest.mark.parametrize("floor", [floor for floor in Floor if floor not in (Floor.QUIET, Floor.CALLER)])
def test_where_the_server_merges_requests_it_may_be_asked_for_while_the_caller_speaks_too_and_nowhere_else(floor):
    turns = at(floor, merges=True)
    turns.want_reply()
    assert not turns.may_ask()
    speaking = at(Floor.CALLER, merges=True)
    assert not speaking.may_ask(), "nobody wants one"
    speaking.want_reply()
    assert speaking.may_ask()


@pytest.mark.parametrize("first", [Floor.CALLER, Floor.ASKED])
def test_a_reply_is_asked_for_once_in_a_turn_also_if_that_is_refused(first):
    """It may have been asked for just before the turn: the server holds that request as well."""
    turns = at(first, merges=True)
    turns.want_reply()
    CUES[Cue.ASKED if first is Floor.CALLER else Cue.SPEECH_STARTED](turns)
    turns.refused()
    turns.want_reply()
    assert not turns.may_ask()
    turns.speech_stopped(0)
    turns.speech_started()
    assert turns.may_ask(), "and again in the next one"


def test_a_request_that_was_held_and_not_answered_is_made_again_after_the_turn():
    """Whether the server took the sound for a turn or not, the reply was asked for."""
    turns = at(Floor.HELD, merges=True)
    assert turns.next_deadline_ms() is None
    turns.speech_stopped(1_000)
    assert not turns.timer(999 + REPLY_PATIENCE_MS)
    assert turns.timer(1_000 + REPLY_PATIENCE_MS)
    assert turns.may_ask()


def test_a_response_that_starts_later_serves_the_wish():
    turns = at(Floor.CALLER)
    turns.want_reply()
    turns.response_started(R1)
    assert not turns.is_reply_wanted


def test_a_refusal_brings_the_wish_back_although_a_response_started_meanwhile():
    """The response in the way began before the request arrived, so it may not have seen what the wish is about."""
    turns = Turns()
    turns.want_reply()
    turns.asked(0)
    turns.response_started(R1)
    turns.refused()
    assert not turns.may_ask()
    turns.response_ended(R1, 900)
    assert turns.may_ask()


def test_requests_for_one_wish_are_bounded():
    turns = Turns()
    turns.want_reply()
    asked = 0
    while turns.may_ask():
        turns.asked(0)
        turns.refused()
        asked += 1
    assert asked == ASKS_MAX
    assert turns.next_deadline_ms() is None


def test_a_turn_that_is_not_answered_is_a_new_wish():
    """A server that refused an earlier wish to the bound must not make the agent mute in every turn that follows."""
    turns = Turns()
    turns.want_reply()
    while turns.may_ask():
        turns.asked(0)
        turns.refused()
    turns.speech_started()
    turns.speech_stopped(0)
    assert turns.timer(REPLY_PATIENCE_MS)
    assert turns.may_ask()


def test_patience_begins_when_the_reply_becomes_due_and_ends_when_it_begins():
    turns = at(Floor.OWED)
    assert turns.next_deadline_ms() is None
    turns.response_ended(R1, 1_000)
    assert turns.next_deadline_ms() == 1_000 + REPLY_PATIENCE_MS
    assert not turns.timer(999 + REPLY_PATIENCE_MS)
    turns.response_started(R2)
    assert turns.next_deadline_ms() is None


def test_a_refusal_does_not_prolong_the_wait():
    turns = at(Floor.AWAITED)
    turns.refused()
    assert turns.next_deadline_ms() == REPLY_PATIENCE_MS


class TurnsMachine(RuleBasedStateMachine):
    """Any cue at any time: what the table forbids raises and changes nothing, and nothing else raises."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0

    @initialize(merges=st.booleans())
    def begin(self, merges):
        self.turns = Turns(merges=merges)
        self.merges = merges

    def give(self, cue: Cue, act: Callable[[], object]) -> None:
        before, floor = snapshot(self.turns), self.turns.floor
        try:
            act()
        except IllegalTransition:
            assert not TURNS.allows(floor, cue)
            assert snapshot(self.turns) == before
        else:
            assert self.turns.floor is TURNS.rows[floor, cue]

    @rule(ms=st.integers(0, 3_000))
    def time_passes(self, ms):
        self.now_ms += ms

    @rule()
    def caller_starts(self):
        before = self.turns.caller_turns
        self.give(Cue.SPEECH_STARTED, self.turns.speech_started)
        assert self.turns.caller_turns - before in (0, 1)

    @rule()
    def caller_stops(self):
        self.give(Cue.SPEECH_STOPPED, lambda: self.turns.speech_stopped(self.now_ms))

    @rule()
    def response_starts(self):
        self.give(Cue.RESPONSE_STARTED, lambda: self.turns.response_started(R1))

    @rule()
    def response_ends(self):
        self.give(Cue.RESPONSE_ENDED, lambda: self.turns.response_ended(R1, self.now_ms))

    @rule()
    def wish(self):
        self.turns.want_reply()

    @precondition(lambda self: self.turns.may_ask())
    @rule()
    def ask(self):
        self.give(Cue.ASKED, lambda: self.turns.asked(self.now_ms))

    @rule()
    def refuse(self):
        self.give(Cue.REFUSED, self.turns.refused)

    @precondition(lambda self: self.turns.next_deadline_ms() is not None)
    @rule()
    def wait(self):
        deadline_ms = self.turns.next_deadline_ms()
        self.now_ms = max(self.now_ms, deadline_ms)
        assert self.turns.timer(self.now_ms)
        assert self.turns.next_deadline_ms() is None
        assert self.turns.floor is Floor.QUIET

    @invariant()
    def a_response_is_open_exactly_where_the_floor_says_so(self):
        is_open = self.turns.floor in (Floor.REPLY, Floor.OVERLAP, Floor.OWED)
        assert (self.turns.response_id is not None) is is_open

    @invariant()
    def something_is_awaited_exactly_where_there_is_a_deadline(self):
        is_waiting = self.turns.floor in (Floor.AWAITED, Floor.ASKED)
        assert (self.turns.next_deadline_ms() is not None) is is_waiting

    @invariant()
    def asking_is_possible_on_a_free_floor_only(self):
        is_free = self.turns.floor is Floor.QUIET or (self.merges and self.turns.floor is Floor.CALLER)
        assert not self.turns.may_ask() or (is_free and self.turns.is_reply_wanted)


TurnsMachine.TestCase.settings = settings(stateful_step_count=25)
TestTurnsMachine = TurnsMachine.TestCase

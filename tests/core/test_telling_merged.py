"""An outcome that comes while the caller speaks, where the server answers a request and the turn with one reply."""

from __future__ import annotations

import pytest
from tests.core.drive import CANCELLED, EVERYTHING, R2, R3, U1, U2, B, C, Call, ended
from tests.core.telling import DONE, OTHER, TOOLS, asks, desk, fact, notes, played, records, underway

from callwright.claims.facts import Milestone
from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.session import Can
from callwright.core.turns import REPLY_PATIENCE_MS


def murmured() -> Call:
    """The caller speaks since 4 s, and the outcome comes at 4.5 s."""
    call = Call(tools=TOOLS, actions=frozenset({"issue_refund"}), can=EVERYTHING | Can.MERGE)
    underway(call)
    call.at(4_000, on.SpeechStarted(U1, 0))
    call.at(4_500, fact(Milestone.CONFIRMED, 3))
    return call


def test_it_is_noted_and_asked_for_at_once_and_one_reply_serves_it_and_the_turn():
    call = murmured()
    done = [type(command) for at_ms, command in call.log if at_ms == 4_500]
    assert done == [do.PostFacts, do.RecordTold, do.RequestReply]
    call.at(5_000, on.SpeechStopped(U1, 0))
    call.reply(R2, B, 8_000, f"You are welcome. {DONE}")
    played(call)
    assert records(call) == ["confirmed asked", "confirmed heard"]
    assert asks(call) == 1


def test_a_reply_that_answers_the_turn_alone_leaves_it_owed():
    call = murmured()
    call.at(5_000, on.SpeechStopped(U1, 0))
    call.reply(R2, B, 1_500, "We open at nine.")
    played(call)
    assert records(call) == ["confirmed asked", "confirmed missed", "confirmed asked"]
    assert "has not heard" in notes(call)[-1]["next"]


def test_a_second_outcome_in_the_same_turn_is_noted_and_not_asked_for_again():
    call = murmured()
    call.at(4_600, fact(Milestone.CONFIRMED, op_id=OTHER, subject="order:5120"))
    assert asks(call) == 1


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_request_that_is_refused_waits_for_the_answer_to_the_turn_or_for_its_absence(is_answered):
    call = murmured()
    call.at(4_600, on.RequestRefused("invalid_request_error", "no", call.done(do.RequestReply)[-1].event_id))
    call.at(5_000, on.SpeechStopped(U1, 0))
    assert asks(call) == 1
    if is_answered:
        call.reply(R2, B, 8_000, DONE)
        played(call)
        assert (asks(call), records(call)[-1]) == (1, "confirmed heard")
    else:
        call.at(5_000 + REPLY_PATIENCE_MS)
        assert asks(call) == 2


def test_a_sound_that_is_no_turn_after_all_leaves_nobody_without_the_reply():
    call = murmured()
    call.at(5_000, on.SpeechStopped(U1, 0))
    call.at(5_000 + REPLY_PATIENCE_MS)
    assert records(call) == ["confirmed asked", "confirmed missed", "confirmed asked"]


def test_a_confirmation_that_was_talked_over_is_asked_for_in_the_turn_that_did_it():
    call = murmured()
    call.at(5_000, on.SpeechStopped(U1, 0), on.ResponseStarted(R2))
    call.stream(R2, B, 1_200)
    call.at(call.now_ms, on.SpeechStarted(U2, 0), on.ReplyWritten(R2, B, DONE), ended(R2, CANCELLED))
    assert asks(call) == 1, "it is not known yet what was heard"
    call.at(call.now_ms + 100, on.ItemRetrieved(B, "Your refund of 32 dollars", is_cut=True))
    assert asks(call) == 2
    call.at(call.now_ms + 900, on.SpeechStopped(U2, 0))
    call.reply(R3, C, 8_000, f"We open at nine. {DONE}")
    played(call)
    assert (asks(call), records(call)[-1]) == (2, "confirmed heard")


def test_the_last_request_is_kept_for_a_free_floor_as_his_turn_may_be_his_farewell():
    call = murmured()
    for _ in range(2):
        call.at(call.now_ms + 100, on.SpeechStopped(U1, 0), on.ResponseStarted(R2), ended(R2))
        call.at(call.now_ms, on.SpeechStarted(U1, 0))
    assert asks(call) == 2
    call.at(call.now_ms + 100, on.SpeechStopped(U1, 0), on.ResponseStarted(R3), ended(R3))
    assert asks(call) == 3


def test_where_the_server_does_not_merge_it_waits_for_the_answer_to_the_turn():
    call = desk()
    underway(call)
    call.at(4_000, on.SpeechStarted(U1, 0))
    call.at(4_500, fact(Milestone.CONFIRMED, 3))
    call.at(5_000, on.SpeechStopped(U1, 0))
    assert asks(call) == 0
    call.reply(R2, B, 1_500, "We open at nine.")
    played(call)
    assert asks(call) == 1


def test_an_outcome_is_asked_for_although_an_earlier_wish_was_given_up():
    call = desk()
    underway(call)
    call.at(4_000, on.SpeechStarted(U1, 0), on.SpeechStopped(U1, 0))
    call.at(4_000 + REPLY_PATIENCE_MS)
    for _ in range(10):
        call.at(call.now_ms, on.RequestRefused("invalid_request_error", "no", call.done(do.RequestReply)[-1].event_id))
    before = asks(call)
    call.at(call.now_ms, fact(Milestone.CONFIRMED, 3))
    assert asks(call) == before + 1

"""A silence in which the caller waits for the agent, and nothing is to come, is broken by asking for a reply."""

from __future__ import annotations

import json

import pytest
from tests.core.drive import (
    CANCELLED,
    K1,
    K2,
    R1,
    R2,
    R3,
    U1,
    U2,
    A,
    B,
    C,
    Call,
    audio,
    called,
    ended,
    finished,
)
from tests.core.machines import written_rows
from tests.core.telling import DONE, D, asks, desk, fact, played, records, underway

from callwright.claims.facts import Milestone
from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.lull import ASKS_MAX, CALLS_MAX, LULL, SILENCE_MS, UNDER_WAY_MS, Lull, Stage
from callwright.core.turns import ASKS_MAX as REQUESTS_MAX
from callwright.core.turns import REPLY_PATIENCE_MS
from callwright.ids import ItemId, Ms, ResponseId, ToolCallId

ROWS = """
CALM WAITS -> WAITING
WAITING ANSWERED -> CALM
GONE ANSWERED -> CALM
WAITING CALLER -> CALM
LEAVING CALLER -> CALM
GONE CALLER -> CALM
WAITING LEAVES -> CALM
LEAVING LEAVES -> CALM
GONE LEAVES -> CALM
CALM TAKEN_BACK -> LEAVING
WAITING TAKEN_BACK -> LEAVING
WAITING ASKED -> WAITING
LEAVING ASKED -> WAITING
WAITING GIVEN_UP -> GONE
LEAVING GIVEN_UP -> GONE
"""
FAILED, INCOMPLETE = on.ResponseStatus.FAILED, on.ResponseStatus.INCOMPLETE
R9, X = ResponseId("r9"), ItemId("x")


def test_rows():
    assert written_rows(LULL) == ROWS.split("\n")[1:-1]


def turn(call: Call, item_id: ItemId = U1) -> None:
    """The caller says something; the server is to answer."""
    call.at(call.now_ms, on.SpeechStarted(item_id, 0))
    call.at(call.now_ms + 1_000, on.SpeechStopped(item_id, 0))
    call.now_ms += 100


def fails(call: Call, response_id: ResponseId, status: on.ResponseStatus = FAILED) -> Ms:
    call.at(call.now_ms, on.ResponseStarted(response_id), on.ResponseEnded(response_id, status, "rate_limit_exceeded"))
    return call.now_ms


def asked(call: Call) -> list[Ms]:
    return call.times(do.RequestReply)


def goodbye(call: Call, response_id: ResponseId, item_id: ItemId, tool_call_id: ToolCallId) -> None:
    """A goodbye of 1 s, and the end of its response."""
    call.at(call.now_ms, on.ResponseStarted(response_id), audio(response_id, item_id, 1_000))
    call.at(call.now_ms, called(tool_call_id, "end_call", response_id), finished(tool_call_id))
    call.at(call.now_ms + 500, ended(response_id))


# --- a goodbye that was taken back ------------------------------------------------------------------------------------


def taken_back() -> Call:
    """A result comes during the goodbye, and is told; the caller says nothing."""
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1), ended(R1))
    goodbye(call, R2, B, K2)
    call.at(1_500, finished(K1))
    call.reply(R3, C, 2_000, "The order is on its way.")
    assert asked(call) == [1_500]
    return call


def test_a_goodbye_that_was_taken_back_is_asked_for_again_once_all_is_told():
    call = taken_back()
    told_ms = int(call.line.free_ms)
    call.at(told_ms + SILENCE_MS + 500)
    (_, at_ms) = asked(call)
    assert told_ms + SILENCE_MS <= at_ms <= told_ms + SILENCE_MS + 50
    note = json.loads(call.done(do.PostFacts)[-1].text)
    assert (note["call"], "goodbye" in note["next"]) == ("still open", True)
    goodbye(call, R9, X, ToolCallId("k9"))
    call.at(60_000)
    assert len(call.done(do.HangUp)) == 1
    assert call.session.ending.by == "agent"
    assert call.anomalies() == []


def test_it_is_asked_for_once_for_each_goodbye():
    call = taken_back()
    call.at(call.now_ms + SILENCE_MS + 500)
    call.reply(R9, X, 1_000, "Is there anything else?")
    call.at(call.now_ms + 60_000)
    assert len(asked(call)) == 2
    assert call.done(do.HangUp) == []


def test_a_caller_who_speaks_has_the_call():
    call = taken_back()
    turn(call)
    call.reply(R9, X, 1_000, "We open at nine.")
    call.at(call.now_ms + 60_000)
    assert len(asked(call)) == 1


def test_a_model_that_says_goodbye_by_itself_is_not_asked():
    call = taken_back()
    goodbye(call, R9, X, ToolCallId("k9"))
    call.at(call.now_ms + 60_000)
    assert (len(asked(call)), len(call.done(do.HangUp))) == (1, 1)


def test_what_is_still_under_way_is_waited_for_and_not_for_ever():
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1), called(ToolCallId("slow"), "find"), ended(R1))
    goodbye(call, R2, B, K2)
    call.at(1_500, finished(K1))
    call.at(4_500)
    call.reply(R3, C, 1_000, "The order is on its way.")
    told_ms = int(call.line.free_ms)
    call.at(told_ms + 60_000)
    assert told_ms + UNDER_WAY_MS <= asked(call)[1] <= told_ms + UNDER_WAY_MS + 50


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "deferred"])
def test_an_outcome_that_took_the_goodbye_back_is_through_first(is_told):
    call = desk()
    underway(call)
    call.at(6_000)
    goodbye(call, R2, B, K2)
    call.at(7_500, fact(Milestone.CONFIRMED, 3))
    for number in range(1 if is_told else 3):
        assert asks(call) == number + 1
        call.reply(ResponseId(f"x{number}"), ItemId(f"y{number}"), 8_000, DONE if is_told else "Sure.", speed=4)
        played(call)
    assert records(call)[-1] == f"confirmed {'heard' if is_told else 'deferred'}"
    call.at(call.now_ms + SILENCE_MS)
    assert asks(call) == (2 if is_told else 4)
    assert json.loads(call.done(do.PostFacts)[-1].text)["call"] == "still open"


def test_a_goodbye_that_the_server_stops_without_a_word_of_the_caller_is_asked_for_again():
    call = Call()
    call.at(0, on.ResponseStarted(R1), audio(R1, A, 400), called(K1, "end_call"), finished(K1))
    call.at(300, ended(R1, CANCELLED))
    call.at(300 + SILENCE_MS)
    assert asked(call) == [300 + SILENCE_MS]
    goodbye(call, R2, B, K2)
    call.at(60_000)
    assert len(call.done(do.HangUp)) == 1


def test_nor_is_a_server_that_stops_it_again_and_again_asked_for_ever():
    call = Call()
    for number in range(ASKS_MAX + 1):
        response, tool_call = ResponseId(f"x{number}"), ToolCallId(f"k{number}")
        call.at(call.now_ms, on.ResponseStarted(response), called(tool_call, "end_call", response), finished(tool_call))
        call.at(call.now_ms + 300, ended(response, CANCELLED))
        call.at(call.now_ms + SILENCE_MS)
    assert len(asked(call)) == ASKS_MAX
    assert call.session.ending.is_failure


# --- an answer that does not come -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [FAILED, INCOMPLETE, on.ResponseStatus.COMPLETED])
def test_c095_an_answer_that_fails_or_says_nothing_is_asked_for(status):
    call = Call()
    turn(call)
    failed_ms = fails(call, R1, status)
    call.at(failed_ms + SILENCE_MS)
    assert asked(call) == [failed_ms + SILENCE_MS]
    call.reply(R2, B, 1_000, "We open at nine.")
    call.at(60_000)
    assert len(asked(call)) == 1
    assert any("rate_limit" in what for what in call.anomalies()) is (status is not on.ResponseStatus.COMPLETED)


def test_c095_a_failure_after_a_tools_output_is_asked_about():
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1), ended(R1))
    call.at(200, finished(K1))
    call.now_ms = 400
    fails(call, R2)
    call.at(400 + SILENCE_MS)
    assert asked(call) == [200, 400 + SILENCE_MS]


def test_c095_a_failure_before_the_goodbye_was_called_is_asked_about():
    """The words of a goodbye, and no call that ends the call: nothing hangs up."""
    call = Call()
    turn(call)
    call.at(call.now_ms, on.ResponseStarted(R1), audio(R1, A, 400), ended(R1, FAILED))
    call.at(call.now_ms + 400 + SILENCE_MS + 50)
    assert len(asked(call)) == 1
    goodbye(call, R2, B, K2)
    call.at(60_000)
    assert call.session.ending.by == "agent"


def test_c095_a_failure_of_the_goodbye_that_was_asked_for_again_is_asked_about():
    call = taken_back()
    call.at(call.now_ms + SILENCE_MS + 500)
    failed_ms = fails(call, R9)
    call.at(failed_ms + SILENCE_MS)
    assert asked(call)[2:] == [failed_ms + SILENCE_MS]


def test_c095_a_reminder_that_fails_to_the_end_leaves_the_outcome_to_somebody_and_the_caller_is_not_left_alone():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED))
    for number in range(3):
        call.now_ms += 500
        fails(call, ResponseId(f"x{number}"))
    assert records(call)[-1] == "confirmed deferred"
    failed_ms = call.now_ms
    call.at(failed_ms + SILENCE_MS)
    assert asked(call)[3:] == [failed_ms + SILENCE_MS]
    call.reply(R9, D, 8_000, DONE, speed=4)
    played(call)
    assert records(call)[-1] == "confirmed heard"


def test_c095_a_model_that_fails_as_often_as_it_is_asked_ends_the_call_as_a_failure():
    call = Call()
    turn(call)
    for number in range(ASKS_MAX + 1):
        assert call.session.ending is None
        fails(call, ResponseId(f"x{number}"))
        call.at(call.now_ms + SILENCE_MS)
    assert len(asked(call)) == ASKS_MAX
    assert len(call.done(do.HangUp)) == 1
    assert call.session.ending.is_failure


def test_a_model_that_leaves_every_request_unanswered_ends_the_call_as_a_failure():
    call = Call()
    turn(call)
    call.at(120_000)
    assert len(asked(call)) == REQUESTS_MAX
    assert call.times(do.HangUp) == [1_000 + (REQUESTS_MAX + 1) * REPLY_PATIENCE_MS]
    assert call.session.ending.is_failure


@pytest.mark.parametrize("is_told", [True, False], ids=["the goodbye", "the result"])
def test_a_model_that_wanted_to_leave_and_answers_nothing_more_has_its_call_ended(is_told):
    call = taken_back() if is_told else Call()
    if not is_told:
        call.at(0, on.ResponseStarted(R1), called(K1), ended(R1))
        goodbye(call, R2, B, K2)
        call.at(1_500, finished(K1))
    call.at(call.now_ms + 120_000)
    assert len(asked(call)) == is_told + REQUESTS_MAX
    assert (len(call.done(do.HangUp)), call.session.ending.is_failure) == (1, True)


def test_a_request_that_is_refused_to_the_bound_is_made_again_when_it_has_been_quiet():
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1), ended(R1))
    call.at(200, finished(K1))
    for _ in range(REQUESTS_MAX):
        call.refuse(call.done(do.RequestReply)[-1])
    call.at(200 + SILENCE_MS)
    assert asked(call) == [200, 200, 200, 200 + SILENCE_MS]


def test_a_caller_who_speaks_begins_anew():
    call = Call()
    for number in range(2 * ASKS_MAX):
        turn(call, ItemId(f"u{number}"))
        fails(call, ResponseId(f"x{number}"))
        call.at(call.now_ms + SILENCE_MS)
        call.at(call.now_ms + 100, on.ResponseStarted(ResponseId(f"z{number}")))
        call.at(call.now_ms, ended(ResponseId(f"z{number}"), FAILED))
    assert call.session.ending is None
    assert len(asked(call)) == 2 * ASKS_MAX


def test_an_app_that_interrupts_wants_silence():
    call = Call()
    turn(call)
    call.at(call.now_ms, on.ResponseStarted(R1), audio(R1, A, 3_000))
    call.at(call.now_ms + 500, on.InterruptRequested())
    call.at(call.now_ms + 100, ended(R1, CANCELLED))
    call.at(60_000)
    assert asked(call) == []


def test_a_tool_whose_answer_is_silence_is_an_answer():
    call = Call()
    turn(call)
    call.at(call.now_ms, on.ResponseStarted(R1), called(K1, "wait"), finished(K1), ended(R1))
    call.at(600_000)
    assert asked(call) == []


def test_nobody_is_asked_into_a_reply_that_is_still_playing():
    call = Call()
    turn(call)
    call.at(call.now_ms, on.ResponseStarted(R1), audio(R1, A, 20_000), ended(R1, INCOMPLETE))
    end_ms = call.now_ms + 20_000
    call.at(60_000)
    assert end_ms + SILENCE_MS <= asked(call)[0] <= end_ms + SILENCE_MS + 50


# --- the first words --------------------------------------------------------------------------------------------------


def test_a_caller_whose_first_words_were_all_lost_is_spoken_to():
    call = Call()
    call.at(100, on.FirstWordsLost(3_000))
    call.at(100 + SILENCE_MS)
    assert asked(call) == [100 + SILENCE_MS]


def test_a_caller_some_of_whose_first_words_arrived_is_answered_by_the_server():
    call = Call()
    call.at(100, on.FirstWordsLost(3_000))
    turn(call)
    call.reply(R1, A, 1_000, "We open at nine.")
    call.at(60_000)
    assert asked(call) == []


# --- a promise --------------------------------------------------------------------------------------------------------


PROMISE = "Let me check that."


def test_c094_a_promise_and_then_nothing_is_asked_about():
    call = Call()
    turn(call)
    call.reply(R1, A, 1_000, PROMISE)
    said_ms = int(call.line.free_ms)
    call.at(said_ms + SILENCE_MS + 50)
    assert said_ms <= asked(call)[0] - SILENCE_MS <= said_ms + 50
    assert any("the caller waits" in what for what in call.anomalies()), "and it is counted"


@pytest.mark.parametrize("text", ["We open at nine.", "One moment. Which order is it?"])
def test_c094_what_promises_nothing_leaves_the_floor_to_the_caller(text):
    call = Call()
    turn(call)
    call.reply(R1, A, 1_000, text)
    call.at(60_000)
    assert asked(call) == []


def test_c094_a_promise_with_its_call_is_kept():
    call = Call()
    turn(call)
    call.at(call.now_ms, on.ResponseStarted(R1), audio(R1, A, 1_000), called(K1))
    call.at(call.now_ms, on.ReplyWritten(R1, A, PROMISE), ended(R1))
    call.at(call.now_ms + 20_000)
    assert asked(call) == []


@pytest.mark.parametrize("late_ms", [0, 300])
def test_c094_a_model_that_only_promises_again_is_left_alone_until_the_caller_speaks(late_ms):
    call = Call()
    turn(call)
    for response, item in ((R1, A), (R2, B)):
        call.at(call.now_ms, on.ResponseStarted(response), audio(response, item, 1_000), ended(response))
        call.at(call.now_ms + late_ms, on.ReplyWritten(response, item, PROMISE))
        call.at(call.now_ms + 1_000 + SILENCE_MS)
    call.at(call.now_ms + 60_000)
    assert len(asked(call)) == 1
    turn(call, U2)
    call.reply(R9, X, 1_000, PROMISE)
    call.at(call.now_ms + 5_000)
    assert len(asked(call)) == 2


def replies_by_calls(lull: Lull, count: int) -> None:
    for number in range(count):
        assert lull.goes_on()
        response_id = ResponseId(f"calls{number}")
        lull.began(response_id)
        lull.called(response_id)
        lull.ended(response_id, on.ResponseStatus.COMPLETED)


def test_a_model_that_only_goes_on_to_call_tools_is_given_up():
    lull = Lull()
    lull.caller_is_through()
    replies_by_calls(lull, CALLS_MAX)
    assert not lull.goes_on()
    assert lull.stage is Stage.GONE


@pytest.mark.parametrize("who", ["caller", "agent"])
def test_whoever_says_a_word_lets_the_model_call_tools_again(who: str):
    lull = Lull()
    lull.caller_is_through()
    replies_by_calls(lull, CALLS_MAX)
    if who == "caller":
        lull.caller_spoke()
    else:
        lull.began(R1)
        lull.spoke(R1)
    replies_by_calls(lull, CALLS_MAX)
    assert not lull.goes_on()

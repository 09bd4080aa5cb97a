"""A television that is a turn at the end of every farewell does not keep a call open for good."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.drive import CANCELLED, K1, R1, R2, U1, A, B, Call, audio, called, ended, finished

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.goodbye import FAREWELLS_MAX, Goodbye
from callwright.core.session import Ending
from callwright.ids import ItemId, Ms, ResponseId, ToolCallId


def say_again(call: Call, number: int, at_ms: Ms, *, status: on.ResponseStatus = on.ResponseStatus.COMPLETED) -> None:
    """A farewell of 2 s, and a turn that begins at its end and is over a second later; ``status`` ends its response."""
    response_id, item_id = ResponseId(f"bye{number}"), ItemId(f"bye{number}")
    call.at(at_ms, on.ResponseStarted(response_id), called(ToolCallId(f"bye{number}"), "end_call", response_id))
    call.at(at_ms, finished(ToolCallId(f"bye{number}")), audio(response_id, item_id, 2_000))
    call.at(at_ms + 1_950, on.SpeechStarted(ItemId(f"noise{number}"), 0))
    call.at(at_ms + 2_000, ended(response_id, status))
    call.at(at_ms + 3_000, on.SpeechStopped(ItemId(f"noise{number}"), 0))


def test_the_last_of_three_farewells_in_a_row_stands_although_somebody_speaks_at_its_end():
    call = Call()
    for number in range(FAREWELLS_MAX):
        assert call.done(do.HangUp) == []
        say_again(call, number, number * 4_000)
    assert call.times(do.HangUp) == [(FAREWELLS_MAX - 1) * 4_000 + 2_000]
    told = [json.loads(command.output)["call"] for command in call.done(do.PostToolOutput)]
    assert told == ["still open"] * (FAREWELLS_MAX - 1) + ["over"]
    assert any("the last one stands" in what for what in call.anomalies())


@pytest.mark.parametrize(
    ("before", "unplayed_ms", "stands"),
    [(FAREWELLS_MAX - 1, 100, True), (FAREWELLS_MAX - 1, 1_000, False), (FAREWELLS_MAX - 2, 100, False)],
    ids=["the last one at its end", "the last one in its middle", "one before the last"],
)
def test_behind_its_response_only_the_last_farewell_stands_and_only_if_it_was_nearly_heard(before, unplayed_ms, stands):
    call = Call()
    for number in range(before):
        say_again(call, number, number * 4_000)
    call.at(12_000, on.ResponseStarted(R1), called(K1, "end_call"), finished(K1), audio(R1, A, 2_000))
    call.at(12_500, ended(R1))
    call.at(14_000 - unplayed_ms, on.SpeechStarted(U1, 0))
    assert call.times(do.HangUp) == ([14_000 - unplayed_ms] if stands else [])
    told = json.loads(call.done(do.PostToolOutput)[-1].output)["call"]
    assert told == ("over" if stands else "still open")


@pytest.mark.parametrize("is_cancelled_first", [False, True])
def test_a_caller_who_cuts_the_last_farewell_is_answered(is_cancelled_first):
    call = Call()
    for number in range(FAREWELLS_MAX - 1):
        say_again(call, number, number * 4_000)
    call.at(12_000, on.ResponseStarted(R1), called(K1, "end_call"), finished(K1), audio(R1, A, 2_000))
    cut = [on.SpeechStarted(U1, 0), ended(R1, CANCELLED)]
    call.at(13_000, *(reversed(cut) if is_cancelled_first else cut))
    call.at(14_000, on.SpeechStopped(U1, 0))
    assert json.loads(call.done(do.PostToolOutput)[-1].output)["call"] == "still open"
    call.reply(R2, B, 1_000, "Breakfast is included.")
    say_again(call, FAREWELLS_MAX, 20_000)
    assert call.done(do.HangUp) == []


def test_a_reply_between_two_farewells_begins_the_count_anew():
    call = Call()
    for number in range(2 * FAREWELLS_MAX):
        say_again(call, number, number * 6_000)
        call.reply(ResponseId(f"answer{number}"), ItemId(f"answer{number}"), 1_000, "It is on floor two.")
    assert call.done(do.HangUp) == []


@given(st.lists(st.sampled_from(["whole", "whole to its end", "cut", "other"]), max_size=8))
def test_only_farewells_in_a_row_that_came_whole_make_the_next_one_the_last(course):
    goodbye = Goodbye()
    before_the_last = FAREWELLS_MAX - 1
    for number, kind in enumerate(course):
        response_id = ResponseId(f"r{number}")
        status = CANCELLED if kind == "cut" else on.ResponseStatus.COMPLETED
        if kind == "other":
            goodbye.response_ended(response_id, status)
            continue
        goodbye.request(response_id, Ending("agent", ""), 0, said_ms=0)
        is_last = number >= before_the_last and all(
            each.startswith("whole") for each in course[number - before_the_last : number]
        )
        assert goodbye.stands(0) is is_last
        if kind == "whole to its end":
            goodbye.response_ended(response_id, status)
            assert goodbye.stands(0) is is_last
        goodbye.withdraw(0)
        if kind != "whole to its end":
            goodbye.response_ended(response_id, status)

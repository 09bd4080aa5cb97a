"""Tools that people saw fail in real calls, told to the session in numbers. The id is that of the case."""

from __future__ import annotations

import json
from itertools import permutations

import pytest
from tests.core.drive import (
    CANCELLED,
    K1,
    R1,
    R2,
    R3,
    A,
    B,
    Call,
    audio,
    both_lines,
    called,
    ended,
    finished,
    speaks,
    stops,
)

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.lull import SILENCE_MS
from callwright.ids import ItemId, ResponseId, ToolCallId


def test_c075_speech_right_after_the_call_does_not_touch_the_tool():
    """Its output goes out once; the reply to the caller's turn covers it, so none is asked for."""
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1))
    call.at(10, speaks())
    call.at(40, ended(R1, CANCELLED))
    call.at(800, stops())
    call.at(1_500, finished(K1))
    (output,) = call.done(do.PostToolOutput)
    assert output.output == f"output of {K1}"
    call.at(1_700)
    call.reply(R2, A, 500, "both")
    call.at(9_000)
    assert call.done(do.RequestReply) == []
    assert call.heard()[A] == ("both", "whole")


@pytest.mark.parametrize("answers", [["wait"], ["wait", "wait"], ["speech"], ["speech", "wait"]])
def test_a_caller_whose_turns_are_answered_with_silence_has_not_moved_on(answers):
    """ "Sure, take your time": the model waits, and what it looks up is told when it is there."""
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1), ended(R1))
    for number, answer in enumerate(answers, 1):
        item, response, tool_call = ItemId(f"u{number}"), ResponseId(f"a{number}"), ToolCallId(f"a{number}")
        call.at(number * 2_000, speaks(item))
        call.at(call.now_ms + 500, stops(item), on.ResponseStarted(response))
        if answer == "wait":
            call.at(call.now_ms, called(tool_call, "wait", response), finished(tool_call), ended(response))
        else:
            call.at(call.now_ms, audio(response, item, 200), ended(response))
    call.at(8_000, finished(K1))
    assert call.times(do.RequestReply) == ([] if "speech" in answers else [8_000])


def test_c073_a_result_is_delivered_although_the_reply_was_interrupted():
    """The tool is through at 600 ms; the caller spoke at 550 ms and his turn cancelled the response."""
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1))
    call.at(550, speaks())
    call.at(560, ended(R1, CANCELLED))
    call.at(600, finished(K1))
    assert [at_ms for at_ms, command in call.log if isinstance(command, do.PostToolOutput)] == [600]


def test_c080_a_result_makes_no_second_reply_beside_the_servers_own():
    """The tool ends while the server answers the caller by itself: one response at a time, none asked for twice."""
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1), ended(R1))
    call.at(2_100, speaks())
    call.at(2_600, stops())
    call.at(2_700, on.ResponseStarted(R2), audio(R2, B, 200))
    call.at(3_000, finished(K1))
    call.at(4_000, ended(R2))
    call.at(20_000)
    assert call.done(do.RequestReply) == []


def test_c077_six_calls_get_six_outputs_whatever_happened_to_them():
    """Returned, raised, timed out, cancelled before the start, no such tool, arguments that are no JSON."""
    call = Call()
    outcomes = {
        "k-ok": on.ToolOutcome.RETURNED,
        "k-raises": on.ToolOutcome.RAISED,
        "k-late": on.ToolOutcome.TIMED_OUT,
        "k-cancelled": on.ToolOutcome.CANCELLED,
        "k-json": on.ToolOutcome.RAISED,
    }
    call.at(0, on.ResponseStarted(R1))
    for key in outcomes:
        call.at(10, on.ToolCalled(R1, A, key, "look_up", "{" if key == "k-json" else ""))
    call.at(20, called("k-unknown", "no_such"))
    call.at(30, ended(R1))
    for number, (key, outcome) in enumerate(outcomes.items()):
        call.at(100 + number, finished(key, outcome))
    outputs = [output.tool_call_id for output in call.done(do.PostToolOutput)]
    assert sorted(outputs) == sorted([*outcomes, "k-unknown"])
    assert len(call.done(do.RequestReply)) == 1
    assert call.times(do.RequestReply) == [104]
    assert call.session.tools.unanswered() == ()


@pytest.mark.parametrize("order", list(permutations(["arguments", "item", "response"])))
def test_c078_a_call_that_is_announced_in_several_ways_runs_once(order):
    """Its id makes it one; the end of its response and a repetition 2 s later change nothing."""
    call = Call()
    call.at(0, on.ResponseStarted(R1))
    for number, way in enumerate(order):
        call.at(10 * number, called(K1), *([ended(R1)] if way == "response" else []))
    call.at(500, finished(K1))
    call.at(2_000, called(K1))
    assert len(call.done(do.StartTool)) == len(call.done(do.PostToolOutput)) == len(call.done(do.RequestReply)) == 1


@both_lines
@pytest.mark.parametrize("name", ["look_up", "end_call"])
def test_c081_a_call_of_a_response_that_was_cut_is_not_run_and_says_so(name, reports):
    call = Call(reports)
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 1_000)
    call.at(1_000, speaks())
    call.at(1_020, called(K1, name))
    call.at(1_050, ended(R1, CANCELLED), stops())
    assert call.done(do.StartTool) == []
    (output,) = call.done(do.PostToolOutput)
    assert json.loads(output.output) == {"error": "not run: the caller spoke first"}
    call.reply(R2, B, 400, "yes?")
    call.at(3_000)
    assert call.done(do.RequestReply) == []
    assert call.heard()[B] == ("yes?", "whole")
    assert call.done(do.HangUp) == []


def test_c090_a_result_that_an_empty_response_did_not_speak_is_asked_for_again_without_the_caller():
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1), ended(R1))
    call.at(200, finished(K1))
    call.at(400, on.ResponseStarted(R2), ended(R2))
    call.at(400 + SILENCE_MS)
    assert call.times(do.RequestReply) == [200, 400 + SILENCE_MS]
    assert 200 + SILENCE_MS < 4_000
    call.reply(R3, B, 500, "the result")
    call.at(30_000)
    assert len(call.done(do.RequestReply)) == 2
    assert list(call.heard().values()) == [("the result", "whole")]


@pytest.mark.parametrize("failure", [on.ToolOutcome.RAISED, on.ToolOutcome.TIMED_OUT])
@pytest.mark.parametrize("after_ms", [0, 2_000])
def test_c087_a_tool_that_fails_gives_an_output_and_a_reply_at_once(failure, after_ms):
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1), ended(R1))
    commands = call.at(after_ms, finished(K1, failure))
    assert [type(command) for command in commands] == [do.NoteAnomaly, do.PostToolOutput, do.RequestReply]


@pytest.mark.parametrize(
    ("outcome", "raised", "note"),
    [
        (on.ToolOutcome.RAISED, "KeyError", "tool look_up raised KeyError"),
        (on.ToolOutcome.TIMED_OUT, "", "tool look_up timed out"),
    ],
)
def test_c087_a_tool_that_fails_is_noted_by_its_name_and_the_type_of_its_exception(outcome, raised, note):
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1), ended(R1))
    call.at(100, on.ToolFinished(K1, outcome, "{}", raised=raised))
    assert [command.text for command in call.done(do.NoteAnomaly)] == [note]


def test_c087_an_unknown_tool_is_answered_with_the_names_of_the_known_ones():
    call = Call()
    call.at(0, on.ResponseStarted(R1))
    (output,) = call.at(0, called(K1, "no_such"))
    assert json.loads(output.output) == {"error": "there is no tool 'no_such'; tools: look_up, find, wait, end_call"}
    assert [type(command) for command in call.at(50, ended(R1))] == [do.RequestReply]


def test_c093_an_output_is_followed_by_one_request_for_a_reply():
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1), ended(R1))
    call.at(200, finished(K1))
    call.at(60, on.ResponseStarted(R2), audio(R2, B, 200))
    call.at(300, ended(R2))
    call.at(20_000)
    assert len(call.done(do.RequestReply)) == 1
    assert all(type(output.output) is str for output in call.done(do.PostToolOutput))


def test_c093_a_tool_whose_answer_is_silence_asks_for_nothing():
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1, "wait"), ended(R1))
    call.at(200, finished(K1))
    call.at(20_000)
    assert len(call.done(do.PostToolOutput)) == 1
    assert call.done(do.RequestReply) == []

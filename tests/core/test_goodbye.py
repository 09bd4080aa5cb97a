"""Hanging up is a transaction: what was said is heard to its end first, and everything before that can take it back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.drive import (
    BOTH_LINES,
    CANCELLED,
    K1,
    K2,
    MARKS,
    R1,
    R2,
    U1,
    A,
    B,
    Call,
    FakeLine,
    audio,
    called,
    ended,
    finished,
)
from tests.core.machines import written_rows

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.goodbye import (
    AT_ONCE_MS,
    FIRST_AUDIO_MS,
    GOODBYE,
    HANDOVER_MS,
    LOOK_MS,
    MORE_AUDIO_MS,
    QUIET_MS,
    STALL_CAP_MS,
    Stage,
)
from callwright.core.session import Ending
from callwright.ids import Ms

FAILED, INCOMPLETE = on.ResponseStatus.FAILED, on.ResponseStatus.INCOMPLETE
PENDING = ("SPEAKING", "DOUBTED", "PLAYING", "HELD", "LISTENING")
ROWS = f"""
NONE REQUESTED -> SPEAKING
SPEAKING SPOKEN -> PLAYING
SPEAKING TALKED_OVER -> DOUBTED
DOUBTED SPOKEN -> PLAYING
PLAYING RESUMED -> SPEAKING
PLAYING WORKING -> HELD
PLAYING LOUD -> LISTENING
HELD RESUMED -> SPEAKING
HELD AUDIO -> PLAYING
HELD LOUD -> LISTENING
LISTENING RESUMED -> SPEAKING
LISTENING AUDIO -> PLAYING
LISTENING WORKING -> HELD
{chr(10).join(f"{stage} WITHDRAWN -> NONE" for stage in PENDING)}
{chr(10).join(f"{stage} ENDED -> DONE" for stage in PENDING)}
"""


def test_rows():
    assert written_rows(GOODBYE) == ROWS.split("\n")[1:-1]


def begin(call: Call, name: str = "end_call", said_ms: Ms = 40) -> None:
    """The response opens, says a first piece, and calls the tool, which returns at once."""
    call.at(call.now_ms, on.ResponseStarted(R1))
    if said_ms:
        call.at(call.now_ms, audio(R1, A, said_ms))
    call.at(call.now_ms, called(K1, name), finished(K1))


def say(call: Call, ms: Ms = 3_000, *, speed: float = 10) -> None:
    """A goodbye of ``ms``, delivered ``speed`` times as fast as it plays; its response ends 436 ms after the last."""
    begin(call)
    call.stream(R1, A, ms - 40, speed=speed)
    call.at(call.now_ms + 436, ended(R1))


def outputs(call: Call) -> dict[str, dict[str, str]]:
    """What each end call was answered: one output each."""
    posted = call.done(do.PostToolOutput)
    assert len({command.tool_call_id for command in posted}) == len(posted)
    return {command.tool_call_id: json.loads(command.output) for command in posted}


def hung_up(call: Call) -> Ms:
    (at_ms,) = call.times(do.HangUp)
    return at_ms


def is_withdrawn(call: Call) -> bool:
    """The call goes on, and the model is told nothing else (C053)."""
    told = outputs(call)[K1]
    assert told["call"] == "still open"
    assert not any(word in " ".join(told.values()) for word in ("ending", "ended", "over", "hung up"))
    return not call.done(do.HangUp) and call.session.ending is None


# --- a goodbye that stands ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("reports", BOTH_LINES)
def test_c050_the_line_is_hung_up_when_the_last_of_the_goodbye_was_played(reports):
    """3 s of it come within 300 ms; a hang-up when it was sent would leave the caller half a word."""
    call = Call(FakeLine(reports))
    say(call)
    call.at(20_000)
    assert 3_000 <= hung_up(call) <= 3_020
    assert call.line.heard_ms(A, 20_000) == 3_000
    assert call.session.ending == Ending("agent", "output of k1")
    assert outputs(call) == {K1: {"call": "over"}}
    assert call.anomalies() == []
    assert [type(command) for _, command in call.log[-3:]] == [do.PostToolOutput, do.HangUp, do.CloseModel]


def test_c050_a_carrier_that_holds_200_ms_back_is_waited_for():
    call = Call(FakeLine(MARKS, lag_ms=200))
    say(call)
    call.at(20_000)
    assert 3_200 <= hung_up(call) <= 3_700


def test_c050_without_any_mark_the_line_is_hung_up_at_the_cap_unconfirmed():
    call = Call(FakeLine(MARKS, lost_marks=range(1, 100)))
    say(call)
    call.at(60_000)
    assert hung_up(call) == 280 + STALL_CAP_MS
    assert ["unconfirmed" in what for what in call.anomalies()] == [True]
    assert call.session.ending == Ending("agent", "output of k1")


def test_a_goodbye_longer_than_the_cap_is_not_cut_by_a_line_that_returns_no_marks():
    call = Call(FakeLine(MARKS, lost_marks=range(1, 200)))
    say(call, 15_000, speed=30)
    call.at(60_000)
    assert hung_up(call) == 15_000 + 1_000
    assert call.line.heard_ms(A, 60_000) == 15_000


@pytest.mark.parametrize("speed", [1, 30, 1_000])
@pytest.mark.parametrize("reports", BOTH_LINES)
def test_c051_a_goodbye_of_15_s_plays_whole(reports, speed):
    call = Call(FakeLine(reports))
    say(call, 15_000, speed=speed)
    call.at(60_000)
    assert 15_000 <= hung_up(call) < 15_500
    assert call.anomalies() == []


class StallingLine(FakeLine):
    """Plays until ``stalls_at_ms`` and then stands still, without a word."""

    stalls_at_ms = 6_000

    def heard_ms(self, item_id: Any, now_ms: Ms) -> Ms:
        return super().heard_ms(item_id, min(now_ms, self.stalls_at_ms))

    def next_report_ms(self, after_ms: Ms) -> Ms | None:
        at_ms = super().next_report_ms(after_ms)
        return None if at_ms is None or at_ms > self.stalls_at_ms else at_ms

    def said(self, now_ms: Ms) -> Any:
        return super().said(min(now_ms, self.stalls_at_ms))


@pytest.mark.parametrize("reports", BOTH_LINES)
def test_c051_a_line_that_stalls_for_good_is_left_8_s_after_its_last_progress(reports):
    call = Call(StallingLine(reports))
    say(call, 15_000, speed=30)
    call.at(60_000)
    assert 6_000 + STALL_CAP_MS - 200 <= hung_up(call) <= 6_000 + STALL_CAP_MS + LOOK_MS
    assert ["unconfirmed" in what for what in call.anomalies()] == [True]


def test_what_a_pulled_line_tells_only_when_it_is_looked_at_counts_as_progress():
    """The pump keeps its reports back until something else happens: here that is the timer."""
    call = Call()
    say(call, 15_000, speed=30)
    reports = call.line.said
    call.line.next_report_ms = lambda after_ms: None
    while not call.done(do.HangUp):
        due_ms = call.session.next_deadline_ms()
        assert due_ms is not None
        call.now_ms = due_ms
        for event in (*reports(due_ms), on.TimerFired()):
            call.session.handle(event, due_ms)
            call.log += [(due_ms, command) for command in call.session.commands()]
    assert 15_000 <= hung_up(call) <= 15_000 + LOOK_MS
    assert call.anomalies() == []


def test_behind_a_fixed_lag_the_last_word_reaches_the_ear_before_the_line_ends():
    call = Call(latency_ms=400)
    say(call)
    call.at(20_000)
    assert 3_400 <= hung_up(call) <= 3_420
    assert call.heard()[A] == ("", "none")  # no text was written, and no part of it was lost
    assert all(turn.cut_ms is None for turn in call.session.transcript())


def test_a_stall_in_the_stream_is_not_the_end_of_a_goodbye():
    call = Call()
    begin(call, said_ms=400)
    call.at(5_000, audio(R1, A, 400))
    assert call.times(do.HangUp) == []
    call.at(9_000, ended(R1))
    assert hung_up(call) == 9_000


@pytest.mark.parametrize("status", [FAILED, INCOMPLETE])
def test_a_goodbye_whose_response_breaks_off_still_ends_the_call(status):
    call = Call()
    begin(call)
    call.stream(R1, A, 1_000)
    call.at(1_500, ended(R1, status))
    assert hung_up(call) == 1_500


def test_a_response_that_never_ends_is_left_at_the_cap():
    call = Call()
    begin(call, said_ms=600)
    call.at(60_000)
    assert hung_up(call) == 600 + STALL_CAP_MS
    assert call.anomalies()[-1] == "hung up unconfirmed: the model did not end the response that says goodbye"


def test_a_goodbye_without_audio_ends_the_call_after_the_grace():
    call = Call()
    begin(call, said_ms=0)
    call.at(300, ended(R1))
    call.at(60_000)
    assert hung_up(call) == 300 + FIRST_AUDIO_MS


@pytest.mark.parametrize("said_ms", [0, 200])
def test_a_response_that_is_done_before_its_audio_comes_is_played_whole(said_ms):
    """One of two behaviours that were measured: the call's response ends the moment the call is sent."""
    call = Call()
    begin(call, said_ms=said_ms)
    call.at(AT_ONCE_MS, ended(R1))
    call.at(700)
    for number in range(10):
        call.at(700 + 200 * number, audio(R1, A, 200))
    call.at(60_000)
    assert call.line.heard_ms(A, 60_000) == 2_000 + said_ms
    assert hung_up(call) == 700 + 1_800 + MORE_AUDIO_MS


def test_a_goodbye_that_was_said_before_the_call_needs_no_wait_for_more():
    """A model that speaks itself calls at the end of what it says, and its response is done at once."""
    call = Call()
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 3_000, speed=1.2)
    call.at(call.now_ms, called(K1, "end_call"), finished(K1), ended(R1))
    call.at(60_000)
    assert 3_000 <= hung_up(call) <= 3_020


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (on.ToolOutcome.RAISED, "the end call raised"),
        (on.ToolOutcome.TIMED_OUT, "the end call timed out"),
        (on.ToolOutcome.CANCELLED, "the end call cancelled"),
    ],
)
def test_a_function_that_fails_does_not_keep_the_call_open(outcome, reason):
    call = Call()
    call.at(0, on.ResponseStarted(R1), audio(R1, A, 600), called(K1, "end_call"), finished(K1, outcome))
    call.at(1_036, ended(R1))
    assert call.session.ending == Ending("agent", reason)


def test_a_second_end_call_joins_the_first_and_each_has_one_output():
    call = Call()
    begin(call)
    call.at(100, called(K2, "end_call"), called(K2, "end_call"), finished(K2))
    call.stream(R1, A, 1_000)
    call.at(1_500, ended(R1))
    assert call.done(do.WatchCaller) == [do.WatchCaller()]
    assert outputs(call) == {K1: {"call": "over"}, K2: {"call": "over"}}
    assert hung_up(call) == 1_500


# --- a goodbye that is taken back ---------------------------------------------------------------------------------


@pytest.mark.parametrize("is_cancelled_first", [True, False])
@pytest.mark.parametrize("reports", BOTH_LINES)
def test_a_caller_who_talks_over_it_takes_it_back_whichever_word_of_it_comes_first(reports, is_cancelled_first):
    call = Call(FakeLine(reports))
    begin(call)
    call.stream(R1, A, 1_400)
    words = [on.SpeechStarted(U1, 700), ended(R1, CANCELLED)]
    call.at(1_500, *(reversed(words) if is_cancelled_first else words))
    call.at(3_000, on.SpeechStopped(U1, 2_000), on.ResponseStarted(R2))
    assert is_withdrawn(call)
    assert call.times(do.PostToolOutput) == [1_500]
    assert call.done(do.RequestReply) == [], "the server answers the caller by itself"
    assert call.done(do.UnwatchCaller) == [do.UnwatchCaller()]
    assert [item_id for item_id, _ in call.cuts()] == [A]


@pytest.mark.parametrize("at_ms", [200, 3_400])
def test_it_is_taken_back_in_the_first_word_and_after_the_last(at_ms):
    call = Call()
    begin(call)
    call.at(200, audio(R1, A, 200))
    if at_ms > 200:
        call.stream(R1, A, 2_800)
        call.at(3_150, on.CallerLoud(is_loud=True), ended(R1))
    call.at(at_ms, on.SpeechStarted(U1, 0))
    assert is_withdrawn(call)


def test_a_murmur_changes_nothing():
    """The server calls it no turn."""
    call = Call()
    begin(call)
    call.at(500, on.CallerLoud(is_loud=True))
    call.at(800, on.CallerLoud(is_loud=False))
    call.stream(R1, A, 2_000)
    call.at(2_950, ended(R1))
    assert hung_up(call) == 2_950
    assert outputs(call) == {K1: {"call": "over"}}


def test_c053_a_second_goodbye_works_like_the_first():
    call = Call()
    say(call)
    call.at(1_000, on.SpeechStarted(U1, 0), on.SpeechStopped(U1, 0))
    call.reply(R2, B, 1_000)
    start_ms = call.now_ms + 3_000
    response = on.ResponseStarted
    call.at(start_ms, response("r3"), called(K2, "end_call", "r3"), audio("r3", "c", 1_000), finished(K2))
    call.at(start_ms + 1_436, ended("r3"))
    call.at(60_000)
    assert hung_up(call) == start_ms + 1_436
    assert {key: told["call"] for key, told in outputs(call).items()} == {K1: "still open", K2: "over"}


def test_a_function_that_still_runs_when_the_caller_speaks_gets_no_second_output():
    call = Call()
    call.at(0, on.ResponseStarted(R1), audio(R1, A, 400), called(K1, "end_call"))
    call.at(300, on.SpeechStarted(U1, 0))
    assert is_withdrawn(call)
    assert call.at(900, finished(K1)) == []


def test_an_end_call_while_the_caller_speaks_is_not_carried_out():
    call = Call()
    call.at(0, on.SpeechStarted(U1, 0), on.ResponseStarted(R1), called(K1, "end_call"), finished(K1))
    assert is_withdrawn(call)


def test_late_audio_of_a_goodbye_that_was_talked_over_is_not_played():
    """Its response was done before its audio came, so nothing of it was open or under way when the caller spoke."""
    call = Call()
    begin(call, said_ms=0)
    call.at(10, ended(R1))
    call.at(300, on.SpeechStarted(U1, 0))
    assert call.at(400, audio(R1, A, 200)) == []
    assert is_withdrawn(call)


# --- whoever is loud at the end -----------------------------------------------------------------------------------


def test_a_caller_who_is_loud_at_the_end_is_waited_for_until_the_server_decides():
    """The server needs most of a second to tell a turn."""
    call = Call()
    say(call)
    call.at(2_900, on.CallerLoud(is_loud=True))
    call.at(3_700)
    assert call.session.leave.goodbye.stage is Stage.LISTENING
    call.at(3_700, on.SpeechStarted(U1, 2_900))
    assert is_withdrawn(call)


def test_a_noise_that_the_server_does_not_take_for_a_turn_holds_the_hang_up_for_one_second():
    call = Call()
    say(call)
    call.at(2_900, on.CallerLoud(is_loud=True))
    call.at(20_000)
    assert 4_000 <= hung_up(call) <= 4_020


def test_the_wait_ends_when_the_caller_has_been_quiet_for_a_while():
    call = Call()
    say(call)
    call.at(2_000, on.CallerLoud(is_loud=True))
    call.at(2_900, on.CallerLoud(is_loud=False))
    call.at(20_000)
    assert hung_up(call) == 2_900 + QUIET_MS


def test_who_was_quiet_well_before_the_end_is_not_waited_for():
    call = Call()
    say(call)
    call.at(2_000, on.CallerLoud(is_loud=True))
    call.at(2_700, on.CallerLoud(is_loud=False))
    call.at(20_000)
    assert 3_000 <= hung_up(call) <= 3_020


# --- work that still runs -----------------------------------------------------------------------------------------


def start_work(call: Call, name: str = "look_up") -> None:
    call.at(0, on.ResponseStarted("r0"), called(K2, name, "r0"), ended("r0"))


def test_a_result_that_comes_after_the_goodbye_is_told_before_the_call_ends():
    call = Call()
    start_work(call)
    say(call)
    call.at(6_000)
    assert call.session.leave.goodbye.stage is Stage.HELD
    commands = call.at(6_000, finished(K2))
    assert [type(command) for command in commands] == [
        do.PostToolOutput,
        do.UnwatchCaller,
        do.PostToolOutput,
        do.RequestReply,
    ]
    told = json.loads(call.done(do.PostToolOutput)[-1].output)
    assert (told["call"], "result" in told["because"]) == ("still open", True)
    assert call.times(do.HangUp) == []


def test_a_result_that_comes_during_the_goodbye_takes_it_back_and_lets_it_play():
    call = Call()
    start_work(call)
    begin(call)
    call.stream(R1, A, 1_000)
    call.at(1_000, finished(K2))
    call.at(1_400, ended(R1))
    assert call.times(do.RequestReply) == [1_400], "when the floor is free"
    assert call.times(do.ClearPlayout) == []
    assert call.times(do.HangUp) == []


def test_a_result_is_told_although_the_caller_has_moved_on_since_he_asked():
    call = Call()
    start_work(call)
    call.at(0, on.SpeechStarted(U1, 0), on.SpeechStopped(U1, 0))
    say(call)
    call.at(6_000, finished(K2))
    assert call.times(do.RequestReply) == [6_000]


def test_work_that_does_not_end_is_handed_over_at_the_bound_and_named():
    call = Call()
    start_work(call)
    say(call)
    call.at(60_000)
    assert 3_000 <= hung_up(call) - HANDOVER_MS <= 3_020
    assert call.anomalies() == ["hung up while this still ran: look_up (k2)"]
    assert outputs(call) == {K1: {"call": "over"}}
    assert call.at(60_000, finished(K2)) == []


def test_a_tool_that_has_nothing_to_tell_is_waited_for_and_then_the_call_ends():
    call = Call()
    start_work(call, "wait")
    say(call)
    call.at(5_000, finished(K2))
    assert hung_up(call) == 5_000


# --- whatever else ends a call ------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["caller", "fault"])
def test_c059_whoever_ends_the_line_first_has_ended_the_call(by):
    call = Call()
    say(call)
    call.at(2_950, on.LineClosed(by, "gone"))
    call.at(60_000, on.LineClosed("agent", "hung up"), on.HangUpRequested("again"))
    assert call.session.ending == Ending(by, "gone")
    assert call.done(do.HangUp) == []
    assert outputs(call) == {K1: {"call": "over"}}
    assert call.anomalies() == []


def test_the_app_hangs_up_at_once():
    call = Call()
    begin(call)
    commands = call.at(100, on.HangUpRequested("now"))
    assert [type(command) for command in commands] == [do.PostToolOutput, do.HangUp, do.CloseModel]
    assert call.session.ending == Ending("agent", "now")


def test_an_app_that_interrupts_the_farewell_has_not_talked_over_it():
    call = Call()
    begin(call)
    call.stream(R1, A, 1_000)
    call.at(1_000, on.InterruptRequested())
    assert call.done(do.HangUp) == []
    call.at(1_100, ended(R1, CANCELLED))
    assert hung_up(call) == 1_100
    assert outputs(call) == {K1: {"call": "over"}}


def test_an_app_that_interrupts_a_farewell_whose_response_has_ended_hangs_up():
    call = Call()
    say(call)
    call.at(1_500, on.InterruptRequested())
    assert hung_up(call) == 1_500


def test_a_model_that_goes_after_its_response_does_not_cut_the_farewell():
    call = Call()
    say(call)
    call.at(1_000, on.ModelClosed(1006, ""))
    call.at(20_000)
    assert 3_000 <= hung_up(call) <= 3_020
    assert call.session.ending == Ending("agent", "output of k1")
    assert call.done(do.PostToolOutput) == [], "there is nobody to post it to"
    assert [what.partition(";")[0] for what in call.anomalies()] == ["connection closed: 1006"]


def test_a_model_that_goes_in_its_farewell_has_ended_the_call_when_what_came_of_it_was_played():
    call = Call()
    begin(call)
    call.stream(R1, A, 2_000, speed=4)
    call.at(600, on.ModelClosed(1006, ""))
    call.at(20_000)
    assert 2_040 <= hung_up(call) <= 2_060
    assert call.session.ending == Ending("model", "connection closed: 1006")


def test_nothing_is_asked_of_a_model_that_is_gone():
    call = Call()
    start_work(call)
    say(call)
    call.at(1_000, on.ModelClosed(1006, ""))
    call.log.clear()
    call.at(1_500, finished(K2), on.InterruptRequested())
    call.at(60_000)
    asked = [command for _, command in call.log if isinstance(command, do.Request)]
    assert (asked, len(call.done(do.HangUp))) == ([], 1)

"""A server that begins something and does not end it keeps nobody silent for good."""

from __future__ import annotations

import pytest
from tests.core.drive import CANCELLED, EVERYTHING, K1, R1, R2, U1, A, B, Call, audio, called, ended, finished

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.lull import ASKS_MAX, SILENCE_MS
from callwright.core.session import Can
from callwright.core.stalls import BY_HAND_MAX, HANGS_MS, LISTEN_MS, QUIET_MS, TURN_MAX_MS
from callwright.core.turns import REPLY_PATIENCE_MS
from callwright.ids import ItemId, Ms, ResponseId


def hung(call: Call, audio_ms: Ms = 0) -> Ms:
    """The caller's turn, and a response that brings so much audio and no end; when the last of it was played."""
    call.at(0, on.SpeechStarted(U1, 0))
    call.at(1_000, on.SpeechStopped(U1, 0), on.ResponseStarted(R1))
    if audio_ms:
        call.at(1_000, audio(R1, A, audio_ms))
    return 1_000 + audio_ms


@pytest.mark.parametrize("audio_ms", [0, 4_000])
def test_a_response_that_hangs_is_cancelled_and_asked_for_again(audio_ms):
    call = Call()
    played_ms = hung(call, audio_ms)
    call.at(played_ms + HANGS_MS - 1)
    assert (call.done(do.CancelResponse), call.done(do.RequestReply)) == ([], [])
    call.at(played_ms + HANGS_MS)
    assert [command.response_id for command in call.done(do.CancelResponse)] == [R1]
    call.at(call.now_ms + 100, ended(R1, CANCELLED))
    call.at(call.now_ms + SILENCE_MS)
    assert len(call.done(do.RequestReply)) == 1
    assert len(call.anomalies()) == 2, "it was given up, and asked for again: its end is no third"
    call.reply(R2, B, 1_000, "We open at nine.")
    call.at(120_000)
    assert (len(call.done(do.RequestReply)), call.session.ending) == (1, None)


def test_what_a_hung_response_still_sends_is_not_played_over_the_next():
    call = Call()
    call.at(hung(call) + HANGS_MS)
    assert call.at(call.now_ms, audio(R1, A, 500)) == []


def test_a_slow_reply_is_waited_for():
    """Its response opens at once, and its audio comes 4 s after."""
    call = Call()
    call.at(hung(call) + 4_000, audio(R1, A, 12_000))
    call.at(call.now_ms + 14_000, audio(R1, A, 1_000), ended(R1))
    call.at(call.now_ms + 60_000)
    assert (call.done(do.CancelResponse), call.done(do.RequestReply)) == ([], [])


def test_a_server_that_cannot_cancel_is_asked_and_where_it_refuses_to_the_bound_the_call_ends():
    call = Call(can=EVERYTHING & ~Can.CANCEL)
    call.at(hung(call) + HANGS_MS)
    while call.session.ending is None:
        call.at(call.now_ms + SILENCE_MS)
        for request in call.done(do.RequestReply):
            call.refuse(request, "conversation_already_has_active_response")
        assert call.now_ms < 60_000
    assert call.done(do.CancelResponse) == []
    assert call.session.ending.is_failure


def test_a_server_that_hangs_every_time_ends_the_call_as_a_failure():
    call = Call()
    call.at(hung(call) + HANGS_MS)
    for number in range(ASKS_MAX):
        call.at(call.now_ms + SILENCE_MS, on.ResponseStarted(ResponseId(f"x{number}")))
        call.at(call.now_ms + HANGS_MS)
    call.at(call.now_ms + SILENCE_MS)
    assert (len(call.done(do.HangUp)), call.session.ending.is_failure) == (1, True)


def test_a_response_that_hangs_behind_the_callers_turn_does_not_keep_its_answer():
    """He talks over it; the server hears that, and neither ends the response nor answers him."""
    call = Call()
    call.at(0, on.ResponseStarted(R1), audio(R1, A, 20_000))
    call.at(500, on.SpeechStarted(U1, 0))
    call.at(1_500, on.SpeechStopped(U1, 0))
    call.at(1_500 + HANGS_MS + REPLY_PATIENCE_MS)
    assert call.times(do.RequestReply) == [1_500 + HANGS_MS + REPLY_PATIENCE_MS]


def test_the_output_of_a_tool_is_spoken_about_although_its_response_hangs():
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1))
    call.at(200, finished(K1))
    call.at(HANGS_MS)
    assert call.times(do.RequestReply) == [HANGS_MS]


def test_a_turn_that_the_server_does_not_end_is_ended_by_hand_once_the_line_has_been_quiet():
    call = Call()
    call.at(0, on.SpeechStarted(U1, 0))
    call.at(LISTEN_MS)
    assert call.done(do.WatchCaller) == [do.WatchCaller()]
    call.at(LISTEN_MS + 100, on.CallerLoud(is_loud=True))
    call.at(30_000, on.CallerLoud(is_loud=False))
    assert call.done(do.EndTurn) == []
    call.at(30_000 + QUIET_MS)
    assert call.done(do.UnwatchCaller) == [do.UnwatchCaller()]
    assert [type(command) for _, command in call.log[-2:]] == [do.EndTurn, do.RequestReply]
    assert call.times(do.EndTurn) == call.times(do.RequestReply) == [30_000 + QUIET_MS]


def test_c070_a_turn_that_noise_keeps_open_is_ended_by_hand_at_the_bound():
    """Music or a television is voice to a server for as long as it sounds, and the caller waits behind it."""
    call = Call()
    call.at(0, on.SpeechStarted(U1, 0))
    call.at(LISTEN_MS + 100, on.CallerLoud(is_loud=True))
    call.at(TURN_MAX_MS)
    assert call.times(do.EndTurn) == call.times(do.RequestReply) == [TURN_MAX_MS]
    call.reply(R1, A, 1_000, "It is on floor two.")
    assert call.session.ending is None


def test_a_call_in_which_noise_ends_every_reply_before_it_is_heard_is_given_up():
    call = Call()
    for number in range(BY_HAND_MAX):
        began_ms = number * (TURN_MAX_MS + 500)
        call.at(began_ms, on.SpeechStarted(ItemId(f"noise{number}"), 0))
        call.at(began_ms + LISTEN_MS + 100, on.CallerLoud(is_loud=True))
        assert call.session.ending is None
        call.at(began_ms + TURN_MAX_MS)
        response_id = ResponseId(f"unheard{number}")
        call.at(began_ms + TURN_MAX_MS + 100, on.ResponseStarted(response_id), ended(response_id, CANCELLED))
    assert call.times(do.HangUp) == [(BY_HAND_MAX - 1) * (TURN_MAX_MS + 500) + TURN_MAX_MS]
    assert call.session.ending.by == "model"


def test_a_turn_over_an_open_response_is_ended_by_hand_and_the_answer_asked_for_behind_it():
    call = Call()
    call.at(0, on.ResponseStarted(R1), on.SpeechStarted(U1, 0))
    call.at(LISTEN_MS + QUIET_MS)
    assert call.times(do.EndTurn) == [LISTEN_MS + QUIET_MS]
    assert call.done(do.RequestReply) == []


def test_a_caller_who_talks_for_long_is_listened_to_until_he_is_through():
    call = Call()
    call.at(0, on.SpeechStarted(U1, 0))
    for at_ms in range(6_000, 54_000, 6_000):
        call.at(at_ms, on.CallerLoud(is_loud=True))
        call.at(at_ms + 3_000, on.CallerLoud(is_loud=False))
    call.at(55_000, on.SpeechStopped(U1, 0))
    assert (call.done(do.EndTurn), call.done(do.RequestReply), call.anomalies()) == ([], [], [])
    assert call.done(do.UnwatchCaller) == [do.UnwatchCaller()]
    call.reply(R1, A, 1_000, "I see.")
    call.at(120_000)
    assert call.done(do.RequestReply) == []


def test_an_ordinary_turn_is_not_listened_to():
    call = Call()
    call.at(0, on.SpeechStarted(U1, 0))
    call.at(LISTEN_MS - 100, on.SpeechStopped(U1, 0))
    call.reply(R1, A, 1_000)
    call.at(60_000)
    assert call.done(do.WatchCaller) == []

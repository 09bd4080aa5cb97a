"""Servers and lines that leave something out, or do it twice: the record still claims what was heard, and no more."""

from __future__ import annotations

import pytest
from tests.core.drive import CANCELLED, K1, R1, R2, U1, A, B, Call, FakeLine, called, ended, finished

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.ports import PlayedReports
from callwright.core.session import CallPlan, Can, Session
from callwright.core.transcript import Source

RATE_HZ = 24_000


@pytest.mark.parametrize(("lag_ms", "stall_ms"), [(0, 700), (1_500, 700), (1_500, 3_000)])
@pytest.mark.parametrize("chunk_ms", [200, 1_000])
def test_a_line_that_runs_dry_a_lag_later_than_the_model_stalls_plays_nothing_meanwhile(lag_ms, stall_ms, chunk_ms):
    """The caller speaks while the line is dry, and just after it has gone on."""
    for after_ms in (10, 150):
        call = Call(FakeLine(PlayedReports.MARKS, lag_ms=lag_ms))
        call.at(0, on.ResponseStarted(R1))
        call.at(1, on.AudioReceived(R1, A, chunk_ms * RATE_HZ // 1000))
        again_ms = 1 + chunk_ms + stall_ms
        call.at(again_ms, on.AudioReceived(R1, A, chunk_ms * RATE_HZ // 1000))
        spoke_ms = again_ms + lag_ms - 200 + after_ms
        call.at(spoke_ms, on.SpeechStarted(U1, 0))
        ((_, end_ms),) = call.cuts()
        assert abs(end_ms - call.line.heard_ms(A, spoke_ms)) <= 20


def test_a_cut_shortly_before_the_line_ends_loses_what_was_under_way():
    """What the line had played of the cut reply was heard only if there was time for it to reach the ear."""
    session = Session(CallPlan(RATE_HZ, PlayedReports.PULLED, Can.TRUNCATE | Can.RETRIEVE, {}, latency_ms=600))
    for at_ms, event in (
        (0, on.ModelConnected()),
        (0, on.SessionReady()),
        (0, on.ResponseStarted(R1)),
        (0, on.AudioReceived(R1, A, 2 * RATE_HZ)),
        (0, on.ReplyWritten(R1, A, "one two three four")),
        (1_000, on.LinePlayed(A, 0, 1_000)),
        (1_000, on.SpeechStarted(U1, 0)),
        (1_010, on.ItemRetrieved(A, "one two", is_cut=True)),
        (1_100, on.LineClosed("caller", "hung up")),
    ):
        session.handle(event, at_ms)
    turn = next(turn for turn in session.transcript() if turn.item_id == A)
    assert (turn.cut_ms, turn.source) == (500, Source.ESTIMATED)
    assert len(turn.heard.split()) <= 1


@pytest.mark.parametrize("is_refused", [True, False], ids=["refused", "never sent"])
def test_without_a_truncate_the_servers_own_cut_is_a_bound_and_not_what_was_heard(is_refused):
    can = Can.TRUNCATE | Can.RETRIEVE if is_refused else Can.RETRIEVE
    call = Call(FakeLine(PlayedReports.MARKS, lag_ms=1_500), can=can)
    words = "check in is from three in the afternoon please bring a card"
    call.at(0, on.ResponseStarted(R1), on.AudioReceived(R1, A, 4 * RATE_HZ), on.ReplyWritten(R1, A, words))
    call.at(2_500, on.SpeechStarted(U1, 0))
    for command in call.done(do.TruncateItem):
        call.at(2_510, on.RequestRefused("invalid_value", "no", command.event_id))
    call.at(2_520, on.ItemRetrieved(A, "check in is from three in the afternoon", is_cut=True))
    heard, source = call.heard()[A]
    assert source == "estimated"
    assert len(heard.split()) <= 3


def test_a_lost_end_of_a_response_does_not_silence_the_tools_of_later_ones():
    call = Call()
    call.at(0, on.ResponseStarted(R1))
    call.at(5_000, on.ResponseStarted(R2), called(K1, response_id=R2))
    call.at(5_100, ended(R2), finished(K1))
    assert len(call.done(do.RequestReply)) == 1


def test_a_cancelled_end_of_a_response_that_is_not_the_open_one_still_stops_its_audio():
    call = Call()
    call.at(0, on.ResponseStarted(R1), on.AudioReceived(R1, A, 3 * RATE_HZ), ended(R1))
    call.at(500, ended(R1, CANCELLED))
    assert len(call.done(do.ClearPlayout)) == 1
    assert call.cuts()[0][1] <= 520


def test_a_second_start_of_speech_without_an_end_still_stops_the_agent():
    call = Call()
    call.at(0, on.SpeechStarted(U1, 0))
    call.at(100, on.ResponseStarted(R1), on.AudioReceived(R1, A, 3 * RATE_HZ))
    call.at(900, on.SpeechStarted(B, 0))
    assert len(call.done(do.ClearPlayout)) == 1


def test_a_new_item_of_a_response_that_was_cut_is_not_played_though_the_response_was_done():
    call = Call()
    call.at(0, on.ResponseStarted(R1), on.AudioReceived(R1, A, 3 * RATE_HZ), ended(R1))
    call.at(500, on.SpeechStarted(U1, 0))
    assert not [command for command in call.at(600, on.AudioReceived(R1, B, 480)) if isinstance(command, do.PlayAudio)]


def test_a_reply_whose_text_never_came_is_not_said_to_be_heard_whole():
    call = Call()
    call.at(0, on.ResponseStarted(R1), on.AudioReceived(R1, A, RATE_HZ), ended(R1))
    call.at(3_000)
    assert call.heard()[A] == ("", "none")


def test_late_audio_and_an_end_within_the_latency_are_survived():
    session = Session(CallPlan(RATE_HZ, PlayedReports.PULLED, Can.TRUNCATE | Can.RETRIEVE, {}, latency_ms=600))
    for at_ms, event in (
        (0, on.ModelConnected()),
        (0, on.SessionReady()),
        (0, on.ResponseStarted(R1)),
        (0, on.AudioReceived(R1, A, RATE_HZ)),
        (0, on.ReplyWritten(R1, A, "one two three")),
        (0, ended(R1)),
        (1_000, on.LinePlayed(A, 0, 1_000)),
        (1_100, on.AudioReceived(R1, A, RATE_HZ // 2)),
        (1_200, on.LineClosed("caller", "hung up")),
    ):
        session.handle(event, at_ms)
    (turn,) = session.transcript()
    assert (turn.source, turn.cut_ms) == (Source.ESTIMATED, 400)
    assert not [command for command in session.commands() if isinstance(command, do.NoteAnomaly)]

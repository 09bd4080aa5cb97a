"""The joints between the machines, and calls on every kind of line."""

from __future__ import annotations

from typing import get_args

import pytest
from tests.core.drive import (
    CANCELLED,
    EVERYTHING,
    K1,
    MARKS,
    R1,
    R2,
    U1,
    A,
    B,
    Call,
    FakeLine,
    audio,
    both_lines,
    called,
    ended,
    finished,
    plan,
    speaks,
    stops,
)

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.outgoing import OPEN_REQUESTS_MAX
from callwright.core.playout import LOST_MARK_GRACE_MS, Playing
from callwright.core.session import Can, Ending, Session
from callwright.core.turns import REPLY_PATIENCE_MS
from callwright.errors import IllegalTransition


def test_every_event_has_a_handler():
    assert set(Session(plan())._handlers) == set(get_args(on.Event))


def test_each_drain_empties_the_queue():
    session = Session(plan())
    session.handle(on.ModelConnected(), 0)
    assert len(session.commands()) == 1
    assert session.commands() == []


# --- the line --------------------------------------------------------------------------------------------------------


@both_lines
@pytest.mark.parametrize("lag_ms", [0, 60, 300, 1_500])
@pytest.mark.parametrize("speed", [1.0, 1.3, 8.0])
def test_the_cut_follows_the_ear_whatever_the_lag(reports, lag_ms, speed):
    """A carrier's marks come back late by its lag, so that nobody has to be told of it."""
    call = Call(FakeLine(reports, lag_ms=lag_ms))
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 3_600, speed=speed)
    call.at(max(call.now_ms, 2_900), speaks())
    ((item, heard_ms),) = call.cuts()
    assert item == A
    assert heard_ms == pytest.approx(call.line.heard_ms(A, call.now_ms), abs=20)
    assert heard_ms <= call.line.heard_ms(A, call.now_ms) + 1


@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_one_lost_mark_costs_no_accuracy_beyond_the_way_to_the_next(number):
    call = Call(FakeLine(MARKS, lag_ms=1_500, lost_marks=(number,)))
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 3_600, speed=2)
    call.at(4_000, speaks())
    assert call.cuts() == [(A, pytest.approx(2_500, abs=20))]


def test_a_lag_does_not_end_a_reply_whose_last_mark_is_still_to_come():
    call = Call(FakeLine(MARKS, lag_ms=1_500))
    call.reply(R1, A, 2_000, "so", speed=10)
    call.at(3_480)
    assert call.state(A) is Playing.COMPLETE
    call.at(3_500)
    assert call.heard()[A] == ("so", "whole")


def test_a_carrier_that_returns_no_mark_has_proved_nothing():
    call = Call(FakeLine(MARKS, lost_marks=range(1, 999)))
    call.reply(R1, A, 2_000, "so", speed=10)
    call.at(60_000, speaks())
    assert call.cuts() == [(A, 0)]


@pytest.mark.parametrize("returns_cleared", [True, False])
def test_a_clear_settles_the_item_whether_its_marks_come_back_or_not(returns_cleared):
    call = Call(FakeLine(MARKS, lag_ms=400, returns_cleared=returns_cleared))
    call.reply(R1, A, 5_000, "so it goes", speed=10)
    call.at(2_000, speaks())
    call.at(2_100, on.ItemRetrieved(A, "so", is_cut=True), stops())
    call.at(2_500)
    call.reply(R2, B, 1_000, "next", speed=2)
    call.at(3_200)
    assert call.state(B) is Playing.COMPLETE
    call.at(6_000)
    assert call.cuts() == [(A, 1_600)]
    assert call.heard() == {A: ("so", "retrieved"), U1: ("", "transcribed"), B: ("next", "whole")}


def test_an_item_whose_last_mark_is_lost_is_whole_a_while_after_its_end():
    call = Call(FakeLine(MARKS, lost_marks=range(3, 999)))
    call.reply(R1, A, 1_000, "so", speed=10)
    call.at(1_000 + LOST_MARK_GRACE_MS - 1)
    assert call.heard()[A] == ("", "pending")
    call.at(1_000 + LOST_MARK_GRACE_MS)
    assert call.heard()[A] == ("so", "whole")


@both_lines
def test_c126_late_audio_of_a_reply_that_was_not_cut_is_played(reports):
    call = Call(reports)
    call.reply(R1, A, 1_000, "all of it")
    call.at(1_400, audio(R1, A, 600))
    call.at(4_000)
    assert sum(play.samples for play in call.done(do.PlayAudio)) == 1.6 * 24_000
    assert call.state(A) is Playing.PLAYED


@both_lines
def test_a_tail_that_comes_late_can_be_cut_and_then_nothing_is_claimed_until_the_answer(reports):
    call = Call(reports)
    call.reply(R1, A, 1_000, "all of it")
    call.at(1_400, audio(R1, A, 600))
    call.at(1_500, speaks())
    assert call.cuts() == [(A, pytest.approx(1_100, abs=20))]
    assert call.heard()[A] == ("", "pending")


@both_lines
def test_an_empty_piece_of_audio_is_survived(reports):
    call = Call(reports)
    call.at(0, on.ResponseStarted(R1), audio(R1, A, 0), ended(R1))
    call.at(1_000, speaks())
    assert call.done(do.PlayAudio) == call.cuts() == call.anomalies() == []


# --- interruption ----------------------------------------------------------------------------------------------------


def test_an_item_that_has_just_played_out_when_the_caller_speaks_is_whole():
    """Its last marks are still on their way back: nothing was lost, so nothing is cut."""
    call = Call(FakeLine(MARKS, lost_marks=(2, 3)))
    call.at(0, on.ResponseStarted(R1), audio(R1, A, 1_000), on.ReplyWritten(R1, A, "all"), ended(R1))
    assert call.at(1_000, speaks()) == [do.ClearPlayout(1)]
    assert call.state(A) is Playing.PLAYED
    assert call.heard()[A] == ("all", "whole")


@both_lines
@pytest.mark.parametrize("first", ["caller", "response"])
def test_both_orders_of_a_barge_in_cut_once(reports, first):
    """The start of speech and the cancelled response come in either order: the first one cuts, the second does not."""
    events = [speaks(), ended(R1, CANCELLED)]
    call = Call(reports)
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 2_000, speed=1.2)
    commands = call.at(1_700, *(events if first == "caller" else reversed(events)))
    assert [type(command) for command in commands] == [do.ClearPlayout, do.TruncateItem, do.RetrieveItem]


@both_lines
def test_the_next_reply_is_never_touched_by_an_earlier_cut(reports):
    call = Call(reports)
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 1_000)
    call.at(1_000, speaks(), ended(R1, CANCELLED), stops())
    call.at(1_500)
    call.reply(R2, B, 1_000, "mine")
    (truncate,) = call.done(do.TruncateItem)
    call.at(2_600, on.ItemTruncated(A, truncate.audio_end_ms), on.ItemRetrieved(A, "yours", is_cut=True))
    call.at(4_000)
    assert call.heard()[B] == ("mine", "whole")
    assert {play.generation for play in call.done(do.PlayAudio) if play.item_id == B} == {1}


@pytest.mark.parametrize(
    ("can", "kinds", "source"),
    [
        (EVERYTHING, [do.ClearPlayout, do.CancelResponse, do.TruncateItem, do.RetrieveItem], "pending"),
        (Can.TRUNCATE, [do.ClearPlayout, do.TruncateItem], "estimated"),
        (Can.CANCEL, [do.ClearPlayout, do.CancelResponse], "estimated"),
        (Can(0), [do.ClearPlayout], "estimated"),
    ],
)
def test_a_server_is_asked_only_for_what_it_can(can, kinds, source):
    """The clear goes first in any case: the ear can't wait."""
    call = Call(MARKS, can=can)
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 2_000, speed=2)
    assert [type(command) for command in call.at(1_100, on.InterruptRequested())] == kinds
    assert call.heard()[A][1] == source
    assert call.at(1_200, on.InterruptRequested()) == []


def test_a_server_that_does_not_answer_about_a_cut_is_not_waited_for():
    call = Call()
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 2_000)
    call.at(1_900, on.ReplyWritten(R1, A, "one two three four"), speaks())
    call.at(5_000)
    assert call.heard()[A] == ("one two three", "estimated")
    assert call.anomalies() == ["no answer about cut item a; its heard text is an estimate"]


# --- turns -----------------------------------------------------------------------------------------------------------


def test_a_turn_that_the_server_leaves_unanswered_is_asked_about_with_a_bound():
    call = Call()
    call.at(0, speaks())
    call.at(1_000, stops())
    call.at(200_000)
    patience = REPLY_PATIENCE_MS
    assert call.times(do.RequestReply) == [1_000 + n * patience for n in (1, 2, 3)]
    assert call.session.next_deadline_ms() is None


def test_a_reply_is_asked_for_only_when_the_caller_is_through():
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1), ended(R1))
    call.at(100, finished(K1))
    (request,) = call.done(do.RequestReply)
    call.at(110, speaks())
    call.refuse(request)
    call.at(5_000)
    assert len(call.done(do.RequestReply)) == 1
    call.at(5_100, stops())
    call.at(5_300, on.ResponseStarted(R2), audio(R2, B, 200), ended(R2))
    call.at(60_000)
    assert len(call.done(do.RequestReply)) == 1


def test_a_failed_response_is_noted_with_its_reason():
    call = Call()
    call.at(0, on.ResponseStarted(R1))
    call.at(100, on.ResponseEnded(R1, on.ResponseStatus.FAILED, "rate_limit_exceeded"))
    assert call.anomalies() == ["response r1 failed: rate_limit_exceeded"]


# --- out of order ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [stops(), ended(R2), on.ModelConnected()],
    ids=lambda event: type(event).__name__,
)
def test_what_a_server_does_out_of_order_is_noted_and_survived(event):
    call = Call()
    call.at(0, on.ResponseStarted(R1))
    (note,) = call.at(100, event)
    assert isinstance(note, do.NoteAnomaly)
    assert note.what.startswith(type(event).__name__)
    call.stream(R1, A, 400)
    call.at(500, on.ReplyWritten(R1, A, "fine"), ended(R1))
    call.at(2_000)
    assert call.heard()[A] == ("fine", "whole")


def test_what_the_app_does_wrongly_raises():
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1))
    call.at(10, finished(K1))
    with pytest.raises(IllegalTransition):
        call.session.handle(finished(K1), 20)
    with pytest.raises(KeyError):
        call.session.handle(finished("never announced"), 20)


def test_a_tool_output_before_the_session_is_ready_does_not_keep_the_timer_due():
    """A deadline that stays due would keep the shell busy for ever."""
    session = Session(plan())
    session.handle(on.ModelConnected(), 0)
    session.handle(called(K1, "no_such"), 0)
    session.handle(on.TimerFired(), 10_000)
    deadline_ms = session.next_deadline_ms()
    assert deadline_ms is None or deadline_ms > 10_000


def test_a_refusal_is_tied_to_one_of_the_latest_requests_and_memory_is_bounded():
    call = Call()
    call.at(0, on.ResponseStarted(R1))
    for number in range(3 * OPEN_REQUESTS_MAX):
        call.at(number, called(f"k{number}", "no_such"))
    assert len(call.session._out._open) == OPEN_REQUESTS_MAX
    ids = [output.event_id for output in call.done(do.PostToolOutput)]
    assert len(set(ids)) == len(ids)


# --- the end ---------------------------------------------------------------------------------------------------------


@both_lines
@pytest.mark.parametrize(
    ("event", "ending"),
    [
        (on.LineClosed("caller", "hung up"), Ending("caller", "hung up")),
        (on.ModelClosed(1008, "gone"), Ending("model", "connection closed: 1008 gone")),
        (on.HangUpRequested("done"), Ending("agent", "done")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_was_under_way_when_the_call_ended_is_heard_as_far_as_it_was_played(reports, event, ending):
    call = Call(FakeLine(reports, lag_ms=500))
    call.reply(R1, A, 4_000, "one two three four", speed=4)
    call.at(2_500, event)
    assert call.session.ending == ending
    assert call.heard()[A] == ("one", "estimated")
    assert call.session.next_deadline_ms() is None

"""Faults that people met in real calls, told to the session in numbers. The id is that of the case."""

from __future__ import annotations

from random import Random

import pytest
from tests.core.drive import (
    BOTH_LINES,
    CANCELLED,
    K1,
    K2,
    MARKS,
    R1,
    R2,
    R3,
    TEN_WORDS,
    U1,
    U2,
    A,
    B,
    C,
    Call,
    FakeLine,
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
from callwright.core.playout import Playing
from callwright.core.toolcalls import SLOW_TOOL_MS
from callwright.core.transcript import Source
from callwright.core.turns import REPLY_PATIENCE_MS

# --- interruption ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost_marks", [(), range(65, 999)], ids=["all come back", "the last ones are lost"])
def test_c001_an_item_that_played_to_its_end_is_not_truncated_although_marks_are_lost(lost_marks):
    """Its bookkeeping ends with the item: 42 s later nothing is left that could be cut."""
    call = Call(FakeLine(MARKS, lost_marks=lost_marks))
    call.reply(R1, A, 13_600, TEN_WORDS, speed=3)
    assert call.line.marks_sent > 65
    assert call.at(56_000, speaks()) == []
    assert call.cuts() == []
    assert call.heard()[A] == (TEN_WORDS, "whole")


@both_lines
def test_c002_after_a_refused_truncate_the_next_turns_are_played_normally(reports):
    """It is a logged warning and changes nothing else."""
    call = Call(reports)
    call.at(0, on.ResponseStarted(R1), called(K1))
    call.stream(R1, A, 3_000)
    call.at(2_650, speaks())
    (truncate,) = call.done(do.TruncateItem)
    call.refuse(truncate)
    assert call.anomalies() == ["TruncateItem refused: invalid_request_error: no"]
    call.at(3_000, ended(R1, CANCELLED), stops())
    for number, (response, item, start_ms) in enumerate([(R2, B, 3_500), (R3, C, 6_000)]):
        call.at(start_ms)
        call.reply(response, item, 1_000, "as ever")
        call.at(start_ms + 1_500)
        assert call.heard()[item] == ("as ever", "whole")
        assert sum(play.samples for play in call.done(do.PlayAudio) if play.item_id == item) == 24_000
        if not number:
            call.at(5_200, speaks(U2), stops(U2))
    assert len(call.cuts()) == 1


@both_lines
@pytest.mark.parametrize("way_in", [on.InterruptRequested(), speaks()], ids=["app", "caller"])
def test_c004_a_stall_does_not_count_as_played_whoever_interrupts(reports, way_in):
    """2.6 s were received, then the server stalls; at 4.0 s no more than that can have been heard."""
    call = Call(reports)
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 2_600, speed=2)
    call.at(4_000, way_in)
    assert call.cuts() == [(A, 2_600)]


@both_lines
def test_c005_a_without_any_audio_nothing_is_truncated(reports):
    """The server refuses to truncate an item that has no audio."""
    call = Call(reports)
    call.at(0, on.ResponseStarted(R1))
    assert call.at(50, speaks()) == []
    call.at(60, audio(R1, A, 200), on.ReplyWritten(R1, A, TEN_WORDS), ended(R1, CANCELLED))
    assert call.done(do.PlayAudio) == call.cuts() == []
    assert call.heard()[A][0] == ""


def test_c005_a_an_app_that_interrupts_before_any_audio_cancels_only():
    call = Call()
    call.at(0, on.ResponseStarted(R1))
    assert [type(command) for command in call.at(50, on.InterruptRequested())] == [do.CancelResponse]


@both_lines
def test_c005_b_audio_of_which_nothing_was_played_is_truncated_to_0(reports):
    """Otherwise history keeps words that nobody heard."""
    call = Call(FakeLine(reports, lag_ms=1_000))
    call.at(0, on.ResponseStarted(R1), audio(R1, A, 400))
    call.at(100, speaks())
    assert call.cuts() == [(A, 0)]
    call.at(200, on.ReplyWritten(R1, A, TEN_WORDS), on.ItemRetrieved(A, "", is_cut=True))
    assert call.heard()[A] == ("", "retrieved")


@both_lines
def test_c006_the_cut_item_is_truncated_once_at_what_the_ear_got_and_then_retrieved(reports):
    """8 s of reply, the caller speaks at 3 s, the line is 1.5 s behind: 1.5 s were heard."""
    call = Call(FakeLine(reports, lag_ms=1_500))
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 3_000, speed=1.2)
    commands = call.at(3_000, speaks())
    assert [type(command) for command in commands] == [do.ClearPlayout, do.TruncateItem, do.RetrieveItem]
    ((item, heard_ms),) = call.cuts()
    assert item == A
    assert heard_ms == pytest.approx(call.line.heard_ms(A, 3_000), abs=1)
    assert heard_ms == pytest.approx(1_500, abs=20)
    call.at(3_100, ended(R1, CANCELLED), on.ItemRetrieved(A, "one two", is_cut=True))
    assert call.heard()[A] == ("one two", "retrieved")
    assert len(call.cuts()) == 1


@both_lines
def test_c007_what_the_line_still_holds_is_cut_although_the_response_is_done(reports):
    call = Call(reports)
    call.reply(R1, A, 12_000, speed=6)
    commands = call.at(4_000, speaks())
    assert commands[0] == do.ClearPlayout(1)
    assert call.cuts() == [(A, pytest.approx(4_000, abs=20))]
    assert call.done(do.CancelResponse) == []


@both_lines
def test_c009_a_caller_who_speaks_into_silence_interrupts_nothing(reports):
    call = Call(reports)
    call.reply(R1, A, 2_000, TEN_WORDS)
    assert call.at(4_000, speaks()) == []
    assert call.heard()[A] == (TEN_WORDS, "whole")
    assert call.session.transcript()[0].cut_ms is None


@both_lines
@pytest.mark.parametrize("speed", [0.9, 1.0, 1.1, 1.25])
@pytest.mark.parametrize("at_ms", [733, 1_001, 1_777])
def test_c010_a_truncate_is_whole_milliseconds_at_any_rate_of_speech(reports, speed, at_ms):
    """One client computed a decimal number at 1.1 times the speed, and the call was over."""
    call = Call(reports)
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 1_600, speed=speed, piece_ms=37)
    call.at(max(at_ms, call.now_ms), speaks())
    ((item, heard_ms),) = call.cuts()
    assert type(heard_ms) is int
    assert item == A
    assert 0 <= heard_ms <= 1_600


def test_c010_an_error_that_names_no_request_ends_nothing():
    call = Call()
    call.at(100, on.RequestRefused("server_error", "sorry", None))
    call.reply(R1, A, 400, "still here")
    call.at(2_000)
    assert call.session.ending is None
    assert call.heard()[A] == ("still here", "whole")


@both_lines
def test_c011_the_record_holds_the_servers_cut_text_and_never_the_written_one(reports):
    """The written text comes before the end of a response is known, so nothing is heard by it."""
    written = " ".join(f"word{number}" for number in range(40))
    cut = " ".join(written.split()[:9])
    call = Call(reports)
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 4_000)
    call.at(3_900, on.ReplyWritten(R1, A, written))
    assert call.heard()[A] == ("", "pending")
    call.at(3_950, ended(R1, CANCELLED))
    assert call.heard()[A] == ("", "pending")
    call.at(4_200, on.ItemRetrieved(A, cut, is_cut=True))
    assert call.heard()[A] == (cut, "retrieved")
    assert call.session.transcript()[0].written == written


@pytest.mark.parametrize("seed", range(200))
def test_c013_no_sample_of_the_old_item_follows_the_cut_in_any_order(seed):
    """A feeder hands on a frame every 20 ms; whenever the verdict falls among them, the clear is final."""
    rng = Random(seed)
    call = Call(rng.choice(BOTH_LINES))
    call.at(0, on.ResponseStarted(R1))
    ends: list[on.Event] = [speaks(), ended(R1, CANCELLED)]
    rng.shuffle(ends)
    schedule = [(rng.uniform(0, 3_000), event) for event in ends]
    schedule += [(number * 20 + rng.uniform(0, 20), audio(R1, A, 20)) for number in range(150)]
    for at_ms, event in sorted(schedule, key=lambda entry: entry[0]):
        call.at(int(at_ms), event)
    kinds = [type(command) for _, command in call.log]
    if do.ClearPlayout in kinds:
        assert do.PlayAudio not in kinds[kinds.index(do.ClearPlayout) :]
        assert kinds.count(do.ClearPlayout) == len(call.cuts()) == 1


@both_lines
def test_c014_late_audio_of_a_cancelled_response_is_dropped_and_moves_nothing(reports):
    call = Call(reports)
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 1_000)
    call.at(1_000, speaks())
    cuts, played = call.cuts(), len(call.done(do.PlayAudio))
    for number in range(5):
        call.at(1_060 + 60 * number, audio(R1, A, 200))
    call.at(1_400, ended(R1, CANCELLED), stops())
    assert len(call.done(do.PlayAudio)) == played
    assert call.cuts() == cuts
    call.at(2_000)
    call.reply(R2, B, 400, "next")
    call.at(3_000)
    assert {play.item_id for play in call.done(do.PlayAudio)[played:]} == {B}
    assert call.heard()[B] == ("next", "whole")


def test_c016_nothing_is_cancelled_after_the_response_is_done():
    call = Call()
    call.reply(R1, A, 5_000, speed=5)
    call.at(3_000, on.InterruptRequested())
    assert call.done(do.CancelResponse) == []
    assert len(call.cuts()) == 1


def test_c016_a_cancel_that_crosses_the_end_is_refused_and_ends_nothing():
    call = Call()
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 1_000, speed=5)
    commands = call.at(600, on.InterruptRequested())
    assert [type(command) for command in commands] == [
        do.ClearPlayout,
        do.CancelResponse,
        do.TruncateItem,
        do.RetrieveItem,
    ]
    call.at(610, ended(R1))
    call.refuse(commands[1], "response_cancel_not_active")
    assert call.session.ending is None
    call.reply(R2, B, 400, "on we go")
    call.at(3_000)
    assert call.heard()[B] == ("on we go", "whole")


# --- playout ---------------------------------------------------------------------------------------------------------


@both_lines
def test_c019_the_position_is_what_the_line_has_played_not_what_it_was_handed(reports):
    """6 s sent in 1 s, a line 400 ms behind, the caller speaks at 2.5 s: 2.1 s, give or take a frame."""
    call = Call(FakeLine(reports, lag_ms=400))
    call.reply(R1, A, 6_000, speed=6)
    call.at(2_500, speaks())
    assert call.cuts() == [(A, pytest.approx(2_100, abs=20))]


@both_lines
def test_c023_a_tool_call_never_ends_the_audio_of_its_reply(reports):
    call = Call(reports)
    call.at(0, on.ResponseStarted(R1), called(K1))
    call.at(120)
    call.stream(R1, A, 3_000, speed=3)
    call.at(1_150, on.ReplyWritten(R1, A, "one moment"), finished(K1))
    call.at(1_200, ended(R1))
    assert call.state(A) is Playing.COMPLETE
    call.at(1_300, on.ResponseStarted(R2))
    call.at(4_000)
    assert call.state(A) is Playing.PLAYED
    assert call.heard()[A] == ("one moment", "whole")
    assert sum(play.samples for play in call.done(do.PlayAudio)) == 3 * 24_000
    assert len(call.done(do.StartTool)) == len(call.done(do.PostToolOutput)) == 1
    assert call.cuts() == []


@both_lines
def test_c023_a_call_in_the_middle_of_an_utterance_leaves_it_running_and_a_cut_still_cuts_it_at_the_ear(reports):
    """The item is neither finished nor played for the call: more of its audio comes, and the caller can end it."""
    call = Call(reports)
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 600)
    assert [type(command) for command in call.at(610, called(K1))] == [do.StartTool]
    assert call.state(A) is Playing.STREAMING
    call.stream(R1, A, 1_200)
    call.at(1_500, finished(K1))
    commands = call.at(1_700, speaks())
    assert [type(command) for command in commands] == [do.ClearPlayout, do.TruncateItem, do.RetrieveItem]
    assert call.done(do.FinishItem) == []
    assert call.cuts() == [(A, pytest.approx(call.line.heard_ms(A, 1_700), abs=20))]
    call.at(1_800, ended(R1, CANCELLED), on.ItemRetrieved(A, "one mo", is_cut=True))
    assert call.heard()[A] == ("one mo", "retrieved")


# --- transcript ------------------------------------------------------------------------------------------------------


def test_c137_the_transcript_keeps_the_spoken_order_however_late_a_text_comes():
    call = Call()
    call.at(0, speaks(), stops(), on.ItemPlaced(U1, None))
    call.at(500, on.ItemPlaced(A, U1))
    call.reply(R1, A, 1_000, "the answer")
    call.at(3_000, speaks(U2), on.ItemPlaced(U2, A), stops(U2))
    call.at(4_600, on.CallerTranscribed(U1, "the question"))
    call.at(4_700, on.CallerTranscribed(U2, "thanks"))
    turns = call.session.transcript()
    assert [turn.item_id for turn in turns] == [U1, A, U2]
    assert [turn.heard for turn in turns] == ["the question", "the answer", "thanks"]


@both_lines
def test_c139_a_cut_reply_without_text_stays_in_the_record_with_its_cut(reports):
    """'Cut after 2.5 s, words unknown' rather than nothing or all."""
    call = Call(reports)
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 3_000, speed=1.2)
    call.at(2_500, speaks())
    call.at(2_600, ended(R1, CANCELLED), on.ItemRetrieved(A, None, is_cut=False))
    (turn,) = (turn for turn in call.session.transcript() if turn.item_id == A)
    assert (turn.heard, turn.source) == ("", Source.NONE)
    assert turn.cut_ms == pytest.approx(2_500, abs=20)


# --- one response at a time ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_created_first", [True, False])
def test_c098_a_request_that_crosses_an_automatic_response_is_made_once_more_after_it(is_created_first):
    """It is benign: the running response began before the output was there, so it can't have told it."""
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1), ended(R1))
    call.at(500, finished(K1))
    (request,) = call.done(do.RequestReply)
    if is_created_first:
        call.at(520, on.ResponseStarted(R2))
    call.refuse(request, "conversation_already_has_active_response")
    if is_created_first:
        assert len(call.done(do.RequestReply)) == 1
        assert [type(command) for command in call.at(2_000, ended(R2))] == [do.RequestReply]
        call.at(2_100, on.ResponseStarted(R3), audio(R3, C, 200), ended(R3))
    else:
        call.at(520, on.ResponseStarted(R2), audio(R2, B, 200), ended(R2))
    call.at(30_000)
    assert len(call.done(do.RequestReply)) == 2
    assert call.session.ending is None


def test_c099_two_tools_of_one_response_share_one_reply():
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1), called(K2, "find"), ended(R1))
    call.at(100, finished(K1))
    call.at(900, finished(K2))
    assert call.times(do.RequestReply) == [900]
    assert call.times(do.PostToolOutput) == [100, 900]


def test_c099_a_fast_tool_waits_for_one_that_its_response_calls_later():
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1))
    call.at(5, finished(K1))
    call.at(300, called(K2, "find"))
    call.at(400, ended(R1))
    call.at(900, finished(K2))
    assert call.times(do.RequestReply) == [900]


def test_c099_a_slow_tool_is_spoken_about_later_and_alone():
    """100 ms and 15 s: what is known is told after a while, and the rest when it is there."""
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1), called(K2, "find"), ended(R1))
    call.at(100, finished(K1))
    call.at(100 + SLOW_TOOL_MS + 300)
    call.reply(R2, A, 2_000, "the first")
    call.at(15_000, finished(K2))
    call.at(15_300)
    call.reply(R3, B, 2_000, "the second")
    call.at(30_000)
    assert call.times(do.RequestReply) == [100 + SLOW_TOOL_MS, 15_000]
    assert list(call.heard().values()) == [("the first", "whole"), ("the second", "whole")]


def test_c100_the_output_goes_out_at_once_and_the_request_waits_for_the_end_of_the_response():
    call = Call()
    call.at(0, on.ResponseStarted(R1))
    call.at(300, called(K1))
    call.at(305, finished(K1))
    call.stream(R1, A, 1_900)
    call.at(2_300, ended(R1))
    assert call.times(do.PostToolOutput) == [305]
    assert call.times(do.RequestReply) == [2_300]


# --- refusals --------------------------------------------------------------------------------------------------------


def refused_reply(is_named: bool) -> tuple[Call, do.RequestReply]:
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1), ended(R1))
    call.at(100, finished(K1))
    (request,) = call.done(do.RequestReply)
    call.at(200, on.RequestRefused("rate_limited", "slow down", request.event_id if is_named else None))
    return call, request


def test_c104_a_refusal_that_names_its_request_ends_the_wait_at_once():
    call, request = refused_reply(is_named=True)
    assert call.times(do.RequestReply)[1] == 200
    assert call.anomalies() == ["RequestReply refused: rate_limited: slow down"]
    assert call.done(do.RequestReply)[1].event_id != request.event_id


def test_c104_one_that_does_not_leaves_the_wait_to_its_limit():
    call, _ = refused_reply(is_named=False)
    call.at(100 + REPLY_PATIENCE_MS)
    assert call.times(do.RequestReply) == [100, 100 + REPLY_PATIENCE_MS]
    assert call.anomalies()[0] == "an unnamed request refused: rate_limited: slow down"


def test_c104_a_late_refusal_of_an_earlier_request_does_not_end_the_present_wait():
    call, first = refused_reply(is_named=False)
    call.at(100 + REPLY_PATIENCE_MS + 50)
    assert call.refuse(first) == [do.NoteAnomaly("RequestReply refused: invalid_request_error", "no")]
    assert len(call.done(do.RequestReply)) == 2


def test_c104_a_close_ends_every_wait():
    call, _ = refused_reply(is_named=False)
    call.at(300, on.ModelClosed(1008, ""))
    assert call.session.next_deadline_ms() is None
    assert call.session.ending.reason == "connection closed: 1008"


@both_lines
def test_c104_a_refused_retrieve_is_answered_by_an_estimate_at_once(reports):
    """Two items are cut at once: the refusal is tied to its own."""
    call = Call(reports)
    call.reply(R1, A, 1_000, TEN_WORDS, speed=10)
    call.at(200)
    call.reply(R2, B, 1_000, TEN_WORDS, speed=10)
    call.at(500, speaks())
    first, second = call.done(do.RetrieveItem)
    call.refuse(second)
    assert call.heard()[A] == ("", "pending")
    assert call.heard()[B] == ("", "estimated")
    call.refuse(first)
    assert call.heard()[A] == (" ".join(TEN_WORDS.split()[:3]), "estimated")

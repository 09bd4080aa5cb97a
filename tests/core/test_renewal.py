"""What a call lets go when its session ends, and what the next one is told. Told in numbers."""

from __future__ import annotations

import pytest
from tests.core.drive import (
    K1,
    MARKS,
    PULLED,
    R1,
    R2,
    TEN_WORDS,
    U1,
    U2,
    A,
    B,
    Call,
    audio,
    called,
    ended,
    finished,
)
from tests.core.telling import DONE, fact

from callwright.claims.facts import Milestone
from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.handover import (
    PAUSES_MS,
    TRIES_MAX,
)
from callwright.core.history import IN_PROGRESS, INTRODUCED, ITEMS_MAX
from callwright.core.hold import Phase
from callwright.core.pickup import SESSION_PATIENCE_MS
from callwright.core.pickup import Stage as Pickup
from callwright.core.session import Ending
from callwright.core.stalls import LISTEN_MS, QUIET_MS
from callwright.core.unheard import BEFORE_MS, KEPT_MS, TAIL_MS
from callwright.ids import ItemId, Ms

BROKEN = on.ModelClosed(1006, "")
EXPIRED = on.ModelClosed(4410, "session_expired")


def taken(call: Call, now_ms: Ms, held_ms: Ms = 300) -> list[do.Command]:
    """The next session is there: it takes its configuration, and what was held."""
    return call.at(now_ms, on.ModelConnected(), on.SessionReady(), on.UplinkResumed(held_ms, 0))


def told(commands: list[do.Command]) -> list[tuple[str, ...]]:
    """What a session is told of the call, in short."""
    short: list[tuple[str, ...]] = []
    for command in commands:
        match command:
            case do.CarryMessage(speaker=speaker, text=text):
                short.append((speaker, text))
            case do.CarryCall(tool_call_id=call_id, name=name):
                short.append((name, call_id))
            case do.PostToolOutput(tool_call_id=call_id, output=output):
                short.append((call_id, output))
            case do.PostFacts(text=text):
                short.append(("note", text))
    return short


def says(call: Call, now_ms: Ms, item_id: ItemId, text: str | None, ms: Ms = 800) -> None:
    """A turn of the caller's; its words are told at once, or not yet."""
    call.at(now_ms, on.SpeechStarted(item_id, now_ms))
    call.at(now_ms + ms, on.SpeechStopped(item_id, now_ms + ms))
    if text is not None:
        call.at(call.now_ms, on.CallerTranscribed(item_id, text))


def talked() -> Call:
    """A question, a tool and its answer; all of it heard."""
    call = Call()
    says(call, 1_000, U1, "What about order 4417?")
    call.at(2_000, on.ResponseStarted(R1), called(K1), ended(R1))
    call.at(2_100, finished(K1))
    call.reply(R2, A, 4_000, TEN_WORDS)
    call.at(7_000)
    return call


def test_c110_a_new_session_hears_that_the_call_is_under_way_and_is_told_what_was_said_and_done():
    call = talked()
    (note, connect) = call.at(8_000, BROKEN)
    assert note == do.NoteAnomaly("connection closed: 1006; another session is opened")
    assert connect == do.Connect(0, TAIL_MS)
    (configure,) = call.at(8_200, on.ModelConnected())
    assert configure.more == f"{IN_PROGRESS} {INTRODUCED}"
    commands = call.at(8_250, on.SessionReady(), on.UplinkResumed(TAIL_MS + 250, 0))
    assert told(commands) == [
        ("caller", "What about order 4417?"),
        ("look_up", K1),
        (K1, f"output of {K1}"),
        ("agent", TEN_WORDS),
    ]
    assert commands[-2:] == [do.OpenUplink(), do.StateRestored(4, TAIL_MS + 250, 0, 250)]
    assert call.session.pickup.stage is Pickup.READY
    assert call.done(do.RequestReply) == call.done(do.RequestReply)[:1], "nobody waits for anything: nobody is answered"


def test_before_the_agent_has_been_heard_it_has_introduced_itself_to_nobody():
    call = Call()
    call.at(1_000, BROKEN)
    (configure,) = call.at(1_200, on.ModelConnected())
    assert configure.more == IN_PROGRESS


def test_a_turn_whose_words_are_not_known_is_heard_again_and_stands_in_the_transcript_once():
    call = Call()
    says(call, 1_000, U1, None)
    (*_, connect) = call.at(2_500, BROKEN)
    assert connect == do.Connect(0, 1_500 + BEFORE_MS)
    commands = taken(call, 2_750, 2_050)
    assert told(commands) == []
    assert not [each for each in commands if isinstance(each, do.RequestReply)], "the server answers it by itself"
    call.at(2_800, on.SpeechStarted(U2, BEFORE_MS), on.SpeechStopped(U2, 1_100), on.CallerTranscribed(U2, "Hello?"))
    assert call.heard() == {U2: ("Hello?", "transcribed")}


def test_a_turn_that_began_too_long_ago_is_not_heard_in_half():
    call = Call()
    says(call, 1_000, U1, None, ms=KEPT_MS)
    (*_, connect) = call.at(1_000 + KEPT_MS, BROKEN)
    assert connect.resend_ms <= TAIL_MS
    assert any(isinstance(each, do.RequestReply) for each in taken(call, 1_300 + KEPT_MS))


@pytest.mark.parametrize("is_known", [True, False])
def test_a_question_that_was_not_answered_is_answered_in_the_new_session(is_known: bool):
    """By a request where its words are carried, by the server itself where it is heard again."""
    call = Call()
    says(call, 1_000, U1, "Is there parking?" if is_known else None)
    call.at(2_500, BROKEN)
    commands = taken(call, 2_750)
    asked = [each for each in commands if isinstance(each, do.RequestReply)]
    assert (told(commands), len(asked)) == (([("caller", "Is there parking?")], 1) if is_known else ([], 0))


@pytest.mark.parametrize("reports", [PULLED, MARKS])
def test_a_reply_that_breaks_off_plays_as_far_as_it_came_and_is_carried_as_it_was_heard(reports):
    """2 s of a reply came in the first second: the line plays them to their end, and the rest is asked for."""
    call = Call(reports)
    says(call, 0, U1, "What is there?")
    call.at(900, on.ResponseStarted(R1))
    for _ in range(10):
        call.at(1_000, audio(R1, A, 200))
    call.at(1_100, on.ReplyWritten(R1, A, " ".join([TEN_WORDS] * 4)))
    call.at(1_500, BROKEN)
    commands = taken(call, 1_750)
    assert told(commands) == [("caller", "What is there?"), ("agent", "one two three four")]
    assert [type(each) for each in commands if isinstance(each, do.RequestReply)] == [do.RequestReply]
    call.at(4_000)
    assert call.line.heard_ms(A, 4_000) == 2_000
    assert call.heard()[A] == ("one two three four", "estimated")
    assert not call.done(do.ClearPlayout)


def test_what_an_old_session_knew_is_cut_without_asking_the_new_one():
    """It would not know the item; the estimate stands."""
    call = Call()
    call.at(900, on.ResponseStarted(R1))
    for _ in range(15):
        call.at(1_000, audio(R1, A, 200))
    call.at(1_100, on.ReplyWritten(R1, A, TEN_WORDS), ended(R1))
    call.at(1_500, BROKEN)
    taken(call, 1_750)
    call.at(2_000, on.SpeechStarted(U1, 250))
    assert call.cuts() == []
    assert not call.done(do.RetrieveItem)
    assert call.heard()[A][1] == "estimated"


def playing() -> Call:
    """3 s of a reply, all of which came in the first second; 0.5 s later its session is lost."""
    call = Call()
    says(call, 0, U1, "Go on.")
    call.at(900, on.ResponseStarted(R1))
    for _ in range(15):
        call.at(1_000, audio(R1, A, 200))
    call.at(1_100, on.ReplyWritten(R1, A, TEN_WORDS), ended(R1))
    call.at(1_500, BROKEN)
    return call


def test_a_reply_that_plays_on_is_carried_behind_the_rest_as_it_was_heard():
    """The caller may talk over it: then the new session keeps no word that nobody heard."""
    for at_ms, heard in ((2_500, "one two three four"), (9_000, TEN_WORDS)):
        call = playing()
        assert told(taken(call, 1_750)) == [("caller", "Go on.")]
        commands = call.at(at_ms, on.SpeechStarted(U2, at_ms - 1_750))
        assert call.heard()[A][0] == heard
        assert [told([each]) for each in call.done(do.CarryMessage)][1:] == [[("agent", heard)]]
        assert bool(told(commands)) == (heard != TEN_WORDS), "at the cut, or when it was played out"


def test_a_reply_that_broke_off_long_ago_stands_where_it_stood():
    """Nobody says its rest any more, although it lacks words."""
    call = Call()
    says(call, 0, U1, "What is there?")
    call.at(900, on.ResponseStarted(R1), audio(R1, A, 500), on.ReplyWritten(R1, A, TEN_WORDS))
    call.at(1_000, BROKEN)
    taken(call, 1_250)
    says(call, 2_000, U2, "And?")
    call.reply(R2, B, 3_000, "one two")
    call.at(6_000, BROKEN)
    (first, broken, *rest) = told(taken(call, 6_250))
    assert (first, broken) == (("caller", "What is there?"), ("agent", call.heard()[A][0]))
    assert call.heard()[A] == ("one", "estimated")
    assert rest == [("caller", "And?"), ("agent", "one two")]


def test_where_no_item_is_taken_what_was_heard_is_told_in_another_summary():
    call = playing()
    taken(call, 1_750)
    (message,) = call.done(do.CarryMessage)
    (summary,) = [each for each in call.refuse(message) if isinstance(each, do.ConfigureSession)]
    assert f"agent: {TEN_WORDS}" in summary.more
    commands = call.at(2_500, on.SpeechStarted(U2, 750))
    (again,) = [each for each in commands if isinstance(each, do.ConfigureSession)]
    assert again.more.endswith("agent: one two three four")
    call.at(9_000, on.SpeechStopped(U2, 1_000))
    assert call.done(do.ConfigureSession)[-1] is again


def test_a_summary_that_tells_what_was_heard_is_not_told_again():
    call = playing()
    taken(call, 1_750)
    (message,) = call.done(do.CarryMessage)
    call.refuse(message)
    count = len(call.done(do.ConfigureSession))
    call.at(9_000)
    assert len(call.done(do.ConfigureSession)) == count


def test_c110_a_tool_that_runs_on_is_answered_in_the_session_that_was_told_of_its_call():
    call = Call()
    says(call, 1_000, U1, "Look it up.")
    call.at(2_000, on.ResponseStarted(R1), called(K1), ended(R1))
    call.at(2_500, BROKEN)
    assert ("look_up", K1) in told(taken(call, 2_750))
    commands = call.at(4_000, finished(K1))
    assert told(commands) == [(K1, f"output of {K1}")]
    assert any(isinstance(each, do.RequestReply) for each in commands)
    assert len([each for each in call.done(do.PostToolOutput) if each.tool_call_id == K1]) == 1


def test_a_tool_that_ends_between_two_sessions_is_carried_with_its_output():
    call = Call()
    says(call, 1_000, U1, "Look it up.")
    call.at(2_000, on.ResponseStarted(R1), called(K1), ended(R1))
    call.at(2_500, BROKEN)
    assert call.at(2_600, finished(K1)) == []
    commands = taken(call, 2_750)
    assert told(commands) == [("caller", "Look it up."), ("look_up", K1), (K1, f"output of {K1}")]
    assert len([each for each in commands if isinstance(each, do.RequestReply)]) == 1


def test_c103_a_reply_in_a_new_session_is_asked_for_once_its_configuration_is_taken():
    """It would be made with the server's own instructions and voice."""
    call = Call()
    says(call, 1_000, U1, "Look it up.")
    call.at(2_000, on.ResponseStarted(R1), called(K1), ended(R1))
    call.at(2_500, BROKEN)
    assert [type(each) for each in call.at(2_700, on.ModelConnected())] == [do.ConfigureSession]
    assert call.at(3_200, finished(K1)) == []
    commands = call.at(3_300, on.SessionReady(), on.UplinkResumed(800, 0))
    assert [each for each in commands if isinstance(each, do.RequestReply)]


def test_what_the_record_says_stands_where_it_stood_and_news_of_the_gap_behind_it():
    call = Call()
    says(call, 1_000, U1, "Refund it.")
    call.at(2_000, fact(Milestone.ACCEPTED, 1))
    says(call, 3_000, U2, "And?")
    call.at(4_000, BROKEN)
    call.at(4_100, fact(Milestone.CONFIRMED, 2))
    (first, second, news) = told(taken(call, 4_250))
    assert (first, second) == (("caller", "Refund it."), ("caller", "And?"))
    assert '"state": "confirmed"' in news[1]
    call.at(5_000, on.ResponseStarted(R1))
    call.stream(R1, A, 8_000)
    call.at(13_000, on.ReplyWritten(R1, A, DONE), ended(R1))
    call.at(20_000, BROKEN)
    (*_, news, heard) = told(taken(call, 20_250))
    assert '"state": "confirmed"' in news[1]
    assert heard == ("agent", DONE)


def test_c108_an_item_that_is_refused_is_told_in_a_summary_instead_once():
    call = talked()
    call.at(8_000, BROKEN)
    taken(call, 8_250)
    (message, *_) = call.done(do.CarryMessage)
    commands = call.refuse(message)
    (again,) = [each for each in commands if isinstance(each, do.ConfigureSession)]
    assert "caller: What about order 4417?" in again.more
    assert f"it returned output of {K1}" in again.more
    assert set(again.about) == {U1, A, K1}
    (tool_call,) = call.done(do.CarryCall)
    assert not [each for each in call.refuse(tool_call) if isinstance(each, do.ConfigureSession)]
    assert sum("refused" in note for note in call.anomalies()) == 2


def test_c108_a_session_that_closes_on_its_history_is_followed_by_one_with_a_summary_and_no_item():
    call = talked()
    call.at(8_000, BROKEN)
    taken(call, 8_250)
    call.at(8_300, on.ModelClosed(1007, "invalid item"))
    (configure,) = call.at(9_000, on.ModelConnected())
    assert "caller: What about order 4417?" in configure.more
    commands = call.at(9_050, on.SessionReady(), on.UplinkResumed(800, 0))
    assert told(commands) == []
    assert do.StateRestored(0, 800, 0, 750) in commands


def test_a_running_tool_is_answered_by_a_note_where_its_call_was_not_carried():
    call = Call()
    says(call, 1_000, U1, "Look it up.")
    call.at(2_000, on.ResponseStarted(R1), called(K1), ended(R1))
    call.at(2_500, BROKEN)
    taken(call, 2_750)
    call.at(2_800, on.ModelClosed(1007, ""))
    taken(call, 4_000)
    commands = call.at(5_000, finished(K1))
    assert told(commands) == [("note", f'{{"tool": "look_up", "output": "output of {K1}"}}')]


def test_a_long_call_is_told_from_its_end():
    call = Call()
    for number in range(ITEMS_MAX + 10):
        at_ms, item_id = 1_000 + 10 * number, ItemId(f"u{number}")
        call.at(at_ms, on.SpeechStarted(item_id, at_ms), on.SpeechStopped(item_id, at_ms + 10))
        call.at(at_ms, on.CallerTranscribed(item_id, f"number {number}"))
    call.at(5_000, BROKEN)
    carried = told(taken(call, 5_250))
    assert (len(carried), carried[-1]) == (ITEMS_MAX, ("caller", f"number {ITEMS_MAX + 9}"))


# --- planned ---------------------------------------------------------------------------------------------------------


def planned(**more) -> Call:
    return Call(longest_session_ms=60_000, **more)


def test_c107_a_planned_hand_over_waits_for_the_reply_and_its_last_sample():
    call = planned()
    says(call, 44_000, U1, "Hello?")
    call.at(44_900, on.ResponseStarted(R1))
    call.stream(R1, A, 2_000, speed=2)
    call.at(45_900, on.ReplyWritten(R1, A, TEN_WORDS), ended(R1))
    call.at(50_000)
    assert call.times(do.Connect) == [46_900]
    assert not call.anomalies()


@pytest.mark.parametrize(
    "busy",
    [
        (on.SpeechStarted(U1, 0),),
        (on.ResponseStarted(R1),),
        (on.ResponseStarted(R1), called(K1), ended(R1)),
        (on.ResponseStarted(R1), called(K1, "end_call")),
    ],
    ids=["the caller speaks", "a response is open", "a tool runs", "the goodbye is said"],
)
def test_c107_a_moment_in_which_something_is_under_way_is_not_quiet(busy):
    call = planned()
    call.at(44_000, *busy)
    call.at(47_000)
    assert not call.done(do.Connect)


def test_c107_at_the_last_moment_a_session_is_let_go_in_mid_reply():
    call = planned()
    call.at(40_000, on.ResponseStarted(R1))
    call.stream(R1, A, 20_000)
    assert call.times(do.Connect) == [55_000]


# --- the end ---------------------------------------------------------------------------------------------------------


def test_c111_a_key_that_is_refused_ends_the_call_after_one_try():
    call = Call()
    call.at(1_000, BROKEN)
    (*_, hang_up) = call.at(1_100, on.ConnectFailed("HTTP 401", is_final=True))
    assert hang_up == do.HangUp("no session")
    assert call.session.ending == Ending("model", "no connection HTTP 401")


def test_c111_a_quota_that_is_used_up_ends_the_call_when_the_server_closes():
    call = Call()
    call.at(1_000, on.RequestRefused("insufficient_quota", "no more", None), EXPIRED)
    assert call.session.ending == Ending("model", "connection closed: 4410 session_expired; insufficient_quota")
    assert not call.done(do.Connect)


def test_three_tries_that_fail_end_the_call_with_the_last_ones_reason():
    call = Call()
    call.at(1_000, BROKEN)
    for at_ms in (1_100, 1_700, 3_800):
        call.at(at_ms, on.ConnectFailed("HTTP 503", is_final=False))
    assert [each.after_ms for each in call.done(do.Connect)] == list(PAUSES_MS)
    assert call.session.ending == Ending("model", "no connection HTTP 503; 3 tries brought no session that lasts")
    assert TRIES_MAX == 3


def test_a_session_that_does_not_come_ends_the_call_in_20_s():
    call = Call()
    call.at(1_000, BROKEN)
    call.at(60_000)
    assert call.session.ending.by == "model"
    assert call.times(do.HangUp) == [1_000 + SESSION_PATIENCE_MS]


def test_a_caller_who_hangs_up_between_two_sessions_ends_the_call():
    """C113: no session is left open, and none is opened any more."""
    call = Call()
    call.at(1_000, BROKEN)
    assert call.at(1_100, on.LineClosed("caller", "hung up")) == [do.CloseModel("line closed")]
    assert call.at(1_200, on.ModelConnected(), on.SessionReady()) == []


def test_a_session_that_is_lost_in_the_goodbye_is_not_followed_by_another():
    call = Call()
    call.at(1_000, on.ResponseStarted(R1), called(K1, "end_call"), audio(R1, A, 400))
    call.at(1_200, BROKEN)
    assert not call.done(do.Connect)
    call.at(30_000)
    assert call.session.ending is not None


# --- the audio clock -------------------------------------------------------------------------------------------------


def test_the_audio_clock_of_a_new_session_counts_from_its_own_first_sample():
    """A yes is an answer by when it was said, on the call's clock."""
    call = Call()
    call.at(20_000, BROKEN)
    taken(call, 20_250, held_ms=1_250)
    assert call.session.pickup.origin_ms == 19_000
    call.at(22_000, on.SpeechStarted(U1, 1_500))
    (*_, connect) = call.at(22_000, BROKEN)
    assert connect == do.Connect(PAUSES_MS[1], 1_500 + BEFORE_MS)  # he has spoken since 20.5 s


def test_a_person_who_is_met_after_a_hand_over_is_answered_after_what_the_calls_clock_says():
    call = Call()
    call.at(1_000, on.ResponseStarted(R1), called(K1, "wait"), ended(R1))
    call.at(1_100, finished(K1))
    call.at(20_000, BROKEN)
    taken(call, 20_250, held_ms=1_250)  # counted from 19 s
    call.at(22_000, on.SpeechStarted(U1, 2_500))
    call.at(23_500, on.SpeechStopped(U1, 4_000), on.CallerTranscribed(U1, "Hello, this is Sam."))
    call.at(24_000, on.ResponseStarted(R2), audio(R2, A, 200), ended(R2))
    call.at(30_000, on.LineClosed("caller", "hung up"))
    summary = call.session.on_hold()
    assert summary.answered_after_ms == 1_000
    assert [(each.phase, each.since_ms) for each in summary.phases] == [
        (Phase.RINGING, 0),
        (Phase.QUEUE, 1_100),
        (Phase.PERSON, 22_000),
        (Phase.OVER, 30_000),
    ]


def test_the_audio_clock_of_a_session_whose_first_words_were_lost_counts_from_what_is_left_of_them():
    call = Call()
    call.at(100, on.FirstWordsLost(3_000))
    call.at(20_000, on.SpeechStarted(U1, 15_000))
    (*_, connect) = call.at(20_000, BROKEN)
    assert connect == do.Connect(0, 2_000 + BEFORE_MS)  # he has spoken since 18 s


# --- long turns ------------------------------------------------------------------------------------------------------


def test_a_turn_that_is_longer_than_the_server_keeps_is_told_at_once_and_counted_at_its_end():
    call = Call(longest_turn_ms=30_000)
    call.at(10_000, on.SpeechStarted(U1, 10_000))
    call.at(16_000, on.CallerLoud(is_loud=True))
    call.at(39_999)
    assert not call.anomalies()
    call.at(40_000)
    assert call.anomalies() == ["the caller's turn has lasted over 30 s; the server drops what comes of it now"]
    call.at(50_000, on.SpeechStopped(U1, 50_000))
    assert call.anomalies()[-1] == "10000 ms of the caller were dropped by the server: his turn was too long"
    assert call.session.renewal.long_turns.dropped_ms == 10_000
    assert call.session.ending is None


def test_a_turn_that_was_ended_by_hand_is_not_too_long_however_long_nothing_follows():
    call = Call(longest_turn_ms=30_000)
    call.at(10_000, on.SpeechStarted(U1, 10_000))
    call.at(LISTEN_MS + 10_000)
    call.at(LISTEN_MS + QUIET_MS + 10_000)
    assert call.done(do.EndTurn)
    call.at(LISTEN_MS + QUIET_MS + 10_000, on.ResponseStarted(R1), called(K1, "wait"), ended(R1))
    call.at(LISTEN_MS + QUIET_MS + 10_100, finished(K1))
    call.at(400_000)
    assert [what for what in call.anomalies() if "has lasted" in what or "dropped" in what] == []
    assert call.session.renewal.long_turns.dropped_ms == 0

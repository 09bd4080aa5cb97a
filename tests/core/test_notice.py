"""A notice counts when it was heard, and what is kept of a call follows from that and from what the caller says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.drive import BOTH_LINES, EVERYTHING, K1, R1, R2, TOOLS, U1, U2, A, B, Call, FakeLine, called
from tests.core.machines import written_rows

from callwright.claims.words import plain
from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.keeping import KEEPING, Stage, is_no
from callwright.core.notice import NOTICE, Notice
from callwright.core.notice import Stage as Told
from callwright.core.plan import Keep
from callwright.core.ports import PlayedReports
from callwright.core.session import Can
from callwright.core.toolcalls import AfterOutput
from callwright.core.transcript import Source, Speaker, Turn
from callwright.ids import ItemId, Ms

AI = "our automated assistant"
RECORDED = "this call is recorded"
FIRST = "You're speaking with our automated assistant, and this call is recorded. Is that all right?"
TEN_S = FIRST + " Check-in is from three; please bring a photo ID, and the card that you booked with at the time."
NEVER = "the caller never heard that he talks to an AI"


def call(line: FakeLine | PlayedReports = PlayedReports.PULLED, keep: Keep = Keep.AFTER_NOTICE, **planned) -> Call:
    return Call(line, ai_notice=AI, recording_notice=RECORDED, keep=keep, **planned)


def told(keep: Keep = Keep.AFTER_NOTICE) -> Call:
    """A caller who has heard both notices."""
    it = call(keep=keep)
    it.reply(R1, A, 4_000, FIRST)
    it.pass_until(6_000)
    return it


def says(it: Call, text: str, item_id: ItemId = U1) -> list[do.Command]:
    """The caller speaks for a second; the words are known a second after that."""
    it.at(it.now_ms, on.SpeechStarted(item_id, it.now_ms))
    it.at(it.now_ms + 1_000, on.SpeechStopped(item_id, it.now_ms + 1_000))
    return it.at(it.now_ms + 1_000, on.CallerTranscribed(item_id, text))


def cut_at(it: Call, ms: Ms, text: str = TEN_S) -> None:
    """A reply of 10 s is talked over when the ear has had ``ms`` of it."""
    it.at(0, on.ResponseStarted(R1))
    it.stream(R1, A, 10_000, speed=20)
    it.at(it.now_ms, on.ReplyWritten(R1, A, text))
    it.at(ms, on.SpeechStarted(U1, ms))


def test_rows():
    assert written_rows(NOTICE) == [
        "UNSAID WRITTEN -> SAID",
        "UNSAID ENDED -> MISSED",
        "SAID CUT -> UNSAID",
        "SAID HEARD -> HEARD",
        "SAID ENDED -> MISSED",
    ]
    assert written_rows(KEEPING) == [
        "WITHHELD ALLOWED -> KEPT",
        "WITHHELD OBJECTED -> REFUSED",
        "KEPT OBJECTED -> REFUSED",
    ]


@pytest.mark.parametrize("reports", BOTH_LINES)
def test_a_notice_is_heard_when_the_reply_that_holds_it_was_played(reports):
    it = call(reports)
    it.at(0, on.ResponseStarted(R1))
    it.stream(R1, A, 4_000, speed=20)
    it.at(it.now_ms, on.ReplyWritten(R1, A, FIRST), on.ResponseEnded(R1, on.ResponseStatus.COMPLETED))
    it.pass_until(3_900)
    assert it.session.keeping.ai_notice.stage is Told.SAID
    it.pass_until(5_000)
    assert it.session.keeping.ai_notice.stage is Told.HEARD
    assert it.session.keeping.ai_notice.heard_ms in range(4_000, 4_050)
    assert it.times(do.KeepWords) == [it.session.keeping.recording_notice.heard_ms]


def test_behind_a_fixed_lag_it_is_heard_when_its_last_word_is_at_the_ear():
    it = call(latency_ms=1_500)
    it.reply(R1, A, 4_000, FIRST)
    it.pass_until(5_400)
    assert it.session.keeping.ai_notice.heard_ms is None
    it.pass_until(6_000)
    assert it.session.keeping.ai_notice.heard_ms in range(5_500, 5_550)


def test_a_line_that_ends_before_the_notice_is_at_the_ear_leaves_it_missed():
    it = call(latency_ms=3_000)
    it.reply(R1, A, 4_000, FIRST)
    it.at(4_400, on.LineClosed("caller", "hung up"))
    assert it.session.keeping.ai_notice.stage is Told.MISSED
    assert it.done(do.KeepWords) == []
    assert NEVER in it.anomalies()


def test_a_notice_that_was_cut_is_not_heard_and_one_that_is_said_again_is():
    it = call()
    cut_at(it, 1_000)
    assert it.session.keeping.ai_notice.stage is Told.SAID
    it.at(1_100, on.ItemTruncated(A, 1_000), on.ItemRetrieved(A, "You're speaking with our", is_cut=True))
    assert it.session.keeping.ai_notice.stage is Told.UNSAID
    it.at(2_000, on.SpeechStopped(U1, 2_000), on.ResponseEnded(R1, on.ResponseStatus.CANCELLED))
    it.reply(R2, B, 4_000, "automated assistant here, that is, our automated assistant, at your service.")
    it.pass_until(8_000)
    assert it.session.keeping.ai_notice.item_id == B
    assert it.session.keeping.recording_notice.stage is Told.UNSAID


def test_what_the_server_says_was_heard_of_a_cut_reply_counts():
    it = call()
    cut_at(it, 6_000)
    assert it.session.keeping.ai_notice.heard_ms is None
    it.at(6_200, on.ItemTruncated(A, 6_000), on.ItemRetrieved(A, FIRST, is_cut=True))
    assert it.session.keeping.ai_notice.heard_ms == 6_200
    assert it.times(do.KeepWords) == [6_200]


@pytest.mark.parametrize(("at_ms", "stage"), [(2_000, Told.UNSAID), (7_000, Told.HEARD)])
def test_where_nobody_can_be_asked_an_estimate_tells_and_claims_no_notice_too_early(at_ms, stage):
    it = call(can=EVERYTHING & ~Can.RETRIEVE)
    cut_at(it, at_ms)
    assert it.session.keeping.ai_notice.stage is stage


def test_a_call_in_which_the_notice_was_never_heard_says_so_once():
    it = call()
    it.reply(R1, A, 2_000, "Check-in is from three.")
    it.at(5_000, on.LineClosed("caller", "hung up"), on.LineClosed("caller", "hung up"))
    assert it.anomalies().count(NEVER) == 1


def test_a_caller_to_whom_nothing_was_said_did_not_talk_to_an_ai():
    it = call()
    it.at(900, on.LineClosed("caller", "hung up"))
    assert it.anomalies() == []


def test_an_agent_without_a_notice_misses_none():
    it = Call()
    it.reply(R1, A, 2_000, "Check-in is from three.")
    it.at(5_000, on.LineClosed("caller", "hung up"))
    assert it.anomalies() == []


# --- what is kept


@pytest.mark.parametrize(("keep", "stage"), [(Keep.EVERYTHING, Stage.KEPT), (Keep.NOTHING, Stage.WITHHELD)])
def test_where_nobody_is_asked_neither_notice_nor_answer_changes_what_is_kept(keep, stage):
    it = told(keep)
    says(it, "No, do not record this.")
    it.at(it.now_ms, on.ResponseStarted(R2), called(K1, "stop_recording", R2))
    assert it.session.keeping.stage is stage
    assert it.done(do.KeepWords) == it.done(do.DropWords) == []


def test_words_are_kept_from_the_notice_on_and_a_no_drops_them():
    it = told()
    assert it.session.keeping.stage is Stage.KEPT
    assert says(it, "No, I'd rather not.") == [do.DropWords()]
    assert it.session.keeping.stage is Stage.REFUSED


def test_a_yes_keeps_them_and_so_does_a_later_no_to_something_else():
    it = told()
    says(it, "Yes, sure.")
    says(it, "No, on the second floor.", U2)
    assert it.session.keeping.stage is Stage.KEPT


def test_a_first_turn_without_words_is_no_answer():
    it = told()
    says(it, "")
    says(it, "No.", U2)
    assert it.session.keeping.stage is Stage.REFUSED


def test_an_answer_that_is_understood_late_counts_though_another_turn_was_understood_before():
    it = told()
    it.at(7_000, on.SpeechStarted(U1, 7_000), on.SpeechStopped(U1, 7_500))
    says(it, "Is there a pool?", U2)
    it.at(12_000, on.CallerTranscribed(U1, "No!"))
    assert it.session.keeping.stage is Stage.REFUSED


def test_a_no_that_cuts_the_question_off_behind_the_notice_is_an_answer():
    it = call()
    cut_at(it, 6_000)
    it.at(6_100, on.ItemTruncated(A, 6_000), on.ItemRetrieved(A, FIRST, is_cut=True))
    it.at(7_000, on.SpeechStopped(U1, 7_000), on.CallerTranscribed(U1, "No, thanks."))
    assert it.session.keeping.stage is Stage.REFUSED


def test_a_no_before_the_notice_is_an_answer_to_something_else():
    it = call()
    says(it, "No, wait, is this the hotel?")
    it.reply(R1, A, 4_000, FIRST)
    it.pass_until(9_000)
    assert it.session.keeping.stage is Stage.KEPT


@pytest.mark.parametrize("is_told", [True, False])
def test_the_models_word_that_the_caller_objects_is_enough_at_any_time(is_told):
    it = told() if is_told else call()
    it.at(20_000, on.ResponseStarted(R2))
    assert do.DropWords() in it.at(20_100, called(K1, "stop_recording", R2))
    it.at(20_200, on.ResponseEnded(R2, on.ResponseStatus.COMPLETED))
    it.reply(R1, B, 4_000, FIRST)
    it.pass_until(40_000)
    assert it.session.keeping.stage is Stage.REFUSED
    assert len(it.done(do.DropWords)) == 1


def test_it_is_enough_too_where_the_call_of_the_tool_came_too_late_to_be_run():
    it = call(tools={**TOOLS, "stop_recording": AfterOutput.REPLY})
    cut_at(it, 6_000)
    it.at(6_100, called(K1, "stop_recording", R1))
    assert it.session.keeping.stage is Stage.REFUSED
    assert it.done(do.StartTool) == []


@pytest.mark.parametrize(
    "text",
    [
        *("No.", "no", "Nope!", "Nah, don't.", "No, thank you.", "No, I do mind.", "Please don't record me."),
        *("I'd rather not.", "I would rather not be recorded", "Stop recording, please.", "That is not all right."),
        *("I don't want that.", "Well, I do not consent.", "I object to that.", "No problem, but do not record me."),
    ],
)
def test_what_is_plainly_a_no(text):
    assert is_no(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "Yes.", "Sure, go ahead.", "No problem.", "No, that's fine.", "No, I don't mind.", "No, not at all."),
        *(
            "Okay.",
            "Is there a pool?",
            "Do you know a good restaurant?",
            "Nothing else, thanks.",
            "...",
            "Nobody minds.",
        ),
    ],
)
def test_what_is_not_a_no(text):
    assert not is_no(text)


# --- any order

WORDS = st.lists(st.sampled_from(["our", "automated", "assistant", "Hello,", "no", "pool."]), max_size=6).map(" ".join)
REPLIES = st.tuples(
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from([source for source in Source if source is not Source.TRANSCRIBED]),
    WORDS,
    WORDS,
).map(lambda drawn: reply_turn(*drawn))
CALLERS = st.tuples(st.sampled_from(["u", "v"]), WORDS).map(
    lambda drawn: Turn(Speaker.CALLER, ItemId(drawn[0]), drawn[1], drawn[1], Source.TRANSCRIBED)
)


def reply_turn(item_id: str, source: Source, heard: str, written: str) -> Turn:
    is_known = source not in (Source.PENDING, Source.NONE)
    return Turn(Speaker.AGENT, ItemId(item_id), heard if is_known else "", written, source)


@given(st.lists(st.tuples(st.integers(0, 400), st.lists(st.one_of(REPLIES, CALLERS), max_size=4)), max_size=8))
def test_heard_means_that_one_reply_held_it_long_enough_ago(steps):
    notice, now_ms, since_ms = Notice(AI, latency_ms=300), 0, None
    for passed_ms, turns in steps:
        now_ms += passed_ms
        holds = any(turn.speaker is Speaker.AGENT and AI in " ".join(plain(turn.heard)) for turn in turns)
        if notice.heard_ms is None:
            since_ms = None if not holds else now_ms if since_ms is None else since_ms
        was = notice.heard_ms
        is_news = notice.look(turns, now_ms)
        assert is_news == (was is None and notice.heard_ms is not None)
        if notice.heard_ms is None:
            assert since_ms is None or now_ms < since_ms + 300
        else:
            assert since_ms is not None
            assert notice.heard_ms >= since_ms + 300
    assert notice.call_is_over([], now_ms) == (notice.heard_ms is None)


EVENTS = st.sampled_from(
    [
        *(on.SpeechStarted(U1, 0), on.SpeechStopped(U1, 0), on.CallerTranscribed(U1, "No."), on.SpeechStarted(U2, 0)),
        *(on.ResponseStarted(R1), on.ReplyWritten(R1, A, FIRST), on.AudioReceived(R1, A, 24_000)),
        *(on.ResponseEnded(R1, on.ResponseStatus.COMPLETED), on.ItemRetrieved(A, FIRST, is_cut=True)),
        *(on.ItemTruncated(A, 900), on.CallerTranscribed(U2, "Yes."), on.SpeechStopped(U2, 0)),
        *(called(K1, "stop_recording"), on.LineClosed("caller", "hung up")),
    ]
)


@given(st.lists(st.tuples(st.integers(0, 2_000), EVENTS), max_size=20), st.sampled_from(list(Keep)))
def test_in_any_order_nothing_is_kept_before_the_notice_was_heard_or_after_an_objection(steps, keep):
    it = call(keep=keep)
    for passed_ms, event in steps:
        it.at(it.now_ms + passed_ms, event)
    changes = [type(command) for _, command in it.log if isinstance(command, do.KeepWords | do.DropWords)]
    assert changes in ([], [do.KeepWords], [do.DropWords], [do.KeepWords, do.DropWords])
    assert keep is Keep.AFTER_NOTICE or not changes
    if do.KeepWords in changes:
        assert it.times(do.KeepWords) == [it.session.keeping.recording_notice.heard_ms]
    assert (it.session.keeping.stage is Stage.REFUSED) == (do.DropWords in changes)

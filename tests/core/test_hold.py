"""Where a call on hold is, that silence is an answer, and that giving up is polite."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.core.drive import K1, K2, R1, TOOLS, A, Call, audio, called, ended, finished, speaks, stops
from tests.core.machines import written_rows

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.giveup import GIVE_UP, PARTING_MS
from callwright.core.hold import HOLD, Cue, HoldSummary, Phase, PhaseSince, has_words
from callwright.core.session import Can
from callwright.core.stalls import TURN_MAX_MS
from callwright.core.toolcalls import AfterOutput
from callwright.core.turns import REPLY_PATIENCE_MS
from callwright.ids import ItemId, Ms, ResponseId, ToolCallId

ON_HOLD = {**TOOLS, "press_keys": AfterOutput.SILENCE, "leave_voicemail": AfterOutput.HANG_UP}
HOURS_MS = 3 * 3_600_000
GIVE_UP_ROWS = """
PATIENT TOO_LONG -> ASKED
ASKED MET -> PATIENT
ASKED IGNORED -> DONE
"""


def test_the_tables_are_the_ones_that_are_meant():
    """The same cue leads to the same phase from everywhere, but for waiting with a person and keys that are out."""
    assert written_rows(GIVE_UP) == GIVE_UP_ROWS.split("\n")[1:-1]
    assert set(HOLD.rows) == {(phase, cue) for phase in Phase for cue in Cue if phase is not Phase.OVER}
    told = {cue: Counter(HOLD.rows[row] for row in HOLD.rows if row[1] is cue).most_common(1)[0][0] for cue in Cue}
    other = {row: then for row, then in HOLD.rows.items() if row[1] is not Cue.PRESSED and then is not told[row[1]]}
    assert other == {(Phase.PERSON, Cue.WAITS): Phase.HOLD, (Phase.HOLD, Cue.WAITS): Phase.HOLD}
    assert [row for row, then in HOLD.rows.items() if row[1] is Cue.PRESSED and then is not row[0]] == [
        (Phase.MENU, Cue.PRESSED)
    ]


class HoldCall(Call):
    """A call of an agent's, told in turns of the far end and answers to them."""

    def __init__(self, **planned):
        super().__init__(tools=ON_HOLD, **planned)
        self.count = 0

    def turn(self, at_ms: Ms, ms: Ms, text: str | None = "Yes?") -> ItemId:
        self.count += 1
        item = ItemId(f"u{self.count}")
        self.at(at_ms, speaks(item))
        self.at(at_ms + ms, on.SpeechStopped(item, at_ms + ms))
        if text is not None:
            self.at(self.now_ms, on.CallerTranscribed(item, text))
        return item

    def response(self, *names: str, speech_ms: Ms = 0, keys: str = "", text: str = "") -> None:
        """A response 500 ms from now that speaks, calls these tools, and is closed; the tools return at once."""
        self.count += 1
        response = ResponseId(f"r{self.count}")
        self.at(self.now_ms + 500, on.ResponseStarted(response))
        if speech_ms:
            self.at(self.now_ms, audio(response, ItemId(f"i{self.count}"), speech_ms))
        if text:
            self.at(self.now_ms, on.ReplyWritten(response, ItemId(f"i{self.count}"), text))
        ids = [ToolCallId(f"k{self.count}.{number}") for number, _ in enumerate(names)]
        for tool_call_id, name in zip(ids, names, strict=True):
            self.at(self.now_ms, called(tool_call_id, name, response))
            if name == "press_keys":
                self.at(self.now_ms, on.KeysRequested(tool_call_id, keys))
        self.at(self.now_ms, ended(response))
        for tool_call_id, name in zip(ids, names, strict=True):
            if name == "press_keys":
                self.at(self.now_ms + 400 + 200 * len(keys))
            self.at(self.now_ms, finished(tool_call_id))

    @property
    def phase(self) -> Phase:
        return self.session.asking.hold.phase

    def summary(self) -> HoldSummary | None:
        self.at(self.now_ms, on.LineClosed("caller", "hung up"))
        return self.session.on_hold()


def queued(**planned) -> HoldCall:
    """A menu from 1 s to 6 s, the key at 6.5 s (out at 6.7 s)."""
    call = HoldCall(**planned)
    call.turn(1_000, 5_000, "For prescriptions press two.")
    call.response("press_keys", keys="2")
    return call


def test_a_call_goes_through_menu_and_queue_to_a_person_and_waits_for_him_again():
    call = queued()
    assert call.phase is Phase.QUEUE
    call.turn(8_000, 2_000, "Connecting.")
    call.response("wait")
    call.turn(40_000, 2_000, "Pharmacy, Sam.")
    call.response(speech_ms=3_000)
    call.turn(50_000, 1_000, "Hold on.")
    call.response("wait", speech_ms=400)
    assert call.phase is Phase.HOLD
    call.turn(60_000, 2_000, "It is ready.")
    call.response(speech_ms=1_000)
    call.at(70_000)
    assert call.summary() == HoldSummary(
        keys_pressed="2",
        on_hold_ms=(40_000 - 6_700) + (60_000 - 51_500),
        answered_after_ms=500,
        max_hold_reached=False,
        phases=(
            PhaseSince(Phase.RINGING, 0),
            PhaseSince(Phase.MENU, 1_000),
            PhaseSince(Phase.QUEUE, 6_700),
            PhaseSince(Phase.PERSON, 40_000),
            PhaseSince(Phase.HOLD, 51_500),
            PhaseSince(Phase.PERSON, 60_000),
            PhaseSince(Phase.OVER, 70_000),
        ),
    )


def test_a_person_who_answers_at_once_leaves_nothing_to_sum_up():
    call = HoldCall()
    call.turn(1_000, 1_000)
    call.response(speech_ms=1_000)
    assert (call.phase, call.summary()) == (Phase.PERSON, None)


def test_c063_a_voicemail_is_what_the_model_leaves_a_message_at():
    """C065: its greeting may come as several turns; the model waits through the first ones."""
    call = HoldCall()
    for number in range(3):
        call.turn(1_000 + 3_000 * number, 2_000, "You have reached Sam.")
        call.response("wait")
    call.turn(10_000, 1_000, "[beep]")
    call.response("leave_voicemail", speech_ms=2_000)
    assert call.phase is Phase.VOICEMAIL
    call.at(30_000)
    assert call.session.ending is not None


def test_who_says_a_word_while_he_waits_goes_on_waiting():
    call = queued()
    call.turn(9_000, 1_000, "One moment.")
    call.response("wait", speech_ms=300)
    assert call.phase is Phase.QUEUE


# --- silence ---------------------------------------------------------------------------------------------------------


def test_c068_the_agent_is_never_asked_to_speak_before_the_callee():
    call = HoldCall()
    call.at(600_000)
    assert call.log == []


@pytest.mark.parametrize("can", [Can(0), Can.MERGE])
@pytest.mark.parametrize("after", ["wait", "press_keys"])
def test_c071_after_a_silence_nobody_is_asked_anything_for_hours(can, after):
    call = HoldCall(can=can)
    call.turn(1_000, 2_000, "All our agents are busy.")
    call.response(after, keys="2")
    call.log.clear()
    call.at(HOURS_MS)
    assert not [command for _, command in call.log if isinstance(command, do.RequestReply | do.EndTurn | do.HangUp)]
    assert call.session.ending is None


@pytest.mark.parametrize("text", ["[music]", "", None])
@pytest.mark.parametrize("is_loud", [True, False])
def test_music_that_the_server_takes_for_turns_is_not_answered_nor_ended_by_us(text, is_loud):
    """Turns of 20 minutes, with and without a text, and no response to any of them: what a wait is there for."""
    call = queued()
    call.log.clear()
    for minute in range(0, 180, 30):
        began_ms = 60_000 * minute + 60_000
        call.count += 1
        item = ItemId(f"u{call.count}")
        call.at(began_ms, speaks(item))
        call.at(began_ms + 10_000, on.CallerLoud(is_loud))
        call.at(began_ms + 20 * 60_000, stops(item))
        if text is not None:
            call.at(call.now_ms, on.CallerTranscribed(item, text))
    call.at(HOURS_MS + 3_600_000)
    assert not [command for _, command in call.log if isinstance(command, do.RequestReply | do.EndTurn | do.HangUp)]
    assert call.anomalies() == []


@pytest.mark.parametrize("text", ["[music]", ""])
def test_music_that_opens_turn_after_turn_is_waited_through_once_one_of_them_was_found_wordless(text):
    """Each turn opens 0.2 s after the one before was ended by hand, and cuts the response to it."""
    call = HoldCall()
    call.turn(1_000, 1_000, "Hold on, please.")
    call.response(speech_ms=500)
    call.at(5_000, speaks(ItemId("music1")))
    call.at(10_100, on.CallerLoud(is_loud=True))
    call.at(5_000 + TURN_MAX_MS)
    assert len(call.done(do.EndTurn)) == 1
    call.at(call.now_ms + 200, stops(ItemId("music1")), speaks(ItemId("music2")))
    call.at(call.now_ms + 300, on.CallerTranscribed(ItemId("music1"), text))
    call.log.clear()
    call.at(HOURS_MS)
    assert not [command for _, command in call.log if isinstance(command, do.RequestReply | do.EndTurn | do.HangUp)]
    assert call.session.ending is None
    call.at(call.now_ms, stops(ItemId("music2")), on.CallerTranscribed(ItemId("music2"), "Thanks for waiting."))
    call.at(call.now_ms + REPLY_PATIENCE_MS)
    assert len(call.done(do.RequestReply)) == 1


def test_an_agent_that_cannot_wait_is_asked_to_speak_into_the_music():
    call = Call(tools={})
    call.at(0, speaks(ItemId("music1")))
    call.at(10_100, on.CallerLoud(is_loud=True))
    call.at(TURN_MAX_MS)
    call.at(call.now_ms + 200, stops(ItemId("music1")), on.CallerTranscribed(ItemId("music1"), "[music]"))
    assert call.times(do.RequestReply) == [TURN_MAX_MS]
    call.at(call.now_ms, speaks(ItemId("music2")))
    call.at(call.now_ms + 2 * TURN_MAX_MS)
    assert len(call.done(do.EndTurn)) == 2


def test_a_person_whom_the_server_does_not_answer_is_answered_all_the_same():
    call = queued()
    call.turn(30_000, 1_000, "Pharmacy, Sam speaking.")
    call.log.clear()
    call.at(call.now_ms + REPLY_PATIENCE_MS)
    assert len(call.done(do.RequestReply)) == 1


def test_words_that_come_late_for_an_announcement_that_was_answered_ask_for_nothing():
    call = queued()
    item = call.turn(30_000, 1_000, None)
    call.response("wait")
    call.log.clear()
    call.at(call.now_ms + 1_000, on.CallerTranscribed(item, "You are number three."), speaks(ItemId("music")))
    call.at(HOURS_MS)
    assert call.log == []


def test_an_action_whose_output_nobody_speaks_about_is_no_waiting():
    """The model's own reply says that it is under way: a refund has no queue, and no summary of one."""
    call = HoldCall(max_hold_ms=60_000)
    call.turn(1_000, 1_000, "I want my money back.")
    call.at(2_500, on.ResponseStarted(R1), called(K1), audio(R1, A, 1_000), ended(R1))
    call.at(2_600, on.ToolFinished(K1, on.ToolOutcome.RETURNED, "{}", speaks=False))
    call.at(90_000)
    assert call.phase is Phase.PERSON
    assert call.session.ending is None
    assert call.summary() is None


def test_a_reply_that_was_asked_for_and_does_not_begin_is_asked_for_again_in_silence_too():
    """The agent waits while it looks something up; whoever asked had something to say."""
    call = queued()
    call.at(10_000, on.ResponseStarted(R1), called(K1), called(K2, "wait"), ended(R1), finished(K2))
    call.log.clear()
    call.at(12_000, finished(K1))
    call.at(60_000)
    assert call.times(do.RequestReply) == [12_000, 12_000 + REPLY_PATIENCE_MS, 12_000 + 2 * REPLY_PATIENCE_MS]


@pytest.mark.parametrize(
    ("text", "said"),
    [("[music]", False), ("", False), ("(hold music) [beep]", False), ("...", False), ("[music] Hello?", True)],
)
def test_what_is_in_brackets_was_not_said(text, said):
    assert has_words(text) is said


# --- giving up -------------------------------------------------------------------------------------------------------


def test_the_model_is_told_once_and_asked_once_and_the_goodbye_is_its_own():
    call = queued(max_hold_ms=60_000)
    call.log.clear()
    call.at(66_700)
    (note,) = call.done(do.PostFacts)
    assert "60 s" in note.text
    assert len(call.done(do.RequestReply)) == 1
    call.response("end_call", speech_ms=2_000)
    call.at(call.now_ms + 3_000)
    assert call.session.ending is not None
    assert call.session.ending.reason == f"output of k{call.count}.0"
    summary = call.session.on_hold()
    assert summary is not None
    assert summary.max_hold_reached


@pytest.mark.parametrize("speech_ms", [0, 2_000])
def test_a_model_that_does_not_give_up_is_hung_up_on(speech_ms):
    """Words without the tool end nothing, and have met nobody."""
    call = queued(max_hold_ms=60_000)
    call.turn(8_000, 2_000, "Connecting.")
    call.response("wait")
    call.at(66_700)
    if speech_ms:
        call.response(speech_ms=speech_ms)
        assert call.phase is Phase.QUEUE
    call.at(66_700 + PARTING_MS - 1)
    assert call.session.ending is None
    call.at(66_700 + PARTING_MS)
    assert call.session.ending is not None
    assert (call.session.ending.by, call.session.ending.reason) == ("agent", "gave up after 60 s on hold")
    assert len(call.done(do.RequestReply)) == 1


def test_a_person_who_comes_in_the_last_second_is_not_hung_up_on():
    call = queued(max_hold_ms=60_000)
    call.turn(67_500, 1_000, "Pharmacy, Sam speaking.")
    call.response(speech_ms=2_000)
    call.at(300_000)
    assert call.session.ending is None
    summary = call.summary()
    assert summary is not None
    assert not summary.max_hold_reached


def test_a_goodbye_that_is_being_said_is_not_cut_off_and_one_that_is_taken_back_leaves_as_much_time_again():
    call = queued(max_hold_ms=60_000)
    call.at(78_000)
    call.response("end_call", speech_ms=8_000)
    call.at(83_000)
    assert call.session.ending is None
    call.turn(84_000, 500, "Hello?")
    call.at(84_000 + PARTING_MS - 1)
    assert call.session.ending is None
    call.at(84_000 + PARTING_MS)
    assert call.session.ending is not None


def test_a_limit_that_is_reached_without_a_session_waits_for_the_next_one():
    call = queued(max_hold_ms=60_000)
    call.at(66_000, on.ModelClosed(1006, ""))
    call.at(68_000)
    assert call.done(do.PostFacts) == []
    call.at(68_000, on.ModelConnected(), on.SessionReady(), on.UplinkResumed(0, 2_000))
    assert [note for note in call.done(do.PostFacts) if "60 s" in note.text] != []
    call.at(68_000 + PARTING_MS)
    assert call.session.ending is not None
    assert call.session.ending.reason == "gave up after 60 s on hold"


@pytest.mark.parametrize("presses", [False, True])
def test_c061_a_menu_that_is_repeated_for_ever_is_given_up_as_music_is(presses):
    """Whether the keys are pressed and not taken, or only said: no person was spoken to in between."""
    call = HoldCall(max_hold_ms=60_000)
    for began_ms in range(1_000, 73_000, 12_000):
        call.turn(began_ms, 4_000, "For prescriptions press two.")
        if presses:
            call.response("press_keys", keys="2")
        else:
            call.response(speech_ms=700, text="I'll press two.")
    call.at(100_000)
    assert call.session.ending is not None
    assert call.session.ending.reason == "gave up after 60 s on hold"
    summary = call.session.on_hold()
    assert summary is not None
    assert Phase.PERSON not in [each.phase for each in summary.phases]
    assert summary.answered_after_ms is None


class Phases(RuleBasedStateMachine):
    """Whatever the far end and the model do: phases follow each other, and silence holds."""

    def __init__(self):
        super().__init__()
        self.call = HoldCall(max_hold_ms=None)

    def is_open(self) -> bool:
        return self.call.session.ending is None

    @precondition(is_open)
    @rule(ms=st.sampled_from([500, 4_000]), text=st.sampled_from(["Press two.", "[music]", "Sam speaking."]))
    def the_far_end_speaks(self, ms, text):
        self.call.turn(self.call.now_ms, ms, text)

    @precondition(is_open)
    @rule(
        name=st.none() | st.sampled_from(["wait", "press_keys", "look_up", "leave_voicemail"]),
        speech_ms=st.sampled_from([0, 700]),
    )
    def the_model_answers(self, name, speech_ms):
        hold = self.call.session.asking.hold
        self.call.response(*([name] if name else []), speech_ms=speech_ms, keys="12")
        if name in ("wait", "press_keys") and self.is_open():
            assert hold.stays_silent

    @rule(ms=st.sampled_from([100, 1_000]))
    def time_passes(self, ms):
        self.call.at(self.call.now_ms + ms)

    @precondition(lambda self: self.is_open() and self.call.session.asking.hold.stays_silent)
    @rule()
    def nobody_is_asked_while_silence_was_the_answer(self):
        before = len(self.call.done(do.RequestReply))
        if self.call.session.tools.next_deadline_ms() is None and not self.call.session.turns.is_reply_wanted:
            self.call.at(self.call.now_ms + 100_000)
            assert len(self.call.done(do.RequestReply)) == before

    @invariant()
    def phases_follow_each_other_and_lengths_add_up(self):
        summary = self.call.session.on_hold()
        if summary is None:
            return
        since = [each.since_ms for each in summary.phases]
        assert since == sorted(since)
        assert since[-1] <= self.call.now_ms
        assert 0 <= summary.on_hold_ms <= self.call.now_ms
        assert all(one.phase is not then.phase for one, then in zip(summary.phases, summary.phases[1:], strict=False))


Phases.TestCase.settings = settings(max_examples=12, stateful_step_count=12, deadline=None)
TestPhases = Phases.TestCase

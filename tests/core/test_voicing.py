"""What a server is told of replies that our own voice says follows what was played, once and in order."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.core.drive import (
    CANCELLED,
    EVERYTHING,
    K1,
    R1,
    RATE_HZ,
    TEN_WORDS,
    A,
    B,
    called,
    ended,
    finished,
    plan,
    speaks,
)
from tests.core.machines import written_rows

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.estimate import aligned
from callwright.core.heard import HeardRecord
from callwright.core.outgoing import Outgoing
from callwright.core.plan import Can
from callwright.core.playout import Cut, Playout
from callwright.core.ports import PlayedReports
from callwright.core.session import Session
from callwright.core.transcript import Source
from callwright.core.turns import Turns
from callwright.core.voicing import FIRST_LOOK_MS, PROGRESS_MS, VOICING, OwnVoice
from callwright.ids import ItemId, Ms, ResponseId

ROWS = """
PENDING HEARD_FIRST -> AUDIBLE
PENDING STOPPED -> SILENT
AUDIBLE STOPPED -> SILENT
"""
TELLS = Can.CANCEL | Can.MERGE | Can.REPORT
REPLACES = Can.CANCEL | Can.RESTATE
Report = do.ReportAudible | do.ReportProgress | do.ReportStopped


def test_the_table_has_exactly_these_rows() -> None:
    assert written_rows(VOICING) == ROWS.split("\n")[1:-1]


class Call:
    """A session with a voice of our own, that is ready."""

    def __init__(self, can: Can = TELLS, **more: Any) -> None:
        self.session = Session(plan(can=can, own_voice=True, **more))
        self.now_ms: Ms = 0
        self.commands: list[tuple[Ms, do.Command]] = []
        self.at(0, on.LineOpened(), on.ModelConnected(), on.SessionReady())

    def at(self, now_ms: Ms, *events: on.Event) -> list[do.Command]:
        """Let it be so late, with every timer that is wanted until then, and give these events."""
        while (due_ms := self.session.next_deadline_ms()) is not None and due_ms <= now_ms:
            self.now_ms = max(due_ms, self.now_ms)
            self.played(self.now_ms)
            self._give(on.TimerFired())
        self.now_ms = now_ms
        before = len(self.commands)
        for event in events:
            self.played(now_ms)
            self._give(event)
        return [command for _, command in self.commands[before:]]

    def played(self, now_ms: Ms) -> None:
        """A pulled line plays what it has, without a break from 0."""
        for item_id in self.session.playout.live():
            ms = min(now_ms, self.session.playout.item_ms(item_id))
            self._give(on.LinePlayed(item_id, 0, ms))

    def _give(self, event: on.Event) -> None:
        self.session.handle(event, self.now_ms)
        self.commands += [(self.now_ms, command) for command in self.session.commands()]

    def voiced(self, words: str, item_id: ItemId = A, word_ms: Ms = 200) -> list[on.Event]:
        """Audio that says these words, each with its place."""
        events: list[on.Event] = []
        for number in range(1, len(words.split()) + 1):
            events.append(on.AudioReceived(R1, item_id, word_ms * RATE_HZ // 1000))
            events.append(on.WordsVoiced(item_id, number, number * word_ms))
        return events

    def reports(self) -> list[tuple[Ms, Report]]:
        return [(at_ms, command) for at_ms, command in self.commands if isinstance(command, Report)]

    def of(self, kind: type) -> list[Any]:
        return [command for _, command in self.commands if isinstance(command, kind)]


def test_a_reply_is_reported_from_its_first_sound_to_its_last() -> None:
    call = Call()
    call.at(0, on.ResponseStarted(R1), on.ReplyWritten(R1, A, TEN_WORDS), *call.voiced(TEN_WORDS), ended(R1))
    call.at(3_000)
    told = call.reports()
    assert [type(report) for _, report in told] == [do.ReportAudible, *[do.ReportProgress] * 3, do.ReportStopped]
    assert told[0][0] <= FIRST_LOOK_MS
    gaps = [later - at_ms for (at_ms, _), (later, _) in pairwise(told[:-1])]
    assert gaps == [PROGRESS_MS] * 3
    progress = [report for _, report in told if isinstance(report, do.ReportProgress)]
    assert [report.audio_ms for report in progress] == [at_ms for at_ms, _ in told[1:-1]]
    assert [report.heard for report in progress] == [((A, 3),), ((A, 5),), ((A, 8),)]
    assert told[-1][1] == do.ReportStopped(told[-1][1].event_id, R1, 2_000, 0, ((A, 10),))


def test_a_cut_is_reported_at_once_with_what_was_heard_and_stops_the_voice() -> None:
    call = Call()
    call.at(0, on.ResponseStarted(R1), on.ReplyWritten(R1, A, TEN_WORDS), *call.voiced("one two three four five six"))
    commands = call.at(700, speaks())
    names = [type(command).__name__ for command in commands]
    assert names == ["ClearPlayout", "StopVoice", "ReportStopped"]
    (stopped,) = call.of(do.ReportStopped)
    assert (stopped.audio_ms, stopped.dropped_ms, stopped.heard) == (700, 500, ((A, 3),))
    assert call.of(do.StopVoice) == [do.StopVoice(R1, is_open=True)]
    (turn,) = [turn for turn in call.session.transcript() if turn.item_id == A]
    assert (turn.heard, turn.source, turn.cut_ms) == ("one two three", Source.ALIGNED, 700)
    call.at(701, ended(R1, CANCELLED))
    call.at(9_000)
    assert len(call.of(do.ReportStopped)) == 1


def test_no_voice_is_stopped_that_is_through() -> None:
    call = Call()
    call.at(0, on.ResponseStarted(R1), on.ReplyWritten(R1, A, TEN_WORDS), *call.voiced(TEN_WORDS), ended(R1))
    call.at(700, speaks())
    assert not call.of(do.StopVoice)
    assert [stopped.heard for stopped in call.of(do.ReportStopped)] == [((A, 3),)]


def test_a_cut_before_the_first_word_leaves_nothing_heard() -> None:
    call = Call()
    call.at(0, on.ResponseStarted(R1), on.ReplyWritten(R1, A, TEN_WORDS))
    call.at(300, speaks())
    (stopped,) = call.of(do.ReportStopped)
    assert (stopped.audio_ms, stopped.dropped_ms, stopped.heard) == (0, 0, ((A, 0),))
    assert call.of(do.StopVoice) == [do.StopVoice(R1, is_open=True)]
    assert [turn.heard for turn in call.session.transcript() if turn.item_id == A] == [""]
    assert not call.of(do.ReportAudible)


def test_a_text_that_comes_behind_the_cut_was_not_heard_either() -> None:
    call = Call()
    call.at(0, on.ResponseStarted(R1))
    call.at(300, speaks(), on.ReplyWritten(R1, A, TEN_WORDS), ended(R1, CANCELLED))
    (turn,) = [turn for turn in call.session.transcript() if turn.item_id == A]
    assert (turn.heard, turn.written, turn.source) == ("", TEN_WORDS, Source.ESTIMATED)


def test_a_response_that_says_nothing_is_not_reported() -> None:
    call = Call()
    call.at(0, on.ResponseStarted(R1), ended(R1))
    call.at(3_000)
    assert not call.reports()


def test_where_history_can_be_written_anew_it_holds_what_was_heard() -> None:
    call = Call(REPLACES)
    call.at(0, on.ResponseStarted(R1), on.ReplyWritten(R1, A, TEN_WORDS), *call.voiced(TEN_WORDS), ended(R1))
    commands = call.at(700, speaks())
    said = [command for command in commands if isinstance(command, do.RestateItem | do.DropItem)]
    assert said == [do.RestateItem(said[0].event_id, A, 3), do.DropItem(said[1].event_id, A)]
    assert not call.reports()


def test_a_reply_that_was_heard_whole_is_left_as_it_is() -> None:
    call = Call(REPLACES)
    call.at(0, on.ResponseStarted(R1), on.ReplyWritten(R1, A, TEN_WORDS), *call.voiced(TEN_WORDS), ended(R1))
    call.at(2_500, speaks())
    assert not call.of(do.RestateItem) + call.of(do.DropItem)


def test_audio_that_is_too_short_for_the_rest_of_a_text_does_not_hold_it_though_its_first_word_was_told() -> None:
    call = Call()
    events = on.ResponseStarted(R1), on.ReplyWritten(R1, A, TEN_WORDS), *call.voiced("one"), ended(R1)
    call.at(0, *events)
    call.at(2_000)
    (turn,) = [turn for turn in call.session.transcript() if turn.item_id == A]
    assert (turn.heard, turn.source) == ("one", Source.ALIGNED)
    assert [stopped.heard for stopped in call.of(do.ReportStopped)] == [((A, 1),)]


def test_a_voice_that_failed_has_not_said_the_rest() -> None:
    call = Call()
    failed = on.VoiceFailed(R1, A, "it raised ValueError")
    call.at(0, on.ResponseStarted(R1), on.ReplyWritten(R1, A, TEN_WORDS), *call.voiced("one two"), failed)
    call.at(10, ended(R1, on.ResponseStatus.FAILED))
    call.at(2_000)
    (turn,) = [turn for turn in call.session.transcript() if turn.item_id == A]
    assert (turn.heard, turn.source, turn.cut_ms) == ("one two", Source.ALIGNED, None)
    assert [stopped.heard for stopped in call.of(do.ReportStopped)] == [((A, 2),)]
    assert call.of(do.NoteAnomaly)[0].text == "the voice failed in response r1: it raised ValueError"


def test_two_texts_of_a_response_are_one_reply() -> None:
    call = Call()
    call.at(0, on.ResponseStarted(R1), on.ReplyWritten(R1, A, "one two"), *call.voiced("one two"))
    call.at(100, on.ReplyWritten(R1, B, "three"), *call.voiced("three", B), ended(R1))
    call.at(3_000)
    (stopped,) = call.of(do.ReportStopped)
    assert (stopped.audio_ms, stopped.heard) == (600, ((A, 2), (B, 1)))


def test_nobody_is_told_of_a_reply_whose_session_is_gone() -> None:
    call = Call(longest_session_ms=None)
    call.at(0, on.ResponseStarted(R1), on.ReplyWritten(R1, A, TEN_WORDS), *call.voiced("one two three"))
    call.at(300, on.ModelClosed(1006, ""))
    assert call.of(do.StopVoice) == [do.StopVoice(R1, is_open=False)]
    told = len(call.reports())
    call.at(800, on.LinePlayed(A, 0, 600))
    assert len(call.reports()) == told
    (turn,) = [turn for turn in call.session.transcript() if turn.item_id == A]
    assert (turn.heard, turn.source) == ("one two three", Source.ALIGNED)


# --- from one session to the next


def carried(call: Call) -> list[tuple[Ms, str]]:
    """What other sessions are told that the agent has said, and when."""
    return [(at_ms, each.text) for at_ms, each in call.commands if isinstance(each, do.CarryMessage)]


def lost(*events: on.Event) -> Call:
    """A reply of ten words in 2 s was written whole, then its session was lost, and the next one is there."""
    call = Call()
    call.at(0, on.ResponseStarted(R1), on.ReplyWritten(R1, A, TEN_WORDS), *events)
    call.at(10, ended(R1), on.ModelClosed(1006, ""))
    call.at(20, on.ModelConnected(), on.SessionReady(), on.UplinkResumed(10, 0))
    return call


@pytest.mark.parametrize("can", [TELLS, REPLACES, Can(0)], ids=["polyai", "openai", "plain"])
def test_another_session_keeps_no_word_that_nobody_heard_of_a_reply_that_was_talked_over(can: Can) -> None:
    call = Call(can)
    call.at(0, on.ResponseStarted(R1), on.ReplyWritten(R1, A, TEN_WORDS), *call.voiced(TEN_WORDS), ended(R1))
    call.at(10, on.ModelClosed(1006, ""))
    call.at(20, on.ModelConnected(), on.SessionReady(), on.UplinkResumed(10, 0))
    assert carried(call) == []
    call.at(700, speaks())
    call.at(9_000, on.TimerFired())
    assert carried(call) == [(700, "one two three")]


def test_another_session_is_told_of_a_reply_that_is_heard_whole_once_it_was() -> None:
    call = lost(*Call().voiced(TEN_WORDS))
    call.at(9_000, on.TimerFired())
    ((at_ms, text),) = carried(call)
    assert (at_ms >= 2_000, text) == (True, TEN_WORDS)


def test_a_reply_of_which_the_voice_makes_more_than_the_line_has_played_is_not_through() -> None:
    call = lost(*Call().voiced("one two three"))
    call.at(1_000, on.TimerFired())
    assert carried(call) == []
    call.at(1_010, *call.voiced(TEN_WORDS)[6:])
    call.at(9_000, on.TimerFired())
    assert [text for _, text in carried(call)] == [TEN_WORDS]


def test_a_reply_that_the_voice_had_not_begun_when_the_session_was_lost_is_told_as_well() -> None:
    call = lost()
    call.at(500, *call.voiced(TEN_WORDS))
    assert carried(call) == []
    call.at(9_000, on.TimerFired())
    assert [text for _, text in carried(call)] == [TEN_WORDS]


def test_another_session_is_told_how_far_a_voice_came_that_failed() -> None:
    call = lost(*Call().voiced("one two three"))
    call.at(300, on.VoiceFailed(R1, A, "it raised"))
    call.at(9_000, on.TimerFired())
    assert [text for _, text in carried(call)] == ["one two three"]


def test_a_model_that_is_asked_for_a_reply_knows_what_the_caller_is_being_told() -> None:
    call = Call()
    call.at(0, on.ResponseStarted(R1), called(K1), on.ReplyWritten(R1, A, TEN_WORDS), *call.voiced(TEN_WORDS))
    call.at(10, ended(R1), on.ModelClosed(1006, ""))
    call.at(20, on.ModelConnected(), on.SessionReady(), on.UplinkResumed(10, 0))
    assert carried(call) == []
    commands = [type(each) for each in call.at(300, finished(K1))]
    assert commands.index(do.CarryMessage) < commands.index(do.RequestReply)
    call.at(9_000, on.TimerFired())
    assert carried(call) == [(300, TEN_WORDS)]


def test_another_session_is_told_at_once_of_a_reply_that_broke_off_and_asked_to_go_on() -> None:
    call = Call()
    call.at(0, on.ResponseStarted(R1), on.ReplyWritten(R1, A, TEN_WORDS), *call.voiced("one two three", word_ms=100))
    call.at(10, on.ModelClosed(1006, ""))
    call.at(20, on.ModelConnected(), on.SessionReady())
    assert carried(call) == [(20, "one two three")]
    assert len(call.of(do.RequestReply)) == 1


@pytest.mark.parametrize("can", [EVERYTHING, Can(0)])
def test_without_a_voice_of_our_own_nothing_is_followed(can: Can) -> None:
    session = Session(plan(can=can | Can.REPORT | Can.RESTATE))
    for event in (on.LineOpened(), on.ModelConnected(), on.SessionReady(), on.ResponseStarted(R1)):
        session.handle(event, 0)
    session.handle(on.AudioReceived(R1, A, RATE_HZ), 0)
    session.handle(on.LinePlayed(A, 0, 300), 300)
    session.handle(speaks(), 300)
    assert not [each for each in session.commands() if isinstance(each, Report | do.StopVoice | do.RestateItem)]


# --- words in audio

PIECES = [(2, 400), (3, 600), (5, 1_000)]


@pytest.mark.parametrize(
    ("heard_ms", "heard"),
    [
        (0, 0),
        (379, 1),
        (380, 2),  # no more than a frame is missing
        (400, 2),
        (570, 2),
        (600, 3),
        (1_000, 5),
        (2_000, 5),
    ],
)
def test_words_count_as_heard_with_the_end_of_their_piece(heard_ms: Ms, heard: int) -> None:
    assert aligned(TEN_WORDS, PIECES, Cut(A, heard_ms, 1_000, is_complete=True)) == heard


def test_words_whose_text_is_not_known_yet_count_piece_by_piece() -> None:
    assert aligned("", PIECES, Cut(A, 700, 1_000, is_complete=True)) == 3


# --- anything, in any order


class Anything(RuleBasedStateMachine):
    """Replies that are voiced, played, cut and ended in any order."""

    @initialize()
    def begin(self) -> None:
        self.out = Outgoing(TELLS)
        self.playout = Playout(rate_hz=RATE_HZ, reports=PlayedReports.PULLED)
        self.heard, self.turns = HeardRecord(), Turns(merges=True)
        self.voice = OwnVoice(self.playout, self.heard, self.turns, self.out, is_used=True)
        self.now_ms = 0
        self.reported: dict[ResponseId, list[Report]] = {}
        self.stopped: list[ResponseId] = []
        self.count = 0
        self.open: ResponseId | None = None
        self.text = ""

    @rule()
    def start(self) -> None:
        if self.open is None:
            self.count += 1
            self.open = ResponseId(f"r{self.count}")
            self.voice.began(self.open)
            self.text = ""

    @rule(ms=st.integers(1, 900), tells=st.booleans())
    def say(self, ms: Ms, tells: bool) -> None:
        if self.open is None:
            return
        item_id = ItemId(f"item of {self.open}")
        self.text = f"{self.text} word".strip()
        self.heard.reply(item_id, self.text)
        self.voice.has(self.open, item_id, self.now_ms)
        self.out.add(*self.playout.audio(self.open, item_id, ms * RATE_HZ // 1000, self.now_ms))
        if tells:
            audio_ms = self.playout.item_ms(item_id) if self.playout.state(item_id) else 0
            self.heard.voiced(item_id, len(self.text.split()), audio_ms)

    @rule(ms=st.integers(1, 2_000))
    def play(self, ms: Ms) -> None:
        self.now_ms += ms
        for item_id in self.playout.live():
            self.playout.played(item_id, self.playout.generation, self.playout.position_ms(item_id, 0) + ms)
        self._look()

    @rule()
    def end(self) -> None:
        if self.open is not None:
            self.voice.ended(self.open)
            self.out.add(*self.playout.response_ended(self.open))
            self.open = None
            self._look()

    @rule()
    def cut(self) -> None:
        commands, cuts = self.playout.cut(self.open, self.now_ms)
        self.out.add(*commands)
        for each in cuts:
            self.heard.cut(each, self.now_ms)
            self.heard.give_up(each.item_id)
        self._look()
        self.end()

    def _look(self) -> None:
        for item_id in self.playout.take_played_out():
            self.heard.played_out(item_id, self.playout.position_ms(item_id, self.now_ms))
        due_ms = self.voice.next_deadline_ms()
        if due_ms is not None and due_ms <= self.now_ms:
            self.voice.timer(self.now_ms)
        self.voice.look(self.now_ms)
        for command in self.out.fetch():
            if isinstance(command, Report):
                self.reported.setdefault(command.response_id, []).append(command)
            elif isinstance(command, do.StopVoice):
                self.stopped.append(command.response_id)

    @invariant()
    def each_reply_begins_and_ends_once(self) -> None:
        for reports in getattr(self, "reported", {}).values():
            kinds = [type(report) for report in reports]
            assert kinds.count(do.ReportAudible) <= 1
            assert kinds.count(do.ReportStopped) <= 1
            assert do.ReportStopped not in kinds[:-1]
            assert do.ReportAudible not in kinds[1:]
            lengths = [report.audio_ms for report in reports if not isinstance(report, do.ReportAudible)]
            assert lengths == sorted(lengths)
            words = [count for report in reports if hasattr(report, "heard") for _, count in report.heard]
            assert all(count >= 0 for count in words)

    @invariant()
    def no_voice_is_stopped_twice(self) -> None:
        stopped = getattr(self, "stopped", [])
        assert len(set(stopped)) == len(stopped)


TestAnything = Anything.TestCase
TestAnything.settings = hypothesis_settings(max_examples=40, stateful_step_count=25)

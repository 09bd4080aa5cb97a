"""What the line played of every item, and what is cut when the caller talks over it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.core.drive import BOTH_LINES, MARKS, PULLED, R1, R2, RATE_HZ, A, B, FakeLine, samples
from tests.core.machines import snapshot, written_rows

from callwright.core import commands as do
from callwright.core.playout import LOST_MARK_GRACE_MS, MARK_SPACING_MS, PLAYOUT, Cue, Cut, Playing, Playout
from callwright.core.ports import PlayedReports
from callwright.ids import ItemId, ResponseId

ROWS = """
STREAMING AUDIO -> STREAMING
STREAMING AUDIO_ENDED -> COMPLETE
STREAMING CUT_OFF -> CUT
COMPLETE AUDIO -> COMPLETE
COMPLETE PLAYED_OUT -> PLAYED
COMPLETE CUT_OFF -> CUT
PLAYED AUDIO -> COMPLETE
CUT AUDIO -> CUT
CUT AUDIO_ENDED -> CUT
"""

CUES: dict[Cue, Callable[[Playout], object]] = {
    Cue.AUDIO: lambda playout: playout.audio(R1, A, samples(200), 0),
    Cue.AUDIO_ENDED: lambda playout: playout.response_ended(R1),
    Cue.PLAYED_OUT: lambda playout: playout.played(A, playout.generation, 200),
    Cue.CUT_OFF: lambda playout: playout.cut(None, 0),
}
WAY = {
    Playing.STREAMING: [Cue.AUDIO],
    Playing.COMPLETE: [Cue.AUDIO, Cue.AUDIO_ENDED],
    Playing.PLAYED: [Cue.AUDIO, Cue.AUDIO_ENDED, Cue.PLAYED_OUT],
    Playing.CUT: [Cue.AUDIO, Cue.CUT_OFF],
}
PAIRS = [(state, cue) for state in Playing for cue in Cue]


def new(reports: PlayedReports) -> Playout:
    return Playout(rate_hz=RATE_HZ, reports=reports)


def at(state: Playing) -> Playout:
    playout = new(PULLED)
    for cue in WAY[state]:
        CUES[cue](playout)
    assert playout.state(A) is state
    return playout


def marks(commands: list[do.Command]) -> list[str]:
    return [command.mark_id for command in commands if isinstance(command, do.SendMark)]


def test_rows():
    assert written_rows(PLAYOUT) == ROWS.split("\n")[1:-1]


@pytest.mark.parametrize(("state", "cue"), PAIRS, ids=lambda value: value.name)
def test_a_cue_is_followed_or_leaves_the_item_as_it_was(state, cue):
    """A line and a server may report late: here that is no error, and moves no item."""
    playout = at(state)
    CUES[cue](playout)
    assert playout.state(A) is PLAYOUT.rows.get((state, cue), state)


@pytest.mark.parametrize("state", [Playing.PLAYED, Playing.CUT])
def test_with_nothing_to_stop_a_cut_changes_nothing(state):
    playout = at(state)
    before = snapshot(playout)
    assert playout.cut(None, 0) == ([], [])
    assert snapshot(playout) == before


@pytest.mark.parametrize("reports", BOTH_LINES)
def test_an_empty_piece_is_no_item(reports):
    playout = new(reports)
    assert playout.audio(R1, A, 0, 0) == []
    assert playout.state(A) is None


@pytest.mark.parametrize("reports", BOTH_LINES)
def test_a_cut_clears_first_begins_a_generation_and_drops_what_still_comes(reports):
    playout = new(reports)
    playout.audio(R1, A, samples(400), 0)
    commands, cuts = playout.cut(R1, 100)
    assert commands == [do.ClearPlayout(1)]
    assert cuts == [Cut(A, 0, 400, False)]
    assert playout.audio(R1, A, samples(200), 120) == []
    assert playout.audio(R1, B, samples(200), 120) == []
    assert playout.dropped_samples == samples(400)
    assert playout.position_ms(A, 500) == 0
    (play, *_) = playout.audio(R2, ItemId("next"), samples(200), 500)
    assert play.generation == 1


@pytest.mark.parametrize("reports", BOTH_LINES)
def test_an_item_is_complete_when_the_next_one_begins(reports):
    """Items of one response follow each other; what conversion holds back of the first goes out before the second."""
    playout = new(reports)
    playout.audio(R1, A, samples(400), 0)
    commands = playout.audio(R1, B, samples(400), 100)
    assert commands[0] == do.FinishItem(A, 0)
    assert playout.state(A) is Playing.COMPLETE
    assert playout.state(B) is Playing.STREAMING


def test_a_mark_of_an_item_ends_the_items_before_it():
    """A line plays in order, so that their own marks must have been lost."""
    playout = new(MARKS)
    playout.audio(R1, A, samples(400), 0)
    mark, *_ = marks(playout.audio(R1, B, samples(400), 0)[2:])
    playout.mark_returned(mark, 500)
    assert playout.take_played_out() == [A]
    assert playout.position_ms(A, 500) == 400


@pytest.mark.parametrize("reports", BOTH_LINES)
def test_every_item_that_lost_something_is_cut_on_its_own_and_one_that_did_not_is_whole(reports):
    line, playout = FakeLine(reports), new(reports)
    for response_id, item_id in [(R1, A), (R2, B), (ResponseId("r3"), ItemId("c"))]:
        hand(line, playout.audio(response_id, item_id, samples(1_000), 0), 0)
        hand(line, playout.response_ended(response_id), 0)
    listen(line, playout, 1_600)
    _, cuts = playout.cut(None, 1_600)
    assert playout.take_played_out() == [A]
    assert [(cut.item_id, cut.received_ms) for cut in cuts] == [(B, 1_000), ("c", 1_000)]
    assert cuts[0].heard_ms == pytest.approx(600, abs=1)
    assert cuts[1].heard_ms == 0


def test_an_items_first_mark_follows_its_first_frame_and_its_last_follows_its_end():
    playout = new(MARKS)
    first = playout.audio(R1, A, samples(100), 0)
    assert [type(command) for command in first] == [do.PlayAudio, do.SendMark, do.PlayAudio]
    assert first[0].samples == samples(20)
    between = [playout.audio(R1, A, samples(100), at_ms) for at_ms in (100, 200, 300)]
    assert [len(marks(commands)) for commands in between] == [0, 1, 0]
    assert [type(command) for command in playout.response_ended(R1)] == [do.FinishItem, do.SendMark]


def test_c028_marks_are_spaced_and_each_has_a_name_of_its_own():
    playout = new(MARKS)
    commands = [c for at_ms in range(0, 6_000, 20) for c in playout.audio(R1, A, samples(20), at_ms)]
    names = marks([*commands, *playout.response_ended(R1)])
    assert len(set(names)) == len(names) <= 6_000 // MARK_SPACING_MS + 2
    assert all(names)


def test_the_position_never_passes_the_next_mark_that_is_out():
    playout = new(MARKS)
    first, second = marks(playout.audio(R1, A, samples(400), 0))
    playout.audio(R1, A, samples(400), 0)
    playout.mark_returned(first, 1_000)
    assert playout.position_ms(A, 1_100) == 120
    assert playout.position_ms(A, 9_000) == 400
    playout.mark_returned(second, 9_000)
    assert playout.position_ms(A, 9_100) == 500


def test_a_mark_proves_the_marks_before_it_and_means_nothing_the_second_time():
    playout = new(MARKS)
    first, second = marks(playout.audio(R1, A, samples(400), 0))
    playout.mark_returned(second, 1_400)
    before = snapshot(playout)
    for mark in (first, second, "unknown"):
        playout.mark_returned(mark, 5_000)
    assert snapshot(playout) == before


@pytest.mark.parametrize("returns_cleared", [True, False])
def test_c025_marks_that_come_back_because_of_a_clear_are_not_played(returns_cleared):
    """Some carriers return them, some drop them: both must work."""
    line, playout = FakeLine(MARKS, returns_cleared=returns_cleared), new(MARKS)
    hand(line, playout.audio(R1, A, samples(3_000), 0), 0)
    listen(line, playout, 1_000)
    commands, cuts = playout.cut(R1, 1_000)
    hand(line, commands, 1_000)
    listen(line, playout, 8_000)
    assert cuts[0].heard_ms == pytest.approx(1_000, abs=1)
    assert playout.position_ms(A, 8_000) == cuts[0].heard_ms
    assert playout.take_played_out() == []


def test_a_stall_of_the_model_is_not_counted_as_played():
    """The line ran dry for 5 s; of the audio that arrives then, nothing has been heard yet."""
    line, playout = FakeLine(MARKS), new(MARKS)
    hand(line, playout.audio(R1, A, samples(1_000), 0), 0)
    listen(line, playout, 6_000)
    hand(line, playout.audio(R1, A, samples(4_000), 6_000), 6_000)
    assert playout.position_ms(A, 6_000) == 1_000
    listen(line, playout, 7_000)
    assert playout.position_ms(A, 7_000) == 2_000


def test_c126_late_audio_of_a_reply_that_played_out_is_played_and_not_yet_heard():
    line, playout = FakeLine(MARKS), new(MARKS)
    hand(line, playout.audio(R1, A, samples(1_000), 0), 0)
    hand(line, playout.response_ended(R1), 0)
    listen(line, playout, 1_400)
    assert playout.take_played_out() == [A]
    hand(line, playout.audio(R1, A, samples(600), 1_400), 1_400)
    assert playout.position_ms(A, 1_400) == 1_000
    listen(line, playout, 2_000)
    assert playout.take_played_out() == [A]
    assert playout.position_ms(A, 2_000) == 1_600


def test_an_item_whose_last_mark_is_lost_is_over_a_while_after_its_expected_end():
    line, playout = FakeLine(MARKS, lost_marks=range(2, 99)), new(MARKS)
    hand(line, playout.audio(R1, A, samples(1_000), 0), 0)
    hand(line, playout.response_ended(R1), 0)
    listen(line, playout, 1_500)
    assert playout.next_deadline_ms() == 1_000 + LOST_MARK_GRACE_MS
    playout.timer(999 + LOST_MARK_GRACE_MS)
    assert playout.is_busy()
    playout.timer(1_000 + LOST_MARK_GRACE_MS)
    assert playout.take_played_out() == [A]
    assert not playout.is_busy()
    assert playout.next_deadline_ms() is None


def test_a_pulled_line_may_round_its_total_down():
    playout = new(PULLED)
    playout.audio(R1, A, samples(1_000), 0)
    playout.response_ended(R1)
    playout.played(A, 0, 999)
    assert playout.take_played_out() == [A]


@pytest.mark.parametrize(("item_id", "generation"), [(A, 7), (B, 0)], ids=["other generation", "unknown item"])
def test_a_report_of_something_else_changes_nothing(item_id, generation):
    playout = at(Playing.STREAMING)
    before = snapshot(playout)
    playout.played(item_id, generation, 100)
    assert snapshot(playout) == before


# --- against a line that plays --------------------------------------------------------------------------------------


def hand(line: FakeLine, commands: list[do.Command], now_ms: int) -> None:
    for command in commands:
        line.take(command, now_ms)


def listen(line: FakeLine, playout: Playout, until_ms: int, now_ms: int = 0) -> None:
    """Let the line report what it plays up to an instant."""
    while (at_ms := line.next_report_ms(now_ms)) is not None and at_ms <= until_ms:
        now_ms = max(at_ms, now_ms)
        report(line, playout, now_ms)
    report(line, playout, until_ms)


def report(line: FakeLine, playout: Playout, now_ms: int) -> None:
    for event in line.said(now_ms):
        if line.reports is MARKS:
            playout.mark_returned(event.mark_id, now_ms)
        else:
            playout.played(event.item_id, event.generation, event.played_ms)


deltas = st.lists(st.tuples(st.integers(0, 900), st.integers(1, 600)), min_size=1, max_size=12)
"""Pieces as they arrive: ms since the piece before, ms of audio."""


@given(deltas, st.sampled_from([0, 60, 1_500]), st.integers(0, 3_000))
def test_the_position_on_a_carrier_is_what_the_ear_has_got(pieces, lag_ms, cut_after_ms):
    """Without a lag it is exact once the first frame is through. With one, a gap in the middle of what is under way
    can't be seen, but then the position is ahead of the ear by no more than the piece behind the gap."""
    line, playout, now_ms = FakeLine(MARKS, lag_ms), new(MARKS), 0
    for wait_ms, length_ms in pieces:
        listen(line, playout, now_ms + wait_ms, now_ms)
        now_ms += wait_ms
        hand(line, playout.audio(R1, A, samples(length_ms), now_ms), now_ms)
    listen(line, playout, now_ms + cut_after_ms, now_ms)
    now_ms += cut_after_ms
    heard_ms, position_ms = line.heard_ms(A, now_ms), playout.position_ms(A, now_ms)
    ahead_ms = 1 if not lag_ms else max(length_ms for _, length_ms in pieces) + 1
    assert heard_ms - 22 <= position_ms <= heard_ms + ahead_ms


@given(deltas, st.integers(0, 3_000))
def test_the_position_on_a_pulled_line_is_its_last_report(pieces, cut_after_ms):
    line, playout, now_ms = FakeLine(PULLED), new(PULLED), 0
    for wait_ms, length_ms in pieces:
        listen(line, playout, now_ms + wait_ms, now_ms)
        now_ms += wait_ms
        hand(line, playout.audio(R1, A, samples(length_ms), now_ms), now_ms)
    listen(line, playout, now_ms + cut_after_ms, now_ms)
    assert playout.position_ms(A, 0) == line.heard_ms(A, now_ms + cut_after_ms)


class PlayoutMachine(RuleBasedStateMachine):
    """Any order of audio, ends, reports, cuts and time: positions are sane, and what is cut stays silent."""

    def __init__(self) -> None:
        super().__init__()
        self.reports = MARKS
        self.playout = new(MARKS)
        self.now_ms = 0
        self.received: dict[str, int] = {}
        self.cut_items: dict[str, int] = {}
        self.over: list[str] = []
        self.marks: list[str] = []

    def take(self, commands: list[do.Command]) -> None:
        for command in commands:
            match command:
                case do.PlayAudio(item_id, generation, count):
                    assert count > 0
                    assert item_id not in self.cut_items, "nothing of a cut item is played"
                    assert generation == self.playout.generation
                case do.SendMark(mark_id):
                    self.marks.append(mark_id)

    @rule(response=st.sampled_from([R1, R2]), item=st.sampled_from("abcdef"), count=st.integers(0, samples(900)))
    def audio(self, response, item, count):
        commands = self.playout.audio(response, ItemId(item), count, self.now_ms)
        played = sum(command.samples for command in commands if isinstance(command, do.PlayAudio))
        assert played in (0, count)
        self.received[item] = self.received.get(item, 0) + played
        self.take(commands)

    @rule(response=st.sampled_from([R1, R2]))
    def response_ends(self, response):
        self.take(self.playout.response_ended(response))

    @rule(data=st.data())
    def mark(self, data):
        if self.marks:
            self.playout.mark_returned(data.draw(st.sampled_from(self.marks)), self.now_ms)

    @rule(item=st.sampled_from("abcdef"), generation=st.integers(0, 3), played_ms=st.integers(0, 3_000))
    def pulled(self, item, generation, played_ms):
        self.playout.played(ItemId(item), generation, played_ms)

    @rule(response=st.sampled_from([None, R1, R2]))
    def cut(self, response):
        was_busy, generation = self.playout.is_busy(), self.playout.generation
        commands, cuts = self.playout.cut(response, self.now_ms)
        assert commands == ([do.ClearPlayout(generation + 1)] if was_busy else [])
        assert self.playout.generation == generation + was_busy
        for cut in cuts:
            assert cut.item_id not in self.cut_items, "an item is cut once"
            assert 0 <= cut.heard_ms <= cut.received_ms == self.received[cut.item_id] * 1000 // RATE_HZ
            self.cut_items[cut.item_id] = cut.heard_ms
        assert not self.playout.is_busy()

    @rule(ms=st.integers(0, 2_000))
    def time_passes(self, ms):
        self.now_ms += ms
        while (deadline_ms := self.playout.next_deadline_ms()) is not None and deadline_ms <= self.now_ms:
            self.playout.timer(self.now_ms)
            assert self.playout.next_deadline_ms() != deadline_ms

    @invariant()
    def positions_are_sane(self):
        for item in self.received:
            if self.playout.state(ItemId(item)) is not None:
                position_ms = self.playout.position_ms(ItemId(item), self.now_ms)
                assert 0 <= position_ms <= self.received[item] * 1000 // RATE_HZ
                assert self.cut_items.get(item, position_ms) == position_ms

    @invariant()
    def an_item_is_reported_as_over_when_it_is(self):
        for item in self.playout.take_played_out():
            assert self.playout.state(item) is Playing.PLAYED


PlayoutMachine.TestCase.settings = settings(stateful_step_count=25)
TestPlayoutMachine = PlayoutMachine.TestCase

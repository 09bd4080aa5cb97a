"""What the caller heard of every reply, with its source, in the conversation's order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.core.drive import U1, U2, A, B, C
from tests.core.machines import snapshot, written_rows

from callwright.apps import hotel
from callwright.core.estimate import estimate
from callwright.core.heard import (
    HEARING,
    RETRIEVE_PATIENCE_MS,
    Cue,
    HeardRecord,
    Hearing,
    Truncate,
)
from callwright.core.playout import Cut
from callwright.core.transcript import Source, Speaker
from callwright.errors import IllegalTransition
from callwright.sim.models import Clip
from callwright.sim.server.speaking import render
from callwright.sim.speech import Speech

ROWS = """
OPEN PLAYED_OUT -> SETTLED
OPEN CUT_OFF -> ASKING
ASKING RETRIEVED -> SETTLED
ASKING WAITED -> SETTLED
SETTLED PLAYED_OUT -> SETTLED
SETTLED CUT_OFF -> ASKING
OPEN LOST -> SETTLED
ASKING LOST -> SETTLED
SETTLED LOST -> SETTLED
"""

CUT = Cut(A, 1_000, 4_000, True)
CUES: dict[Cue, Callable[[HeardRecord], object]] = {
    Cue.PLAYED_OUT: lambda record: record.played_out(A),
    Cue.CUT_OFF: lambda record: record.cut(CUT, 0),
    Cue.RETRIEVED: lambda record: record.retrieved(A, "one", is_cut=True),
    Cue.WAITED: lambda record: record.give_up(A),
    Cue.LOST: lambda record: record.lost(CUT),
}
WAY = {Hearing.OPEN: [], Hearing.ASKING: [Cue.CUT_OFF], Hearing.SETTLED: [Cue.PLAYED_OUT]}
PAIRS = [(state, cue) for state in Hearing for cue in Cue]
WRITTEN = "one two three four five six seven eight"


def at(state: Hearing) -> HeardRecord:
    record = HeardRecord()
    record.reply(A, WRITTEN)
    for cue in WAY[state]:
        CUES[cue](record)
    assert state_of(record) is state
    return record


def state_of(record: HeardRecord) -> Hearing:
    return record._replies[A].state


def only(record: HeardRecord) -> tuple[str, Source]:
    (turn,) = record.turns()
    return turn.heard, turn.source


def test_rows():
    assert written_rows(HEARING) == ROWS.split("\n")[1:-1]


@pytest.mark.parametrize(("state", "cue"), PAIRS, ids=lambda value: value.name)
def test_a_cue_is_followed_or_raises_and_changes_nothing(state, cue):
    """An answer that nobody waits for is no cue at all: a server may tell about an item at any time."""
    record = at(state)
    if (state, cue) in HEARING.rows:
        CUES[cue](record)
        assert state_of(record) is HEARING.rows[state, cue]
        return
    before = snapshot(record)
    if cue is Cue.RETRIEVED:
        CUES[cue](record)
    else:
        with pytest.raises(IllegalTransition):
            CUES[cue](record)
    assert snapshot(record) == before


def test_written_text_is_never_taken_for_heard():
    record = at(Hearing.OPEN)
    assert only(record) == ("", Source.PENDING)
    assert record.turns()[0].written == WRITTEN


def test_a_reply_played_to_its_end_was_heard_whole_even_if_its_text_comes_later():
    record = HeardRecord()
    record.reply(A)
    record.played_out(A)
    assert only(record) == ("", Source.WHOLE)
    record.reply(A, WRITTEN)
    assert only(record) == (WRITTEN, Source.WHOLE)


@pytest.mark.parametrize(
    ("text", "is_cut", "heard"),
    [
        ("one two three", True, ("one two three", Source.RETRIEVED)),
        ("", False, ("", Source.RETRIEVED)),
        (None, False, ("", Source.NONE)),
        (WRITTEN, False, ("one", Source.ESTIMATED)),
    ],
    ids=["shortened", "emptied", "no text", "not shortened"],
)
def test_the_answer_of_the_server_is_taken_for_what_it_is(text, is_cut, heard):
    """A text that was not shortened is the written one and proves nothing, so it is estimated what was in the audio."""
    record = at(Hearing.ASKING)
    record.retrieved(A, text, is_cut=is_cut)
    assert only(record) == heard
    assert record.turns()[0].cut_ms == 1_000


def test_a_text_without_the_mark_of_a_cut_is_believed_only_after_the_truncate_was_confirmed():
    record = at(Hearing.ASKING)
    record.truncated(A, Truncate.CONFIRMED)
    record.retrieved(A, WRITTEN, is_cut=False)
    assert only(record) == (WRITTEN, Source.RETRIEVED)
    record.cut(CUT, 0)
    record.retrieved(A, WRITTEN, is_cut=False)
    assert only(record) == ("one", Source.ESTIMATED)


def test_c126_a_text_that_the_audio_cannot_hold_was_not_heard_whole():
    """30 words and the audio of 18: what is claimed is what fits, whenever the text comes."""
    words = " ".join(["words"] * 30)
    record = HeardRecord()
    record.reply(A)
    record.played_out(A, 6_500)
    record.reply(A, words)
    heard, source = only(record)
    assert source is Source.ESTIMATED
    assert words.startswith(heard)
    assert len(heard.split()) <= 18


def test_a_text_that_the_audio_can_hold_was_heard_whole_however_fast_it_was():
    record = HeardRecord()
    record.reply(A, WRITTEN)
    record.played_out(A, 1_400)
    assert only(record) == (WRITTEN, Source.WHOLE)


def test_an_answer_that_does_not_come_is_given_up_after_a_while():
    record = at(Hearing.ASKING)
    assert record.next_deadline_ms() == RETRIEVE_PATIENCE_MS
    assert record.timer(RETRIEVE_PATIENCE_MS - 1) == []
    assert record.timer(RETRIEVE_PATIENCE_MS) == [A]
    assert only(record) == ("one", Source.ESTIMATED)
    assert record.next_deadline_ms() is None


def test_a_reply_that_is_cut_after_it_played_out_is_not_known_to_be_heard_any_more():
    """Late audio opened its end again; while the server is asked, nothing may be claimed."""
    record = at(Hearing.SETTLED)
    record.cut(CUT, 0)
    assert only(record) == ("", Source.PENDING)


def test_at_the_end_nobody_is_left_to_ask():
    record = at(Hearing.ASKING)
    record.give_up_all()
    assert only(record) == ("one", Source.ESTIMATED)


words = st.lists(st.sampled_from(["yes", "the", "card", "five"]), max_size=40).map(" ".join)


@given(words, st.integers(0, 60_000), st.integers(0, 60_000), st.booleans())
def test_an_estimate_is_a_beginning_of_the_written_text(written, heard_ms, more_ms, is_complete):
    found = estimate(written, Cut(A, heard_ms, heard_ms + more_ms, is_complete))
    assert written.startswith(found)
    if not heard_ms:
        assert found == ""


def test_an_estimate_of_all_the_audio_is_the_whole_text():
    assert estimate(WRITTEN, Cut(A, 4_000, 4_000, True)) == WRITTEN


@example("yes yes yes yes", 1, 2, 1)
@given(words, st.integers(1, 60_000), st.integers(0, 60_000), st.integers(0, 1_000))
def test_more_audio_is_never_fewer_words(written, heard_ms, left_ms, more_ms):
    cuts = [Cut(A, heard_ms + more, heard_ms + more_ms + left_ms, True) for more in (0, more_ms)]
    fewer, more = (estimate(written, cut) for cut in cuts)
    assert len(fewer) <= len(more)


def test_an_estimate_claims_no_word_that_was_not_heard():
    """Every recorded line of the hotel's agent, alone and all those of one answer in a row, cut every 20 ms.

    A word counts as heard from the moment that a tenth of it was.
    """
    speech = Speech.load(Path(hotel.__file__).parent / "speech")
    agent = [line.id for line in speech.values() if line.kind == "agent"]
    answer = [line_id for line_id in agent if line_id.startswith("check-in-")]
    missed = cuts = 0
    for lines in (*([line_id] for line_id in agent), answer, list(reversed(answer))):
        made = render([Clip(line_id) for line_id in lines], speech, 200)
        for cut_ms in range(0, made.audio_ms, 20):
            claimed = len(estimate(made.text, Cut(A, cut_ms, made.audio_ms, True)).split())
            heard = [(cut_ms - word.start_ms) / (word.end_ms - word.start_ms) for word in made.words]
            assert claimed <= sum(share > 0.1 for share in heard), (lines, cut_ms)
            missed += max(0, sum(share >= 0.9 for share in heard) - claimed)
            cuts += 1
    assert missed / cuts < 2


def test_an_estimate_without_the_whole_audio_assumes_a_slow_speaker():
    """The text is longer than the audio then, so a share of it would claim too much. 120 words a minute: 2 a second."""
    assert estimate(WRITTEN, Cut(A, 2_400, 2_600, False)) == "one two three four"


# --- order ---------------------------------------------------------------------------------------------------------


def order(record: HeardRecord) -> list[str]:
    return [turn.item_id for turn in record.turns()]


def test_without_the_servers_word_the_order_is_that_of_first_sight():
    record = HeardRecord()
    record.caller_turn(U1)
    record.reply(A)
    record.caller_turn(U1, "hello")
    assert order(record) == [U1, A]


def test_the_server_can_place_an_item_before_anything_is_known_of_it():
    record = HeardRecord()
    for item, after in [(U1, None), (A, U1), (U2, A)]:
        record.placed(item, after)
    record.caller_turn(U2, "and?")
    record.reply(A, "well")
    record.caller_turn(U1, "so")
    assert order(record) == [U1, A, U2]


def test_an_item_moves_right_behind_the_one_that_the_server_names():
    record = HeardRecord()
    record.reply(A)
    record.caller_turn(U1)
    record.placed(A, U1)
    assert order(record) == [U1, A]


@pytest.mark.parametrize("after", [C, A], ids=["unknown", "itself"])
def test_a_place_that_makes_no_sense_changes_nothing(after):
    record = HeardRecord()
    record.reply(A)
    record.reply(B)
    record.placed(A, after)
    assert order(record) == [A, B]


def test_what_is_no_turn_keeps_its_place_without_being_one():
    """Tool calls and outputs are items of the conversation; turns stand behind them, and they are not read aloud."""
    record = HeardRecord()
    for item, after in [(U1, None), (C, U1), (A, C)]:
        record.placed(item, after)
    record.reply(A)
    record.caller_turn(U1, "hi")
    assert [(turn.speaker, turn.item_id) for turn in record.turns()] == [(Speaker.CALLER, U1), (Speaker.AGENT, A)]


replies = st.sampled_from([A, B, C])


class HeardMachine(RuleBasedStateMachine):
    """Any order of what can happen to three replies: nothing is claimed that is not known."""

    def __init__(self) -> None:
        super().__init__()
        self.record = HeardRecord()
        self.now_ms = 0
        self.states = dict.fromkeys((A, B, C), Hearing.OPEN)
        for item in self.states:
            self.record.reply(item)

    def give(self, item, cue, act) -> None:
        before = snapshot(self.record)
        if HEARING.allows(self.states[item], cue):
            act()
            self.states[item] = HEARING.after(self.states[item], cue)
            return
        with pytest.raises(IllegalTransition):
            act()
        assert snapshot(self.record) == before

    @rule(item=replies)
    def written(self, item):
        self.record.reply(item, WRITTEN)

    @rule(item=replies)
    def played_out(self, item):
        self.give(item, Cue.PLAYED_OUT, lambda: self.record.played_out(item))

    @rule(item=replies, heard_ms=st.integers(0, 4_000), is_complete=st.booleans())
    def cut(self, item, heard_ms, is_complete):
        self.give(item, Cue.CUT_OFF, lambda: self.record.cut(Cut(item, heard_ms, 4_000, is_complete), self.now_ms))

    @rule(item=replies, text=st.sampled_from(["one two", "", None]), is_cut=st.booleans())
    def retrieved(self, item, text, is_cut):
        self.record.retrieved(item, text, is_cut=is_cut)
        if self.states[item] is Hearing.ASKING:
            self.states[item] = Hearing.SETTLED

    @rule(item=replies)
    def give_up(self, item):
        self.give(item, Cue.WAITED, lambda: self.record.give_up(item))

    @rule(ms=st.integers(0, 2 * RETRIEVE_PATIENCE_MS))
    def time_passes(self, ms):
        self.now_ms += ms
        for item in self.record.timer(self.now_ms):
            self.states[item] = HEARING.after(self.states[item], Cue.WAITED)
        deadline_ms = self.record.next_deadline_ms()
        assert deadline_ms is None or deadline_ms > self.now_ms

    @rule(item=replies, after=st.sampled_from([None, A, B, C, U1]))
    def placed(self, item, after):
        self.record.placed(item, after)

    @invariant()
    def nothing_is_claimed_that_is_not_known(self):
        turns = {turn.item_id: turn for turn in self.record.turns()}
        assert sorted(turns) == [A, B, C]
        for item, turn in turns.items():
            is_known = self.states[item] is Hearing.SETTLED
            assert (turn.source is not Source.PENDING) is is_known
            assert is_known or turn.heard == ""
            assert turn.source is Source.RETRIEVED or turn.written.startswith(turn.heard)

    @invariant()
    def a_question_is_open_exactly_where_there_is_a_deadline(self):
        is_asking = Hearing.ASKING in self.states.values()
        assert (self.record.next_deadline_ms() is not None) is is_asking


HeardMachine.TestCase.settings = settings(stateful_step_count=25)
TestHeardMachine = HeardMachine.TestCase

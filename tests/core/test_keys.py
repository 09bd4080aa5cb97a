"""Keys go out alone, in their order, with quiet on either side, and whoever asked is told what became of them."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.core.drive import (
    BOTH_LINES,
    CANCELLED,
    K1,
    MARKS,
    R1,
    A,
    Call,
    FakeLine,
    audio,
    both_lines,
    ended,
    speaks,
    stops,
)
from tests.core.machines import written_rows

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.commands import KeysFate
from callwright.core.keys import KEY_MS, KEYS, PATIENCE_MS, QUIET_MS, STUCK_MS, Stage
from callwright.core.turns import Floor
from callwright.ids import ItemId, ResponseId

ROWS = """
IDLE REQUESTED -> WAITING
WAITING QUIET -> BEFORE
BEFORE DUE -> PRESSING
PRESSING PRESSED -> AFTER
AFTER NEXT -> PRESSING
AFTER THROUGH -> IDLE
IDLE ENDED -> OVER
WAITING ENDED -> OVER
BEFORE ENDED -> OVER
PRESSING ENDED -> OVER
AFTER ENDED -> OVER
"""


def test_the_table_is_the_one_that_is_meant():
    assert written_rows(KEYS) == ROWS.split("\n")[1:-1]


@both_lines
def test_c060_quiet_keys_quiet(reports):
    call = Call(reports)
    call.reply(R1, A, 1_000, "I press two.", speed=10)
    call.at(500, on.KeysRequested(K1, "2"))
    call.at(3_000)
    assert call.times(do.PressKeys) == [1_000 + QUIET_MS]
    assert call.times(do.AnswerKeys) == [1_000 + QUIET_MS + KEY_MS]
    assert call.times(do.ReleaseReply) == [1_000 + QUIET_MS + KEY_MS + QUIET_MS]


def test_c060_the_quiet_before_keys_counts_from_the_ear():
    call = Call(latency_ms=300)
    call.reply(R1, A, 1_000, "I press two.", speed=10)
    call.at(500, on.KeysRequested(K1, "2"))
    call.at(3_000)
    assert call.times(do.PressKeys) == [1_300 + QUIET_MS]


def test_a_line_that_tells_nothing_keeps_no_key_for_long():
    call = Call(FakeLine(MARKS, lost_marks=range(1, 999), tells_keys=False))
    call.at(0, on.ResponseStarted(R1), audio(R1, A, 1_000))
    call.at(500, on.KeysRequested(K1, "2"))
    call.at(20_000)
    assert call.times(do.PressKeys) == [500 + STUCK_MS + QUIET_MS]
    assert call.done(do.AnswerKeys) == [do.AnswerKeys(KeysFate.UNCONFIRMED)]
    assert call.times(do.AnswerKeys) == [500 + STUCK_MS + QUIET_MS + KEY_MS + PATIENCE_MS]
    assert [note.split(":")[0] for note in call.anomalies()][:2] == [
        "the line does not go on with what it has to play",
        "the line did not tell that keys were pressed",
    ]


def test_keys_that_a_line_could_not_press_are_not_among_those_that_were():
    call = Call(FakeLine(MARKS, tells_keys=False))
    call.at(0, on.KeysRequested(K1, "1"), on.KeysRequested(K1, "2"))
    call.at(300, on.KeysPressed(has_failed=True))
    call.at(600, on.KeysPressed())
    assert call.done(do.AnswerKeys) == [do.AnswerKeys(KeysFate.FAILED), do.AnswerKeys(KeysFate.PRESSED)]
    assert call.session.keys.pressed == "2"
    assert call.at(700, on.KeysPressed()) == [], "late news is no news"


@pytest.mark.parametrize("at_ms", [0, 100, 300, 450])
def test_the_end_of_the_call_ends_them(at_ms):
    call = Call()
    call.at(0, on.KeysRequested(K1, "1"), on.KeysRequested(K1, "2"))
    call.at(at_ms, on.LineClosed("caller", "hung up"))
    fates = [command.fate for command in call.done(do.AnswerKeys)]
    assert len(fates) == 2
    assert fates[-1] is KeysFate.ENDED
    assert call.session.keys.stage is Stage.OVER
    assert call.session.next_deadline_ms() is None


class KeysAndReplies(RuleBasedStateMachine):
    """Replies begin, stream, end and are cut as they like; keys are asked for at any time."""

    @initialize(reports=st.sampled_from(BOTH_LINES), lag_ms=st.sampled_from([0, 300]), returns_cleared=st.booleans())
    def begin(self, reports, lag_ms, returns_cleared):
        self.call = Call(FakeLine(reports, lag_ms, returns_cleared=returns_cleared))
        self.count = 0
        self.open: ResponseId | None = None
        self.asked: list[str] = []

    def give(self, *events: on.Event) -> None:
        self.call.at(self.call.now_ms, *events)

    @rule(keys=st.text("0123456789*#", min_size=1, max_size=4))
    def keys_are_asked_for(self, keys):
        self.asked.append(keys)
        self.give(on.KeysRequested(K1, keys))

    @precondition(lambda self: self.open is None)
    @rule(ms=st.sampled_from([100, 700]))
    def a_reply_begins(self, ms):
        self.count += 1
        self.open = ResponseId(f"r{self.count}")
        self.give(on.ResponseStarted(self.open), audio(self.open, ItemId(f"i{self.count}"), ms))

    @precondition(lambda self: self.open is not None)
    @rule(ms=st.sampled_from([100, 700]))
    def more_of_it_comes(self, ms):
        self.give(audio(self.open, ItemId(f"i{self.count}"), ms))

    @precondition(lambda self: self.open is not None)
    @rule()
    def the_reply_ends(self):
        response, self.open = self.open, None
        self.give(ended(response))

    @precondition(lambda self: self.call.session.turns.floor in (Floor.QUIET, Floor.REPLY, Floor.AWAITED))
    @rule()
    def the_menu_speaks(self):
        self.count += 1
        item = ItemId(f"u{self.count}")
        self.give(speaks(item))
        if self.open is not None:
            response, self.open = self.open, None
            self.give(ended(response, CANCELLED))
        self.give(stops(item))

    @rule(ms=st.sampled_from([20, 150, 900]))
    def time_passes(self, ms):
        self.call.at(self.call.now_ms + ms)

    def teardown(self):
        """Once replies end, every key is out, in its order, and no reply was ever within 200 ms of one."""
        if self.open is None:
            self.a_reply_begins(100)
        self.the_reply_ends()
        self.call.at(self.call.now_ms + 30_000)
        line = self.call.line
        assert [command.keys for command in self.call.done(do.PressKeys)] == self.asked
        assert self.call.done(do.AnswerKeys) == [do.AnswerKeys(KeysFate.PRESSED)] * len(self.asked)
        assert self.call.session.keys.pressed == "".join(self.asked)
        assert self.call.session.keys.stage is Stage.IDLE
        assert line.held is None
        for began_ms, ended_ms in line.pressed:
            for piece in line.pieces:
                is_clear = piece.end_ms <= began_ms - QUIET_MS + 1 or piece.start_ms >= ended_ms + QUIET_MS - 1
                assert is_clear, f"{piece} is near the keys from {began_ms} to {ended_ms}"


KeysAndReplies.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestKeysAndReplies = KeysAndReplies.TestCase

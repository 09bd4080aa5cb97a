"""What people look at says what was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.table import Table
from rich.text import Text
from tests.measure.records import record_of

from callwright.audio.echo import EchoReport
from callwright.cli.printing import put
from callwright.cli.show import (
    NOTED_MAX,
    believed_words,
    echo,
    edge_lane,
    edge_legend,
    goodbye,
    heard_words,
    lane,
    ledger,
    noted,
    pickup,
    ruler,
)
from callwright.ids import ItemId
from callwright.measure.figures import CallFigures, HeardFarewell, HeardReply
from callwright.sim.record import Recorded

CUT = HeardReply(
    item_id=ItemId("item_1"),
    written="The pool is on floor two. It is heated.",
    heard="The pool is",
    in_history="The pool is o-",
    in_transcript="The pool is",
    started_ms=1000,
    ended_ms=1800,
    was_cut=True,
    partial="on",
)


def test_a_cut_reply_shows_the_word_under_the_cut_which_nobody_is_blamed_for() -> None:
    assert heard_words(CUT).plain == "The pool is (on) //"
    assert believed_words(replace(CUT, in_history="The pool is on-", in_transcript="The pool is on")).plain == (
        "The pool is on"
    )


def test_words_that_nobody_heard_stand_in_brackets_for_whoever_believes_them() -> None:
    written = replace(CUT, in_history="The pool is", in_transcript=CUT.written)
    assert believed_words(written).plain == "client: The pool is on [floor two. It is heated.]\nserver: The pool is"


def test_words_that_were_heard_and_are_not_believed_stand_in_braces() -> None:
    short = replace(CUT, in_transcript="The", in_history="The")
    assert heard_words(short).plain == "The {pool is} (on) //"
    assert believed_words(short).plain == "The"


def test_a_reply_that_is_gone_is_told_as_nothing() -> None:
    gone = replace(CUT, heard="", partial=None, in_history="", in_transcript="The pool", started_ms=None, ended_ms=None)
    assert heard_words(gone).plain == "nothing //"
    assert believed_words(gone).plain == "client: [The pool]\nserver: nothing"


def test_a_whole_reply_that_all_agree_on_is_not_repeated() -> None:
    text = "The pool is on floor two."
    whole = replace(CUT, heard=text, in_history=text, in_transcript=text, was_cut=False, partial=None)
    assert believed_words(whole).plain == "the same"


@pytest.mark.parametrize(
    ("spans", "cells"),
    [
        ([], "····"),
        ([(0, 1000)], "██··"),
        ([(400, 900)], "▄█··"),
        ([(0, 200), (300, 400), (1900, 5000)], "█··▄"),
    ],
)
def test_a_cell_is_full_where_half_of_it_is_speech(spans: list[tuple[int, int]], cells: str) -> None:
    assert lane(spans, 500, 4) == cells


def test_seconds_stand_below_the_cells_that_they_begin() -> None:
    marks = ruler(500, 40, 40)
    assert [marks.index(f"{second} s") for second in (5, 10, 15)] == [10, 20, 30]


# --- the edges of a call

RECORD = replace(record_of([], length_ms=10_000), session_ready_ms=2_000, held_sent_ms=2_000, ended_by="agent")


def figures(
    replies: tuple[HeardReply, ...] = (), lost: tuple[tuple[int, int], ...] = (), **values: float
) -> CallFigures:
    return CallFigures({name: (value,) for name, value in values.items()}, None, replies, (), (), "agent", lost)


def farewell(heard_ms: int, started_ms: int | None = 4_000) -> HeardFarewell:
    return HeardFarewell(ItemId("item_2"), started_ms, 4_700, heard_ms)


def test_the_marks_say_what_was_held_what_was_lost_and_where_the_line_ended() -> None:
    cut = figures((replace(CUT, ended_ms=5_400),))
    assert edge_lane(RECORD, cut, 500, 20) == ">>>>|     /         ]"
    lost = figures(lost=((0, 1_100),))
    assert edge_lane(replace(RECORD, ended_ms=8_000), lost, 500, 20) == "xxx>|           ]"
    assert edge_lane(replace(RECORD, held_sent_ms=0), lost, 500, 20).startswith("xxx |")


def test_only_the_marks_that_occur_are_explained() -> None:
    assert edge_legend(">>>>|      ]") == "> held, then sent   | session ready   ] line ended"
    assert "lost" in edge_legend("xx|  ]")


def test_the_first_words_are_told_with_what_was_held_and_what_was_lost() -> None:
    assert pickup(RECORD, figures()).plain == "session ready after 2.00 s, 2.00 s held and sent, nothing lost"
    bad = figures(pickup_lost_ms=1_980, pickup_lost_words=6)
    assert pickup(replace(RECORD, held_sent_ms=0), bad).plain == "session ready after 2.00 s, 1.98 s lost with 6 words"
    never = replace(RECORD, session_ready_ms=None, held_sent_ms=0)
    assert pickup(never, figures(pickup_lost_ms=900)).plain == "the session was never ready, 0.90 s lost"


@pytest.mark.parametrize(
    ("heard_ms", "values", "is_last", "told"),
    [
        (4_700, {"open_after_goodbye_ms": 3}, True, "0:04 heard whole, 4.70 s, hung up 3 ms after it"),
        (1_000, {"open_after_goodbye_ms": 0}, True, "0:04 heard for 1.00 s of 4.70 s, cut off by the hang-up"),
        (1_000, {"late_talk_over": 1}, True, "0:04 heard for 1.00 s of 4.70 s, and hung up on a caller who spoke"),
        (1_300, {}, False, "0:04 heard for 1.30 s of 4.70 s, taken back: the call went on"),
    ],
)
def test_a_goodbye_is_told_with_what_came_of_it(
    heard_ms: int, values: dict[str, float], is_last: bool, told: str
) -> None:
    assert goodbye(RECORD, figures(**values), farewell(heard_ms), is_last=is_last).plain == told


def test_a_goodbye_that_nobody_heard_has_no_instant() -> None:
    by_caller = replace(RECORD, ended_by="caller")
    told = goodbye(by_caller, figures(), farewell(0, None), is_last=True).plain
    assert told == "heard for 0.00 s of 4.70 s, and the call was ended by the caller"


def test_a_goodbye_without_a_sound_is_told_as_such() -> None:
    """A server may call the tool that ends the call, and send silence for the goodbye."""
    silent = replace(farewell(0, None), whole_ms=0)
    assert goodbye(RECORD, figures(), silent, is_last=True).plain == "without a sound"
    assert goodbye(RECORD, figures(), silent, is_last=False).plain == "without a sound, taken back: the call went on"


# --- what was done


def test_a_record_is_told_by_operation_attempt_and_telling() -> None:
    sent = "refund order:4417 32.00 USD card:4242"
    told = (("unknown", "deferred", -1_000), ("confirmed", "heard", 61_000))
    attempts = ((sent, "unknown"), (sent, "applied"))
    record = replace(RECORD, ledger=(Recorded("refund order:4417 full", "confirmed", attempts, told),))
    assert list(ledger(record)) == [
        "refund order:4417 full: confirmed",
        "  attempt 1  refund order:4417 32.00 USD card:4242: unknown",
        "  attempt 2  refund order:4417 32.00 USD card:4242: applied",
        "  told       unknown: deferred before the call",
        "  told       confirmed: heard at 1:01",
    ]
    assert list(ledger(RECORD)) == ["nothing"]
    assert list(ledger(replace(RECORD, client="naive"))) == ["none: what naive knows ends with the call"]


@pytest.mark.parametrize(
    ("report", "told"),
    [
        (EchoReport(40, -5, 48), "canceller on, 40 ms late, clocks -5 ppm apart, 48 dB softer at the end"),
        (EchoReport(erle_db=0), "canceller on, no delay found, 0 dB softer at the end"),
        (EchoReport(), "canceller on, no delay found, nothing was played"),
    ],
)
def test_a_canceller_is_told_with_the_delay_that_it_found(report: EchoReport, told: str) -> None:
    assert echo(report) == told


def test_what_a_model_says_is_printed_without_what_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table.grid()
    table.add_row(Text("it\x1b]0;owned\x07 is \x9b2Jdone", style="bold"))
    put("one\x08\x1b[2J", table)
    assert capsys.readouterr().out == "one[2J\nit]0;owned is 2Jdone\n"


def test_of_many_anomalies_the_first_are_printed_and_the_rest_are_counted() -> None:
    assert noted([]) == []
    assert noted(["a"] * NOTED_MAX) == ["noted   a"] * NOTED_MAX
    assert noted(["a"] * 500)[NOTED_MAX:] == ["noted   and 480 more, which are in the trace"]

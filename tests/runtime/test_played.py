"""What a pulled line played is in the core's hands whenever it matters, although a report comes every 20 ms."""

from __future__ import annotations

import pytest
from tests.runtime.calls import (
    ANYTHING,
    BARGE_IN,
    OPENING,
    SPEAKER,
    delta,
    ended,
    reply,
    speech_started,
    started,
    take,
    written,
)

from callwright.testing.scripted import after


@pytest.mark.parametrize("at_ms", [990, 1_010, 1_030])
def test_a_cut_counts_to_the_last_frame_that_was_taken(at_ms: int) -> None:
    opening = (*OPENING, started(), delta(2_000), written("From three in the afternoon."))
    call = take(*opening, after(at_ms), speech_started(), settings=SPEAKER, ignoring=ANYTHING)
    (truncate,) = call.model.of("conversation.item.truncate")
    (cut_at,) = call.model.times("conversation.item.truncate")
    assert truncate["audio_end_ms"] == cut_at - cut_at % 20  # the first was taken at 20


def test_the_core_is_told_before_it_is_told_anything_else() -> None:
    """The report stands right before the event whose handling it may change."""
    rows = take(*BARGE_IN, settings=SPEAKER, ignoring=ANYTHING).rows
    names = [row[2] for row in rows if row[1] == "on"]
    assert names[names.index("SpeechStarted") - 1] == "LinePlayed"


def test_an_end_is_told_at_once_and_not_twice() -> None:
    call = take(*OPENING, *reply("Yes.", 400), settings=SPEAKER, ignoring=ANYTHING)
    (turn,) = [turn for turn in call.result.turns if turn.written]
    assert (turn.heard, turn.source) == ("Yes.", "whole")


def test_a_report_while_nothing_else_happens_costs_no_row() -> None:
    """Ten seconds of reply are 500 reports; the trace holds those that made a difference."""
    call = take(
        *OPENING, started(), delta(10_000), written("Long."), ended(), settings=SPEAKER, ignoring=ANYTHING,
        hang_up_ms=12_000,
    )  # fmt: skip
    told = [row for row in call.rows if row[2] == "LinePlayed"]
    assert len(told) <= 3
    assert told[-1][3]["played_ms"] == 10_000

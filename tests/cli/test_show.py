"""What people look at says what was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callwright.cli.show import believed_words, heard_words, lane, ruler
from callwright.ids import ItemId
from callwright.measure.figures import HeardReply

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

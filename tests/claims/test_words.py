"""Tokens: what is written out, what ends a sentence, and which word a token came from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.claims.words import Heard, plain, tokens_of


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("I haven't sent $32.00.", ["i", "have", "not", "sent", "$", "32.00", "."]),
        ("It\u2019s done: can't, won't!", ["it", "is", "done", ",", "can", "not", ",", "will", "not", "."]),
        ("forty-two 4-2-4-2", ["forty", "two", "4", "2", "4", "2"]),
        ("$1,200.50, 4242,8812", ["$", "1,200.50", ",", "4242", ",", "8812"]),
        ("done \u2014 or not?", ["done", ",", "or", "not", "?"]),
        ("\uff14\uff12\uff14\uff12", ["4242"]),
        ("didnt canceled", ["did", "not", "cancelled"]),
    ],
)
def test_a_text_is_written_out(text, tokens):
    assert [token.text for token in tokens_of(text)] == tokens


@given(st.text(max_size=80))
def test_every_token_names_a_word_of_the_text_in_order(text):
    numbers = [token.word for token in tokens_of(text)]
    assert numbers == sorted(numbers)
    assert all(number < len(text.split()) for number in numbers)


@pytest.mark.parametrize("end", ["-", "--", "\u2014", "\u2026", "...", '--"'])
def test_a_dash_or_dots_at_the_end_mark_a_cut(end):
    assert Heard(f"It has been{end}").is_cut
    assert not Heard("It has been.").is_cut


def test_plain_words_have_no_punctuation():
    assert plain("Well, it's 32.00 -- done!") == ["well", "it", "is", "32.00", "done"]

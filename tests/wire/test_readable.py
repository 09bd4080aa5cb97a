"""What a server says for people to read comes as one line that no terminal obeys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.wire.readable import CHARS_MAX, readable


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("too fast, slow down", "too fast, slow down"),
        ("Größe 日本語 👍", "Größe 日本語 👍"),
        ("one\r\ntwo\u2028three", "one two three"),
        ("\x1b[31mred\x1b[0m", "[31mred [0m"),
        ("refund \u202e93.1$", "refund 93.1$"),
        ("", ""),
    ],
)
def test_what_is_no_letter_is_a_blank(said: str, told: str) -> None:
    assert readable(said) == told


@given(st.text(max_size=20).map(lambda text: text * 40))
def test_it_is_one_printable_line_of_bounded_length(said: str) -> None:
    told = readable(said)
    assert told.isprintable()
    assert len(told) <= CHARS_MAX
    assert readable(told) == told

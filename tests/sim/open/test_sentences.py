"""Sentences out of a text that comes in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.sim.open.sentences import LONGEST, Sentences, spoken


def split(*pieces: str) -> list[str]:
    sentences = Sentences()
    return [*(each for piece in pieces for each in sentences.take(piece)), *sentences.rest()]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Hello. How are you?", ["Hello.", "How are you?"]),
        ("It costs 32.00 dollars at 3.30. Yes!", ["It costs 32.00 dollars at 3.30.", "Yes!"]),
        ("Ask Mr. Smith. No. Really?! Yes\u2026 well", ["Ask Mr. Smith.", "No.", "Really?!", "Yes\u2026", "well"]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("One line\nanother line", ["One line", "another line"]),
        ("**Rooms**\n- a *quiet* one\n2. a `large` one\n# Heading", ["Rooms", "a quiet one", "a large one", "Heading"]),
        ("...\n---\n\n!?", []),
        ("", []),
    ],
)
def test_a_text_is_these_sentences(text: str, sentences: list[str]) -> None:
    assert split(text) == sentences


def test_a_sentence_is_there_as_soon_as_the_next_one_begins() -> None:
    sentences = Sentences()
    assert sentences.take("Parking is valet") == []
    assert sentences.take(" only.") == []
    assert sentences.take(" And") == ["Parking is valet only."]
    assert sentences.rest() == ["And"]


def test_a_sentence_without_end_is_broken_at_a_comma_or_between_words() -> None:
    at_commas = split("and so on, " * 60)
    assert all(each.endswith(",") for each in at_commas)
    words = split("word " * 200)
    assert all(set(each.split()) == {"word"} for each in words)
    one = split("x" * 1_000)
    assert max(map(len, [*at_commas, *words, *one])) <= LONGEST


@given(st.text(alphabet="ab .,!?\n*-1", max_size=600), st.lists(st.integers(1, 80), min_size=1))
def test_pieces_do_not_matter_and_no_word_is_lost(text: str, sizes: list[int]) -> None:
    """However a text is cut into pieces, its letters come out once and in order."""
    pieces, at = [], 0
    for number in range(len(text)):
        size = sizes[number % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
    found = split(*pieces)
    letters = [c for c in text if c in "ab"]
    assert [c for sentence in found for c in sentence if c in "ab"] == letters
    assert all(spoken(sentence) for sentence in found)
    assert max(map(len, found), default=0) <= LONGEST

"""Texts laid along a reply, repeated runs and beginnings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.measure.texts import Prefix, follow, longest_run, opening, without_lead_in, words_of

WRITTEN = ["Check", "in", "is", "from", "three.", "Please", "bring", "a", "photo", "ID."]


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("", (0, 0)),
        ("Check in is", (3, 0)),
        ("check in is-", (3, 0)),
        ("Check in is from three.-", (5, 0)),
        ("Check in was from", (2, 2)),
        (" ".join(WRITTEN), (10, 0)),
        (" ".join([*WRITTEN, "Bye."]), (10, 1)),
    ],
)
def test_a_text_follows_a_reply_up_to_the_first_difference(text: str, prefix: tuple[int, int]) -> None:
    assert follow(text, WRITTEN) == Prefix(*prefix)


@given(st.integers(0, len(WRITTEN)), st.lists(st.sampled_from(["zebra", "quilt"]), max_size=3))
def test_every_word_either_follows_or_is_foreign(kept: int, more: list[str]) -> None:
    assert follow(" ".join([*WRITTEN[:kept], *more]), WRITTEN) == (kept, len(more))


def test_the_longest_run_is_found_behind_other_words() -> None:
    assert longest_run(words_of("please bring a photo ID"), words_of("Sure. Bring a photo, bring it")) == 3
    assert longest_run([], ["a"]) == 0


WORDS = st.lists(st.sampled_from("abc"), max_size=12)


@given(WORDS, WORDS)
def test_the_longest_run_is_the_longest(one: list[str], other: list[str]) -> None:
    runs = {tuple(other[first:end]) for first in range(len(other)) for end in range(first, len(other) + 1)} | {()}
    own = (tuple(one[first:end]) for first in range(len(one)) for end in range(first, len(one) + 1))
    assert longest_run(one, other) == max((len(run) for run in own if run in runs), default=0)


def test_a_text_of_very_many_words_is_compared_as_fast_as_it_is_read() -> None:
    """A server may send one of as many as fit into a message."""
    assert longest_run(["la"] * 20_000, [*["la"] * 15_000, "lu"]) == 15_000


def test_an_opening_is_known_by_its_content_words() -> None:
    assert opening("The pool is on floor two. We serve breakfast from seven.") == [
        "pool",
        "floor",
        "two",
        "serve",
        "breakfast",
    ]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Sure, as I was saying. Check in is from three.", "Check in is from three."),
        ("Of course! One thing.", "One thing."),
        ("Sure.", "Sure."),
        ("This first sentence has more than six words. Then another.", None),
        ("no end in sight", None),
    ],
)
def test_a_short_first_sentence_is_a_lead_in(text: str, rest: str | None) -> None:
    assert without_lead_in(text) == (rest or text)

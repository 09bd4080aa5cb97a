"""Words compared with words: prefixes, repeated runs, and beginnings. Words are compared as `normalise` leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from callwright.sim.speech import normalise

LEAD_IN_WORDS = 6
"""A first sentence of at most so many words may be a lead-in, like "Sure, as I was saying."."""
OPENING_WORDS = 5
"""Content words by which a beginning is known again."""


class Prefix(NamedTuple):
    """How a text follows the words of a reply: so many of its words stand in their place, and so many do not."""

    matched: int
    foreign: int


def words_of(text: str) -> list[str]:
    """The words of a text as they are compared; a hyphen that marks a cut falls away."""
    return [word for word in map(normalise, text.split()) if word]


_FUNCTION_WORDS = words_of(
    "a an and are as at be but by can did do does for from had has have he here how i if in into is it it's its just me"
    " my of on or our she so than that the their them then there they this to was we were what when where which who"
    " will with would you your"
)


def follow(text: str, written: Sequence[str]) -> Prefix:
    """Lay a text along the words of the whole reply, from its beginning, up to the first difference."""
    said = [normalise(word) for word in text.split()]
    places = [normalise(word) for word in written]
    agree = [one == other for one, other in zip(said, places, strict=False)]
    matched = [*agree, False].index(False)
    return Prefix(matched, len(said) - matched)


def longest_run(one: Sequence[str], other: Sequence[str]) -> int:
    """Length of the longest run of words that both have."""
    return SequenceMatcher(None, one, other, autojunk=False).find_longest_match().size


def opening(text: str) -> list[str]:
    """The first content words of a text, `OPENING_WORDS` of them where there are so many."""
    return [word for word in words_of(text) if word not in _FUNCTION_WORDS][:OPENING_WORDS]


def without_lead_in(text: str) -> str:
    """A text without its first sentence, where that is short enough for a lead-in and something follows it."""
    words = text.split()
    ends = [number for number, word in enumerate(words, 1) if word[-1] in ".!?"]
    return " ".join(words[ends[0] :]) if ends and ends[0] <= LEAD_IN_WORDS and ends[0] < len(words) else text

"""Words compared with words: prefixes, repeated runs, and beginnings. Words are compared as `normalise` leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from callwright.sim.speech import normalise

LEAD_IN_WORDS = 6
"""A first sentence of at most so many words may be a lead-in, like "Sure, as I was saying."."""
OPENING_WORDS = 5
"""Content words by which a beginning is known again."""

_BASE: Final = 1_000_003
_PRIME: Final = 2**61 - 1
"""So large that two runs of a call's words do not become the same number by chance."""


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
    """Length of the longest run of words that both have, however long they are: the time grows as they do."""
    number = {word: each for each, word in enumerate(dict.fromkeys((*one, *other)), 1)}
    texts = [[number[word] for word in text] for text in (one, other)]
    fits, too_long = 0, min(len(one), len(other)) + 1
    while too_long - fits > 1:
        length = (fits + too_long) // 2
        if _runs(texts[0], length).isdisjoint(_runs(texts[1], length)):
            too_long = length
        else:
            fits = length
    return fits


def _runs(words: Sequence[int], length: int) -> set[int]:
    """The runs of so many words, each as one number: its words are the digits, and the rest by a prime is taken."""
    first = pow(_BASE, length, _PRIME)
    found, run = set(), 0
    for at, word in enumerate(words):
        run = (run * _BASE + word - (words[at - length] * first if at >= length else 0)) % _PRIME
        if at >= length - 1:
            found.add(run)
    return found


def opening(text: str) -> list[str]:
    """The first content words of a text, `OPENING_WORDS` of them where there are so many."""
    return [word for word in words_of(text) if word not in _FUNCTION_WORDS][:OPENING_WORDS]


def without_lead_in(text: str) -> str:
    """A text without its first sentence, where that is short enough for a lead-in and something follows it."""
    words = text.split()
    ends = [number for number, word in enumerate(words, 1) if word[-1] in ".!?"]
    return " ".join(words[ends[0] :]) if ends and ends[0] <= LEAD_IN_WORDS and ends[0] < len(words) else text

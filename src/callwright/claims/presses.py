"""What says that keys of a telephone are pressed, in English: nobody hears these words as keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

_DIGITS: Final = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
KEY_NAMED: Final[Mapping[str, str]] = {
    **{word: str(digit) for digit, word in enumerate(_DIGITS)},
    **{key: key for key in "0123456789"},
    "star": "*",
    "hash": "#",
    "pound": "#",
}
"""The key that a word names."""
_PRESSING: Final = ("pressing", "pressed")
_I_PRESS: Final = ("i", "i'll", "will")


def claimed_keys(words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Each key that the speaker says to press or to have pressed, behind the number of the word that says so.

    Such are "pressing two", "pressed two" and "I'll press two", with or without the contraction, as plain words.
    """
    for at, (verb, named) in enumerate(pairwise(words)):
        is_claim = verb in _PRESSING or (verb == "press" and at > 0 and words[at - 1] in _I_PRESS)
        if is_claim and named in KEY_NAMED:
            yield at, KEY_NAMED[named]

"""A text letter by letter, as it is read back where it sounds like another: Reid is R-E-I-D, and Reed is not."""

from __future__ import annotations

from collections.abc import Sequence

from callwright.claims.words import plain

_NAMES = {"@": "at", ".": "dot", "_": "underscore", "-": "dash", "+": "plus"}


def spelled(text: str) -> str:
    """A text for speech, letter by letter; numbers stay as they are: ``R-E-I-D at M-A-I-L dot C-O-M``."""
    parts: list[str] = []
    for word in text.split():
        apart = "".join(
            f" {_NAMES[sign]} " if sign in _NAMES else sign for sign in word if sign.isalnum() or sign in _NAMES
        )
        parts += [_letters(part) for part in apart.split()]
    return " ".join(parts)


def is_spelled(text: str, said: Sequence[str], *, cut: bool = False) -> bool:
    """Whether words (as ``words.plain`` gives them) hold a text letter by letter, and no letter beside it.

    ``cut`` says that there was more to hear: what stands at their end may then go on.
    """
    wanted = plain(spelled(text))
    for start in range(len(said) - len(wanted) + 1):
        end = start + len(wanted)
        if list(said[start:end]) != wanted or (cut and end == len(said)):
            continue
        if not any(map(_is_letter, (*said[max(start - 1, 0) : start], *said[end : end + 1]))):
            return bool(wanted)
    return False


def _letters(part: str) -> str:
    return part if part.isdecimal() or part in _NAMES.values() else "-".join(part.upper())


def _is_letter(word: str) -> bool:
    return len(word) == 1 and word.isalpha()

"""A text that comes in pieces, as sentences that can be spoken while the rest is still being written. Pure.

A sentence ends with its mark and a blank behind it, or with the line. One that goes on for too long is broken at a
comma, or else between two words. What is there for the eye alone, such as asterisks, is left out.
"""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 240
"""Characters of a sentence; about 15 s of speech."""

_END: Final = re.compile(r"[.!?\u2026]+[\"'\u201d\u2019)\]]*(?=\s)|\n")
_NO_END: Final = re.compile(r"(?:\b(?:mr|mrs|ms|dr|st|vs|e\.g|i\.e|a\.m|p\.m)\.|^\d+\.)$", re.IGNORECASE)
_FOR_THE_EYE: Final = re.compile(r"[*_`#~|<>]+|^[ \t]*[-•]\s+|^\d+[.)]\s+", re.MULTILINE)


class Sentences:
    """Takes a text in pieces and gives it back in sentences."""

    def __init__(self) -> None:
        self._text = ""

    def take(self, text: str) -> list[str]:
        """The sentences that are whole with this piece."""
        self._text += text
        found = []
        while (end := self._end()) is not None:
            found.append(self._text[:end])
            self._text = self._text[end:]
        return [sentence for sentence in map(spoken, found) if sentence]

    def rest(self) -> list[str]:
        """What is left at the end of the text."""
        left = [*self.take("\n"), spoken(self._text)]
        self._text = ""
        return [sentence for sentence in left if sentence]

    def _end(self) -> int | None:
        """Where the first sentence ends; None while that is not known."""
        for mark in _END.finditer(self._text):
            if mark.start() > LONGEST:
                break
            if not _NO_END.search(self._text[: mark.end()]):
                return mark.end()
        if len(self._text) <= LONGEST:
            return None
        at = max(self._text.rfind(stop, LONGEST // 3, LONGEST) for stop in (", ", "; ", ": "))
        if at < 0:
            at = self._text.rfind(" ", 0, LONGEST)
        return at + 1 if at > 0 else LONGEST


def spoken(text: str) -> str:
    """A text without what is there for the eye alone, its blanks single; empty where nothing could be said of it."""
    plain = " ".join(_FOR_THE_EYE.sub("", text).split())
    plain = "".join(each for each in plain if each.isprintable())
    return plain if any(c.isalnum() for c in plain) else ""

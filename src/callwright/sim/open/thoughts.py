"""A text that comes in pieces, without what its writer only thinks. Pure.

Reasoning models write their thoughts between ``<think>`` and ``</think>``, and many endpoints hand both on. With some
the beginning stands in the prompt, so that the end comes alone: what stands before it in the same piece is thought.
"""

from __future__ import annotations

import re
from typing import Final

_BEGIN, _END = "<think>", "</think>"
_MARK: Final = re.compile(f"{_BEGIN}|{_END}", re.IGNORECASE)


class Aloud:
    """Takes a text in pieces and gives back what of it is not thought; a thought ends the line that it stands in."""

    def __init__(self) -> None:
        self._text = ""
        """What may be the beginning of a mark."""
        self._is_thought = False

    def take(self, piece: str) -> str:
        """What is to be said with this piece."""
        text, self._text = self._text + piece, ""
        said: list[str] = []
        at = 0
        for mark in _MARK.finditer(text):
            if mark[0].lower() == _END:
                if not self._is_thought:
                    said.clear()
                self._is_thought = False
            elif not self._is_thought:
                said += [text[at : mark.start()], "\n"]
                self._is_thought = True
            at = mark.end()
        held = _begun(text[at:])
        end = len(text) - held
        if not self._is_thought:
            said.append(text[at:end])
        self._text = text[end:]
        return "".join(said)

    def rest(self) -> str:
        """What is left at the end of the text."""
        return "" if self._is_thought else self._text


def _begun(text: str) -> int:
    """How many characters at the end of a text may be the beginning of a mark."""
    at = text.rfind("<")
    left = text[at:].lower() if at >= 0 else ""
    return len(text) - at if left and (_BEGIN.startswith(left) or _END.startswith(left)) else 0

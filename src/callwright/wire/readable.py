"""What a server says for people to read, as it may be told: one line of bounded length that no terminal obeys."""

from __future__ import annotations

from typing import Final

CHARS_MAX: Final = 300
"""How many characters of it are told."""


def readable(text: str) -> str:
    """The text with blanks for line breaks, control characters and marks that turn the direction of writing."""
    beginning = text[: 4 * CHARS_MAX]
    line = " ".join("".join(each if each.isprintable() else " " for each in beginning).split())
    return line if len(line) <= CHARS_MAX else f"{line[: CHARS_MAX - 1]}…"

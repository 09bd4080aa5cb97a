"""One text on its way to a voice of our own, and how far that says it has come in it.

```
model   │Your or│der 4417│ is on its way.│ whole
voice           [Your] [order] [4417] [is] ...      words, letter for letter those that are next: believed
                [Your] [order] [forty-four] ...     other words: none is believed from here on
```

What a voice tells is compared with the text by letters and digits alone, so that it may join words, split them and
leave out signs. A word counts once all of its letters were told. Who tells of words that are not next in the text, of
more than its audio can hold, or of words without audio, is believed no more: what was heard is then not claimed to have
been.
"""

from __future__ import annotations

import asyncio
import unicodedata
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

from callwright.core.estimate import FAST_LETTERS_PER_S
from callwright.declare.voice import Said
from callwright.ids import ItemId, Ms

SAMPLE_BYTES: Final = 2
_FASTEST_LETTERS_PER_S: Final = 2 * FAST_LETTERS_PER_S
"""No voice that tells its words is faster, hurried ones included."""
_SHORT_LETTERS: Final = 8


class VoicedText:
    """One text, piece by piece."""

    def __init__(self, item_id: ItemId) -> None:
        self.item_id = item_id
        self.given = ""
        """All of it so far."""
        self.is_whole = False
        self.made_bytes = 0
        """Audio that was made of it."""
        self._spelling: _Spelling | None = _Spelling()
        """None once the voice is not believed."""
        self._pieces: deque[str] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def give(self, piece: str) -> None:
        """More of it has come."""
        if piece:
            self.given += piece
            if self._spelling:
                self._spelling.give(piece)
            self._pieces.append(piece)
            self._wake()

    def end(self) -> None:
        """All of it has come."""
        self.is_whole = True
        self._wake()

    async def pieces(self) -> AsyncIterator[str]:
        """What has come, as it comes, to its end."""
        while True:
            while self._pieces:
                yield self._pieces.popleft()
            if self.is_whole:
                return
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def made_ms(self, rate_hz: int) -> Ms:
        """How much audio was made of it, at this rate."""
        return self.made_bytes // SAMPLE_BYTES * 1000 // rate_hz

    def told(self, words: str, piece_bytes: int, rate_hz: int) -> int | None:
        """The voice told which words its latest piece holds, which is among what was made.

        Returns how many words of the text it has told of then; None if it is not believed, from now on or before.
        """
        if self._spelling is None:
            return None
        count = self._spelling.told(words)
        most = self.made_ms(rate_hz) * _FASTEST_LETTERS_PER_S // 1000 + _SHORT_LETTERS
        if count is None or not piece_bytes or self._spelling.at > most:
            self._spelling = None
            return None
        return count

    def untold(self) -> str:
        """What is missing of a text of which some words were told: "it told of 3 of 10 words"; empty if nothing is."""
        if self._spelling is None or not self._spelling.is_begun or self._spelling.is_through():
            return ""
        return f"it told of {self._spelling.count()} of {len(self.given.split())} words"

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)


class _Spelling:
    """The letters of a text, and how many of them were told."""

    def __init__(self) -> None:
        self.at = 0
        """So many of its letters were told."""
        self.is_begun = False
        """Some word was told."""
        self._letters: list[str] = []
        self._ends: list[int] = []
        """How many letters there are up to the end of each word."""
        self._is_in_word = False

    def give(self, piece: str) -> None:
        """More of the text has come."""
        for sign in piece:
            if sign.isspace():
                self._is_in_word = False
                continue
            if not self._is_in_word:
                self._is_in_word = True
                self._ends.append(len(self._letters))
            self._letters += letters_of(sign)
            self._ends[-1] = len(self._letters)

    def told(self, words: str) -> int | None:
        """More words were told: how many there are by now; None if these are not next."""
        told = letters_of(words)
        if self._letters[self.at : self.at + len(told)] != told:
            return None
        self.at += len(told)
        self.is_begun = self.is_begun or bool(told)
        return self.count()

    def count(self) -> int:
        """How many words of the text were told whole."""
        return bisect_right(self._ends, self.at)

    def is_through(self) -> bool:
        """Whether all letters of the text were told."""
        return self.at == len(self._letters)


def letters_of(text: str) -> list[str]:
    """Its letters and digits, however they are written: composed or not, capital or small."""
    return [sign for sign in unicodedata.normalize("NFKD", text).casefold() if sign.isalnum()]


def said_of(piece: object) -> Said | None:
    """What a voice yielded; None for what it must not."""
    audio: object = piece.audio if isinstance(piece, Said) else piece
    text: object = piece.text if isinstance(piece, Said) else ""
    if isinstance(audio, bytes | bytearray | memoryview) and isinstance(text, str):
        return Said(bytes(audio), text)
    return None


def kind_of(piece: object) -> str:
    """What a voice yielded, by its types."""
    if isinstance(piece, Said):
        return f"Said({type(piece.audio).__name__}, {type(piece.text).__name__})"
    return type(piece).__name__

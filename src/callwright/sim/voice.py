"""A voice for trial and test: it says what is recorded, word for word.

Its lines are those of the simulated agent, so that a call in which the client speaks is measured like one in which the
server does. A text is said as it comes, from the end of its first sentence on: the longest run of recorded words that
it begins with, and so on; behind the end of a line there is a pause before the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from callwright.declare.voice import Said
from callwright.errors import UsageError
from callwright.ids import Ms
from callwright.sim.speech import PER_MS, RATE_HZ, Recording, normalise

FIRST_MS: Final[Ms] = 150
"""How long it takes from a text's first sentence to its first audio; chosen, as voices in the cloud take 100 to 300."""
_ENDS: Final = (".", "!", "?")


class _Run(NamedTuple):
    """Words of a recorded line."""

    line: Recording
    first: int
    end: int


class RecordedVoice:
    """Says texts that are made of an agent's recorded lines. Implements ``callwright.Voice``."""

    rate_hz = RATE_HZ

    def __init__(self, speech: Mapping[str, Recording], pause_ms: Ms) -> None:
        """``pause_ms`` is the pause between two lines."""
        self._lines = [line for line in speech.values() if line.kind == "agent"]
        self._words = [[normalise(word.text) for word in line.words] for line in self._lines]
        self._pause_ms = pause_ms
        self._places: dict[str, list[tuple[int, int]]] = {}
        """Where each word stands: lines, and words of them."""
        for number, words in enumerate(self._words):
            for at, word in enumerate(words):
                self._places.setdefault(word, []).append((number, at))

    async def speak(self, text: AsyncIterator[str]) -> AsyncGenerator[bytes | Said, None]:
        """Say a text. Raises UsageError for words that are not recorded."""
        last: _Run | None = None
        async for run in self._runs(text):
            if last is None:
                await asyncio.sleep(FIRST_MS / 1000)
            elif last.end == len(last.line.words):
                yield Said(np.zeros(self._pause_ms * PER_MS, "<i2").tobytes())
            for at in range(run.first, run.end):
                for piece in _word(run.line, at):
                    yield piece
            last = run

    async def _runs(self, text: AsyncIterator[str]) -> AsyncIterator[_Run]:
        """The runs that a text is made of, each as soon as it is known and a sentence is over."""
        last: _Run | None = None
        waiting = ""
        async for piece in text:
            waiting += piece
            *whole, begun = waiting.split(" ")
            while whole and whole[-1].endswith(_ENDS) and (run := self._longest(whole, last)) is not None:
                whole, last = whole[run.end - run.first :], run
                yield run
            waiting = " ".join([*whole, begun])
        words = waiting.split()
        while words:
            last = self._longest(words, last, is_all=True)
            assert last is not None
            words = words[last.end - last.first :]
            yield last

    def _longest(self, words: list[str], last: _Run | None, *, is_all: bool = False) -> _Run | None:
        """The longest run that these words begin with; of several the one that goes on, or that begins a line.

        None where what comes behind them may tell which of several it is.
        """
        plain = [normalise(word) for word in words]
        found: list[tuple[int, bool, bool, _Run]] = []
        for number, first in self._places.get(plain[0], ()):
            length = _alike(plain, self._words[number][first:])
            line = self._lines[number]
            goes_on = last is not None and last.line is line and last.end == first
            found.append((length, goes_on, first == 0, _Run(line, first, first + length)))
        if not found:
            raise UsageError(f"the agent's recorded lines have no word {plain[0]!r}")
        best = max(found, key=lambda each: each[:3])
        rivals = [each for each in found if each[0] == best[0]]
        return best[3] if is_all or best[0] < len(words) or len(rivals) == 1 else None


def _word(line: Recording, at: int) -> tuple[Said, Said]:
    """A word, and the pause behind it up to the next."""
    first, end, behind = line.cut_at(at), line.words[at].end_ms * PER_MS, line.cut_at(at + 1)
    sound, pause = (line.pcm[start:stop].astype("<i2").tobytes() for start, stop in ((first, end), (end, behind)))
    return Said(sound, line.words[at].text), Said(pause)


def _alike(words: list[str], others: list[str]) -> int:
    """How many words two texts begin with alike."""
    same = zip(words, others, strict=False)
    return next((at for at, (one, other) in enumerate(same) if one != other), min(len(words), len(others)))

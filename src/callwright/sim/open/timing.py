"""When each word of a sentence is spoken, guessed from its text and its sound: no voice of the extra tells it. Pure.

The words share what is loud by their letters. Where the sound pauses as often as the text does (at its commas), each
part of the text has its part of the sound to itself. What history keeps of a reply that was cut is as good as this
guess: of the words of the recorded lines half lie within 60 ms of where they are spoken, and 9 of 10 within 360 ms.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from callwright.sim.speech import PER_MS, Pcm, Word

if TYPE_CHECKING:
    from callwright.ids import Ms

_FRAME_MS: Final = 10
_QUIET: Final = 0.01
"""Part of the loudest frame below which a frame is a pause."""
_PAUSE_MS: Final = 50
_EDGE: Final = 1.0
"""What a word takes beside its letters, in letters."""


def timed(text: str, pcm: Pcm) -> tuple[Word, ...]:
    """The words of this text with their times in this sound (int16, mono, 16 kHz)."""
    words = text.split()
    loud = _loud(pcm)
    if not words or not loud:
        return tuple(Word(word, 0, len(pcm) // PER_MS) for word in words)
    parts = _parts(words)
    spans = _spans(loud, len(parts))
    if len(parts) != len(spans):
        parts, spans = [words], [(loud[0], loud[-1] + 1)]
    return tuple(word for part, span in zip(parts, spans, strict=True) for word in _shared(part, span))


def _loud(pcm: Pcm) -> list[int]:
    """The frames that are no pause."""
    size = _FRAME_MS * PER_MS
    count = len(pcm) // size
    frames = np.abs(pcm[: count * size].astype(np.float64)).reshape(count, size).mean(axis=1)
    return [int(frame) for frame in np.flatnonzero(frames > _QUIET * frames.max(initial=0.0))]


def _spans(loud: list[int], count: int) -> list[tuple[int, int]]:
    """The stretches between the longest pauses, in frames: so many, if there are as many pauses."""
    pauses = [pair for pair in pairwise(loud) if (pair[1] - pair[0]) * _FRAME_MS > _PAUSE_MS]
    longest = sorted(sorted(pauses, key=lambda pair: pair[0] - pair[1])[: count - 1])
    starts = [loud[0], *(after for _, after in longest)]
    ends = [*(before + 1 for before, _ in longest), loud[-1] + 1]
    return list(zip(starts, ends, strict=True))


def _parts(words: list[str]) -> list[list[str]]:
    """The words between the places where one would pause."""
    parts: list[list[str]] = [[]]
    for word in words:
        parts[-1].append(word)
        if word[-1] in ",;:.!?":
            parts.append([])
    return [part for part in parts if part]


def _shared(words: list[str], span: tuple[int, int]) -> list[Word]:
    """The words with their shares of a stretch."""
    ends = np.cumsum([len(word) + _EDGE for word in words])
    start_ms, length_ms = span[0] * _FRAME_MS, (span[1] - span[0]) * _FRAME_MS
    times: list[Ms] = [start_ms, *(start_ms + round(length_ms * end / ends[-1]) for end in ends)]
    return [Word(word, first, last) for word, (first, last) in zip(words, pairwise(times), strict=True)]

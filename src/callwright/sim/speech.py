"""Recorded lines with the times of their words: what a simulated caller and agent can say.

A directory of speech, made by ``scripts/render_speech.py``, holds WAV files (16 kHz, mono, G.711 μ-law) and an index:
``{id: {voice, kind, text, file, ms, words: [[text, start_ms, end_ms], ...]}}``, ``speech.json``.
Files are read when a line is first asked for, and kept for the life of the process. Samples are int16, mono, 16 kHz.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from callwright.audio.g711 import pcmu_decode
from callwright.errors import AudioFormatError, UsageError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from callwright.ids import Ms

RATE_HZ = 16_000
PER_MS = RATE_HZ // 1000

Pcm: TypeAlias = npt.NDArray[np.int16]
Kind = Literal["caller", "agent", "murmur", "bed", "music"]
"""What a sound is to a call; the turn rule reads this, never who is meant to speak."""

_WAV_FORMAT_PCMU = 7


def normalise(word: str) -> str:
    """A word as it is compared: lower case, letters, digits and inner apostrophes or hyphens only."""
    kept = "".join(c for c in word.lower().replace("\u2019", "'") if c.isalnum() or c in "'-")
    return kept.strip("'-")


@dataclass(frozen=True)
class Word:
    """One whitespace-separated word of a line's text, with its punctuation, and when it is spoken."""

    text: str
    start_ms: Ms
    end_ms: Ms


@dataclass(frozen=True, eq=False)
class Recording:
    """One recorded line. `pcm` is int16, mono, 16 kHz, read-only."""

    id: str
    voice: str
    kind: Kind
    text: str
    pcm: Pcm
    words: tuple[Word, ...]

    @property
    def ms(self) -> Ms:
        """Length, rounded down."""
        return len(self.pcm) // PER_MS

    def cut_at(self, word: int) -> int:
        """The sample before which the words up to `word` (excluded) are spoken: the middle of the gap between the two.

        0 for the first word, the length of the line for one past the last.
        """
        if word <= 0:
            return 0
        if word >= len(self.words):
            return len(self.pcm)
        return (self.words[word - 1].end_ms + self.words[word].start_ms) * PER_MS // 2

    def slice(self, first_word: int, last_word: int) -> Pcm:
        """The samples of the words from `first_word` up to `last_word` (excluded); slices in a row make the whole."""
        return self.pcm[self.cut_at(first_word) : self.cut_at(last_word)]


class Speech(Mapping[str, Recording]):
    """The recorded lines of one directory, by id, in the order of its index."""

    def __init__(self, directory: Path | Traversable) -> None:
        self._directory = directory
        self._index: dict[str, dict[str, Any]] = json.loads((directory / "speech.json").read_text("utf-8"))
        self._read: dict[str, Recording] = {}

    @staticmethod
    def load(directory: Path | Traversable) -> Speech:
        """The lines of `directory`, one object a process.

        Raises:
            UsageError: there is no index in the directory.
        """
        if not (directory / "speech.json").is_file():
            raise UsageError(f"{directory}: no speech.json; make it with scripts/render_speech.py")
        key = str(directory)
        if key not in _LOADED:
            _LOADED[key] = Speech(directory)
        return _LOADED[key]

    def __getitem__(self, line_id: str) -> Recording:
        if line_id not in self._read:
            entry = self._index[line_id]
            self._read[line_id] = Recording(
                id=line_id,
                voice=entry["voice"],
                kind=entry["kind"],
                text=entry["text"],
                pcm=_decode((self._directory / entry["file"]).read_bytes(), entry["file"]),
                words=tuple(Word(*word) for word in entry["words"]),
            )
        return self._read[line_id]

    def __contains__(self, line_id: object) -> bool:
        return line_id in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)


_LOADED: dict[str, Speech] = {}


def _decode(wav: bytes, name: str) -> Pcm:
    chunks = dict(_chunks(wav))
    layout = chunks.get(b"fmt ", b"")
    tag, channels, rate_hz = (int.from_bytes(layout[a:b], "little") for a, b in ((0, 2), (2, 4), (4, 8)))
    if (tag, channels, rate_hz) != (_WAV_FORMAT_PCMU, 1, RATE_HZ) or b"data" not in chunks:
        raise AudioFormatError(f"{name}: not a WAV file of G.711 μ-law, mono, {RATE_HZ} Hz; render it again")
    pcm = np.array(pcmu_decode(chunks[b"data"]), dtype=np.int16)
    pcm.flags.writeable = False
    return pcm


def _chunks(wav: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 12
    while at + 8 <= len(wav):
        size = int.from_bytes(wav[at + 4 : at + 8], "little")
        yield wav[at : at + 4], wav[at + 8 : at + 8 + size]
        at += 8 + size + size % 2

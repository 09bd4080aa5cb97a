"""Recorded lines with the times of their words: what a simulated caller and agent can say.

A directory of speech, made by ``scripts/render_speech.py``, holds WAV files (16 kHz, mono, G.711 μ-law) and an index:
``{id: {voice, kind, text, file, ms, words: [[text, start_ms, end_ms], ...]}}``, ``speech.json``.
Files are read when a line is first asked for, and kept for the life of the process. Samples are int16, mono, 16 kHz.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from callwright.audio.g711 import pcmu_decode
from callwright.errors import UsageError
from callwright.ids import Ms
from callwright.sim.advice import did_you_mean, one_of

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

RATE_HZ = 16_000
PER_MS = RATE_HZ // 1000

Pcm: TypeAlias = npt.NDArray[np.int16]
Kind = Literal["caller", "agent", "murmur", "bed", "music"]
"""What a sound is to a call; the turn rule reads this, never who is meant to speak."""
Side = Literal["caller", "agent"]
"""Whose lines: the agent's are those of its kind, the caller's are all others."""

_WAV_FORMAT_PCMU = 7
_RENDER = "make it again with scripts/render_speech.py"


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


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    """What the index says of a line."""

    voice: str
    kind: Kind
    text: str
    file: str
    ms: Ms
    words: list[tuple[str, Ms, Ms]]

    def mistake(self) -> str | None:
        """What of it cannot be, beyond types."""
        if not self.words or [word for word, _, _ in self.words] != self.text.split():
            return "words: expected those of text, split at blanks"
        times = [0, *(time for _, start, end in self.words for time in (start, end)), self.ms]
        if times != sorted(times):
            return "words: expected times in order, from 0 up to ms"
        return None


class Speech(Mapping[str, Recording]):
    """The recorded lines of one directory, by id, in the order of its index."""

    def __init__(self, directory: Path | Traversable) -> None:
        self._directory = directory
        self._index = _read_index(directory)
        self._read: dict[str, Recording] = {}

    @staticmethod
    def load(directory: Path | Traversable) -> Speech:
        """The lines of `directory`, one object a process.

        Raises:
            UsageError: there is no index in the directory, something in it is wrong, or a file that it names is gone.
                (Asking for a line raises it too, where its file is not what the index says.)
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
                voice=entry.voice,
                kind=entry.kind,
                text=entry.text,
                pcm=_decode(self._directory / entry.file, entry.ms),
                words=tuple(Word(*word) for word in entry.words),
            )
        return self._read[line_id]

    def __contains__(self, line_id: object) -> bool:
        return line_id in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def lines_of(self, side: Side) -> list[str]:
        """The ids of one side's lines."""
        return [line_id for line_id, entry in self._index.items() if (entry.kind == "agent") == (side == "agent")]


_LOADED: dict[str, Speech] = {}


def _read_index(directory: Path | Traversable) -> dict[str, _Entry]:
    path = directory / "speech.json"
    try:
        text = path.read_text("utf-8")
        entries = json.loads(text)
    except json.JSONDecodeError as problem:
        raise UsageError(f"{path}:{problem.lineno}:{problem.colno}: expected JSON; {problem.msg}") from problem
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"{path}: expected a file that can be read; got: {problem}") from problem
    if not isinstance(entries, dict):
        raise UsageError(f"{path}:1:1: expected an object with one entry per line, by its id")
    index: dict[str, _Entry] = {}
    for line_id, entry in entries.items():
        try:
            index[line_id] = msgspec.convert(entry, _Entry)
            mistake = index[line_id].mistake()
            if not (directory / index[line_id].file).is_file():
                mistake = f"file: there is no {directory / index[line_id].file}; {_RENDER}"
        except msgspec.ValidationError as problem:
            mistake = _explained(str(problem))
        if mistake:
            before, _, _ = text.partition(f"{json.dumps(line_id, ensure_ascii=False)}:")
            raise UsageError(f"{path}:{before.count(chr(10)) + 1}: {line_id}: {mistake}")
    return index


def _explained(problem: str) -> str:
    """A mistake in an entry, with the names that there are where one is wrong."""
    names = {r"unknown field `(.*)`": _Entry.__struct_fields__, r"Invalid enum value '(.*)'": get_args(Kind)}
    for pattern, options in names.items():
        if wrong := re.search(pattern, problem):
            return f'expected {one_of(options)}; got "{wrong[1]}"{did_you_mean(wrong[1], options)}'
    return problem


def _decode(path: Path | Traversable, ms: Ms) -> Pcm:
    """The samples of a WAV file that lasts so long."""
    try:
        chunks = dict(_chunks(path.read_bytes()))
    except OSError as problem:
        raise UsageError(f"{path}: expected a file that can be read; got: {problem.strerror}") from problem
    layout = chunks.get(b"fmt ", b"")
    tag, channels, rate_hz = (int.from_bytes(layout[a:b], "little") for a, b in ((0, 2), (2, 4), (4, 8)))
    if (tag, channels, rate_hz) != (_WAV_FORMAT_PCMU, 1, RATE_HZ) or b"data" not in chunks:
        raise UsageError(f"{path}: expected a WAV file of G.711 μ-law, mono, {RATE_HZ} Hz; {_RENDER}")
    pcm = np.array(pcmu_decode(chunks[b"data"]), dtype=np.int16)
    if abs(len(pcm) - ms * PER_MS) > PER_MS:
        raise UsageError(f"{path}: expected {ms} ms, as the index says; got {len(pcm) // PER_MS} ms; {_RENDER}")
    pcm.flags.writeable = False
    return pcm


def _chunks(wav: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 12
    while at + 8 <= len(wav):
        size = int.from_bytes(wav[at + 4 : at + 8], "little")
        yield wav[at : at + 4], wav[at + 8 : at + 8 + size]
        at += 8 + size + size % 2

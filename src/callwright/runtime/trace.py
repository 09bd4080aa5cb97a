"""The trace of a call: every event and command in order, with its time, as JSON Lines.

A row is ``[t_ms, kind, content]``: ``on`` with an event, ``do`` with a command, ``note`` with what the shell survived
by itself, ``raised`` with the error that broke off the commands before it, ``audio`` with lengths. The caller's frames
are told as one ``audio`` row a second, everything else as it comes. The first row names the version, and what was fixed
before the call, so that the core can be given the same events again (``replay``). No row holds a sample, and where no
words of a call may be kept, none holds a word of it.

A call that talks writes some 1.5 kB a second. All but the latest rows are kept compressed, at a tenth of that: an
hour takes half a megabyte.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from callwright.claims.cards import without_cards, without_spoken_cards
from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.commands import Command, NoteAnomaly
from callwright.core.events import Event
from callwright.ids import Ms
from callwright.runtime.kept import Kept, withheld

TRACE_VERSION = 2
_SPEECH: Final[Mapping[type, str]] = {
    on.CallerTranscribed: "text",
    on.ReplyWritten: "text",
    on.ItemRetrieved: "text",
    do.CarryMessage: "text",
    do.ConfigureSession: "more",
}
"""What may hold a card number in words, too; any other text has it in figures."""
_TEXTS: Final[Mapping[type, tuple[str, ...]]] = {
    kind: tuple(field.name for field in fields(kind) if field.type in ("str", "str | None"))
    for kind in (*get_args(Event), *get_args(Command))
}
"""The fields that hold a text which came from elsewhere."""
_TURNS: Final = 4
"""Over so many texts a spoken number may go on."""
_BLOCK_BYTES: Final = 4_096  # compressed in 20 µs, to some 400 bytes


class Trace:
    """Collects the rows of one call."""

    def __init__(self, head: Mapping[str, object], kept: Kept | None = None) -> None:
        """``kept`` says which words are written down (None: all)."""
        self.kept = kept or Kept(is_kept=True)
        self._encode = msgspec.json.Encoder().encode
        self._blocks: list[bytes] = []
        """Earlier rows, compressed."""
        self._buffer = bytearray()
        self._spoken: deque[str] = deque(maxlen=_TURNS)
        """The latest speech, as it was: a number may go on in the next."""
        self._noted: list[NoteAnomaly] = []
        self._row([0, "trace", {"version": TRACE_VERSION, **head}])

    def happened(self, at_ms: Ms, event: Event) -> None:
        """Note an event that was handled."""
        self._row([at_ms, "on", type(event).__name__, self.kept.content(self._without_cards(event))])

    def done(self, at_ms: Ms, command: Command) -> None:
        """Note a command that was carried out."""
        self._done(at_ms, "do", command)

    def noted(self, at_ms: Ms, note: NoteAnomaly) -> None:
        """Note what the core does not see."""
        self._done(at_ms, "note", note)

    def raised(self, at_ms: Ms, problem: Exception) -> None:
        """Note what broke off the handling of the latest event, by its type alone."""
        self._row([at_ms, "raised", type(problem).__name__])

    def audio(self, at_ms: Ms, *, sent_ms: Ms, held_ms: Ms) -> None:
        """Note how much of the caller's audio has been sent so far, and how much is held now."""
        self._row([at_ms, "audio", {"sent_ms": sent_ms, "held_ms": held_ms}])

    def note(self, at_ms: Ms, kind: str, content: object) -> None:
        """Add a row of another kind."""
        self._row([at_ms, kind, content])

    def drop(self) -> None:
        """Keep no words, and take those out that were written down."""
        self.kept.drop()
        rows = [msgspec.json.decode(row) for row in self.lines().splitlines()]
        self._blocks.clear()
        self._buffer.clear()
        self._spoken.clear()
        for row in rows:
            if row[1] in ("on", "do", "note"):
                row[3] = withheld(row[2], row[3], self.kept.notices)
            self._row(row)

    def anomalies(self) -> tuple[str, ...]:
        """What was out of order and survived, as it may be told."""
        return tuple(map(self.kept.anomaly, self._noted))

    def lines(self) -> bytes:
        """All rows so far, one JSON array a line."""
        return b"".join([*map(zlib.decompress, self._blocks), self._buffer])

    def save(self, path: Path) -> None:
        """Write the rows to a file."""
        path.write_bytes(self.lines())

    def _done(self, at_ms: Ms, kind: str, command: Command) -> None:
        command = self._without_cards(command)
        if isinstance(command, NoteAnomaly):
            self._noted.append(command)
        self._row([at_ms, kind, type(command).__name__, self.kept.content(command)])

    def _without_cards(self, row: Any) -> Any:
        kind = type(row)
        for field in _TEXTS[kind]:
            row = _with(row, field, self._without_spoken if _SPEECH.get(kind) == field else without_cards)
        return row

    def _without_spoken(self, text: str) -> str:
        self._spoken.append(text)
        return without_spoken_cards(self._spoken)[-1]

    def _row(self, row: list[object]) -> None:
        buffer = self._buffer
        buffer += self._encode(row)
        buffer += b"\n"
        if len(buffer) > _BLOCK_BYTES:
            self._blocks.append(zlib.compress(buffer, 1))
            buffer.clear()


def without_figures(row: Any) -> Any:
    """An event or command without the card numbers that stand in it in figures."""
    for field in _TEXTS[type(row)]:
        row = _with(row, field, without_cards)
    return row


def _with(row: Any, field: str, change: Callable[[str], str]) -> Any:
    """A row with one text changed; the row itself where it stays as it is."""
    text = getattr(row, field)
    changed = change(text) if text else text
    return row if changed == text else replace(row, **{field: changed})

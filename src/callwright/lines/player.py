"""Reply audio that was handed to a line and waits to be taken, 20 ms at a time: for every line with pulled reports.

What waits is bounded. A model may send a whole reply at once, so that the bound is minutes; a line that stalls for
longer fails aloud. Nothing that was handed over is ever dropped, except by ``clear``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from callwright.audio.formats import FRAME_MS, AudioFormat
from callwright.errors import AudioFormatError, LineFailed
from callwright.ids import ItemId, Ms

WAITING_MS_MAX: Ms = 300_000
"""How much reply audio may wait: more than a model says in one reply, 14 MiB at 24 kHz."""

Report: TypeAlias = Callable[[ItemId, int, Ms], None]
"""``LineSink.on_played``."""


@dataclass(slots=True)
class _Piece:
    """Audio of one item."""

    item_id: ItemId
    generation: int
    audio: bytes
    end: int
    """Bytes of the item that have been handed over with the end of this piece."""


class Player:
    """The queue of one line, in its output format; ``report`` is told of every piece that is taken."""

    def __init__(self, audio_format: AudioFormat, report: Report) -> None:
        self._sample_bytes = audio_format.sample_bytes
        self._bytes_per_ms = audio_format.bytes_per_ms
        self._frame_bytes = audio_format.frame_bytes
        self._bytes_max = audio_format.bytes_for_ms(WAITING_MS_MAX)
        self._silence = audio_format.silence(FRAME_MS)
        self._report = report
        self._pieces: deque[_Piece] = deque()
        self._taken = 0
        """Bytes that were taken of the first piece."""
        self._waiting = 0
        """Bytes that wait in all."""
        self._handed: dict[tuple[ItemId, int], int] = {}
        """Bytes of each item that were handed over since the last ``clear``."""

    @property
    def waiting_ms(self) -> Ms:
        """How much waits."""
        return self._waiting // self._bytes_per_ms

    def put(self, item_id: ItemId, generation: int, audio: bytes) -> None:
        """Queue audio behind what waits.

        Raises AudioFormatError for a part of a sample, and LineFailed if more would wait than may.
        """
        if len(audio) % self._sample_bytes:
            raise AudioFormatError(f"{item_id}: expected whole samples of {self._sample_bytes} bytes")
        if self._waiting + len(audio) > self._bytes_max:
            raise LineFailed(f"the line has stalled: {self.waiting_ms} ms of reply audio wait to be played")
        end = self._handed.get((item_id, generation), 0) + len(audio)
        self._handed[item_id, generation] = end
        if audio:
            self._waiting += len(audio)
            self._pieces.append(_Piece(item_id, generation, audio, end))

    def take(self) -> bytes:
        """The next 20 ms, filled up with silence."""
        if not self._pieces:
            return self._silence
        frame = self._cut(self._frame_bytes)
        if len(frame) == self._frame_bytes:
            return frame
        while len(frame) < self._frame_bytes and self._pieces:
            frame += self._cut(self._frame_bytes - len(frame))
        return frame + self._silence[len(frame) :]

    def clear(self) -> None:
        """Drop what waits."""
        self._pieces.clear()
        self._handed.clear()
        self._taken = self._waiting = 0

    def _cut(self, wanted: int) -> bytes:
        """Up to so many bytes of the first piece."""
        piece = self._pieces[0]
        audio, taken = piece.audio, self._taken
        chunk = audio[taken : taken + wanted]
        self._waiting -= len(chunk)
        left = len(audio) - taken - len(chunk)
        if left:
            self._taken = taken + len(chunk)
        else:
            self._pieces.popleft()
            self._taken = 0
        self._report(piece.item_id, piece.generation, (piece.end - left) // self._bytes_per_ms)
        return chunk

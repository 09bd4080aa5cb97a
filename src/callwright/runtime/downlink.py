"""Reply audio on its way to the line: whole samples, at the line's rate, in the line's encoding.

The state of a conversion belongs to one item: an odd byte or a filter's memory never reaches the next one.

While keys are pressed, nothing is spoken over them: what comes is kept here, with its marks, and handed on after. A cut
drops what is kept, and leaves the keys on the line.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from callwright.audio.encodings import ENCODE
from callwright.audio.formats import PCM, AudioFormat
from callwright.audio.resample import Align, Pcm16Carry, Resampler
from callwright.core.ports import Line
from callwright.errors import LineFailed
from callwright.ids import ItemId, MarkId, Ms, Samples

KEPT_MS_MAX: Final[Ms] = 300_000
"""How much reply audio is kept at most while keys are pressed: no model says more in one reply."""

_NOTHING: PCM = np.zeros(0, np.int16)


@dataclass(frozen=True, slots=True)
class _Conversion:
    """What is held back of one item."""

    resampler: Resampler
    carry: Pcm16Carry = field(default_factory=Pcm16Carry)


class Downlink:
    """The way down of one call: the model's PCM16 in, the line's format out."""

    def __init__(self, line: Line, model_format: AudioFormat) -> None:
        self.line = line
        """Where it ends."""
        self._rates = (model_format.rate_hz, line.output_format.rate_hz)
        self._encode = ENCODE[line.output_format.encoding]
        self._items: dict[ItemId, _Conversion] = {}
        """Items that may still get audio."""
        self._samples = _NOTHING
        self._kept: deque[tuple[ItemId, int, bytes] | MarkId] | None = None
        """What is handed on when the keys are out; None while nothing is held back."""
        self._room = 0
        """How many more bytes are kept."""
        self._has_keys = False
        """Keys are on the line."""

    def take(self, item_id: ItemId, audio: bytes) -> Samples:
        """Accept a piece of an item's audio; ``play`` hands it on. Returns how many samples it holds."""
        item = self._items.get(item_id)
        if item is None:
            item = self._items[item_id] = _Conversion(Resampler(*self._rates, Align.CONTENT))
        self._samples = item.carry.take(audio)
        return len(self._samples)

    def play(self, item_id: ItemId, generation: int, samples: Samples) -> None:
        """Hand the next ``samples`` of the accepted piece to the line."""
        piece, self._samples = self._samples, _NOTHING  # not an empty view, which would keep the whole piece
        if samples < len(piece):
            piece, self._samples = piece[:samples], piece[samples:]
        self._hand_on(item_id, generation, self._items[item_id].resampler.process(piece))

    def finish(self, item_id: ItemId, generation: int) -> int:
        """Hand on what the conversion of this item still holds back; its next audio begins a new one.

        Returns how many bytes were dropped: 1 if the item ended in half a sample, otherwise 0.
        """
        item = self._items.pop(item_id)
        self._hand_on(item_id, generation, item.resampler.flush())
        return item.carry.end()

    def mark(self, mark_id: MarkId) -> None:
        """Ask for a mark behind what was handed on so far."""
        if self._kept is None:
            self.line.mark(mark_id)
        else:
            self._kept.append(mark_id)

    def clear(self) -> None:
        """Empty the line; what was in conversion belongs to what was cleared. Keys stay."""
        self._items.clear()
        if self._kept is not None:
            self._kept.clear()
        if not self._has_keys:
            self.line.clear()

    def hold(self) -> None:
        """Hand nothing on from here on."""
        if self._kept is None:
            self._kept = deque()
            self._room = self.line.output_format.bytes_for_ms(KEPT_MS_MAX)

    def press(self, item_id: ItemId, samples: PCM) -> None:
        """Hand tones to the line, at its rate, although everything else is held back."""
        self._has_keys = True
        self.line.play(item_id, 0, self._encode(samples))

    def release(self) -> None:
        """Hand on what was kept, and all that follows."""
        kept, self._kept, self._has_keys = self._kept or (), None, False
        for entry in kept:
            if isinstance(entry, tuple):
                self.line.play(*entry)
            else:
                self.line.mark(entry)

    def _hand_on(self, item_id: ItemId, generation: int, samples: PCM) -> None:
        if not len(samples):
            return
        audio = self._encode(samples)
        if self._kept is None:
            self.line.play(item_id, generation, audio)
            return
        self._room -= len(audio)
        if self._room < 0:
            raise LineFailed(f"keys are not through, and more than {KEPT_MS_MAX} ms of reply audio wait for that")
        self._kept.append((item_id, generation, audio))

"""Reply audio on its way to the line: whole samples, at the line's rate, in the line's encoding.

The state of a conversion belongs to one item: an odd byte or a filter's memory never reaches the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from callwright.audio.encodings import ENCODE
from callwright.audio.formats import PCM, AudioFormat
from callwright.audio.resample import Align, Pcm16Carry, Resampler
from callwright.core.ports import Line
from callwright.ids import ItemId, Samples

_NOTHING: PCM = np.zeros(0, np.int16)


@dataclass(frozen=True, slots=True)
class _Conversion:
    """What is held back of one item."""

    resampler: Resampler
    carry: Pcm16Carry = field(default_factory=Pcm16Carry)


class Downlink:
    """The way down of one call: the model's PCM16 in, the line's format out."""

    def __init__(self, line: Line, model_format: AudioFormat) -> None:
        self._line = line
        self._rates = (model_format.rate_hz, line.output_format.rate_hz)
        self._encode = ENCODE[line.output_format.encoding]
        self._items: dict[ItemId, _Conversion] = {}
        """Items that may still get audio."""
        self._samples = _NOTHING

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

    def clear(self) -> None:
        """Empty the line; what was in conversion belongs to what was cleared."""
        self._items.clear()
        self._line.clear()

    def _hand_on(self, item_id: ItemId, generation: int, samples: PCM) -> None:
        if len(samples):
            self._line.play(item_id, generation, self._encode(samples))

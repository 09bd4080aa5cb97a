"""A demo's rules and recorded lines as what answers free speech: a conversation without a chat endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from callwright.audio.formats import PCM16_16K
from callwright.sim.server.errands import Piece
from callwright.sim.server.speaking import render

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncGenerator, Mapping

    from callwright.ids import Ms
    from callwright.sim.models import Model
    from callwright.sim.server.errands import MakeReply, Part
    from callwright.sim.speech import Recording

PAUSE_MS: Ms = 200
"""Between two recorded lines."""


class RecordedThinker:
    """A `Thinker` that answers as a simulated model does, in the lines that this speaks by."""

    def __init__(self, model: Model, speech: Mapping[str, Recording], rng: random.Random) -> None:
        self._model = model
        self._speech = speech
        self._rng = rng

    async def reply(self, wanted: MakeReply) -> AsyncGenerator[Part, None]:
        """The whole reply, its call first."""
        reply = self._model.reply(wanted.history, self._rng)
        if reply.tool is not None:
            yield reply.tool
        if reply.clips:
            made = render(reply.clips, self._speech, PAUSE_MS, PCM16_16K)
            yield Piece(np.frombuffer(made.audio, "<i2").astype(np.int16), made.words)

"""Responses outside the history: asked for with ``conversation: "none"``, beside whatever the conversation does.

Nobody hears them in the call, so each comes as a whole once it is made. The client knows it again by its metadata.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from callwright.ids import ItemId, Ms, ToolCallId
from callwright.sim.models import ToolRequested
from callwright.sim.server.history import Refusal, wire_item
from callwright.sim.server.telling import Heading, Modality, Output
from callwright.wire.items import FunctionCallItem, Item

if TYPE_CHECKING:
    from callwright.audio.formats import AudioFormat
    from callwright.sim.models import Model, Reply
    from callwright.sim.server.common import Common
    from callwright.sim.speech import Recording
    from callwright.wire.objects import ResponseParams


class Outside:
    """The responses of one session that leave its history alone."""

    def __init__(self, model: Model, speech: Mapping[str, Recording], common: Common) -> None:
        self._model = model
        self._speech = speech
        self._common = common
        self._rng: random.Random | None = None
        self._open: dict[str, Heading] = {}

    def create(self, asked: ResponseParams, now_ms: Ms, audio_format: AudioFormat) -> Refusal | None:
        """A client asks for one, to its own input or to the history as it is."""
        common = self._common
        seen = common.history.items if asked.input is None else common.history.context(asked.input)
        if isinstance(seen, Refusal):
            return seen
        self._rng = self._rng or random.Random(common.rng.getrandbits(64))
        reply = self._model.reply(seen, self._rng)
        modality: Modality = "text" if asked.output_modalities == ("text",) else "audio"
        heading = Heading(common.names.next("resp"), modality, asked.metadata, is_outside=True)
        self._open[heading.response_id] = heading
        common.teller.response_created(heading)
        done_ms = now_ms + self._rng.randint(*common.settings.asked_answer_ms)
        common.agenda.at(done_ms, partial(self._give, heading, reply, audio_format))
        return None

    def cancel(self, response_id: str | None) -> bool:
        """End one that is open; whether there was one of this name."""
        heading = self._open.pop(response_id or "", None)
        if heading is not None:
            self._common.teller.response_done(heading, "cancelled", (), "client_cancelled")
        return heading is not None

    def _give(self, heading: Heading, reply: Reply, audio_format: AudioFormat, _now_ms: Ms) -> None:
        if self._open.pop(heading.response_id, None) is None:
            return
        items: list[Item] = []
        if reply.clips:
            items.append(self._say(heading, reply, audio_format))
        if reply.tool is not None:
            names = self._common.names
            call_id = ToolCallId(names.next("call", self._common.settings.speaks.profile.call_id_max))
            item_id = ItemId(names.next("item"))
            call = wire_item(ToolRequested(item_id, call_id, reply.tool.name, reply.tool.arguments))
            assert isinstance(call, FunctionCallItem)
            self._common.teller.called(Output(heading, item_id, len(items)), call, None, in_pieces=True)
            items.append(call)
        self._common.teller.response_done(heading, "completed", tuple(items), None)

    def _say(self, heading: Heading, reply: Reply, audio_format: AudioFormat) -> Item:
        teller, settings = self._common.teller, self._common.settings
        made = self._common.samples.render(reply.clips, self._speech, settings.sentence_pause_ms, audio_format)
        output = Output(heading, ItemId(self._common.names.next("item")), 0)
        if heading.modality == "text":
            return teller.written(output, made.text, None)
        teller.speech_began(output, None)
        for from_ms in range(0, made.audio_ms, settings.chunk_ms):
            teller.audio(output, made.between(from_ms, from_ms + settings.chunk_ms))
        return teller.speech_ended(output, made.text, "completed", None)

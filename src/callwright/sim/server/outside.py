"""Responses outside the history: asked for with ``conversation: "none"``, beside whatever the conversation does.

Nobody hears them in the call, so each comes as a whole once it is made. The client knows it again by its metadata.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from callwright.ids import ItemId, Ms, ToolCallId
from callwright.sim.models import ToolRequest, ToolRequested
from callwright.sim.server.errands import Failed, Made, Piece
from callwright.sim.server.history import Refusal, wire_item
from callwright.sim.server.speaking import Utterance
from callwright.sim.server.telling import Heading, Modality, Output
from callwright.wire.items import FunctionCallItem, Item

if TYPE_CHECKING:
    from callwright.audio.formats import AudioFormat
    from callwright.sim.models import Model
    from callwright.sim.server.common import Common
    from callwright.sim.server.errands import Part
    from callwright.sim.speech import Recording
    from callwright.wire.objects import ResponseParams


@dataclass(slots=True, eq=False)
class _Draft:
    """What such a response is made of."""

    audio_format: AudioFormat
    utterance: Utterance | None = None
    calls: list[ToolRequest] = field(default_factory=list)
    failed: Failed | None = None


class Outside:
    """The responses of one session that leave its history alone."""

    def __init__(self, model: Model | None, speech: Mapping[str, Recording], common: Common) -> None:
        self._model = model
        self._speech = speech
        self._common = common
        self._rng: random.Random | None = None
        self._open: dict[str, Heading] = {}
        self._drafts: dict[str, _Draft] = {}
        """Those that are errands, as far as they were made."""

    def create(self, asked: ResponseParams, now_ms: Ms, audio_format: AudioFormat) -> Refusal | None:
        """A client asks for one, to its own input or to the history as it is."""
        common = self._common
        seen = common.history.items if asked.input is None else common.history.context(asked.input)
        if isinstance(seen, Refusal):
            return seen
        modality: Modality = "text" if asked.output_modalities == ("text",) else "audio"
        heading = Heading(common.names.next("resp"), modality, asked.metadata, is_outside=True)
        self._open[heading.response_id] = heading
        common.teller.response_created(heading)
        if common.errands is not None:
            self._drafts[heading.response_id] = _Draft(audio_format)
            common.errands.make(heading.response_id, None if asked.input is None else seen, asked, by_client=True)
            return None
        assert self._model is not None
        self._rng = self._rng or random.Random(common.rng.getrandbits(64))
        reply = self._model.reply(seen, self._rng)
        draft = _Draft(audio_format, calls=[reply.tool] if reply.tool else [])
        if reply.clips:
            pause_ms, render = common.settings.sentence_pause_ms, common.samples.render
            draft.utterance = render(reply.clips, self._speech, pause_ms, audio_format)
        done_ms = now_ms + self._rng.randint(*common.settings.asked_answer_ms)
        common.agenda.at(done_ms, partial(self._give, heading, draft))
        return None

    def take(self, response_id: str, part: Part, now_ms: Ms) -> bool:
        """Something of such a response was made; false where it is none that grows."""
        draft = self._drafts.get(response_id)
        if draft is None:
            return False
        match part:
            case Piece():
                draft.utterance = Utterance.of(part.pcm, part.words, draft.audio_format, draft.utterance)
            case ToolRequest():
                draft.calls.append(part)
            case Made() | Failed():
                draft.failed = part if isinstance(part, Failed) else None
                del self._drafts[response_id]
                self._give(self._open[response_id], draft, now_ms)
        return True

    def cancel(self, response_id: str | None) -> bool:
        """End one that is open; whether there was one of this name."""
        heading = self._open.pop(response_id or "", None)
        if heading is None:
            return False
        if self._common.errands is not None and heading.response_id in self._drafts:
            del self._drafts[heading.response_id]
            self._common.errands.drop(heading.response_id)
        self._common.teller.response_done(heading, "cancelled", (), "client_cancelled")
        return True

    def _give(self, heading: Heading, draft: _Draft, _now_ms: Ms) -> None:
        if self._open.pop(heading.response_id, None) is None:
            return
        items: list[Item] = []
        if draft.utterance is not None:
            items.append(self._say(heading, draft.utterance))
        for request in draft.calls:
            names = self._common.names
            call_id = ToolCallId(names.next("call", self._common.settings.speaks.profile.call_id_max))
            item_id = ItemId(names.next("item"))
            call = wire_item(ToolRequested(item_id, call_id, request.name, request.arguments))
            assert isinstance(call, FunctionCallItem)
            self._common.teller.called(Output(heading, item_id, len(items)), call, None, in_pieces=True)
            items.append(call)
        status = "failed" if draft.failed else "completed"
        self._common.teller.response_done(heading, status, tuple(items), None, draft.failed)

    def _say(self, heading: Heading, made: Utterance) -> Item:
        teller, settings = self._common.teller, self._common.settings
        output = Output(heading, ItemId(self._common.names.next("item")), 0)
        if heading.modality == "text":
            return teller.written(output, made.text, None)
        teller.speech_began(output, None)
        for from_ms in range(0, made.audio_ms, settings.chunk_ms):
            teller.audio(output, made.between(from_ms, from_ms + settings.chunk_ms))
        return teller.speech_ended(output, made.text, "completed", None)

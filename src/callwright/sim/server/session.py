"""One session of the local realtime server: messages and time in, messages out. No clock, no chance, no socket.

```
connect ── session.created ── session.update ── session.updated ── audio, turns, replies ... ── closing
```

``receive`` never raises: what cannot be understood, or is not allowed, is answered by an ``error`` that names the
client's event, and changes nothing. After ``connect``, ``receive``, ``tick`` or ``disconnect`` the caller fetches
``outgoing`` and looks at ``closing``, and calls ``tick`` at ``next_deadline_ms``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from callwright.errors import RemoteProtocolError
from callwright.ids import ItemId, Ms
from callwright.sim.record import Confirmation, SpokenItem, Truncation
from callwright.sim.server.caller import CallerTurns
from callwright.sim.server.common import REAL, Common, Hearing, Samples
from callwright.sim.server.config import Config
from callwright.sim.server.history import Refusal, stamped
from callwright.sim.server.outside import Outside
from callwright.sim.server.replies import Replies
from callwright.sim.server.settings import ServerSettings, drawn
from callwright.wire.client import (
    ClientEvent,
    ConversationItemCreate,
    ConversationItemDelete,
    ConversationItemRetrieve,
    ConversationItemTruncate,
    InputAudioBufferAppend,
    InputAudioBufferClear,
    InputAudioBufferCommit,
    PolyOutputAudioDelta,
    PolyOutputAudioStarted,
    PolyOutputAudioStopped,
    ResponseCancel,
    ResponseCreate,
    SessionUpdate,
)
from callwright.wire.codec import ClientDecoder, wire_type
from callwright.wire.items import FunctionCallItem, FunctionCallOutputItem
from callwright.wire.objects import ResponseParams
from callwright.wire.profiles import Feature
from callwright.wire.server import (
    ConversationItemDeleted,
    ConversationItemRetrieved,
    ConversationItemTruncated,
    SessionCreated,
    SessionUpdated,
)

if TYPE_CHECKING:
    import random

    from callwright.sim.models import HistoryItem, Model
    from callwright.sim.server.errands import Errand, Part
    from callwright.sim.speech import Pcm, Recording

CLOSED_BY_CLIENT = (1000, "")
CLOSED_IDLE = (4408, "nothing received for too long")
CLOSED_INVALID = (1007, "an item of the conversation is invalid")
CLOSED_EXPIRED = (4410, "session_expired")


class _Named(msgspec.Struct):
    event_id: str | None = None


_event_id = msgspec.json.Decoder(_Named)


class ServerSession:
    """The server's side of one connection.

    ``speech`` holds the lines that ``model`` speaks by, and ``ear`` knows the lines that can be heard. All chance comes
    from ``rng``. ``samples`` is where another world may do without them. Without a model the session has ``errands``:
    whoever owns it brings words and replies, and ``ear`` tells kinds of sound alone.
    """

    def __init__(
        self,
        model: Model | None,
        speech: Mapping[str, Recording],
        ear: Hearing,
        rng: random.Random,
        settings: ServerSettings | None = None,
        samples: Samples = REAL,
    ) -> None:
        has_errands = model is None
        self._common = common = Common.for_session(settings or ServerSettings(), rng, samples, has_errands=has_errands)
        self._config = Config.default(common.settings)
        self._session_id = common.names.next("sess")
        self._replies = Replies(model, speech, common)
        self._outside = Outside(model, speech, common)
        self._turns = CallerTurns(ear, self._config, self._replies, common)
        self._received_ms: Ms = 0
        self._heard_ms: Ms = 0  # when the latest of the caller's audio came
        self._silence = (b"", 0)  # the last append that was digital silence, and its bytes of audio
        self.closing: tuple[int, str] | None = None
        """Close code and reason, once the session is over."""
        self._truncations: list[Truncation] = []

    # --- what is known of the session, for the call's record

    @property
    def history(self) -> tuple[HistoryItem, ...]:
        """The conversation as the model sees it."""
        return self._common.history.told

    @property
    def spoken(self) -> tuple[SpokenItem, ...]:
        """Every reply as the model made it."""
        return self._common.history.spoken

    @property
    def truncations(self) -> tuple[Truncation, ...]:
        """Every truncate that came in, and every report of a client's voice that does its job."""
        return (*self._truncations, *self._replies.written.truncations)

    @property
    def posted(self) -> frozenset[ItemId]:
        """The items that the client put into the conversation."""
        return self._common.history.posted

    @property
    def confirmations(self) -> tuple[Confirmation, ...]:
        """Each time the caller was found to speak over a reply, on the clock that the session is told."""
        origin_ms = self._heard_ms - self._turns.audio_ms
        return tuple(replace(each, onset_ms=origin_ms + each.onset_ms) for each in self._turns.confirmations)

    @property
    def first_audio(self) -> Pcm:
        """The first 15 s of the caller's audio at most, exactly as the session read it (int16, mono, 16 kHz).

        What was sent in a format that the session did not have yet is in it as it was misread.
        """
        return self._turns.first_audio

    # --- the connection

    def connect(self, now_ms: Ms) -> None:
        """A client connects."""
        self._common.agenda.run(now_ms)
        self._received_ms = now_ms
        rule = self._common.settings
        ready_ms = now_ms + drawn(rule.ready_after_ms, self._common.rng)
        self._created_ms = max(now_ms, ready_ms - rule.update_takes_ms)
        self._common.agenda.at(self._created_ms, self._tell_created)
        self._common.agenda.at(now_ms + rule.longest_session_ms, self._expire)
        self._common.agenda.at(now_ms + rule.longest_silence_ms, self._check_idle)

    def disconnect(self, now_ms: Ms) -> None:
        """The client is gone: an open reply ends with what had left."""
        self._common.agenda.run(now_ms)
        if self.closing is None:
            self._close(CLOSED_BY_CLIENT, now_ms)

    def tick(self, now_ms: Ms) -> None:
        """Do what is due."""
        if self.closing is None:
            self._common.agenda.run(now_ms)

    def next_deadline_ms(self) -> Ms | None:
        """When ``tick`` is wanted next."""
        return None if self.closing else self._common.agenda.next_ms

    def outgoing(self) -> list[bytes]:
        """The messages for the client since the last time, in order."""
        return self._common.teller.drain()

    # --- its errands

    def errands(self) -> list[Errand]:
        """What is to be found out or made since the last time, in order; always nothing for one with a model."""
        return [] if self._common.errands is None else self._common.errands.take()

    def take_words(self, item_id: ItemId, text: str, now_ms: Ms) -> None:
        """An errand is run: these are the words of a turn; empty if there were none."""
        self.tick(now_ms)
        if self.closing is None:
            self._turns.take_words(item_id, text, now_ms)
            self.tick(now_ms)

    def take_part(self, response_id: str, part: Part, now_ms: Ms) -> None:
        """Something was made of a reply, or no more will be."""
        self.tick(now_ms)
        if self.closing is None:
            if not self._outside.take(response_id, part, now_ms):
                self._replies.take(response_id, part, now_ms)
            self.tick(now_ms)

    # --- what is told by itself

    def _tell_created(self, _now_ms: Ms) -> None:
        self._common.teller.open(SessionCreated(session=self._config.told(self._session_id)))

    def _tell_updated(self, config: Config, _now_ms: Ms) -> None:
        self._common.teller.tell(SessionUpdated(session=config.told(self._session_id)))

    def _expire(self, now_ms: Ms) -> None:
        minutes = self._common.settings.longest_session_ms // 60_000
        message = f"Your session hit the maximum duration of {minutes} minutes."
        self._common.teller.refused(Refusal("session_expired", message), None)
        self._close(CLOSED_EXPIRED, now_ms)

    def _check_idle(self, now_ms: Ms) -> None:
        limit_ms = self._received_ms + self._common.settings.longest_silence_ms
        if now_ms >= limit_ms:
            self._close(CLOSED_IDLE, now_ms)
        else:
            self._common.agenda.at(limit_ms, self._check_idle)

    def _close(self, closing: tuple[int, str], now_ms: Ms) -> None:
        """End the session; nothing happens in it afterwards."""
        self._replies.cancel(now_ms, "client_cancelled")
        self._common.agenda.clear()
        self._common.teller.open()
        self.closing = closing

    # --- the client's events

    def receive(self, data: bytes, now_ms: Ms) -> None:
        """Take one message of the client."""
        self.tick(now_ms)
        if self.closing is not None:
            return
        self._received_ms = now_ms
        silence, nbytes = self._silence
        if data == silence and self._turns.skip(nbytes):
            self._heard_ms = now_ms
            return
        self._handle(data, now_ms)
        self.tick(now_ms)

    def _handle(self, data: bytes, now_ms: Ms) -> None:
        decoder = ClientDecoder()
        try:
            event = decoder.decode(data)
        except RemoteProtocolError as error:
            self._common.teller.refused(Refusal("invalid_event", str(error)), _named(data))
            return
        if isinstance(event, InputAudioBufferAppend):
            if self._turns.is_silence(event.audio):
                self._silence = (data, len(event.audio))
            self._turns.hear(event.audio, now_ms)
            self._heard_ms = now_ms
        elif isinstance(event, SessionUpdate):
            prefix = "session.update: session."
            strange = [name.removeprefix(prefix) for name in decoder.unknown_fields if name.startswith(prefix)]
            self._answer(event, self._update(event, strange, now_ms))
        else:
            self._answer(event, self._do(event, now_ms))

    def _answer(self, event: ClientEvent, refusal: Refusal | None) -> None:
        if refusal is not None:
            self._common.teller.refused(refusal, event.event_id)

    def _do(self, event: ClientEvent, now_ms: Ms) -> Refusal | None:
        dialect, kind = self._common.settings.speaks, wire_type(event)
        if kind in dialect.ignores:
            return None
        if kind not in dialect.profile.client_events:
            return Refusal("invalid_event", f"{kind} is not available over a WebSocket.")
        match event:
            case ConversationItemCreate():
                return self._create_item(event, now_ms)
            case ConversationItemRetrieve():
                return self._retrieve(event.item_id)
            case ConversationItemTruncate():
                return self._truncate(event, now_ms)
            case ConversationItemDelete():
                return self._delete(event.item_id)
            case InputAudioBufferCommit():
                return self._turns.commit(now_ms)
            case InputAudioBufferClear():
                self._turns.clear(now_ms)
            case ResponseCreate():
                return self._create_response(event, now_ms)
            case ResponseCancel():
                if self._outside.cancel(event.response_id):
                    return None
                return self._replies.cancel(now_ms, "client_cancelled", event.response_id)
            case PolyOutputAudioStarted() | PolyOutputAudioDelta() | PolyOutputAudioStopped():
                return self._replies.written.report(event, now_ms)
        return None

    def _update(self, event: SessionUpdate, strange: list[str], now_ms: Ms) -> Refusal | None:
        """Audio that comes from here on is read by the new configuration; the answer takes its time."""
        config = self._config.updated(event.session, strange)
        if isinstance(config, Refusal):
            return config
        if config.input_format != self._config.input_format:
            self._silence = (b"", 0)
        self._config = config
        self._turns.configure(config)
        if self._common.errands is not None:
            self._common.errands.session = config.session
        self._replies.output_format = config.output_format
        self._replies.written.modality = config.modality
        told_ms = max(now_ms, self._created_ms) + self._common.settings.update_takes_ms
        self._common.agenda.at(told_ms, partial(self._tell_updated, config))
        return None

    def _create_item(self, event: ConversationItemCreate, now_ms: Ms) -> Refusal | None:
        item_id = ItemId(event.item.id or self._common.names.next("item"))
        after = None if isinstance(event.previous_item_id, msgspec.UnsetType) else event.previous_item_id
        if isinstance(event.item, FunctionCallItem) and not self._common.settings.takes_calls:
            if self._common.settings.closes_on_calls:
                self._close(CLOSED_INVALID, now_ms)
            return Refusal("invalid_value", "Items of this type cannot be created here.", "item.type")
        takes_knowledge = self._common.settings.speaks.profile.takes_knowledge
        if isinstance(event.item, FunctionCallOutputItem) and event.item.poly_knowledge and not takes_knowledge:
            field = "item.poly_knowledge"
            return Refusal("unsupported_parameter", f"Unsupported parameter: '{field}'.", field)
        previous = self._common.history.post(item_id, event.item, after)
        if isinstance(previous, Refusal):
            return previous
        self._common.teller.posted(stamped(event.item, item_id), previous)
        return None

    def _retrieve(self, item_id: str) -> Refusal | None:
        item = self._common.history.retrieve(item_id)
        if isinstance(item, Refusal):
            return item
        self._common.teller.tell(ConversationItemRetrieved(item=item))
        return None

    def _truncate(self, event: ConversationItemTruncate, now_ms: Ms) -> Refusal | None:
        refusal = self._common.history.truncate(event.item_id, event.content_index, event.audio_end_ms)
        item_id = ItemId(event.item_id)
        self._truncations.append(Truncation(item_id, event.audio_end_ms, now_ms, refusal is not None))
        if refusal is None:
            self._common.teller.tell(
                ConversationItemTruncated(
                    item_id=item_id, content_index=event.content_index, audio_end_ms=event.audio_end_ms
                )
            )
        return refusal

    def _delete(self, item_id: str) -> Refusal | None:
        left_ms = self._common.history.left_of(item_id)
        if left_ms is not None:
            self._truncations.append(Truncation(ItemId(item_id), left_ms, self._common.agenda.now_ms, is_refused=False))
        refusal = self._common.history.remove(item_id)
        if refusal is None:
            self._common.teller.tell(ConversationItemDeleted(item_id=item_id))
        return refusal

    def _create_response(self, event: ResponseCreate, now_ms: Ms) -> Refusal | None:
        asked = event.response or ResponseParams()
        is_outside = asked.conversation == "none"
        has_outside = Feature.OUT_OF_BAND in self._common.settings.speaks.profile.features
        if not has_outside and (is_outside or asked.input is not None):
            field = "response.conversation" if is_outside else "response.input"
            return Refusal("unsupported_parameter", f"Unsupported parameter: '{field}'.", field)
        if is_outside:
            return self._outside.create(asked, now_ms, self._config.output_format)
        return self._replies.create(asked, now_ms, caller_speaks=self._turns.caller_speaks)


def _named(data: bytes) -> str | None:
    """The id of a client's event that could not be read otherwise."""
    try:
        return _event_id.decode(data).event_id
    except (msgspec.MsgspecError, RecursionError):
        return None

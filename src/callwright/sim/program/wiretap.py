"""What goes over the wire between a client and one session of the local server, as far as a call's record has it.

The rows are those of a baseline's trace: ``got`` and ``sent`` with the type of each message, ``got audio`` with its
samples; the caller's audio is left out. Nothing of what was said is in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from callwright.audio.encodings import DECODE
from callwright.audio.formats import AudioFormat, parse_format
from callwright.audio.resample import Resampler
from callwright.errors import RemoteProtocolError
from callwright.ids import ItemId, Ms
from callwright.sim.program.audio_socket import FORMAT
from callwright.wire import server
from callwright.wire.client import InputAudioBufferAppend
from callwright.wire.codec import ServerDecoder, decode_client, wire_type
from callwright.wire.objects import Audio, AudioOutput, Session, WireFormat

if TYPE_CHECKING:
    from callwright.audio.formats import PCM
    from callwright.sim.program.streamed import StreamedReplies
    from callwright.sim.server import ServerSession


class WireTap:
    """A session of the local server, listened to; implements `callwright.sim.server.memory.Peer`.

    All instants are on the clock that it is told.
    """

    def __init__(self, session: ServerSession, replies: StreamedReplies, output_format: AudioFormat) -> None:
        self._session = session
        self._replies = replies
        self._format = output_format
        self._decoder = ServerDecoder()
        self._resamplers: dict[str, Resampler] = {}
        self._now_ms: Ms = 0
        self.rows: list[tuple[Ms, str, object]] = []
        self.refused: list[str] = []
        """What the server answered with an error."""
        self.connected_ms: Ms = 0
        """When the client connected."""
        self.gone_ms: Ms | None = None
        """When it was gone; None while it is there."""
        self.ready_ms: Ms | None = None
        """When the server told that the session is configured; None if it never did."""

    @property
    def closing(self) -> tuple[int, str] | None:
        """Close code and reason, once the session is over."""
        return self._session.closing

    def connect(self, now_ms: Ms) -> None:
        """The connection stands."""
        self.connected_ms = self._now_ms = now_ms
        self._session.connect(now_ms)

    def receive(self, data: bytes, now_ms: Ms) -> None:
        """A message of the client."""
        self._now_ms = now_ms
        self._note_sent(data)
        self._session.receive(data, now_ms)

    def disconnect(self, now_ms: Ms) -> None:
        """The client closed the connection."""
        self.gone_ms = self._now_ms = now_ms
        self._session.disconnect(now_ms)

    def tick(self, now_ms: Ms) -> None:
        """Do what is due."""
        self._now_ms = now_ms
        self._session.tick(now_ms)

    def next_deadline_ms(self) -> Ms | None:
        """When ``tick`` is wanted next."""
        return self._session.next_deadline_ms()

    def outgoing(self) -> list[bytes]:
        """Messages for the client since the last time."""
        messages = self._session.outgoing()
        for message in messages:
            self._note_got(message)
        return messages

    def connected_between(self, from_ms: Ms, to_ms: Ms) -> Ms:
        """For how long of this time the client was connected."""
        gone_ms = to_ms if self.gone_ms is None else min(self.gone_ms, to_ms)
        return max(0, gone_ms - max(self.connected_ms, from_ms))

    def _note_sent(self, data: bytes) -> None:
        try:
            event = decode_client(data)
        except RemoteProtocolError:
            return  # the server answers it with an error
        if not isinstance(event, InputAudioBufferAppend):
            self.rows.append((self._now_ms, "sent", wire_type(event)))

    def _note_got(self, message: bytes) -> None:
        event = self._decoder.decode(message)
        match event:
            case server.ResponseOutputAudioDelta():
                samples = self._samples(event)
                self._replies.streamed(ItemId(event.item_id), samples)
                self.rows.append((self._now_ms, "got audio", len(samples)))
                return
            case server.SessionUpdated(session=Session(audio=Audio(output=AudioOutput(format=WireFormat() as form)))):
                self._format = parse_format(msgspec.to_builtins(form))
            case server.ErrorEvent():
                self.refused.append(event.error.message)
            case server.Unknown():
                return
            case _:
                pass
        if isinstance(event, server.SessionUpdated) and self.ready_ms is None:
            self.ready_ms = self._now_ms
        self.rows.append((self._now_ms, "got", wire_type(event)))

    def _samples(self, event: server.ResponseOutputAudioDelta) -> PCM:
        """A piece of a reply, as the audio socket has it."""
        samples = DECODE[self._format.encoding](event.delta)
        if self._format.rate_hz == FORMAT.rate_hz:
            return samples
        if event.item_id not in self._resamplers:
            self._resamplers[event.item_id] = Resampler(self._format.rate_hz, FORMAT.rate_hz)
        return self._resamplers[event.item_id].process(samples)

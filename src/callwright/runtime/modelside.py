"""The model's end of a call: its server's messages become events of the core, what the core asks becomes messages.

One ``ModelSide`` lives as long as its call. Nothing in this file decides anything about the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from callwright.audio.formats import AudioFormat
from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.plan import Can
from callwright.core.ports import Connector, ModelConnection
from callwright.declare.agent import Agent
from callwright.errors import CallwrightError, RemoteProtocolError, UsageError
from callwright.ids import ItemId, Ms, ResponseId
from callwright.runtime.clock import Clock
from callwright.wire.client import SessionUpdate
from callwright.wire.codec import ServerDecoder, encode
from callwright.wire.objects import WireFormat
from callwright.wire.profiles import Feature, Profile, check, session_update
from callwright.wire.server import ResponseOutputAudioDelta
from callwright.wire.translate import Translator, said_to

_VERBS: Final[Mapping[Can, str]] = {
    Can.TRUNCATE: "conversation.item.truncate",
    Can.RETRIEVE: "conversation.item.retrieve",
    Can.CANCEL: "response.cancel",
}


class Pump(Protocol):
    """The call that takes what its model's end has to tell. All of it returns at once."""

    clock: Clock

    def handle(self, event: on.Event) -> None:
        """Something happened."""

    def audio(self, response_id: ResponseId, item_id: ItemId, audio: bytes) -> None:
        """A piece of reply audio came."""

    def note(self, what: str, quoted: str = "") -> None:
        """Something is out of order; ``quoted`` is what the server said of it."""


class ModelSide:
    """The model's end of a call: what it says to the core, what the core says to it."""

    def __init__(self, call: Pump, profile: Profile, configuration: SessionUpdate, input_format: AudioFormat) -> None:
        self._call = call
        self._profile = profile
        self._configuration = configuration
        self._translator = Translator(profile, input_format)
        self._decoder = ServerDecoder()
        self._connection: ModelConnection | None = None
        self._unsent: list[bytes] = []
        """Answers to a server that spoke before the connection was in our hands."""
        self._connected_at_ms: Ms | None = None
        self._closed_at_ms: Ms | None = None

    async def connect(self, connector: Connector) -> None:
        """Open the connection. Raises ConnectionFailed."""
        self._connection = await connector.connect(self)
        self._connected_at_ms = self._call.clock.now_ms()
        for message in self._unsent:
            self._connection.send(message)
        self._unsent.clear()

    def on_message(self, message: bytes | str) -> None:
        """Take one message of the server."""
        try:
            event = self._decoder.decode(message)
        except RemoteProtocolError as problem:
            self._call.note("unreadable message", str(problem))
            return
        if isinstance(event, ResponseOutputAudioDelta):
            self._call.audio(ResponseId(event.response_id), ItemId(event.item_id), event.delta)
            return
        for heard in self._translator.heard_from(event):
            self._call.handle(heard)

    def on_closed(self, code: int, reason: str) -> None:
        """Take note that the connection ended."""
        self._closed_at_ms = self._call.clock.now_ms()
        self._call.handle(on.ModelClosed(code, reason))

    def send(self, message: bytes) -> None:
        """Send one encoded message."""
        if self._connection:
            self._connection.send(message)
        else:
            self._unsent.append(message)

    def request(self, command: do.Request) -> None:
        """Send what the core asks of the model. Raises LocalProtocolError for what this provider lacks."""
        if isinstance(command, do.ConfigureSession):
            self.send(encode(msgspec.structs.replace(self._configuration, event_id=command.event_id)))
            return
        event = said_to(command)
        check(self._profile, event)
        self.send(encode(event))

    async def close(self) -> None:
        """End the connection; idempotent."""
        if self._connection:
            await self._connection.close()
        if self._closed_at_ms is None:
            self._closed_at_ms = self._call.clock.now_ms()

    def unknown(self) -> dict[str, int]:
        """What of the server's messages was passed over, and how often."""
        return {**self._decoder.unknown_types, **self._decoder.unknown_fields}

    def connected_ms(self) -> Ms:
        """How long the connection stood."""
        if self._connected_at_ms is None or self._closed_at_ms is None:
            return 0
        return self._closed_at_ms - self._connected_at_ms

    def micro_usd(self) -> int | None:
        """What that costs, in millionths of a US dollar."""
        return self._profile.micro_usd(self.connected_ms())


def verbs(profile: Profile) -> Can:
    """What this provider can be asked; not what it holds of a cut item, where that is never a text."""
    can = Can.MERGE if Feature.MERGED_REQUESTS in profile.features else Can(0)
    for verb, wire_type in _VERBS.items():
        if wire_type in profile.client_events:
            can |= verb
    return can if profile.tells_cuts else can & ~Can.RETRIEVE


def configuration(agent: Agent, input_format: AudioFormat) -> SessionUpdate:
    """The declaration of an agent as its model is told it. Raises UsageError if the model lacks the caller's format."""
    profile = agent.model.profile
    spoken = Feature.SPOKEN_ARGUMENTS in profile.features
    try:
        return session_update(
            profile,
            instructions=agent.briefing,
            tools=[tool.schema(spoken=spoken) for tool in agent.tools.values()],
            input_format=msgspec.convert(input_format.to_wire(), WireFormat),
        )
    except CallwrightError as problem:
        raise UsageError(f"agent {agent.name} cannot take this line: {problem}") from problem

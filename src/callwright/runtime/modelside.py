"""The model's end of a call: its server's messages become events of the core, what the core asks becomes messages.

One ``ModelSide`` lives as long as its call, and has one connection after the other. Nothing in this file decides
anything about the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final, Protocol

import msgspec

from callwright.audio.formats import AudioFormat
from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.plan import Can
from callwright.core.ports import Connector, ModelConnection
from callwright.declare.agent import Agent
from callwright.errors import CallwrightError, ConnectionFailed, RemoteProtocolError, UsageError
from callwright.ids import ItemId, Ms, ResponseId
from callwright.runtime.clock import Clock
from callwright.wire.client import SessionUpdate
from callwright.wire.codec import ServerDecoder, encode
from callwright.wire.objects import Session, WireFormat
from callwright.wire.profiles import Feature, Profile, check, session_update
from callwright.wire.server import ResponseOutputAudioDelta, ResponseOutputTextDelta
from callwright.wire.translate import Translator, said_to

_VERBS: Final[Mapping[Can, str]] = {
    Can.TRUNCATE: "conversation.item.truncate",
    Can.RETRIEVE: "conversation.item.retrieve",
    Can.CANCEL: "response.cancel",
}
_REPORT: Final = "poly.output_audio.stopped"
_DROP: Final = "conversation.item.delete"


class Pump(Protocol):
    """The call that takes what its model's end has to tell. All of it returns at once."""

    clock: Clock

    def handle(self, event: on.Event) -> None:
        """Something happened."""

    def audio(self, response_id: ResponseId, item_id: ItemId, audio: bytes) -> None:
        """A piece of reply audio came."""

    def text(self, response_id: ResponseId, item_id: ItemId, piece: str) -> None:
        """A piece of a reply that is written, not spoken, came."""

    def note(self, what: str, quoted: str = "") -> None:
        """Something is out of order; ``quoted`` is what the server said of it."""

    def fail(self, problem: BaseException) -> None:
        """A mistake: the call ends by it."""


class _Reader:
    """What listens to one connection; once it is deaf, whatever that connection still says is for nobody."""

    def __init__(self, side: ModelSide) -> None:
        self._side: ModelSide | None = side

    def on_message(self, message: bytes | str) -> None:
        if self._side:
            self._side.take(message)

    def on_closed(self, code: int, reason: str) -> None:
        side, self._side = self._side, None
        if side:
            side.closed(code, reason)

    def deafen(self) -> None:
        self._side = None


class ModelSide:
    """The model's end of a call: what it says to the core, what the core says to it, over one connection at a time."""

    def __init__(
        self,
        call: Pump,
        connector: Connector,
        profile: Profile,
        configuration: SessionUpdate,
        input_format: AudioFormat,
    ) -> None:
        self._call = call
        self._connector = connector
        self._profile = profile
        self._configuration = configuration
        modality = (getattr(configuration.session, "output_modalities", None) or ("audio",))[0]
        self._new_translator = partial(Translator, profile, input_format, _tool_names(configuration), modality)
        self._translator = self._new_translator()
        self._decoder = ServerDecoder()
        self._connecting: asyncio.Task[None] | None = None
        self._reader: _Reader | None = None
        self._connection: ModelConnection | None = None
        self._unsent: list[bytes] = []
        """Answers to a server that spoke before the connection was in our hands."""
        self._connected_at_ms: Ms | None = None
        """None while no connection stands."""
        self._connected_ms: Ms = 0
        self.failure: ConnectionFailed | None = None
        """Why no connection came about, while none has."""

    def connect(self, command: do.Connect) -> None:
        """Let go of the present connection, from which nothing more is heard, and begin to open another one."""
        before, self._connection = self._connection, None
        if self._reader:
            self._reader.deafen()
        self._ended()
        self._unsent.clear()
        self._connecting = asyncio.get_running_loop().create_task(self._open(before, command.after_ms))
        self._connecting.add_done_callback(self._opened)

    async def _open(self, before: ModelConnection | None, after_ms: Ms) -> None:
        if before:
            await before.close()
        if after_ms:
            await asyncio.sleep(after_ms / 1000)
        self._translator = self._new_translator()
        self._reader = _Reader(self)
        try:
            self._connection = await self._connector.connect(self._reader)
        except ConnectionFailed as problem:
            self.failure = problem
            self._call.handle(on.ConnectFailed(str(problem), problem.is_final))
            return
        self.failure = None
        self._connected_at_ms = self._call.clock.now_ms()
        for message in self._unsent:
            self._connection.send(message)
        self._unsent.clear()

    def _opened(self, connecting: asyncio.Task[None]) -> None:
        if not connecting.cancelled() and (problem := connecting.exception()):
            self._call.fail(problem)

    def take(self, message: bytes | str) -> None:
        """Take one message of the server."""
        try:
            event = self._decoder.decode(message)
        except RemoteProtocolError as problem:
            self._call.note("unreadable message", str(problem))
            return
        if isinstance(event, ResponseOutputAudioDelta):
            self._call.audio(ResponseId(event.response_id), ItemId(event.item_id), event.delta)
            return
        if isinstance(event, ResponseOutputTextDelta):
            self._call.text(ResponseId(event.response_id), ItemId(event.item_id), event.delta)
        for heard in self._translator.heard_from(event):
            self._call.handle(heard)

    def closed(self, code: int, reason: str) -> None:
        """Take note that the connection ended."""
        self._ended()
        for heard in self._translator.unfinished():
            self._call.handle(heard)
        self._call.handle(on.ModelClosed(code, reason))

    def send(self, message: bytes) -> None:
        """Send one encoded message."""
        if self._connection:
            self._connection.send(message)
        else:
            self._unsent.append(message)

    def request(self, command: do.Request, words: str = "") -> None:
        """Send what the core asks of the model, with the ``words`` that it counts.

        Raises LocalProtocolError for what this provider lacks.
        """
        if isinstance(command, do.ConfigureSession):
            self.send(encode(self._configured(command)))
            return
        event = said_to(command, words)
        check(self._profile, event)
        self.send(encode(event))

    def _configured(self, command: do.ConfigureSession) -> SessionUpdate:
        update = msgspec.structs.replace(self._configuration, event_id=command.event_id)
        session = update.session
        if not command.more or not isinstance(session, Session):
            return update
        instructions = f"{session.instructions}\n\n{command.more}"
        return msgspec.structs.replace(
            update, session=msgspec.structs.replace(update.session, instructions=instructions)
        )

    async def close(self) -> None:
        """End the connection, and the opening of one; idempotent."""
        try:
            if self._connecting and not self._connecting.done():
                self._connecting.cancel()
                await asyncio.gather(self._connecting, return_exceptions=True)
        finally:
            if self._connection:
                await self._connection.close()
            self._ended()

    def unknown(self) -> dict[str, int]:
        """What of the server's messages was passed over, and how often."""
        return {**self._decoder.unknown_types, **self._decoder.unknown_fields}

    def connected_ms(self) -> Ms:
        """How long connections stood, all together."""
        return self._connected_ms

    def _ended(self) -> None:
        if self._connected_at_ms is not None:
            self._connected_ms += self._call.clock.now_ms() - self._connected_at_ms
            self._connected_at_ms = None

    def micro_usd(self) -> int | None:
        """What that costs, in millionths of a US dollar."""
        return self._profile.micro_usd(self.connected_ms())


def _tool_names(configuration: SessionUpdate) -> list[str]:
    return [str(tool["name"]) for tool in getattr(configuration.session, "tools", None) or ()]


def verbs(profile: Profile, *, own_voice: bool = False) -> Can:
    """What this provider can be asked; not what it holds of a cut item, where that is never a text.

    Replies that a voice of our own says have no audio that could be truncated: it is reported, or they are replaced.
    """
    can = Can.MERGE if Feature.MERGED_REQUESTS in profile.features else Can(0)
    for verb, wire_type in _VERBS.items():
        if wire_type in profile.client_events:
            can |= verb
    if own_voice:
        can &= ~(Can.TRUNCATE | Can.RETRIEVE)
        if _REPORT in profile.client_events:
            return can | Can.REPORT
        return can | Can.RESTATE if _DROP in profile.client_events else can
    return can if profile.tells_cuts else can & ~Can.RETRIEVE


def configuration(agent: Agent, input_format: AudioFormat) -> SessionUpdate:
    """The declaration of an agent as its model is told it.

    Raises UsageError if the model lacks the caller's format, or takes no knowledge and a tool returns some.
    """
    profile = agent.model.profile
    spoken = Feature.SPOKEN_ARGUMENTS in profile.features
    grounded = [tool.name for tool in agent.tools.values() if tool.is_grounded]
    if grounded and not profile.takes_knowledge:
        raise UsageError(f"agent {agent.name}: {profile.name} takes no knowledge, which tool {grounded[0]} returns")
    try:
        return session_update(
            profile,
            instructions=agent.briefing,
            tools=[tool.schema(spoken=spoken, own_voice=agent.voice is not None) for tool in agent.tools.values()],
            output_modalities=("audio",) if agent.voice is None else ("text",),
            input_format=msgspec.convert(input_format.to_wire(), WireFormat),
            knowledge=agent.model.knowledge,
        )
    except CallwrightError as problem:
        raise UsageError(f"agent {agent.name} cannot take this line: {problem}") from problem

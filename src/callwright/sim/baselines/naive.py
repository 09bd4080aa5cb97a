"""The naive client: the shortest program that holds a conversation, as tutorials show it.

It sends the caller's frames once the session stands, plays every delta as it comes, logs every reply as it was
written, runs a tool and asks for a reply. It never clears the line, never truncates, and asks for nothing back: when
the caller talks over it, it goes on until the server stops sending and the line has played what it was handed.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from callwright.audio.formats import parse_format
from callwright.core.heard import Source, Speaker, Turn
from callwright.core.ports import Connector, Line, ModelConnection
from callwright.core.session import Ending
from callwright.declare.agent import Agent
from callwright.declare.tools import Context
from callwright.ids import ItemId, MarkId, Ms, ToolCallId
from callwright.runtime.call import CallResult, Clock, configuration
from callwright.runtime.downlink import Downlink
from callwright.runtime.trace import Trace
from callwright.wire import client, items, server
from callwright.wire.codec import ServerDecoder, encode, encode_append, wire_type


class NaiveClient:
    """One call of the naive client."""

    def __init__(self, agent: Agent, line: Line, *, deps: Any, party: str | None) -> None:
        self._agent = agent
        self._line = line
        self._context = (deps, party)
        self._clock = Clock()
        self._trace = Trace({"agent": agent.name, "client": "naive", "model": agent.model.profile.name})
        self._down = Downlink(line, parse_format(msgspec.to_builtins(agent.model.profile.output_format)))
        self._decoder = ServerDecoder()
        self._turns: dict[ItemId, Turn] = {}
        self._ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._connection: ModelConnection | None = None
        self._ready_ms: Ms | None = None
        self._jobs: list[asyncio.Task[None]] = []

    async def run(self, connector: Connector) -> CallResult:
        """Take the call. Raises ConnectionFailed and LineFailed."""
        await self._line.open(_Ears(self))
        connection = self._connection = await connector.connect(_Mouth(self))
        connected_at_ms = self._clock.now_ms()
        ending = await self._ending
        for job in self._jobs:
            job.cancel()
        await self._line.hang_up()
        await connection.close()
        return CallResult(
            turns=tuple(self._turns.values()),
            ending=ending,
            trace=self._trace.lines(),
            session_ready_ms=self._ready_ms,
            held_sent_ms=0,
            lost_ms=0,
            connected_ms=self._clock.now_ms() - connected_at_ms,
            anomalies=(),
            unknown={},
        )

    def end(self, by: str, reason: str) -> None:
        """Take note of the end of the line or the connection."""
        if not self._ending.done():
            self._ending.set_result(Ending(by, reason))

    def frame(self, frame: bytes) -> None:
        """Send the caller's 20 ms, if the session stands."""
        if self._ready_ms is not None and self._connection:
            self._connection.send(encode_append(frame))

    def message(self, message: bytes | str) -> None:
        """Take one message of the server."""
        event = self._decoder.decode(message)
        now_ms = self._clock.now_ms()
        match event:
            case server.ResponseOutputAudioDelta():
                self._play(event, now_ms)
                return
            case server.SessionCreated():
                self._send(configuration(self._agent, self._line.input_format))
            case server.SessionUpdated():
                self._ready_ms = now_ms
            case server.ResponseOutputAudioTranscriptDone():
                self._log(Speaker.AGENT, event.item_id, event.transcript, Source.WHOLE)
            case server.ConversationItemInputAudioTranscriptionCompleted():
                self._log(Speaker.CALLER, event.item_id, event.transcript, Source.TRANSCRIBED)
            case server.ResponseFunctionCallArgumentsDone():
                self._jobs.append(asyncio.get_running_loop().create_task(self._use_tool(event)))
            case _:
                pass
        self._trace.note(now_ms, "got", wire_type(event) if not isinstance(event, server.Unknown) else event.type)

    def _play(self, event: server.ResponseOutputAudioDelta, now_ms: Ms) -> None:
        item_id = ItemId(event.item_id)
        samples = self._down.take(item_id, event.delta)
        self._down.play(item_id, 0, samples)
        self._trace.note(now_ms, "got audio", samples)

    def _log(self, speaker: Speaker, item_id: str, text: str, source: Source) -> None:
        self._turns[ItemId(item_id)] = Turn(speaker, ItemId(item_id), text, text, source)

    async def _use_tool(self, call: server.ResponseFunctionCallArgumentsDone) -> None:
        tool = self._agent.tools[call.name or ""]
        arguments = msgspec.json.decode(call.arguments, type=tool.arguments)
        context: Context[Any] = Context(*self._context, tool_call_id=ToolCallId(call.call_id))
        result = await tool.function(context, **msgspec.structs.asdict(arguments))
        output = items.FunctionCallOutputItem(call_id=call.call_id, output=msgspec.json.encode(result).decode())
        self._send(client.ConversationItemCreate(item=output))
        self._send(client.ResponseCreate())

    def _send(self, event: client.ClientEvent) -> None:
        self._trace.note(self._clock.now_ms(), "sent", wire_type(event))
        if self._connection:
            self._connection.send(encode(event))


class _Ears:
    """What the line calls; the naive client has no use for what was played."""

    def __init__(self, naive: NaiveClient) -> None:
        self.on_frame = naive.frame
        self.on_closed = naive.end

    def on_played(self, item_id: ItemId, generation: int, played_ms: Ms) -> None:
        pass

    def on_mark(self, mark_id: MarkId) -> None:
        pass


class _Mouth:
    """What the model's connection calls."""

    def __init__(self, naive: NaiveClient) -> None:
        self.on_message = naive.message
        self._naive = naive

    def on_closed(self, code: int, reason: str) -> None:
        self._naive.end("model", f"connection closed: {code} {reason}".rstrip())

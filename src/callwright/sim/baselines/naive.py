"""The naive client: the shortest program that holds a conversation, as tutorials show it.

It sends the caller's frames, plays every delta as it comes, logs every reply as it was written, runs a tool and asks
for a reply. It never clears the line and never truncates: when the caller talks over it, it goes on until the server
stops sending and the line has played what it was handed. What it does at the edges of the call is up to its habits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from callwright.audio.formats import parse_format
from callwright.core.ports import Connector, Line
from callwright.core.session import Ending
from callwright.core.toolcalls import AfterOutput
from callwright.core.transcript import Source, Speaker, Turn
from callwright.declare.agent import Agent
from callwright.declare.tools import Context, Facts, Tool
from callwright.errors import ConnectionFailed, RemoteProtocolError
from callwright.ids import ItemId, MarkId, Ms, ToolCallId
from callwright.ledger.provider import Provider
from callwright.runtime.call import CallResult
from callwright.runtime.clock import Clock
from callwright.runtime.downlink import Downlink
from callwright.runtime.modelside import configuration
from callwright.runtime.trace import Trace
from callwright.sim.baselines.acting import Acting, Floor
from callwright.sim.baselines.early import Uplink
from callwright.sim.baselines.goodbye import Goodbye, Queue
from callwright.sim.baselines.habits import Habits, Tells
from callwright.sim.baselines.hold import Keypad
from callwright.wire import client, items, server
from callwright.wire.codec import ServerDecoder, encode, wire_type

STILL_OPEN = (
    "The caller spoke into the goodbye, so the call is still open: answer him, and end the call when he is done."
)
"""What the model is told of a goodbye that was cut, by a client that looks."""


UNDER_WAY = '{"asked": "under way"}'
"""The output of an action whose result is posted as a note."""


NO_SUCH_CALL = "There is no such tool, or it takes other arguments."
"""The output of a call that cannot be made."""


class NaiveClient:
    """One call of the naive client, under the name of its habits."""

    def __init__(
        self,
        name: str,
        habits: Habits,
        agent: Agent,
        line: Line,
        *,
        deps: Any,
        party: str | None,
        provider: Provider | None = None,
    ) -> None:
        output_format = parse_format(msgspec.to_builtins(agent.model.profile.output_format))
        self._agent = agent
        self._line = line
        self._context: Context[Any] = Context(deps, party, ToolCallId(""), keypad=Keypad(line))
        self._clock = Clock()
        self._trace = Trace({"agent": agent.name, "client": name, "model": agent.model.profile.name})
        self._up = Uplink(habits, line.input_format.encoding)
        self._down = Downlink(line, output_format)
        self._queue = Queue(line, output_format)
        self._goodbye = Goodbye(habits.hang_up, self._queue)
        self._acting = Acting(habits.acts, provider, Floor(habits.on_hold, lambda: self._send(client.ResponseCreate())))
        self._reading = _Reading()
        self._turns: dict[ItemId, Turn] = {}
        self._ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._ready_ms: Ms | None = None
        self._jobs: list[asyncio.Task[None]] = []

    async def run(self, connector: Connector) -> CallResult:
        """Take the call. Raises ConnectionFailed, with the line ended, and LineFailed."""
        await self._line.open(_Ears(self))
        try:
            connection = await connector.connect(_Mouth(self))
        except ConnectionFailed:
            await self._line.hang_up()
            raise
        connected_at_ms = self._clock.now_ms()
        self._up.connected(connection)
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
            held_sent_ms=self._up.held_sent_ms,
            lost_ms=self._up.lost_ms,
            connected_ms=self._clock.now_ms() - connected_at_ms,
            anomalies=(),
            unknown={},
        )

    def end(self, by: str, reason: str) -> None:
        """Take note of the end of the line or the connection."""
        if not self._ending.done():
            self._ending.set_result(Ending(by, reason))

    def frame(self, frame: bytes) -> None:
        """Take the caller's 20 ms."""
        self._up.frame(frame)

    def played(self, item_id: ItemId, _generation: int, played_ms: Ms) -> None:
        """Take a report of a pulled line."""
        self._queue.played(item_id, played_ms)
        self._goodbye.look()

    def mark(self, mark_id: MarkId) -> None:
        """Take a mark that came back."""
        self._queue.returned(mark_id)
        self._goodbye.look()

    def message(self, message: bytes | str) -> None:
        """Take one message of the server."""
        now_ms = self._clock.now_ms()
        try:
            event = self._reading.read(message)
        except RemoteProtocolError:
            self._trace.note(now_ms, "got", "what cannot be read")
            return
        match event:
            case server.ResponseOutputAudioDelta():
                self._play(event, now_ms)
                return
            case server.SessionCreated():
                self._send(configuration(self._agent, self._line.input_format))
            case server.SessionUpdated():
                self._ready_ms = now_ms
                self._up.ready()
            case server.ResponseOutputAudioTranscriptDone():
                self._log(Speaker.AGENT, event.item_id, event.transcript, Source.WHOLE)
                self._acting.agent_said(event.transcript)
            case server.ConversationItemInputAudioTranscriptionCompleted():
                self._log(Speaker.CALLER, event.item_id, event.transcript, Source.TRANSCRIBED)
            case server.ResponseFunctionCallArgumentsDone():
                self._called(event)
            case server.InputAudioBufferSpeechStarted():
                self._acting.caller_spoke()
            case _:
                pass
        self._trace.note(now_ms, "got", wire_type(event) if not isinstance(event, server.Unknown) else event.type)
        self._goodbye.message(event)
        self._acting.floor.message(event)

    def _play(self, event: server.ResponseOutputAudioDelta, now_ms: Ms) -> None:
        item_id = ItemId(event.item_id)
        samples = self._down.take(item_id, event.delta)
        self._down.play(item_id, 0, samples)
        self._queue.handed(item_id, samples)
        self._goodbye.message(event)
        self._trace.note(now_ms, "got audio", samples)

    def _log(self, speaker: Speaker, item_id: str, text: str, source: Source) -> None:
        self._turns[ItemId(item_id)] = Turn(speaker, ItemId(item_id), text, text, source)

    def _called(self, call: server.ResponseFunctionCallArgumentsDone) -> None:
        tool = self._agent.tools.get(call.name or "")
        if tool is None or not _takes(tool, call):
            self._post(call, NO_SUCH_CALL)
            self._acting.floor.ask()
            return
        if tool.after is AfterOutput.HANG_UP:
            job = self._hang_up(tool, call, self._goodbye.begin(call.response_id))
        else:
            job = self._act(tool, call) if tool.action else self._use(tool, call)
        self._jobs.append(asyncio.get_running_loop().create_task(job))

    async def _use(self, tool: Tool, call: server.ResponseFunctionCallArgumentsDone) -> None:
        self._post(call, msgspec.json.encode(await self._run(tool, call)).decode())
        self._acting.floor.posted(tool.after)

    async def _act(self, tool: Tool, call: server.ResponseFunctionCallArgumentsDone) -> None:
        output, tells = await self._acting.act(tool, self._context_of(call), _arguments(tool, call))
        if tells is Tells.NOTE:
            self._post(call, UNDER_WAY)
            self._send(client.ConversationItemCreate(item=_note(output)))
            return
        self._post(call, output)
        if tells is Tells.RESULT:
            self._acting.floor.ask()

    async def _hang_up(
        self, tool: Tool, call: server.ResponseFunctionCallArgumentsDone, over: asyncio.Future[bool]
    ) -> None:
        reason = await self._run(tool, call)
        if await over:
            self._trace.note(self._clock.now_ms(), "hung up", reason)
            self.end("agent", str(reason))
        else:
            self._post(call, STILL_OPEN)

    async def _run(self, tool: Tool, call: server.ResponseFunctionCallArgumentsDone) -> Facts | str:
        done = await tool.function(self._context_of(call), **_arguments(tool, call))
        assert isinstance(done, (Mapping, str)), "a tool that only reads tells something"
        return done

    def _context_of(self, call: server.ResponseFunctionCallArgumentsDone) -> Context[Any]:
        return replace(self._context, tool_call_id=ToolCallId(call.call_id))

    def _post(self, call: server.ResponseFunctionCallArgumentsDone, output: str) -> None:
        item = items.FunctionCallOutputItem(call_id=call.call_id, output=output)
        self._send(client.ConversationItemCreate(item=item))

    def _send(self, event: client.ClientEvent) -> None:
        self._trace.note(self._clock.now_ms(), "sent", wire_type(event))
        self._up.send(encode(event))


def _arguments(tool: Tool, call: server.ResponseFunctionCallArgumentsDone) -> dict[str, Any]:
    return msgspec.structs.asdict(msgspec.json.decode(call.arguments, type=tool.arguments))


def _takes(tool: Tool, call: server.ResponseFunctionCallArgumentsDone) -> bool:
    """Whether the arguments are the tool's."""
    try:
        _arguments(tool, call)
    except msgspec.MsgspecError:
        return False
    return True


def _note(text: str) -> items.MessageItem:
    return items.MessageItem(role="system", content=(items.ContentPart(type="input_text", text=text),))


class _Reading:
    """What the server says, event by event; a call that does not name its tool has the name that its item had."""

    def __init__(self) -> None:
        self._decoder = ServerDecoder()
        self._names: dict[str, str] = {}

    def read(self, message: bytes | str) -> server.ServerEvent | server.Unknown:
        """The event in a message. Raises RemoteProtocolError."""
        event = self._decoder.decode(message)
        match event:
            case server.ResponseOutputItemAdded(item=items.FunctionCallItem(id=str(item_id), name=name)):
                self._names[item_id] = name
            case server.ResponseFunctionCallArgumentsDone(name=None):
                return msgspec.structs.replace(event, name=self._names.get(event.item_id))
        return event


class _Ears:
    """What the line calls."""

    def __init__(self, naive: NaiveClient) -> None:
        self.on_frame = naive.frame
        self.on_played = naive.played
        self.on_mark = naive.mark
        self.on_closed = naive.end


class _Mouth:
    """What the model's connection calls."""

    def __init__(self, naive: NaiveClient) -> None:
        self.on_message = naive.message
        self._naive = naive

    def on_closed(self, code: int, reason: str) -> None:
        """Take note that the connection ended."""
        self._naive.end("model", f"connection closed: {code} {reason}".rstrip())

"""A call of our client with a scripted model: everything that the client sends is checked, kept and timed."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.wire.official import assert_official_client

import callwright as cw
from callwright.audio.formats import PCM
from callwright.core.ports import Connector, Line
from callwright.ids import ItemId, Ms
from callwright.sim.caller import Anchor, ScriptedCaller, Step, Trigger
from callwright.sim.line import LineKind, LineSettings, SimulatedLine
from callwright.sim.server import MemoryConnector
from callwright.sim.vloop import run_virtual
from callwright.testing.scripted import APPEND, Emit, ScriptedModel, after, emit, expect
from callwright.testing.scripted import Step as ModelStep
from callwright.wire import items, objects, server
from callwright.wire.codec import CLIENT_EVENTS

PHONE = LineSettings(LineKind.PHONE)
SPEAKER = LineSettings(LineKind.SPEAKER)
ANYTHING = tuple(CLIENT_EVENTS)

desk = cw.Agent("desk", model=cw.polyai(), instructions="Be brief.")


@desk.tool
async def look(ctx: cw.Context[dict[str, int]], order: str = "") -> cw.Facts:
    """Look an order up."""
    if ctx.deps is not None:
        ctx.deps["look"] = ctx.deps.get("look", 0) + 1
    await asyncio.sleep(0.005)
    return {"order": order, "party": ctx.party}


@desk.tool(after=cw.AfterOutput.SILENCE)
async def wait(ctx: cw.Context[dict[str, int]]) -> str:
    """Wait in silence."""
    return "waited"


@desk.tool
async def raises(ctx: cw.Context[dict[str, int]]) -> str:
    """Raise."""
    raise ValueError("secret")


@desk.tool
async def quotes(ctx: cw.Context[dict[str, int]], order: str) -> str:
    """Raise, and quote what it was asked."""
    raise LookupError(f"there is no order {order}")


@desk.tool
async def raises_later(ctx: cw.Context[dict[str, int]]) -> str:
    """Raise after two seconds."""
    await asyncio.sleep(2)
    raise ValueError("secret")


@desk.tool
async def unwritable(ctx: cw.Context[dict[str, int]]) -> cw.Facts:
    """Return what is no JSON."""
    return {"what": object()}


@desk.tool
async def endless(ctx: cw.Context[dict[str, int]]) -> str:
    """Work for an hour."""
    await asyncio.sleep(3600)
    return ""


@desk.tool(after=cw.AfterOutput.HANG_UP)
async def end_call(ctx: cw.Context[dict[str, int]], reason: str, goodbye: cw.Spoken) -> str:
    """End the call."""
    return reason


class Humming(ScriptedCaller):
    """A caller who is never silent."""

    def step(self, now_ms: Ms, ear: PCM, item_id: ItemId | None) -> PCM:
        super().step(now_ms, ear, item_id)
        return np.rint(3_000 * np.sin(np.arange(len(ear)) * 0.2 + now_ms)).astype(np.int16)


def humming(
    settings: LineSettings, caller: ScriptedCaller, make_line: type[SimulatedLine] = SimulatedLine
) -> SimulatedLine:
    """A line with such a caller."""
    caller.__class__ = Humming
    return make_line(settings, caller)


class Model(ScriptedModel):
    """A scripted model that keeps what it is sent, with the instant."""

    def __init__(self, *steps: ModelStep, ignoring: Collection[str] = (APPEND,)) -> None:
        super().__init__(*steps, ignoring=ignoring)
        self.sent: list[tuple[Ms, dict[str, Any]]] = []
        self.appends: list[Ms] = []
        self.audio = bytearray()
        """What was appended."""

    def receive(self, data: bytes, now_ms: Ms) -> None:
        assert_official_client(data)
        event = json.loads(data)
        if event["type"] == APPEND:
            self.appends.append(now_ms)
            self.audio += b64decode(event["audio"])
        else:
            self.sent.append((now_ms, event))
        super().receive(data, now_ms)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for _, event in self.sent if event["type"] == kind]

    def times(self, kind: str) -> list[Ms]:
        return [at_ms for at_ms, event in self.sent if event["type"] == kind]

    def outputs(self) -> dict[str, str]:
        """The posted outputs by call; there is one for each."""
        created = [event["item"] for event in self.of("conversation.item.create")]
        posted = [item for item in created if item["type"] == "function_call_output"]
        assert len({item["call_id"] for item in posted}) == len(posted)
        return {item["call_id"]: item["output"] for item in posted}


@dataclass
class Taken:
    """A call that was taken, and both of its ends."""

    result: cw.CallResult
    model: Model
    line: SimulatedLine

    @property
    def rows(self) -> list[list[Any]]:
        return [json.loads(row) for row in self.result.trace.splitlines()]

    def did(self, name: str) -> list[Ms]:
        """When a command was carried out."""
        return [row[0] for row in self.rows if row[1:3] == ["do", name]]

    @property
    def agent_turns(self) -> list[tuple[str, str, str]]:
        return [(turn.heard, turn.written, turn.source) for turn in self.result.turns if turn.speaker == "agent"]


def take(
    *steps: ModelStep,
    settings: LineSettings = PHONE,
    ignoring: Collection[str] = (APPEND,),
    hang_up_ms: Ms = 4_000,
    make_line: Callable[[LineSettings, ScriptedCaller], SimulatedLine] = SimulatedLine,
    up_ms: Ms = 0,
    is_whole: bool = True,
    **options: Any,
) -> Taken:
    """Take a call with a caller who says nothing and hangs up; if ``is_whole``, not before the script is at its end."""
    model = Model(*steps, ignoring=ignoring)
    hang_up = Step(Trigger(Anchor.PICKUP, hang_up_ms), None)
    caller = ScriptedCaller([hang_up], {}, settings.stream_format.rate_hz)
    line = make_line(settings, caller)
    connector = MemoryConnector(lambda: model, up_ms=up_ms)
    result = run_virtual(run(line, connector, **options))
    if is_whole:
        model.finish()
    return Taken(result, model, line)


async def run(line: Line, connector: Connector, *, agent: cw.Agent = desk, **options: Any) -> cw.CallResult:
    return await cw.run(agent, line, connector=connector, **options)


# --- what a model sends

CREATED = emit(server.SessionCreated(session=objects.Session()))
UPDATED = emit(server.SessionUpdated(session=objects.Session()))
OPENING = (CREATED, expect("session.update", event_id="cw_1"), UPDATED)


def started(response_id: str = "r1") -> Emit:
    return emit(server.ResponseCreated(response=objects.Response(id=response_id, status="in_progress")))


def ended(response_id: str = "r1", status: str = "completed", *output: items.Item) -> Emit:
    return emit(server.ResponseDone(response=objects.Response(id=response_id, status=status, output=output or None)))


def delta(ms: Ms, item_id: str = "a", response_id: str = "r1") -> Emit:
    """Reply audio that is no silence."""
    audio = b"\x00\x20\x00\xe0" * (ms * 12)
    return emit(server.ResponseOutputAudioDelta(response_id=response_id, item_id=item_id, delta=audio))


def written(text: str, item_id: str = "a", response_id: str = "r1") -> Emit:
    return emit(server.ResponseOutputAudioTranscriptDone(response_id=response_id, item_id=item_id, transcript=text))


def reply(text: str, ms: Ms = 400, item_id: str = "a", response_id: str = "r1") -> tuple[ModelStep, ...]:
    return (
        started(response_id),
        delta(ms, item_id, response_id),
        written(text, item_id, response_id),
        after(ms),
        ended(response_id),
    )


def call_item(name: str, call_id: str, arguments: str = "{}") -> items.FunctionCallItem:
    return items.FunctionCallItem(id=f"item of {call_id}", name=name, call_id=call_id, arguments=arguments)


def calls(name: str, call_id: str = "k1", response_id: str = "r1", arguments: str = "{}") -> Emit:
    return emit(
        server.ResponseFunctionCallArgumentsDone(
            response_id=response_id, item_id=f"item of {call_id}", call_id=call_id, name=name, arguments=arguments
        )
    )


def item_done(name: str, call_id: str = "k1", response_id: str = "r1") -> Emit:
    return emit(server.ResponseOutputItemDone(response_id=response_id, item=call_item(name, call_id)))


def error(event_id: str | None = None, code: str = "invalid_value", param: str | None = None) -> Emit:
    detail = {"type": "invalid_request_error", "code": code, "message": "no", "param": param, "event_id": event_id}
    return emit({"type": "error", "event_id": "e1", "error": detail})


def speech_started(item_id: str = "u1", at_ms: Ms = 0) -> Emit:
    return emit(server.InputAudioBufferSpeechStarted(item_id=item_id, audio_start_ms=at_ms))


def speech_stopped(item_id: str = "u1", at_ms: Ms = 0) -> Emit:
    return emit(server.InputAudioBufferSpeechStopped(item_id=item_id, audio_end_ms=at_ms))


def retrieved(text: str, item_id: str = "a", audio: bytes | None = None) -> Emit:
    part = items.ContentPart(type="output_audio", transcript=text, audio=audio)
    return emit(server.ConversationItemRetrieved(item=items.MessageItem(id=item_id, role="assistant", content=(part,))))


BARGE_IN = (
    *OPENING,
    started(),
    delta(2_000),
    written("From three in the afternoon."),
    after(1_010),
    speech_started(),
)

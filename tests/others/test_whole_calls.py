"""Clients that others wrote take whole calls on the local server, as they are: a tool, a barge-in, a goodbye.

All calls are played at the same time, on one event loop: a call takes as long as people talk. The agents are loaded
with the first call, since that takes a second, which whoever collects tests need not wait for.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection

from callwright.apps.hotel import desk
from callwright.audio.resample import resample
from callwright.cli.options import Setup
from callwright.cli.plan import make_plan
from callwright.measure.figures import CallFigures, measure_call
from callwright.sim.models import AgentSaid, ToolAnswered
from callwright.sim.record import CallRecord
from callwright.sim.server.websocket import RealtimeServer
from callwright.sim.speech import Speech
from callwright.sim.world import Options, make_session

if TYPE_CHECKING:
    from scripts.other_clients import AgentsClient

TRANSCRIBED = "conversation.item.input_audio_transcription.completed"
FRAME = bytes(960)


# --- the official client


def spoken(line: str) -> bytes:
    """A recorded line as PCM16 at 24 kHz."""
    pcm = Speech.load(booking("polyai").speech)[line].pcm
    return resample(pcm, 16_000, 24_000).astype("<i2").tobytes()


def booking(dialect: str) -> Any:
    scenario = make_plan("booking", Setup(dialect=dialect)).scenario
    return replace(scenario, rates={"forgets_notice": 1})


class Caller:
    """The caller's voice through the client: lines at once, or frame by frame with silence between them."""

    def __init__(self, connection: AsyncRealtimeConnection) -> None:
        self._connection = connection
        self._waiting = b""

    async def burst(self, audio: bytes) -> None:
        await self._connection.input_audio_buffer.append(audio=base64.b64encode(audio).decode())

    def say(self, line: str) -> None:
        self._waiting = spoken(line)

    async def keep_speaking(self) -> None:
        due = asyncio.get_running_loop().time()
        while True:
            frame, self._waiting = self._waiting[:960], self._waiting[960:]
            await self.burst(frame.ljust(960, b"\0"))
            due += 0.02
            await asyncio.sleep(due - asyncio.get_running_loop().time())


class Call:
    """The loop that any tutorial has: an event comes, something is done about it."""

    def __init__(self, connection: AsyncRealtimeConnection, session: dict[str, Any]) -> None:
        self.events: list[Any] = []
        self._connection = connection
        self._caller = Caller(connection)
        self._session = session

    async def run(self) -> list[Any]:
        speaking = asyncio.ensure_future(self._caller.keep_speaking())
        async for event in self._connection:
            self.events.append(event)
            await self._react(event)
            if _is_over(self.events):
                break
        speaking.cancel()
        await asyncio.gather(speaking, return_exceptions=True)
        return self.events

    async def _react(self, event: Any) -> None:
        connection = self._connection
        match event.type:
            case "session.created":
                await connection.session.update(session={"type": "realtime", **self._session})
            case "session.updated":
                await self._caller.burst(spoken("look-up-okafor") + FRAME * 40)
            case "response.function_call_arguments.done":
                output = {"type": "function_call_output", "call_id": event.call_id, "output": '{"room": 214}'}
                await connection.conversation.item.create(item=output)
                await asyncio.sleep(0.3)
                self._caller.say("ask-breakfast")
            case "input_audio_buffer.speech_started" if cut := of(self.events, "response.output_audio.delta"):
                item_id = cut[0].item_id
                await connection.conversation.item.truncate(item_id=item_id, content_index=0, audio_end_ms=700)
                await connection.conversation.item.retrieve(item_id=item_id)
            case _:
                pass


def _session(*, spoken: bool, **more: Any) -> dict[str, Any]:
    tools = [tool.schema(spoken=spoken) for tool in desk.tools.values()]
    return {"instructions": desk.instructions, "tools": tools, **more}


SESSIONS = {
    "polyai": _session(spoken=True),
    "openai": _session(spoken=False, audio={"input": {"transcription": {"model": "gpt-transcribe"}}}),
}


def of(events: list[Any], kind: str) -> list[Any]:
    return [event for event in events if event.type == kind]


def _is_over(events: list[Any]) -> bool:
    """Both turns are transcribed and both responses done; their order differs."""
    return len(of(events, "response.done")) == 2 == len(of(events, TRANSCRIBED))


def _last_said(events: list[Any]) -> str:
    return ([""] + [done.transcript for done in of(events, "response.output_audio_transcript.done")])[-1]


async def official_call(dialect: str) -> list[Any]:
    scenario, options = booking(dialect), Options(dialect=dialect)
    async with RealtimeServer(lambda: make_session(scenario, 1, options), key="sk-test") as server:
        client = AsyncOpenAI(api_key="sk-test", websocket_base_url=server.url.removesuffix("/realtime"))
        async with client, client.realtime.connect(model="any") as connection:
            return await asyncio.wait_for(Call(connection, SESSIONS[dialect]).run(), 30)


# --- the agents that are built on it


@dataclass(frozen=True)
class AgentsCall:
    record: CallRecord
    client: AgentsClient
    figures: CallFigures

    @property
    def told(self) -> list[str]:
        """The kinds of events that it was told."""
        return [event["type"] for event in self.client.events]


async def agents_call(dialect: str, client: str) -> AgentsCall:
    from scripts.other_clients import QUICK, on_a_line_for, take_beside

    plan = make_plan(str(QUICK), Setup(dialect=dialect))
    scenario = on_a_line_for(plan.scenario, dialect)
    (record,), (made,) = await take_beside(scenario, 1, plan.setup.options, [client])
    return AgentsCall(record, made, measure_call(record, scenario.lines))


@cache
def calls() -> tuple[dict[str, list[Any]], dict[str, AgentsCall]]:
    async def all_at_once() -> Any:
        return await asyncio.gather(
            official_call("polyai"),
            official_call("openai"),
            agents_call("polyai", "openai-agents, marks"),
            agents_call("openai", "openai-agents"),
        )

    import_module("scripts.other_clients")  # before anybody's clock runs
    polyai, openai, agents_polyai, agents_openai = asyncio.run(all_at_once())
    return {"polyai": polyai, "openai": openai}, {"polyai": agents_polyai, "openai": agents_openai}


@pytest.mark.parametrize(
    ("dialect", "statuses", "history"),
    [("polyai", ["cancelled", "completed"], "One moment,-"), ("openai", ["completed", "completed"], None)],
)
def test_the_official_client_takes_a_call_with_a_tool_and_a_barge_in(
    dialect: str, statuses: list[str], history: str | None
) -> None:
    events = calls()[0][dialect]
    assert not of(events, "error")
    (called,) = of(events, "response.function_call_arguments.done")
    assert called.name == "look_up_booking"
    assert "Okafor" in called.arguments
    assert [done.response.status for done in of(events, "response.done")] == statuses
    (retrieved,) = of(events, "conversation.item.retrieved")
    assert retrieved.item.content[0].transcript == history
    heard, answer = of(events, TRANSCRIBED)
    assert "Okafor" in heard.transcript
    assert "breakfast" in answer.transcript
    assert _last_said(events).startswith("We serve breakfast")


@pytest.mark.parametrize("dialect", ["polyai", "openai"])
def test_the_agents_session_takes_a_call_with_a_tool_a_barge_in_and_a_goodbye(dialect: str) -> None:
    call = calls()[1][dialect]
    assert (call.record.error, call.figures.void, call.record.ended_by) == (None, None, "agent")
    looked_up = next(item for item in call.record.history if isinstance(item, ToolAnswered))
    assert "Smith" in looked_up.output
    assert call.figures.values["goodbye_played"] == (1,)
    assert call.record.truncations
    assert not any(truncation.is_refused for truncation in call.record.truncations)
    assert {"conversation.item.truncated", "conversation.item.retrieved"} <= set(call.told)
    assert [item.is_cut for item in call.record.history if isinstance(item, AgentSaid)].count(True) == 1


def test_the_agents_session_is_told_of_no_error_where_its_own_protocol_is_spoken() -> None:
    assert calls()[1]["openai"].client.problems == []


def test_a_server_that_refuses_the_agents_session_its_configuration_takes_one_in_a_raw_message() -> None:
    call = calls()[1]["polyai"]
    codes = [problem.partition(":")[0] for problem in call.client.problems]
    assert codes[:2] == ["unsupported_parameter"] * 2
    assert set(codes[2:]) <= {"response_cancel_not_active"}
    assert call.told.count("session.updated") == 1


def test_the_table_has_each_value_of_a_figure_once_and_what_did_not_hold() -> None:
    from scripts.other_clients import FIGURES, Row

    figures = calls()[1]["openai"].figures
    client, *cells, failed = str(Row("any", (figures, figures), ("heard", "ended"))).split(" | ")
    values = dict(zip(FIGURES, cells, strict=True))
    assert (client, values["goodbye_played"], values["untold_at_hangup"], failed) == (
        "`any`",
        "1",
        "-",
        "`heard`, `ended`",
    )
    assert values["unheard_words_in_history"] == f"{figures.values['unheard_words_in_history'][0]:g}"


def test_of_a_reply_that_was_cut_the_table_shows_what_is_believed_of_it() -> None:
    from scripts.other_clients import cut_replies

    figures = calls()[1]["polyai"].figures
    (row,) = cut_replies("quick", "any", figures)
    assert row.startswith("| `quick` | `any` | One moment, I am")

"""A client that was written by others takes a whole call on the local server, as it is."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection

from callwright.apps.hotel import desk
from callwright.audio.resample import resample
from callwright.measure.figures import METRICS
from callwright.sim.agents import tools_of
from callwright.sim.scenario import load_scenario
from callwright.sim.server.websocket import RealtimeServer
from callwright.sim.speech import Speech
from callwright.sim.world import Options, make_session

HOTEL = Path(str(resources.files("callwright.apps.hotel")))
TRANSCRIBED = "conversation.item.input_audio_transcription.completed"
SPEECH = Speech.load(HOTEL / "speech")
FRAME = bytes(960)


def spoken(line: str) -> bytes:
    """A recorded line as PCM16 at 24 kHz."""
    pcm = SPEECH[line].pcm
    return resample(pcm, 16_000, 24_000).astype("<i2").tobytes()


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


@pytest.mark.parametrize(
    ("dialect", "statuses", "history"),
    [("polyai", ["cancelled", "completed"], "One moment,-"), ("openai", ["completed", "completed"], None)],
)
def test_the_official_client_takes_a_call_with_a_tool_and_a_barge_in(
    dialect: str, statuses: list[str], history: str | None
) -> None:
    options = Options(dialect=dialect)
    scenario = load_scenario(HOTEL / "scenarios" / "booking.yaml", tools_of, METRICS).in_dialect(dialect)
    scenario = replace(scenario, rates={"forgets_notice": 1})

    async def call() -> list[Any]:
        async with RealtimeServer(lambda: make_session(scenario, 1, options), key="sk-test") as server:
            client = AsyncOpenAI(api_key="sk-test", websocket_base_url=server.url.removesuffix("/realtime"))
            async with client, client.realtime.connect(model="any") as connection:
                return await asyncio.wait_for(Call(connection, SESSIONS[dialect]).run(), 30)

    events = asyncio.run(call())
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

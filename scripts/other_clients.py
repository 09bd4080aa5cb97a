"""Play scenarios with a client that others wrote, beside Callwright's, on the same server and seeds, by the wall clock.

    python scripts/other_clients.py                          the scenarios that the reference shows, seed 1
    python scripts/other_clients.py --runs 3 check-in        that one, seeds 1 to 3
    python scripts/other_clients.py --lag 800 check-in       on a line with a buffer of 800 ms that nobody tells of

Prints a Markdown table. The other client is the realtime session of ``openai-agents`` as it is installed, with and
without its playback tracker. What stands around it is what its own example for telephones has: a mark behind every
piece of audio, whose bytes count as played once it comes back, and an interruption that clears the line.

```
caller ── line ── frames ──> session.send_audio ── its connection ── server
                <── audio, marks, clear ── events <──┘
```
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec
from agents import FunctionTool
from agents.realtime import (
    RealtimeAgent,
    RealtimeItem,
    RealtimePlaybackTracker,
    RealtimeRunner,
    RealtimeSession,
    RealtimeSessionEvent,
)
from agents.realtime.model_events import RealtimeModelRawServerEvent
from agents.realtime.model_inputs import RealtimeModelSendRawMessage

from callwright.audio.formats import FRAME_MS, PCM16_24K, Encoding
from callwright.cli.options import Setup
from callwright.cli.plan import make_plan
from callwright.core.ports import Connector, Line
from callwright.core.session import Ending
from callwright.core.toolcalls import AfterOutput
from callwright.core.transcript import Source, Speaker, Turn
from callwright.declare.agent import Agent
from callwright.declare.tools import Context, Tool
from callwright.errors import Refuse
from callwright.ids import ItemId, MarkId, Ms, ToolCallId
from callwright.ledger.provider import Provider
from callwright.measure.figures import CallFigures, measure_call
from callwright.measure.verdict import judge
from callwright.runtime.call import CallResult
from callwright.runtime.clock import Clock
from callwright.runtime.connect import connector
from callwright.runtime.endpoint import Endpoint
from callwright.runtime.trace import Trace
from callwright.sim.baselines.acting import Acting, Floor
from callwright.sim.baselines.habits import Acts, OnHold
from callwright.sim.baselines.hold import Keypad
from callwright.sim.baselines.naive import STILL_OPEN
from callwright.sim.line import SimulatedLine
from callwright.sim.live import fastest_loop
from callwright.sim.record import CallRecord
from callwright.sim.scenario import Scenario
from callwright.sim.server import ServerSession
from callwright.sim.server.websocket import RealtimeServer
from callwright.sim.world import OURS, Options, Taker, take_call
from callwright.wire.profiles import Feature

TRACKED: Final[Mapping[str, bool]] = {"openai-agents": False, "openai-agents, marks": True}
"""The other client by name, and whether it is told what the line has played; without, it goes by the clock."""
QUICK: Final = Path(__file__).parent / "scenarios" / "quick-look-up.yaml"
"""A tool that answers while its holding line is still at the ear."""
SHOWN: Final = ("check-in", "talk-over", "booking", str(QUICK), "missed-confirmation")
APART_S: Final = 0.7
"""The same happens in each call: what keeps one server busy for a moment is not to fall on all of them at once."""
FIGURES: Final = (
    "heard_error_ms",
    "unheard_words_in_history",
    "unheard_words_in_transcript",
    "heard_words_missing",
    "late_talk_over",
    "goodbye_played",
    "duplicate_effects",
    "untold_at_hangup",
)
_FORMATS: Final[Mapping[Encoding, str]] = {Encoding.PCMU: "g711_ulaw", Encoding.PCMA: "g711_alaw"}
_PCM16: Final = "pcm16"


class AgentsClient:
    """One call of an ``openai-agents`` realtime session, with a line at its audio end.

    ``url`` gives the server's address once the call begins. With ``tracks`` the session is told what was played.
    """

    def __init__(
        self,
        url: Callable[[], str],
        tracks: bool,
        agent: Agent,
        line: Line,
        *,
        deps: Any,
        party: str | None,
        provider: Provider | None = None,
    ) -> None:
        self.events: list[Mapping[str, Any]] = []
        """What the server told, audio left out."""
        self.problems: list[str] = []
        """What the session told its user as an error."""
        self._url = url
        self._agent = agent
        self._line = line
        self._clock = Clock()
        self._playing = _Playing(line, RealtimePlaybackTracker() if tracks else None)
        context: Context[Any] = Context(deps, party, ToolCallId(""), keypad=Keypad(line))
        self._tools = _Tools(agent, context, provider, self._playing, self.end)
        self._frames: asyncio.Queue[bytes] = asyncio.Queue()
        self._history: list[RealtimeItem] = []
        self._ready_ms: Ms | None = None
        self._ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    async def run(self, _connector: Connector) -> CallResult:
        """Take the call, over a connection of the session's own. Raises LineFailed, and what its connecting raises."""
        await self._line.open(_Ears(self))
        desk = RealtimeAgent(name="desk", instructions=self._agent.instructions, tools=self._tools.functions)
        session = await RealtimeRunner(desk).run(model_config=self._config())
        async with session:
            connected_at_ms, held = self._clock.now_ms(), self._frames.qsize()
            await self._reconfigure(session)
            jobs = [asyncio.create_task(job) for job in (self._speak(session), self._follow(session))]
            ending = await self._ending
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)
            await self._line.hang_up()
        trace = Trace({"agent": self._agent.name, "model": self._agent.model.profile.name})
        for event in self.events:
            trace.note(event["at_ms"], "got", event["type"])
        return CallResult(
            turns=tuple(_turns(self._history)),
            ending=ending,
            trace=trace.lines(),
            session_ready_ms=self._ready_ms,
            held_sent_ms=held * FRAME_MS,
            lost_ms=0,
            connected_ms=self._clock.now_ms() - connected_at_ms,
            anomalies=tuple(self.problems),
            unknown={},
        )

    def frame(self, frame: bytes) -> None:
        """Take 20 ms of the caller; what comes before the session stands waits for it."""
        self._frames.put_nowait(frame)

    def returned(self, mark_id: MarkId) -> None:
        """Take a mark that came back."""
        self._playing.returned(mark_id)
        self._tools.look()

    def end(self, by: str, reason: str) -> None:
        """Take note of the end of the line, of the connection or of the goodbye."""
        if not self._ending.done():
            self._ending.set_result(Ending(by, reason))

    def _config(self) -> Any:
        audio_format = _FORMATS.get(self._line.output_format.encoding, _PCM16)
        settings = {
            "input_audio_format": audio_format,
            "output_audio_format": audio_format,
            "turn_detection": {"type": "semantic_vad", "interrupt_response": True, "create_response": True},
        }
        tracker = {} if self._playing.tracker is None else {"playback_tracker": self._playing.tracker}
        return {"api_key": "sk-test", "url": self._url(), "initial_model_settings": settings, **tracker}

    async def _reconfigure(self, session: RealtimeSession) -> None:
        """Say again, in a message of our own, what a server that refuses the session's configuration takes of it."""
        profile = self._agent.model.profile
        if "audio.output" not in profile.session_fields:
            spoken = Feature.SPOKEN_ARGUMENTS in profile.features
            tools = [tool.schema(spoken=spoken) for tool in self._agent.tools.values()]
            update = {"type": "realtime", "instructions": self._agent.instructions, "tools": tools}
            message: Any = {"type": "session.update", "other_data": {"session": update}}
            await session.model.send_event(RealtimeModelSendRawMessage(message=message))

    async def _speak(self, session: RealtimeSession) -> None:
        while True:
            await session.send_audio(await self._frames.get())

    async def _follow(self, session: RealtimeSession) -> None:
        """Do something about each event, until they end."""
        try:
            async for event in session:
                self._react(event)
        except Exception as problem:  # the session raises whatever broke it
            self.end("fault", f"{type(problem).__name__}: {problem}")
        self.end("model", "connection closed")

    def _react(self, event: RealtimeSessionEvent) -> None:
        match event.type:
            case "audio":
                self._playing.play(event.item_id, event.content_index, event.audio.data)
            case "audio_interrupted":
                self._playing.clear()
                self._tools.cut()
            case "agent_start":
                self._tools.response_open(True)
            case "agent_end":
                self._tools.response_open(False)
            case "history_added":
                self._history = [*self._history, event.item]
            case "history_updated":
                self._history = list(event.history)
            case "error":
                self.problems.append(_problem(event.error))
            case "raw_model_event" if isinstance(event.data, RealtimeModelRawServerEvent):
                self._note(event.data.data)
            case _:
                pass

    def _note(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "session.updated" and self._ready_ms is None:
            self._ready_ms = self._clock.now_ms()
        if message["type"] != "response.output_audio.delta":
            self.events.append({**message, "at_ms": self._clock.now_ms()})


def _problem(error: Any) -> str:
    """An error of the server's by its code, another one in its own words."""
    return f"{error.code}: {error.message}" if getattr(error, "code", None) else str(error)


class _Ears:
    """What the line calls."""

    def __init__(self, client: AgentsClient) -> None:
        self.on_frame = client.frame
        self.on_mark = client.returned
        self.on_closed = client.end


class _Playing:
    """Audio on its way to the ear, a mark behind every piece of it."""

    def __init__(self, line: Line, tracker: RealtimePlaybackTracker | None) -> None:
        self.tracker = tracker
        self._line = line
        self._count = 0
        self._marks: dict[MarkId, tuple[str, int, int]] = {}
        """What lies before each mark that is under way: item, content, bytes."""

    @property
    def is_empty(self) -> bool:
        """Whether all that was handed over has been played, or cleared."""
        return not self._marks

    def play(self, item_id: str, content_index: int, audio: bytes) -> None:
        """Hand a piece to the line."""
        self._count += 1
        mark_id = MarkId(str(self._count))
        self._marks[mark_id] = (item_id, content_index, len(audio))
        self._line.play(ItemId(item_id), 0, audio)
        self._line.mark(mark_id)

    def clear(self) -> None:
        """Stop at once."""
        self._line.clear()

    def returned(self, mark_id: MarkId) -> None:
        """A mark came back: by its book, what lies before it was played, whether or not that was cleared."""
        item_id, content_index, length = self._marks.pop(mark_id)
        if self.tracker is not None:
            self.tracker.on_play_bytes(item_id, content_index, bytes(length))


class _Tools:
    """The agent's tools as functions of the session.

    One that ends the call waits until its response has ended and all of it was played, and then puts down the line. A
    caller who speaks into that is answered. One that acts sends at once, and tells the outcome.
    """

    def __init__(
        self,
        agent: Agent,
        context: Context[Any],
        provider: Provider | None,
        playing: _Playing,
        end: Callable[[str, str], None],
    ) -> None:
        self.functions: list[Any] = [self._function(tool) for tool in agent.tools.values()]
        self._context = context
        self._acting = Acting(Acts(), provider, Floor(OnHold.WAITS, lambda: None))
        self._playing = playing
        self._end = end
        self._is_open = False
        self._goodbye: asyncio.Future[bool] | None = None

    def response_open(self, is_open: bool) -> None:
        """A response began, or ended."""
        self._is_open = is_open
        self.look()

    def cut(self) -> None:
        """The caller speaks over what was being said."""
        self._settle(False)

    def look(self) -> None:
        """Settle a goodbye of which nothing is left to be said or played."""
        if not self._is_open and self._playing.is_empty:
            self._settle(True)

    def _settle(self, was_heard: bool) -> None:
        if self._goodbye is not None and not self._goodbye.done():
            self._goodbye.set_result(was_heard)

    def _function(self, tool: Tool) -> FunctionTool:
        async def invoked(told: Any, arguments: str) -> str:
            context = replace(self._context, tool_call_id=ToolCallId(told.tool_call_id))
            given = msgspec.structs.asdict(msgspec.json.decode(arguments, type=tool.arguments))
            if tool.action:
                return (await self._acting.act(tool, context, given))[0]
            try:
                output = await tool.function(context, **given)
            except Refuse as reason:
                output = {"refused": str(reason)}
            if tool.after is AfterOutput.HANG_UP and not await self._said_goodbye(str(output)):
                return STILL_OPEN
            return msgspec.json.encode(output).decode()

        parameters: Any = tool.schema(spoken=False)["parameters"]
        return FunctionTool(tool.name, tool.description, parameters, invoked, strict_json_schema=False)

    async def _said_goodbye(self, reason: str) -> bool:
        self._goodbye = asyncio.get_running_loop().create_future()
        self.look()
        was_heard = await self._goodbye
        if was_heard:
            self._end("agent", reason)
        return was_heard


def _turns(history: Iterable[RealtimeItem]) -> Iterator[Turn]:
    """The session's own history as a transcript: it makes no difference between written and heard."""
    for item in history:
        if item.type == "message" and item.role != "system":
            parts = [getattr(part, "transcript", None) or getattr(part, "text", None) for part in item.content]
            text = " ".join(filter(None, parts))
            speaker, source = (
                (Speaker.AGENT, Source.WHOLE) if item.role == "assistant" else (Speaker.CALLER, Source.TRANSCRIBED)
            )
            yield Turn(speaker, ItemId(item.item_id), text, text, source)


async def take_beside(
    scenario: Scenario, seed: int, options: Options, clients: Sequence[str], *, apart_s: float = 0
) -> tuple[list[CallRecord], list[AgentsClient]]:
    """Play one call for each of these clients, all at once; the records, and the other clients as they are afterwards.

    Each has a server of its own, and begins so long after the one before. Raises as ``take_call`` does.
    """
    made: list[AgentsClient] = []

    async def one(number: int, name: str) -> CallRecord:
        await asyncio.sleep(number * apart_s)
        url = ""

        @asynccontextmanager
        async def reach(next_session: Callable[[], ServerSession], line: SimulatedLine) -> AsyncIterator[Connector]:
            nonlocal url
            async with RealtimeServer(next_session, now_ms=lambda: line.now_ms, drain_ms=0) as server:
                url = server.url
                yield connector(Endpoint(server.url, "local"))

        def make(*places: Any, **world: Any) -> Taker:
            made.append(AgentsClient(lambda: url, TRACKED[name], *places, **world))
            return made[-1]

        return await take_call(scenario, seed, name, options, reach, {name: make})

    return list(await asyncio.gather(*itertools.starmap(one, enumerate(clients)))), made


def on_a_line_for(scenario: Scenario, dialect: str) -> Scenario:
    """The scenario on a line whose format this server also speaks, so that no client has to change one into another."""
    return scenario if dialect == "openai" else replace(scenario, line=replace(scenario.line, format=PCM16_24K))


@dataclass(frozen=True, slots=True)
class Row:
    """One client's calls of a scenario, the figures of each."""

    client: str
    calls: tuple[CallFigures, ...]
    failed: tuple[str, ...]
    """What did not hold in one of them, by name."""

    def __str__(self) -> str:
        cells = [_cell([figures.values.get(name, ()) for figures in self.calls]) for name in FIGURES]
        return " | ".join([f"`{self.client}`", *cells, ", ".join(f"`{name}`" for name in self.failed) or "nothing"])


def _cell(calls: Sequence[Sequence[float]]) -> str:
    """What a figure was in these calls: the values that differ, in order of size."""
    values = sorted({value for each in calls for value in each})
    return ", ".join(f"{value:g}" for value in values) or "-"


def cut_replies(scenario: str, client: str, figures: CallFigures) -> Iterator[str]:
    """What was heard of each reply that was cut, and what is believed of it, as rows of a table."""
    for reply in figures.replies:
        if reply.was_cut:
            cells = (f"`{scenario}`", f"`{client}`", reply.heard, reply.in_history, reply.in_transcript)
            yield f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what is asked for. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "scenarios", nargs="*", metavar="SCENARIO", help="by name or path; those of the reference if none is given"
    )
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="seeds 1 to N of each")
    parser.add_argument("--dialect", default="openai", choices=("openai", "polyai"), help="what the server speaks")
    parser.add_argument("--lag", type=int, metavar="MS", help="hidden lag of the line")
    parser.add_argument("--words", action="store_true", help="print what is believed of each reply that was cut, too")
    asked = parser.parse_args(arguments)
    packages = ", ".join(f"{name} {version(name)}" for name in ("openai-agents", "openai", "websockets"))
    print(f"{packages}; dialect {asked.dialect}, seeds 1 to {asked.runs}\n")
    print(f"| scenario | client | {' | '.join(f'`{name}`' for name in FIGURES)} | does not hold |")
    print(f"|{'---|' * (len(FIGURES) + 3)}")
    said: list[str] = []
    for name in asked.scenarios or SHOWN:
        plan = make_plan(name, Setup(dialect=asked.dialect, lag_ms=asked.lag))
        scenario = on_a_line_for(plan.scenario, asked.dialect)
        for row in compared(scenario, plan.setup.options, range(1, asked.runs + 1)):
            print(f"| `{scenario.name}` | {row} |", flush=True)
            said += [line for figures in row.calls for line in cut_replies(scenario.name, row.client, figures)]
    if asked.words:
        print("\n| scenario | client | heard | server's history | client's record |", "|---|---|---|---|---|", sep="\n")
        print(*dict.fromkeys(said), sep="\n")
    return 0


def compared(scenario: Scenario, options: Options, seeds: Iterable[int]) -> list[Row]:
    """Play these calls with every client. Raises as ``take_beside`` does."""
    clients = (*TRACKED, OURS)
    calls: dict[str, list[CallFigures]] = {client: [] for client in clients}
    for seed in seeds:
        with asyncio.Runner(loop_factory=fastest_loop()) as runner:
            records, _ = runner.run(take_beside(scenario, seed, options, clients, apart_s=APART_S))
        for client, record in zip(clients, records, strict=True):
            calls[client].append(measure_call(record, scenario.lines))
    return [Row(client, tuple(each), tuple(_failed(each, scenario))) for client, each in calls.items()]


def _failed(calls: Iterable[CallFigures], scenario: Scenario) -> Iterator[str]:
    yield from dict.fromkeys(failure.name for each in calls for failure in judge(each, scenario.expect).failed)


if __name__ == "__main__":
    sys.exit(main())

"""One simulated call from beginning to end: scenario, seed and client in, record out.

```
caller ── line ── client (ours, or a baseline) ── connection ── server session ── rules model
   └── all on one virtual loop, all chance from one seed, no clock, no socket ──┘
```

The server may also be one that is not ours: then the call goes by the wall clock, and the seed draws what is on the
caller's side alone.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from callwright.audio.echo import OutputDevice
from callwright.core.ports import Connector
from callwright.core.session import Can
from callwright.core.toolcalls import AfterOutput
from callwright.declare.agent import Agent, ModelChoice
from callwright.errors import UsageError
from callwright.ids import Ms
from callwright.runtime.call import CallResult, run
from callwright.sim.agents import load_agent
from callwright.sim.audit import Audit
from callwright.sim.baselines import BASELINES
from callwright.sim.behind.backend import Backend, effects, open_backend
from callwright.sim.behind.inspection import broken_invariants, card_numbers, kept_texts
from callwright.sim.behind.settings import Behind, Earlier, with_provider
from callwright.sim.caller import ScriptedCaller, Step, drawn
from callwright.sim.ear import Ear
from callwright.sim.exchange import Callee, FarEnd
from callwright.sim.exchange.sounds import as_telephoned, tones
from callwright.sim.line import LineKind, LineSettings, SimulatedLine
from callwright.sim.loop import collect_faults, loop_ms
from callwright.sim.network import Network, NetworkSettings
from callwright.sim.record import CallRecord
from callwright.sim.recorded import recorded
from callwright.sim.room import Microphone, RoomSettings, room_lines, together
from callwright.sim.rules import BEHAVIORS, RulesModel
from callwright.sim.scenario import Scenario
from callwright.sim.seeds import stream
from callwright.sim.server import MemoryConnector, ServerSession, ServerSettings
from callwright.sim.sessions import ServerBook, Sessions, known_limit
from callwright.sim.speech import Recording, Speech
from callwright.sim.vloop import run_virtual
from callwright.sim.voice import RecordedVoice

EARLIER_SEED = 1_000_003
"""Added to the seed for an earlier call of the same scenario: its chances are its own."""
OURS = "callwright"
"""The name of our own client beside those of the baselines."""
CLIENTS = (OURS, *BASELINES)


@dataclass(frozen=True, slots=True)
class Options:
    """What a run changes of its scenario; the settings that a user gives on the command line."""

    lag_ms: Ms | None = None
    """Hidden lag of the line: a buffer that a clear empties, known only by marks."""
    lag_fixed_ms: Ms | None = None
    """Lag that the line reports and that nothing empties."""
    can: Can | None = None
    """What the client asks of the server; None for all that its dialect has."""
    server: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the local server that go before the scenario's."""
    connect_ms: Ms | None = None
    """How long the connection to the server takes to open; None for the scenario's own time."""
    dialect: str | None = None
    """The provider whose protocol client and server speak; None for the agent's own."""
    tools_wait: bool | None = None
    """Whether our client keeps an action's output back until the outcome is there; None as for False."""
    audit: bool = False
    """Whether the server is asked at the end for every tool call that it made."""
    provider: str | None = None
    """What is different at the scenario's provider, as it is typed: ``sync,after_ms=200``; None for nothing."""
    room: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the room at the caller's end that go before the scenario's, by the names that `RoomSettings` has."""
    hold_s: int | None = None
    """How long a call that the agent makes is on hold; None for the scenario's own time."""
    max_hold_s: int | None = None
    """How long our client waits on hold at most; None as the scenario has it."""
    voice: str | None = None
    """``own``: the server writes, and our client says it by a voice of its own, the recorded lines; None: it speaks."""

    def line(self, settings: LineSettings) -> LineSettings:
        """The scenario's line with this run's changes. Raises UsageError for what the line cannot be."""
        return replace(
            settings,
            hidden_lag_ms=settings.hidden_lag_ms if self.lag_ms is None else self.lag_ms,
            fixed_lag_ms=settings.fixed_lag_ms if self.lag_fixed_ms is None else self.lag_fixed_ms,
        )

    def room_of(self, settings: RoomSettings) -> RoomSettings:
        """The scenario's room with this run's changes. Raises UsageError for what a room cannot be."""
        return replace(settings, **self.room)

    def network(self, settings: NetworkSettings) -> NetworkSettings:
        """The scenario's connection with this run's changes."""
        return settings if self.connect_ms is None else replace(settings, opens_after_ms=self.connect_ms)

    def callee(self, callee: Callee | None) -> Callee | None:
        """The scenario's callee with this run's changes. Raises UsageError where nobody can put the agent on hold."""
        if self.hold_s is None:
            return callee
        if callee is None:
            raise UsageError("the scenario has no callee, who could put the agent on hold: leave out --hold")
        return replace(callee, hold_s=self.hold_s)

    def max_hold_ms(self, scenario: Scenario) -> Ms | None:
        """How long our client waits on hold at most. Raises UsageError where nobody can put the agent on hold."""
        if self.max_hold_s is not None and scenario.callee is None:
            raise UsageError("the scenario has no callee, who could put the agent on hold: leave out --max-hold")
        longest_s = scenario.max_hold_s if self.max_hold_s is None else self.max_hold_s
        return None if longest_s is None else longest_s * 1000

    def behind(self, behind: Behind) -> Behind:
        """The world behind the scenario's agent with this run's provider. Raises as ``with_provider``."""
        return behind if self.provider is None else with_provider(behind, self.provider)

    def told(self) -> dict[str, object]:
        """The changes, by name, for the record."""
        told: dict[str, object] = {}
        if self.lag_ms is not None:
            told["lag_ms"] = self.lag_ms
        if self.lag_fixed_ms is not None:
            told["lag_fixed_ms"] = self.lag_fixed_ms
        if self.connect_ms is not None:
            told["connect_ms"] = self.connect_ms
        if self.can is not None:
            told["truncate"] = Can.TRUNCATE in self.can
        if self.tools_wait is not None:
            told["tools"] = "blocking" if self.tools_wait else "async"
        if self.audit:
            told["audit"] = True
        if self.provider is not None:
            told["provider"] = self.provider
        if self.hold_s is not None:
            told["hold_s"] = self.hold_s
        if self.max_hold_s is not None:
            told["max_hold_s"] = self.max_hold_s
        if self.voice is not None:
            told["voice"] = self.voice
        for name, value in self.room.items():
            told["room" if name == "name" else name] = value if isinstance(value, (str, int, float)) else str(value)
        return {**told, **self.server}

    def agent(self, agent: Agent) -> Agent:
        """The agent with this run's model."""
        if self.dialect in (None, agent.model.provider):
            return agent
        return replace(agent, model=ModelChoice(self.dialect))


def play(scenario: Scenario, seed: int, *, client: str = OURS, options: Options | None = None) -> CallRecord:
    """Play one call in virtual time.

    The same scenario, seed, client and options give the same record, byte for byte. Raises UsageError for a client or
    a setting that does not exist, and whatever the agent's own code raises outside its tools.
    """
    check_client(client)
    return run_virtual(take_call(scenario, seed, client, options or Options(), in_memory))


def check_client(client: str) -> None:
    """Raise UsageError for a client that does not exist."""
    if client not in CLIENTS:
        raise UsageError(f"there is no client {client!r}; clients: {', '.join(CLIENTS)}")


Reach: TypeAlias = Callable[[Callable[[], ServerSession], SimulatedLine], AbstractAsyncContextManager[Connector]]
"""How the client of a call reaches the sessions that it is to have, one for each connection."""


class ServerSide(Protocol):
    """The server of one call."""

    @property
    def book(self) -> ServerBook[Any]:
        """What is known of its side of the call."""

    @property
    def longest_session_ms(self) -> Ms | None:
        """How long the client knows its sessions to last; None for its provider's limit."""

    @property
    def shown(self) -> tuple[str, ...]:
        """The behaviors of its model that showed."""

    def reach(self, line: SimulatedLine) -> AbstractAsyncContextManager[Connector]:
        """What reaches it, on this line's clock."""


Serve: TypeAlias = "Callable[[_Place], ServerSide]"
"""Makes the server of each call of a run."""


@asynccontextmanager
async def in_memory(next_session: Callable[[], ServerSession], _line: SimulatedLine) -> AsyncIterator[Connector]:
    """Without a socket."""
    yield MemoryConnector(next_session)


def make_session(
    scenario: Scenario,
    seed: int,
    options: Options,
    model: RulesModel | None = None,
    rng: random.Random | None = None,
) -> ServerSession:
    """A session of the local server that plays the agent of a scenario. Raises UsageError.

    Its chance comes from ``rng``, or from the ``seed``.
    """
    provider = options.agent(load_agent(scenario.agent)).model.provider
    speech = Speech.load(scenario.speech)
    return ServerSession(
        model or _model(scenario, speech),
        speech,
        _ear(scenario.speech, _heard_in(scenario, options), over_phone=_is_telephoned(scenario)),
        rng or stream(seed, "server"),
        ServerSettings.for_dialect(provider, {**scenario.server, **options.server}),
    )


class Taker(Protocol):
    """A client that is not ours, made for a call with agent and line, and ``deps``, ``party``, ``provider`` by name."""

    async def run(self, connector: Connector) -> CallResult:
        """Take the call. Raises ConnectionFailed and LineFailed."""


async def take_call(
    scenario: Scenario,
    seed: int,
    client: str,
    options: Options,
    reach: Reach,
    others: Mapping[str, Callable[..., Taker]] = BASELINES,
) -> CallRecord:
    """Play one call on the running loop, behind the earlier one that its scenario may name.

    ``others`` are the clients beside ours. Raises as ``play`` does, and what the world itself raised behind its back.
    """
    return await take_call_at(scenario, seed, client, options, lambda place: _Ours(place, reach), others)


async def take_call_at(
    scenario: Scenario,
    seed: int,
    client: str,
    options: Options,
    serve: Serve,
    others: Mapping[str, Callable[..., Taker]] = BASELINES,
) -> CallRecord:
    """The same with the server that ``serve`` makes for each call."""
    broken = collect_faults()
    scenario = replace(scenario, callee=options.callee(scenario.callee))
    async with open_backend(options.behind(scenario.behind), seed) as backend:
        place = _Place(scenario, seed, client, options, serve, backend, scenario.behind.party, others)
        if earlier := scenario.behind.earlier:
            call = replace(scenario, caller=earlier.caller, callee=None)
            before = replace(place, scenario=call, seed=seed + EARLIER_SEED)
            await _played_before(replace(before, party=earlier.party or place.party), earlier)
        record, opened_ms = await _played(place)
        await backend.settle()
        record = await _with_books(record, backend, opened_ms)
    if broken:
        raise broken[0]
    return record


@dataclass(frozen=True, slots=True)
class _Place:
    """What a call is played with."""

    scenario: Scenario
    seed: int
    client: str
    options: Options
    serve: Serve
    backend: Backend
    party: str | None
    others: Mapping[str, Callable[..., Taker]]


class _Ours:
    """The local server, with the model that the scenario names."""

    def __init__(self, place: _Place, reach: Reach) -> None:
        scenario, options = place.scenario, place.options
        self._model = model = _model(scenario, Speech.load(scenario.speech))
        self.book = Sessions(lambda rng: make_session(scenario, place.seed, options, model, rng), place.seed)
        self.longest_session_ms = known_limit({**scenario.server, **options.server})
        self.reach = partial(reach, self.book.next)

    @property
    def shown(self) -> tuple[str, ...]:
        """The behaviors of the model that showed."""
        return tuple(name for name in BEHAVIORS if name in self._model.shown)


async def _played_before(place: _Place, earlier: Earlier) -> None:
    """Play the call before, in which our client's process may die, and wait for the next one."""
    wait_ms = earlier.gap_ms
    if earlier.crash is not None and place.client == OURS:
        await place.backend.die_in(_played(place), earlier.crash)
        wait_ms -= earlier.crash.gap_ms
    else:
        await _played(place)
    await asyncio.sleep(wait_ms / 1000)


async def _with_books(record: CallRecord, backend: Backend, opened_ms: Ms) -> CallRecord:
    """A record with what provider and ledger hold in the end; ``opened_ms`` is when its clock began on the loop's."""
    books = await backend.books(opened_ms)
    if books is None:
        return record
    record = replace(record, book=effects(books.book, opened_ms))
    if record.client != OURS:
        return record
    things = {operation.op_id: operation for operation in books.operations}
    owed = [things[row.op_id] for row in books.outbox if row.done_at_ms is None]
    kept = kept_texts(books, record.trace, record.turns, record.history)
    is_over = not await backend.is_busy()
    return replace(
        record,
        unfired=backend.unfired,
        ledger=recorded(books),
        outbox=tuple((each.kind, each.subject, each.slot) for each in owed),
        violations=(*broken_invariants(books, backend.traits, is_over=is_over), *card_numbers(kept)),
    )


async def _played(place: _Place) -> tuple[CallRecord, Ms]:
    """Play one call; its record, with an empty book yet, and when its clock began on the loop's."""
    scenario, options = place.scenario, place.options
    agent = _with_voice(options.agent(load_agent(scenario.agent)), place)
    server = place.serve(place)
    book = server.book
    settings = options.line(scenario.line)
    script = drawn(scenario.caller, place.seed)
    caller = _far_end(place, settings.stream_format.rate_hz) or ScriptedCaller(
        script, scenario.lines, settings.stream_format.rate_hz, book.tool_of
    )
    microphone = _microphone(place, settings)
    line = SimulatedLine(settings.until(scenario.ends_ms), caller, microphone)
    async with server.reach(line) as direct:
        audit = Audit(direct) if options.audit else None
        connector = Network(audit or direct, options.network(scenario.connection), lambda: line.now_ms)
        result = await _taken(place, agent, line, connector, server.longest_session_ms)
    record = CallRecord(
        scenario=scenario.name,
        seed=place.seed,
        client=place.client,
        server=agent.model.provider,
        settings=options.told(),
        trace=result.trace,
        turns=result.turns,
        recording=line.recording,
        history=book.history,
        spoken=book.spoken,
        ear=line.ear,
        caller_lines=caller.lines,
        unspoken=_told(script)[len(script) - len(caller.unspoken) :],
        truncations=book.truncations,
        confirmations=book.confirmations,
        first_audio=book.first_audio,
        unknown=book.unknown,
        session_ready_ms=result.session_ready_ms,
        held_sent_ms=result.held_sent_ms,
        held_lost_ms=result.lost_ms,
        connected_ms=result.connected_ms,
        ended_ms=line.now_ms if line.ended_ms is None else line.ended_ms,
        ended_by=result.ending.by,
        ended_because=result.ending.reason,
        hang_up_tools=tuple(name for name, tool in agent.tools.items() if tool.after is AfterOutput.HANG_UP),
        ai_notice=agent.ai_notice,
        error=_error(result),
        anomalies=result.anomalies,
        effects_expected=scenario.expect.effects,
        action_tools=tuple(name for name, tool in agent.tools.items() if tool.action),
        echo=microphone.canceller.report if microphone and microphone.canceller else None,
        tool_calls_kept=audit.kept if audit else None,
        shown=server.shown,
        far=caller.book if isinstance(caller, FarEnd) else None,
        hold=result.hold,
        result=result.result,
    )
    return record, loop_ms() - line.now_ms


async def _taken(
    place: _Place, agent: Agent, line: SimulatedLine, connector: Connector, longest_session_ms: Ms | None
) -> CallResult:
    """The call as its client takes it."""
    options, backend = place.options, place.backend
    if place.client != OURS:
        make = place.others[place.client]
        other = make(agent, line, deps=backend.deps, party=place.party, provider=backend.provider)
        return await other.run(connector)
    return await run(
        agent,
        line,
        connector=connector,
        can=options.can,
        ledger=backend.ledger,
        deps=backend.deps,
        party=place.party,
        tools_wait=bool(options.tools_wait),
        longest_session_ms=longest_session_ms,
        max_hold_ms=options.max_hold_ms(place.scenario),
    )


def _with_voice(agent: Agent, place: _Place) -> Agent:
    """The agent with this run's voice. Raises UsageError for a baseline, which has none."""
    if place.options.voice is None:
        return agent
    if place.client != OURS:
        raise UsageError(f"the baseline {place.client} has no voice of its own: leave out --voice")
    given = {**place.scenario.server, **place.options.server}
    pause_ms = ServerSettings.for_dialect(agent.model.provider, given).sentence_pause_ms
    return replace(agent, voice=RecordedVoice(Speech.load(place.scenario.speech), pause_ms))


def _model(scenario: Scenario, speech: Speech) -> RulesModel:
    return RulesModel.load(scenario.rules, speech, scenario.rates)


def _far_end(place: _Place, rate_hz: int) -> FarEnd | None:
    """Who is called; None where it is the agent that is."""
    callee = place.scenario.callee
    return FarEnd(callee, place.scenario.lines, rate_hz, stream(place.seed, "callee")) if callee else None


def _is_telephoned(scenario: Scenario) -> bool:
    return scenario.callee is not None and scenario.callee.hiss_dbfs is not None


@cache
def _others() -> Mapping[str, Recording]:
    """What can be heard beside an app's own lines."""
    return together(room_lines(), tones())


@cache
def _ear(directory: Path, others: tuple[str, ...], *, over_phone: bool = False) -> Ear:
    """An ear for an agent's and its callers' lines, and for these of rooms and phone trees.

    With ``over_phone`` it knows all but the agent's as they come over a telephone.
    """
    lines = [*Speech.load(directory).values(), *(_others()[line_id] for line_id in others)]
    return Ear(as_telephoned(line) if over_phone and line.kind != "agent" else line for line in lines)


def _heard_in(scenario: Scenario, options: Options) -> tuple[str, ...]:
    """The lines that are heard beside the agent's and its callers': of a room, and of the tree that is called."""
    earlier = scenario.behind.earlier
    steps = (*scenario.caller, *(earlier.caller if earlier else ()))
    said = {line_id for step in steps for line_id in (step.line_id, *step.or_says) if line_id}
    said |= {*scenario.callee.tree.lines, *tones()} if scenario.callee else set()
    bed = {line.id for line in options.room_of(scenario.room).lines}
    own = Speech.load(scenario.speech)
    return tuple(line_id for line_id in _others() if line_id in bed or (line_id in said and line_id not in own))


def _microphone(place: _Place, line: LineSettings) -> Microphone | None:
    """What the client is sent the caller's voice through; None where that is his voice as it is.

    A sound card that is heard again plays through loudspeakers, another one on headphones. Baselines take either for a
    phone, and have no canceller unless one is asked for.
    """
    room = place.options.room_of(place.scenario.room)
    sound_card = OutputDevice.SPEAKERS if room.echo else OutputDevice.HEADPHONES
    device = sound_card if line.kind is LineKind.SPEAKER and place.client == OURS else OutputDevice.PHONE
    cancels = room.aec.cancels(device)
    if room.is_still and not cancels:
        return None
    return Microphone(room, line.stream_format.rate_hz, stream(place.seed, "room"), cancels=cancels)


def _told(script: Sequence[Step]) -> tuple[str, ...]:
    """Each step by its number and trigger."""
    return tuple(f"step {number} ({step.when})" for number, step in enumerate(script, 1))


def _error(result: CallResult) -> str | None:
    return result.ending.reason if result.ending.is_failure else None

"""Calls in real time: the same scenario, client and server over a real WebSocket on this machine, by the wall clock.

What is decided is the same as in virtual time; when it happens is up to the machine. Several calls are played at the
same time, on one event loop (uvloop's, where it is installed).

A call on a server that is not ours has the same caller, line, room and provider. What that server decides is its own,
and of its side the record has what the wire showed (``elsewhere``).
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from callwright.core.ports import Connector
from callwright.errors import UsageError
from callwright.runtime.connect import connector
from callwright.runtime.endpoint import Endpoint
from callwright.sim.agents import tools_of
from callwright.sim.elsewhere.book import Elsewhere
from callwright.sim.line import SimulatedLine
from callwright.sim.record import CallRecord
from callwright.sim.scenario import Scenario
from callwright.sim.server import ServerSession
from callwright.sim.server.websocket import RealtimeServer
from callwright.sim.world import OURS, Options, check_client, take_call, take_call_at
from callwright.wire.profiles import Profile


def play_live(scenario: Scenario, seed: int, *, client: str = OURS, options: Options | None = None) -> CallRecord:
    """Play one call in real time. Raises as ``play`` does, and ConnectionFailed."""
    return play_side_by_side(scenario, seed, [client], options)[0]


def play_side_by_side(
    scenario: Scenario, seed: int, clients: Sequence[str], options: Options | None = None
) -> list[CallRecord]:
    """Play one call for each of these clients, all at the same time. Raises as ``play_live`` does."""
    for client in clients:
        check_client(client)

    async def play_all() -> list[CallRecord]:
        calls = [take_call(scenario, seed, client, options or Options(), _over_loopback) for client in clients]
        return list(await asyncio.gather(*calls))

    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        return runner.run(play_all())


async def take_elsewhere(
    scenario: Scenario,
    seed: int,
    connector: Connector,
    profile: Profile,
    *,
    client: str = OURS,
    options: Options | None = None,
) -> CallRecord:
    """Take one call on the server that ``connector`` reaches and that speaks this dialect, on the running loop.

    The seed draws what is on the caller's side alone. Raises as ``play_live`` does, ConnectionFailed where the server
    refuses the first connection, and UsageError for settings of the local server, which another one cannot be given.
    """
    check_client(client)
    options = options or Options()
    check_options(options)
    options = replace(options, dialect=profile.name)
    tools = tools_of(scenario.agent)
    return await take_call_at(scenario, seed, client, options, lambda _place: Elsewhere(connector, profile, tools))


def check_options(options: Options) -> None:
    """Raise UsageError for what a run on a server that is not ours cannot change."""
    if options.server:
        names = ", ".join(options.server)
        raise UsageError(f"a server that is not ours takes no settings of the local one: leave out {names}")
    if options.voice is not None:
        raise UsageError("a model that is not ours writes what no line is recorded of: leave out --voice")


@asynccontextmanager
async def _over_loopback(next_session: Callable[[], ServerSession], line: SimulatedLine) -> AsyncIterator[Connector]:
    """A server of its own for one call, on the call's clock."""
    async with RealtimeServer(next_session, now_ms=lambda: line.now_ms, drain_ms=0) as server:
        yield connector(Endpoint(server.url, "local"))


def fastest_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes event loops: uvloop, where it is installed; None for the default."""
    if importlib.util.find_spec("uvloop") is None:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    return factory

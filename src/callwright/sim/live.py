"""Calls in real time: the same scenario, client and server over a real WebSocket on this machine, by the wall clock.

What is decided is the same as in virtual time; when it happens is up to the machine. Several calls are played at the
same time, on one event loop (uvloop's, where it is installed).
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from callwright.core.ports import Connector
from callwright.runtime.connect import connector
from callwright.runtime.endpoint import Endpoint
from callwright.sim.line import SimulatedLine
from callwright.sim.record import CallRecord
from callwright.sim.scenario import Scenario
from callwright.sim.server import ServerSession
from callwright.sim.server.websocket import RealtimeServer
from callwright.sim.world import OURS, Options, check_client, take_call


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

"""The conformance suite of connections, on every connector that there is."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from callwright.core.ports import Connector
from callwright.runtime.endpoint import Endpoint
from callwright.runtime.fast import PicowsConnector
from callwright.runtime.websocket import WebSocketConnector
from callwright.sim.server import MemoryConnector, Peer
from callwright.sim.server.websocket import RealtimeServer
from callwright.testing.connections import Witness, accept, check_connector, check_websocket, frame, raw_server

LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
CONNECTORS = pytest.mark.parametrize("make", [WebSocketConnector, PicowsConnector])


def test_memory() -> None:
    @asynccontextmanager
    async def reach(peer: Peer) -> AsyncIterator[Connector]:
        yield MemoryConnector(lambda: peer)

    asyncio.run(check_connector(reach))


@CONNECTORS
@LOOPS
def test_sockets(make: Callable[[Endpoint], Connector], loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    @asynccontextmanager
    async def reach(peer: Peer) -> AsyncIterator[Connector]:
        async with RealtimeServer(lambda: peer) as server:
            yield make(Endpoint(server.url, "key"))

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(check_connector(reach))


@CONNECTORS
@LOOPS
def test_c156_raw(make: Callable[[Endpoint], Connector], loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(check_websocket(make))


@CONNECTORS
def test_c128_a_message_over_16_mib_ends_the_call_by_name(make: Callable[[Endpoint], Connector]) -> None:
    async def sends(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accept(reader, writer, frame(1, bytes(20_000_000)))
        await reader.read()

    async def meet() -> tuple[int, str]:
        witness = Witness()
        async with raw_server(sends) as url:
            witness.connection = await make(Endpoint(url, "key")).connect(witness)
            end = await witness.ended("a message over 16 MiB ends the connection")
            await witness.connection.close()
            return end

    code, reason = asyncio.run(meet())
    assert code == 1009
    assert reason.startswith("a message of the server is longer than 16777216 bytes (")
    assert "20000000" in reason


@CONNECTORS
def test_whatever_bytes_a_server_sends_the_connection_reports_messages_and_one_end(
    make: Callable[[Endpoint], Connector],
) -> None:
    rng = random.Random(5)
    failures: list[dict[str, Any]] = []

    async def sends(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = frame(1, b"{}", is_last=rng.random() < 0.5) if rng.random() < 0.5 else b""
        await accept(reader, writer, head + rng.randbytes(rng.randrange(1, 300)))
        await writer.drain()

    async def meet(url: str) -> None:
        witness = Witness()
        witness.connection = await make(Endpoint(url, "key")).connect(witness)
        await witness.ended("a connection that breaks ends")
        await witness.connection.close()
        assert len(witness.ends) == 1

    async def meet_all() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failures.append(context))
        async with raw_server(sends) as url:
            await asyncio.gather(*(meet(url) for _ in range(100)))

    asyncio.run(meet_all())
    assert not failures

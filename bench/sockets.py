"""Whether connections leave anything behind, with who opens them or with who takes them.

Run ``python bench/sockets.py [CONNECTIONS]``, 2000 if nothing is said. A local server has a process of its own, a key
and few places. Round by round it is met by clients that bring another key, find no place, knock and leave, vanish in
the handshake, vanish in a session, vanish in the middle of a message, and by whole short calls; over either transport
in turn, where both are installed. Ten times meanwhile both processes tell what they hold (``census.py``). Exits with 1
if either has grown. Ctrl-C ends it, and what was finished is judged.
"""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import itertools
import json
import os
import socket
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.census import Census, head, told
from bench.soak import until_interrupted
from tests.runtime.calls import run
from tests.runtime.test_many_calls import PlainLine

from callwright.cli.plan import ROOTS
from callwright.core.ports import Connector
from callwright.errors import ConnectionFailed
from callwright.runtime.connect import Transport, connector
from callwright.runtime.endpoint import Endpoint
from callwright.sim.scenario import find_scenarios, load_scenario
from callwright.sim.server.websocket import PATH, RealtimeServer
from callwright.sim.world import Options, make_session
from callwright.testing.connections import Witness

KEY: Final = "the-key"
PLACES: Final = 3
ROWS: Final = 10
SETTLES_S: Final = 1.5
"""Longer than a connection's end may take on either side."""
TRANSPORTS: Final[tuple[Transport, ...]] = (
    ("websockets", "picows") if importlib.util.find_spec("picows") else ("websockets",)
)
_VANISHES: Final = struct.pack("ii", 1, 0)
"""A socket with this linger is reset when it is closed."""


# --- the server's process


async def serve() -> None:
    """Print the address, and for each line that is read what this process holds; until there are no more."""
    scenario = load_scenario(find_scenarios(ROOTS)["check-in"])
    seeds = itertools.count(1)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    server = RealtimeServer(
        lambda: make_session(scenario, next(seeds), Options()), key=KEY, sessions_max=PLACES, drain_ms=0
    )
    async with server:
        print(server.url, flush=True)
        while await lines.readline():
            print(json.dumps({"open": server.sessions, **asdict(Census.taken())}), flush=True)


class Server:
    """The server's process, from outside."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self._process = process
        self.url = url
        self.rows: list[Census] = []

    async def tell(self) -> None:
        """Ask what it holds. Raises RuntimeError if a place is taken that should be free."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        answer = json.loads(await self._process.stdout.readline())
        if answer.pop("open"):
            raise RuntimeError("a client is gone, and its place is still taken")
        self.rows.append(Census(**answer))


@asynccontextmanager
async def server_process() -> AsyncIterator[Server]:
    """A server in a process of its own."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, __file__, "--serve", stdin=pipe, stdout=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Server(process, (await process.stdout.readline()).decode().strip())
    finally:
        process.stdin.close()
        await process.wait()


# --- its clients: each says how many connections it took


class Clients:
    """Everybody who comes by one server, over one transport."""

    def __init__(self, url: str, transport: Transport) -> None:
        self._url = url
        self._transport = transport
        self._at = Endpoint(url).host, Endpoint(url).port

    def reach(self, key: str = KEY) -> Connector:
        """What opens connections."""
        return connector(Endpoint(self._url, key), transport=self._transport)

    async def wrong_key(self) -> int:
        """Is refused with 401."""
        await self._refused("another", 401)
        return 1

    async def no_place(self) -> int:
        """Is refused with 429, as all places are taken."""
        taken = [await self.reach().connect(Witness()) for _ in range(PLACES)]
        await self._refused(KEY, 429)
        for connection in taken:
            await connection.close()
        return PLACES + 1

    async def knocks(self) -> int:
        """Connects, and leaves."""
        return await self._raw(b"", answers=False)

    async def vanishes_in_the_handshake(self) -> int:
        """Is gone before its request is whole."""
        return await self._raw(self._request()[:-10], answers=False)

    async def vanishes_in_a_session(self) -> int:
        """Has a session, and is gone without a word."""
        return await self._raw(self._request())

    async def vanishes_in_a_message(self) -> int:
        """Announces a message of 64 kB, sends ten bytes of it, and is gone."""
        return await self._raw(self._request(), b"\x81\xff" + (65_536).to_bytes(8, "big") + bytes(10))

    async def calls(self) -> int:
        """A whole call, whose caller hangs up before he is answered."""
        await run(PlainLine(hang_up_s=0.4), self.reach())
        return 1

    async def _refused(self, key: str, status: int) -> None:
        try:
            await self.reach(key).connect(Witness())
        except ConnectionFailed as problem:
            if problem.status == status:
                return
        raise RuntimeError(f"a client was to be refused with {status}")

    def _request(self) -> bytes:
        host, port = self._at
        key = base64.b64encode(os.urandom(16)).decode()
        lines = (
            f"GET {PATH} HTTP/1.1",
            f"Host: {host}:{port}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
            "User-Agent: sockets",
            f"Authorization: Bearer {KEY}",
        )
        return "\r\n".join((*lines, "", "")).encode()

    async def _raw(self, *says: bytes, answers: bool = True) -> int:
        reader, writer = await asyncio.open_connection(*self._at)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _VANISHES)
        writer.write(says[0])
        if answers:
            await reader.readuntil(b"session.created")
        for more in says[1:]:
            writer.write(more)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        return 1


KINDS: Final[tuple[Callable[[Clients], Awaitable[int]], ...]] = (
    Clients.wrong_key,
    Clients.no_place,
    Clients.knocks,
    Clients.vanishes_in_the_handshake,
    Clients.vanishes_in_a_session,
    Clients.vanishes_in_a_message,
    Clients.calls,
)


async def meet(server: Server, connections: int, rows: list[Census]) -> None:
    """Let so many connections come by, one after the other."""
    clients = [Clients(server.url, transport) for transport in TRANSPORTS]
    count = 0
    for each in itertools.cycle(clients):
        for kind in KINDS:
            count += await kind(each)
        if count >= connections * (len(rows) + 1) // ROWS:
            await asyncio.sleep(SETTLES_S)
            await server.tell()
            rows.append(Census.taken())
            print(server.rows[-1].row("server"), rows[-1].row(f"{count}"), sep="\n", flush=True)
        if count >= connections:
            return


async def main(connections: int) -> int:
    """Print the table and the verdicts."""
    rows: list[Census] = []
    async with server_process() as server:
        print(f"over {' and '.join(TRANSPORTS)}", head("clients"), sep="\n", flush=True)
        with until_interrupted():
            await meet(server, connections, rows)
    return int(not all([told("clients", rows), told("server", server.rows)]))


def started(arguments: Sequence[str]) -> int:
    """Be the server or its clients."""
    if "--serve" in arguments:
        asyncio.run(serve())
        return 0
    return asyncio.run(main(int(arguments[0]) if arguments else 2000))


if __name__ == "__main__":
    sys.exit(started(sys.argv[1:]))

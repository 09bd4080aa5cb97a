"""What every connection to a model must do, as two checks that any implementation can be put through.

```python
await check_connector(reach)                  # over any medium: reach(peer) is a connector to this server, while open
await check_websocket(WebSocketConnector)     # over TCP: against a server that speaks each byte by itself
```

A call relies on this: whole messages in order, whatever their length; one end, with the server's code and reason; and a
`ConnectionFailed` that says what to do, for whatever stands in the way. Raises AssertionError that names the rule.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import socket
import struct
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from callwright.core.ports import Connector, ModelConnection
from callwright.errors import ConnectionFailed
from callwright.ids import Ms
from callwright.runtime.endpoint import MIB, Endpoint
from callwright.sim.server.memory import Peer

Reach: TypeAlias = Callable[[Peer], AbstractAsyncContextManager[Connector]]
Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

KEY: Final = "sk-marker-5e1f"
"""The key of every connection checked; it must turn up in the handshake's header and nowhere else."""
PATIENCE_MS: Final[Ms] = 3000
SIZES: Final = (0, 900_000, 1_100_000, 3_500_000)
_POLL_S: Final = 0.005
_TEXT, _CLOSE, _PING, _PONG = 0x1, 0x8, 0x9, 0xA
_FIN = 0x80


async def check_connector(reach: Reach) -> None:
    """Put connectors that ``reach`` makes for a given server through the rules of every medium."""
    for rule in (_order_is_kept, _long_messages_are_whole, _the_servers_end_is_told, _our_end_is_one_end):
        peer = EchoPeer()
        async with reach(peer) as connector:
            await rule(connector, peer)


async def check_websocket(make: Callable[[Endpoint], Connector]) -> None:
    """Put connectors that ``make`` makes for an endpoint through the rules of a WebSocket."""
    rules = (
        _fragments_make_one_message,
        _a_ping_is_answered,
        _a_message_over_the_limit_ends_it,
        _broken_frames_end_it,
        _a_reset_is_told,
        _a_server_that_does_not_read_ends_it,
        _refusals_say_what_to_do,
        _the_key_is_told_to_nobody,
    )
    for rule in rules:
        await rule(make)


class Witness:
    """A sink that keeps what it is told, and when it was told too much."""

    def __init__(self) -> None:
        self.connection: ModelConnection | None = None
        self.messages: list[bytes] = []
        self.ends: list[tuple[int, str]] = []
        self.early = 0
        """Reports that came before ``connect`` had returned."""
        self.late = 0
        """Reports that came after the end."""

    def on_message(self, message: bytes | str) -> None:
        """Keep a message."""
        self._note()
        self.messages.append(message.encode() if isinstance(message, str) else message)

    def on_closed(self, code: int, reason: str) -> None:
        """Keep an end."""
        self._note()
        self.ends.append((code, reason))

    def _note(self) -> None:
        self.early += self.connection is None
        self.late += bool(self.ends)

    async def expect(self, condition: Callable[[], object], rule: str) -> None:
        """Wait for a condition; it is ``rule`` that is broken when it does not come."""
        for _ in range(round(PATIENCE_MS / 1000 / _POLL_S)):
            if condition():
                return
            await asyncio.sleep(_POLL_S)
        _hold(condition(), f"{rule}: not seen within {PATIENCE_MS} ms; ended: {self.ends}")

    async def ended(self, rule: str) -> tuple[int, str]:
        """Wait for the end, and a little longer for what must not come after it."""
        await self.expect(lambda: self.ends, rule)
        await asyncio.sleep(4 * _POLL_S)
        _hold(not self.early, "nothing is reported before connect has returned")
        _hold(not self.late, f"nothing is reported after the end: {self.ends}")
        return self.ends[0]


class EchoPeer:
    """A server that says ``hello``, and says again what it is told; ``long N`` and ``close CODE REASON`` are orders."""

    def __init__(self) -> None:
        self.closing: tuple[int, str] | None = None
        self.heard: list[bytes] = []
        self.disconnected = 0
        self._says: list[bytes] = []

    def connect(self, now_ms: Ms) -> None:
        """Greet."""
        self._says.append(b"hello")

    def receive(self, data: bytes, now_ms: Ms) -> None:
        """Do what is ordered, or echo."""
        self.heard.append(data)
        order, _, rest = data.decode().partition(" ")
        if order == "long":
            self._says.append(b"x" * int(rest))
        elif order == "close":
            code, _, reason = rest.partition(" ")
            self.closing = (int(code), reason)
        else:
            self._says.append(data)

    def disconnect(self, now_ms: Ms) -> None:
        """Count the ends."""
        self.disconnected += 1

    def tick(self, now_ms: Ms) -> None:
        """Nothing is ever due."""

    def next_deadline_ms(self) -> Ms | None:
        """Nothing is ever due."""
        return None

    def outgoing(self) -> list[bytes]:
        """What is to be said."""
        says, self._says = self._says, []
        return says


def _hold(condition: object, rule: str) -> None:
    if not condition:
        raise AssertionError(rule)


async def _connected(connector: Connector) -> tuple[Witness, ModelConnection]:
    witness = Witness()
    witness.connection = connection = await connector.connect(witness)
    return witness, connection


# --- over any medium


async def _order_is_kept(connector: Connector, peer: EchoPeer) -> None:
    witness, connection = await _connected(connector)
    said = [b"message %d" % number for number in range(500)]
    for message in said:
        connection.send(message)
    await witness.expect(lambda: len(witness.messages) > len(said), "all messages arrive")
    _hold(peer.heard == said, "messages are sent in order, none twice")
    _hold(witness.messages == [b"hello", *said], "messages are reported in order, none twice")
    await connection.close()


async def _long_messages_are_whole(connector: Connector, peer: EchoPeer) -> None:
    witness, connection = await _connected(connector)
    for size in SIZES:
        connection.send(b"long %d" % size)
    await witness.expect(lambda: len(witness.messages) > len(SIZES), f"messages of {SIZES} bytes arrive")
    _hold([len(each) for each in witness.messages[1:]] == list(SIZES), "a long message is reported whole, once")
    connection.send(b"y" * max(SIZES[:2]))
    await witness.expect(lambda: len(witness.messages) > len(SIZES) + 1, "a long message is sent whole")
    await connection.close()


async def _the_servers_end_is_told(connector: Connector, peer: EchoPeer) -> None:
    for code, reason in ((1000, ""), (4408, "nothing received for too long"), (4410, "session_expired")):
        peer.closing = None
        witness, connection = await _connected(connector)
        for number in range(3):
            connection.send(b"message %d" % number)
        connection.send(f"close {code} {reason}".encode())
        connection.send(b"too late")
        end = await witness.ended("the server's end is reported")
        _hold(end == (code, reason), f"the server's code and reason are reported: sent {(code, reason)}, got {end}")
        _hold(len(witness.messages) == 4, "what the server said before its end is reported before it")
        connection.send(b"later")
        await connection.close()
        _hold(len(witness.ends) == 1, "the end is reported once")


async def _our_end_is_one_end(connector: Connector, peer: EchoPeer) -> None:
    witness, connection = await _connected(connector)
    await witness.expect(lambda: witness.messages, "the first message arrives")
    connection.send(b"last")
    await asyncio.gather(connection.close(), connection.close())
    connection.send(b"later")
    await connection.close()
    end = await witness.ended("our own end is reported")
    _hold(end == (1000, ""), f"our own end is reported with 1000: got {end}")
    await witness.expect(lambda: peer.disconnected, "the server learns of our end")
    _hold(peer.heard[-1:] == [b"last"], "what is sent before our end arrives, and nothing after it")


# --- over TCP, against a server that speaks each byte by itself


@asynccontextmanager
async def raw_server(serve: Serve) -> AsyncIterator[str]:
    """A TCP server on this machine, whose every connection is ``serve``'s; its address as ``ws://``."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        jobs.append(asyncio.current_task())
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            writer.transport.abort()
        writer.close()

    jobs: list[asyncio.Task[None] | None] = []
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/realtime"
    finally:
        for listening in server.sockets:  # asyncio never closes what was accepted and has no transport at the close
            asyncio.get_running_loop().remove_reader(listening.fileno())
        await asyncio.sleep(0)
        server.close()
        for job in jobs:
            if job is not None:
                job.cancel()
        await asyncio.gather(*(job for job in jobs if job is not None), return_exceptions=True)


def frame(opcode: int, data: bytes, *, is_last: bool = True) -> bytes:
    """A frame as a server sends it."""
    head = bytes([opcode | (_FIN if is_last else 0)])
    if len(data) < 126:
        return head + bytes([len(data)]) + data
    if len(data) < 1 << 16:
        return head + struct.pack("!BH", 126, len(data)) + data
    return head + struct.pack("!BQ", 127, len(data)) + data


async def read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Opcode and content of a client's next frame."""
    opcode, length = await reader.readexactly(2)
    length &= 0x7F
    if length >= 126:
        extended = await reader.readexactly(2 if length == 126 else 8)
        length = int.from_bytes(extended, "big")
    mask = await reader.readexactly(4)
    data = await reader.readexactly(length)
    return opcode & 0xF, bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))


async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, then: bytes = b"") -> dict[str, str]:
    """Open the WebSocket that a client asks for, ``then`` in the same breath; the client's headers."""
    request = (await reader.readuntil(b"\r\n\r\n")).decode()
    headers = dict(line.lower().split(": ", 1) for line in request.split("\r\n")[1:] if line)
    key = next(line for line in request.split("\r\n") if line.lower().startswith("sec-websocket-key:"))
    digest = hashlib.sha1(key.split(": ", 1)[1].encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    writer.write(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
        + base64.b64encode(digest)
        + b"\r\n\r\n"
        + then
    )
    return headers


@dataclass
class _Sends:
    """A server that opens the WebSocket, sends these bytes at once, and keeps the frames that come back."""

    data: bytes

    def __post_init__(self) -> None:
        self.got: list[tuple[int, bytes]] = []
        self.headers: dict[str, str] = {}

    def is_closed(self) -> bool:
        """Whether the last frame that came is a close."""
        return bool(self.got) and self.got[-1][0] == _CLOSE

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.headers = await accept(reader, writer, self.data)
        while True:
            self.got.append(await read_frame(reader))


Make: TypeAlias = Callable[[Endpoint], Connector]


def _endpoint(url: str, *, message_bytes_max: int = MIB, unsent_bytes_max: int = MIB) -> Endpoint:
    return Endpoint(
        url,
        KEY,
        open_timeout_ms=200,
        close_timeout_ms=50,
        message_bytes_max=message_bytes_max,
        unsent_bytes_max=unsent_bytes_max,
    )


async def _fragments_make_one_message(make: Make) -> None:
    parts = frame(_TEXT, b"one ", is_last=False) + frame(_PING, b"?") + frame(0, b"two ", is_last=False)
    async with raw_server(_Sends(parts + frame(0, b"three") + frame(_TEXT, b"four"))) as url:
        witness, connection = await _connected(make(_endpoint(url)))
        await witness.expect(lambda: len(witness.messages) == 2, "messages come out of fragments")
        _hold(witness.messages == [b"one two three", b"four"], f"fragments make one message: {witness.messages}")
        await connection.close()


async def _a_ping_is_answered(make: Make) -> None:
    server = _Sends(frame(_PING, b"still there?"))
    async with raw_server(server) as url:
        witness, connection = await _connected(make(_endpoint(url)))
        await witness.expect(lambda: (_PONG, b"still there?") in server.got, "a ping is answered with its content")
        _hold(server.headers.get("authorization") == f"bearer {KEY}", "the key is a bearer token")
        _hold("callwright/" in server.headers.get("user-agent", ""), "the client names itself")
        _hold("sec-websocket-extensions" not in server.headers, "no compression is offered")
        await connection.close()
        await witness.expect(lambda: server.got[-1:] == [(_CLOSE, struct.pack("!H", 1000))], "our end has code 1000")
        _hold(witness.ends == [(1000, "")], f"a server that is silent at the end does not hold it up: {witness.ends}")


async def _a_message_over_the_limit_ends_it(make: Make) -> None:
    limit = 1000
    whole = frame(_TEXT, b"x" * (limit + 1))
    in_parts = frame(_TEXT, b"x" * limit, is_last=False) + frame(0, b"x")
    for data in (whole, in_parts):
        server = _Sends(frame(_TEXT, b"x" * limit) + data + frame(_TEXT, b"after"))
        async with raw_server(server) as url:
            witness, connection = await _connected(make(_endpoint(url, message_bytes_max=limit)))
            code, reason = await witness.ended("a message over the limit ends the connection")
            _hold(code == 1009, f"a message over the limit ends it with 1009: got {code}")
            _hold(str(limit) in reason, f"the limit is told: {reason}")
            _hold([len(each) for each in witness.messages] == [limit], "a message at the limit is reported")
            await witness.expect(server.is_closed, "the server is told, too")
            await connection.close()


async def _broken_frames_end_it(make: Make) -> None:
    for data in (b"\xff\xff\xff\xff", frame(0, b"continues nothing"), frame(_CLOSE, b"\x00"), b"\x81\x81abcd!"):
        async with raw_server(_Sends(frame(_TEXT, b"fine") + data)) as url:
            witness, connection = await _connected(make(_endpoint(url)))
            code, reason = await witness.ended("a frame that is none ends the connection")
            _hold(code in (1002, 1006) and "protocol" in reason, f"it is told who broke the protocol: {code} {reason}")
            _hold(witness.messages == [b"fine"], "what came before is reported")
            await connection.close()


async def _a_reset_is_told(make: Make) -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accept(reader, writer, frame(_TEXT, b"fine"))
        await read_frame(reader)
        raw: socket.socket = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async with raw_server(reset) as url:
        witness, connection = await _connected(make(_endpoint(url)))
        connection.send(b"go")
        code, reason = await witness.ended("a reset ends the connection")
        _hold(code == 1006 and reason, f"a reset is told as 1006 with a reason: {code} {reason!r}")
        connection.send(b"later")
        await connection.close()


async def _a_server_that_does_not_read_ends_it(make: Make) -> None:
    is_over = asyncio.Event()

    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accept(reader, writer)
        await is_over.wait()

    async with raw_server(deaf) as url:
        witness, connection = await _connected(make(_endpoint(url, unsent_bytes_max=100_000)))
        for _ in range(400):
            connection.send(b"x" * 100_000)
        _hold(not witness.ends, "nothing is reported from within send")
        code, reason = await witness.ended("a server that does not read ends the connection")
        _hold(code == 1006 and "does not read" in reason, f"it is told that the server does not read: {code} {reason}")
        await connection.close()
        is_over.set()


def answers(status: int, *headers: str) -> Serve:
    """A server that answers every handshake with this status."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = "\r\n".join((f"HTTP/1.1 {status} Status", "Content-Length: 2", *headers))
        writer.write(f"{head}\r\n\r\nno".encode())
        await writer.drain()

    return serve


def says(data: bytes) -> Serve:
    """A server that answers every handshake with these bytes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        await writer.drain()

    return serve


async def _stays_silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.read()


_REFUSALS: Final[tuple[tuple[Serve, str], ...]] = (
    (answers(401), "the key was refused"),
    (answers(403), "User-Agent"),
    (answers(404), "/v1/realtime"),
    (answers(429), "too many sessions"),
    (answers(503), "try again later"),
    (answers(302, "Location: ws://127.0.0.1:1/elsewhere"), "elsewhere"),
    (answers(200), "did not open a WebSocket"),
    (says(b"SSH-2.0-OpenSSH_9.6\r\n\r\n\r\n"), "speaks no WebSocket"),
    (says(b""), "speaks no WebSocket"),
    (_stays_silent, "no answer within 200 ms"),
)
"""Servers that give no session, and what must be said of each."""


async def _failure(make: Make, url: str) -> ConnectionFailed:
    witness = Witness()
    try:
        await make(_endpoint(url)).connect(witness)
    except ConnectionFailed as problem:
        _hold(not witness.messages and not witness.ends, "nothing is reported of a connection that never was")
        return problem
    raise AssertionError("a handshake that is refused raises ConnectionFailed")


async def _refusals_say_what_to_do(make: Make) -> None:
    for serve, advice in _REFUSALS:
        async with raw_server(serve) as url:
            problem = await _failure(make, url)
            _hold(url in str(problem) and advice in str(problem), f"expected {advice!r} and {url}; got: {problem}")
    problem = await _failure(make, url)  # nobody listens there any more
    _hold("cannot connect" in str(problem), f"a refused port is told: {problem}")
    _hold(problem.status is None, f"nobody answered with an HTTP status: {problem.status}")
    for told, seconds in ((("retry-after: 7",), 7), (("Retry-After: 7", "Retry-After: 8"), 7), (("X-Other: 7",), None)):
        async with raw_server(answers(429, *told)) as url:
            problem = await _failure(make, url)
            told_back = problem.status, problem.retry_after_s
            _hold(told_back == (429, seconds), f"expected status 429 and {seconds} s to wait; got: {told_back}")


async def _the_key_is_told_to_nobody(make: Make) -> None:
    told: list[str] = []
    listener = logging.Handler()
    listener.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    root = logging.getLogger()
    before = root.level
    root.addHandler(listener)
    root.setLevel(1)
    try:
        for serve in (answers(401), answers(302, f"Location: ws://127.0.0.1:1/?key={KEY}"), _stays_silent, _Sends(b"")):
            async with raw_server(serve) as url:
                connector = make(_endpoint(f"{url}?api_key={KEY}"))
                told.append(repr(connector))
                try:
                    connection = await connector.connect(Witness())
                except ConnectionFailed as problem:
                    told += traceback.format_exception(problem)
                else:
                    told.append(repr(connection))
                    await connection.close()
    finally:
        root.removeHandler(listener)
        root.setLevel(before)
    leaks = [line for line in told if KEY in line]
    _hold(not leaks, f"the key is in no message, log or repr: {leaks}")


__all__ = ["MIB", "EchoPeer", "Witness", "check_connector", "check_websocket"]

"""The local realtime server behind a real WebSocket: ``ws://HOST:PORT/v1/realtime``.

Each connection gets a session of its own, one timer for the session's deadlines, and one task that sends. What a
client leaves unread is bounded, and so is a message; no compression is offered. The handshake is refused as the live
service refuses it:

=== ==========================================
404 another path
403 no ``User-Agent``
401 a key is asked for, and this is not it
429 as many sessions are open as there may be
=== ==========================================

At the end no new connection is taken, open replies get a while to be finished, and what is open then is closed with
1001. One line for each session goes to the log ``callwright.access``: who, how long, how much, never what.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import math
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import msgspec
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.protocol import State

from callwright.audio.formats import PCM16_24K, AudioFormat, parse_format
from callwright.errors import RemoteProtocolError, UsageError
from callwright.ids import Ms
from callwright.runtime.problems import Whole, kind_and_place
from callwright.sim.loop import loop_ms
from callwright.sim.server.memory import Peer, Restless
from callwright.wire.client import InputAudioBufferAppend
from callwright.wire.codec import ServerDecoder, decode_client
from callwright.wire.objects import Audio, AudioInput, AudioOutput, Session
from callwright.wire.server import ResponseCreated, ResponseDone, ResponseOutputAudioDelta, SessionUpdated

PATH: Final = "/v1/realtime"
MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
UNREAD_BYTES_MAX: Final = 16 * 1024 * 1024
"""A client that leaves more than this unread, four minutes of speech, is dropped."""
GOING_AWAY: Final = (1001, "the server is going away")
FAILED: Final = (1011, "the server failed")
ABNORMAL: Final = 1006
_CLOSE_TIMEOUT_S: Final = 1.0

_access = logging.getLogger("callwright.access")
_log = logging.getLogger(__name__)
_quiet = logging.getLogger(f"{__name__}.frames")
_quiet.setLevel(logging.CRITICAL + 1)  # it would log keys, content, and a traceback for each broken handshake


class RealtimeServer:
    """Serves the sessions that ``session_factory`` makes, inside ``async with``; ``url`` is its address.

    ``port`` 0 takes a free one. Without a ``key`` any is taken. ``now_ms`` is the clock of all sessions; by default the
    running loop's. ``drain_ms`` bounds the wait for open replies at the end. Raises UsageError where it cannot listen.
    """

    def __init__(
        self,
        session_factory: Callable[[], Peer],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        key: str | None = None,
        sessions_max: int | None = None,
        now_ms: Callable[[], Ms] | None = None,
        drain_ms: Ms = 5_000,
    ) -> None:
        self._session_factory = session_factory
        self._host = host
        self._port = port
        self._key = key
        self._sessions_max = math.inf if sessions_max is None else sessions_max
        self._now_ms = now_ms or loop_ms
        self._drain_ms = drain_ms
        self._count = 0
        self._open: dict[ServerConnection, _Served | None] = {}
        """Every connection whose handshake was accepted, and its session once that runs."""
        self._server: Server
        self.url = ""
        """The address of the endpoint, once it is served."""

    @property
    def sessions(self) -> int:
        """How many sessions are open, or about to be."""
        for connection in [each for each, served in self._open.items() if served is None]:
            if connection.protocol.state is State.CLOSED:  # it was gone before its session began
                del self._open[connection]
        return len(self._open)

    async def __aenter__(self) -> RealtimeServer:
        try:
            self._server = await serve(
                self._handle,
                self._host,
                self._port,
                compression=None,
                max_size=MESSAGE_BYTES_MAX,
                close_timeout=_CLOSE_TIMEOUT_S,
                process_request=self._refusal,
                process_response=self._reserve,
                logger=_quiet,
            )
        except OSError as problem:
            told = problem.strerror or problem
            raise UsageError(f"cannot listen on {self._host}, port {self._port}: {told}") from problem
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"ws://{host}:{next(iter(self._server.sockets)).getsockname()[1]}{PATH}"
        return self

    async def __aexit__(self, *_exc: object) -> None:
        """Stop: take nobody new, let open replies be finished, close what is open."""
        self._server.close(close_connections=False)
        served = [each for each in self._open.values() if each is not None]
        try:
            async with asyncio.timeout(self._drain_ms / 1000):
                for each in served:
                    await each.meter.finished()
        except TimeoutError:
            _log.info("open replies are cut: they did not end within %d ms", self._drain_ms)
        await asyncio.gather(*(each.close(*GOING_AWAY) for each in served))
        await self._server.wait_closed()

    def _refusal(self, connection: ServerConnection, request: Request) -> Response | None:
        """Why a handshake is refused; None if it is not."""
        headers = request.headers
        if request.path.partition("?")[0] != PATH:
            return connection.respond(HTTPStatus.NOT_FOUND, f"The only endpoint is {PATH}.\n")
        if "User-Agent" not in headers:
            return connection.respond(HTTPStatus.FORBIDDEN, "A User-Agent header is needed.\n")
        given = " ".join(headers.get_all("Authorization")).encode(errors="surrogateescape")
        if self._key is not None and not hmac.compare_digest(given, f"Bearer {self._key}".encode()):
            return connection.respond(HTTPStatus.UNAUTHORIZED, "The key is missing or wrong.\n")
        if self.sessions >= self._sessions_max:
            return connection.respond(HTTPStatus.TOO_MANY_REQUESTS, "All sessions are in use.\n")
        return None

    def _reserve(self, connection: ServerConnection, _request: Request, response: Response) -> None:
        """An accepted handshake takes its place among the sessions at once."""
        if response.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
            self._open[connection] = None

    async def _handle(self, connection: ServerConnection) -> None:
        self._count += 1
        number, began_ms = self._count, self._now_ms()
        try:
            session = self._session_factory()
        except Exception:
            _log.exception("no session could be made")
            raise
        served = self._open[connection] = _Served(session, connection, self._now_ms)
        try:
            await served.run()
        finally:
            del self._open[connection]
            host, port = connection.remote_address[:2]
            _access.info(
                "session=%d client=%s:%d seconds=%.1f code=%d in_ms=%d out_ms=%d",
                number,
                host,
                port,
                (self._now_ms() - began_ms) / 1000,
                served.code,
                served.meter.in_ms,
                served.meter.out_ms,
            )


class _Served:
    """One connection: its session, the session's timer, and what waits to be sent."""

    def __init__(self, session: Peer, connection: ServerConnection, now_ms: Callable[[], Ms]) -> None:
        self.meter = _Meter()
        self._session = session
        self._connection = connection
        self._now_ms = now_ms
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes] = deque()
        self._unread = 0
        self._has_more = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        if isinstance(session, Restless):
            session.wake = self._pump  # type: ignore[method-assign]

    @property
    def code(self) -> int:
        """How the connection was closed, by whoever closed it first."""
        protocol = self._connection.protocol
        first = protocol.close_rcvd if protocol.close_rcvd_then_sent else protocol.close_sent
        return first.code if first else ABNORMAL

    async def run(self) -> None:
        """Carry messages both ways until the connection is closed."""
        sending = self._loop.create_task(self._send())
        try:
            self._session.connect(self._now_ms())
            self._pump()
            async for message in self._connection:
                data = message.encode() if isinstance(message, str) else bytes(message)
                if self._session.closing is None:
                    self.meter.came(data)
                    self._session.receive(data, self._now_ms())
                    self._pump()
        except ConnectionClosed:
            pass
        except Exception as problem:
            _tell_failed(problem)
            await self.close(*FAILED)
        finally:
            self._session.disconnect(self._now_ms())
            self._set_timer(None)
            self.meter.end()
            sending.cancel()

    async def close(self, code: int, reason: str) -> None:
        """Close the connection; what was not sent is dropped."""
        self._waiting.clear()
        await self._connection.close(code, reason)

    async def _send(self) -> None:
        try:
            while self._session.closing is None or self._waiting:
                await self._has_more.wait()
                self._has_more.clear()
                while self._waiting:
                    message = self._waiting.popleft()
                    await self._connection.send(message.decode())
                    self.meter.sent(message)
                    self._unread -= len(message)
            await self._connection.close(*self._session.closing)
        except ConnectionClosed:
            pass

    def _pump(self) -> None:
        """Take what the session has to say, and set the timer to its next deadline."""
        for message in self._session.outgoing():
            self._waiting.append(message)
            self._unread += len(message)
        self._has_more.set()
        if self._unread > UNREAD_BYTES_MAX:
            _log.info("a client is dropped: it left %d bytes unread", self._unread)
            self._connection.transport.abort()
        self._set_timer(self._session.next_deadline_ms())

    def _set_timer(self, due_ms: Ms | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wait_s = None if due_ms is None else (due_ms - self._now_ms()) / 1000
        self._timer = None if wait_s is None else self._loop.call_later(wait_s, self._on_timer)

    def _on_timer(self) -> None:
        try:
            self._session.tick(self._now_ms())
            self._pump()
        except Exception as problem:
            _tell_failed(problem)
            self._connection.transport.abort()


def _tell_failed(problem: Exception) -> None:
    """Log a mistake of this side; its text may quote what was said."""
    _log.error("a session failed: %s", kind_and_place(problem))
    _log.debug("a session failed\n%s", Whole(problem))


class _Meter:
    """How much audio went both ways, and whether a reply is open."""

    def __init__(self) -> None:
        self.in_ms = 0.0
        self.out_ms = 0.0
        self._in_format = self._out_format = PCM16_24K
        self._decoder = ServerDecoder()
        self._no_reply = asyncio.Event()
        self._no_reply.set()

    def came(self, message: bytes) -> None:
        """A message of the client came in."""
        try:
            event = decode_client(message)
        except RemoteProtocolError:
            return
        if isinstance(event, InputAudioBufferAppend):
            self.in_ms += len(event.audio) / self._in_format.bytes_per_ms

    def sent(self, message: bytes) -> None:
        """A message went out to the client."""
        try:
            event = self._decoder.decode(message)
        except RemoteProtocolError:  # a script may say anything
            return
        match event:
            case ResponseOutputAudioDelta(delta=audio):
                self.out_ms += len(audio) / self._out_format.bytes_per_ms
            case ResponseCreated():
                self._no_reply.clear()
            case ResponseDone():
                self._no_reply.set()
            case SessionUpdated(session=Session(audio=Audio() as audio)):
                self._in_format = _format(audio.input, self._in_format)
                self._out_format = _format(audio.output, self._out_format)

    def end(self) -> None:
        """Nothing goes either way any more."""
        self._no_reply.set()

    async def finished(self) -> None:
        """Wait until no reply is open."""
        await self._no_reply.wait()


def _format(side: AudioInput | AudioOutput | None, otherwise: AudioFormat) -> AudioFormat:
    """The format that a session names for one side."""
    named = side.format if side else None
    return otherwise if named is None else parse_format(msgspec.to_builtins(named))

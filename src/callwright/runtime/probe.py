"""Whether a model can be reached, tried step by step: the first step that fails says where to look.

=========== =================================================================
``HOST``    its name is known, and a port takes a connection there
``TLS``     it speaks TLS, with a certificate that is known here; ``wss`` only
``SESSION`` it lets this key in, and greets with ``session.created``
=========== =================================================================

Address, headers, trust and words are those of a call. The session is closed as soon as the server has greeted, since
connected time is billed; nothing is sent in it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Final

from callwright.errors import ConnectionFailed, RemoteProtocolError
from callwright.ids import Ms
from callwright.runtime.endpoint import Endpoint
from callwright.runtime.websocket import WebSocketConnection
from callwright.wire.codec import ServerDecoder
from callwright.wire.server import ErrorEvent, SessionCreated

_REFUSALS: Final[Mapping[str, str]] = {
    "invalid_api_key": "the key is wrong (invalid_api_key)",
    "insufficient_quota": "the account has no credit left (insufficient_quota)",
    "billing_hard_limit_reached": "the account's spending limit is reached (billing_hard_limit_reached)",
    "account_deactivated": "the account is closed (account_deactivated)",
}


class Step(Enum):
    """What is tried, in this order."""

    HOST = "host"
    TLS = "TLS"
    SESSION = "session"


_SILENT: Final[Mapping[Step, str]] = {
    Step.HOST: "is the host right, and reachable from here?",
    Step.TLS: "is TLS spoken at this port (wss://), or none (ws://)?",
    Step.SESSION: "is this the address of a realtime endpoint?",
}
"""What to ask about a server that does not answer."""


class Probe:
    """Tries one endpoint."""

    def __init__(self, endpoint: Endpoint, *, now_s: Callable[[], float] = time.time) -> None:
        """``now_s`` is the clock that is compared with the server's: seconds since 1970, UTC."""
        self._endpoint = endpoint
        self._now_s = now_s
        self.ahead_s: float | None = None
        """How far the clock is ahead of the server's, to a second; None while no server has told its time."""
        self.connected_ms: Ms = 0
        """How long a session was open."""

    async def take(self, step: Step) -> None:
        """Take one step. Raises ConnectionFailed with the reason and what to do."""
        endpoint = self._endpoint
        try:
            async with asyncio.timeout(endpoint.open_timeout_ms / 1000):
                await _STEPS[step](self)
        except TimeoutError:
            raise endpoint.silent(_SILENT[step]) from None
        except OSError as problem:
            raise endpoint.unreachable(problem) from None

    async def _host(self) -> None:
        await self._connect(is_tls=False)

    async def _tls(self) -> None:
        await self._connect(is_tls=True)

    async def _connect(self, *, is_tls: bool) -> None:
        endpoint = self._endpoint
        _, writer = await asyncio.open_connection(endpoint.host, endpoint.port, ssl=endpoint.tls if is_tls else None)
        writer.transport.abort()

    async def _session(self) -> None:
        endpoint, loop = self._endpoint, asyncio.get_running_loop()
        greeting = _Greeting()
        transport, connection = await loop.create_connection(
            lambda: WebSocketConnection(endpoint, greeting), endpoint.host, endpoint.port, ssl=endpoint.tls
        )
        try:
            try:
                await connection.opened
            finally:
                self._compare_clocks(connection)
            began_s = loop.time()
            connection.begin()
            try:
                self._judge(await greeting.first)
            finally:
                await connection.close()
                self.connected_ms = round((loop.time() - began_s) * 1000)
        finally:
            transport.abort()

    def _compare_clocks(self, connection: WebSocketConnection) -> None:
        told = connection.answer.headers.get_all("Date") if connection.answer else []
        try:
            self.ahead_s = self._now_s() - parsedate_to_datetime("".join(told)).timestamp()
        except (ValueError, OverflowError):  # there is no time in it
            return

    def _judge(self, first: bytes | int) -> None:
        """See that the server greets. What it writes is not told: it may name a part of the key."""
        address = self._endpoint.address
        if isinstance(first, int):
            raise ConnectionFailed(f"{address}: the server closed the session at once, with code {first}")
        try:
            event = ServerDecoder().decode(first)
        except RemoteProtocolError:
            event = None
        if isinstance(event, ErrorEvent):
            code = event.error.code or event.error.type
            why = _REFUSALS.get(code) or (
                code if re.fullmatch("[a-z_]{1,40}", code) else "its reason is not known here"
            )
            raise ConnectionFailed(f"{address}: the server takes the connection and refuses a session: {why}")
        if not isinstance(event, SessionCreated):
            raise ConnectionFailed(
                f"{address}: the server does not greet with session.created; is this a realtime endpoint?"
            )


class _Greeting:
    """A sink that takes the first message, or the code of an end without one."""

    def __init__(self) -> None:
        self.first: asyncio.Future[bytes | int] = asyncio.get_running_loop().create_future()

    def on_message(self, message: bytes | str) -> None:
        self._take(message.encode() if isinstance(message, str) else message)

    def on_closed(self, code: int, reason: str) -> None:
        self._take(code)

    def _take(self, first: bytes | int) -> None:
        if not self.first.done():
            self.first.set_result(first)


_STEPS: Final[Mapping[Step, Callable[[Probe], Awaitable[None]]]] = {
    Step.HOST: Probe._host,
    Step.TLS: Probe._tls,
    Step.SESSION: Probe._session,
}

"""What lies between a client and its model's server: a connection that opens late or not at once, stalls, and breaks.

```
line opens ── opens_after_ms ── connected ── messages ... ──┤ stall: nothing arrives ├── all of it at once ──┤ broken
```

It is laid over any connector, so that it is the same in memory and over a real socket.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from callwright.ids import Ms
from callwright.runtime.endpoint import ABNORMAL, Endpoint

if TYPE_CHECKING:
    from callwright.core.ports import Connector, ModelConnection, ModelSink


class Stall(NamedTuple):
    """Nothing arrives at the client from ``at_ms`` on the call's clock, for ``for_ms``."""

    at_ms: Ms
    for_ms: Ms


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """How the network behaves in one call; by default it does nothing."""

    opens_after_ms: Ms = 0
    """How long the connection takes to open, before the server knows of it."""
    stalls: tuple[Stall, ...] = ()
    """When nothing comes down."""
    drops_at_ms: tuple[Ms, ...] = ()
    """When the connection breaks, on the call's clock: neither side is told why."""
    refuses: tuple[int, ...] = ()
    """The HTTP statuses that the first tries to connect are answered with."""


class Network:
    """A connector that reaches the model through another one, over this network.

    ``now_ms`` is the call's clock. Implements ``callwright.core.ports.Connector``.
    """

    def __init__(self, connector: Connector, settings: NetworkSettings, now_ms: Callable[[], Ms]) -> None:
        self._connector = connector
        self._settings = settings
        self._now_ms = now_ms
        self.tries = 0
        """How often the client asked for a connection."""

    async def connect(self, sink: ModelSink) -> ModelConnection:
        """Connect when it is time. Raises ConnectionFailed as the other connector does, or for a refusal."""
        settings = self._settings
        self.tries += 1
        if settings.opens_after_ms:
            await asyncio.sleep(settings.opens_after_ms / 1000)
        if self.tries <= len(settings.refuses):
            raise Endpoint("ws://simulated").refused(settings.refuses[self.tries - 1])
        if not settings.stalls and not settings.drops_at_ms:
            return await self._connector.connect(sink)
        downlink = _Downlink(sink, settings.stalls, self._now_ms)
        connection = _Connection(await self._connector.connect(downlink), downlink)
        for at_ms in settings.drops_at_ms:
            connection.drop_in(at_ms - self._now_ms())
        return connection


class _Downlink:
    """Hands on what arrives, later where the network stalls; keeps the order."""

    def __init__(self, sink: ModelSink, stalls: tuple[Stall, ...], now_ms: Callable[[], Ms]) -> None:
        self._sink: ModelSink = sink
        self._stalls = stalls
        self._now_ms = now_ms
        self._held: deque[Callable[[], None]] = deque()

    def on_message(self, message: bytes | str) -> None:
        """Take a message of the server."""
        self._pass(partial(self._sink.on_message, message))

    def on_closed(self, code: int, reason: str) -> None:
        """Take the end of the connection."""
        self._pass(partial(self._sink.on_closed, code, reason))

    def drop(self) -> None:
        """Lose what is held, and hold nothing more: the client is gone."""
        self._held.clear()
        self._stalls = ()

    def break_off(self) -> None:
        """The connection broke: lose what is held, and hand on nothing more but that."""
        self.drop()
        sink, self._sink = self._sink, _Nobody()
        sink.on_closed(ABNORMAL, "the connection broke")

    def _pass(self, tell: Callable[[], None]) -> None:
        if self._held:
            self._held.append(tell)
        elif wait_ms := self._wait_ms():
            self._held.append(tell)
            self._release_in(wait_ms)
        else:
            tell()

    def _wait_ms(self) -> Ms:
        """How long what arrives now is held."""
        now_ms = self._now_ms()
        return max((at + length - now_ms for at, length in self._stalls if at <= now_ms < at + length), default=0)

    def _release_in(self, wait_ms: Ms) -> None:
        asyncio.get_running_loop().call_later(wait_ms / 1000, self._release)

    def _release(self) -> None:
        if self._held and (wait_ms := self._wait_ms()):
            self._release_in(wait_ms)
            return
        while self._held:
            self._held.popleft()()


class _Nobody:
    """Takes what still comes over a connection that is broken."""

    def on_message(self, message: bytes | str) -> None:
        """Nobody hears it."""

    def on_closed(self, code: int, reason: str) -> None:
        """Nobody hears it."""


class _Connection:
    """The other connector's connection; what is held when it is closed is lost."""

    def __init__(self, connection: ModelConnection, downlink: _Downlink) -> None:
        self._connection = connection
        self._downlink = downlink
        self._drops: list[asyncio.TimerHandle] = []
        self._closing: asyncio.Task[None] | None = None

    def send(self, message: bytes) -> None:
        """Send a message; nothing arrives over a connection that is broken."""
        if self._closing is None:
            self._connection.send(message)

    def drop_in(self, ms: Ms) -> None:
        """Break in so long; what is past breaks nothing."""
        if ms > 0:
            self._drops.append(asyncio.get_running_loop().call_later(ms / 1000, self._drop))

    async def close(self) -> None:
        """End the connection."""
        self._over()
        self._downlink.drop()
        if self._closing is None:
            await self._connection.close()
        else:
            await self._closing

    def _drop(self) -> None:
        self._over()
        self._downlink.break_off()
        self._closing = asyncio.get_running_loop().create_task(self._connection.close())

    def _over(self) -> None:
        for timer in self._drops:
            timer.cancel()
        self._drops.clear()

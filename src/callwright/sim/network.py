"""What lies between a client and its model's server: a connection that opens late, and stalls of what comes down it.

```
line opens ── opens_after_ms ── connected ── messages ... ──┤ stall: nothing arrives ├── all of it at once ── ...
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


class Network:
    """A connector that reaches the model through another one, over this network.

    ``now_ms`` is the call's clock. Implements ``callwright.core.ports.Connector``.
    """

    def __init__(self, connector: Connector, settings: NetworkSettings, now_ms: Callable[[], Ms]) -> None:
        self._connector = connector
        self._settings = settings
        self._now_ms = now_ms

    async def connect(self, sink: ModelSink) -> ModelConnection:
        """Connect when it is time. Raises ConnectionFailed as the other connector does."""
        if self._settings.opens_after_ms:
            await asyncio.sleep(self._settings.opens_after_ms / 1000)
        if not self._settings.stalls:
            return await self._connector.connect(sink)
        downlink = _Downlink(sink, self._settings.stalls, self._now_ms)
        return _Connection(await self._connector.connect(downlink), downlink)


class _Downlink:
    """Hands on what arrives, later where the network stalls; keeps the order."""

    def __init__(self, sink: ModelSink, stalls: tuple[Stall, ...], now_ms: Callable[[], Ms]) -> None:
        self._sink = sink
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


class _Connection:
    """The other connector's connection; what is held when it is closed is lost."""

    def __init__(self, connection: ModelConnection, downlink: _Downlink) -> None:
        self.send = connection.send
        self._connection = connection
        self._downlink = downlink

    async def close(self) -> None:
        """End the connection."""
        self._downlink.drop()
        await self._connection.close()

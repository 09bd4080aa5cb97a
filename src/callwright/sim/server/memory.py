"""A connection to a server session in the same process, on the running event loop.

One timer carries everything: the session's own deadlines, and what is under way in either direction.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from callwright.ids import Ms

if TYPE_CHECKING:
    from callwright.core.ports import ModelSink


class Peer(Protocol):
    """The server's side of a connection, without I/O."""

    @property
    def closing(self) -> tuple[int, str] | None:
        """Close code and reason, once the session is over."""

    def connect(self, now_ms: Ms) -> None:
        """The connection stands."""

    def receive(self, data: bytes, now_ms: Ms) -> None:
        """A message of the client."""

    def disconnect(self, now_ms: Ms) -> None:
        """The client closed the connection."""

    def tick(self, now_ms: Ms) -> None:
        """Do what is due."""

    def next_deadline_ms(self) -> Ms | None:
        """When ``tick`` is wanted next."""

    def outgoing(self) -> list[bytes]:
        """Messages for the client since the last time."""


class Restless:
    """A `Peer` to which things happen between its messages and its deadlines: it calls ``wake`` to be looked at."""

    @staticmethod
    def wake() -> None:
        """Whoever connects it puts something of its own here."""


class MemoryConnector:
    """Connects to sessions that ``session_factory`` makes, with so much delay either way.

    Implements ``callwright.core.ports.Connector``. ``sessions`` holds every session made, in order.
    """

    def __init__(self, session_factory: Callable[[], Peer], *, up_ms: Ms = 0, down_ms: Ms = 0) -> None:
        self._session_factory = session_factory
        self._up_ms = up_ms
        self._down_ms = down_ms
        self.sessions: list[Peer] = []

    async def connect(self, sink: ModelSink) -> MemoryConnection:
        """A new session, connected."""
        session = self._session_factory()
        self.sessions.append(session)
        return MemoryConnection(session, sink, self)

    def arrival_ms(self, sent_ms: Ms) -> Ms:
        """When a message that the server sends now arrives."""
        return sent_ms + self._down_ms

    def departure_ms(self, sent_ms: Ms) -> Ms:
        """When a message that the client sends now reaches the server."""
        return sent_ms + self._up_ms


class MemoryConnection:
    """One connection; implements ``callwright.core.ports.ModelConnection``."""

    def __init__(self, session: Peer, sink: ModelSink, network: MemoryConnector) -> None:
        self._session = session
        self._sink: ModelSink | None = sink
        self._network = network
        self._loop = asyncio.get_running_loop()
        self._up: deque[tuple[Ms, bytes]] = deque()
        self._down: deque[tuple[Ms, bytes | tuple[int, str]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms: Ms | None = None
        if isinstance(session, Restless):
            session.wake = self._wake  # type: ignore[method-assign]
        session.connect(self._now_ms())
        self._pump()

    def send(self, message: bytes) -> None:
        """Send one message, in order."""
        if self._sink is None:
            return
        now_ms = self._now_ms()
        due_ms = self._network.departure_ms(now_ms)
        if due_ms > now_ms or self._up:
            self._up.append((due_ms, message))
        else:
            self._session.receive(message, now_ms)
        self._pump()

    async def close(self) -> None:
        """End the connection with code 1000; what is under way is lost."""
        if self._sink is not None:
            self._session.disconnect(self._now_ms())
            self._end(1000, "")

    def _now_ms(self) -> Ms:
        return int(self._loop.time() * 1000 + 0.5)

    def _wake(self) -> None:
        if self._sink is not None:
            self._pump()

    def _pump(self) -> None:
        """Take what the session has to say, and set the timer to whatever comes first."""
        now_ms = self._now_ms()
        messages: list[bytes | tuple[int, str]] = list(self._session.outgoing())
        if self._session.closing is not None and not self._is_closing():
            messages.append(self._session.closing)
        for message in messages:
            self._down.append((self._network.arrival_ms(now_ms), message))
        dues = [queue[0][0] for queue in (self._up, self._down) if queue]
        deadline_ms = self._session.next_deadline_ms()
        due_ms = min([*dues, deadline_ms] if deadline_ms is not None else dues, default=None)
        if due_ms == self._timer_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = due_ms
        self._timer = None if due_ms is None else self._loop.call_at(due_ms / 1000, self._on_timer)

    def _is_closing(self) -> bool:
        return bool(self._down) and isinstance(self._down[-1][1], tuple)

    def _on_timer(self) -> None:
        self._timer = self._timer_ms = None
        now_ms = self._now_ms()
        while self._up and self._up[0][0] <= now_ms:
            self._session.receive(self._up.popleft()[1], now_ms)
        self._session.tick(now_ms)
        while self._sink is not None and self._down and self._down[0][0] <= now_ms:
            message = self._down.popleft()[1]
            if isinstance(message, tuple):
                self._end(*message)
            else:
                self._sink.on_message(message)
        if self._sink is not None:
            self._pump()

    def _end(self, code: int, reason: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        sink, self._sink = self._sink, None
        self._up.clear()
        self._down.clear()
        if sink is not None:
            sink.on_closed(code, reason)

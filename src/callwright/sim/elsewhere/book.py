"""The server's side of one call on a server that is not ours: its sessions, and the tap on each connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from callwright.sim.audit import connect_asking
from callwright.sim.elsewhere.placing import pace_of
from callwright.sim.elsewhere.session import WireSession
from callwright.sim.sessions import ServerBook

if TYPE_CHECKING:
    from callwright.audio.formats import AudioFormat
    from callwright.core.ports import Connector, ModelConnection, ModelSink
    from callwright.declare.tools import Tool
    from callwright.ids import ItemId, Ms
    from callwright.sim.line import SimulatedLine
    from callwright.wire.profiles import Profile


class Elsewhere(ServerBook[WireSession]):
    """The server of one call that another ``connector`` reaches, and that speaks this dialect.

    Implements ``callwright.sim.world.ServerSide``.
    """

    longest_session_ms = None
    shown = ()

    def __init__(self, connector: Connector, profile: Profile, tools: Mapping[str, Tool]) -> None:
        """``tools`` are the agent's."""
        super().__init__()
        self._connector = connector
        self._profile = profile
        self.aloud = {name: tool.spoken for name, tool in tools.items()}
        self._line: SimulatedLine
        self._connections: list[_Tapped] = []

    @property
    def book(self) -> Elsewhere:
        """What is known of it."""
        return self

    @asynccontextmanager
    async def reach(self, line: SimulatedLine) -> AsyncIterator[Connector]:
        """Connections on this line's clock; none is left open behind."""
        self._line = line
        line.watch(self._handed)
        try:
            yield self
        finally:
            for connection in self._connections:
                await connection.close()

    async def connect(self, sink: ModelSink) -> ModelConnection:
        """Connect as the other connector does. Raises ConnectionFailed."""
        session = WireSession(self._profile, self)
        connection = _Tapped(await connect_asking(self._connector, sink, session), session)
        self._all.append(session)
        self._connections.append(connection)
        return connection

    def tool_of(self, item_id: ItemId) -> str | None:
        """The tool that the reply with this item called, as far as that has come over the wire."""
        for session in self._all:
            if item_id in session.replies:
                return session.tools.get(session.replies[item_id].response_id)
        return None

    @property
    def first_audio(self) -> None:
        """Nobody tells what the server read."""
        return None

    @property
    def unknown(self) -> tuple[ItemId, ...]:
        """The replies and the caller's turns of which nobody tells what history holds."""
        return tuple(item_id for session in self._all for item_id in session.unknown)

    @property
    def now_ms(self) -> Ms:
        """The clock of its line."""
        return self._line.now_ms

    @property
    def is_over(self) -> bool:
        """Whether the line has ended."""
        return self._line.ended_ms is not None

    @property
    def line_format(self) -> AudioFormat:
        """What the line is handed audio in."""
        return self._line.output_format

    def _handed(self, item_id: ItemId, audio: bytes) -> None:
        for session in self._all:
            session.spoken_by_client(item_id, audio)

    @property
    def pace(self) -> float:
        """How long a letter takes in its whole replies."""
        return pace_of(sound for session in self._all for sound in session.sounds)


class _Tapped:
    """A connection whose messages are read both ways."""

    def __init__(self, connection: ModelConnection, session: WireSession) -> None:
        self._connection = connection
        self._session = session

    def send(self, message: bytes) -> None:
        """Send a message."""
        self._session.sent(message)
        self._connection.send(message)

    async def close(self) -> None:
        """Ask what is still unknown, and end the connection; idempotent."""
        await self._connection.close()
        self._session.closed()

"""The live server that calls reach: where it is, whose key is shown, and whether it let anybody in."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from callwright.cli.server import Server
from callwright.errors import ConnectionFailed
from callwright.runtime.environment import Environment, read_environment
from callwright.wire.profiles import POLYAI

if TYPE_CHECKING:
    from callwright.core.ports import Connector, ModelConnection, ModelSink

NO_ROOM: Final = 429
"""The status of a handshake for which the account has no session left."""


@dataclass(frozen=True, slots=True)
class Live:
    """The server that calls of a plan are to reach; its key is read where a call begins, and kept nowhere."""

    server: Server
    address: str
    """Where it is, as it may be told."""

    @classmethod
    def at(cls, server: Server) -> Live:
        """The server as the environment and ``.env`` have it. Raises UsageError for what keeps every call away."""
        return cls(server, server.endpoint(_environment()).address)

    def door(self) -> Door:
        """What opens connections for one call."""
        return Door(self.server.connector(_environment()), self.address)

    def look(self) -> str:
        """What to do where nobody was let in: which command says more."""
        profile = self.server.profile
        where = profile.name if self.server.url is None else self.address
        whose = f" --dialect {profile.name}" if self.server.url and profile.name != POLYAI.name else ""
        return f"callwright check --server {where}{whose} looks closer"

    def advice(self) -> str:
        """What to do about a key that was refused."""
        profile, environment, told = self.server.profile, _environment(), self.look()
        if environment.is_hidden(profile.key_env):
            return f"the environment's {profile.key_env} hides another one in {environment.path}; {told}"
        source = environment.source(profile.key_env)
        return f"{profile.key_env} is from {source}; {told}" if source else f"{profile.key_env} is not set; {told}"


def _environment() -> Environment:
    return read_environment(Path())


class Door:
    """A connector for one call. Where the server has no room for its first session, the call is not begun at all.

    Later ones, after a lost connection or for a second call of the same caller, are tried again as in production.
    """

    def __init__(self, connector: Connector, address: str) -> None:
        self._connector = connector
        self._address = address
        self._was_open = False
        self.refusal: ConnectionFailed | None = None
        """Why nobody was let in; None once somebody was."""

    async def connect(self, sink: ModelSink) -> ModelConnection:
        """Connect as the other does. Raises ConnectionFailed."""
        try:
            connection = await self._connector.connect(sink)
        except ConnectionFailed as problem:
            if not self._was_open:
                self.refusal = problem
                problem.is_final |= problem.status == NO_ROOM
            raise
        except asyncio.CancelledError:
            if not self._was_open:
                self.refusal = ConnectionFailed(f"{self._address}: no answer until the call was over; is it reachable?")
            raise
        self._was_open, self.refusal = True, None
        return connection

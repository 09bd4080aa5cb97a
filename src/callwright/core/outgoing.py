"""What a session asks for: its commands in order, and the requests to the model's server by id.

A request carries an id that is made here by counting, so that a refusal can be tied to what asked for it. After the
model is lost nothing more is asked of it.
"""

from __future__ import annotations

from callwright.core.commands import Command, NoteAnomaly, Request
from callwright.core.plan import Can
from callwright.ids import EventId

OPEN_REQUESTS_MAX = 64
"""How many of the latest requests are remembered."""


class Outgoing:
    """The commands of one call that the shell has not fetched yet."""

    def __init__(self, can: Can) -> None:
        """``can`` is what the model's server can be asked to do."""
        self.can = can
        self._commands: list[Command] = []
        self._open: dict[EventId, Request] = {}
        self._count = 0
        self._is_model_there = True

    def add(self, *commands: Command) -> None:
        """Ask for these, in order."""
        self._commands += commands

    def note(self, what: str, quoted: str = "") -> None:
        """Put something out of order on record, and what the server said of it."""
        self._commands.append(NoteAnomaly(what, quoted))

    def next_id(self) -> EventId:
        """An id that no earlier request had."""
        self._count += 1
        return EventId(f"cw_{self._count}")

    def request(self, request: Request) -> None:
        """Ask something of the model's server, unless it is gone."""
        if not self._is_model_there:
            return
        self._commands.append(request)
        self._open[request.event_id] = request
        if len(self._open) > OPEN_REQUESTS_MAX:
            del self._open[next(iter(self._open))]

    def refused(self, event_id: EventId | None) -> Request | None:
        """The request that a refusal names, once; None where it names none that is remembered."""
        return self._open.pop(event_id, None) if event_id else None

    def model_lost(self) -> None:
        """The model's connection ended: it can be asked for nothing more."""
        self._is_model_there = False
        self.can = Can(0)

    def fetch(self) -> list[Command]:
        """The commands so far; they are not given again."""
        commands, self._commands = self._commands, []
        return commands

"""What a session asks for: its commands in order, and the requests to the model's server by id.

A request carries an id that is made here by counting, so that a refusal can be tied to what asked for it. Between two
sessions notes wait for the next one, outputs are kept for its history, and nothing else is asked; after the model is
lost nothing is.
"""

from __future__ import annotations

import json
from enum import Enum, auto

from callwright.core.commands import Command, ConfigureSession, NoteAnomaly, PostFacts, PostToolOutput, Request
from callwright.core.plan import Can
from callwright.ids import EventId, ToolCallId

OPEN_REQUESTS_MAX = 64
"""How many of the latest requests are remembered."""


class _Model(Enum):
    THERE = auto()
    AWAY = auto()
    """Between two sessions."""
    GONE = auto()


class Outgoing:
    """The commands of one call that the shell has not fetched yet."""

    def __init__(self, can: Can) -> None:
        """``can`` is what the model's server can be asked to do."""
        self._can = can
        self.outputs: dict[ToolCallId, PostToolOutput] = {}
        """What the tool calls were answered with."""
        self.uncarried: dict[ToolCallId, str] = {}
        """The tools whose calls the present session does not know: it is told their outputs as notes."""
        self._waiting: list[Request] = []
        """Notes for the next session."""
        self._commands: list[Command] = []
        self._open: dict[EventId, Request] = {}
        self._count = 0
        self._model = _Model.THERE

    @property
    def can(self) -> Can:
        """What the model's server can be asked to do now."""
        return self._can if self._model is _Model.THERE else Can(0)

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
        """Ask something of the model's server, as far as there is one."""
        if isinstance(request, PostToolOutput):
            self.outputs[request.tool_call_id] = request
            if (tool := self.uncarried.pop(request.tool_call_id, None)) is not None:
                request = PostFacts(request.event_id, json.dumps({"tool": tool, "output": request.output}))
        match self._model:
            case _Model.AWAY if isinstance(request, PostFacts):
                self._waiting.append(request)
            case _Model.AWAY if isinstance(request, ConfigureSession):
                self._send(request)
            case _Model.THERE:
                self._send(request)

    def _send(self, request: Request) -> None:
        self._commands.append(request)
        self._open[request.event_id] = request
        if len(self._open) > OPEN_REQUESTS_MAX:
            del self._open[next(iter(self._open))]

    def refused(self, event_id: EventId | None) -> Request | None:
        """The request that a refusal names, once; None where it names none that is remembered."""
        return self._open.pop(event_id, None) if event_id else None

    def model_lost(self) -> None:
        """The model's connection ended: it can be asked for nothing more."""
        self._model = _Model.GONE

    def session_lost(self) -> None:
        """The session ended: nobody answers what was asked of it, and another one is opened."""
        self._model = _Model.AWAY
        self._open.clear()

    def session_back(self) -> list[Request]:
        """Another session can be asked; the notes that have waited for it."""
        self._model = _Model.THERE
        waiting, self._waiting = self._waiting, []
        return waiting

    def fetch(self) -> list[Command]:
        """The commands so far; they are not given again."""
        commands, self._commands = self._commands, []
        return commands

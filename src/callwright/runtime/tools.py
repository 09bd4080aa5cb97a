"""Runs the tools of one call, beside its audio and never in its way.

Every started tool ends in one ``ToolFinished``, whatever happens to it. The text for the model says what went wrong
in general; what exactly is for the log, as an exception may quote anything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Generic

import msgspec

from callwright.core.commands import StartTool
from callwright.core.events import ToolFinished, ToolOutcome
from callwright.declare.tools import Context, Deps, Tool

_log = logging.getLogger(__name__)


class ToolRunner(Generic[Deps]):
    """Runs tools as tasks and reports their ends."""

    def __init__(
        self, tools: Mapping[str, Tool], *, deps: Deps, party: str | None, finished: Callable[[ToolFinished], None]
    ) -> None:
        self._tools = tools
        self._deps = deps
        self._party = party
        self._finished = finished
        self._running: dict[asyncio.Task[tuple[ToolOutcome, str]], None] = {}

    def start(self, command: StartTool) -> None:
        """Begin to run a tool; its end is reported to ``finished`` later, never from here."""
        task = asyncio.get_running_loop().create_task(self._outcome(command), name=f"tool {command.name}")
        self._running[task] = None
        task.add_done_callback(lambda done: self._ended(command, done))

    async def close(self) -> None:
        """Cancel what still runs and wait for it; each is reported as cancelled."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _ended(self, command: StartTool, task: asyncio.Task[tuple[ToolOutcome, str]]) -> None:
        """Report an end: from the task's own end, since a task that is stopped before its first step never runs."""
        del self._running[task]
        stopped = ToolOutcome.CANCELLED, _problem("the tool was stopped before it was through")
        outcome, output = stopped if task.cancelled() else task.result()
        self._finished(ToolFinished(command.tool_call_id, outcome, output))

    async def _outcome(self, command: StartTool) -> tuple[ToolOutcome, str]:
        tool = self._tools[command.name]
        try:
            arguments = msgspec.json.decode(command.arguments or "{}", type=tool.arguments)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
            return ToolOutcome.RAISED, _problem(f"the arguments do not fit the tool: {problem}")
        context = Context(self._deps, self._party, command.tool_call_id)
        try:
            async with asyncio.timeout(tool.timeout_ms / 1000):
                result = await tool.function(context, **msgspec.structs.asdict(arguments))
            return ToolOutcome.RETURNED, _text(result)
        except TimeoutError:
            return ToolOutcome.TIMED_OUT, _problem("the tool took too long; whether it worked is not known")
        except Exception as problem:  # a user's tool may raise anything; the caller must still get an answer
            _log.exception("tool %s raised", command.name)
            return ToolOutcome.RAISED, _problem(f"the tool failed ({type(problem).__name__})")


def _text(result: object) -> str:
    if isinstance(result, str):
        result.encode()  # a half of a surrogate pair can't be sent
        return result
    return msgspec.json.encode(result).decode()


def _problem(what: str) -> str:
    return msgspec.json.encode({"error": what}).decode()

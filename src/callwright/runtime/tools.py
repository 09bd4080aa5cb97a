"""Runs the tools of one call, beside its audio and never in its way.

Every started tool ends in one ``ToolFinished``, whatever happens to it. The text for the model says what went wrong
in general, and so does the log: an exception may quote anything, so the whole of it is told at ``DEBUG`` only, without
card numbers.

An action's function is run as any other, in the same patience; what it plans goes to the ledger then, and is no longer
this runner's to stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Generator, Mapping
from typing import Any, Final, Generic

import msgspec

from callwright.core.commands import StartTool
from callwright.core.events import ToolFinished, ToolOutcome
from callwright.declare.actions import Terms
from callwright.declare.tools import Context, Deps, Grounded, KeypadView, Tool
from callwright.errors import Refuse, UsageError
from callwright.ids import Ms
from callwright.runtime.actions import Actions, Output
from callwright.runtime.answers import not_asked, refused_by_the_app
from callwright.runtime.problems import Whole, kind_and_place

STANDSTILL_MS: Final[Ms] = 200
"""A tool that holds the event loop up for so long is named: ten frames of the caller wait meanwhile."""

STOP_MS: Final[Ms] = 1_000
"""How long a tool that is stopped may take to end."""

_log = logging.getLogger(__name__)


def _problem(what: str) -> str:
    return msgspec.json.encode({"error": what}).decode()


_TOO_LONG: Final = _problem("the tool took too long; whether it worked is not known")
_STOPPED: Final = _problem("the tool was stopped before it was through")
_UNPLANNED: Final = "it could not be planned in time"


class ToolRunner(Generic[Deps]):
    """Runs tools as tasks and reports their ends; ``note`` is told of what a tool did to the call."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        *,
        deps: Deps,
        party: str | None,
        finished: Callable[[ToolFinished], None],
        note: Callable[[str], None],
        actions: Actions | None = None,
        keypad: KeypadView | None = None,
    ) -> None:
        self._tools = tools
        self.actions = actions
        """The way to the ledger; None in a call without one."""
        self._keypad = keypad
        self._deps = deps
        self._party = party
        self._finished = finished
        self._note = note
        self._running: dict[asyncio.Task[Output], tuple[StartTool, asyncio.TimerHandle]] = {}
        """Tools whose ends have not been reported, with the timers that end their patience."""

    def start(self, command: StartTool) -> None:
        """Begin to run a tool; its end is reported to ``finished`` later, never from here."""
        loop = asyncio.get_running_loop()
        timed = _Timed(self._outcome(command), loop.time, lambda ms: self._stood_still(command.name, ms))
        task = loop.create_task(timed, name=f"tool {command.name}")
        patience_s = self._tools[command.name].timeout_ms / 1000
        self._running[task] = command, loop.call_later(patience_s, self._out_of_time, task)
        task.add_done_callback(self._ended)

    async def close(self) -> None:
        """Cancel what still runs and wait for it, at most ``STOP_MS``; each is reported as cancelled."""
        running = list(self._running)
        for task in running:
            task.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_MS / 1000):
                await asyncio.shield(asyncio.gather(*running, return_exceptions=True))
        for task in [task for task in running if task in self._running]:
            name = self._running[task][0].name
            self._note(f"tool {name} does not stop when it is cancelled; it was left running")
            self._report(task, Output(ToolOutcome.CANCELLED, _STOPPED))

    def _stood_still(self, name: str, ms: Ms) -> None:
        what = f"the event loop stood still for {ms} ms while tool {name} ran; run blocking work with asyncio.to_thread"
        _log.warning("%s", what)
        self._note(what)

    def _ended(self, task: asyncio.Task[Output]) -> None:
        """Report an end: from the task's own end, since a task that is stopped before its first step never runs."""
        if task.cancelled():
            self._report(task, Output(ToolOutcome.CANCELLED, _STOPPED))
        elif problem := task.exception():
            raised = type(problem).__name__
            self._report(task, Output(ToolOutcome.RAISED, _problem(f"the tool failed ({raised})"), raised=raised))
        else:
            self._report(task, task.result())

    def _out_of_time(self, task: asyncio.Task[Output]) -> None:
        """Do not wait for a tool any longer, whether or not it lets itself be stopped."""
        is_action = self._tools[self._running[task][0].name].action is not None
        self._report(task, Output(ToolOutcome.TIMED_OUT, not_asked(_UNPLANNED) if is_action else _TOO_LONG))
        task.cancel()

    def _report(self, task: asyncio.Task[Output], end: Output) -> None:
        if task in self._running:
            command, timer = self._running.pop(task)
            timer.cancel()
            self._finished(ToolFinished(command.tool_call_id, *end))

    async def _outcome(self, command: StartTool) -> Output:
        tool = self._tools[command.name]
        try:
            arguments = tool.read(command.arguments)
        except UsageError as problem:
            return Output(ToolOutcome.RAISED, _problem(str(problem)), raised=type(problem).__name__)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
            what = f"the arguments do not fit the tool: {problem}"
            return Output(ToolOutcome.RAISED, _problem(what), raised=type(problem).__name__)
        context = Context(self._deps, self._party, command.tool_call_id, self.actions, self._keypad)
        is_action = tool.action is not None
        try:
            result = await tool.function(context, **arguments)
            if tool.action is None:
                return _told(tool, result)
            if isinstance(result, Refuse):
                raise result
            if not isinstance(result, Terms):
                raise TypeError(f"an action returns callwright.Terms, not {type(result).__name__}")
            if self.actions is None:
                raise UsageError("this call has no ledger")
        except Refuse as refusal:
            if is_action:
                return Output(ToolOutcome.RETURNED, refused_by_the_app(str(refusal)))
            return Output(ToolOutcome.RAISED, _problem(str(refusal)), raised=type(refusal).__name__)
        except TimeoutError:
            return Output(ToolOutcome.TIMED_OUT, not_asked(_UNPLANNED) if is_action else _TOO_LONG)
        except Exception as problem:  # a user's tool may raise anything; the caller must still get an answer
            _log.error("tool %s raised %s", command.name, kind_and_place(problem))
            _log.debug("tool %s raised\n%s", command.name, Whole(problem))
            raised = type(problem).__name__
            what = f"the tool failed ({raised})"
            return Output(ToolOutcome.RAISED, not_asked(what) if is_action else _problem(what), raised=raised)
        if not self._is_planned_in_time():
            raise asyncio.CancelledError
        return await self.actions.ask(tool, tool.action, result)

    def _is_planned_in_time(self) -> bool:
        """Whether the present tool's end is still waited for; its patience was the function's, and ends here."""
        task = asyncio.current_task()
        if task not in self._running:
            return False
        self._running[task][1].cancel()
        return True


class _Timed(Coroutine[Any, Any, Output]):
    """The coroutine of a tool, with a watch on how long each of its steps keeps everything else waiting."""

    def __init__(
        self, tool: Coroutine[Any, Any, Output], now_s: Callable[[], float], stood_still: Callable[[Ms], None]
    ) -> None:
        self.cr_await = tool  # where a waiting task is looked for
        self._now_s = now_s
        self._stood_still = stood_still

    def __await__(self) -> Generator[Any, Any, Output]:
        return self.cr_await.__await__()

    def send(self, value: Any) -> Any:
        """Take the next step."""
        return self._step(self.cr_await.send, value)

    def throw(self, *problem: Any) -> Any:
        """Take the next step with an exception, as when the task is cancelled."""
        return self._step(self.cr_await.throw, *problem)

    def close(self) -> None:
        """End it where it is."""
        self.cr_await.close()

    def _step(self, step: Callable[..., Any], *given: Any) -> Any:
        began_s = self._now_s()
        try:
            return step(*given)
        finally:
            took_ms = round((self._now_s() - began_s) * 1000)
            if took_ms >= STANDSTILL_MS:
                self._stood_still(took_ms)


def _told(tool: Tool, result: object) -> Output:
    """What the model is told of a tool that reads."""
    if not isinstance(result, Grounded):
        return Output(ToolOutcome.RETURNED, _text(result))
    if not tool.is_grounded:
        raise TypeError("a tool that returns callwright.Grounded is annotated to")
    knowledge = _text(result.knowledge) if result.knowledge else ""
    return Output(ToolOutcome.RETURNED, _text(result.facts), knowledge=knowledge)


def _text(result: object) -> str:
    if isinstance(result, str):
        result.encode()  # a half of a surrogate pair can't be sent
        return result
    return msgspec.json.encode(result).decode()

"""The model's tool calls: each is dispatched at most once and gets exactly one output, whatever happened to it.

Owns which call is running, which has been answered, and when a reply to the outputs may be wished for. Does not
own asking for it (``turns``) or running the tool.

```
model    calls A, calls B, response ended
tools        A ▓▓▓▓│output A        B ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│output B
wish                                                  └─ one reply to both, if the caller has not moved on
```

One call is announced in several wire events; its id makes it one. A call that first shows in a response that was
cut already is not dispatched: its output says so. The outputs of one response share one wish; a slow tool holds
the wish back for ``SLOW_TOOL_MS`` and then gets a wish of its own.

A call that ends the conversation is answered with what became of the goodbye, not with what its function returned:
its output is withheld until then, and where the goodbye is withdrawn early it is answered before its function is
through.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto

from callwright.core.table import Table
from callwright.ids import Ms, ResponseId, ToolCallId

SLOW_TOOL_MS: Ms = 3_000
"""How long a finished tool waits for the others of its response before it is spoken about alone."""


class CallState(Enum):
    """How far a tool call has come."""

    CALLED = auto()
    """The model asked for it."""
    RUNNING = auto()
    """It was handed to the tool runner."""
    WITHHELD = auto()
    """It is through; its output waits for what becomes of the goodbye."""
    OUTLIVED = auto()
    """Its one output was posted while it runs."""
    ANSWERED = auto()
    """Its one output was posted."""


class Cue(Enum):
    """What happens to a tool call."""

    DISPATCHED = auto()
    REFUSED = auto()
    FINISHED = auto()
    WITHHELD = auto()
    """It ended, and its output has to wait."""
    SETTLED = auto()
    """It is known what became of the goodbye."""


TOOL_CALLS: Table[CallState, Cue] = Table(
    "toolcalls",
    CallState.CALLED,
    {
        (CallState.CALLED, Cue.DISPATCHED): CallState.RUNNING,
        (CallState.CALLED, Cue.REFUSED): CallState.ANSWERED,
        (CallState.RUNNING, Cue.FINISHED): CallState.ANSWERED,
        (CallState.RUNNING, Cue.WITHHELD): CallState.WITHHELD,
        (CallState.RUNNING, Cue.SETTLED): CallState.OUTLIVED,
        (CallState.WITHHELD, Cue.SETTLED): CallState.ANSWERED,
        (CallState.OUTLIVED, Cue.FINISHED): CallState.ANSWERED,
    },
)


class AfterOutput(StrEnum):
    """What a tool's output is followed by."""

    REPLY = auto()
    """The agent speaks about it."""
    SILENCE = auto()
    """Nothing: the tool was the answer (waiting, pressing keys)."""
    HANG_UP = auto()
    """The end of the call, once the goodbye that the tool speaks has been heard."""


class Verdict(Enum):
    """What is to be done with a call that the model announced."""

    DISPATCH = auto()
    REPEAT = auto()
    """It was announced before; nothing is to be done."""
    UNKNOWN = auto()
    """No such tool: an output says so."""
    STALE = auto()
    """Its response was cut before: an output says that it was not run."""


@dataclass(slots=True)
class _Call:
    name: str
    response_id: ResponseId
    after: AfterOutput
    caller_turns: int
    """How many turns the caller had begun when it was called."""
    state: CallState = TOOL_CALLS.start


@dataclass(slots=True)
class _Batch:
    """The calls of one response that wait to be spoken about together."""

    caller_turns: int
    deadline_ms: Ms


class ToolCalls:
    """The tool calls of one call."""

    def __init__(self, tools: Mapping[str, AfterOutput]) -> None:
        self._tools = tools
        self._calls: dict[ToolCallId, _Call] = {}
        self._batches: dict[ResponseId, _Batch] = {}

    def called(
        self, tool_call_id: ToolCallId, response_id: ResponseId, name: str, *, is_cut: bool, caller_turns: int
    ) -> Verdict:
        """Take note of an announced call; ``is_cut`` says that its response was cut before."""
        if tool_call_id in self._calls:
            return Verdict.REPEAT
        known = name in self._tools
        call = _Call(name, response_id, self._tools.get(name, AfterOutput.REPLY), caller_turns)
        self._calls[tool_call_id] = call
        call.state = TOOL_CALLS.after(call.state, Cue.DISPATCHED if known and not is_cut else Cue.REFUSED)
        if is_cut:
            call.after = AfterOutput.SILENCE
            return Verdict.STALE
        if call.after is AfterOutput.SILENCE:
            self._keep_waiting(caller_turns)
        return Verdict.DISPATCH if known else Verdict.UNKNOWN

    def finished(self, tool_call_id: ToolCallId, *, speaks: bool | None = None) -> bool:
        """A running tool ended; true if its output is to be posted now. Raises IllegalTransition for a second end.

        ``speaks`` decides what its output is followed by (None: as declared), unless it ends the call. Raises KeyError
        for a call that was never announced.
        """
        call = self._calls[tool_call_id]
        if speaks is not None and call.after is not AfterOutput.HANG_UP:
            call.after = AfterOutput.REPLY if speaks else AfterOutput.SILENCE
        is_running = call.state is CallState.RUNNING
        is_withheld = is_running and call.after is AfterOutput.HANG_UP
        call.state = TOOL_CALLS.after(call.state, Cue.WITHHELD if is_withheld else Cue.FINISHED)
        return is_running and not is_withheld

    def names(self) -> tuple[str, ...]:
        """The declared tools."""
        return tuple(self._tools)

    def name_of(self, tool_call_id: ToolCallId) -> str:
        """Which tool a call is of. Raises KeyError for a call that was never announced."""
        return self._calls[tool_call_id].name

    def settle(self) -> list[tuple[ToolCallId, str]]:
        """It is known what became of the goodbye: the calls to be answered with it now, in order, with their tools."""
        calls = [(call_id, call) for call_id, call in self._calls.items() if self._is_held(call)]
        for _, call in calls:
            call.state = TOOL_CALLS.after(call.state, Cue.SETTLED)
        return [(call_id, call.name) for call_id, call in calls]

    def answered(self, tool_call_id: ToolCallId, now_ms: Ms) -> None:
        """The output of a call was posted: it is due to be spoken about, alone or with the rest of its response."""
        call = self._calls[tool_call_id]
        if call.after is AfterOutput.REPLY:
            self._batches.setdefault(call.response_id, _Batch(call.caller_turns, now_ms + SLOW_TOOL_MS))

    def take_due(self, open_response: ResponseId | None, caller_turns: int, now_ms: Ms) -> bool:
        """Whether a reply to posted outputs is to be wished for now; each batch is due once.

        A batch is due when its response is closed (an open one may still call) and none of its tools runs, or when
        it has waited long enough. If the caller has begun a turn since the call (``caller_turns``) that was answered
        otherwise than with silence, the outputs wait in history and no reply is wished for.
        """
        if not self._batches:
            return False
        due = [
            response_id
            for response_id, batch in self._batches.items()
            if now_ms >= batch.deadline_ms or (response_id != open_response and not self._is_running(response_id))
        ]
        batches = [self._batches.pop(response_id) for response_id in due]
        return any(batch.caller_turns == caller_turns for batch in batches)

    def next_deadline_ms(self) -> Ms | None:
        """When a finished tool stops waiting for a slow one."""
        return min(batch.deadline_ms for batch in self._batches.values()) if self._batches else None

    def unanswered(self) -> tuple[ToolCallId, ...]:
        """Calls whose tools are still running."""
        return tuple(call_id for call_id, call in self._calls.items() if call.state is CallState.RUNNING)

    def is_any_running(self, names: Container[str]) -> bool:
        """Whether one of these tools is still running."""
        return any(self._calls[call_id].name in names for call_id in self.unanswered())

    def what_runs(self) -> list[str]:
        """The tools that are still running, each with its call's id."""
        return [f"{self._calls[call_id].name} ({call_id})" for call_id in self.unanswered()]

    def after(self, tool_call_id: ToolCallId) -> AfterOutput:
        """What this call's output is followed by."""
        return self._calls[tool_call_id].after

    def _keep_waiting(self, caller_turns: int) -> None:
        """The caller's latest turn is answered with silence: he has not moved on from what was called before it."""
        waiting: list[_Call | _Batch] = [*self._calls.values(), *self._batches.values()]
        for each in waiting:
            if each.caller_turns == caller_turns - 1:
                each.caller_turns = caller_turns

    @staticmethod
    def _is_held(call: _Call) -> bool:
        return call.after is AfterOutput.HANG_UP and call.state in (CallState.RUNNING, CallState.WITHHELD)

    def _is_running(self, response_id: ResponseId) -> bool:
        return any(call.response_id == response_id and call.state is CallState.RUNNING for call in self._calls.values())

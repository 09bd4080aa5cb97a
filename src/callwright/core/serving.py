"""Where tool calls meet the rest of the call: each is started or refused, answered, and spoken about.

``toolcalls`` says what is to be done with a call and when its output is due. Here the model's announcement becomes a
command, the tool's end becomes the one output, and a call that ends the conversation begins the goodbye.
"""

from __future__ import annotations

import json

from callwright.core.asking import Asking
from callwright.core.commands import PostToolOutput, StartTool
from callwright.core.events import ToolCalled, ToolFinished, ToolOutcome
from callwright.core.goodbye import Withdrawal
from callwright.core.keeping import Keeping
from callwright.core.leave import Leave
from callwright.core.outgoing import Outgoing
from callwright.core.playout import Playout
from callwright.core.toolcalls import AfterOutput, ToolCalls, Verdict
from callwright.core.turns import SPEAKING, Turns
from callwright.ids import Ms, ToolCallId


class Serving:
    """The service of one call's tools."""

    def __init__(
        self,
        tools: ToolCalls,
        turns: Turns,
        playout: Playout,
        leave: Leave,
        asking: Asking,
        keeping: Keeping,
        out: Outgoing,
    ) -> None:
        """All of these are the session's; it goes on using them."""
        self._tools = tools
        self._turns = turns
        self._playout = playout
        self._leave = leave
        self._asking = asking
        self._keeping = keeping
        self._out = out

    def called(self, event: ToolCalled, now_ms: Ms) -> None:
        """The model announced a call."""
        self._asking.telling.called(event.response_id)
        self._asking.lull.called(event.response_id)
        self._asking.stalls.moved(now_ms)
        self._keeping.tool_called(event.name)
        verdict = self._tools.called(
            event.tool_call_id,
            event.response_id,
            event.name,
            is_cut=self._playout.is_cut(event.response_id),
            caller_turns=self._turns.caller_turns,
        )
        match verdict:
            case Verdict.DISPATCH:
                self._out.add(StartTool(event.tool_call_id, event.name, event.arguments))
                after = self._tools.after(event.tool_call_id)
                self._asking.hold.called(event.response_id, event.name, after)
                if after is AfterOutput.HANG_UP:
                    self._leave.begin(event, now_ms)
                    if self._turns.floor in SPEAKING:
                        self._leave.withdraw(Withdrawal.TALKED_OVER, now_ms)
            case Verdict.UNKNOWN:
                names = ", ".join(self._tools.names()) or "none"
                self._refuse(event, f"there is no tool {event.name!r}; tools: {names}", now_ms)
            case Verdict.STALE:
                self._refuse(event, "not run: the caller spoke first", now_ms)
            case Verdict.REPEAT:
                pass

    def finished(self, event: ToolFinished, now_ms: Ms, *, is_over: bool) -> None:
        """A tool has ended; after the call's end (``is_over``) that is news to nobody.

        Raises IllegalTransition for one that ends twice, and KeyError for one that was never called.
        """
        declared = self._tools.after(event.tool_call_id)
        is_due = self._tools.finished(event.tool_call_id, speaks=event.speaks)
        if is_over:
            return
        if event.outcome is not ToolOutcome.RETURNED:
            name, what = self._tools.name_of(event.tool_call_id), event.outcome.replace("_", " ")
            self._out.note(f"tool {name} {what} {event.raised}".rstrip())
        after = self._tools.after(event.tool_call_id)
        if event.outcome is ToolOutcome.RETURNED:
            self._asking.hold.tool_returned(event.tool_call_id, declared, now_ms)
        if is_due:
            self._post(event.tool_call_id, event.output, now_ms, event.knowledge)
            if self._leave.goodbye.is_pending and after is AfterOutput.REPLY:
                self._asking.want()
        elif after is AfterOutput.HANG_UP:
            self._leave.explained(event)

    def _refuse(self, event: ToolCalled, problem: str, now_ms: Ms) -> None:
        self._post(event.tool_call_id, json.dumps({"error": problem}), now_ms)

    def _post(self, tool_call_id: ToolCallId, output: str, now_ms: Ms, knowledge: str = "") -> None:
        self._out.request(PostToolOutput(self._out.next_id(), tool_call_id, output, knowledge))
        self._tools.answered(tool_call_id, now_ms)

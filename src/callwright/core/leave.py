"""Where the goodbye meets the rest of the call: the tools that ask for it, the line that plays it, the model's history.

``goodbye`` says when the end is due. Here its surroundings are looked at for it, the farewell is stopped where nobody
is to hear the rest, and every end call is answered with what became of it.
"""

from __future__ import annotations

from collections.abc import Callable

from callwright.core.commands import PostToolOutput, UnwatchCaller, WatchCaller
from callwright.core.cuts import Cuts
from callwright.core.events import ResponseStatus, ToolCalled, ToolFinished, ToolOutcome
from callwright.core.goodbye import CALL_IS_OVER, FAREWELLS_MAX, Fate, Goodbye, Scene, Withdrawal, call_is_open
from callwright.core.keys import Keys
from callwright.core.lull import Lull
from callwright.core.outgoing import Outgoing
from callwright.core.plan import Ending
from callwright.core.playout import Playout
from callwright.core.toolcalls import ToolCalls
from callwright.ids import Ms, ResponseId


class Leave:
    """How one call is left by the agent."""

    def __init__(
        self, goodbye: Goodbye, lull: Lull, tools: ToolCalls, playout: Playout, keys: Keys, cuts: Cuts, out: Outgoing
    ) -> None:
        """All of these are the session's; it goes on using them."""
        self.goodbye = goodbye
        self.end_call: ToolCalled | None = None
        """The call of a tool that ends, or has ended, the call; None while none does."""
        self._lull = lull
        self._tools = tools
        self._playout = playout
        self._keys = keys
        self._cuts = cuts
        self._out = out

    def talked_over(self, response_id: ResponseId | None, now_ms: Ms) -> None:
        """The caller speaks, or the server stopped this response: nothing of it is played on, a farewell no more."""
        cuts = self._cuts.silence(response_id, now_ms)
        self._cuts.shorten(cuts, now_ms)
        self.stop()
        if not self.goodbye.stands(sum(cut.received_ms - cut.heard_ms for cut in cuts)):
            self.withdraw(Withdrawal.TALKED_OVER, now_ms)
        elif self.goodbye.is_pending:
            self._out.note(f"somebody speaks at the end of {FAREWELLS_MAX} farewells in a row: the last one stands")
            self.goodbye.talked_over(now_ms)

    def begin(self, event: ToolCalled, now_ms: Ms) -> None:
        """The model called a tool that ends the call; its function is being run."""
        self.end_call = event
        said_ms = self._playout.received_ms(event.response_id)
        ending = Ending("agent", f"{event.name} has not returned")
        self._lull.leaves()
        if self.goodbye.request(event.response_id, ending, now_ms, said_ms=said_ms):
            self._out.add(WatchCaller())

    def explained(self, event: ToolFinished) -> None:
        """The function of an end call is through: what it returned is the reason for the log."""
        if self.goodbye.is_pending:
            is_returned = event.outcome is ToolOutcome.RETURNED
            self.goodbye.explained(event.output if is_returned else f"the end call {event.outcome.replace('_', ' ')}")

    def stop(self) -> None:
        """The rest of the farewell is not to be heard, whatever still comes of it."""
        if self.goodbye.is_pending and self.goodbye.response_id is not None:
            self._playout.refuse(self.goodbye.response_id)
            self.goodbye.stopped()

    def response_ended(self, response_id: ResponseId, status: ResponseStatus, now_ms: Ms) -> None:
        """A response closed, and with it a farewell may have been cut."""
        if self.goodbye.response_ended(response_id, status):
            self.withdraw(Withdrawal.TALKED_OVER, now_ms)

    def withdraw(self, why: Withdrawal, now_ms: Ms) -> None:
        """The call goes on, and the model is told so. No effect while nothing is pending."""
        if self.goodbye.is_pending:
            self.goodbye.withdraw(now_ms)
            self.end_call = None
            self._lull.taken_back()
            self._out.add(UnwatchCaller())
            self._settle(lambda tool: call_is_open(why, tool), now_ms)

    def call_is_over(self, now_ms: Ms) -> None:
        """The call has ended, by whomever: end calls that wait are answered."""
        self.goodbye.call_is_over(now_ms)
        self._settle(lambda _tool: CALL_IS_OVER, now_ms)

    def model_lost(self, ending: Ending, *, is_cut_short: bool) -> None:
        """The model's connection ended in the goodbye: the call ends by that if it cut the farewell short."""
        self._out.add(UnwatchCaller())
        self._out.note(f"{ending.reason}; the goodbye is played as far as it came")
        self.goodbye.model_gone(is_all=not self._cuts.own_voice.is_used)
        if is_cut_short:
            self.goodbye.ending = ending

    def ending(self, now_ms: Ms, *, is_open: bool, is_model_there: bool, owed: int) -> Ending | None:
        """Look whether the call has come to its end.

        ``is_open`` says that a response is open, ``owed`` how many operations the caller is not through with.
        """
        if not self.goodbye.is_pending:
            return None
        running = self._tools.what_runs()
        scene = Scene(
            is_open=is_open,
            is_busy=self._playout.is_busy() or self._keys.is_out,
            played_ms=self._playout.confirmed_ms() + self._keys.pressed_ms,
            at_ear_ms=self._cuts.at_ear_ms(),
            report_due_ms=max(self._playout.report_due_ms(), self._keys.next_deadline_ms() or 0),
            outstanding=len(running) + owed if is_model_there else 0,
        )
        fate = self.goodbye.look(scene, now_ms)
        if fate is None:
            return None
        if fate is Fate.UNCONFIRMED:
            what = "model did not end the response that says" if is_open else "line did not tell that it has played the"
            self._out.note(f"hung up unconfirmed: the {what} goodbye")
        if running:
            self._out.note(f"hung up while this still ran: {', '.join(running)}")
        if owed:
            self._out.note(f"hung up while the caller was owed the outcome of {owed} action{'s' if owed > 1 else ''}")
        return self.goodbye.ending

    def _settle(self, output: Callable[[str], str], now_ms: Ms) -> None:
        for tool_call_id, tool in self._tools.settle():
            self._out.request(PostToolOutput(self._out.next_id(), tool_call_id, output(tool)))
            self._tools.answered(tool_call_id, now_ms)

"""One call: what happens goes in with its time, what is to be done comes out.

```
session.handle(event, now_ms)        mutates; never raises for what a server or a line may do
for command in session.commands():   drain after every handle, in order, without waiting in between
session.next_deadline_ms()           arm one timer; when it fires, handle(TimerFired(), now_ms)
```

The session joins the machines of this room and holds no rule of its own beyond the joints:

- the caller begins a turn, or a response ends cancelled: playout is cut, the line cleared first; each item that
  lost something is truncated to what was played and then retrieved, without waiting for either answer;
- an item played out, or its cut answered: the transcript knows what was heard;
- a tool call is dispatched when announced; its output is posted at once and spoken about when the floor is free.

What a server or a line does out of order is noted and survived. What this side does wrongly raises.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Flag, auto
from typing import Any

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.heard import HeardRecord, Truncate, Turn
from callwright.core.pickup import SESSION_PATIENCE_MS, Pickup, Stage
from callwright.core.pickup import Cue as PickupCue
from callwright.core.playout import Cut, Playout
from callwright.core.ports import PlayedReports
from callwright.core.toolcalls import AfterOutput, ToolCalls, Verdict
from callwright.core.turns import Turns
from callwright.errors import IllegalTransition
from callwright.ids import EventId, Ms, ResponseId, ToolCallId

OPEN_REQUESTS_MAX = 64
"""How many of the latest requests are remembered, to tie a refusal to what asked for it."""

JUST_ENDED_MAX = 4
"""How many items can be under way to the ear at once; a fixed lag is shorter than so many replies."""


class Can(Flag):
    """What the model's server can be asked to do."""

    TRUNCATE = auto()
    RETRIEVE = auto()
    CANCEL = auto()


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What is fixed before a call begins."""

    output_rate_hz: int
    """Rate of the model's audio."""
    reports: PlayedReports
    """How the line tells what it played."""
    can: Can
    tools: Mapping[str, AfterOutput]
    """The declared tools, by name."""
    latency_ms: Ms = 0
    """How long what the line played is under way to the ear, as the line reports it."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a call ended: ``by`` is ``caller``, ``agent``, ``model`` or ``fault``."""

    by: str
    reason: str

    @property
    def is_failure(self) -> bool:
        """Whether the call broke off rather than ended."""
        return self.by in ("model", "fault")


_Handler = Callable[[Any, Ms], None]

_COUNTS_AFTER_THE_END = on.ItemPlaced | on.CallerTranscribed | on.ReplyWritten | on.ToolFinished
"""What still belongs in the record of a call that is over; whatever else comes then is passed over."""


class Session:
    """The state of one call."""

    def __init__(self, plan: CallPlan) -> None:
        self.plan = plan
        self.ending: Ending | None = None
        self.pickup = Pickup()
        self.turns = Turns()
        self.playout = Playout(rate_hz=plan.output_rate_hz, reports=plan.reports)
        self.heard = HeardRecord()
        self.tools = ToolCalls(plan.tools)
        self._commands: list[do.Command] = []
        self._requests: dict[EventId, do.Command] = {}
        self._request_count = 0
        self._just_ended: deque[tuple[Cut, Ms]] = deque(maxlen=JUST_ENDED_MAX)
        """Items that played out or were cut last, with the instants: their ends may still be under way to the ear."""
        self._asked: EventId | None = None
        """The latest request for a reply: the refusal of an earlier one brings no wish back."""
        self._handlers: Mapping[type, _Handler] = {
            on.ModelConnected: self._model_connected,
            on.SessionReady: self._session_ready,
            on.FormatMismatched: self._format_mismatched,
            on.SpeechStarted: self._speech_started,
            on.SpeechStopped: self._speech_stopped,
            on.ItemPlaced: self._item_placed,
            on.CallerTranscribed: self._caller_transcribed,
            on.ResponseStarted: self._response_started,
            on.AudioReceived: self._audio_received,
            on.ReplyWritten: self._reply_written,
            on.ToolCalled: self._tool_called,
            on.ResponseEnded: self._response_ended,
            on.ItemRetrieved: self._item_retrieved,
            on.ItemTruncated: self._item_truncated,
            on.RequestRefused: self._request_refused,
            on.ModelClosed: self._model_closed,
            on.LineOpened: lambda _event, now_ms: self.pickup.line_opened(now_ms),
            on.LinePlayed: self._line_played,
            on.MarkReturned: self._mark_returned,
            on.LineClosed: self._line_closed,
            on.ToolFinished: self._tool_finished,
            on.InterruptRequested: self._interrupt_requested,
            on.HangUpRequested: self._hang_up_requested,
            on.TimerFired: self._timer_fired,
        }

    def handle(self, event: on.Event, now_ms: Ms) -> None:
        """Take one event; drain ``commands()`` next.

        Raises IllegalTransition or KeyError for an event of the app that makes no sense (a tool that ends twice);
        anything that a server or a line does out of order is noted instead.
        """
        if self.pickup.stage is Stage.OVER and not isinstance(event, _COUNTS_AFTER_THE_END):
            return
        try:
            self._handlers[type(event)](event, now_ms)
        except IllegalTransition as problem:
            if isinstance(event, on.AppEvent):
                raise
            self._commands.append(do.NoteAnomaly(f"{type(event).__name__}: {problem}"))
        self._join(now_ms)

    def commands(self) -> list[do.Command]:
        """What is to be done now, in order; empties the queue."""
        commands, self._commands = self._commands, []
        return commands

    def next_deadline_ms(self) -> Ms | None:
        """The one instant at which ``TimerFired`` is wanted; None for never."""
        if self.pickup.stage is Stage.OVER:
            return None
        earliest_ms: Ms | None = None
        for machine in (self.pickup, self.turns, self.playout, self.heard, self.tools):
            deadline_ms = machine.next_deadline_ms()
            if deadline_ms is not None and (earliest_ms is None or deadline_ms < earliest_ms):
                earliest_ms = deadline_ms
        return earliest_ms

    def transcript(self) -> tuple[Turn, ...]:
        """The turns so far, in the conversation's order."""
        return self.heard.turns()

    # --- the model -------------------------------------------------------------------------------------------

    def _model_connected(self, _event: on.ModelConnected, _now_ms: Ms) -> None:
        self.pickup.move(PickupCue.CONNECTED)
        self._request(do.ConfigureSession(self._next_id()))

    def _session_ready(self, _event: on.SessionReady, _now_ms: Ms) -> None:
        was = self.pickup.stage
        self.pickup.move(PickupCue.ACCEPTED)
        if was is Stage.CONFIGURING:
            self._commands.append(do.OpenUplink())

    def _format_mismatched(self, event: on.FormatMismatched, now_ms: Ms) -> None:
        ending = Ending("fault", f"the session's {event.field} is {event.got}, agreed was {event.wanted}")
        self._end(PickupCue.ENDED, ending, now_ms, do.CloseModel("wrong format"), do.HangUp("wrong format"))

    def _speech_started(self, event: on.SpeechStarted, now_ms: Ms) -> None:
        self._cut(self.turns.response_id, now_ms)
        self.heard.caller_turn(event.item_id)
        self.turns.speech_started()

    def _speech_stopped(self, _event: on.SpeechStopped, now_ms: Ms) -> None:
        self.turns.speech_stopped(now_ms)

    def _item_placed(self, event: on.ItemPlaced, _now_ms: Ms) -> None:
        self.heard.placed(event.item_id, event.after)

    def _caller_transcribed(self, event: on.CallerTranscribed, _now_ms: Ms) -> None:
        self.heard.caller_turn(event.item_id, event.text)

    def _response_started(self, event: on.ResponseStarted, now_ms: Ms) -> None:
        unended = self.turns.response_id
        if unended is not None and unended != event.response_id:
            self._note(f"response {event.response_id} began, so {unended} has ended without a word")
            self.turns.response_ended(unended, now_ms)
            self._commands += self.playout.superseded(unended)
        self.turns.response_started(event.response_id)

    def _audio_received(self, event: on.AudioReceived, now_ms: Ms) -> None:
        commands = self.playout.audio(event.response_id, event.item_id, event.samples, now_ms)
        if commands:
            self.heard.reply(event.item_id)
            self._commands += commands

    def _reply_written(self, event: on.ReplyWritten, _now_ms: Ms) -> None:
        self.heard.reply(event.item_id, event.text)

    def _tool_called(self, event: on.ToolCalled, now_ms: Ms) -> None:
        verdict = self.tools.called(
            event.tool_call_id,
            event.response_id,
            event.name,
            is_cut=self.playout.is_cut(event.response_id),
            caller_turns=self.turns.caller_turns,
        )
        match verdict:
            case Verdict.DISPATCH:
                self._commands.append(do.StartTool(event.tool_call_id, event.name, event.arguments))
            case Verdict.UNKNOWN:
                names = ", ".join(self.plan.tools) or "none"
                self._post(event.tool_call_id, _error_text(f"there is no tool {event.name!r}; tools: {names}"), now_ms)
            case Verdict.STALE:
                self._post(event.tool_call_id, _error_text("not run: the caller spoke first"), now_ms)
            case Verdict.REPEAT:
                pass

    def _response_ended(self, event: on.ResponseEnded, now_ms: Ms) -> None:
        is_ours = event.response_id == self.turns.response_id or self.playout.is_live(event.response_id)
        if event.status is on.ResponseStatus.CANCELLED and is_ours and not self.playout.is_cut(event.response_id):
            self._cut(event.response_id, now_ms)
        self._commands += self.playout.response_ended(event.response_id)
        self.turns.response_ended(event.response_id, now_ms)
        if event.status in (on.ResponseStatus.FAILED, on.ResponseStatus.INCOMPLETE):
            self._note(f"response {event.response_id} {event.status}: {event.reason or 'no reason given'}")

    def _item_retrieved(self, event: on.ItemRetrieved, _now_ms: Ms) -> None:
        self.heard.retrieved(event.item_id, event.text, is_cut=event.is_cut)

    def _item_truncated(self, event: on.ItemTruncated, _now_ms: Ms) -> None:
        self.heard.truncated(event.item_id, Truncate.CONFIRMED)

    def _request_refused(self, event: on.RequestRefused, now_ms: Ms) -> None:
        request = self._requests.pop(event.event_id, None) if event.event_id else None
        match request:
            case do.RequestReply() if request.event_id == self._asked:
                self.turns.refused()
            case do.TruncateItem():
                self.heard.truncated(request.item_id, Truncate.REFUSED)
            case do.RetrieveItem():
                self.heard.give_up(request.item_id)
            case do.ConfigureSession():
                self._refused_configuration(event, now_ms)
            case None if self.pickup.stage is Stage.CONFIGURING:
                self._refused_configuration(event, now_ms)
        what = type(request).__name__ if request else "an unnamed request"
        self._note(f"{what} refused: {event.code}: {event.message}")

    def _refused_configuration(self, event: on.RequestRefused, now_ms: Ms) -> None:
        field = f" (field {event.field})" if event.field else ""
        ending = Ending("fault", f"session.update refused: {event.code}: {event.message}{field}")
        self._end(PickupCue.REFUSED, ending, now_ms, do.CloseModel("refused"), do.HangUp("session refused"))

    def _model_closed(self, event: on.ModelClosed, now_ms: Ms) -> None:
        ending = Ending("model", f"connection closed: {event.code} {event.reason}".rstrip())
        self._end(PickupCue.ENDED, ending, now_ms, do.HangUp("model closed"))

    # --- the line --------------------------------------------------------------------------------------------

    def _line_played(self, event: on.LinePlayed, _now_ms: Ms) -> None:
        self.playout.played(event.item_id, event.generation, event.played_ms)

    def _mark_returned(self, event: on.MarkReturned, now_ms: Ms) -> None:
        self.playout.mark_returned(event.mark_id, now_ms)

    def _line_closed(self, event: on.LineClosed, now_ms: Ms) -> None:
        self._end(PickupCue.ENDED, Ending(event.by, event.reason), now_ms, do.CloseModel("line closed"))

    # --- the tools and the app -------------------------------------------------------------------------------

    def _tool_finished(self, event: on.ToolFinished, now_ms: Ms) -> None:
        self.tools.finished(event.tool_call_id)
        if self.pickup.stage is not Stage.OVER:
            if event.outcome is not on.ToolOutcome.RETURNED:
                self._note(f"tool call {event.tool_call_id} {event.outcome.replace('_', ' ')}")
            self._post(event.tool_call_id, event.output, now_ms)

    def _interrupt_requested(self, _event: on.InterruptRequested, now_ms: Ms) -> None:
        response_id = self.turns.response_id
        is_new = response_id is not None and not self.playout.is_cut(response_id)
        cuts = self._silence(response_id, now_ms)
        if response_id is not None and is_new and Can.CANCEL in self.plan.can:
            self._request(do.CancelResponse(self._next_id(), response_id))
        self._shorten(cuts, now_ms)

    def _hang_up_requested(self, event: on.HangUpRequested, now_ms: Ms) -> None:
        ending = Ending("agent", event.reason)
        self._end(PickupCue.ENDED, ending, now_ms, do.HangUp(event.reason), do.CloseModel("hung up"))

    def _timer_fired(self, _event: on.TimerFired, now_ms: Ms) -> None:
        if self.pickup.is_late(now_ms):
            what = "connect" if self.pickup.stage is Stage.CONNECTING else "answer session.update"
            ending = Ending("fault", f"the model's server did not {what} within {SESSION_PATIENCE_MS // 1000} s")
            self._end(PickupCue.ENDED, ending, now_ms, do.CloseModel("too late"), do.HangUp("no session"))
            return
        if self.turns.timer(now_ms):
            self._note("a reply that was due has not begun")
        self.playout.timer(now_ms)
        for item_id in self.heard.timer(now_ms):
            self._note(f"no answer about cut item {item_id}; its heard text is an estimate")

    # --- the joints ------------------------------------------------------------------------------------------

    def _cut(self, open_response: ResponseId | None, now_ms: Ms) -> None:
        self._shorten(self._silence(open_response, now_ms), now_ms)

    def _silence(self, open_response: ResponseId | None, now_ms: Ms) -> list[Cut]:
        commands, cuts = self.playout.cut(open_response, now_ms)
        self._commands += commands
        return cuts

    def _shorten(self, cuts: list[Cut], now_ms: Ms) -> None:
        for cut in cuts:
            self.heard.cut(cut, now_ms)
            self._just_ended.append((cut, now_ms))
            if Can.TRUNCATE in self.plan.can:
                self._request(do.TruncateItem(self._next_id(), cut.item_id, cut.heard_ms))
            else:
                self.heard.truncated(cut.item_id, Truncate.REFUSED)
            if Can.RETRIEVE in self.plan.can:
                self._request(do.RetrieveItem(self._next_id(), cut.item_id))
            else:
                self.heard.give_up(cut.item_id)

    def _join(self, now_ms: Ms) -> None:
        for item_id in self.playout.take_played_out():
            played_ms = self.playout.position_ms(item_id, now_ms)
            self.heard.played_out(item_id, played_ms)
            self._just_ended.append((Cut(item_id, played_ms, played_ms, is_complete=True), now_ms))
        if self.tools.take_due(self.turns.response_id, self.turns.caller_turns, now_ms):
            self.turns.want_reply()
        if self.pickup.stage is Stage.READY and self.turns.may_ask():
            self.turns.asked(now_ms)
            self._asked = self._next_id()
            self._request(do.RequestReply(self._asked))

    def _end(self, cue: PickupCue, ending: Ending, now_ms: Ms, *commands: do.Command) -> None:
        self.pickup.move(cue)
        self.ending = ending
        self._commands += commands
        _, cuts = self.playout.cut(self.turns.response_id, now_ms)
        for cut, ended_ms in self._just_ended:
            under_way_ms = self.plan.latency_ms - (now_ms - ended_ms)
            if under_way_ms > 0:
                self.heard.lost(_shorter_by(under_way_ms, cut))
        for cut in cuts:
            self.heard.lost(_shorter_by(self.plan.latency_ms, cut))
        self.heard.give_up_all()

    def _post(self, tool_call_id: ToolCallId, output: str, now_ms: Ms) -> None:
        self._request(do.PostToolOutput(self._next_id(), tool_call_id, output))
        self.tools.answered(tool_call_id, now_ms)

    def _note(self, what: str) -> None:
        self._commands.append(do.NoteAnomaly(what))

    def _next_id(self) -> EventId:
        self._request_count += 1
        return EventId(f"cw_{self._request_count}")

    def _request(self, command: do.Request) -> None:
        self._commands.append(command)
        self._requests[command.event_id] = command
        if len(self._requests) > OPEN_REQUESTS_MAX:
            del self._requests[next(iter(self._requests))]


def _shorter_by(ms: Ms, cut: Cut) -> Cut:
    return replace(cut, heard_ms=max(0, cut.heard_ms - ms))


def _error_text(problem: str) -> str:
    return json.dumps({"error": problem})

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
- a tool call is dispatched when announced; its output is posted at once and spoken about when the floor is free;
- a notice was heard, or the caller objects to being recorded: what is kept of the call's words follows from that;
- a call of a tool that hangs up begins the goodbye: the line ends when it was played and nothing is left to tell, and
  the caller who talks over it, or a result that comes during it, takes it back.

What a server or a line does out of order is noted and survived. What this side does wrongly raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from callwright.claims.murmurs import says_nothing
from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.asking import Asking
from callwright.core.cuts import Cuts
from callwright.core.goodbye import Goodbye, Withdrawal
from callwright.core.handover import Handover
from callwright.core.heard import HeardRecord, Truncate
from callwright.core.hold import Hold, HoldSummary, has_words
from callwright.core.keeping import Keeping
from callwright.core.keys import Keys
from callwright.core.leave import Leave
from callwright.core.longturns import LongTurns
from callwright.core.lull import Lull
from callwright.core.outgoing import Outgoing
from callwright.core.pickup import SESSION_PATIENCE_MS, Pickup, Stage
from callwright.core.pickup import Cue as PickupCue
from callwright.core.plan import CallPlan as CallPlan
from callwright.core.plan import Can as Can
from callwright.core.plan import Ending as Ending
from callwright.core.plan import Untold
from callwright.core.playout import Playout
from callwright.core.renewal import Renewal
from callwright.core.replies import Replies
from callwright.core.serving import Serving
from callwright.core.stalls import Stalls
from callwright.core.telling import Tellings
from callwright.core.toolcalls import AfterOutput, ToolCalls
from callwright.core.transcript import Turn
from callwright.core.turns import Turns
from callwright.core.voicing import OwnVoice
from callwright.errors import IllegalTransition
from callwright.ids import Ms

_Handler = Callable[[Any, Ms], None]

_COUNTS_AFTER_THE_END = on.ItemPlaced | on.CallerTranscribed | on.ReplyWritten | on.ToolFinished
"""What still belongs in the record of a call that is over; whatever else comes then is passed over."""


class Session:
    """The state of one call."""

    def __init__(self, plan: CallPlan) -> None:
        self.ending: Ending | None = None
        self.pickup = Pickup()
        self.turns = Turns(merges=Can.MERGE in plan.can)
        self.playout = Playout(rate_hz=plan.output_rate_hz, reports=plan.reports)
        self.heard = HeardRecord()
        self.keys = Keys()
        self.tools = ToolCalls(plan.tools)
        self._out = Outgoing(plan.can)
        self.keeping = Keeping(plan, self.heard, self._out)
        own_voice = OwnVoice(self.playout, self.heard, self.turns, self._out, is_used=plan.own_voice)
        self._cuts = Cuts(self.playout, self.heard, self._out, plan.latency_ms, own_voice)
        lull = Lull()
        self.leave = Leave(Goodbye(), lull, self.tools, self.playout, self.keys, self._cuts, self._out)
        telling = Tellings(self._out, plan.locale, plan.latency_ms)
        hold = Hold(can_wait=AfterOutput.SILENCE in plan.tools.values())
        stalls = Stalls(self.turns, self.playout, lull, telling, hold, self._out)
        self.asking = Asking(lull, stalls, self.turns, self.tools, telling, hold, self._out, plan)
        serving = Serving(self.tools, self.turns, self.playout, self.leave, self.asking, self.keeping, self._out)
        replies = Replies(self.turns, self.playout, self.heard, self.leave, self.asking, own_voice, self._out)
        handover, long_turns = Handover(plan.longest_session_ms), LongTurns(plan.longest_turn_ms, self._out)
        all_of_it = (self.turns, self.playout, self.heard, self.tools, self.leave, self.asking, self._cuts, self._out)
        self.renewal = Renewal(handover, long_turns, self.pickup, *all_of_it, self.keeping.ai_notice)
        talk = (self.pickup, self.turns, self.playout, self.heard, self.tools)
        others = (own_voice, telling, stalls, self.asking, handover, long_turns)
        self._machines = (*talk, self.leave.goodbye, self.keys, self.keeping, *others)
        self._handlers: Mapping[type, _Handler] = {
            on.ModelConnected: lambda _event, _now_ms: self.renewal.connected(),
            on.SessionReady: lambda _event, now_ms: self.renewal.ready(now_ms),
            on.UplinkResumed: self.renewal.resumed,
            on.SessionMismatched: self._session_mismatched,
            on.SpeechStarted: self._speech_started,
            on.SpeechStopped: self._speech_stopped,
            on.ItemPlaced: lambda event, _now_ms: self.heard.placed(event.item_id, event.after),
            on.CallerTranscribed: self._caller_transcribed,
            on.ResponseStarted: replies.began,
            on.AudioReceived: replies.audio,
            on.ReplyWritten: replies.written,
            on.WordsVoiced: lambda event, _now_ms: self.heard.voiced(event.item_id, event.words, event.audio_ms),
            on.VoiceFailed: own_voice.failed,
            on.ToolCalled: serving.called,
            on.ResponseEnded: replies.ended,
            on.ItemRetrieved: self._item_retrieved,
            on.ItemTruncated: lambda event, _now_ms: self.heard.truncated(event.item_id, Truncate.CONFIRMED),
            on.RequestRefused: self._request_refused,
            on.ConnectFailed: self._connect_failed,
            on.ModelClosed: self._model_closed,
            on.LineOpened: lambda _event, now_ms: self.renewal.open(now_ms),
            on.FirstWordsLost: self._first_words_lost,
            on.LinePlayed: self._line_played,
            on.MarkReturned: lambda event, now_ms: self.playout.mark_returned(event.mark_id, now_ms),
            on.KeysPressed: self._keys_pressed,
            on.CallerLoud: self._caller_loud,
            on.LineSilent: self._line_silent,
            on.LineClosed: self._line_closed,
            on.ToolFinished: lambda event, now_ms: serving.finished(event, now_ms, is_over=self._is_over()),
            on.KeysRequested: self._keys_requested,
            on.FactChanged: lambda event, _now_ms: self.asking.telling.changed(event),
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
        is_from_model = isinstance(event, on.ModelEvent) and not self._cuts.own_voice.says(event)
        if self.pickup.stage is Stage.PARTING and is_from_model:
            return
        try:
            self.renewal.saw(event)
            self._handlers[type(event)](event, now_ms)
        except IllegalTransition as problem:
            if isinstance(event, on.AppEvent):
                raise
            self._out.note(f"{type(event).__name__}: {problem}")
        self._join(now_ms)

    def commands(self) -> list[do.Command]:
        """What is to be done now, in order; empties the queue."""
        return self._out.fetch()

    def next_deadline_ms(self) -> Ms | None:
        """The one instant at which ``TimerFired`` is wanted; None for never."""
        if self.pickup.stage is Stage.OVER:
            return None
        earliest_ms: Ms | None = None
        for machine in self._machines:
            if machine is self.asking and self.pickup.stage is not Stage.READY:
                continue  # there is nobody to ask
            deadline_ms = machine.next_deadline_ms()
            if deadline_ms is not None and (earliest_ms is None or deadline_ms < earliest_ms):
                earliest_ms = deadline_ms
        return earliest_ms

    def transcript(self) -> tuple[Turn, ...]:
        """The turns so far, in the conversation's order."""
        return self.heard.turns()

    def untold(self) -> tuple[Untold, ...]:
        """The operations whose outcome the caller has not heard when the call is over."""
        return self.asking.telling.untold()

    def on_hold(self) -> HoldSummary | None:
        """How a call that is over went through menus and queues; None if it neither waited nor pressed a key."""
        return self.asking.hold.summary(self.keys.pressed, max_hold_reached=self.asking.give_up.is_reached)

    def _is_over(self) -> bool:
        return self.pickup.stage is Stage.OVER

    # --- the model -------------------------------------------------------------------------------------------

    def _session_mismatched(self, event: on.SessionMismatched, now_ms: Ms) -> None:
        ending = Ending("fault", f"the session's {event.field} is {event.got}, agreed was {event.wanted}")
        self._end(PickupCue.ENDED, ending, now_ms, do.CloseModel("wrong session"), do.HangUp("wrong session"))

    def _speech_started(self, event: on.SpeechStarted, now_ms: Ms) -> None:
        self.leave.talked_over(self.turns.response_id, now_ms)
        self.heard.caller_turn(event.item_id)
        self.turns.speech_started()
        self.asking.lull.caller_spoke()
        self.asking.hold.turn_began(event.item_id, now_ms)
        self.asking.telling.caller_began(event.item_id, self.pickup.origin_ms + event.audio_start_ms, now_ms)

    def _speech_stopped(self, event: on.SpeechStopped, now_ms: Ms) -> None:
        self.turns.speech_stopped(now_ms)
        self.asking.lull.caller_is_through()
        self.asking.hold.turn_ended(self.pickup.origin_ms + event.audio_end_ms)

    def _caller_transcribed(self, event: on.CallerTranscribed, now_ms: Ms) -> None:
        self.heard.caller_turn(event.item_id, event.text)
        self.asking.hold.turn_said(event.item_id, event.text)
        if says_nothing(event.text) or not has_words(event.text):
            self.turns.nothing_was_said(now_ms)
        if self.pickup.stage is not Stage.OVER:
            self.asking.telling.caller_said(event.item_id, event.text)

    def _item_retrieved(self, event: on.ItemRetrieved, _now_ms: Ms) -> None:
        self.heard.retrieved(event.item_id, event.text, is_cut=event.is_cut)

    def _request_refused(self, event: on.RequestRefused, now_ms: Ms) -> None:
        request = self._out.refused(event.event_id)
        self.renewal.refused(request, event.code)
        match request:
            case do.RequestReply():
                self.asking.refused(request)
            case do.TruncateItem():
                self.heard.truncated(request.item_id, Truncate.REFUSED)
            case do.RetrieveItem():
                self.heard.give_up(request.item_id)
            case do.ConfigureSession():
                self._refused_configuration(event, now_ms)
            case None if self.pickup.stage is Stage.CONFIGURING:
                self._refused_configuration(event, now_ms)
        what = type(request).__name__ if request else "an unnamed request"
        self._out.note(f"{what} refused: {event.code}", event.message)

    def _refused_configuration(self, event: on.RequestRefused, now_ms: Ms) -> None:
        field = f" (field {event.field})" if event.field else ""
        ending = Ending("fault", f"session.update refused: {event.code}: {event.message}{field}")
        self._end(PickupCue.REFUSED, ending, now_ms, do.CloseModel("refused"), do.HangUp("session refused"))

    def _model_closed(self, event: on.ModelClosed, now_ms: Ms) -> None:
        if self.leave.goodbye.is_pending:
            self._part(Ending("model", f"connection closed: {event.code} {event.reason}".rstrip()), now_ms)
        elif ending := self.renewal.closed(event, now_ms):
            self._end(PickupCue.ENDED, ending, now_ms, do.HangUp("model closed"))

    def _connect_failed(self, event: on.ConnectFailed, now_ms: Ms) -> None:
        if ending := self.renewal.failed(event, now_ms):
            self._end(PickupCue.ENDED, ending, now_ms, do.HangUp("no session"))

    # --- the line --------------------------------------------------------------------------------------------

    def _line_played(self, event: on.LinePlayed, _now_ms: Ms) -> None:
        self.playout.played(event.item_id, event.generation, event.played_ms)

    def _first_words_lost(self, event: on.FirstWordsLost, _now_ms: Ms) -> None:
        self.pickup.origin_ms += event.ms
        if not self.asking.opening.is_listening:
            self.asking.lull.waits()
        self.asking.hold.words_lost()

    def _keys_pressed(self, event: on.KeysPressed, now_ms: Ms) -> None:
        fate = do.KeysFate.FAILED if event.has_failed else do.KeysFate.PRESSED
        self._go_on_with_keys(self.keys.told(fate, now_ms), now_ms)

    def _keys_requested(self, event: on.KeysRequested, now_ms: Ms) -> None:
        self.asking.hold.keys_asked(event.tool_call_id)
        self.asking.claims.asked(event.keys, now_ms)
        self.keys.requested(event.keys, now_ms)

    def _caller_loud(self, event: on.CallerLoud, now_ms: Ms) -> None:
        if self.pickup.stage is Stage.READY:
            self.asking.opening.caller_loud(is_loud=event.is_loud)
            self.leave.goodbye.caller_loud(now_ms, is_loud=event.is_loud)
            self.asking.stalls.caller_loud(now_ms, is_loud=event.is_loud)

    def _line_silent(self, event: on.LineSilent, now_ms: Ms) -> None:
        ending = Ending("fault", f"no audio from the line for {event.ms // 1000} s")
        self._end(PickupCue.ENDED, ending, now_ms, do.HangUp("line silent"), do.CloseModel("line silent"))

    def _line_closed(self, event: on.LineClosed, now_ms: Ms) -> None:
        self._end(PickupCue.ENDED, Ending(event.by, event.reason), now_ms, do.CloseModel("line closed"))

    # --- the tools and the app -------------------------------------------------------------------------------

    def _interrupt_requested(self, _event: on.InterruptRequested, now_ms: Ms) -> None:
        response_id = self.turns.response_id
        is_new = response_id is not None and not self.playout.is_cut(response_id)
        cuts = self._cuts.silence(response_id, now_ms)
        self.leave.stop()
        self.asking.lull.stopped()
        if response_id is not None and is_new and Can.CANCEL in self._out.can:
            self._out.request(do.CancelResponse(self._out.next_id(), response_id))
        self._cuts.shorten(cuts, now_ms)

    def _hang_up_requested(self, event: on.HangUpRequested, now_ms: Ms) -> None:
        ending = Ending("agent", event.reason)
        self._end(PickupCue.ENDED, ending, now_ms, do.HangUp(event.reason), do.CloseModel("hung up"))

    def _timer_fired(self, _event: on.TimerFired, now_ms: Ms) -> None:
        if self.pickup.is_late(now_ms):
            what = "begin a session" if self.pickup.stage is Stage.CONNECTING else "answer session.update"
            by = "model" if self.renewal.handover.sessions else "fault"
            ending = Ending(by, f"the model's server did not {what} within {SESSION_PATIENCE_MS // 1000} s")
            self._end(PickupCue.ENDED, ending, now_ms, do.CloseModel("too late"), do.HangUp("no session"))
            return
        self.asking.timer(now_ms)
        self.asking.telling.timer(now_ms)
        self.playout.timer(now_ms)
        self._cuts.own_voice.timer(now_ms)
        for item_id in self.heard.timer(now_ms):
            self._out.note(f"no answer about cut item {item_id}; its heard text is an estimate")

    # --- the joints ------------------------------------------------------------------------------------------

    def _join(self, now_ms: Ms) -> None:
        if self.pickup.stage is not Stage.OVER:
            self.asking.stalls.look(now_ms)
        self._cuts.take_played_out(now_ms)
        if self.pickup.stage is Stage.READY:
            self._cuts.own_voice.look(now_ms)
        self._look_at_keys(now_ms)
        self.keeping.look(now_ms)
        if self.pickup.stage is not Stage.OVER:
            self.asking.telling.settled(self.heard.take_settled(), now_ms)
        self.asking.gather(now_ms)
        is_model_there = self.pickup.stage is Stage.READY
        if is_model_there and self.turns.is_reply_wanted:
            self.leave.withdraw(Withdrawal.RESULT, now_ms)
        self.renewal.tell()
        if is_model_there and self._ask(now_ms):
            return
        self.renewal.look(now_ms)
        is_open = self.turns.response_id is not None
        owed = self.asking.telling.outstanding()
        ending = self.leave.ending(now_ms, is_open=is_open, is_model_there=is_model_there, owed=owed)
        if ending is not None:
            self._end(PickupCue.ENDED, ending, now_ms, do.HangUp(ending.reason), do.CloseModel("hung up"))

    def _look_at_keys(self, now_ms: Ms) -> None:
        if self.keys.is_out:
            is_busy, played_ms = self.playout.is_busy(), self.playout.confirmed_ms()
            at_ear_ms = self._cuts.at_ear_ms()
            commands = self.keys.look(now_ms, is_busy=is_busy, played_ms=played_ms, at_ear_ms=at_ear_ms)
            self._go_on_with_keys(commands, now_ms)

    def _go_on_with_keys(self, commands: list[do.Command], now_ms: Ms) -> None:
        self._out.add(*commands)
        if any(isinstance(command, do.AnswerKeys) and command.fate is not do.KeysFate.FAILED for command in commands):
            self.asking.hold.keys_pressed(now_ms)

    def _ask(self, now_ms: Ms) -> bool:
        """Ask for a reply where that is due; true if the model brings none, and the call has ended by that."""
        is_line_quiet = not (self.playout.is_busy() or self.keys.is_out)
        is_leaving, at_ear_ms = self.leave.goodbye.is_pending, self._cuts.at_ear_ms()
        ending = self.asking.ask(now_ms, is_line_quiet=is_line_quiet, is_leaving=is_leaving, at_ear_ms=at_ear_ms)
        if ending is not None:
            self._end(PickupCue.ENDED, ending, now_ms, do.HangUp(ending.reason), do.CloseModel("no reply"))
        return ending is not None

    def _part(self, ending: Ending, now_ms: Ms) -> None:
        """The model is gone in the goodbye: what has come of it is still played."""
        self.pickup.move(PickupCue.MODEL_LOST)
        self.renewal.handover.lost(is_final=True)
        self._out.model_lost()
        response_id = self.turns.response_id
        self.leave.model_lost(ending, is_cut_short=response_id is not None)
        if response_id is not None:
            self.asking.stalls.ends(response_id, now_ms)
        self.heard.give_up_all()

    def _end(self, cue: PickupCue, ending: Ending, now_ms: Ms, *commands: do.Command) -> None:
        self.pickup.move(cue)
        self.leave.call_is_over(now_ms)
        self.ending = ending
        self._out.add(*commands, *self.keys.call_is_over())
        self._cuts.line_ended(self.turns.response_id, now_ms)
        self.asking.telling.call_is_over(self.heard.take_settled(), now_ms)
        self.keeping.call_is_over(now_ms)
        self.asking.hold.call_is_over(now_ms)

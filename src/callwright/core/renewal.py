"""Where one session of the model's ends and the next begins: what the call lets go, and what the new one is told.

``handover`` says when, how often and in which form; ``history`` what was said. Here the open ends of the old session
are closed: nobody answers what was asked of it, what its open response still had to say does not come, and a turn of
the caller's whose words it has not told is sent to the new one again. What the line still plays, plays on.

The audio clock of a session begins with the first sample that it is sent, so every instant that it names is counted
from where that sample lies on the call's clock (``pickup.origin_ms``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.asking import Asking
from callwright.core.cuts import Cuts
from callwright.core.handover import Form, Handover
from callwright.core.heard import HeardRecord
from callwright.core.history import History
from callwright.core.leave import Leave
from callwright.core.longturns import LongTurns
from callwright.core.lull import Stage as Silence
from callwright.core.notice import Notice
from callwright.core.outgoing import Outgoing
from callwright.core.pickup import Cue as PickupCue
from callwright.core.pickup import Pickup, Stage
from callwright.core.plan import Ending
from callwright.core.playout import Playout
from callwright.core.toolcalls import ToolCalls
from callwright.core.turns import SPEAKING, Floor, Turns
from callwright.core.unheard import Unheard
from callwright.ids import EventId, Ms


class Renewal:
    """The sessions of one call, joined to the rest of it."""

    def __init__(
        self,
        handover: Handover,
        long_turns: LongTurns,
        pickup: Pickup,
        turns: Turns,
        playout: Playout,
        heard: HeardRecord,
        tools: ToolCalls,
        leave: Leave,
        asking: Asking,
        cuts: Cuts,
        out: Outgoing,
        notice: Notice,
    ) -> None:
        """All of these are the session's; it goes on using them."""
        self.handover = handover
        self.long_turns = long_turns
        self._pickup = pickup
        self._turns = turns
        self._playout = playout
        self._heard = heard
        self._tools = tools
        self._leave = leave
        self._asking = asking
        self._cuts = cuts
        self._out = out
        self._history = History(heard, playout, out.outputs, notice)
        self._unheard = Unheard()
        self._known: Mapping[str, on.FactChanged] = {}
        """What the old session had been told of the record."""
        self._gap = _Gap()

    def saw(self, event: on.Event) -> None:
        """Something is about to be handled that a new session will have to know of."""
        if (see := _SEES.get(type(event))) is not None:
            see(self, event)

    @property
    def kept_ms(self) -> Ms:
        """How much of the caller's audio that was sent last a new session may have to hear."""
        return self._unheard.kept_ms

    # --- a session begins

    def open(self, now_ms: Ms) -> None:
        """The line is open: open the first session."""
        self._pickup.line_opened(now_ms)
        self._out.add(do.Connect(self.handover.opens(now_ms), 0))

    def connected(self) -> None:
        """A session stands: configure it."""
        self._pickup.move(PickupCue.CONNECTED)
        event_id = self._out.next_id()
        if not self.handover.sessions:
            self._out.request(do.ConfigureSession(event_id))
        elif self.handover.form is Form.REPLAY:
            self._out.request(do.ConfigureSession(event_id, self._history.preface()))
        else:
            self._summarise(event_id)

    def ready(self, now_ms: Ms) -> None:
        """The session took its configuration, or took one again."""
        was = self._pickup.stage
        self._pickup.move(PickupCue.ACCEPTED)
        if was is not Stage.CONFIGURING:
            return
        if self.handover.sessions:
            self._restore()
            self._out.add(do.OpenUplink())
        else:
            self._out.add(do.OpenUplink())
            self._asking.telling.ready()
        self.handover.ready(now_ms)

    def resumed(self, event: on.UplinkResumed, now_ms: Ms) -> None:
        """The new session has been sent what was held of the caller."""
        self._pickup.origin_ms = now_ms - event.held_ms
        if event.lost_ms:
            self._asking.lull.waits()
        gap = self._gap
        self._out.add(do.StateRestored(gap.items, event.held_ms, event.lost_ms, now_ms - gap.began_ms))

    def refused(self, request: do.Request | None, code: str) -> None:
        """The server refused something."""
        self.handover.refused(code)
        if isinstance(request, do.CarryCall):
            self._out.uncarried[request.tool_call_id] = request.name
        is_history = isinstance(request, (do.CarryMessage, do.CarryCall, do.PostToolOutput))
        if is_history and self.handover.is_proving and self.handover.form is Form.REPLAY:
            self.handover.item_refused()
            self._summarise()

    def tell(self) -> None:
        """Tell the session what was heard of replies that were being said when it was told of the call.

        Where it is the server that takes no items, in another summary.
        """
        if self._pickup.stage is not Stage.READY:
            return
        if self.handover.form is Form.REPLAY:
            is_pressing = self._turns.floor in SPEAKING or self._turns.may_ask()
            late = self._history.late(self._out.next_id, is_pressing=is_pressing)
            self._gap.items += len(late)
            for request in late:
                self._out.request(request)
        elif self._history.is_outdated():
            self._summarise()

    # --- a session ends

    def closed(self, event: on.ModelClosed, now_ms: Ms) -> Ending | None:
        """The connection ended; the ending where the call ends by that."""
        return self._lost(f"connection closed: {event.code}", event.reason, now_ms, self.handover.closed(event.code))

    def failed(self, event: on.ConnectFailed, now_ms: Ms) -> Ending | None:
        """No connection came about; the ending where the call ends by that."""
        return self._lost("no connection", event.reason, now_ms, self.handover.lost(is_final=event.is_final))

    def look(self, now_ms: Ms) -> None:
        """Let the session go if it is time for that, and tell of a turn that is too long for it."""
        if self._turns.floor not in SPEAKING:
            self.long_turns.ended(now_ms)
        self.long_turns.look(now_ms)
        if self._pickup.stage is Stage.READY and self.handover.look(now_ms, is_quiet=self._is_quiet()):
            self._let_go(now_ms)

    def _lost(self, what: str, quoted: str, now_ms: Ms, is_over_by: str | None) -> Ending | None:
        if is_over_by is not None:
            return Ending("model", "; ".join(filter(None, (f"{what} {quoted}".rstrip(), is_over_by))))
        self._out.note(f"{what}; another session is opened", quoted)
        if self._pickup.stage is Stage.READY:
            self._let_go(now_ms)
        else:
            self._pickup.renewed(now_ms)
            self._out.add(do.Connect(self.handover.opens(now_ms), 0))
        return None

    def _let_go(self, now_ms: Ms) -> None:
        turn, resend_ms = self._unheard.take(now_ms)
        floor, response_id = self._turns.floor, self._turns.response_id
        is_cut_short = response_id is not None
        if response_id is not None:
            self._asking.stalls.ends(response_id, now_ms)
        self._pickup.renewed(now_ms)
        self.long_turns.ended(now_ms)
        self._turns.session_lost()
        self._cuts.session_lost()
        self._heard.give_up_all()
        self._asking.session_lost()
        self._out.session_lost()
        self._known = self._asking.telling.known()
        is_owed = is_cut_short or floor is not Floor.QUIET
        if is_owed:
            self._asking.lull.waits()
        if turn is not None:
            self._heard.unsaid(turn)
        self._gap = _Gap(now_ms, is_owed=is_owed and turn is None)
        self._out.add(do.Connect(self.handover.opens(now_ms), resend_ms))

    def _is_quiet(self) -> bool:
        """Whether nobody speaks or waits for anything, so that a pause is not noticed."""
        return (
            self._turns.floor is Floor.QUIET
            and not self._turns.is_reply_wanted
            and not self._playout.is_busy()
            and not self._leave.goodbye.is_pending
            and not self._tools.unanswered()
            and not self._asking.telling.is_waiting()
            and self._asking.lull.stage is Silence.CALM
            and self._unheard.item_id is None
        )

    # --- from one to the next

    def _summarise(self, event_id: EventId | None = None) -> None:
        items = self._items(holds=False)
        self._out.request(self._history.summary(items, event_id or self._out.next_id()))

    def _items(self, *, holds: bool) -> list[do.Request]:
        now = self._asking.telling.known()
        told = {op_id: fact for op_id, fact in now.items() if self._known.get(op_id) == fact}
        return self._history.items(told, self._out.next_id, holds=holds)

    def _restore(self) -> None:
        waiting = self._out.session_back()
        items = self._items(holds=True) if self.handover.form is Form.REPLAY else []
        self._gap.items = len(items)
        for request in (*items, *waiting):
            self._out.request(request)
        carried = [item.tool_call_id for item in items if isinstance(item, do.CarryCall)]
        running = self._tools.unanswered()
        self._out.uncarried = {each: self._tools.name_of(each) for each in running if each not in carried}
        if self._gap.is_owed:
            self._asking.want()

    def _turn_began(self, event: on.SpeechStarted) -> None:
        self._unheard.began(event, self._pickup.origin_ms)
        self.long_turns.began(self._pickup.origin_ms + event.audio_start_ms)

    def _turn_ended(self, event: on.SpeechStopped) -> None:
        self._unheard.ended(event, self._pickup.origin_ms)
        self.long_turns.ended(self._pickup.origin_ms + event.audio_end_ms)

    def _turn_told(self, event: on.CallerTranscribed) -> None:
        self._unheard.told(event)

    def _response_ended(self, event: on.ResponseEnded) -> None:
        if event.status is on.ResponseStatus.COMPLETED:
            self._unheard.answered(event.response_id)

    def _tool_called(self, event: on.ToolCalled) -> None:
        self._history.called(event)
        self._unheard.answered(event.response_id)

    def _fact_changed(self, event: on.FactChanged) -> None:
        before = self._asking.telling.known().get(event.op_id)
        if before is None or before.version < event.version:
            self._history.noted(event.op_id)


@dataclass(slots=True)
class _Gap:
    """The time without a session."""

    began_ms: Ms = 0
    is_owed: bool = False
    """The caller waits for a reply that the old session did not give."""
    items: int = 0
    """How many items the new session was told."""


_SEES: Mapping[type, Callable[[Renewal, Any], None]] = {
    on.SpeechStarted: Renewal._turn_began,
    on.SpeechStopped: Renewal._turn_ended,
    on.CallerTranscribed: Renewal._turn_told,
    on.ResponseStarted: lambda of, event: of._unheard.answer_began(event),
    on.ResponseEnded: Renewal._response_ended,
    on.ToolCalled: Renewal._tool_called,
    on.FactChanged: Renewal._fact_changed,
}

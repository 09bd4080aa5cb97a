"""Where a reply is asked for: whoever wants one comes here, and the floor, the model and the silence are looked at.

``turns`` says when a reply may be asked for, ``toolcalls`` and ``told`` when there is something to say, ``opening``
when nobody has begun, ``lull`` when nobody says anything, ``giveup`` when one has waited on hold for long enough;
``stalls`` frees a floor that nobody else would. Here these wishes become one request, and what became of it goes back
to all of them. An agent that has answered with silence is not asked why it says nothing.
"""

from __future__ import annotations

from callwright.core.commands import PostFacts, RequestReply
from callwright.core.giveup import GiveUp
from callwright.core.giveup import Stage as GivingUp
from callwright.core.hold import Hold
from callwright.core.keyclaims import KeyClaims
from callwright.core.lull import Lull, Stage
from callwright.core.notes import END_IT, give_up_of
from callwright.core.opening import Opening
from callwright.core.outgoing import Outgoing
from callwright.core.plan import CallPlan, Ending
from callwright.core.stalls import Stalls
from callwright.core.telling import Tellings
from callwright.core.toolcalls import ToolCalls
from callwright.core.turns import SPEAKING, Floor, Turns
from callwright.ids import EventId, Ms


class Asking:
    """The requests for a reply of one call."""

    def __init__(
        self,
        lull: Lull,
        stalls: Stalls,
        turns: Turns,
        tools: ToolCalls,
        telling: Tellings,
        hold: Hold,
        out: Outgoing,
        plan: CallPlan,
    ) -> None:
        """All of these are the session's; it goes on using them."""
        self.lull = lull
        self.stalls = stalls
        self._turns = turns
        self._tools = tools
        self.telling = telling
        self.hold = hold
        self._out = out
        self.give_up = GiveUp(plan.max_hold_ms)
        self.opening = Opening(out, plan.opens_after_ms)
        self.claims = KeyClaims(out)
        self._actions = plan.actions
        self._is_for_outcome = False
        """Whether nothing but an outcome wants the reply: then what it was worth decides what follows."""
        self._latest: EventId | None = None
        """The latest request: the refusal of an earlier one brings no wish back."""

    def next_deadline_ms(self) -> Ms | None:
        """When to ``ask`` next, whatever else happens."""
        deadlines = [machine.next_deadline_ms() for machine in (self.lull, self.give_up, self.opening, self.claims)]
        return min((deadline_ms for deadline_ms in deadlines if deadline_ms is not None), default=None)

    def want(self) -> None:
        """Something has to be said."""
        self._is_for_outcome = False
        self._turns.want_reply()

    def gather(self, now_ms: Ms) -> None:
        """Take the wishes that are due."""
        if self._tools.take_due(self._turns.response_id, self._turns.caller_turns, now_ms):
            if self.lull.goes_on():
                self.want()
            else:
                self._out.note("the model calls tools and says nothing: no more replies to their outputs are asked for")
        is_owing = self.telling.wants_reply(in_turn=self._turns.floor in SPEAKING)
        is_owing = is_owing and not self._tools.is_any_running(self._actions)
        if is_owing and not self._turns.is_reply_wanted:
            self._is_for_outcome = True
            self._turns.want_reply()

    def ask(self, now_ms: Ms, *, is_line_quiet: bool, is_leaving: bool, at_ear_ms: Ms) -> Ending | None:
        """Ask for a reply where one is wanted and may be asked for; the ending where it is no use any more.

        ``is_line_quiet`` says that nothing is played, ``is_leaving`` that a goodbye is pending; the last reply is heard
        at ``at_ear_ms``.
        """
        if self._has_waited_enough(now_ms, is_leaving=is_leaving):
            return Ending("agent", f"gave up after {self.give_up.max_hold_s} s on hold")
        self.claims.look(now_ms)
        has_begun = bool(self._turns.caller_turns) or self._turns.response_id is not None
        if self.opening.look(now_ms, has_begun=has_begun):
            self.want()
        if self.lull.stage is not Stage.CALM:
            is_silent = self.hold.stays_silent and self.lull.stage is not Stage.LEAVING
            is_free = self._turns.floor is Floor.QUIET and not (self._turns.may_ask() or is_silent)
            is_quiet = is_free and is_line_quiet and not is_leaving and not self.telling.is_telling()
            self._break(now_ms, is_quiet=is_quiet, at_ear_ms=at_ear_ms)
            if is_quiet and self.lull.stage is Stage.GONE:
                return Ending("model", "it gave no reply, as often as it was asked for one")
        if self._turns.may_ask():
            self._turns.asked(now_ms)
            self.telling.asked()
            self.lull.waits()
            self._latest = self._out.next_id()
            self._out.request(RequestReply(self._latest))
        return None

    def _has_waited_enough(self, now_ms: Ms, *, is_leaving: bool) -> bool:
        """Ask the model to give up where waiting has lasted long enough; true if it had its time for that."""
        stage = self.give_up.look(self.hold.waits_since_ms, now_ms, is_leaving=is_leaving)
        if stage is GivingUp.ASKED:
            self._out.request(PostFacts(self._out.next_id(), give_up_of(self.give_up.max_hold_s)))
            self.want()
        return stage is GivingUp.DONE

    def _break(self, now_ms: Ms, *, is_quiet: bool, at_ear_ms: Ms) -> None:
        """Want a reply if the silence has lasted too long."""
        is_leaving = self.lull.stage is Stage.LEAVING
        is_under_way = bool(self._tools.unanswered()) or self.telling.outstanding() > 0
        if not self.lull.look(now_ms, is_quiet=is_quiet, is_under_way=is_under_way, at_ear_ms=at_ear_ms):
            return
        if is_leaving:
            self._out.request(PostFacts(self._out.next_id(), END_IT))
        else:
            self._out.note("the caller waits and nothing comes: a reply is asked for")
        self.want()

    def refused(self, request: RequestReply) -> None:
        """The server refused a request for a reply."""
        if request.event_id == self._latest:
            self._turns.refused(is_still_wanted=not self._is_for_outcome)
            self.telling.never_began()

    def session_lost(self) -> None:
        """Nothing that was asked for comes."""
        self._latest = None
        self._is_for_outcome = False
        self.telling.session_lost()
        self.lull.interrupted()

    def timer(self, now_ms: Ms) -> None:
        """See whether a reply that is due has begun.

        In silence, a turn is not asked about again, nor is the model to give up; whatever else was asked for is.
        """
        is_final = self._turns.floor is Floor.AWAITED or self.give_up.is_reached
        is_silent = self.hold.stays_silent and is_final
        if not self._turns.timer(now_ms, is_wanted=not is_silent) or is_silent:
            return
        self._out.note("a reply that was due has not begun")
        self._is_for_outcome = False
        self.telling.never_began()
        if not self._turns.may_ask():
            self.lull.give_up()

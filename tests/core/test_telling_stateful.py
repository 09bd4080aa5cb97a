"""Whatever the record, the model and the caller do: nothing counts as told that was not heard, and nobody is nagged."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.core.drive import BOTH_LINES, CANCELLED, EVERYTHING, Call, FakeLine, ended
from tests.core.telling import DONE, OP, OTHER, SENTENCES, TOOLS, fact

from callwright.claims.facts import OUTCOMES, Milestone
from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.commands import Telling
from callwright.core.pickup import Stage
from callwright.core.session import Can
from callwright.core.told import ASKS_MAX
from callwright.core.turns import Floor
from callwright.ids import ItemId, ResponseId, ToolCallId

TEXTS: dict[str, tuple[Milestone, ...]] = {
    **{text: (milestone,) for milestone, text in SENTENCES.items() if milestone in OUTCOMES},
    DONE: (Milestone.CONFIRMED,),
    "Your refund has gone through.": (),
    "Your refund of 32 dollars did not go through.": (),
    "We open at nine.": (),
    "Has your refund of 32 dollars to the Visa ending in 4 2 4 2 gone through?": (),
    "It will be done once your refund of 32 dollars to the Visa ending in 4 2 4 2 is checked.": (),
    "": (),
}
"""What the model may say, and the outcome that it tells with all that must be heard."""
CAN_BE_TAKEN = (Floor.QUIET, Floor.REPLY, Floor.ASKED)
ENDINGS = (on.LineClosed("caller", "hung up"), on.ModelClosed(1008, ""))
AUDIO_MS = 8_000
milestones = st.sampled_from([Milestone.CONFIRMED, Milestone.ACCEPTED]) | st.sampled_from([*SENTENCES])
texts = st.none() | st.sampled_from([*TEXTS])


class Teller(RuleBasedStateMachine):
    """A call, what its record says, and what the caller's ear got."""

    @initialize(
        reports=st.sampled_from(BOTH_LINES), lag_ms=st.sampled_from([0, 400]), more=st.sampled_from([Can(0), Can.MERGE])
    )
    def begin(self, reports, lag_ms, more):
        self.more = more
        self.call = Call(FakeLine(reports, lag_ms), tools=TOOLS, latency_ms=0, can=EVERYTHING | more)
        self.facts: dict[str, on.FactChanged] = {}
        self.count = 0
        self.open: ResponseId | None = None
        self.may_tell: dict[tuple[str, int], list[ItemId]] = {}
        """Items of replies that began after a fact, by the fact."""
        self.said: dict[ItemId, str] = {}
        self.got: dict[ItemId, str] = {}
        """What of it is in the server's history after a cut."""
        self.calls: dict[ResponseId, None] = {}
        self.seen = 0

    # --- what the world does ---------------------------------------------------------------------------------------

    def give(self, *events: on.Event, at_ms: int | None = None) -> None:
        for event in events:
            self.call.at(self.call.now_ms if at_ms is None else at_ms, event)
            self.check()

    @rule(op_id=st.sampled_from([OP, OTHER]), milestone=milestones, ours=st.sampled_from([True, True, False]))
    def the_record_changes(self, op_id, milestone, ours):
        version = self.facts[op_id].version + 1 if op_id in self.facts else 1
        extra = {} if op_id == OP else {"subject": "order:5120"}
        self.facts[op_id] = fact(milestone, version, op_id, ours=ours, **extra)
        self.give(self.facts[op_id])

    @rule(ms=st.sampled_from([300, 4_000, AUDIO_MS]))
    def time_passes(self, ms):
        self.give(on.TimerFired(), at_ms=self.call.now_ms + ms)

    @precondition(lambda self: self.is_ready() and self.open is None)
    @rule(
        text=texts,
        kind=st.sampled_from(["whole", "whole", "queued", "talked over", "talked over", "failed", "calls", "stale"]),
        heard_ms=st.integers(0, AUDIO_MS) | st.just(AUDIO_MS - 100),
    )
    def a_reply_is_made(self, text, kind, heard_ms):
        """As the record would have it, or otherwise; it plays on while other things happen, unless it is cut."""
        self.count += 1
        response, item = ResponseId(f"r{self.count}"), ItemId(f"i{self.count}")
        self.open = response
        if text is None:
            text = SENTENCES[self.facts[OP].facts.milestone] if OP in self.facts else ""
        self.said[item] = text
        if kind != "calls":
            for op_id, known in self.facts.items():
                self.may_tell.setdefault((op_id, known.version), []).append(item)
        self.give(on.ResponseStarted(response))
        if kind == "calls":
            self.give(on.ToolCalled(response, item, ToolCallId(f"k{self.count}"), "look_up", "{}"))
        if kind == "stale":
            self.the_record_changes(OP, Milestone.CONFIRMED, ours=True)
            self.said[item] = text = DONE
        for _ in range(4):
            self.give(on.AudioReceived(response, item, AUDIO_MS // 4 * 24))
        self.give(on.ReplyWritten(response, item, text))
        if kind == "talked over":
            self.give(on.TimerFired(), at_ms=self.call.now_ms + heard_ms)
            self.the_caller_talks(300)
        elif kind == "failed":
            self.the_response_ends(on.ResponseStatus.FAILED)
        else:
            self.the_response_ends(on.ResponseStatus.COMPLETED)
        if kind in ("whole", "calls", "stale"):
            self.time_passes(AUDIO_MS + 500)

    def the_response_ends(self, status):
        response, self.open = self.open, None
        self.give(ended(response, status))

    @precondition(lambda self: self.is_ready() and self.call.session.turns.floor in CAN_BE_TAKEN)
    @rule(turn_ms=st.sampled_from([300, 1_500]), meanwhile=st.sampled_from([None, None, "settled", "refused"]))
    def the_caller_talks(self, turn_ms, meanwhile=None):
        self.count += 1
        item, asks = ItemId(f"u{self.count}"), len(self.call.done(do.RequestReply))
        self.give(on.SpeechStarted(item, 0))
        if self.open is not None:
            self.the_response_ends(CANCELLED)
        if meanwhile is not None:
            self.the_record_changes(OP, Milestone.CONFIRMED, ours=True)
        if meanwhile == "refused" and self.call.session.turns.floor is Floor.HELD:
            self.a_request_is_refused()
        asks = len(self.call.done(do.RequestReply)) - asks
        assert asks <= (Can.MERGE in self.more), "once while he speaks, where that is merged"
        self.give(on.SpeechStopped(item, 0), at_ms=self.call.now_ms + turn_ms)

    @precondition(lambda self: self.retrievals())
    @rule(data=st.data())
    def the_server_tells_what_it_holds(self, data):
        request = data.draw(st.sampled_from(self.retrievals()))
        words = self.said.get(request.item_id, "").split()
        heard_ms = self.call.line.heard_ms(request.item_id, self.call.now_ms)
        text = " ".join(words[: len(words) * heard_ms // AUDIO_MS])
        self.got[request.item_id] = text
        self.give(on.ItemRetrieved(request.item_id, text, is_cut=True))

    @precondition(lambda self: self.call.session.turns.floor is Floor.ASKED)
    @rule()
    def a_request_is_refused(self):
        request = self.call.done(do.RequestReply)[-1]
        self.give(on.RequestRefused("invalid_request_error", "no", request.event_id))

    @precondition(lambda self: self.is_ready())
    @rule(
        event=st.sampled_from([on.LineClosed("caller", "hung up"), on.ModelClosed(1008, "")]), chance=st.integers(0, 9)
    )
    def the_call_ends(self, event, chance):
        if chance:
            return
        self.give(event)
        for op_id, known in self.facts.items():
            is_outcome = known.facts.milestone in OUTCOMES
            last = next((each for each in reversed(self.records()) if each.op_id == op_id), None)
            if known.is_ours and is_outcome:
                assert last is not None
                assert (last.version, last.state in (Telling.HEARD, Telling.DEFERRED)) == (known.version, True)
        deferred = [op_id for op_id, known in self.facts.items() if self.last_state(op_id, known) is Telling.DEFERRED]
        assert [each.op_id for each in self.call.session.untold()] == deferred

    # --- what always holds -----------------------------------------------------------------------------------------

    def is_ready(self) -> bool:
        return self.call.session.pickup.stage is Stage.READY

    def retrievals(self) -> list[do.RetrieveItem]:
        return [each for each in self.call.done(do.RetrieveItem) if each.item_id not in self.got]

    def records(self) -> list[do.RecordTold]:
        return self.call.done(do.RecordTold)

    def last_state(self, op_id: str, known: on.FactChanged) -> Telling | None:
        of_it = [each.state for each in self.records() if (each.op_id, each.version) == (op_id, known.version)]
        return of_it[-1] if of_it else None

    def check(self) -> None:
        for _, command in self.call.log[self.seen :]:
            if isinstance(command, do.RequestReply):
                assert self.open is None, "no reply is asked for while a response is open"
            if isinstance(command, do.RecordTold):
                self.check_record(command)
        self.seen = len(self.call.log)

    def check_record(self, record: do.RecordTold) -> None:
        known = self.facts[record.op_id]
        if record.state is Telling.VOID:
            assert record.version == known.version - 1, "only what has just changed becomes void"
            return
        assert record.version == known.version, "nothing is told of an older version"
        assert record.milestone is known.facts.milestone
        if record.state is Telling.HEARD and not self.is_carried_over(record):
            items = self.may_tell.get((record.op_id, record.version), [])
            assert any(self.was_heard(item, record.milestone) for item in items), "what counts as heard was heard"

    def is_carried_over(self, record: do.RecordTold) -> bool:
        """The words of the older version were heard, and they are the same."""
        older = [each for each in self.records() if each.op_id == record.op_id and each.version == record.version - 1]
        return bool(older) and older[-1].state is Telling.HEARD and older[-1].milestone is record.milestone

    def was_heard(self, item: ItemId, milestone: Milestone) -> bool:
        """By the ear: whole, or so much that the cut text still holds every word of it."""
        text = self.said[item]
        if milestone not in TEXTS.get(text, ()):
            return False
        if self.call.line.heard_ms(item, self.call.now_ms) >= AUDIO_MS - 1:
            return True
        return self.got.get(item, "") == text

    @invariant()
    def nobody_is_nagged(self):
        counts: dict[tuple[str, int], int] = {}
        for record in self.records():
            if record.state is Telling.ASKED:
                key = record.op_id, record.version
                counts[key] = counts.get(key, 0) + 1
        assert all(count <= ASKS_MAX for count in counts.values())

    @invariant()
    def what_is_owed_is_asked_for_as_soon_as_the_floor_is_free(self):
        session = self.call.session
        if self.is_ready() and session.turns.floor is Floor.QUIET:
            assert not session.asking.telling.wants_reply()


Teller.TestCase.settings = settings(stateful_step_count=25, max_examples=60)
TestTelling = Teller.TestCase

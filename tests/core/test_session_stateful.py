"""A session under whatever a server, a line, tools and an app can do, in order and out of order."""

from __future__ import annotations

import dataclasses

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.core.drive import EVERYTHING, RATE_HZ, TOOLS, FakeLine, plan, samples

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.goodbye import DECISION_MS, HANDOVER_MS, STALL_CAP_MS
from callwright.core.pickup import Stage
from callwright.core.playout import Playing
from callwright.core.ports import PlayedReports
from callwright.core.session import Can, Session
from callwright.core.stalls import TURN_MAX_MS
from callwright.core.transcript import Source
from callwright.core.turns import REPLY_PATIENCE_MS, Floor
from callwright.ids import EventId, ItemId, ResponseId, ToolCallId


def named(letter: str, count: int) -> st.SearchStrategy[str]:
    return st.integers(1, count).map(lambda number: f"{letter}{number}")


responses, items, caller_items, calls = named("r", 4), named("i", 6), named("u", 3), named("k", 6)
tools = st.tuples(calls, st.sampled_from([*TOOLS, "no_such"]))
lengths_ms = st.integers(1, 900)
texts = st.sampled_from(["one two", "", None])
statuses = st.sampled_from(list(on.ResponseStatus))
anything = st.one_of(
    st.builds(on.ResponseStarted, responses),
    st.builds(on.ResponseEnded, responses, statuses),
    st.builds(on.AudioReceived, responses, items, st.integers(0, samples(600))),
    st.builds(on.ReplyWritten, responses, items, st.just("one")),
    st.builds(on.ToolCalled, responses, items, calls, st.sampled_from([*TOOLS, "no_such"]), st.just("{}")),
    st.builds(on.SpeechStarted, caller_items, st.just(0)),
    st.builds(on.SpeechStopped, caller_items, st.just(0)),
    st.builds(on.ItemPlaced, items | caller_items, st.none() | items | caller_items),
    st.builds(on.ItemRetrieved, items, texts, st.booleans()),
    st.builds(on.ItemTruncated, items, st.integers(0, 2_000)),
    st.builds(on.LinePlayed, items, st.integers(0, 3), st.integers(0, 4_000)),
    st.builds(on.MarkReturned, st.just("no such mark")),
    st.sampled_from([on.ModelConnected(), on.SessionReady(), on.TimerFired()]),
)
endings = st.sampled_from([on.LineClosed("caller", "hung up"), on.ModelClosed(1008, ""), on.HangUpRequested("done")])
capabilities = st.sampled_from([EVERYTHING, EVERYTHING, EVERYTHING | Can.MERGE, Can.TRUNCATE, Can(0)])
HANGS_UP = (on.ModelClosed, on.HangUpRequested)
PROGRESS = (on.AudioReceived, on.ResponseStarted, on.ToolCalled, on.LinePlayed, on.MarkReturned)
TO_LINE_OR_MODEL = (*do.LineCommand.__args__, *do.ModelCommand.__args__)


class World(RuleBasedStateMachine):
    """The session and its line; every batch of commands is checked against what the world has seen so far."""

    @initialize(
        reports=st.sampled_from(list(PlayedReports)),
        can=capabilities,
        lag_ms=st.sampled_from([0, 400, 1_500]),
        is_ready=st.sampled_from([True, True, False]),
    )
    def begin(self, reports, can, lag_ms, is_ready):
        self.can = can
        self.session = Session(plan(reports, can))
        self.line = FakeLine(reports, lag_ms)
        self.now_ms = 0
        self.responses = 4
        self.open_response: ResponseId | None = None
        self.asked: do.RequestReply | None = None
        self.asked_ms = 0
        self.requests: dict[EventId, do.Command] = {}
        self.started: dict[ToolCallId, None] = {}
        self.ended_tools: dict[ToolCallId, None] = {}
        self.announced: dict[ToolCallId, None] = {}
        self.outputs: dict[ToolCallId, None] = {}
        self.ending: list[ToolCallId] = []
        """Calls that asked for the end, while the goodbye is pending."""
        self.withdrawn: dict[ToolCallId, None] = {}
        self.is_turn_watched = False
        self.progress_ms = 0
        self.hang_ups = 0
        self.received: dict[ItemId, int] = {}
        self.cut: dict[ItemId, int] = {}
        self.cut_responses: dict[ResponseId, None] = {}
        self.generation = 0
        self.marks: list[str] = []
        if is_ready:
            self.is_set_up()

    # --- what is given, and what comes of it ------------------------------------------------------------------------

    def give(self, *events: on.Event) -> None:
        for event in events:
            if isinstance(event, PROGRESS):
                self.progress_ms = self.now_ms
            is_over, turns = self.session.pickup.stage is Stage.OVER, self.session.turns.caller_turns
            self.event = event
            self.foresee(event)
            self.session.handle(event, self.now_ms)
            batch = self.session.commands()
            if is_over:
                assert batch == [], "a call that is over does nothing"
            self.see(batch)
            is_stop = isinstance(event, on.InterruptRequested) or self.session.turns.caller_turns > turns
            if is_stop and self.open_response is not None and not is_over:
                self.cut_responses[self.open_response] = None
            for command in batch:
                self.line.take(command, self.now_ms)

    def foresee(self, event: on.Event) -> None:
        """Follow what an event means, apart from the session."""
        match event:
            case on.ResponseStarted(response) if self.open_response is None:
                self.open_response, self.asked = response, None
            case on.ResponseEnded(response) if response == self.open_response:
                self.open_response = None
            case on.SpeechStopped():
                self.asked = None  # what is due from here on is the answer to the turn
            case on.RequestRefused(event_id=named) if self.asked is not None and named == self.asked.event_id:
                self.asked = None
            case on.ToolCalled(tool_call_id=call) if self.session.pickup.stage is not Stage.OVER:
                self.announced[call] = None

    def see(self, batch: list[do.Command]) -> None:
        outward = [command for command in batch if isinstance(command, TO_LINE_OR_MODEL)]
        clears = [command for command in outward if isinstance(command, do.ClearPlayout)]
        assert clears in ([], outward[:1]), "the clear goes first, and once"
        for command in batch:
            self.check_is_plain(command)
            if isinstance(command, do.Request):
                assert command.event_id not in self.requests, "every request has an id of its own"
                self.requests[command.event_id] = command
            match command:
                case do.ClearPlayout(generation):
                    assert generation == self.generation + 1
                    self.generation = generation
                case do.PlayAudio(item_id, generation, count):
                    assert item_id not in self.cut, "nothing of a cut item is played"
                    assert self.event.response_id not in self.cut_responses, "nor of a cut response"
                    assert (generation, count > 0) == (self.generation, True)
                    self.received[item_id] = self.received.get(item_id, 0) + count
                case do.SendMark(mark_id):
                    self.marks.append(mark_id)
                case do.TruncateItem(_, item_id, end_ms):
                    assert item_id not in self.cut, "an item is truncated once"
                    assert type(end_ms) is int
                    assert 0 <= end_ms <= self.received[item_id] * 1000 // RATE_HZ
                case do.RequestReply():
                    assert self.open_response is None, "one response at a time"
                    assert self.asked is None or self.now_ms - self.asked_ms >= REPLY_PATIENCE_MS
                    assert self.session.pickup.stage is Stage.READY
                    is_over_caller = self.session.turns.floor is Floor.HELD
                    assert not is_over_caller or Can.MERGE in self.can, "nor while the caller speaks"
                    self.asked, self.asked_ms = command, self.now_ms
                case do.StartTool(tool_call_id, name):
                    assert tool_call_id not in self.started, "a call is dispatched once"
                    if name == "end_call":
                        self.ending.append(tool_call_id)
                    assert self.event.response_id not in self.cut_responses, "and not by a cut response"
                    self.started[tool_call_id] = None
                case do.PostToolOutput(_, tool_call_id, output):
                    assert tool_call_id not in self.outputs, "a call has one output"
                    assert type(output) is str
                    self.outputs[tool_call_id] = None
                    is_open = tool_call_id in self.ending and "still open" in output
                    assert not is_open or do.UnwatchCaller() in batch
                case do.NoteAnomaly(what) if what.endswith("it is given up") and self.open_response:
                    self.cut_responses[self.open_response] = self.open_response = None
                case do.WatchCaller() if not self.ending:
                    self.is_turn_watched = True
                case do.UnwatchCaller() if self.session.pickup.stage is not Stage.PARTING:
                    assert self.ending or self.is_turn_watched, "a goodbye is withdrawn once"
                    self.is_turn_watched = False
                    self.withdrawn.update(dict.fromkeys(self.ending))
                    self.ending = []
                case do.HangUp():
                    self.hang_ups += 1
                    is_lost = self.session.ending is not None and self.session.ending.by == "model"
                    is_meant = self.ending or isinstance(self.event, HANGS_UP)
                    assert is_meant or is_lost, "no end without a goodbye that stands or a model that brings nothing"
                    assert self.hang_ups == 1, "the line is hung up once"
        for item_id in self.received:
            if self.session.playout.state(item_id) is Playing.CUT:
                self.cut.setdefault(item_id, self.session.playout.position_ms(item_id, self.now_ms))

    def check_is_plain(self, command: do.Command) -> None:
        for field in dataclasses.fields(command):
            assert isinstance(getattr(command, field.name), str | int | tuple), (
                "commands carry no samples and no callables"
            )

    def is_live(self) -> bool:
        return self.session.pickup.stage is Stage.READY

    # --- a call as it should be ------------------------------------------------------------------------------------

    @rule()
    def is_set_up(self):
        if self.session.pickup.stage is Stage.CONNECTING:
            self.give(on.LineOpened(), on.ModelConnected(), on.SessionReady())

    @rule(item=items, pieces=st.lists(lengths_ms, max_size=4), called=st.lists(tools, max_size=2), wait_ms=lengths_ms)
    def a_response_opens(self, item, pieces, called, wait_ms):
        if self.open_response is None:
            self.responses += 1
            self.give(on.ResponseStarted(ResponseId(f"r{self.responses}")))
        self.a_response_goes_on(item, pieces, called, wait_ms)

    def a_response_goes_on(self, item, pieces, called, wait_ms):
        response = self.open_response
        for call, name in called:
            self.give(on.ToolCalled(response, ItemId(f"item of {call}"), call, name, "{}"))
        for ms in pieces:
            self.give(on.AudioReceived(response, item, samples(ms)))
            self.time_passes(wait_ms)
        self.give(on.ReplyWritten(response, item, "one"))

    @precondition(lambda self: self.open_response is not None)
    @rule(status=statuses)
    def the_response_ends(self, status):
        self.give(on.ResponseEnded(self.open_response, status))

    @rule(item=caller_items, turn_ms=lengths_ms)
    def the_caller_takes_a_turn(self, item, turn_ms):
        self.give(on.SpeechStarted(item, 0))
        if self.open_response is not None:
            self.give(on.ResponseEnded(self.open_response, on.ResponseStatus.CANCELLED))
        self.time_passes(turn_ms)
        self.give(on.SpeechStopped(item, turn_ms), on.CallerTranscribed(item, "yes"))

    @precondition(lambda self: any(isinstance(request, do.RetrieveItem) for request in self.requests.values()))
    @rule(data=st.data(), text=texts, is_cut=st.booleans())
    def a_question_is_answered(self, data, text, is_cut):
        asked = [request for request in self.requests.values() if isinstance(request, do.RetrieveItem)]
        self.give(on.ItemRetrieved(data.draw(st.sampled_from(asked)).item_id, text, is_cut=is_cut))

    @precondition(lambda self: len(self.ended_tools) < len(self.started))
    @rule(data=st.data(), outcome=st.sampled_from(list(on.ToolOutcome)))
    def a_tool_ends(self, data, outcome):
        call = data.draw(st.sampled_from([call for call in self.started if call not in self.ended_tools]))
        self.ended_tools[call] = None
        self.give(on.ToolFinished(call, outcome, "output"))

    @rule()
    def the_app_interrupts(self):
        self.give(on.InterruptRequested())

    @rule(is_loud=st.booleans())
    def the_caller_is_loud_or_not(self, is_loud):
        self.give(on.CallerLoud(is_loud))

    @rule(ms=st.integers(0, 2_500) | st.just(9_000))
    def time_passes(self, ms):
        """Time goes by in steps: to whatever the line says next and to each deadline, and not past either."""
        end_ms = self.now_ms + ms
        while True:
            deadline_ms, report_ms = self.session.next_deadline_ms(), self.line.next_report_ms(self.now_ms)
            at_ms = min((at for at in (deadline_ms, report_ms) if at is not None), default=end_ms + 1)
            if at_ms > end_ms:
                break
            self.now_ms = max(at_ms, self.now_ms)
            self.give(*self.line.said(self.now_ms))
            if deadline_ms is not None and deadline_ms <= self.now_ms:
                self.give(on.TimerFired())
                assert self.session.next_deadline_ms() != deadline_ms, "a timer that fired is still due"
        self.now_ms = end_ms
        self.give(*self.line.said(end_ms))

    # --- and as it can be ------------------------------------------------------------------------------------------

    @rule(event=anything)
    def something_comes_out_of_order(self, event):
        self.give(event)

    @precondition(lambda self: self.marks)
    @rule(data=st.data())
    def a_mark_comes_out_of_order(self, data):
        self.give(on.MarkReturned(data.draw(st.sampled_from(self.marks))))

    @precondition(lambda self: self.requests and self.is_live())
    @rule(data=st.data())
    def a_request_is_refused(self, data):
        named = data.draw(st.none() | st.sampled_from(list(self.requests)))
        self.give(on.RequestRefused("invalid_request_error", "no", named))

    @precondition(lambda self: self.is_live())
    @rule(event=endings, chance=st.integers(0, 9))
    def the_call_ends(self, event, chance):
        if not chance:
            self.give(event)

    # --- what always holds ------------------------------------------------------------------------------------------

    @invariant()
    def deadlines_can_be_met(self):
        deadline_ms = self.session.next_deadline_ms()
        audio_ms = sum(self.received.values()) * 1000 // RATE_HZ
        assert deadline_ms is None or deadline_ms <= self.now_ms + TURN_MAX_MS + audio_ms

    @invariant()
    def every_call_has_its_output_once_its_tool_is_through(self):
        if self.session.pickup.stage in (Stage.OVER, Stage.PARTING):
            return
        running = [call for call in self.started if call not in self.ended_tools and call not in self.withdrawn]
        assert sorted(self.session.tools.unanswered()) == sorted(running)
        waiting = [*running, *self.ending]
        assert sorted(self.outputs) == sorted(call for call in self.announced if call not in waiting)

    @invariant()
    def a_goodbye_is_pending_until_it_is_withdrawn_or_the_call_is_over(self):
        if self.session.pickup.stage is not Stage.PARTING:
            is_over = self.session.pickup.stage is Stage.OVER
            assert self.session.leave.goodbye.is_pending == (bool(self.ending) and not is_over)
        if self.session.leave.goodbye.is_pending:
            assert self.now_ms <= self.progress_ms + STALL_CAP_MS + HANDOVER_MS + DECISION_MS

    @invariant()
    def the_record_claims_what_the_line_has_played_and_no_more(self):
        transcript = self.session.transcript()
        assert len({turn.item_id for turn in transcript}) == len(transcript)
        assert self.session.transcript() == transcript
        for turn in transcript:
            state = self.session.playout.state(turn.item_id)
            match turn.source:
                case Source.WHOLE:
                    assert state in (Playing.PLAYED, Playing.COMPLETE)
                case Source.NONE if turn.cut_ms is None:
                    assert state in (Playing.PLAYED, Playing.COMPLETE)
                    assert turn.written == ""
                case Source.ESTIMATED if state is None:
                    assert turn.heard == ""
                    assert self.session.pickup.stage is Stage.OVER
                case Source.RETRIEVED | Source.NONE | Source.ESTIMATED:
                    assert state is Playing.CUT
                    assert turn.cut_ms == self.cut[turn.item_id]
                case Source.PENDING:
                    assert turn.heard == ""
                    assert state is not Playing.PLAYED
                    assert state is not Playing.CUT or self.session.pickup.stage is not Stage.OVER


World.TestCase.settings = settings(stateful_step_count=60)
TestSession = World.TestCase

"""A session under whatever a server, a line, tools and an app can do, in order and out of order."""

from __future__ import annotations

import dataclasses

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.core.drive import RATE_HZ, TOOLS, FakeLine, plan, samples

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.heard import Source
from callwright.core.pickup import Stage
from callwright.core.playout import Playing
from callwright.core.ports import PlayedReports
from callwright.core.session import Can, Session
from callwright.core.turns import REPLY_PATIENCE_MS
from callwright.ids import EventId, ItemId, ResponseId, ToolCallId

responses = st.integers(1, 4).map(lambda number: ResponseId(f"r{number}"))
items = st.integers(1, 6).map(lambda number: ItemId(f"i{number}"))
caller_items = st.integers(1, 3).map(lambda number: ItemId(f"u{number}"))
calls = st.integers(1, 6).map(lambda number: ToolCallId(f"k{number}"))
capabilities = st.integers(0, 7).map(Can)
statuses = st.sampled_from(list(on.ResponseStatus))
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
        self.session = Session(plan(reports, can))
        self.line = FakeLine(reports, lag_ms)
        self.now_ms = 0
        self.open_response: ResponseId | None = None
        self.asked: do.RequestReply | None = None
        self.asked_ms = 0
        self.requests: dict[EventId, do.Command] = {}
        self.started: dict[ToolCallId, None] = {}
        self.ended_tools: dict[ToolCallId, None] = {}
        self.announced: dict[ToolCallId, None] = {}
        self.outputs: dict[ToolCallId, None] = {}
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
            was_over, turns = self.session.pickup.stage is Stage.OVER, self.session.turns.caller_turns
            response, self.handled = self.session.turns.response_id, event
            self.session.handle(event, self.now_ms)
            batch = self.session.commands()
            if was_over:
                assert batch == [], "a call that is over does nothing"
            self.see(batch)
            is_stop = isinstance(event, on.InterruptRequested) or self.session.turns.caller_turns > turns
            if is_stop and response is not None and not was_over:
                self.cut_responses[response] = None
            for command in batch:
                self.line.take(command, self.now_ms)

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
                    assert self.handled.response_id not in self.cut_responses, "nor of a cut response"
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
                    self.asked, self.asked_ms = command, self.now_ms
                case do.StartTool(tool_call_id):
                    assert tool_call_id not in self.started, "a call is dispatched once"
                    assert self.handled.response_id not in self.cut_responses, "and not by a cut response"
                    self.started[tool_call_id] = None
                case do.PostToolOutput(_, tool_call_id, output):
                    assert tool_call_id not in self.outputs, "a call has one output"
                    assert type(output) is str
                    self.outputs[tool_call_id] = None
        for item_id in self.received:
            if self.session.playout.state(item_id) is Playing.CUT:
                self.cut.setdefault(item_id, self.session.playout.position_ms(item_id, self.now_ms))

    def check_is_plain(self, command: do.Command) -> None:
        for field in dataclasses.fields(command):
            assert isinstance(getattr(command, field.name), str | int), "commands carry no samples and no callables"

    def is_live(self) -> bool:
        return self.session.pickup.stage is Stage.READY

    # --- a server as it should be -----------------------------------------------------------------------------------

    @rule()
    def is_set_up(self):
        if self.session.pickup.stage is Stage.CONNECTING:
            self.give(on.LineOpened(), on.ModelConnected(), on.SessionReady())

    @precondition(lambda self: self.open_response is None)
    @rule(response=responses)
    def response_starts(self, response):
        self.response_begins(response)

    @precondition(lambda self: self.open_response is not None)
    @rule(item=items, ms=st.integers(1, 900), text=st.sampled_from(["", "one two three four five"]))
    def reply_goes_on(self, item, ms, text):
        self.give(on.AudioReceived(self.open_response, item, samples(ms)))
        self.give(on.ReplyWritten(self.open_response, item, text))

    @precondition(lambda self: self.open_response is not None)
    @rule(call=calls, name=st.sampled_from([*TOOLS, "no_such"]))
    def tool_is_called(self, call, name):
        self.announce(self.open_response, call, name)

    @precondition(lambda self: self.open_response is not None)
    @rule(status=statuses)
    def response_ends(self, status):
        self.response_closes(self.open_response, status)

    @rule(item=caller_items, turn_ms=st.integers(0, 2_000))
    def caller_takes_a_turn(self, item, turn_ms):
        self.starts_to_speak(item)
        self.time_passes(turn_ms)
        self.give(on.SpeechStopped(item, turn_ms), on.CallerTranscribed(item, "yes"))

    @precondition(lambda self: self.requests)
    @rule(data=st.data(), text=st.sampled_from(["one two", "", None]), is_cut=st.booleans())
    def cut_is_answered(self, data, text, is_cut):
        retrieves = [request for request in self.requests.values() if isinstance(request, do.RetrieveItem)]
        if retrieves:
            self.give(on.ItemRetrieved(data.draw(st.sampled_from(retrieves)).item_id, text, is_cut=is_cut))

    # --- a server, a line and an app as they can be -----------------------------------------------------------------

    @rule(response=responses)
    def response_begins(self, response):
        if self.open_response is None:
            self.open_response, self.asked = response, None
        self.give(on.ResponseStarted(response))

    @rule(response=responses, status=statuses)
    def response_closes(self, response, status):
        if response == self.open_response:
            self.open_response = None
        self.give(on.ResponseEnded(response, status, ""))

    @rule(response=responses, item=items, count=st.integers(0, 3_000))
    def audio_comes(self, response, item, count):
        self.give(on.AudioReceived(response, item, count))

    @rule(response=responses, call=calls, name=st.sampled_from([*TOOLS, "no_such"]))
    def announce(self, response, call, name):
        if self.session.pickup.stage is not Stage.OVER:
            self.announced[call] = None
        self.give(on.ToolCalled(response, ItemId(f"item of {call}"), call, name, "{}"))

    @rule(item=caller_items)
    def starts_to_speak(self, item):
        self.asked = None
        self.give(on.SpeechStarted(item, 0))

    @rule(item=caller_items)
    def stops_to_speak(self, item):
        self.give(on.SpeechStopped(item, 0))

    @rule(item=items | caller_items, after=st.none() | items | caller_items)
    def item_is_placed(self, item, after):
        self.give(on.ItemPlaced(item, after))

    @rule(item=items, text=st.sampled_from(["one", "", None]), is_cut=st.booleans())
    def item_is_told(self, item, text, is_cut):
        self.give(on.ItemRetrieved(item, text, is_cut=is_cut), on.ItemTruncated(item, 100))

    @precondition(lambda self: self.is_live())
    @rule(data=st.data(), is_named=st.booleans())
    def request_is_refused(self, data, is_named):
        named = data.draw(st.sampled_from(list(self.requests))) if is_named else None
        if self.asked is not None and named == self.asked.event_id:
            self.asked = None
        self.give(on.RequestRefused("invalid_request_error", "no", EventId(named) if named else None))

    @rule(data=st.data(), item=items, generation=st.integers(0, 3), ms=st.integers(0, 4_000))
    def line_reports_nonsense(self, data, item, generation, ms):
        self.give(on.LinePlayed(item, generation, ms), on.MarkReturned("no such mark"))
        if self.marks:
            self.give(on.MarkReturned(data.draw(st.sampled_from(self.marks))))

    @rule()
    def app_interrupts(self):
        self.give(on.InterruptRequested())

    @precondition(lambda self: len(self.ended_tools) < len(self.started))
    @rule(data=st.data(), outcome=st.sampled_from(list(on.ToolOutcome)))
    def tool_ends(self, data, outcome):
        call = data.draw(st.sampled_from([call for call in self.started if call not in self.ended_tools]))
        self.ended_tools[call] = None
        self.give(on.ToolFinished(call, outcome, "output"))

    @rule(ms=st.integers(0, 2_500))
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

    @precondition(lambda self: self.is_live())
    @rule(
        event=st.sampled_from(
            [on.LineClosed("caller", "hung up"), on.ModelClosed(1006, ""), on.HangUpRequested("done")]
        ),
        is_meant=st.integers(0, 9).map(lambda number: number == 0),
    )
    def call_ends(self, event, is_meant):
        if is_meant:
            self.give(event)

    # --- what always holds ------------------------------------------------------------------------------------------

    @invariant()
    def deadlines_can_be_met(self):
        deadline_ms = self.session.next_deadline_ms()
        assert deadline_ms is None or deadline_ms <= self.now_ms + 60_000

    @invariant()
    def every_call_has_its_output_once_its_tool_is_through(self):
        if self.session.pickup.stage is not Stage.OVER:
            running = [call for call in self.started if call not in self.ended_tools]
            assert sorted(self.session.tools.unanswered()) == sorted(running)
            assert sorted(self.outputs) == sorted(call for call in self.announced if call not in running)

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
                case Source.RETRIEVED | Source.NONE | Source.ESTIMATED:
                    assert state is Playing.CUT
                    assert turn.cut_ms == self.cut[turn.item_id]
                case Source.PENDING:
                    assert turn.heard == ""
                    assert state is not Playing.PLAYED
                    assert state is not Playing.CUT or self.session.pickup.stage is not Stage.OVER


World.TestCase.settings = settings(stateful_step_count=60)
TestSession = World.TestCase

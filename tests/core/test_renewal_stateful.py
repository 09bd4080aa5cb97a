"""A call whose sessions are lost at any instant: nothing is done twice, and whatever ends says why."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.core.drive import (
    MARKS,
    PULLED,
    TEN_WORDS,
    Call,
    FakeLine,
    audio,
    called,
    ended,
    finished,
)
from tests.core.test_renewal import taken

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.handover import (
    TRIES_MAX,
    Form,
)
from callwright.core.pickup import Stage as Pickup
from callwright.ids import ItemId, ResponseId, ToolCallId


class Lost(RuleBasedStateMachine):
    """A call whose sessions are lost at any instant; its server does nothing out of order."""

    @initialize(reports=st.sampled_from([PULLED, MARKS]), lag_ms=st.sampled_from([0, 400]))
    def begin(self, reports, lag_ms):
        self.call = Call(FakeLine(reports, lag_ms), longest_session_ms=120_000)
        self.count = 0
        self.open: ResponseId | None = None
        self.speaking: ItemId | None = None
        self.running: list[ToolCallId] = []
        self.called: list[ToolCallId] = []
        self.start_ms = 0
        """When the present session's first sample was taken."""
        self.opened = len(self.call.done(do.Connect))

    def is_there(self) -> bool:
        return self.call.session.pickup.stage is Pickup.READY and not self.is_let_go()

    def is_let_go(self) -> bool:
        return len(self.call.done(do.Connect)) > self.opened

    def give(self, *events: on.Event) -> None:
        for event in events:
            self.call.at(self.call.now_ms, event)
        if self.is_let_go():
            self.open = self.speaking = None

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    @rule(ms=st.sampled_from([20, 300, 2_500, 9_000]))
    def time_passes(self, ms):
        self.call.at(self.call.now_ms + ms)
        self.give()

    @precondition(lambda self: self.is_there() and self.speaking is None)
    @rule()
    def the_caller_speaks(self):
        self.speaking = ItemId(self.name("u"))
        self.give(on.SpeechStarted(self.speaking, self.call.now_ms - self.start_ms))
        if self.open is not None and self.speaking is not None:
            response, self.open = self.open, None
            self.give(ended(response, on.ResponseStatus.CANCELLED))

    @precondition(lambda self: self.is_there() and self.speaking is not None)
    @rule(text=st.sampled_from(["Yes.", "Refund it.", None]))
    def he_is_through(self, text):
        item, self.speaking = self.speaking, None
        self.give(on.SpeechStopped(item, self.call.now_ms - self.start_ms))
        if text is not None and self.is_there():
            self.give(on.CallerTranscribed(item, text))

    @precondition(lambda self: self.is_there() and self.open is None and self.speaking is None)
    @rule(ms=st.sampled_from([400, 3_000]), tool=st.sampled_from([None, "look_up", "wait"]), closes=st.booleans())
    def a_reply_begins(self, ms, tool, closes):
        self.open, item = ResponseId(self.name("r")), ItemId(self.name("i"))
        self.give(on.ResponseStarted(self.open), audio(self.open, item, ms))
        if tool is not None and self.open is not None:
            tool_call = ToolCallId(self.name("k"))
            self.called.append(tool_call)
            self.running.append(tool_call)
            self.give(called(tool_call, tool, self.open))
        if closes and self.open is not None:
            response, self.open = self.open, None
            self.give(on.ReplyWritten(response, item, TEN_WORDS), ended(response))

    @precondition(lambda self: self.running and self.call.session.ending is None)
    @rule(data=st.data())
    def a_tool_ends(self, data):
        tool_call = data.draw(st.sampled_from(self.running))
        self.running.remove(tool_call)
        self.give(finished(tool_call))

    @precondition(lambda self: self.call.session.pickup.stage not in (Pickup.OVER, Pickup.PARTING))
    @rule(code=st.sampled_from([1006, 4410, 1007]))
    def the_connection_breaks(self, code):
        if self.is_let_go():
            self.give(on.ConnectFailed("no", is_final=False))
            self.opened = len(self.call.done(do.Connect)) - 1
        else:
            self.give(on.ModelClosed(code, ""))

    @precondition(lambda self: self.is_let_go() and self.call.session.pickup.stage is Pickup.CONNECTING)
    @rule(ms=st.sampled_from([0, 200]))
    def a_session_is_there(self, ms):
        self.call.at(self.call.now_ms + ms)
        if self.call.session.pickup.stage is not Pickup.CONNECTING:
            return
        self.opened = len(self.call.done(do.Connect))
        self.start_ms = self.call.now_ms - 500
        before = len(self.call.log)
        taken(self.call, self.call.now_ms, 500)
        self.check_told([command for _, command in self.call.log[before:]])

    def check_told(self, commands):
        """Whatever was answered goes with its call, and no output stands without one."""
        calls = [each.tool_call_id for each in commands if isinstance(each, do.CarryCall)]
        outputs = [each.tool_call_id for each in commands if isinstance(each, do.PostToolOutput)]
        assert set(outputs) <= set(calls)
        assert len(set(outputs)) == len(outputs)
        if self.call.session.renewal.handover.form is Form.REPLAY:
            assert calls == self.called
            assert [each for each in calls if each not in outputs] == [each for each in calls if each in self.running]
        else:
            assert not calls

    @invariant()
    def each_call_is_started_once_and_its_output_is_news_once(self):
        started = [each.tool_call_id for each in self.call.done(do.StartTool)]
        assert len(set(started)) == len(started)

    @invariant()
    def nothing_is_asked_of_a_session_that_is_gone(self):
        gone = False
        for _, command in self.call.log:
            if isinstance(command, do.Connect):
                gone = True
            elif isinstance(command, do.ConfigureSession):
                gone = False
            assert not (gone and isinstance(command, (do.RequestReply, do.TruncateItem, do.CancelResponse)))

    @invariant()
    def a_call_that_ends_says_why(self):
        ending = self.call.session.ending
        if ending is not None:
            assert ending.by == "model"
            assert ending.reason

    @invariant()
    def there_are_at_most_three_tries_in_a_row(self):
        tries = 0
        for _, command in self.call.log:
            if isinstance(command, do.Connect):
                tries = tries + 1 if command.after_ms else 1
                assert tries <= TRIES_MAX


Lost.TestCase.settings = settings(stateful_step_count=25, max_examples=40)
TestLost = Lost.TestCase

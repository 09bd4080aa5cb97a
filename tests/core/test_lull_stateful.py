"""Whatever a server, a line and tools do: once they behave again, no call stays open in a silence that nobody ends."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.core.drive import BOTH_LINES, CANCELLED, Call, FakeLine, audio, ended, finished
from tests.core.telling import DONE, TOOLS, fact

from callwright.claims.facts import Milestone
from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.notes import END_IT
from callwright.core.pickup import Stage
from callwright.core.toolcalls import AfterOutput
from callwright.core.turns import Floor
from callwright.ids import ItemId, ResponseId, ToolCallId

COMPLETED = on.ResponseStatus.COMPLETED
BROKEN = [on.ResponseStatus.FAILED, on.ResponseStatus.INCOMPLETE, CANCELLED]
NAMES = [*TOOLS, "wait"]
texts = st.sampled_from(["We open at nine.", DONE, "Let me check that.", ""])


class Silences(RuleBasedStateMachine):
    """A call, and what an onlooker knows of it: whether the caller waits, and whether the agent wanted to leave."""

    @initialize(
        reports=st.sampled_from(BOTH_LINES),
        lag_ms=st.sampled_from([0, 400]),
        answers=st.sampled_from([True, True, False]),
    )
    def begin(self, reports, lag_ms, answers):
        self.answers = answers
        """Whether the model, at last, replies to what it is asked."""
        self.call = Call(FakeLine(reports, lag_ms), tools={**TOOLS, "wait": AfterOutput.SILENCE})
        self.count = 0
        self.open: ResponseId | None = None
        self.running: list[ToolCallId] = []
        self.waits = False
        """The caller was not answered since he spoke, or since his first words were lost."""
        self.left_at: int | None = None
        """How many commands there were when the latest goodbye was taken back; None once he spoke again."""

    def give(self, *events: on.Event) -> None:
        for event in events:
            before = len(self.call.log)
            self.call.at(self.call.now_ms, event)
            self.look(before)
            if isinstance(event, on.SpeechStarted):
                self.left_at = None

    def look(self, since: int) -> None:
        for at, (_, command) in enumerate(self.call.log[since:], since):
            if isinstance(command, do.PostToolOutput) and "still open" in command.output:
                self.left_at = at

    def is_ready(self) -> bool:
        return self.call.session.pickup.stage is Stage.READY

    def asks(self, since: int = 0) -> list[do.RequestReply]:
        return [command for _, command in self.call.log[since:] if isinstance(command, do.RequestReply)]

    # --- what happens --------------------------------------------------------------------------------------------

    @precondition(lambda self: self.is_ready() and self.open is None)
    @rule(text=st.none() | texts, tool=st.none() | st.sampled_from(NAMES), status=st.sampled_from([COMPLETED, *BROKEN]))
    def a_response_is_made(self, text, tool, status):
        self.a_response_opens(text, tool)
        self.the_response_ends(status)

    @precondition(lambda self: self.is_ready() and self.open is None)
    @rule(text=st.none() | texts, tool=st.none() | st.sampled_from(NAMES))
    def a_response_opens(self, text, tool):
        self.count += 1
        response, item = ResponseId(f"r{self.count}"), ItemId(f"i{self.count}")
        self.open, self.brings = response, text is not None or tool is not None
        self.give(on.ResponseStarted(response))
        if text is not None:
            self.give(audio(response, item, 2_000), on.ReplyWritten(response, item, text))
        if tool == "end_call":
            self.left_at = None
        if tool is not None:
            call = ToolCallId(f"k{self.count}")
            self.running.append(call)
            self.give(on.ToolCalled(response, item, call, tool, "{}"))

    @precondition(lambda self: self.open is not None)
    @rule(status=st.sampled_from([COMPLETED, *BROKEN]))
    def the_response_ends(self, status):
        response, self.open = self.open, None
        self.give(ended(response, status))
        if status is COMPLETED and self.brings and self.call.session.turns.floor is not Floor.AWAITED:
            self.waits = False

    @precondition(lambda self: self.is_ready() and self.call.session.turns.floor in (Floor.QUIET, Floor.REPLY))
    @rule(turn_ms=st.sampled_from([300, 1_500]), is_cut=st.booleans())
    def the_caller_talks(self, turn_ms, is_cut):
        self.count += 1
        item = ItemId(f"u{self.count}")
        self.give(on.SpeechStarted(item, 0))
        if self.open is not None and is_cut:
            self.the_response_ends(CANCELLED)
        self.time_passes(turn_ms)
        self.give(on.SpeechStopped(item, 0), on.CallerTranscribed(item, "Well?"))
        self.waits = self.is_ready()

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def a_tool_ends(self, data):
        call = data.draw(st.sampled_from(self.running))
        self.running.remove(call)
        self.give(finished(call))

    @rule(milestone=st.sampled_from([Milestone.ACCEPTED, Milestone.CONFIRMED]))
    def the_record_changes(self, milestone):
        self.count += 1
        self.give(fact(milestone, self.count))

    @precondition(lambda self: self.is_ready() and self.open is None)
    @rule(is_outcome=st.booleans(), ms=st.sampled_from([0, 2_500]))
    def a_goodbye_is_taken_back(self, is_outcome, ms):
        self.a_response_is_made(None, "issue_refund" if is_outcome else "look_up", COMPLETED)
        if self.is_ready():
            self.a_response_is_made("Goodbye.", "end_call", COMPLETED)
        self.time_passes(ms)
        if is_outcome:
            self.the_record_changes(Milestone.CONFIRMED)
        while self.running:
            self.give(finished(self.running.pop()))

    @precondition(lambda self: self.is_ready())
    @rule()
    def first_words_are_lost(self):
        self.give(on.FirstWordsLost(1_000))
        self.waits = True

    @precondition(lambda self: self.call.session.turns.floor is Floor.ASKED)
    @rule()
    def a_request_is_refused(self):
        self.give(on.RequestRefused("rate_limit", "no", self.asks()[-1].event_id))

    @rule(ms=st.sampled_from([200, 2_500, 7_000]))
    def time_passes(self, ms):
        before = len(self.call.log)
        self.call.at(self.call.now_ms + ms)
        self.look(before)

    # --- the faults stop -----------------------------------------------------------------------------------------

    def teardown(self):
        if not hasattr(self, "call"):
            return
        if self.open is not None:
            self.the_response_ends(COMPLETED)
        while self.running:
            self.give(finished(self.running.pop()))
        for _ in range(40):
            since = len(self.call.log)
            self.time_passes(4_000)
            if self.answers and self.is_ready() and self.asks(since) and self.open is None:
                self.a_response_opens("We open at nine.", None)
                self.the_response_ends(COMPLETED)
        if self.is_ready():
            assert not self.waits, "the caller is answered, or the call is over"
            assert self.left_at is None or self.is_asked_to_leave(), "who wanted to leave is asked to"

    def is_asked_to_leave(self) -> bool:
        since = self.call.log[self.left_at :]
        return any(isinstance(command, do.PostFacts) and command.text == END_IT for _, command in since)


Silences.TestCase.settings = settings(stateful_step_count=20, max_examples=60)
TestSilences = Silences.TestCase

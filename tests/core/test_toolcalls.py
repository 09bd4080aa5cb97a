"""Each tool call is dispatched at most once and gets exactly one output; outputs of one response share a reply."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.core.drive import K1, K2, R1, R2, R3, TOOLS
from tests.core.machines import snapshot, written_rows

from callwright.core.toolcalls import SLOW_TOOL_MS, TOOL_CALLS, CallState, ToolCalls, Verdict
from callwright.errors import IllegalTransition
from callwright.ids import ToolCallId

ROWS = """
CALLED DISPATCHED -> RUNNING
CALLED REFUSED -> ANSWERED
RUNNING FINISHED -> ANSWERED
RUNNING WITHHELD -> WITHHELD
RUNNING SETTLED -> OUTLIVED
WITHHELD SETTLED -> ANSWERED
OUTLIVED FINISHED -> ANSWERED
"""


def call(calls: ToolCalls, tool_call_id=K1, name="look_up", response_id=R1, is_cut=False, caller_turns=1) -> Verdict:
    return calls.called(tool_call_id, response_id, name, is_cut=is_cut, caller_turns=caller_turns)


def end(calls: ToolCalls, tool_call_id, now_ms=0) -> None:
    calls.finished(tool_call_id)
    calls.answered(tool_call_id, now_ms)


def at(state: CallState) -> ToolCalls:
    """A call is handed on or refused within its announcement, so that CALLED can't be met from outside."""
    calls = ToolCalls(TOOLS)
    call(calls)
    if state is CallState.ANSWERED:
        end(calls, K1)
    assert calls._calls[K1].state is state
    return calls


def test_rows():
    assert written_rows(TOOL_CALLS) == ROWS.split("\n")[1:-1]


@pytest.mark.parametrize(
    ("name", "is_cut", "verdict", "state"),
    [
        ("look_up", False, Verdict.DISPATCH, CallState.RUNNING),
        ("wait", False, Verdict.DISPATCH, CallState.RUNNING),
        ("no_such", False, Verdict.UNKNOWN, CallState.ANSWERED),
        ("look_up", True, Verdict.STALE, CallState.ANSWERED),
        ("no_such", True, Verdict.STALE, CallState.ANSWERED),
    ],
)
def test_an_announced_call_is_handed_on_or_answered_at_once(name, is_cut, verdict, state):
    calls = ToolCalls(TOOLS)
    assert call(calls, name=name, is_cut=is_cut) is verdict
    assert calls._calls[K1].state is state
    assert calls.unanswered() == ((K1,) if state is CallState.RUNNING else ())


@pytest.mark.parametrize("state", [CallState.RUNNING, CallState.ANSWERED])
def test_a_call_that_is_announced_again_changes_nothing(state):
    calls = at(state)
    before = snapshot(calls)
    assert call(calls, name="find", response_id=R2, is_cut=True) is Verdict.REPEAT
    assert snapshot(calls) == before


def test_a_running_tool_ends_once_and_a_second_end_raises_and_changes_nothing():
    calls = at(CallState.RUNNING)
    calls.finished(K1)
    before = snapshot(calls)
    with pytest.raises(IllegalTransition):
        calls.finished(K1)
    assert snapshot(calls) == before


def test_a_call_that_was_refused_has_its_output_and_can_not_end():
    calls = ToolCalls(TOOLS)
    call(calls, name="no_such")
    with pytest.raises(IllegalTransition):
        calls.finished(K1)


def test_the_end_of_a_call_that_was_never_announced_raises():
    with pytest.raises(KeyError):
        ToolCalls(TOOLS).finished(K1)


def test_outputs_of_one_response_share_a_reply_when_the_last_is_there():
    calls = ToolCalls(TOOLS)
    call(calls, K1)
    call(calls, K2)
    end(calls, K1, 100)
    assert not calls.take_due(None, 1, 100)
    end(calls, K2, 900)
    assert calls.take_due(None, 1, 900)
    assert not calls.take_due(None, 1, 900)


def test_a_slow_tool_holds_the_reply_back_for_a_while_and_then_gets_its_own():
    calls = ToolCalls(TOOLS)
    call(calls, K1)
    call(calls, K2)
    end(calls, K1, 100)
    assert calls.next_deadline_ms() == 100 + SLOW_TOOL_MS
    assert calls.take_due(None, 1, 100 + SLOW_TOOL_MS)
    assert calls.next_deadline_ms() is None
    end(calls, K2, 15_000)
    assert calls.take_due(None, 1, 15_000)


def test_a_response_that_is_open_may_still_call():
    """A tool can be through before the next one is announced: both belong to the same reply."""
    calls = ToolCalls(TOOLS)
    call(calls, K1)
    end(calls, K1, 5)
    assert not calls.take_due(R1, 1, 5)
    call(calls, K2)
    assert not calls.take_due(None, 1, 300)
    end(calls, K2, 900)
    assert calls.take_due(None, 1, 900)


def test_if_the_caller_has_moved_on_the_output_waits_in_history():
    calls = at(CallState.RUNNING)
    end(calls, K1)
    assert not calls.take_due(None, 2, 0)
    assert calls.next_deadline_ms() is None


@pytest.mark.parametrize(("name", "is_cut"), [("wait", False), ("look_up", True)], ids=["quiet tool", "cut response"])
def test_after_silence_no_reply_is_wished_for(name, is_cut):
    calls = ToolCalls(TOOLS)
    if call(calls, name=name, is_cut=is_cut) is Verdict.DISPATCH:
        calls.finished(K1)
    calls.answered(K1, 0)
    assert not calls.take_due(None, 1, 0)
    assert calls.next_deadline_ms() is None


ids = st.integers(1, 6).map(lambda number: ToolCallId(f"k{number}"))
responses = st.sampled_from([R1, R2, R3])


class ToolCallsMachine(RuleBasedStateMachine):
    """Announcements in any number and order, tools that end in any order: one dispatch, one output, due once."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = ToolCalls(TOOLS)
        self.now_ms = 0
        self.caller_turns = 0
        self.running: dict[ToolCallId, None] = {}
        self.outputs: dict[ToolCallId, int] = {}

    @rule(tool_call_id=ids, name=st.sampled_from([*TOOLS, "no_such"]), response_id=responses, is_cut=st.booleans())
    def announce(self, tool_call_id, name, response_id, is_cut):
        was_known = tool_call_id in self.outputs or tool_call_id in self.running
        verdict = call(self.calls, tool_call_id, name, response_id, is_cut, self.caller_turns)
        assert (verdict is Verdict.REPEAT) is was_known
        if verdict is Verdict.DISPATCH:
            self.running[tool_call_id] = None
        elif verdict in (Verdict.STALE, Verdict.UNKNOWN):
            self.answer(tool_call_id)

    @rule(tool_call_id=ids)
    def end(self, tool_call_id):
        if tool_call_id in self.running:
            self.calls.finished(tool_call_id)
            del self.running[tool_call_id]
            self.answer(tool_call_id)
            return
        before = snapshot(self.calls)
        with pytest.raises(IllegalTransition if tool_call_id in self.outputs else KeyError):
            self.calls.finished(tool_call_id)
        assert snapshot(self.calls) == before

    def answer(self, tool_call_id):
        self.outputs[tool_call_id] = self.outputs.get(tool_call_id, 0) + 1
        self.calls.answered(tool_call_id, self.now_ms)

    @rule(ms=st.integers(0, SLOW_TOOL_MS), open_response=st.none() | responses)
    def time_passes(self, ms, open_response):
        self.now_ms += ms
        self.calls.take_due(open_response, self.caller_turns, self.now_ms)
        assert not self.calls.take_due(open_response, self.caller_turns, self.now_ms)
        deadline_ms = self.calls.next_deadline_ms()
        assert deadline_ms is None or deadline_ms > self.now_ms

    @rule()
    def caller_speaks(self):
        self.caller_turns += 1

    @invariant()
    def what_runs_is_what_is_unanswered(self):
        assert list(self.calls.unanswered()) == [key for key in self.calls._calls if key in self.running]
        assert set(self.outputs.values()) <= {1}


ToolCallsMachine.TestCase.settings = settings(stateful_step_count=25)
TestToolCallsMachine = ToolCallsMachine.TestCase

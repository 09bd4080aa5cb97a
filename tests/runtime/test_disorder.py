"""Whatever a server sends, in whatever order: the call goes on to its end, and every tool call has one answer."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.calls import (
    ANYTHING,
    CREATED,
    OPENING,
    PHONE,
    SPEAKER,
    UPDATED,
    call_item,
    calls,
    delta,
    ended,
    error,
    item_done,
    retrieved,
    speech_started,
    speech_stopped,
    started,
    take,
    written,
)

import callwright as cw
from callwright.sim.line import LineKind, LineSettings
from callwright.testing.scripted import Step, after, emit
from callwright.wire import items, server

responses = st.sampled_from(["r1", "r2", "r3"])
item_ids = st.sampled_from(["a", "b", "u1", "u2"])
previous = st.sampled_from([None, "root", "a", "b", "u1", "never seen"])
tools = st.sampled_from(["look", "wait", "raises", "endless", "no_such_tool"])
call_ids = st.sampled_from(["k1", "k2"])
statuses = st.sampled_from(["completed", "cancelled", "failed", "incomplete", "dreaming"])


def committed(item_id: str, previous_id: str | None) -> Step:
    return emit(server.InputAudioBufferCommitted(item_id=item_id, previous_item_id=previous_id))


def added(item_id: str, previous_id: str | None) -> Step:
    item = items.MessageItem(id=item_id, role="assistant")
    return emit(server.ConversationItemAdded(item=item, previous_item_id=previous_id))


def truncated(item_id: str, end_ms: int) -> Step:
    return emit(server.ConversationItemTruncated(item_id=item_id, audio_end_ms=end_ms))


def transcribed(item_id: str) -> Step:
    return emit(server.ConversationItemInputAudioTranscriptionCompleted(item_id=item_id, transcript="Hello."))


EVENTS: st.SearchStrategy[Step] = st.one_of(
    st.builds(after, st.sampled_from([1, 20, 200, 1_000, 7_000])),
    st.builds(started, responses),
    st.builds(ended, responses, statuses),
    st.builds(lambda response_id: ended(response_id, "completed", call_item("look", "k1")), responses),
    st.builds(delta, st.sampled_from([0, 20, 200, 400]), item_ids, responses),
    st.builds(written, st.sampled_from(["", "One two three four."]), item_ids, responses),
    st.builds(calls, tools, call_ids, responses, st.sampled_from(["{}", "", "{"])),
    st.builds(item_done, tools, call_ids, responses),
    st.builds(speech_started, item_ids, st.sampled_from([0, 500])),
    st.builds(speech_stopped, item_ids, st.sampled_from([0, 900])),
    st.builds(retrieved, st.sampled_from(["One two-", "One two three four.", "", "-"]), item_ids),
    st.builds(error, st.sampled_from([None, "cw_1", "cw_2", "cw_3", "cw_4"])),
    st.builds(committed, item_ids, previous),
    st.builds(added, item_ids, previous),
    st.builds(truncated, item_ids, st.sampled_from([0, 100, 99_999])),
    st.builds(transcribed, item_ids),
    st.sampled_from([CREATED, UPDATED, emit(b"not json"), emit({"type": "response.sparkles"})]),
)
LINES = st.sampled_from(
    [
        PHONE,
        SPEAKER,
        LineSettings(LineKind.PHONE, hidden_lag_ms=500),
        LineSettings(LineKind.PHONE, clear_returns_marks=False),
    ]
)


@settings(max_examples=60)
@given(steps=st.lists(EVENTS, max_size=30), line=LINES, can=st.sampled_from([None, cw.Can(0)]))
def test_a_call_survives_disorder(steps: list[Step], line: LineSettings, can: cw.Can | None) -> None:
    options = {"settings": line, "can": can, "ignoring": ANYTHING, "hang_up_ms": 9_000}
    taken = take(*OPENING, *steps, is_whole=False, **options)
    assert taken.result.ending == cw.Ending("caller", "hung up")
    counted = {name: Counter(row[3]["tool_call_id"] for row in taken.rows if row[2] == name) for name in TOOL_ROWS}
    assert counted["ToolFinished"] == counted["StartTool"]
    assert all(count == 1 for name in ("StartTool", "PostToolOutput") for count in counted[name].values())
    assert counted["PostToolOutput"].keys() <= counted["ToolCalled"].keys()


TOOL_ROWS = ("ToolCalled", "StartTool", "ToolFinished", "PostToolOutput")


@pytest.mark.parametrize("count", [1, 200])
def test_a_burst_of_one_event_is_one_event(count: int) -> None:
    """The same announcement again and again changes nothing, and costs no call."""
    burst = (*(speech_started(),) * count, *(speech_stopped(),) * count, *(started(),) * count)
    taken = take(*OPENING, *burst, delta(400), *(ended(),) * count, ignoring=ANYTHING)
    assert taken.result.ending.by == "caller"
    assert [(turn.speaker, turn.item_id) for turn in taken.result.turns] == [("caller", "u1"), ("agent", "a")]

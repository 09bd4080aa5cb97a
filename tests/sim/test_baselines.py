"""The naive client does what tutorials show, and its record says what it wrote, not what was heard."""

from __future__ import annotations

import json

import pytest
from tests.sim.whole_call import WAITED_FOR, agent_heard, check_in, check_in_call, heard_by_the_books

from callwright.sim.baselines import BASELINES
from callwright.sim.models import ToolAnswered
from callwright.sim.record import CallRecord
from callwright.sim.world import CLIENTS, Options, play


def naive(lag_ms: int = 0) -> CallRecord:
    return play(check_in(), 1, client="naive", options=Options(lag_ms=lag_ms))


def sent(record: CallRecord) -> list[str]:
    rows = [json.loads(row) for row in record.trace.splitlines()]
    return [what for _, kind, what in rows if kind == "sent"]


def test_baselines_are_clients_by_name() -> None:
    assert ("callwright", *BASELINES) == CLIENTS
    assert "naive" in CLIENTS


def test_c011_naive_writes_down_the_whole_reply_although_it_was_cut() -> None:
    record, ours = naive(), check_in_call()
    cut, *_ = [turn for turn in record.turns if turn.speaker == "agent"]
    assert cut.heard == cut.written
    assert len(cut.heard.split()) > len(heard_by_the_books(record, cut.item_id).split()) + 20
    ours_cut, *_ = [turn for turn in ours.turns if turn.speaker == "agent"]
    assert ours_cut.written == cut.written  # the same seed: the same call up to here


@pytest.mark.parametrize("lag_ms", [0, 1_500])
def test_c006_naive_truncates_nothing_and_clears_nothing(lag_ms: int) -> None:
    """The caller hears whatever the line was handed, long after he has begun to speak."""
    record = naive(lag_ms)
    assert record.truncations == ()
    assert sent(record) == ["session.update"]
    confirmed_ms = record.confirmations[0].at_ms
    spans = [span for span in record.ear if span.item_id == record.spoken[0].item_id]
    ends_ms = max(span.at_ms + span.to_ms - span.from_ms for span in spans)
    assert ends_ms - confirmed_ms >= 100 + lag_ms
    ours = play(check_in(), 1, options=Options(lag_ms=lag_ms))
    ours_ms = max(span.at_ms + span.to_ms - span.from_ms for span in ours.ear if span.item_id == ours.spoken[0].item_id)
    assert ours_ms - ours.confirmations[0].at_ms <= 40


def test_naive_runs_the_tool_posts_its_output_and_asks_for_a_reply() -> None:
    record = play(WAITED_FOR, 1, client="naive")
    assert sent(record) == ["session.update", "conversation.item.create", "response.create"]
    assert len([item for item in record.history if isinstance(item, ToolAnswered)]) == 1
    assert agent_heard(record)[-1] == "I found it. Room two fourteen, two nights, checking in on Friday."


def test_naive_loses_what_is_said_before_the_session_stands() -> None:
    assert (naive().held_sent_ms, check_in_call().held_sent_ms) == (0, 220)


def test_naive_ends_with_the_line() -> None:
    record = naive()
    assert (record.error, record.unspoken) == (None, ())
    assert record.connected_ms == len(record.recording.agent) // 8

"""Calls over a connection that breaks, or whose session ends: nothing is done twice, and the caller is answered.

That a refund is made once, and told, at whatever instant it breaks, is for ``test_refund_sweep``.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.sim.whole_call import LOOK_UP, check_in, first, hangs_up, quick, says, scenario

from callwright.cli.plan import ROOTS
from callwright.errors import ConnectionFailed
from callwright.ids import Ms
from callwright.sim.caller import Anchor
from callwright.sim.models import ToolAnswered, ToolRequested
from callwright.sim.quick import QuickResult
from callwright.sim.record import CallRecord
from callwright.sim.scenario import Scenario, find_scenarios, load_scenario
from callwright.sim.world import Options, play

NOTICE = "You're speaking with our automated assistant."
GAP_MS_MAX = 3_000


def over(call: Scenario, **connection: Any) -> Scenario:
    """A call over a connection that is not as good as usual."""
    return replace(call, connection=replace(call.connection, **connection))


def done(record: CallRecord | QuickResult, name: str) -> list[tuple[Ms, dict[str, Any]]]:
    """The commands of one kind, with their instants."""
    rows = [json.loads(row) for row in record.trace.splitlines()]
    return [(row[0], row[3]) for row in rows if row[1:3] == ["do", name]]


def check(record: CallRecord | QuickResult, sessions: int) -> None:
    """What holds whenever a session was followed by another one."""
    assert len(done(record, "StateRestored")) == sessions - 1
    assert all(row["gap_ms"] <= GAP_MS_MAX and not row["lost_ms"] for _, row in done(record, "StateRestored"))
    heard = [turn.heard for turn in record.turns if turn.speaker == "agent" and NOTICE in turn.heard]
    assert len(heard) == 1, "one introduction that was heard"
    calls = [item.tool_call_id for item in record.history if isinstance(item, ToolRequested)]
    answered = [item.tool_call_id for item in record.history if isinstance(item, ToolAnswered)]
    assert len(set(calls)) == len(calls)
    assert sorted(set(answered)) == sorted(answered), "one output for each call"


def is_answered(record: CallRecord | QuickResult, by: str) -> bool:
    """Whether a reply that ends so was heard to its end."""
    return any(turn.heard.endswith(by) for turn in record.turns)


PARKING = "Parking here is valet only, at forty dollars a night."


# --- a session after another


def test_c110_what_the_caller_said_into_a_connection_that_breaks_is_heard_again_and_answered() -> None:
    """In the middle of his first question: the new session hears it whole, from the samples kept of it."""
    record = play(over(check_in(), drops_at_ms=(2_000,)), 1)
    check(record, 2)
    assert (record.ended_by, record.unspoken) == ("caller", ())
    assert is_answered(record, PARKING)


@pytest.mark.parametrize("seed", range(1, 8))
def test_c107_a_caller_is_answered_and_greeted_once_whenever_the_connection_breaks(seed: int) -> None:
    """Every 6 s of a call of 45 s, with another chance each."""
    record = quick(over(check_in(), drops_at_ms=(seed * 6_100 - 1_500,)), seed)
    check(record, 2)
    assert record.ending.by == "caller"
    assert is_answered(record, PARKING)


def test_a_connection_that_breaks_again_and_again_is_followed_each_time() -> None:
    record = quick(over(check_in(), drops_at_ms=(3_000, 15_000, 28_000)), 1)
    check(record, 4)
    assert record.ending.by == "caller"


LONG = replace(
    scenario(
        *(first("ask-check-in"), says("ask-parking", Anchor.PICKUP, 62_000), says("go-on", Anchor.PICKUP, 75_000)),
        hangs_up(),
    ),
    rates={},
)


def test_c107_a_session_is_handed_over_in_a_quiet_moment_before_its_end() -> None:
    """The server would close after 60 s; nothing is said then, and nothing is lost."""
    record = quick(LONG, 1, longest_session_ms=60_000)
    check(record, 2)
    ((at_ms, restored),) = done(record, "StateRestored")
    assert 45_000 <= at_ms < 46_000
    assert restored["items"] >= 2
    assert not [note for note in record.anomalies if "session" in note]
    assert record.ending.by == "caller"
    assert is_answered(record, PARKING)


def test_c107_a_session_that_ends_unannounced_is_followed_by_another_one() -> None:
    record = quick(check_in(), 1, longest_session_ms=30_000)
    check(record, 2)
    assert "connection closed: 4410; another session is opened: session_expired" in record.anomalies
    assert record.ending.by == "caller"


@pytest.mark.parametrize("ends_ms", [12_000, 17_000, 22_500], ids=["refund runs", "outcome is told", "silence"])
def test_c107_a_refund_is_made_once_and_told_whenever_the_session_ends(ends_ms: Ms) -> None:
    """The server says ``session_expired`` and closes with 4410."""
    refund = load_scenario(find_scenarios(ROOTS)["did-it-go-through"])
    record = play(refund, 1, options=Options(server={"longest_session_ms": ends_ms}))
    restored = [row for _, row in done(record, "StateRestored")]
    assert restored
    assert all(row["gap_ms"] <= GAP_MS_MAX and not row["lost_ms"] for row in restored)
    assert "connection closed: 4410; another session is opened: session_expired" in record.anomalies
    assert [effect.text for effect in record.book if effect.status == "succeeded"] == list(refund.expect.effects)
    outcome = "Good news. The refund of 32 dollars to your Visa ending in 4242 is done."
    assert [turn.heard for turn in record.turns].count(outcome) == 1
    assert (record.ended_by, record.violations) == ("agent", ())


def test_an_interruption_is_on_the_calls_clock_in_whichever_session_it_falls() -> None:
    """The audio clock of the second session begins with its own first sample."""
    speaks = says("ask-breakfast", Anchor.REPLY_START, 1_500)
    record = quick(over(scenario(LOOK_UP, speaks, hangs_up()), drops_at_ms=(1_000,)), 1)
    (confirmed,) = record.confirmations
    begins_ms = next(line.started_ms for line in record.caller_lines if line.line_id == "ask-breakfast")
    assert begins_ms - 32 <= confirmed.onset_ms <= begins_ms + 32, "to a frame of its detector"


def test_frames_that_flow_keep_a_session_from_being_closed_as_idle() -> None:
    """A minute of a silent caller, where the server would close after half of it."""
    record = quick(scenario(first("ask-parking"), hangs_up(60_000)), 1, longest_silence_ms=30_000)
    assert not done(record, "StateRestored")
    assert record.ending.by == "caller"


@pytest.mark.parametrize("closes", [False, True])
def test_c108_a_server_that_takes_no_tool_calls_is_told_in_a_summary(closes: bool) -> None:
    call = over(scenario(LOOK_UP, hangs_up(6_000)), drops_at_ms=(12_000,))
    record = quick(call, 1, takes_calls=False, closes_on_calls=closes)
    assert len(done(record, "StateRestored")) == (2 if closes else 1)
    told = [row["more"] for _, row in done(record, "ConfigureSession") if "you called look_up" in row["more"]]
    assert len(told) == (2 if closes else 1), "where it closes on the first, in the next session again"
    assert len(done(record, "Connect")) <= 1 + 3
    assert len(record.outputs("look_up_booking")) == 1


# --- no connection


SHORT = scenario(first("ask-parking"), hangs_up())


def test_c111_what_may_pass_is_tried_three_times() -> None:
    record = quick(over(SHORT, refuses=(503, 429)), 1)
    assert [row["after_ms"] for _, row in done(record, "Connect")] == [0, 500, 2_000]
    assert record.ending.by == "caller"


@pytest.mark.parametrize(("refuses", "tries"), [((401, 401), 1), ((503, 503, 503, 503), 3)])
def test_c111_what_is_hopeless_is_tried_once_and_a_server_that_stays_away_three_times(
    refuses: tuple[int, ...], tries: int
) -> None:
    with pytest.raises(ConnectionFailed, match=f"HTTP {refuses[0]}"):
        quick(over(SHORT, refuses=refuses[:tries]), 1)

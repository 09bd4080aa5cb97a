"""Whole calls over a connection that breaks: nothing is done twice, and the caller is answered."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from tests.sim.whole_call import first, hangs_up, says, scenario

from callwright.cli.playing import ROOTS
from callwright.errors import ConnectionFailed
from callwright.ids import Ms
from callwright.sim.caller import Anchor
from callwright.sim.models import ToolAnswered, ToolRequested
from callwright.sim.record import CallRecord
from callwright.sim.scenario import Scenario, load_scenario, locate_scenario
from callwright.sim.world import play

NOTICE = "You're speaking with our automated assistant."
GAP_MS_MAX = 3_000


@cache
def known(name: str) -> Scenario:
    return load_scenario(locate_scenario(name, ROOTS))


def over(call: Scenario, seed: int = 1, *, server: dict[str, Any] | None = None, **connection: Any) -> CallRecord:
    """A call over a connection that is not as good as usual."""
    changed = replace(call, connection=replace(call.connection, **connection))
    return play(replace(changed, server={**call.server, **(server or {})}), seed)


def done(record: CallRecord, name: str) -> list[tuple[Ms, dict[str, Any]]]:
    """The commands of one kind, with their instants."""
    rows = [json.loads(row) for row in record.trace.splitlines()]
    return [(row[0], row[3]) for row in rows if row[1:3] == ["do", name]]


def check(record: CallRecord, sessions: int) -> None:
    """What holds whenever a session was followed by another one."""
    assert len(done(record, "StateRestored")) == sessions - 1
    assert all(row["gap_ms"] <= GAP_MS_MAX and not row["lost_ms"] for _, row in done(record, "StateRestored"))
    heard = [turn.heard for turn in record.turns if turn.speaker == "agent" and turn.heard.startswith(NOTICE)]
    assert len(heard) <= 1, "one introduction that was heard"
    calls = [item.tool_call_id for item in record.history if isinstance(item, ToolRequested)]
    answered = [item.tool_call_id for item in record.history if isinstance(item, ToolAnswered)]
    assert len(set(calls)) == len(calls)
    assert sorted(set(answered)) == sorted(answered), "one output for each call"
    assert not record.violations


PARKING = "Parking here is valet only, at forty dollars a night."
DONE = "Good news. The refund of 32 dollars to your Visa ending in 4242 is done."
REFUND = "refund order:4417 32.00 USD card:4242"
HIS_TURN, MID_REPLY, LATE = 2_000, 12_000, 40_000


@pytest.mark.parametrize("at_ms", [HIS_TURN, MID_REPLY, LATE])
def test_c107_a_caller_who_asks_about_checking_in_is_answered_over_a_connection_that_breaks(at_ms: Ms) -> None:
    record = over(known("check-in"), drops_at_ms=(at_ms,))
    check(record, 2)
    assert record.ended_by == "caller"
    assert not record.unspoken
    assert any(turn.heard.endswith(PARKING) for turn in record.turns)


@pytest.mark.parametrize("at_ms", [8_100, 13_000, 20_000])
def test_c110_a_refund_is_made_once_and_told_whatever_instant_the_connection_breaks_at(at_ms: Ms) -> None:
    """As the action is asked for, in the answer to a question about it, in the outcome."""
    record = over(known("did-it-go-through"), drops_at_ms=(at_ms,))
    check(record, 2)
    assert [each.text for each in record.book if each.status == "succeeded"] == [
        "refund order:4417 32.00 USD card:4242"
    ]
    assert DONE in [turn.heard for turn in record.turns]
    assert record.outbox == ()


def test_a_connection_that_breaks_again_and_again_is_followed_each_time() -> None:
    record = over(known("check-in"), drops_at_ms=(3_000, 15_000, 28_000))
    check(record, 4)
    assert record.ended_by == "caller"


LONG = scenario(
    first("ask-check-in"), says("ask-parking", Anchor.PICKUP, 62_000), says("go-on", Anchor.PICKUP, 75_000), hangs_up()
)


def test_c107_a_session_is_handed_over_in_a_quiet_moment_before_its_end() -> None:
    """The server would close after 60 s; nothing is said then, and nothing is lost."""
    record = over(LONG, server={"longest_session_ms": 60_000})
    check(record, 2)
    ((at_ms, restored),) = done(record, "StateRestored")
    assert 45_000 <= at_ms < 46_000
    assert restored["items"] >= 2
    assert not [note for note in record.anomalies if "session" in note]
    assert record.ended_by == "caller"
    assert any(turn.heard.endswith(PARKING) for turn in record.turns)


def test_c107_a_session_that_ends_unannounced_is_followed_by_another_one() -> None:
    record = over(known("check-in"), server={"longest_session_ms": 30_000})
    check(record, 2)
    assert any(
        "connection closed: 4410; another session is opened: session_expired" in note for note in record.anomalies
    )
    assert record.ended_by == "caller"


def test_frames_that_flow_keep_a_session_from_being_closed_as_idle() -> None:
    """A minute of a silent caller, where the server would close after half of it."""
    call = scenario(first("ask-parking"), hangs_up(60_000))
    record = over(call, server={"longest_silence_ms": 30_000})
    check(record, 1)
    assert record.ended_by == "caller"


@pytest.mark.parametrize("closes", [False, True])
def test_c108_a_server_that_takes_no_tool_calls_is_told_in_a_summary(closes: bool) -> None:
    server = {"takes_calls": False, "closes_on_calls": closes}
    record = over(known("did-it-go-through"), server=server, drops_at_ms=(13_000,))
    check(record, 3 if closes else 2)
    told = [row["more"] for _, row in done(record, "ConfigureSession") if "you called issue_refund" in row["more"]]
    assert len(told) == (2 if closes else 1), "where it closes on the first, in the next session again"
    assert len(done(record, "Connect")) <= 1 + 3
    assert [each.text for each in record.book if each.status == "succeeded"] == [
        "refund order:4417 32.00 USD card:4242"
    ]


SHORT = scenario(first("ask-parking"), hangs_up())


def test_c111_what_may_pass_is_tried_three_times() -> None:
    record = over(SHORT, refuses=(503, 429))
    assert [row["after_ms"] for _, row in done(record, "Connect")] == [0, 500, 2_000]
    assert record.ended_by == "caller"


@pytest.mark.parametrize(("refuses", "tries"), [((401, 401), 1), ((503, 503, 503, 503), 3)])
def test_c111_what_is_hopeless_is_tried_once_and_a_server_that_stays_away_three_times(
    refuses: tuple[int, ...], tries: int
) -> None:
    with pytest.raises(ConnectionFailed, match=f"HTTP {refuses[0]}"):
        over(SHORT, refuses=refuses[:tries])

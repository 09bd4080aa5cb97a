"""The same scenario in virtual and in real time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path

import pytest

from callwright.core.ports import Connector
from callwright.errors import UsageError
from callwright.measure.figures import METRICS
from callwright.runtime.endpoint import Endpoint
from callwright.runtime.fast import PicowsConnector
from callwright.runtime.websocket import WebSocketConnector
from callwright.sim.agents import tools_of
from callwright.sim.line import SimulatedLine
from callwright.sim.live import play_live, play_side_by_side
from callwright.sim.record import CallRecord
from callwright.sim.scenario import Scenario, load_scenario
from callwright.sim.server import ServerSession
from callwright.sim.server.websocket import RealtimeServer
from callwright.sim.world import Options, play, take_call

HOTEL = Path(str(resources.files("callwright.apps.hotel")))
HEAD = """
scenario: short
about: the caller asks about the wifi, talks over the answer to say goodbye, and hangs up over the goodbye
agent: callwright.apps.hotel:desk
line: {{kind: phone}}
model: {{rules: {rules}}}
expect: {{max: {{heard_error_ms: 100}}}}
caller:
"""
TALKS = """
  - {when: pickup + 100 ms, says: ask-wifi}
  - {when: reply.start + 600 ms, says: thats-all}
  - {when: reply.start + 100 ms, does: hang_up}
"""
LEAVES = """
  - {when: pickup + 600 ms, does: hang_up}
"""


def scenario(directory: Path, caller: str) -> Scenario:
    path = directory / "short.yaml"
    path.write_text(HEAD.format(rules=HOTEL / "hotel.model.yaml") + caller, "utf-8")
    return load_scenario(path, tools_of, METRICS)


def commands(record: CallRecord) -> list[tuple[str, str | None]]:
    """What the client did, in order, and to which item; the pieces of audio before a cut are up to the clock."""
    rows = [row for row in map(json.loads, record.trace.splitlines()) if row[1] == "do"]
    did = [(name, fields.get("item_id")) for _, _, name, fields in rows]
    return [each for each in did if each[0] not in ("PlayAudio", "SendMark")]


def test_over_the_wire_and_in_memory_a_scenario_gives_the_same_commands(tmp_path: Path) -> None:
    short = scenario(tmp_path, TALKS)
    virtual = play(short, 1)
    ours, naive = play_side_by_side(short, 1, ["callwright", "naive"])
    assert ours.error is None
    assert commands(ours) == commands(virtual)
    assert [turn.speaker for turn in ours.turns] == [turn.speaker for turn in virtual.turns]
    assert [item.item_id for item in ours.spoken] == [item.item_id for item in virtual.spoken]
    assert naive.client == "naive"
    assert abs((ours.session_ready_ms or 0) - (virtual.session_ready_ms or 0)) < 100


def test_a_client_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nobody"):
        play_live(scenario(tmp_path, LEAVES), 1, client="nobody")


@pytest.mark.parametrize("make", [WebSocketConnector, PicowsConnector])
def test_c113_no_session_is_left_open_when_the_caller_hangs_up(
    make: Callable[[Endpoint], Connector], tmp_path: Path
) -> None:
    ends: list[tuple[int, bool]] = []
    sessions: list[ServerSession] = []

    @asynccontextmanager
    async def watched(next_session: Callable[[], ServerSession], line: SimulatedLine) -> AsyncIterator[Connector]:
        def opened() -> ServerSession:
            sessions.append(next_session())
            return sessions[-1]

        async with RealtimeServer(opened, now_ms=lambda: line.now_ms, drain_ms=0) as server:
            yield make(Endpoint(server.url))
            await asyncio.sleep(0.1)
            ends.extend((server.sessions, session.closing is not None) for session in sessions)

    record = asyncio.run(take_call(scenario(tmp_path, LEAVES), 1, "callwright", Options(), watched))
    assert record.error is None
    assert ends == [(0, True)]


def test_c107_a_session_that_the_server_closes_with_4410_is_followed_by_another_over_a_real_socket(
    tmp_path: Path,
) -> None:
    listens = scenario(tmp_path, "  - {when: pickup + 1500 ms, does: hang_up}\n")
    record = play_live(listens, 1, options=Options(server={"longest_session_ms": 900}))
    assert "connection closed: 4410; another session is opened: session_expired" in record.anomalies
    assert [name for name, _ in commands(record) if name in ("Connect", "OpenUplink")] == ["Connect", "OpenUplink"] * 2
    assert record.ended_by == "caller"

"""The same scenario in virtual and in real time."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

from callwright.errors import UsageError
from callwright.measure.figures import METRICS
from callwright.sim.live import play_live, play_side_by_side
from callwright.sim.record import CallRecord
from callwright.sim.scenario import Scenario, load_scenario
from callwright.sim.world import play, tools_of

HOTEL = Path(str(resources.files("callwright.apps.hotel")))
SHORT = """
scenario: short
about: the caller asks about checking in, talks over the answer to thank, and hangs up
agent: callwright.apps.hotel:desk
line: {{kind: phone}}
model: {{rules: {rules}}}
caller:
  - {{when: pickup + 100 ms, says: ask-wifi}}
  - {{when: reply.start + 600 ms, says: thats-all}}
  - {{when: reply.start + 100 ms, does: hang_up}}
expect: {{max: {{heard_error_ms: 100}}}}
"""


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    path = tmp_path_factory.mktemp("short") / "short.yaml"
    path.write_text(SHORT.format(rules=HOTEL / "hotel.model.yaml"), "utf-8")
    return load_scenario(path, tools_of, METRICS)


def commands(record: CallRecord) -> list[tuple[str, str | None]]:
    """What the client did, in order, and to which item; how many pieces of audio came before a cut is up to the clock."""
    rows = [row for row in map(json.loads, record.trace.splitlines()) if row[1] == "do"]
    did = [(name, fields.get("item_id")) for _, _, name, fields in rows]
    return [each for each in did if each[0] not in ("PlayAudio", "SendMark")]


def test_over_the_wire_and_in_memory_a_scenario_gives_the_same_commands(short: Scenario) -> None:
    virtual = play(short, 1)
    ours, naive = play_side_by_side(short, 1, ["callwright", "naive"])
    assert ours.error is None
    assert commands(ours) == commands(virtual)
    assert [turn.speaker for turn in ours.turns] == [turn.speaker for turn in virtual.turns]
    assert [item.item_id for item in ours.spoken] == [item.item_id for item in virtual.spoken]
    assert naive.client == "naive"
    assert abs((ours.session_ready_ms or 0) - (virtual.session_ready_ms or 0)) < 100


def test_a_client_that_does_not_exist_is_named(short: Scenario) -> None:
    with pytest.raises(UsageError, match="nobody"):
        play_live(short, 1, client="nobody")

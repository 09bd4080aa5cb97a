"""The hotel at both edges of a call: no word is lost at pickup, and no goodbye is cut or forced on a caller."""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files

import msgspec
import pytest

from callwright.measure.figures import CallFigures, measure_call
from callwright.measure.verdict import judge
from callwright.sim.models import AgentSaid, ToolAnswered, ToolRequested
from callwright.sim.record import CallRecord
from callwright.sim.scenario import Scenario, load_scenario
from callwright.sim.speech import Speech
from callwright.sim.world import OURS, Options, play

DIALECTS = ("polyai", "openai", "plain")
in_all = pytest.mark.parametrize("dialect", DIALECTS)
of_both = pytest.mark.parametrize("name", ["pickup", "talk-over"])


@cache
def scenario(name: str, dialect: str = "polyai") -> Scenario:
    with as_file(files("callwright.apps.hotel") / "scenarios" / f"{name}.yaml") as path:
        return load_scenario(path).in_dialect(dialect)


@cache
def call(name: str, dialect: str = "polyai", *, client: str = OURS, seed: int = 1, **changes: object) -> CallRecord:
    connect_ms = changes.pop("connect_ms", None)
    assert connect_ms is None or isinstance(connect_ms, int)
    options = Options(dialect=dialect, connect_ms=connect_ms, server=changes)
    return play(scenario(name, dialect), seed, client=client, options=options)


def figures(record: CallRecord) -> CallFigures:
    return measure_call(record, Speech.load(scenario(record.scenario).speech))


def failed(record: CallRecord) -> list[str]:
    verdict = judge(figures(record), scenario(record.scenario, record.server).expect)
    return sorted(failure.name for failure in verdict.failed)


def ends(record: CallRecord) -> list[ToolRequested]:
    """The calls that were to end the call."""
    return [item for item in record.history if isinstance(item, ToolRequested) and item.name == "end_call"]


@of_both
@in_all
@pytest.mark.parametrize("seed", [1, 2])
def test_a_scenario_holds_in_every_dialect(name: str, dialect: str, seed: int) -> None:
    assert failed(call(name, dialect, seed=seed)) == []


@of_both
@in_all
def test_the_naive_client_fails_as_it_must(name: str, dialect: str) -> None:
    expected = scenario(name, dialect).before
    assert expected is not None
    assert failed(call(name, dialect, client="naive")) == sorted(expected.must_fail)


@pytest.mark.parametrize("ready_ms", [230, 660, 2_830])
def test_every_word_from_the_first_frame_is_heard_however_late_the_session_is_ready(ready_ms: int) -> None:
    """Measured on the live service: ready 0.23 to 2.83 s after pickup, and a word lost in 10 of 10 calls."""
    ours = figures(call("pickup", ready_after_ms=(ready_ms, ready_ms)))
    naive = figures(call("pickup", client="naive", ready_after_ms=(ready_ms, ready_ms)))
    assert (ours.values["pickup_lost_words"], ours.values["pickup_lost_ms"]) == ((0,), (0,))
    assert naive.values["pickup_lost_words"][0] >= 1
    assert naive.values["pickup_lost_ms"][0] == pytest.approx(ready_ms, abs=20)


def test_a_connection_that_opens_within_the_hold_loses_nothing_and_a_later_one_says_what_it_lost() -> None:
    in_time, late = (call("pickup", connect_ms=ms, ready_after_ms=(230, 230)) for ms in (4_000, 7_000))
    assert failed(in_time) == []
    values = figures(late).values
    (lost_ms,) = values["pickup_lost_ms"]
    assert lost_ms == pytest.approx(7_230 - 5_000, abs=40)
    assert values["pickup_lost_words"][0] >= 1
    assert any(f"{lost_ms:.0f} ms" in told for told in late.anomalies)


@pytest.mark.parametrize("stall_ms", [500, 2_000])
def test_a_stall_in_the_goodbye_is_not_its_end(stall_ms: int) -> None:
    """Offline, a client that hung up when its queue was empty cut the goodbye there."""
    record = call("pickup", stall_at_ms=1_400, stall_ms=(stall_ms, stall_ms))
    values = figures(record).values
    assert values["goodbye_played"] == (1,)
    assert len(ends(record)) == 1


@pytest.mark.parametrize("dialect", ["polyai", "openai"])  # on the other, the goodbye comes before its call
def test_c053_a_goodbye_that_was_talked_over_is_said_to_be_withdrawn_and_the_call_is_ended_once_more(
    dialect: str,
) -> None:
    """The model believes whatever its history says: only an output that tells of the open line lets it call again."""
    record = call("talk-over", dialect)
    first, second = ends(record)
    outputs = {item.tool_call_id: item.output for item in record.history if isinstance(item, ToolAnswered)}
    assert msgspec.json.decode(outputs[first.tool_call_id])["call"] == "still open"
    assert second.tool_call_id in outputs
    assert list(outputs) == [first.tool_call_id, second.tool_call_id]
    assert record.error is None


def test_the_agent_says_that_it_is_a_machine_once_and_before_its_first_answer() -> None:
    record = call("pickup")
    said = [item.text for item in record.history if isinstance(item, AgentSaid)]
    assert said[0].startswith("You're speaking with our automated assistant. You will find")
    assert sum("automated" in text for text in said) == 1

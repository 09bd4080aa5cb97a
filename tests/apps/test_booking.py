"""The hotel's scenarios hold whatever dialect the model speaks, and where it speaks less, less is asked of it."""

from __future__ import annotations

from collections import Counter
from functools import cache
from importlib.resources import as_file, files

import msgspec
import pytest

from callwright.core.transcript import Source, Speaker
from callwright.measure.figures import CallFigures, measure_call
from callwright.measure.verdict import judge
from callwright.sim.models import ToolAnswered, ToolRequested
from callwright.sim.record import CallRecord
from callwright.sim.scenario import Scenario, load_scenario
from callwright.sim.speech import Speech
from callwright.sim.world import OURS, Options, play

DIALECTS = ("polyai", "openai")
in_both = pytest.mark.parametrize("dialect", DIALECTS)
of_both = pytest.mark.parametrize("name", ["booking", "check-in"])
LAG_MS = 1500


@cache
def scenario(name: str, dialect: str) -> Scenario:
    with as_file(files("callwright.apps.hotel") / "scenarios" / f"{name}.yaml") as path:
        return load_scenario(path).in_dialect(dialect)


@cache
def call(name: str, dialect: str, seed: int = 1, lag_ms: int | None = None, client: str = OURS) -> CallRecord:
    options = Options(lag_ms=lag_ms, dialect=dialect)
    return play(scenario(name, dialect), seed, client=client, options=options)


def figures(record: CallRecord) -> CallFigures:
    return measure_call(record, Speech.load(scenario(record.scenario, record.server).speech))


def did(record: CallRecord) -> Counter[str]:
    """How often each event came and each command was carried out."""
    rows = [msgspec.json.decode(line) for line in record.trace.splitlines()]
    return Counter(row[2] for row in rows if row[1] in ("on", "do"))


@of_both
@in_both
@pytest.mark.parametrize(("lag_ms", "seed"), [(None, 1), (LAG_MS, 2)], ids=["no lag", "lag"])
def test_a_scenario_holds_in_both_dialects(name: str, dialect: str, lag_ms: int | None, seed: int) -> None:
    record = call(name, dialect, seed, lag_ms)
    assert record.server == dialect
    assert judge(figures(record), scenario(name, dialect).expect).failed == ()


@of_both
@in_both
def test_the_naive_client_fails_as_it_must(name: str, dialect: str) -> None:
    expected = scenario(name, dialect)
    failed = judge(figures(call(name, dialect, client="naive")), expected.expect).failed
    assert expected.before is not None
    assert sorted(failure.name for failure in failed) == sorted(expected.before.must_fail)


@in_both
def test_the_look_up_runs_once_and_its_result_waits_in_history(dialect: str) -> None:
    """The caller has moved on: nothing is asked for, and the model is not kept waiting for the output."""
    record = call("booking", dialect)
    calls = [item for item in record.history if isinstance(item, ToolRequested)]
    (asked,) = [call for call in calls if call.name == "look_up_booking"]
    outputs = [item for item in record.history if isinstance(item, ToolAnswered)]
    (answered,) = [output for output in outputs if output.tool_call_id == asked.tool_call_id]
    assert len(asked.tool_call_id) == {"polyai": 37, "openai": 32}[dialect]
    assert '"room":"214"' in answered.output
    assert did(record)["RequestReply"] == 0


@of_both
def test_c006_c007_the_server_is_told_of_the_cut_though_it_was_done_before(name: str) -> None:
    """All audio had come and the response was over: the line is cleared, the item shortened, nothing is cancelled."""
    record = call(name, "openai")
    (truncation,) = record.truncations
    done = did(record)
    assert not truncation.is_refused
    assert (done["ClearPlayout"], done["CancelResponse"], done["RequestRefused"]) == (1, 0, 0)


@of_both
def test_c011_c139_what_was_heard_of_a_cut_reply_is_estimated_where_the_server_deletes_its_text(name: str) -> None:
    """The server is not asked for a text that it does not have; no word too many, and the reply does not vanish."""
    record = call(name, "openai")
    (cut,) = [turn for turn in record.turns if turn.speaker is Speaker.AGENT and turn.source is not Source.WHOLE]
    assert did(record)["RetrieveItem"] == 0
    assert cut.source is Source.ESTIMATED
    assert cut.cut_ms
    assert cut.heard
    assert cut.written.startswith(cut.heard)
    reply = next(reply for reply in figures(record).replies if reply.item_id == cut.item_id)
    assert reply.heard.startswith(cut.heard)


@of_both
def test_a_plain_server_is_asked_for_nothing_that_it_lacks(name: str) -> None:
    """Its history cannot be mended, but the transcript of this side claims no word that was not heard."""
    record = call(name, "plain", 1, LAG_MS)
    done = did(record)
    assert (done["TruncateItem"], done["RetrieveItem"], len(record.truncations)) == (0, 0, 0)
    values = figures(record).values
    assert sum(values["unheard_words_in_transcript"]) == 0
    assert sum(values["unheard_words_in_history"]) > 0

"""The published figures beside ours: every row can be played, and says so where it does not come out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from callwright.cli.plan import make_plan
from callwright.measure.batch import RunResult
from callwright.measure.figures import METRICS, CallFigures
from callwright.measure.verdict import Verdict

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import reproduce_figures

        yield reproduce_figures
    finally:
        sys.path.remove(str(ROOT / "scripts"))


def run(void: str | None = None, **values: float) -> RunResult:
    """A call with these figures."""
    measured = {name: (value,) for name, value in values.items()}
    return RunResult(1, "", CallFigures(measured, void, (), (), (), "agent"), Verdict((), ()))


def test_every_row_names_what_can_be_played_and_what_is_measured(script: ModuleType, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    lines = [line for rows in script.PARTS.values() for row in rows.values() for line in row]
    setups = dict(script.parsed(each) for line in lines for each in (line.command, line.against) if each)
    for scenario, setup in setups.items():
        make_plan(scenario, setup)
    named = {getattr(line.statistic, "metric", "heard_ms") for line in lines}
    assert sorted(named - METRICS.keys()) == []


def test_a_figure_counts_within_its_range_and_not_beside_it(script: ModuleType) -> None:
    runs = [run(yield_latency_ms=780), run(yield_latency_ms=800), run(yield_latency_ms=860)]
    assert script.Median("yield_latency_ms", 740, 800).find(runs, []) == ("0.80 s (0.78 to 0.86 s, n = 3)", True)
    assert script.Every("yield_latency_ms", 740, 800).find(runs, []) == ("0.78 to 0.86 s (n = 3)", False)
    assert script.Calls("yield_latency_ms", 0, 0.5, least=801).find(runs, []) == ("1 of 3", True)
    assert script.Calls("yield_latency_ms", least=801).find(runs, []) == ("1 of 3", False)
    assert script.Median("heard_ms", 0, 1).find(runs, []) == ("none", False)


def test_a_difference_is_taken_by_pairs_and_not_where_one_side_has_none(script: ModuleType) -> None:
    runs, others = [run(yield_latency_ms=780), run(yield_latency_ms=900)], [run(yield_latency_ms=800)] * 2
    change = script.Change("yield_latency_ms", "--echo 0", 99)
    assert change.find(runs, others) == ("0.10 s at most (n = 2)", False)
    assert replace(change, high=100).find(runs, others).is_so
    assert change.find(runs, [run(), run()]) == ("not in every pair", False)


def test_a_call_that_did_not_try_it_makes_no_figure_and_is_told(script: ModuleType) -> None:
    line = script.Line("", "", "check-in", script.Calls("starts_over", 0, 0))
    runs = [run(), run("VOID check-in seed 2: silent")]
    assert script.as_cells(line, line.statistic.find(runs, []), runs) == ("0 of 2, 1 void", "no")
    assert script.as_cells(replace(line, because="slow"), script.Found("1 of 1", False), runs[:1])[1] == "no: slow"


def test_a_row_is_played_and_what_is_not_played_stays_as_the_page_has_it(
    script: ModuleType, monkeypatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    played = script.measure([("stall", line) for line in script.HOTEL["stall"]], [1], 1)
    assert list(played.values()) == [("0 of 1", "yes"), ("1 of 1", "yes")]
    page = tmp_path / "figures.md"
    page.write_text(script.BEGIN + script.END, "utf-8")
    monkeypatch.setattr(script, "PAGE", page)
    page.write_text(script.page(played), "utf-8")
    assert script.stored() == played
    assert script.page(script.stored()) == page.read_text("utf-8")

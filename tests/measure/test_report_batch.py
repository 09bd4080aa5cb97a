"""The page of many calls: what they come to, and the worst of them first."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.measure.test_report import Elements
from tests.measure.test_verdict import FIGURES

from callwright.cli.report import assets
from callwright.measure.batch import RunResult, summarise
from callwright.measure.report import ShownAgainst, ShownBatch, ShownRun, batch_page
from callwright.measure.verdict import Failure, Verdict

HELD = Verdict(("heard_error_ms",), ())
LATE = Verdict((), (Failure("dead_air_ms", "at most 900", "1200"),))
TWICE = Verdict((), (Failure("dead_air_ms", "at most 900", "950"), Failure("duplicate_effects", "at most 0", "1")))
CARD = "4111 1111 1111 1111"


def run(seed: int, verdict: Verdict = HELD, *, heard_error_ms: float = 4, void: str | None = None) -> ShownRun:
    figures = replace(FIGURES, values={"heard_error_ms": (heard_error_ms,), "heard_ms": (900,)}, void=void)
    is_held = verdict is HELD and not void
    return ShownRun(RunResult(seed, "0" * 64, figures, verdict), is_held, f"callwright call x --seed {seed}")


def batch(*calls: ShownRun, **more: object) -> ShownBatch:
    summary = summarise("x", "callwright", "polyai", {}, {}, 1, [call.run for call in calls])
    return replace(ShownBatch("callwright  x", "what happens", summary, calls, None), **more)


def page(*batches: ShownBatch) -> str:
    return batch_page(batches, assets())


def seeds(text: str) -> list[int]:
    return [int(seed) for seed in re.findall(r'<th scope="row">(\d+)</th>', text)]


def test_the_worst_call_stands_first_whatever_its_seed() -> None:
    text = page(batch(run(1), run(2, LATE), run(3, TWICE), run(4), run(5, LATE)))
    assert seeds(text) == [3, 2, 5, 1, 4]
    assert "5 calls: 3 failed, 2 held." in text
    money, silence = re.findall(r'<li class="failed"><b>(\w+)</b> did not hold in (\d of 5)', text)
    assert (money, silence) == (("duplicate_effects", "1 of 5"), ("dead_air_ms", "3 of 5"))
    first = text[text.index('<th scope="row">3</th>') :]
    assert first.index("duplicate_effects: wanted at most 0, got 1") < first.index("dead_air_ms: wanted at most 900")
    assert "callwright call x --seed 3" in first


def test_a_figure_has_a_dot_for_each_call_and_its_median_with_the_interval() -> None:
    text = page(batch(*(run(seed, heard_error_ms=10 * seed) for seed in range(1, 12))))
    elements = Elements(text)
    assert [each["style"] for each in elements.of_class("dot")] == [f"left:{10 * step}.00%" for step in range(11)]
    (median,), (band,) = elements.of_class("median"), elements.of_class("band")
    assert median["style"] == "left:50.00%"
    assert re.fullmatch(r"median 60, 95 %: [\d.]+ to [\d.]+", median["title"] or "")
    low, width = map(float, re.findall(r"([\d.]+)%", band["style"] or ""))
    assert 0 < low < 50 < low + width < 100
    assert "The same in every call: heard_ms 900" in text


def test_a_call_that_has_no_figures_is_named_and_makes_no_dot() -> None:
    calls = [run(1), run(2, heard_error_ms=9), run(3, void="VOID x seed 3: line 2 was not spoken", heard_error_ms=99)]
    text = page(batch(*calls))
    assert len(Elements(text).of_class("dot")) == 2
    assert seeds(text)[0] == 3
    assert "VOID x seed 3: line 2 was not spoken" in text
    assert "2 held, 1 void." in text


def test_what_is_missing_of_the_batch_is_said_before_its_calls() -> None:
    text = page(batch(run(1), missing=("5 of 20 runs were finished",)))
    assert text.index("5 of 20 runs were finished") < text.index("<table")
    assert 'class="verdict failed">1 call: 1 held.' in text


def test_what_the_calls_are_compared_with_stands_in_words_and_figures() -> None:
    against = ShownAgainst(
        "naive  x", ("metric", "this"), [("heard_error_ms", "4")], [("unsure", "0 lies within <95 %>")]
    )
    text = page(batch(run(1), against=against))
    assert "<h3>against naive  x</h3>" in text
    assert "<li><b>unsure</b> 0 lies within &lt;95 %&gt;</li>" in text
    assert '<tr><th scope="row">heard_error_ms</th><td>4</td></tr>' in text


def test_a_baseline_that_fails_as_it_must_is_no_failure() -> None:
    text = page(batch(replace(run(1, LATE), is_as_wanted=True), must_fail=("dead_air_ms",)))
    assert "1 call: 1 failed as it must." in text
    assert 'class="badge must"' in text


def test_a_call_leads_to_its_own_page_where_there_is_one() -> None:
    text = page(batch(replace(run(1), page="out/x-callwright-1/report.html"), run(2)))
    assert text.count("look and listen") == 1
    assert 'href="out/x-callwright-1/report.html"' in text


@pytest.mark.parametrize("evil", ["</section><script>alert(1)</script>", f"paid to {CARD}"])
def test_nothing_that_comes_from_a_run_breaks_the_page_or_shows_a_card(evil: str) -> None:
    failed = Verdict((), (Failure("invariants", "a record that agrees", evil),))
    calls = [run(1, failed), run(2, void=evil)]
    text = page(batch(*calls, about=evil, missing=(evil,)), batch(run(1)))
    elements = Elements(text)
    assert elements.open == []
    assert [name for name, _ in elements.found].count("script") == 1
    assert CARD not in text

"""Figures over many calls."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.measure.batch import RATE_RUNS, RunResult, quantile, summarise, unshown_reason, went_as_expected
from callwright.measure.figures import CallFigures
from callwright.measure.verdict import Failure, Verdict

HELD = Verdict(("heard_error_ms", "heard"), ())
INPUTS = {"scenario": "5ce", "rules": "0f1"}
FAILED = Verdict(("heard",), (Failure("heard_error_ms", "at most 20", "300"),))


def run(
    seed: int,
    values: Mapping[str, tuple[float, ...]] | None = None,
    verdict: Verdict = HELD,
    void: str | None = None,
    shown: tuple[str, ...] = (),
) -> RunResult:
    figures = CallFigures(values or {"heard_error_ms": (seed,)}, void, (), (), (), "caller", shown=shown)
    return RunResult(seed, f"{seed:064x}", figures, verdict)


def summary(*runs: RunResult, must_fail: tuple[str, ...] | None = None) -> dict[str, object]:
    return summarise("check-in", "callwright", "polyai", {"lag_ms": 1500}, INPUTS, 1, runs, must_fail)


def test_the_keys_are_the_same_for_every_scenario() -> None:
    told = summary(run(1))
    assert list(told) == [
        "scenario", "client", "server", "settings", "inputs", "seed", "runs", "held", "trace_sha256", "metrics",
        "expectations", "behaviors", "void", "censored", "not_scored", "not_judged", "estimated", "by_seed",
    ]  # fmt: skip
    assert json.loads(json.dumps(told)) == told


def test_a_batch_that_never_showed_what_its_scenario_sets_is_void() -> None:
    """Only two calls or more are a batch: what shows now and then may be absent from one."""
    runs = [run(3, shown=("recaps",)), run(4, shown=("recaps", "repeats_call")), run(5)]
    told = summarise(
        "check-in", "callwright", "polyai", {}, INPUTS, 3, runs, None, ("recaps", "repeats_call", "refuses_to_say")
    )
    assert told["behaviors"] == {"recaps": 2, "repeats_call": 1, "refuses_to_say": 0}
    reason = "VOID check-in seeds 3 to 5: the model never showed refuses_to_say, which the scenario sets"
    assert told["void"] == [{"seed": 3, "reason": reason}]
    assert unshown_reason("check-in", runs, ("recaps", "repeats_call")) is None
    assert unshown_reason("check-in", runs[:1], ("refuses_to_say",)) is None


def test_the_hash_is_over_the_runs_in_order_of_seed() -> None:
    expected = hashlib.sha256("".join(f"{seed:064x}" for seed in (1, 2, 3)).encode()).hexdigest()
    assert summary(run(3), run(1), run(2))["trace_sha256"] == expected


def test_a_metric_counts_every_value_of_every_run() -> None:
    runs = (run(seed, {"response_latency_ms": (seed, 10 * seed)}) for seed in range(1, 6))
    assert summary(*runs)["metrics"] == {
        "response_latency_ms": {
            "runs": 5, "n": 10, "median": 5, "interval": None, "p90": 40, "min": 1, "max": 50,
        },
    }  # fmt: skip


def test_whole_numbers_stay_whole() -> None:
    assert '"median": 2,' in json.dumps(summary(run(1), run(2), run(3)))


def test_a_share_of_few_events_is_not_shown() -> None:
    few = [run(seed, {"yield_rate": (1.0,)}) for seed in range(RATE_RUNS)]
    assert summary(*few[1:])["metrics"] == {}
    assert list(summary(*few)["metrics"]) == ["yield_rate"]


def test_void_runs_are_told_and_give_no_figures() -> None:
    void = run(
        2, {"heard_error_ms": (900,), "caller_fidelity": (0,)}, Verdict((), (Failure("void", "x", "y"),)), "VOID 2"
    )
    told = summary(run(1, {"heard_error_ms": (5,), "caller_fidelity": (1,)}), void)
    assert told["void"] == [{"seed": 2, "reason": "VOID 2"}]
    assert told["metrics"]["heard_error_ms"]["max"] == 5
    assert told["metrics"]["caller_fidelity"]["min"] == 0


def test_a_median_of_enough_runs_has_an_interval() -> None:
    values = [{"response_latency_ms": (seed, 10 * seed)} for seed in range(1, 7)]
    told = summary(*(run(seed, each) for seed, each in enumerate(values, 1)))["metrics"]["response_latency_ms"]
    low, high = told["interval"]
    assert low <= told["median"] <= high


def test_missing_is_not_zero_and_each_kind_is_named() -> None:
    """A void call did not try, a censored one broke off, and one that is not scored lacks what was expected of it."""
    void = run(1, void="VOID check-in seed 1: step 3 never came", verdict=judged("void"))
    censored = run(2, void="CENSORED check-in seed 2: the call broke off: the line broke", verdict=judged("censored"))
    lacking = Verdict(("heard",), (Failure("heard_error_ms", "at most 20", "not measured", is_measured=False),))
    told = summary(void, censored, run(3, {"response_latency_ms": (5,)}, lacking), run(4))
    assert [each["seed"] for each in told["void"]] == [1]
    assert [each["seed"] for each in told["censored"]] == [2]
    assert told["not_scored"] == [{"seed": 3, "names": ["heard_error_ms"]}]
    assert told["metrics"]["heard_error_ms"]["runs"] == 1
    assert [call["medians"] for call in told["by_seed"]] == [
        {}, {}, {"response_latency_ms": 5}, {"heard_error_ms": 4},
    ]  # fmt: skip
    assert [call["failed"] for call in told["by_seed"]] == [["void"], ["censored"], ["heard_error_ms"], []]


def judged(kind: str) -> Verdict:
    return Verdict((), (Failure(kind, "x", "y"),))


def test_what_failed_is_told_with_its_seeds() -> None:
    told = summary(run(1), run(2, verdict=FAILED), run(3, verdict=FAILED))
    assert told["held"] == 1
    assert told["expectations"] == {
        "passed": ["heard"],
        "failed": [{"name": "heard_error_ms", "seeds": [2, 3], "wanted": "at most 20", "got": ["300", "300"]}],
    }


def test_what_must_fail_and_held_is_a_failure() -> None:
    told = summary(run(1), run(2, verdict=FAILED), must_fail=("heard_error_ms",))
    assert (told["held"], told["expectations"]["passed"]) == (1, ["heard"])
    assert [(each["name"], each["seeds"]) for each in told["expectations"]["failed"]] == [
        ("heard_error_ms (must fail)", [1]),
        ("heard_error_ms", [2]),
    ]


@pytest.mark.parametrize(
    ("verdicts", "must_fail", "expected"),
    [
        ((HELD, HELD), (), True),
        ((HELD, FAILED), (), False),
        ((FAILED, FAILED), ("heard_error_ms",), True),
        ((FAILED, HELD), ("heard_error_ms",), False),
        ((FAILED,), ("heard_error_ms", "heard"), False),
        ((Verdict((), (Failure("void", "x", "y"),)),), ("heard_error_ms",), False),
    ],
)
def test_a_baseline_fails_exactly_as_it_must(
    verdicts: tuple[Verdict, ...], must_fail: tuple[str, ...], expected: bool
) -> None:
    runs = [run(seed, verdict=verdict) for seed, verdict in enumerate(verdicts)]
    assert went_as_expected(runs, must_fail) is expected


@given(st.lists(st.integers(-1000, 1000), min_size=1), st.sampled_from([50, 90, 100]))
def test_a_quantile_is_the_nearest_rank(values: list[int], percent: int) -> None:
    found = quantile(values, percent)
    assert found in values
    assert sum(value <= found for value in values) >= math.ceil(len(values) * percent / 100)
    assert sum(value < found for value in values) < math.ceil(len(values) * percent / 100)

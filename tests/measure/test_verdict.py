"""Expectations held against figures."""

from __future__ import annotations

import pytest

from callwright.measure.figures import CallFigures
from callwright.measure.verdict import Failure, Verdict, judge
from callwright.sim.scenario import Expectations

FIGURES = CallFigures(
    values={"heard_error_ms": (4, 15), "yield_rate": (1.0,)},
    void=None,
    replies=(),
    lines_heard=("parking",),
    lines_touched=("parking", "wifi"),
    ended_by="caller",
)


def verdict(**expected: object) -> Verdict:
    return judge(
        FIGURES, Expectations(**{"max": {}, "min": {}, "heard": (), "not_heard": (), "ended": None, **expected})
    )


@pytest.mark.parametrize(
    "expected",
    [
        {"max": {"heard_error_ms": 15}},
        {"min": {"heard_error_ms": 4}},
        {"heard": ("parking",)},
        {"not_heard": ("pool",)},
        {"ended": "caller"},
    ],
)
def test_what_holds_passes_under_its_name(expected: dict[str, object]) -> None:
    (key,) = expected
    name = "heard_error_ms" if key in ("max", "min") else key
    assert verdict(**expected) == Verdict((name,), ())


@pytest.mark.parametrize(
    ("expected", "failure"),
    [
        ({"max": {"heard_error_ms": 14}}, Failure("heard_error_ms", "at most 14", "15")),
        ({"min": {"heard_error_ms": 5}}, Failure("heard_error_ms", "at least 5", "4")),
        (
            {"max": {"yield_latency_ms": 900}},
            Failure(
                "yield_latency_ms", "at most 900", "not measured (nobody talked over the agent)", is_measured=False
            ),
        ),
        (
            {"min": {"yield_latency_ms": 0}},
            Failure("yield_latency_ms", "at least 0", "not measured (nobody talked over the agent)", is_measured=False),
        ),
        ({"heard": ("parking", "wifi")}, Failure("heard", "parking, wifi", "not whole: wifi")),
        ({"not_heard": ("pool", "wifi")}, Failure("not_heard", "nothing of pool, wifi", "heard: wifi")),
        ({"ended": "agent"}, Failure("ended", "by the agent", "by the caller")),
    ],
)
def test_what_does_not_hold_fails_with_what_was_wanted(expected: dict[str, object], failure: Failure) -> None:
    assert verdict(**expected) == Verdict((), (failure,))


def test_a_name_with_two_limits_passes_only_by_both() -> None:
    limits = {"max": {"heard_error_ms": 20}, "min": {"heard_error_ms": 5}}
    assert verdict(**limits) == Verdict((), (Failure("heard_error_ms", "at least 5", "4"),))


def test_a_void_call_fails_whatever_it_measured() -> None:
    void = CallFigures(FIGURES.values, "VOID x", (), (), (), "caller")
    judged = judge(void, Expectations({"heard_error_ms": 20}, {}, (), (), None))
    assert (judged.passed, [failure.name for failure in judged.failed]) == ((), ["void"])

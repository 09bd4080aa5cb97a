"""Intervals of medians: what endlessly many resamples would give, counted out."""

from __future__ import annotations

from itertools import product
from math import ceil, comb
from statistics import NormalDist

from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.measure.intervals import INTERVAL_RUNS, median_interval, tail

VALUES = st.integers(-3, 3)
RUNS = st.lists(st.lists(VALUES, min_size=1, max_size=3), min_size=INTERVAL_RUNS, max_size=15)


def drawn_one_by_one(runs: list[list[int]]) -> tuple[int, int]:
    """The interval from every resample that there is, each with its lower and its upper median."""
    lower, upper = [], []
    for draw in product(runs, repeat=len(runs)):
        values = sorted(value for run in draw for value in run)
        lower.append(values[(len(values) - 1) // 2])
        upper.append(values[len(values) // 2])
    lower.sort()
    upper.sort()
    beyond = tail(len(runs))
    return lower[ceil(len(lower) * beyond) - 1], upper[ceil(len(upper) * (1 - beyond)) - 1]


@given(st.lists(st.lists(VALUES, min_size=1, max_size=3), min_size=6, max_size=6))
@settings(max_examples=3)
def test_the_interval_is_that_of_every_resample_there_is(runs: list[list[int]]) -> None:
    assert median_interval(runs) == drawn_one_by_one(runs)


@given(RUNS)
def test_the_interval_holds_the_median_and_mirrors_with_the_sign(runs: list[list[int]]) -> None:
    interval = median_interval(runs)
    assert interval is not None
    values = sorted(value for run in runs for value in run)
    assert interval.low <= values[(len(values) - 1) // 2] <= values[len(values) // 2] <= interval.high
    assert median_interval([[-value for value in run] for run in runs]) == (-interval.high, -interval.low)


def test_one_value_a_call_has_the_interval_of_the_binomial_distribution() -> None:
    """The median of 20 draws from 1 to 20 is at most j when ten of them are."""
    below = [sum(comb(20, k) * j**k * (20 - j) ** (20 - k) for k in range(10, 21)) / 20**20 for j in range(21)]
    low = next(j for j, chance in enumerate(below) if chance >= tail(20))
    assert median_interval([[value] for value in range(1, 21)]) == (low, 21 - low)


def test_the_interval_holds_the_median_as_often_as_it_says() -> None:
    """Of single values: how often the true median lies below the interval or above it is a matter of coins."""
    for runs in range(INTERVAL_RUNS, 60):
        interval = median_interval([[value] for value in range(1, runs + 1)])
        assert interval is not None
        outside = 2 * sum(comb(runs, below) for below in range(int(interval.low))) / 2**runs
        assert outside < 0.066, runs  # values are steps: 0.05 lies between two of them


def test_the_tails_are_those_of_students_t() -> None:
    """0.975 quantiles of t from a printed table: 2.571 at 5 degrees of freedom, 2.093 at 19, 1.984 at 99."""
    for runs, quantile in ((6, 2.571), (20, 2.093), (100, 1.984)):
        expected = NormalDist().cdf(-quantile * (runs / (runs - 1)) ** 0.5)
        assert abs(tail(runs) - expected) < 0.0001


def test_calls_without_a_value_do_not_count_and_few_give_no_interval() -> None:
    assert median_interval([[5]] * (INTERVAL_RUNS - 1) + [[]] * 9) is None
    assert median_interval([[5]] * INTERVAL_RUNS) == (5, 5)


def test_the_values_of_one_call_are_not_as_good_as_as_many_calls() -> None:
    """Ten values of each of six calls, all the same within a call: the interval is that of six values."""
    assert median_interval([[value] * 10 for value in range(6)]) == median_interval([[value] for value in range(6)])

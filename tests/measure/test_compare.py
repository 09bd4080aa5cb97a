"""Two batches on the same seeds: differences within pairs, and no claim that they do not bear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from callwright.measure.compare import Call, Side, compared, differing_inputs, differing_settings, unpaired

INPUTS = {"scenario": "5ce", "rules": "0f1"}


def side(values: Sequence[float | None], name: str = "yield_latency_ms", **changes: Any) -> Side:
    """A batch of seeds 1, 2, ... with these values; None where a call lacks the figure."""
    calls = [Call(seed, (), {} if value is None else {name: value}) for seed, value in enumerate(values, 1)]
    given = {"client": "callwright", "server": "polyai", "settings": {}, "inputs": INPUTS, **changes}
    return Side(scenario="check-in", by_seed=tuple(calls), **given)


def test_what_differs_from_seed_to_seed_falls_out() -> None:
    """The calls differ by seconds, the two clients by 9 to 11 ms on every seed: paired, that shows."""
    ours = [1000 * seed for seed in range(10)]
    (found,) = compared(side(ours), side([value + 9 + number % 3 for number, value in enumerate(ours)]))
    assert (found.pairs, found.median, found.interval) == (10, -10, (-11, -9))
    assert (found.better, found.worse, found.equal, found.is_shown) == (10, 0, 0, True)


def test_no_difference_is_claimed_where_zero_is_possible() -> None:
    values = [5, 6, 7, 8, 9, 10, 11, 12]
    (mixed,) = compared(side(values), side([value + (-1) ** value for value in values]))
    assert (mixed.better, mixed.worse, mixed.is_shown) == (4, 4, False)
    (few,) = compared(side([1, 1, 1, 1, 1]), side([9, 9, 9, 9, 9]))
    assert (few.median, few.interval, few.is_shown) == (-8, None, False)


def test_which_is_better_is_the_figures_own() -> None:
    (lost,) = compared(side([2, 1], "heard_words_missing"), side([1, 1], "heard_words_missing"))
    assert (lost.better, lost.worse, lost.equal) == (0, 1, 1)
    (heard,) = compared(side([1, 1], "ai_notice_heard"), side([0, 1], "ai_notice_heard"))
    assert (heard.better, heard.worse, heard.equal) == (1, 0, 1)


def test_what_one_side_lacks_is_no_zero_and_is_named() -> None:
    (found,) = compared(side([4, None, 6, None]), side([1, 2, None, None]))
    assert (found.pairs, found.one, found.other, found.lacking) == (1, 4, 1, (2, 3))


def test_a_void_or_censored_call_takes_its_pair_out() -> None:
    one, other = side([1, 2, 3]), side([1, 2, 3])
    one = Side(**{**fields(one), "by_seed": (Call(1, ("void",), {}), *one.by_seed[1:])})
    other = Side(**{**fields(other), "by_seed": (*other.by_seed[:2], Call(3, ("censored",), {}))})
    (found,) = compared(one, other)
    assert (found.pairs, found.lacking, unpaired(one, other)) == (1, (), [1, 3])


def test_a_share_of_few_pairs_is_left_out() -> None:
    few, enough = side([1.0] * 9, "yield_rate"), side([1.0] * 10, "yield_rate")
    assert not compared(few, few)
    assert compared(enough, enough)


def test_batches_of_other_inputs_or_seeds_say_what_differs() -> None:
    one = side([1, 2])
    assert differing_inputs(one, side([5, 6], client="naive")) == []
    assert differing_inputs(one, side([1], inputs={"scenario": "5ce", "speech": "a"})) == ["rules", "speech", "seeds"]


def test_what_was_chosen_otherwise_is_named() -> None:
    one = side([1], settings={"echo": 0.3})
    assert differing_settings(one, one) == []
    assert differing_settings(one, side([1], client="naive", server="openai")) == ["client", "server", "echo"]


def test_a_live_server_is_one_choice_and_never_the_local_one() -> None:
    live = side([1], settings={"live": "wss://model.test/"})
    assert differing_settings(side([1]), live) == ["server"]
    assert differing_settings(live, side([1], server="openai", settings={"live": "wss://other.test/"})) == ["server"]
    assert differing_settings(live, side([1], settings={"live": "wss://model.test/"})) == []


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20))
def test_the_other_way_round_is_the_same_with_the_other_sign(pairs: list[tuple[int, int]]) -> None:
    one, other = side([mine for mine, _ in pairs]), side([its for _, its in pairs])
    (there,), (back,) = compared(one, other), compared(other, one)
    assert (back.median, back.better, back.worse) == (-there.median, there.worse, there.better)
    assert back.is_shown == there.is_shown
    assert back.interval == (there.interval and (-there.interval.high, -there.interval.low))


def fields(side: Side) -> dict[str, Any]:
    return {name: getattr(side, name) for name in side.__struct_fields__}

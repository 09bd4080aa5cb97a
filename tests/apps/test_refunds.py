"""The refund desk's scenarios: one effect in the provider's own book, and the truth at the caller's ear."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from importlib.resources import as_file, files

import pytest

from callwright.measure.figures import CallFigures, measure_call
from callwright.measure.verdict import judge
from callwright.sim.agents import tools_of
from callwright.sim.models import SystemNote, ToolAnswered
from callwright.sim.record import CallRecord
from callwright.sim.scenario import Scenario, load_scenario
from callwright.sim.speech import Speech
from callwright.sim.world import OURS, Options, play

SCENARIOS = files("callwright.apps.refunds") / "scenarios"
NAMES = sorted(path.name.removesuffix(".yaml") for path in SCENARIOS.iterdir() if path.name.endswith(".yaml"))


@cache
def scenario(name: str) -> Scenario:
    with as_file(SCENARIOS / f"{name}.yaml") as path:
        return load_scenario(path, tools_of)


@cache
def call(name: str, seed: int = 1, client: str = OURS) -> CallRecord:
    return play(scenario(name), seed, client=client)


def figures(record: CallRecord) -> CallFigures:
    return measure_call(record, Speech.load(scenario(record.scenario).speech))


def failed(record: CallRecord) -> list[str]:
    return sorted(failure.name for failure in judge(figures(record), scenario(record.scenario).expect).failed)


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_holds(name: str) -> None:
    assert failed(call(name)) == []


@pytest.mark.parametrize("seed", [2, 3])
def test_a_changed_card_is_one_effect_with_every_seed(seed: int) -> None:
    assert failed(call("wrong-card", seed)) == []


@pytest.mark.parametrize("name", [name for name in NAMES if scenario(name).before])
def test_its_baseline_fails_as_it_says(name: str) -> None:
    before = scenario(name).before
    assert before is not None
    assert failed(call(name, client=before.client)) == sorted(before.must_fail)


def test_the_same_seed_makes_the_same_call_and_the_same_book() -> None:
    again = play(scenario("wrong-card"), 1)
    assert (again.trace, again.book) == (call("wrong-card").trace, call("wrong-card").book)


def test_the_model_is_told_no_token_and_no_key() -> None:
    told = [item for item in call("wrong-card").history if isinstance(item, (SystemNote, ToolAnswered))]
    texts = " ".join(item.text if isinstance(item, SystemNote) else item.output for item in told)
    assert "8 8 1 2" in texts
    assert "card:" not in texts


def test_another_caller_is_told_nothing_of_an_order_that_is_not_his() -> None:
    record = call("unknown-order")
    outputs = [item.output for item in record.history if isinstance(item, ToolAnswered)][:2]
    assert outputs[0] == outputs[1]
    assert record.book == ()


@pytest.mark.parametrize("client", ["suppresses-reply", "posts-a-note", "naive"])
def test_who_asks_for_no_reply_leaves_the_caller_without_the_outcome(client: str) -> None:
    values = figures(call("did-it-go-through", client=client)).values
    assert (values["untold_at_hangup"], values["duplicate_effects"]) == ((1,), (0,))


def test_who_gives_up_at_a_barge_in_says_that_it_was_stopped_when_it_was_not() -> None:
    record = call("did-it-go-through", client="cancels-on-barge-in")
    assert figures(record).values["false_claims_heard"] == (1,)
    assert [effect.status for effect in record.book] == ["pending", "succeeded"]


def test_who_keys_by_order_and_card_pays_both_cards() -> None:
    assert len(figures(call("wrong-card", client="by-order-and-card")).effects) == 2


def test_who_keys_by_the_order_keeps_the_first_card() -> None:
    values = figures(call("wrong-card", client="by-order")).values
    assert (values["duplicate_effects"], values["missing_effects"]) == ((0,), (1,))


def test_an_effect_of_an_earlier_call_is_the_only_one() -> None:
    record = call("call-back-again")
    assert [effect.at_ms < 0 for effect in record.book] == [True, True]
    assert figures(record).values["asks_per_operation"] == (1,)


def test_a_fault_without_an_occasion_makes_the_call_void() -> None:
    planned = scenario("unknown-order")
    down = scenario("provider-down").behind
    record = play(replace(planned, behind=down), 1)
    assert figures(record).void == "VOID unknown-order seed 1: the provider's fault refused never had an occasion"


@pytest.mark.parametrize(
    ("habit", "asks", "untold"),
    [("repeats_call", 2, 0), ("claims_too_early", 1, 0), ("refuses_to_say", 1, 1)],
)
def test_whatever_the_model_does_there_is_one_effect_and_who_is_not_told_is_counted(
    habit: str, asks: int, untold: int
) -> None:
    values = figures(play(replace(scenario("did-it-go-through"), rates={habit: 1}), 1)).values
    assert (values["duplicate_effects"], values["missing_effects"]) == ((0,), (0,))
    assert (values["asks_per_operation"], values["untold_at_hangup"]) == ((asks,), (untold,))


@pytest.mark.parametrize(("tools_wait", "state"), [(None, "running"), (False, "running"), (True, "confirmed")])
def test_where_tools_wait_the_output_of_an_action_is_its_outcome(tools_wait: bool | None, state: str) -> None:
    record = play(scenario("did-it-go-through"), 1, options=Options(tools_wait=tools_wait))
    first = next(item for item in record.history if isinstance(item, ToolAnswered))
    assert json.loads(first.output)["state"] == state
    assert record.book == call("did-it-go-through").book

"""A goodbye that is talked over at any instant: nothing of it is cut off, nobody is hung up on, no call stays open.

A part of the sweep of ``scripts/sweep_goodbye.py``, and whole calls at some of its points.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest
from scripts.sweep_goodbye import (
    CAP_MS,
    LAST_MS,
    LINES,
    SPOKEN,
    STEP_MS,
    Point,
    goodbye_of,
    judged,
    played,
    row,
)
from tests.sim.whole_call import first, says, scenario

from callwright.ids import Ms
from callwright.sim.agents import load_agent
from callwright.sim.caller import Anchor, Step
from callwright.sim.models import HistoryItem, ToolAnswered, ToolRequested
from callwright.sim.quick import QuickCall, QuickResult, ToldSpeech, play_quick
from callwright.sim.record import CallRecord, SpokenItem
from callwright.sim.rules import RulesModel
from callwright.sim.speech import Speech
from callwright.sim.world import play

STRIDE = 36


@pytest.mark.parametrize("says", SPOKEN)
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(("stall_ms", "seed"), [(0, 11), (400, 12), (1_000, 13)])
def test_whenever_the_caller_speaks_over_a_goodbye_every_rule_of_it_holds(
    line: str, says: str, stall_ms: Ms, seed: int
) -> None:
    swept = row(line, says, stall_ms, seed, STRIDE, offset=list(LINES).index(line) * 5)
    assert swept.calls >= 6
    assert swept.withdrawn > 0
    assert not swept.broken, f"seed {seed}"


def test_at_the_very_end_only_who_speaks_in_the_last_100_ms_can_be_too_late() -> None:
    late = []
    for number in range(-6, 3):
        _, ended_ms = goodbye_of("marks", 0, 21)
        point = Point("marks", "sentence", 0, (ended_ms // STEP_MS + number) * STEP_MS, 21)
        verdict = judged(point, played(point))
        assert verdict.broken == ()
        if verdict.is_late:
            late.append(point.at_ms)
    assert all(at_ms is not None and at_ms >= ended_ms - LAST_MS for at_ms in late)


def test_the_sweep_sees_a_farewell_that_is_cut_off_a_call_that_stays_open_and_a_second_hang_up() -> None:
    began_ms, _ = goodbye_of("marks", 0, 31)
    point = Point("marks", "sentence", 0, began_ms + 1_000, 31)
    call = played(point)
    assert judged(point, call).broken == ()
    assert judged(point, call).withdrawals == 1
    shorter = replace(call.ear[-1], to_ms=call.ear[-1].to_ms - 60)
    faults = {
        "the farewell was heard": replace(call, ear=(*call.ear[:-1], shorter)),
        "was open": replace(call, ended_ms=call.ended_ms + 2 * CAP_MS),
        "one hang-up": replace(call, trace=call.trace * 2),
        "outputs": replace(call, history=tuple(item for item in call.history if not isinstance(item, ToolAnswered))),
        "when nobody spoke": replace(call, caller_lines=()),
        "got no answer": replace(call, history=call.history[: _place_of_answer(call.history) + 1]),
    }
    for what, broken in faults.items():
        assert any(what in rule for rule in judged(point, broken).broken), what


def _place_of_answer(history: Sequence[HistoryItem]) -> int:
    return next(at for at, item in enumerate(history) if isinstance(item, ToolAnswered))


# --- the same with samples

BYE = first("thats-all")


def over(at_ms: Ms) -> tuple[Step, ...]:
    again = says("thats-all", Anchor.REPLY_END, 1_000)
    return BYE, says("ask-breakfast-included", Anchor.PICKUP, at_ms), again


@cache
def quick_call(steps: tuple[Step, ...]) -> QuickResult:
    made = scenario(*steps)
    speech = Speech.load(made.speech)
    told = ToldSpeech([speech[line_id] for line_id in speech])
    model = RulesModel.load(made.rules, speech, made.rates)
    call = QuickCall(load_agent(made.agent), model, told, steps, replace(made.line, format=None), made.server)
    return play_quick(call, 4)


@cache
def whole_call(steps: tuple[Step, ...]) -> CallRecord:
    return play(scenario(*steps), 4)


def farewell(call: QuickResult | CallRecord) -> tuple[Ms, Ms]:
    """When the goodbye begins and ends at the ear."""
    item: SpokenItem = next(item for item in call.spoken if item.tool == "end_call")
    spans = [span for span in call.ear if span.item_id == item.item_id]
    return spans[0].at_ms, spans[-1].at_ms + spans[-1].to_ms - spans[-1].from_ms


def decisions(history: Sequence[HistoryItem]) -> list[str]:
    """What was asked for and what became of it, in order, tool by tool."""
    told = [json.loads(item.output)["call"] for item in history if isinstance(item, ToolAnswered)]
    return [item.name for item in history if isinstance(item, ToolRequested)] + told


@pytest.mark.parametrize("place", [(0, -240), (0, 500), (0, 2_000), (1, -600), (1, -200), (1, 300)])
def test_a_whole_call_decides_as_the_call_without_samples_does(place: tuple[int, Ms]) -> None:
    edge, shift_ms = place
    ours = quick_call(over(farewell(quick_call((BYE,)))[edge] + shift_ms))
    whole = whole_call(over(farewell(whole_call((BYE,)))[edge] + shift_ms))
    assert decisions(ours.history) == decisions(whole.history)
    assert [(turn.speaker, turn.heard) for turn in ours.turns] == [(turn.speaker, turn.heard) for turn in whole.turns]
    assert len(ours.caller_lines) == len(whole.caller_lines)

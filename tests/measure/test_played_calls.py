"""Whole calls, played and measured: ours is right on every line, and each other client fails in its own way."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import callwright.apps.hotel as hotel
from callwright.core.session import Can
from callwright.measure.figures import METRICS, CallFigures, measure_call
from callwright.measure.verdict import judge
from callwright.sim.caller import Anchor, Step, Trigger
from callwright.sim.scenario import load_scenario
from callwright.sim.speech import Speech
from callwright.sim.world import OURS, Options, play

CHECK_IN = load_scenario(Path(hotel.__file__).parent / "scenarios/check-in.yaml", metrics=METRICS)
SETTINGS = {
    "lag 0": Options(),
    "lag 1500": Options(lag_ms=1_500),
    "fixed lag 300": Options(lag_fixed_ms=300),
    "lag 0, no truncate": Options(can=Can.RETRIEVE | Can.CANCEL),
    "lag 1500, no truncate": Options(lag_ms=1_500, can=Can.RETRIEVE | Can.CANCEL),
}
TRUTHFUL = ("lag 0", "lag 1500", "fixed lag 300")


@cache
def figures(settings: str, client: str = OURS) -> CallFigures:
    record = play(CHECK_IN, 1, client=client, options=SETTINGS[settings])
    return measure_call(record, Speech.load(CHECK_IN.speech))


@pytest.mark.parametrize("settings", TRUTHFUL)
def test_ours_holds_to_what_is_expected(settings: str) -> None:
    assert judge(figures(settings), CHECK_IN.expect).failed == ()


@pytest.mark.parametrize(("settings", "lag_ms"), [("lag 0", 0), ("lag 1500", 0), ("fixed lag 300", 300)])
def test_ours_yields_within_40_ms_of_the_confirmation_and_a_lag_that_nothing_empties(
    settings: str, lag_ms: int
) -> None:
    (after_ms,) = figures(settings).values["yield_after_confirmation_ms"]
    assert after_ms <= lag_ms + 40


@pytest.mark.parametrize("settings", TRUTHFUL)
def test_the_first_reply_is_cut_where_both_sides_believe_it_is(settings: str) -> None:
    first, *others = figures(settings).replies
    assert first.was_cut
    assert not any(other.was_cut for other in others)
    heard = first.heard.split()
    for believed in (first.in_history, first.in_transcript):
        assert believed.rstrip("-").split()[: len(heard)] == heard


def test_the_naive_client_believes_the_whole_written_reply() -> None:
    told = figures("lag 0", "naive")
    assert [failure.name for failure in judge(told, CHECK_IN.expect).failed] == ["unheard_words_in_transcript"]
    assert told.replies[0].in_transcript == told.replies[0].written


def test_without_truncate_history_runs_about_2_s_ahead_behind_a_lag_and_less_than_half_a_second_without() -> None:
    (behind,) = figures("lag 1500, no truncate").values["heard_error_ms"]
    (without,) = figures("lag 0, no truncate").values["heard_error_ms"]
    assert 1_500 <= behind <= 2_300
    assert without < 500
    assert figures("lag 1500, no truncate").values["unheard_words_in_history"][0] >= 4


@pytest.mark.parametrize("lag_ms", [1_500, 5_000])
def test_a_reply_that_was_still_on_its_way_when_the_caller_hung_up_is_no_fault_of_the_client(lag_ms: int) -> None:
    """Nothing of it arrived, and nobody was left to be told: it is in history, and counts against no one."""
    ask, *_ = CHECK_IN.caller
    leave = Step(Trigger(Anchor.PREVIOUS_END, 2_500), None)
    record = play(replace(CHECK_IN, caller=(ask, leave)), 1, options=Options(lag_ms=lag_ms))
    assert record.spoken
    told = measure_call(record, Speech.load(CHECK_IN.speech))
    assert told.void is None
    assert "heard_error_ms" not in told.values
    assert told.values["unheard_words_in_history"] == (0,)
    assert told.values["unheard_words_in_transcript"] == (0,)

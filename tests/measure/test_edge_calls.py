"""Whole calls at their edges: what is measured in the audio agrees with each client's books, and shows its habits."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import callwright.apps.hotel as hotel
from callwright.measure.figures import METRICS, CallFigures, measure_call
from callwright.sim.record import CallRecord
from callwright.sim.scenario import load_scenario
from callwright.sim.speech import Speech
from callwright.sim.world import OURS, Options, play

SCENARIOS = {
    name: load_scenario(Path(hotel.__file__).parent / f"scenarios/{name}.yaml", metrics=METRICS)
    for name in ("pickup", "talk-over")
}


@cache
def played(scenario: str, client: str, connect_ms: int = 0) -> tuple[CallRecord, CallFigures]:
    record = play(SCENARIOS[scenario], 1, client=client, options=Options(connect_ms=connect_ms or None))
    return record, measure_call(record, Speech.load(SCENARIOS[scenario].speech))


@pytest.mark.parametrize(("client", "connect_ms"), [(OURS, 0), (OURS, 6_500), ("naive", 0), ("naive", 1_500)])
def test_what_the_audio_lacks_is_what_the_client_says_that_it_dropped(client: str, connect_ms: int) -> None:
    record, figures = played("pickup", client, connect_ms)
    assert figures.values["pickup_lost_ms"] == (record.held_lost_ms,)
    assert (record.held_lost_ms == 0) is ((client, connect_ms) == (OURS, 0))


def test_audio_that_was_sent_too_early_is_lost_although_no_client_knows() -> None:
    record, figures = played("pickup", "sends-early-audio")
    assert record.held_lost_ms == 0
    assert figures.values["pickup_lost_words"][0] >= 1


def test_a_client_that_does_not_look_cuts_its_goodbye_after_a_second() -> None:
    _, figures = played("pickup", "naive")
    assert 900 <= figures.values["goodbye_played_ms"][0] <= 1_100
    assert figures.values["goodbye_played"][0] < 0.5


def test_ours_is_heard_to_the_end_of_its_goodbye_and_hangs_up_then() -> None:
    record, figures = played("pickup", OURS)
    assert record.ended_by == "agent"
    assert figures.values["goodbye_played"] == (1,)
    assert 0 <= figures.values["open_after_goodbye_ms"][0] <= 200


@pytest.mark.parametrize(("client", "hung_up_on", "goodbyes"), [(OURS, 0, 2), ("naive", 1, 1)])
def test_who_talks_over_the_goodbye_is_answered_or_hung_up_on(client: str, hung_up_on: int, goodbyes: int) -> None:
    _, figures = played("talk-over", client)
    assert figures.void is None
    assert figures.values["late_talk_over"] == (hung_up_on,)
    assert figures.values["goodbyes"] == (goodbyes,)

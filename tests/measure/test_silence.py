"""Dead air: silence of both sides in calls made by hand, and what the caller is left in while tools wait."""

from __future__ import annotations

import pytest
from tests.measure.records import SPEECH, Laid, record_of, said

from callwright.measure.figures import measure_call
from callwright.sim.models import Clip
from callwright.sim.record import CallRecord

PARKING = (Clip("parking"),)
ASK = "ask-parking"
END_MS = 1_000 + SPEECH[ASK].ms
"""Where the caller's question ends that begins after one second."""


def dead_air(record: CallRecord) -> float | None:
    return next(iter(measure_call(record, SPEECH).values.get("dead_air_ms", ())), None)


def test_silence_from_the_caller_s_turn_to_the_agent_s_audio_is_dead_air() -> None:
    record = record_of([Laid(PARKING, 7_000)], [said(ASK, 1_000)])
    assert dead_air(record) == pytest.approx(7_000 - END_MS, abs=30)


def test_silence_between_a_holding_line_and_what_follows_it_is_dead_air() -> None:
    holding = Laid((Clip("holding-look-up"),), 5_000)
    record = record_of([holding, Laid(PARKING, 12_000)], [said(ASK, 1_000)])
    assert dead_air(record) == pytest.approx(12_000 - 5_000 - SPEECH["holding-look-up"].ms, abs=30)


def test_silence_that_the_caller_himself_ends_by_asking_again_is_dead_air() -> None:
    record = record_of([Laid(PARKING, 14_000)], [said(ASK, 1_000), said("go-on", 10_000)])
    assert dead_air(record) == pytest.approx(10_000 - END_MS, abs=30)


def test_a_caller_who_takes_his_time_after_a_reply_is_not_left_in_dead_air() -> None:
    lines = [said(ASK, 1_000), said("thats-all", 20_000)]
    record = record_of([Laid(PARKING, 5_000), Laid((Clip("goodbye"),), 23_500)], lines)
    assert dead_air(record) == pytest.approx(23_500 - 20_000 - SPEECH["thats-all"].ms, abs=30)


def test_what_was_silent_before_the_caller_first_spoke_does_not_count() -> None:
    greeting, notice = Laid((Clip("greeting"),), 1_000), Laid((Clip("notice"),), 11_000)
    record = record_of([greeting, notice, Laid(PARKING, 19_000)], [said(ASK, 14_000)])
    assert dead_air(record) == pytest.approx(19_000 - 14_000 - SPEECH[ASK].ms, abs=30)


def test_without_a_turn_of_the_caller_there_is_no_dead_air() -> None:
    assert dead_air(record_of([Laid(PARKING, 5_000), Laid(PARKING, 20_000)])) is None

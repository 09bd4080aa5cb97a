"""Who was taken for the caller, by words and by samples; what of his own words was missed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.measure.records import HZ, LONG, SPEECH, Laid, confirmed, record_of, said

from callwright.ids import ItemId, Ms
from callwright.measure.figures import measure_call
from callwright.measure.hearing import hear_call
from callwright.measure.understood import echo_interrupts
from callwright.sim.models import CallerSaid
from callwright.sim.record import CallRecord

ECHO_MS: Ms = 40


def values(record: CallRecord, name: str) -> tuple[float, ...] | None:
    return measure_call(record, SPEECH).values.get(name)


def understanding(record: CallRecord, *texts: str) -> CallRecord:
    """The same call, in whose history these are all of the caller's turns."""
    others = tuple(item for item in record.history if not isinstance(item, CallerSaid))
    said_items = tuple(CallerSaid(ItemId(f"said_{number}"), text) for number, text in enumerate(texts))
    return replace(record, history=(*said_items, *others))


def with_echo(record: CallRecord, gain: float) -> CallRecord:
    """The same call with a microphone that hears so much of the agent, 40 ms late."""
    sound = record.recording
    late = np.roll(sound.agent, ECHO_MS * HZ // 1000) * gain
    microphone = (sound.caller + late.round()).clip(-32768, 32767).astype(np.int16)
    return replace(record, recording=replace(sound, microphone=microphone))


def test_the_agent_s_words_taken_for_the_caller_s_are_its_own_voice() -> None:
    record = record_of([Laid(LONG, 6_000)], [said("ask-check-in", 400), said("go-on", 40_000)])
    echo = CallerSaid(ItemId("echo"), "Check in is from three in the")
    assert values(record, "own_voice_as_caller") == (0,)
    assert values(replace(record, history=(*record.history, echo)), "own_voice_as_caller") == (1,)


def test_a_murmur_that_became_a_turn_is_noise_taken_for_the_caller() -> None:
    record = record_of([Laid(LONG, 6_000)], [said("ask-check-in", 400), said("mm-hmm", 40_000)])
    assert values(record, "noise_as_caller") == (1,)
    assert values(understanding(record, SPEECH["ask-check-in"].text), "noise_as_caller") == (0,)


def test_where_nothing_but_the_caller_sounded_nothing_else_can_be_taken_for_him() -> None:
    assert values(record_of([Laid(LONG, 6_000)], [said("ask-check-in", 400)]), "noise_as_caller") is None


@pytest.mark.parametrize(
    ("understood", "missing"),
    [
        (["Sorry, one thing first, is there any parking?", "Thanks, please go on."], 0),
        (["thing first, is there any parking?", "Thanks, please go on."], 2),
        (["Sorry, one thing first, is parking? Thanks, please go on."], 2),
        (["Sorry, one thing first, is there any parking?", "Check in is from three", "please go on."], 1),
        ([], 12),
    ],
    ids=["all", "the first words", "words within, two turns in one", "an echo between", "nothing"],
)
def test_words_of_the_caller_that_no_turn_of_his_has_are_missing(understood: list[str], missing: int) -> None:
    record = record_of([Laid(LONG, 6_000)], [said("ask-parking", 400), said("go-on", 40_000)])
    assert values(understanding(record, *understood), "caller_words_missing") == (missing,)


@pytest.mark.parametrize("gain", [0.05, 0.5])
def test_an_interruption_is_an_echo_where_the_agent_is_heard_and_the_caller_is_not(gain: float) -> None:
    record = with_echo(confirmed(record_of([Laid(LONG, 6_000)], [said("ask-check-in", 400)]), 7_000), gain)
    assert values(record, "echo_self_interrupts") == (1,)
    assert echo_interrupts(hear_call(record, SPEECH)) == [7_000]


def test_a_caller_who_talks_over_an_agent_that_echoes_is_no_echo() -> None:
    over = record_of([Laid(LONG, 6_000)], [said("ask-parking", 9_000, over=2_000)])
    assert values(with_echo(confirmed(over, 9_800), 0.5), "echo_self_interrupts") == (0,)


def test_an_interruption_by_something_else_in_the_room_is_no_echo() -> None:
    record = confirmed(record_of([Laid(LONG, 6_000)], [said("ask-check-in", 400)]), 7_000)
    hiss = np.random.default_rng(5).integers(-2_000, 2_000, len(record.recording.agent)).astype(np.int16)
    record = replace(record, recording=replace(record.recording, microphone=hiss))
    assert values(record, "echo_self_interrupts") == (0,)


def test_without_a_room_nothing_of_the_agent_comes_back() -> None:
    assert values(confirmed(record_of([Laid(LONG, 6_000)]), 7_000), "echo_self_interrupts") is None

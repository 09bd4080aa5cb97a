"""The caller's first words: what of them is in what the server read, and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.measure.records import HZ, SPEECH, read_by_server, record_of, said

from callwright.audio.g711 import pcmu_encode
from callwright.audio.resample import Resampler, resample
from callwright.ids import Ms
from callwright.measure.figures import measure_call
from callwright.sim.record import CallerLine, CallRecord, StereoRecording
from callwright.sim.speech import RATE_HZ

POOL = (said("ask-pool", 0), said("thats-all", 6_000))
"""Thirteen words from the first frame on, and a line when the session stands."""


def values(record: CallRecord) -> tuple[float | None, float | None]:
    """Lost ms and lost words; None where there is no such figure."""
    found = measure_call(record, SPEECH).values
    ms, words = (found.get(name, (None,)) for name in ("pickup_lost_ms", "pickup_lost_words"))
    return ms[0], words[0]


def lost(spans: Sequence[tuple[Ms, Ms]], ready_ms: Ms, lines: Sequence[CallerLine] = POOL) -> CallRecord:
    """A call in which the server never got these parts of what the caller said."""
    record = replace(record_of([], lines, length_ms=20_000), session_ready_ms=ready_ms)
    edges = [0, *(ms for span in spans for ms in span), 20_000]
    kept = [
        record.recording.caller[a * HZ // 1000 : b * HZ // 1000] for a, b in zip(edges[::2], edges[1::2], strict=True)
    ]
    return replace(record, first_audio=read_by_server(*kept))


def cut_words(from_ms: Ms, to_ms: Ms) -> int:
    """Words of the first line of which more than a tenth lies in a part."""
    words = SPEECH["ask-pool"].words
    return sum(10 * (min(w.end_ms, to_ms) - max(w.start_ms, from_ms)) > w.end_ms - w.start_ms for w in words)


@pytest.mark.parametrize("ready_ms", [230, 660, 2_830, 7_000])
def test_what_was_held_and_sent_is_not_lost(ready_ms: Ms) -> None:
    assert values(lost([], ready_ms)) == (0, 0)


@pytest.mark.parametrize(("ready_ms", "dropped_ms"), [(230, 240), (660, 660), (2_830, 2_840)])
def test_c045_what_was_dropped_before_the_session_was_ready_is_lost_to_the_frame(ready_ms: Ms, dropped_ms: Ms) -> None:
    record = lost([(0, dropped_ms)], ready_ms)
    assert values(record) == (dropped_ms, cut_words(0, dropped_ms))
    assert cut_words(0, dropped_ms) >= 1


def test_c046_a_hold_that_was_too_short_loses_its_oldest_audio() -> None:
    assert values(lost([(0, 1_500)], 6_500)) == (1_500, cut_words(0, 1_500))


def test_all_words_are_lost_when_nothing_of_the_line_arrives() -> None:
    assert values(lost([(0, 4_260)], 4_260)) == (4_260, 13)


def test_a_hole_in_the_first_words_costs_the_words_in_it() -> None:
    assert values(lost([(1_000, 1_500)], 4_000)) == (500, cut_words(1_000, 1_500))


@settings(max_examples=30, deadline=None)
@given(st.just(0) | st.integers(16, 150), st.integers(1, 100))
def test_any_hole_is_found_to_the_frame(first: int, count: int) -> None:
    """What stands alone is known by 320 ms of it."""
    hole = (20 * first, 20 * (first + count))
    ms, words = values(lost([hole], 5_000))
    assert ms == 20 * count
    assert words is not None
    assert abs(words - cut_words(*hole)) <= 1  # silence in a pause is like any other


def test_silence_that_was_dropped_before_he_spoke_counts_and_costs_no_word() -> None:
    record = lost([(0, 240)], 234, [said("ask-pool", 400)])
    assert values(record) == (240, None)


def test_audio_read_in_another_format_is_lost_and_what_follows_is_found() -> None:
    record = lost([], 800)
    sent = pcmu_encode(record.recording.caller)
    misread = np.frombuffer(sent[: 600 * HZ // 1000], np.dtype("<i2"))
    strange = Resampler(24_000, RATE_HZ).process(misread)
    rest = read_by_server(record.recording.caller[600 * HZ // 1000 :])
    assert values(replace(record, first_audio=np.concatenate((strange, rest)))) == (600, cut_words(0, 600))


def test_when_all_of_it_is_read_in_another_format_all_of_it_is_lost() -> None:
    record = lost([], 4_260)
    misread = np.frombuffer(pcmu_encode(record.recording.caller), np.dtype("<i2"))
    assert values(replace(record, first_audio=Resampler(24_000, RATE_HZ).process(misread))) == (4_260, 13)


def test_a_line_that_was_lost_is_not_found_in_the_same_line_said_again() -> None:
    again = [said("ask-pool", 0), said("ask-pool", 8_000)]
    assert values(lost([(0, 4_260)], 4_260, again)) == (4_260, 13)


@pytest.mark.parametrize(("length_ms", "lost_ms"), [(16_000, 6_980), (40_000, 4_260)], ids=["all of it", "a part"])
def test_silence_behind_words_that_were_lost_counts_as_far_as_it_cannot_have_been_read(
    length_ms: Ms, lost_ms: Ms
) -> None:
    """Where the server read more than is kept, there is room for all of the silence."""
    record = replace(record_of([], POOL[:1], length_ms=length_ms), session_ready_ms=12_000)
    record = replace(record, first_audio=read_by_server(record.recording.caller[6_980 * HZ // 1000 :]))
    ms, words = values(record)
    assert (ms, words) == (lost_ms, 13)


def test_everything_is_lost_when_the_session_never_comes() -> None:
    record = lost([], 0)
    nothing = replace(record, session_ready_ms=None, first_audio=record.first_audio[:0], ended_ms=20_000)
    assert values(nothing) == (20_000, 13 + len(SPEECH["thats-all"].words))


def test_a_caller_who_says_nothing_loses_nothing() -> None:
    assert values(record_of([])) == (None, None)


def test_lines_that_began_later_are_not_counted() -> None:
    assert values(lost([(0, 240)], 234, [said("ask-pool", 1_000)]))[1] is None


@pytest.mark.parametrize("dropped_ms", [0, 1_000])
def test_a_sound_card_s_samples_are_found_too(dropped_ms: Ms) -> None:
    record = lost([], 2_000)
    caller = resample(record.recording.caller, HZ, 24_000)
    record = replace(
        record,
        recording=StereoRecording(24_000, caller, np.zeros_like(caller)),
        first_audio=Resampler(24_000, RATE_HZ).process(caller[dropped_ms * 24 :])[: 15 * RATE_HZ],
    )
    assert values(record) == (dropped_ms, cut_words(0, dropped_ms))

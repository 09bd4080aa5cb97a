"""Where a reply stopped at the ear, to the sample, whatever the line's books say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.measure.records import HZ, LONG, SPEECH, Laid, record_of

from callwright.measure.played import Played, measure_played, placed_clips
from callwright.sim.models import Clip
from callwright.sim.record import CallRecord
from callwright.sim.server.speaking import render
from callwright.sim.speech import RATE_HZ


def played(record: CallRecord, number: int = 0) -> Played:
    item = record.spoken[number]
    return measure_played(item, placed_clips(item, SPEECH), record.ear, record.recording)


ANSWER = Laid(LONG, 0).sound


def is_quiet_at(ms: int) -> bool:
    """Whether the long answer pauses there, so that its end can't be told from samples."""
    sound = ANSWER[(ms - 10) * HZ // 1000 : (ms + 10) * HZ // 1000]
    return int(np.abs(sound.astype(int)).max()) < 104


def test_clips_lie_where_the_server_rendered_them_to_the_sample() -> None:
    clips = (Clip("going-on"), Clip("check-in-bring", 3, 7), Clip("parking"))
    made = render(clips, SPEECH, 200)
    item = record_of([Laid(clips, 0)]).spoken[0]
    first, second, third = placed_clips(item, SPEECH)
    assert (first.at, second.at) == (0, first.length + 200 * RATE_HZ // 1000)
    assert third.at == second.at + second.length
    assert third.at + third.length == len(made.audio) // 3


@pytest.mark.parametrize("cut_ms", [137, 1_100, 4_820, 5_001, 9_333, 15_002, 20_000])
def test_the_end_is_found_to_the_millisecond(cut_ms: int) -> None:
    assert not is_quiet_at(cut_ms)
    assert played(record_of([Laid(LONG, 5_760, heard_ms=cut_ms)])).ms == pytest.approx(cut_ms, abs=1)


@pytest.mark.parametrize("wrong_ms", [-120, 120, -900, 4_000])
def test_books_that_are_wrong_do_not_count(wrong_ms: int) -> None:
    record = record_of([Laid(LONG, 5_760, heard_ms=4_820, booked_ms=4_820 + wrong_ms)])
    found = played(record).ms
    assert found == pytest.approx(4_820 if wrong_ms > -200 else 4_820 + wrong_ms + 200, abs=1)


def test_in_a_pause_the_books_decide() -> None:
    pause_ms = next(ms for ms in range(1_000, 20_000, 10) if all(map(is_quiet_at, range(ms - 60, ms + 61, 20))))
    for booked_ms in (pause_ms - 40, pause_ms, pause_ms + 40):
        assert played(record_of([Laid(LONG, 0, heard_ms=pause_ms, booked_ms=booked_ms)])).ms == booked_ms


def test_a_reply_that_the_books_claim_and_nobody_hears_was_not_played() -> None:
    record = record_of([Laid(LONG, 1_000, heard_ms=4_000)])
    record.recording.agent[:] = 0
    assert played(record).ms < 100
    assert played(record).first_audible_ms is None


def test_another_sound_in_its_place_is_not_the_reply() -> None:
    record = record_of([Laid(LONG, 1_000, heard_ms=4_000)])
    record.recording.agent[:] = record_of([Laid((Clip("parking"), Clip("wifi")), 1_000)]).recording.agent
    assert played(record).ms < 200


def test_a_place_that_is_3_ms_off_is_found() -> None:
    record = record_of([Laid(LONG, 1_000, heard_ms=4_820)])
    moved = replace(record, ear=tuple(replace(span, at_ms=span.at_ms - 3) for span in record.ear))
    assert played(moved).ms == pytest.approx(4_820, abs=1)


def test_a_line_that_ran_dry_plays_on_where_it_stopped() -> None:
    whole = played(record_of([Laid(LONG, 1_000, breaks=[(2_000, 700), (6_000, 1_200)])]))
    cut = played(record_of([Laid(LONG, 1_000, heard_ms=7_001, breaks=[(2_000, 700)])]))
    assert [stretch.at for stretch in whole.stretches] == [1_000 * 8, 3_700 * 8, 8_900 * 8]
    assert whole.share(0, 23_000) == pytest.approx(1, abs=0.001)
    assert cut.ms == pytest.approx(7_001, abs=1)


def test_a_position_of_a_reply_has_its_instant_at_the_ear_whatever_ran_dry_before_it() -> None:
    found = played(record_of([Laid(LONG, 1_000, heard_ms=7_001, breaks=[(2_000, 700)])]))
    assert [found.instant_ms(at_ms) for at_ms in (0, 1_999, 2_000, 7_000)] == [1_000, 2_999, 3_700, 8_700]
    assert found.instant_ms(9_000) == pytest.approx(8_701, abs=1)  # never heard: where the reply ended


def test_the_next_reply_is_not_taken_for_the_last_one() -> None:
    record = record_of([Laid(LONG, 1_000, heard_ms=4_820), Laid(LONG, 5_840)])
    assert played(record).ms == pytest.approx(4_820, abs=1)
    assert played(record, 1).ms == pytest.approx(record.spoken[1].audio_ms, abs=1)


def test_audible_instants_are_the_ear_s() -> None:
    found = played(record_of([Laid((Clip("parking"),), 2_000)]))
    words = SPEECH["parking"].words
    assert found.first_audible_ms == pytest.approx(2_000 + words[0].start_ms, abs=30)
    assert found.last_audible_ms == pytest.approx(2_000 + words[-1].end_ms, abs=60)

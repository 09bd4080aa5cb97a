"""How a call ended: what was heard of the goodbye, and who was hung up on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.measure.records import SPEECH, Laid, record_of, said

from callwright.ids import Ms
from callwright.measure.figures import CallFigures, measure_call
from callwright.sim.models import Clip
from callwright.sim.record import CallerLine, CallRecord

GOODBYE = (Clip("goodbye"),)
WHOLE_MS = Laid(GOODBYE, 0).made.audio_ms


def bye(at_ms: Ms = 10_000, heard_ms: Ms | None = None, breaks: Sequence[tuple[Ms, Ms]] = ()) -> Laid:
    """A farewell, whole or cut."""
    return Laid(GOODBYE, at_ms, heard_ms=heard_ms, breaks=breaks, tool="end_call")


def ended(replies: Sequence[Laid], ended_ms: Ms, lines: Sequence[CallerLine] = (), by: str = "agent") -> CallRecord:
    """A call that ended at this instant."""
    return replace(record_of(replies, lines, length_ms=-(-ended_ms // 20) * 20), ended_ms=ended_ms, ended_by=by)


def figures(record: CallRecord) -> CallFigures:
    return measure_call(record, SPEECH)


def value(record: CallRecord, name: str) -> float:
    (only,) = figures(record).values[name]
    return only


def audible_ms() -> tuple[float, float]:
    """The first and the last audible instant of a whole farewell, from its beginning."""
    (reply,) = figures(ended([bye(0)], 8_000)).replies
    assert reply.started_ms is not None
    assert reply.ended_ms is not None
    return reply.started_ms, reply.ended_ms


def test_a_whole_goodbye_is_one_and_its_length_is_of_the_sound() -> None:
    record = ended([bye()], 16_000)
    first_ms, last_ms = audible_ms()
    assert value(record, "goodbye_played") == 1
    assert value(record, "goodbye_played_ms") == pytest.approx(last_ms - first_ms, abs=20)
    assert value(record, "goodbyes") == 1


@pytest.mark.parametrize("heard_ms", [500, 1_000, 3_000])
def test_a_goodbye_that_the_hang_up_cut_counts_as_far_as_it_was_heard(heard_ms: Ms) -> None:
    """The line was handed all of it, and ended."""
    record = ended([bye(heard_ms=heard_ms)], 10_000 + heard_ms)
    first_ms, last_ms = audible_ms()
    assert value(record, "goodbye_played_ms") == pytest.approx(heard_ms - first_ms, abs=20)
    assert value(record, "goodbye_played") == pytest.approx((heard_ms - first_ms) / (last_ms - first_ms), abs=0.005)


def test_a_goodbye_that_is_cut_a_second_later_was_heard_for_a_second_more() -> None:
    first_ms, second_ms = (value(ended([bye(heard_ms=ms)], 16_000), "goodbye_played_ms") for ms in (1_000, 2_000))
    assert second_ms - first_ms == 1_000


def test_c050_what_the_recording_holds_after_the_end_of_the_line_was_not_heard() -> None:
    record = replace(ended([bye()], 16_000), ended_ms=12_000)
    assert value(record, "goodbye_played_ms") == pytest.approx(2_000 - audible_ms()[0], abs=20)


def test_a_goodbye_of_which_less_than_a_frame_is_missing_is_whole() -> None:
    last_ms = audible_ms()[1]
    assert value(ended([bye(heard_ms=round(last_ms) - 15)], 16_000), "goodbye_played") == 1
    assert value(ended([bye(heard_ms=round(last_ms) - 25)], 16_000), "goodbye_played") < 1


def test_a_stall_in_the_goodbye_takes_nothing_from_it() -> None:
    record = ended([bye(breaks=[(1_400, 500)])], 17_000)
    assert value(record, "goodbye_played") == 1
    assert value(record, "open_after_goodbye_ms") == pytest.approx(17_000 - 10_500 - audible_ms()[1], abs=1)


def test_a_goodbye_of_which_nothing_was_heard_is_none_played() -> None:
    record = ended([Laid((Clip("pool"),), 2_000), bye(heard_ms=0)], 10_000)
    assert value(record, "goodbye_played") == value(record, "goodbye_played_ms") == value(record, "goodbyes") == 0
    assert "open_after_goodbye_ms" not in figures(record).values


def test_the_last_goodbye_counts() -> None:
    record = ended([bye(4_000, heard_ms=800), Laid((Clip("pool"),), 10_000), bye(16_000)], 22_000)
    assert value(record, "goodbye_played") == 1
    assert value(record, "goodbyes") == 2


def test_without_a_tool_that_ends_the_call_there_is_no_goodbye() -> None:
    values = figures(ended([Laid(GOODBYE, 10_000)], 16_000)).values
    names = {"goodbyes", "goodbye_played", "goodbye_played_ms", "late_talk_over", "farewells_repeated"}
    assert not names & values.keys()


def test_the_line_stays_open_after_the_goodbye_for_as_long_as_it_does() -> None:
    last_ms = 10_000 + audible_ms()[1]
    assert value(ended([bye()], round(last_ms) + 340), "open_after_goodbye_ms") == pytest.approx(340, abs=1)
    assert "open_after_goodbye_ms" not in figures(ended([bye()], 16_000, by="caller")).values


# --- talked over


def talked_over(
    onset_ms: Ms, *, by: str = "agent", answered: bool = False, line: str = "ask-breakfast-included"
) -> CallRecord:
    """The caller speaks at this instant, the farewell plays from 10 s on, and the line ends."""
    replies = [bye(), *([Laid((Clip("breakfast-included"),), 18_000)] if answered else [])]
    return ended(replies, 24_000 if answered else 16_000, [said(line, onset_ms, over=500)], by)


@pytest.mark.parametrize("into_ms", [500, 4_000])
def test_a_caller_who_speaks_in_the_goodbye_and_gets_no_answer_was_hung_up_on(into_ms: Ms) -> None:
    assert value(talked_over(10_000 + into_ms), "late_talk_over") == 1


def test_the_last_moments_of_the_goodbye_count_and_what_comes_after_it_does_not() -> None:
    last_ms = round(10_000 + audible_ms()[1])
    onset_ms = measured_onset("ask-breakfast-included")
    assert value(talked_over(last_ms - 40 - onset_ms), "late_talk_over") == 1
    assert value(talked_over(last_ms + 5 - onset_ms), "late_talk_over") == 0


@pytest.mark.parametrize(
    "record",
    [
        talked_over(10_500, answered=True),
        talked_over(10_500, by="caller"),
        talked_over(10_500, line="mm-hmm"),
        talked_over(7_000),
    ],
    ids=["answered", "the caller hung up", "a murmur", "before the goodbye"],
)
def test_who_is_answered_or_hangs_up_himself_or_only_murmurs_was_not_hung_up_on(record: CallRecord) -> None:
    assert value(record, "late_talk_over") == 0


def test_a_step_that_never_came_is_not_the_caller_s_fault_when_he_was_hung_up_on() -> None:
    step = ("step 4 (reply.end + 1000 ms)",)
    assert figures(replace(talked_over(10_500), unspoken=step)).void is None
    void = figures(replace(ended([bye()], 16_000), unspoken=step)).void
    assert void == "VOID by-hand seed 7: step 4 (reply.end + 1000 ms) never came (the agent hung up 16.00 s)"


def measured_onset(line_id: str) -> Ms:
    """From the start of a line to its first audible sample."""
    loud = abs(SPEECH[line_id].pcm.astype(int)) >= 104
    return int(loud.argmax()) // 16


# --- said again, and said at all


def test_c055_a_goodbye_that_is_said_again_without_ending_the_call_is_counted() -> None:
    again = [Laid(GOODBYE, at_ms) for at_ms in (20_000, 26_000, 32_000)]
    record = record_of([bye(heard_ms=900), *again, Laid((Clip("pool"),), 40_000)])
    assert value(record, "farewells_repeated") == 3


def test_a_second_goodbye_that_ends_the_call_repeats_nothing() -> None:
    assert value(record_of([bye(heard_ms=900), Laid((Clip("pool"),), 20_000), bye(30_000)]), "farewells_repeated") == 0


NOTICE = "Automated assistant"


def test_the_notice_was_heard_when_each_of_its_words_was_in_a_row() -> None:
    notice = Laid((Clip("notice"), Clip("pool")), 3_000)
    assert value(replace(record_of([notice]), ai_notice=NOTICE), "ai_notice_heard") == 1


@pytest.mark.parametrize(
    "reply",
    [
        Laid((Clip("pool"),), 3_000),
        Laid((Clip("notice"), Clip("pool")), 3_000, heard_ms=1_200),
    ],
    ids=["not said", "cut before its end"],
)
def test_the_notice_was_not_heard_when_a_word_of_it_is_missing(reply: Laid) -> None:
    assert value(replace(record_of([reply]), ai_notice=NOTICE), "ai_notice_heard") == 0


def test_a_word_lost_from_the_middle_of_the_notice_is_missing() -> None:
    record = replace(record_of([Laid((Clip("notice"),), 3_000)]), ai_notice=NOTICE)
    word = next(word for word in SPEECH["notice"].words if word.text.startswith("automated"))
    record.recording.agent[(3_000 + word.start_ms) * 8 : (3_000 + word.end_ms) * 8] = 0
    assert value(record, "ai_notice_heard") == 0


def test_an_agent_without_a_notice_has_no_such_figure() -> None:
    assert "ai_notice_heard" not in figures(record_of([Laid((Clip("notice"),), 3_000)])).values

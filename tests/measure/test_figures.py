"""The figures of calls made by hand, whose right values are known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.measure.records import LONG, SPEECH, Laid, confirmed, record_of, said

from callwright.core.transcript import Source, Speaker, Turn
from callwright.ids import ItemId
from callwright.measure.figures import METRICS, CallFigures, measure_call
from callwright.sim.models import AgentSaid, Clip
from callwright.sim.record import CallRecord

PARKING = (Clip("parking"),)
CUT_MS = 4_820
"""Falls into "booked", the 19th word of the long answer."""


def figures(record: CallRecord) -> CallFigures:
    return measure_call(record, SPEECH)


def value(record: CallRecord, name: str) -> float:
    (only,) = figures(record).values[name]
    return only


def cut(at_ms: int = 6_000, **believed: object) -> Laid:
    """The long answer, cut."""
    return Laid(LONG, at_ms, heard_ms=CUT_MS, **{"truncated_ms": CUT_MS, **believed})  # type: ignore[arg-type]


def text(count: int) -> str:
    return " ".join(cut().made.text.split()[:count])


# --- what was heard


@pytest.mark.parametrize("wrong_ms", [0, 16, 300, -300])
def test_the_error_is_the_distance_from_what_was_truly_played(wrong_ms: int) -> None:
    assert value(record_of([cut(truncated_ms=CUT_MS + wrong_ms)]), "heard_error_ms") == pytest.approx(
        abs(wrong_ms), abs=1
    )


def test_a_cut_reply_that_was_not_truncated_counts_with_all_that_was_streamed() -> None:
    assert value(record_of([cut(truncated_ms=None, streamed_ms=6_600)]), "heard_error_ms") == pytest.approx(
        1_780, abs=1
    )


def test_the_last_truncate_of_a_reply_counts() -> None:
    record = record_of([cut(truncated_ms=CUT_MS)])
    earlier = replace(record.truncations[0], audio_end_ms=9_000)
    assert value(replace(record, truncations=(earlier, *record.truncations)), "heard_error_ms") <= 1


def test_a_reply_played_whole_and_not_truncated_has_no_error() -> None:
    assert "heard_error_ms" not in figures(record_of([Laid(PARKING, 1_000)])).values


def test_a_reply_that_the_call_ended_in_is_judged_by_the_transcript_only() -> None:
    """Nobody was left to truncate for; what the client has recorded counts all the same."""
    reply = cut(truncated_ms=None, streamed_ms=6_600, history=text(24), transcript=text(24))
    values = figures(record_of([reply], length_ms=6_000 + CUT_MS)).values
    assert "heard_error_ms" not in values
    assert values["unheard_words_in_history"] == (0,)
    assert values["unheard_words_in_transcript"] == (5,)


def test_a_truthful_record_has_no_wrong_word() -> None:
    values = figures(record_of([cut(), Laid(PARKING, 14_000)])).values
    names = ("unheard_words_in_history", "unheard_words_in_transcript", "heard_words_missing")
    assert [values[name] for name in names] == [(0,)] * 3


def test_words_that_the_ear_never_received_are_counted_where_they_are_believed() -> None:
    """19 is the word under the cut: it is neutral. Two more are unheard."""
    record = record_of([cut(history=f"{text(21)}-", transcript=text(20))])
    assert value(record, "unheard_words_in_history") == 2
    assert value(record, "unheard_words_in_transcript") == 1
    assert value(record, "heard_words_missing") == 0


def test_heard_words_that_the_transcript_lacks_are_missing() -> None:
    assert value(record_of([cut(transcript=text(15))]), "heard_words_missing") == 3
    assert value(record_of([cut(transcript="", history="")]), "heard_words_missing") == 18


def test_a_naive_transcript_holds_the_whole_reply() -> None:
    naive = record_of([cut(transcript=cut().made.text)])
    assert value(naive, "unheard_words_in_transcript") == len(cut().made.words) - 19


@pytest.mark.parametrize("kept", [18, 19])
def test_the_word_under_the_cut_is_neither_unheard_nor_missing(kept: int) -> None:
    values = figures(record_of([cut(history=f"{text(kept)}-", transcript=text(kept))])).values
    assert values["unheard_words_in_history"] == values["heard_words_missing"] == (0,)
    assert figures(record_of([cut()])).replies[0].partial == "booked"


def test_a_text_that_was_never_spoken_is_unheard() -> None:
    record = record_of([Laid(PARKING, 1_000)])
    ghost = ItemId("item_ghost")
    record = replace(
        record,
        history=(*record.history, AgentSaid(ghost, "Never said this.")),
        turns=(*record.turns, Turn(Speaker.AGENT, ghost, "Nor this.", "Nor this.", Source.WHOLE)),
    )
    assert value(record, "unheard_words_in_history") == 3
    assert value(record, "unheard_words_in_transcript") == 2


def test_a_word_replaced_by_noise_within_a_reply_is_not_heard() -> None:
    record = record_of([Laid(PARKING, 1_000)])
    word = SPEECH["parking"].words[3]
    first, end = ((1_000 + ms) * 8 for ms in (word.start_ms, word.end_ms))
    record.recording.agent[first:end] = 0
    assert value(record, "unheard_words_in_transcript") == 1
    assert "valet" not in figures(record).replies[0].heard


def test_a_reply_deleted_from_history_holds_no_wrong_word_there() -> None:
    record = record_of([cut()])
    assert value(replace(record, history=()), "unheard_words_in_history") == 0
    assert figures(replace(record, history=())).replies[0].in_history == ""


def test_at_every_cut_the_words_are_told_apart() -> None:
    """Wherever a reply is cut, words that end before it are heard, those that begin after it are not."""
    clips = (Clip("check-in-time"), Clip("check-in-bring"))
    made = Laid(clips, 0).made
    for cut_ms in range(100, made.audio_ms, 130):
        (reply,) = figures(record_of([Laid(clips, 2_000, heard_ms=cut_ms)], length_ms=8_000)).replies
        whole = [word for word in made.words if word.end_ms <= cut_ms]
        begun = [word for word in made.words if word.start_ms < cut_ms]
        assert len(whole) <= len(reply.heard.split()) <= len(begun), cut_ms
        assert reply.written.startswith(reply.heard)


def test_replies_are_told_side_by_side() -> None:
    first, second = figures(record_of([cut(history=f"{text(19)}-"), Laid(PARKING, 14_000)])).replies
    assert (first.heard, first.in_history, first.in_transcript) == (text(18), f"{text(19)}-", text(18))
    assert first.written == cut().made.text
    assert (first.was_cut, second.was_cut) == (True, False)
    assert (second.heard, second.partial) == (SPEECH["parking"].text, None)


def test_a_line_heard_in_two_halves_was_heard_whole() -> None:
    halves = [Laid([Clip("check-in-bring", 0, 5)], 1_000), Laid([Clip("check-in-bring", 5)], 6_000)]
    assert figures(record_of(halves)).lines_heard == ("check-in-bring",)
    assert figures(record_of(halves[:1])).lines_heard == ()
    assert figures(record_of(halves[:1])).lines_touched == ("check-in-bring",)


def test_lines_behind_the_cut_are_not_touched() -> None:
    told = figures(record_of([cut()]))
    assert told.lines_heard == ("check-in-time",)
    assert told.lines_touched == ("check-in-time", "check-in-bring")


def test_a_cut_reply_counts_once_and_one_that_the_call_ended_in_does_not() -> None:
    assert value(record_of([cut(), Laid(PARKING, 14_000)]), "replies_cut") == 1
    assert value(record_of([Laid(LONG, 6_000)], length_ms=9_000), "replies_cut") == 0


# --- turns


def interrupted(**believed: object) -> CallRecord:
    """The caller asks, talks over the answer from 10.03 s to its cut at 10.82 s, and is answered at 14 s."""
    lines = [said("ask-check-in", 400), said("ask-parking", 10_030, over=790)]
    return confirmed(record_of([cut(**believed), Laid(PARKING, 14_000)], lines), 10_790)


def test_yield_is_from_onset_to_the_last_audible_sample() -> None:
    values = figures(interrupted()).values
    assert values["yield_latency_ms"] == (pytest.approx(790, abs=25),)
    assert values["yield_after_confirmation_ms"] == (pytest.approx(30, abs=3),)
    assert values["yield_rate"] == (1.0,)


def test_a_reply_that_plays_on_does_not_yield_in_time() -> None:
    lines = [said("ask-parking", 10_000, over=3_000)]
    values = figures(record_of([Laid(LONG, 6_000)], lines)).values
    assert values["yield_latency_ms"][0] == pytest.approx(6_000 + 23_088 - 10_000, abs=250)
    assert values["yield_rate"] == (0.0,)
    assert "yield_after_confirmation_ms" not in values


def test_without_an_interruption_there_is_no_yield() -> None:
    values = figures(record_of([Laid(PARKING, 6_000)], [said("ask-parking", 1_000)])).values
    assert not {"yield_latency_ms", "yield_rate", "yield_after_confirmation_ms"} & values.keys()


def test_response_is_from_the_end_of_speech_to_the_first_audible_sample() -> None:
    line = said("ask-check-in", 400)
    first, second = figures(interrupted()).values["response_latency_ms"]
    assert first == pytest.approx(6_000 - line.ended_ms, abs=120)
    assert second == pytest.approx(14_000 - said("ask-parking", 10_030).ended_ms, abs=120)


def test_a_turn_that_is_not_answered_lowers_the_rate() -> None:
    lines = [said("ask-parking", 400), said("go-on", 8_000)]
    values = figures(record_of([Laid(PARKING, 12_000)], lines)).values
    assert values["response_rate"] == (0.5,)
    assert len(values["response_latency_ms"]) == 1


def test_a_reply_that_begins_in_the_caller_s_speech_interrupts_him() -> None:
    lines = [said("ask-parking", 400), said("ask-check-in", 8_000)]
    values = figures(record_of([Laid(PARKING, 5_000), Laid(LONG, 9_500)], lines)).values
    assert values["agent_interruption_rate"] == (0.5,)
    assert values["response_latency_ms"][1] < 0


def test_a_murmur_is_no_turn() -> None:
    lines = [said("ask-parking", 400), said("mm-hmm", 8_000)]
    assert figures(record_of([Laid(PARKING, 5_000)], lines)).values["response_rate"] == (1.0,)


# --- what is said again


@pytest.mark.parametrize(
    ("later", "count"),
    [
        (LONG, 1),
        ((Clip("going-on"), *LONG), 1),
        ((Clip("going-on"), *LONG[1:]), 0),
        (PARKING, 0),
    ],
    ids=["from the start", "from the start behind a lead-in", "goes on", "another answer"],
)
def test_starting_over_is_beginning_as_the_first_reply_did(later: tuple[Clip, ...], count: int) -> None:
    assert value(record_of([cut(), Laid(PARKING, 14_000), Laid(later, 22_000)]), "starts_over") == count


def test_a_short_reply_said_twice_does_not_start_over() -> None:
    twice = [Laid([Clip("not-understood")], at_ms) for at_ms in (1_000, 5_000)]
    assert value(record_of(twice), "starts_over") == 0


def test_c039_restated_are_the_words_that_were_heard_and_are_heard_again() -> None:
    """The cut sentence is begun again: ten of its words had been heard."""
    recap = record_of([cut(), Laid(PARKING, 14_000), Laid((Clip("going-on"), *LONG[1:]), 22_000)])
    assert value(recap, "answer_restates") == 10
    assert value(record_of([cut(), Laid(PARKING, 14_000), Laid(LONG[2:], 22_000)]), "answer_restates") == 0
    assert "answer_restates" not in figures(record_of([cut()])).values


# --- the call itself


def test_plain_figures_are_passed_on() -> None:
    values = figures(record_of([Laid(PARKING, 1_000)])).values
    assert (values["session_ready_ms"], values["held_sent_ms"], values["connected_s"]) == ((234,), (220,), (59.5,))
    assert "session_ready_ms" not in figures(replace(record_of([]), session_ready_ms=None)).values


def test_a_silent_agent_has_no_figures_of_words() -> None:
    values = figures(record_of([], [said("ask-parking", 400)])).values
    assert not {"heard_words_missing", "unheard_words_in_history", "starts_over", "heard_ms"} & values.keys()
    assert values["response_rate"] == (0.0,)


def test_every_figure_is_known_by_its_name() -> None:
    assert [metric.name for metric in METRICS.values()] == list(METRICS)
    assert figures(interrupted()).values.keys() <= METRICS.keys()


# --- void


def test_void_is_an_interruption_over_silence() -> None:
    record = record_of([Laid(PARKING, 1_000)], [said("ask-check-in", 0), said("ask-parking", 6_500, over=0)])
    told = figures(record)
    assert told.void == (
        "VOID by-hand seed 7: line 2 overlapped 0 ms of speech "
        f"(reply ended {told.replies[0].ended_ms / 1000:.2f} s, trigger 6.50 s)"
    )
    assert told.values["caller_fidelity"] == (0,)


def test_void_is_a_call_for_which_a_server_that_is_not_ours_opened_no_session() -> None:
    """The caller who left meanwhile spoke to nobody; of our own server that is a measurement."""
    ours = replace(record_of([]), session_ready_ms=None)
    elsewhere = replace(ours, first_audio=None)
    assert figures(ours).void is None
    assert figures(elsewhere).void == "VOID by-hand seed 7: the server opened no session"
    broken = figures(replace(elsewhere, error="the line broke")).void
    assert broken == "CENSORED by-hand seed 7: the call broke off: the line broke"


def test_void_is_a_line_that_never_came() -> None:
    steps = ("step 3 (reply.end + 800 ms)", "step 4 (reply.end + 1000 ms)")
    told = figures(replace(record_of([Laid(PARKING, 1_000)]), unspoken=steps))
    assert told.void
    assert told.void.endswith(": step 3 (reply.end + 800 ms) never came (call ended 60.00 s)")


def test_a_call_that_broke_off_is_censored_and_the_caller_is_not_to_blame() -> None:
    told = figures(replace(record_of([Laid(PARKING, 1_000)]), error="the line broke"))
    assert told.void == "CENSORED by-hand seed 7: the call broke off: the line broke"
    assert told.values["caller_fidelity"] == (1,)


def test_a_call_that_went_as_scripted_is_not_void() -> None:
    assert figures(interrupted()).void is None

"""Everything that happened in a call stands on one clock, as it was, and without card numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
from tests.measure.records import LONG, SPEECH, Laid, read_by_server, record_of, said

from callwright.core.transcript import Speaker
from callwright.ids import ItemId, ToolCallId
from callwright.measure.course import Course, Span, Step, WordFate, course_of
from callwright.measure.hearing import hear_call
from callwright.measure.sides import hushed
from callwright.sim.models import SystemNote, ToolAnswered, ToolRequested
from callwright.sim.record import CallRecord, Effect, Truncation
from callwright.sim.speech import Recording, Word

CARD = "four one one one one one one one one one one one one one one one"


def course(record: CallRecord, speech: Any = SPEECH) -> Course:
    return course_of(hear_call(record, speech))


def trace(*rows: object) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def fates(course: Course) -> dict[WordFate, str]:
    """The words of the first reply, by what became of them."""
    words = course.spoken[0].words
    return {fate: " ".join(word.text for word in words if word.fate is fate) for fate in WordFate}


def test_the_words_of_a_cut_reply_are_heard_cut_or_never_heard_and_the_last_two_are_told_apart() -> None:
    whole = Laid(LONG[:1], 2_000)
    fifth = whole.made.words[4]
    cut = replace(whole, heard_ms=(fifth.start_ms + fifth.end_ms) // 2)
    written = cut.made.text.split()
    honest = course(record_of([cut], length_ms=8_000))
    found = fates(honest)
    assert found[WordFate.HEARD] == " ".join(written[:4])
    assert found[WordFate.CUT] == written[4]
    assert found[WordFate.UNHEARD] == " ".join(written[5:])
    assert honest.spoken[0].was_cut

    naive = fates(course(record_of([replace(cut, transcript=cut.made.text)], length_ms=8_000)))
    assert naive[WordFate.BELIEVED] == found[WordFate.UNHEARD]
    forgetful = fates(course(record_of([replace(cut, transcript=written[0])], length_ms=8_000)))
    assert forgetful[WordFate.MISSED] == " ".join(written[1:4])


def test_a_word_stands_where_it_was_heard_or_would_have_been() -> None:
    cut = Laid(LONG[:1], 2_000, heard_ms=1_500)
    for word, made in zip(course(record_of([cut], length_ms=8_000)).spoken[0].words, cut.made.words, strict=True):
        assert abs(word.start_ms - made.start_ms - 2_000) <= 10
    dry = Laid(LONG[:1], 2_000, breaks=[(700, 900)])
    late = course(record_of([dry], length_ms=9_000)).spoken[0].words[-1]
    assert abs(late.start_ms - dry.made.words[-1].start_ms - 2_900) <= 10


def test_the_callers_words_that_the_server_did_not_understand_are_told_apart() -> None:
    record = record_of([], [said("go-on", 1_000)], length_ms=4_000)
    words = SPEECH["go-on"].text.split()
    assert {word.fate for word in course(record).said[0].words} == {WordFate.HEARD}
    (understood,) = record.history
    deaf = course(replace(record, history=(replace(understood, text=" ".join(words[1:])),)))
    assert [word.fate for word in deaf.said[0].words] == [WordFate.MISSED, *[WordFate.HEARD] * (len(words) - 1)]


def test_a_line_that_the_end_of_the_call_breaks_off_has_the_words_that_he_came_to() -> None:
    line = said("go-on", 1_000)
    second = SPEECH["go-on"].words[1]
    record = record_of([], [line], length_ms=4_000)
    broken = replace(record, caller_lines=(replace(line, ended_ms=1_000 + second.end_ms - 10),))
    first_two = course(broken).said[0].words
    assert [word.text for word in first_two] == [word.text for word in SPEECH["go-on"].words[:2]]
    assert first_two[-1].end_ms == 1_000 + second.end_ms - 10


def test_two_lines_that_begin_together_keep_their_own_words() -> None:
    both = course(record_of([], [said("go-on", 1_000), said("thank-you", 1_000)], length_ms=5_000))
    assert [each.text for each in both.said] == [SPEECH["go-on"].text, SPEECH["thank-you"].text]


FACT = {"kind": "refund", "subject": "order:4417", "brand": "Visa", "last4": "4242"}


def fact(at_ms: int, milestone: str, version: int, *, is_settled: bool = False) -> list[Any]:
    content = {"op_id": "op", "version": version, "facts": {**FACT, "milestone": milestone}, "sentence": milestone}
    return [at_ms, "on", "FactChanged", {**content, "is_settled": is_settled, "is_ours": True}]


def told(at_ms: int, version: int, state: str) -> list[Any]:
    return [at_ms, "do", "RecordTold", {"op_id": "op", "milestone": "confirmed", "version": version, "state": state}]


OURS = trace(
    [0, "trace", {"version": 1}],
    [900, "on", "SpeechStarted", {}],
    [1_800, "on", "SpeechStopped", {}],
    [2_000, "on", "ToolCalled", {"tool_call_id": "c", "name": "pay", "arguments": '{"card":"4111 1111 1111 1111"}'}],
    [2_100, "do", "PostToolOutput", {"tool_call_id": "c", "output": "under way"}],
    fact(2_100, "running", 1),
    fact(3_000, "confirmed", 2, is_settled=True),
    told(3_100, 2, "asked"),
    [3_500, "do", "ClearPlayout", {"generation": 1}],
    told(4_500, 2, "heard"),
    [5_000, "on", "SpeechStarted", {}],
)


def test_our_trace_tells_turns_tools_and_what_the_record_held_and_owed() -> None:
    got = course(replace(record_of([], length_ms=6_000), trace=OURS))
    assert got.turns == (Span(900, 1_800), Span(5_000, 6_000))
    (use,) = got.tools
    assert (use.name, use.called_ms, use.answered_ms, use.output) == ("pay", 2_000, 2_100, "under way")
    assert use.arguments == '{"card":"**** **** **** 1111"}'
    (lane,) = got.record
    assert lane.name == "refund order:4417"
    assert [(step.at_ms, step.state) for step in lane.steps] == [
        (2_100, "running Visa 4242"),
        (3_000, "confirmed Visa 4242"),
    ]
    assert lane.tellings == (Step(3_100, "asked", "confirmed"), Step(4_500, "heard", "confirmed"))
    assert lane.owed == (Span(3_000, 4_500),)
    assert [note.state for note in got.notes] == ["session ready", "cleared", "ended by the caller"]


def test_an_outcome_that_is_never_heard_is_owed_to_the_end() -> None:
    untold = b"".join(row for row in OURS.splitlines(keepends=True) if b'"heard"' not in row)
    assert course(replace(record_of([], length_ms=6_000), trace=untold)).record[0].owed == (Span(3_000, 6_000),)


def test_a_baselines_trace_tells_its_tools_by_their_order_in_history() -> None:
    rows = trace(
        [500, "got", "input_audio_buffer.speech_started"],
        [2_000, "got", "response.function_call_arguments.done"],
        [2_500, "sent", "conversation.item.create"],
        [3_000, "got", "response.function_call_arguments.done"],
        [3_500, "sent", "conversation.item.create"],
    )
    first, second = ToolCallId("a"), ToolCallId("b")
    history = (
        ToolRequested(ItemId("1"), first, "pay", {"order": "4417"}),
        SystemNote(ItemId("2"), "it is done"),
        ToolRequested(ItemId("3"), second, "pay", {"order": "5120"}),
        ToolAnswered(ItemId("4"), first, "done"),
    )
    got = course(replace(record_of([], length_ms=6_000), trace=rows, history=history))
    assert [(use.called_ms, use.output, use.answered_ms) for use in got.tools] == [
        (2_000, "done", 3_500),
        (3_000, "", None),
    ]
    assert got.turns == (Span(500, 6_000),)
    assert got.record == ()


def test_words_that_may_not_be_kept_are_told_by_their_length() -> None:
    rows = trace(
        [2_000, "on", "ToolCalled", {"tool_call_id": "c", "name": "pay", "arguments": {"characters": 12}}],
        [2_100, "on", "FactChanged", {"op_id": "op", "version": 1, "facts": {"characters": 90}, "sentence": None}],
    )
    got = course(replace(record_of([], length_ms=6_000), trace=rows))
    assert got.tools[0].arguments == "(12 characters, withheld)"
    assert got.record == ()


def test_what_settles_soon_after_the_call_is_on_its_clock_and_what_settles_late_is_not() -> None:
    def settled(at_ms: int) -> Course:
        made = Effect("e", "refund", "order:4417", "full", 3200, "USD", "card:4242", "pending", -20)
        return course(
            replace(record_of([], length_ms=6_000), book=(made, replace(made, status="succeeded", at_ms=at_ms)))
        )

    assert (settled(5_000).length_ms, settled(8_000).length_ms, settled(900_000).length_ms) == (6_000, 8_500, 16_000)
    (lane,) = settled(8_000).book
    assert [(step.at_ms, step.state) for step in lane.steps] == [(0, "pending"), (8_000, "succeeded")]


def test_words_that_the_end_of_the_call_cut_off_stand_behind_it() -> None:
    got = course(record_of([Laid(LONG[:1], 3_000, heard_ms=1_000)], length_ms=4_000))
    assert got.sound_ms == 4_000
    assert got.length_ms == got.spoken[0].words[-1].end_ms > 4_500


def test_what_never_reached_the_model_at_pickup_is_told_with_its_instants() -> None:
    record = record_of([], [said("go-on", 0)], length_ms=4_000)
    assert course(record).lost == ()
    late = replace(record, session_ready_ms=600, first_audio=read_by_server(record.recording.caller[600 * 8 :]))
    (span,) = course(late).lost
    assert (span.start_ms, span.end_ms) == (0, 600)


def test_cuts_and_what_the_server_said_of_them_are_noted() -> None:
    record = record_of([Laid(LONG[:1], 500, heard_ms=900, truncated_ms=880)], length_ms=4_000)
    refused = Truncation(record.spoken[0].item_id, 990, 1_600, is_refused=True)
    got = course(replace(record, truncations=(*record.truncations, refused)))
    assert [note.told for note in got.notes if note.state.startswith("truncated")] == [
        "truncated at 880 ms. the server's history is cut there",
        "truncated at 990 ms. refused by the server",
    ]


def test_a_card_number_that_is_spoken_is_masked_and_silent() -> None:
    line = SPEECH["go-on"]
    step_ms = line.ms // 20
    words = tuple(Word(text, n * step_ms, (n + 1) * step_ms) for n, text in enumerate(["it's", *CARD.split(), "yes"]))
    dictated = Recording("card", line.voice, "caller", f"it's {CARD} yes", line.pcm, words)
    speech = {**SPEECH, "card": dictated}
    record = record_of([], [said("go-on", 1_000)], length_ms=4_000)
    spoken = replace(record, caller_lines=(replace(record.caller_lines[0], line_id="card"),))
    got = course(spoken, speech)
    assert got.said[0].text == " ".join(["it's", *["*"] * 16, "yes"])
    assert {speaker for speaker, _ in got.hushed} == {Speaker.CALLER}
    sides = hushed(spoken.recording, got.hushed)
    number = slice((1_000 + step_ms) * 8, (1_000 + 17 * step_ms) * 8)
    assert np.abs(spoken.recording.caller[number]).max() > 1_000
    assert not sides.said[number].any()
    assert not sides.sent[number].any()
    assert sides.said[: number.start].any()

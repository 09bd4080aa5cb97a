"""The trace holds everything that happened, in order and with its time, and not one sample."""

from __future__ import annotations

import json
import logging
import re
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
from tests.runtime.calls import (
    ANYTHING,
    BARGE_IN,
    OPENING,
    Taken,
    calls,
    ended,
    error,
    reply,
    retrieved,
    speech_stopped,
    take,
)

from callwright.core.commands import Command
from callwright.core.events import Event, SpeechStarted
from callwright.core.plan import Can, Keep
from callwright.core.ports import PlayedReports
from callwright.core.toolcalls import AfterOutput
from callwright.ids import ItemId
from callwright.runtime.head import read_plan
from callwright.runtime.trace import TRACE_VERSION, Trace
from callwright.testing.scripted import after


def a_call() -> Taken:
    return take(
        *BARGE_IN,
        retrieved("From-", audio=bytes(100_000)),
        ended("r1", "cancelled"),
        speech_stopped(),
        *reply("Yes.", item_id="b", response_id="r2"),
        calls("look", response_id="r2"),
        after(100),
        ignoring=ANYTHING,
    )


def test_the_first_row_names_the_version_and_the_call() -> None:
    at_ms, kind, head = a_call().rows[0]
    assert (at_ms, kind) == (0, "trace")
    assert {**head, "plan": None} == {"version": TRACE_VERSION, "agent": "desk", "model": "polyai", "plan": None}


def test_the_first_row_holds_all_that_was_fixed_before_the_call() -> None:
    plan = read_plan(a_call().rows[0][2]["plan"])
    assert plan.tools["wait"] is AfterOutput.SILENCE
    assert plan.tools["end_call"] is AfterOutput.HANG_UP
    assert (plan.reports, plan.output_rate_hz, plan.latency_ms) == (PlayedReports.MARKS, 24_000, 0)
    assert plan.can == Can.TRUNCATE | Can.RETRIEVE | Can.CANCEL | Can.MERGE
    assert (plan.keep, plan.actions, plan.locale) == (Keep.EVERYTHING, frozenset(), "en")


def test_every_row_is_an_event_a_command_or_audio_and_they_are_in_order() -> None:
    first, *rows = a_call().rows
    assert first[1] == "trace"
    assert all(before[0] <= later[0] for before, later in pairwise(rows))
    names = {
        "on": [kind.__name__ for kind in get_args(Event)],
        "do": [kind.__name__ for kind in get_args(Command)],
        "note": ["NoteAnomaly"],
    }
    assert all(kind == "audio" or what in names[kind] for _, kind, what, *_ in rows)
    assert {"on", "do", "audio"} == {row[1] for row in rows}


def test_there_is_one_audio_row_a_second_with_what_was_sent_and_is_held() -> None:
    told = [row for row in a_call().rows if row[1] == "audio"]
    assert told == [[1_000 * n, "audio", {"sent_ms": 1_000 * n, "held_ms": 0}] for n in (1, 2, 3, 4)]


def test_no_row_holds_a_sample() -> None:
    """Neither side's audio, nor that of a retrieved item: the trace tells lengths."""
    trace = a_call().result.trace
    assert not re.search(rb"[A-Za-z0-9+/]{80}", trace)
    assert len(trace) < 10_000
    assert b'"samples":48000' in trace


def test_rows_are_kept_as_they_come_and_saved_as_they_are(tmp_path: Path) -> None:
    trace = Trace({"agent": "desk"})
    trace.happened(20, SpeechStarted(ItemId("u1"), 7))
    trace.audio(1_000, sent_ms=980, held_ms=20)
    trace.note(1_001, "got", "response.done")
    path = tmp_path / "trace.jsonl"
    trace.save(path)
    assert path.read_bytes() == trace.lines()
    assert [json.loads(row) for row in trace.lines().splitlines()[1:]] == [
        [20, "on", "SpeechStarted", {"item_id": "u1", "audio_start_ms": 7}],
        [1_000, "audio", {"sent_ms": 980, "held_ms": 20}],
        [1_001, "got", "response.done"],
    ]


def test_a_long_trace_is_whole_and_takes_little_memory() -> None:
    """Old rows are kept compressed: an hour of talk is half a megabyte."""
    trace, rows = Trace({"agent": "desk"}), 20_000
    for n in range(rows):
        trace.happened(200 * n, SpeechStarted(ItemId(f"item_{n // 50:016x}"), 200 * n))
    lines = trace.lines().splitlines()
    assert [json.loads(row)[0] for row in lines[1:]] == [200 * n for n in range(rows)]
    assert sum(map(len, trace._blocks)) + len(trace._buffer) < len(trace.lines()) / 8


def test_c143_no_card_number_is_kept_of_a_call_in_figures_or_in_words_over_two_turns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    figures = "4111 1111 1111 1111"
    spoken = "four one one one one one one one", "one one one one one one one one"
    taken = take(
        *OPENING,
        *reply(f"Is it {spoken[0]}", item_id="a"),
        *reply(f"{spoken[1]}?", item_id="b", response_id="r2"),
        calls("look", response_id="r2", arguments=json.dumps({"order": figures})),
        error(code=f"card {figures}"),
        after(100),
        ignoring=ANYTHING,
    )
    kept = f"{taken.result.trace.decode()} {taken.result.turns} {taken.result.anomalies} {caplog.text}"
    assert figures not in kept
    assert "**** **** **** 1111" in taken.result.trace.decode()
    assert all(spoken[1] not in turn.heard + turn.written for turn in taken.result.turns)
    assert not (set(spoken) <= set(re.findall(r"(?:\b(?:four|one)\b ?){8}", taken.result.trace.decode())))

"""An outside judge finds in an export what was measured in the call."""

from __future__ import annotations

import io
import json
import wave
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.measure.records import HZ, LONG, SPEECH, Laid, record_of, said

from callwright.measure.export import export_call
from callwright.measure.figures import figures_of
from callwright.measure.hearing import HeardCall, hear_call


@cache
def call() -> HeardCall:
    """The caller asks, the agent answers, he talks over it, and it stops 300 ms later and goes on."""
    replies = [Laid(LONG[:2], 4_500, heard_ms=2_300, truncated_ms=2_300), Laid(LONG[2:3], 9_500)]
    lines = [said("ask-parking", 1_000), said("go-on", 6_500, over=300)]
    record = record_of(replies, lines, length_ms=18_000)
    noise = np.random.default_rng(1).integers(-90, 90, 18_000 * 8).astype(np.int16)
    return hear_call(
        replace(record, recording=replace(record.recording, microphone=record.recording.caller + noise)), SPEECH
    )


@cache
def files() -> dict[str, bytes]:
    return export_call(call(), "callwright call by-hand --seed 7")


def sound(name: str) -> np.ndarray:
    """Samples of a file, one column for each channel."""
    with wave.open(io.BytesIO(files()[name])) as file:
        assert file.getframerate() == HZ
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, file.getnchannels())


def events() -> list[dict[str, Any]]:
    return [json.loads(line) for line in files()["events.jsonl"].splitlines()]


def segments(samples: np.ndarray, gap_s: float) -> list[tuple[float, float]]:
    """Speech in a channel, in seconds, with pauses up to ``gap_s`` closed: what a judge's own detector does."""
    loud = np.abs(samples.astype(int)) >= 300
    found: list[tuple[float, float]] = []
    for at in np.flatnonzero(loud) / HZ:
        if found and at - found[-1][1] <= gap_s:
            found[-1] = found[-1][0], at
        else:
            found.append((at, at))
    return found


def test_a_judge_who_has_the_sound_alone_measures_the_same_stop_and_the_same_answer() -> None:
    """Overlaps and gaps of `input.wav` and `output.wav`, as Full-Duplex-Bench takes them."""
    user, model = segments(sound("input.wav")[:, 0], 0.6), segments(sound("output.wav")[:, 0], 0.5)
    overlaps = [min(u[1], m[1]) - max(u[0], m[0]) for u in user for m in model if min(u[1], m[1]) > max(u[0], m[0])]
    measured = figures_of(call()).values
    assert overlaps == [pytest.approx(latency / 1000, abs=0.05) for latency in measured["yield_latency_ms"]]
    gaps = [min(m[0] for m in model if m[0] > u[1]) - u[1] for u in user]
    assert gaps == [pytest.approx(latency / 1000, abs=0.05) for latency in measured["response_latency_ms"]]


def test_the_caller_stands_left_as_he_was_sent_and_the_clean_one_by_himself() -> None:
    stereo, record = sound("stereo.wav"), call().record.recording
    assert (stereo[:, 0] == record.sent).all()
    assert (stereo[:, 1] == record.agent).all()
    assert (sound("caller-clean.wav")[:, 0] == record.caller).all()
    assert (stereo[:, 0] != record.caller).any()


def test_the_transcripts_hold_the_words_that_were_audible_and_when() -> None:
    agent, caller = (json.loads(files()[name]) for name in ("output.json", "input.json"))
    assert caller["text"] == f"{SPEECH['ask-parking'].text} {SPEECH['go-on'].text}"
    heard = " ".join(reply.heard for reply in call().replies)
    assert [chunk["text"] for chunk in agent["chunks"]] == agent["text"].split()
    cut = [reply.under_cut for reply in call().replies if reply.under_cut]
    assert sorted(agent["text"].split()) == sorted([*heard.split(), *cut])
    model = segments(sound("output.wav")[:, 0], 0.5)
    assert agent["chunks"][0]["timestamp"][0] == pytest.approx(model[0][0], abs=0.1)
    assert agent["chunks"][-1]["timestamp"][1] == pytest.approx(model[-1][1], abs=0.3)


def test_an_interruption_stands_with_what_was_said_before_it() -> None:
    (only,) = json.loads(files()["interrupt.json"])
    assert (only["context"], only["interrupt"]) == (SPEECH["ask-parking"].text, SPEECH["go-on"].text)
    assert only["timestamp"][0] == pytest.approx(6.5, abs=0.1)
    quiet = hear_call(record_of([], [said("go-on", 1_000)], length_ms=4_000), SPEECH)
    assert json.loads(export_call(quiet, "")["interrupt.json"]) == []


def test_events_come_by_time_and_speech_ends_with_the_words_that_were_heard() -> None:
    found = events()
    assert [event["t_ms"] for event in found] == sorted(event["t_ms"] for event in found)
    ends = [event for event in found if event["event"] == "speech_end" and event["speaker"] == "agent"]
    assert [event["cut"] for event in ends] == [True, False]
    first = call().replies[0]
    assert ends[0]["text"].startswith(first.heard)
    assert ends[0]["t_ms"] == first.played.last_audible_ms
    (start,) = [event for event in found if event["event"] == "speech_start" and event["text"] == first.written]
    assert start["t_ms"] == first.played.first_audible_ms
    assert {"t_ms": 18_000, "event": "note", "what": "ended by the caller", "detail": "hung up"} in found


def test_a_reply_that_was_never_heard_is_no_speech() -> None:
    silent = hear_call(record_of([Laid(LONG[:1], 2_000, heard_ms=0)], length_ms=4_000), SPEECH)
    kinds = [json.loads(line)["event"] for line in export_call(silent, "")["events.jsonl"].splitlines()]
    assert "unheard" in kinds
    assert "speech_start" not in kinds


def test_the_readme_names_every_file_and_how_to_play_the_call_again() -> None:
    readme = files()["README"].decode()
    assert [name for name in files() if name not in ("README",) and f"\n{name} " not in readme] == []
    assert "play it again: callwright call by-hand --seed 7\n" in readme

"""A call for an outside judge: its sound side by side, its words, and its events, all on one clock.

The names and forms of the files are those of a sample of Full-Duplex-Bench (arXiv 2503.04721 and 2507.23159), beside
two recordings and a list of events that any judge can read. No card number is in them: it is masked in the words, and
silent in the sound.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from callwright.audio.wav import wav_file
from callwright.measure.course import course_of
from callwright.measure.sides import hushed

if TYPE_CHECKING:
    from callwright.ids import Ms
    from callwright.measure.course import Course, Lane, Utterance
    from callwright.measure.hearing import HeardCall

README = """One call, for whoever wants to judge it. All times are on one clock, which starts with the recordings.

stereo.wav        the caller left, as he was sent to the agent; the agent right, as it reached his ear
input.wav         the left side alone
output.wav        the right side alone
caller-clean.wav  what the caller said, without his room and without the agent's echo
input.json        the caller's words, {"text", "chunks": [{"text", "timestamp": [start_s, end_s]}]}
output.json       the agent's words that were heard, in the same form
interrupt.json    where the caller interrupts, [{"context", "interrupt", "timestamp": [start_s, end_s]}]; [] if nowhere
events.jsonl      what happened, one object a line by time, each with "t_ms" and "event"

call: %s
play it again: %s
"""


def export_call(call: HeardCall, replay: str) -> dict[str, bytes]:
    """The files of one call by name. ``replay`` is the command that plays it again."""
    course = course_of(call)
    sides = hushed(call.record.recording, course.hushed)
    record = call.record
    title = f"scenario {record.scenario}, seed {record.seed}, client {record.client}, server {record.server}"
    return {
        "README": (README % (title, replay)).encode(),
        "stereo.wav": wav_file(sides.rate_hz, sides.sent, sides.heard),
        "input.wav": wav_file(sides.rate_hz, sides.sent),
        "output.wav": wav_file(sides.rate_hz, sides.heard),
        "caller-clean.wav": wav_file(sides.rate_hz, sides.said),
        "input.json": _json(_transcript(course.said)),
        "output.json": _json(_transcript(course.spoken)),
        "interrupt.json": _json(list(_interruptions(call, course))),
        "events.jsonl": b"".join(_line(event) for event in events(course)),
    }


def events(course: Course) -> list[dict[str, Any]]:
    """Everything that happened, by time: ``t_ms`` and ``event``, and what belongs to it."""
    return sorted(_events(course), key=lambda event: int(event["t_ms"]))


def _events(course: Course) -> Iterator[dict[str, Any]]:
    for utterance in course.utterances:
        if utterance.is_audible:
            yield from _speech(utterance)
        else:
            yield {"t_ms": utterance.start_ms, "event": "unheard", "speaker": "agent", "text": utterance.text}
    for span in course.lost:
        yield {"t_ms": span.start_ms, "event": "lost", "until_ms": span.end_ms}
    for turn in course.turns:
        yield {"t_ms": turn.start_ms, "event": "turn_start"}
        yield {"t_ms": turn.end_ms, "event": "turn_end"}
    for number, use in enumerate(course.tools, 1):
        call = {"call": number, "tool": use.name}
        yield {"t_ms": use.called_ms, "event": "tool_call", **call, "arguments": use.arguments}
        if use.answered_ms is not None:
            yield {"t_ms": use.answered_ms, "event": "tool_output", **call, "output": use.output}
    yield from _lanes("record", course.record)
    yield from _lanes("effect", course.book)
    for note in course.notes:
        yield {"t_ms": note.at_ms, "event": "note", "what": note.state, "detail": note.detail}


def _speech(utterance: Utterance) -> Iterator[dict[str, Any]]:
    """Where it began, with all of its words, and where it ended, with those that were heard."""
    whose = {"speaker": str(utterance.speaker), "kind": utterance.kind}
    heard = " ".join(word.text for word in utterance.words if word.is_audible)
    yield {"t_ms": utterance.start_ms, "event": "speech_start", **whose, "text": utterance.text}
    yield {"t_ms": utterance.end_ms, "event": "speech_end", **whose, "text": heard, "cut": utterance.was_cut}


def _lanes(kind: str, lanes: Iterable[Lane]) -> Iterator[dict[str, Any]]:
    for lane in lanes:
        for step in lane.steps:
            yield {"t_ms": step.at_ms, "event": kind, "of": lane.name, "state": step.state}
        for told in lane.tellings:
            yield {"t_ms": told.at_ms, "event": "telling", "of": lane.name, "outcome": told.detail, "state": told.state}


def _transcript(utterances: Sequence[Utterance]) -> Mapping[str, object]:
    """The audible words with their times."""
    spoken = sorted(utterances, key=lambda each: each.start_ms)
    words = [word for each in spoken for word in each.words if word.is_audible]
    return {
        "text": " ".join(word.text for word in words),
        "chunks": [{"text": word.text, "timestamp": _seconds(word.start_ms, word.end_ms)} for word in words],
    }


def _interruptions(call: HeardCall, course: Course) -> Iterator[Mapping[str, object]]:
    """The lines that were spoken over the agent, each with what the caller had said before."""
    over = [turn for turn in call.turns if turn.line.is_interruption and turn.line.overlapped_ms]
    for turn in over:
        before = [each.text for each in course.said if each.end_ms <= turn.onset_ms]
        line = next(each for each in course.said if each.start_ms == turn.line.started_ms)
        yield {
            "context": before[-1] if before else "",
            "interrupt": line.text,
            "timestamp": _seconds(turn.onset_ms, turn.end_ms),
        }


def _seconds(start_ms: Ms, end_ms: Ms) -> list[float]:
    return [start_ms / 1000, end_ms / 1000]


def _json(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n"


def _line(event: Mapping[str, object]) -> bytes:
    return json.dumps(event, ensure_ascii=False).encode() + b"\n"

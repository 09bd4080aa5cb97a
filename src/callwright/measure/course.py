"""The course of a call: everything that happened in it, on its one clock, as it is shown and handed on.

```
said        what the caller said, and which of its words were understood
far         what the far end of a call did that the agent makes, and the keys that it heard
spoken      what the agent wrote: heard, cut in the word, or never heard
turns       when the server told that the caller speaks
tools       called ---- output
lanes       an operation in the client's record, or an effect in the provider's book, from state to state
notes       single instants: session ready, cleared, truncated, hung up
```

Words, instants and lengths come from the recording, the rest from the client's trace and the provider's book. No card
number is in it: it is masked wherever it stood, and ``hushed`` says where it was spoken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from callwright.claims.cards import without_cards, without_spoken_cards
from callwright.core.transcript import Speaker
from callwright.measure.hearing import Fate
from callwright.measure.pickup import ready_ms
from callwright.sim.models import SystemNote, ToolAnswered, ToolRequested
from callwright.sim.speech import normalise

if TYPE_CHECKING:
    from callwright.ids import Ms
    from callwright.measure.hearing import HeardCall, Reply
    from callwright.sim.record import CallRecord, FarBook

AFTER_MS: Ms = 10_000
"""So much of what comes after the call is on its clock."""

_MESSAGES: Mapping[str, str] = {
    "input_audio_buffer.speech_started": "SpeechStarted",
    "input_audio_buffer.speech_stopped": "SpeechStopped",
    "response.function_call_arguments.done": "ToolCalled",
    "conversation.item.create": "Posted",
}
"""The messages of a baseline's trace, which has the wire's names, by what our own trace calls them."""


class WordFate(StrEnum):
    """What became of a word."""

    HEARD = "heard"
    """The other side has it."""
    MISSED = "missed"
    """Heard by the caller, and not in the client's record; or said by him, and not understood."""
    CUT = "cut"
    """Under the cut: it began at the ear and did not end there."""
    DOUBTED = "doubted"
    """Near the end of a reply that was cut elsewhere: heard or not, nobody knows."""
    UNHEARD = "unheard"
    """Written, and never heard."""
    BELIEVED = "believed"
    """Never heard, and taken for heard by client or server."""


@dataclass(frozen=True, slots=True)
class TimedWord:
    """One word at the caller's end; of one that was never heard, when it would have been."""

    text: str
    start_ms: Ms
    end_ms: Ms
    fate: WordFate

    @property
    def is_audible(self) -> bool:
        """Whether anything of it sounded."""
        return self.fate not in (WordFate.UNHEARD, WordFate.BELIEVED)


@dataclass(frozen=True, slots=True)
class Utterance:
    """A line of the caller, or a reply of the agent."""

    speaker: Speaker
    start_ms: Ms
    """Of what sounded of it; where nothing did, when it left the server."""
    end_ms: Ms
    words: tuple[TimedWord, ...]
    was_cut: bool = False
    kind: str = "agent"
    """What it is to the call, as the recorded line says: ``caller``, ``agent``, ``murmur`` and so on."""

    @property
    def text(self) -> str:
        """All of its words."""
        return " ".join(word.text for word in self.words)

    @property
    def is_audible(self) -> bool:
        """Whether anything of it sounded."""
        return any(word.is_audible for word in self.words)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time; ``end_ms`` is the call's end where nothing ended it."""

    start_ms: Ms
    end_ms: Ms


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call, from the model's asking to the client's posting of an output."""

    name: str
    arguments: str
    """JSON."""
    called_ms: Ms
    output: str
    """Empty where none was posted."""
    answered_ms: Ms | None


@dataclass(frozen=True, slots=True)
class Step:
    """A state that something came to."""

    at_ms: Ms
    state: str
    detail: str = ""

    @property
    def told(self) -> str:
        """State and detail as one text."""
        return f"{self.state}. {self.detail}" if self.detail else self.state


@dataclass(frozen=True, slots=True)
class Lane:
    """An operation or an effect with its states, in order."""

    name: str
    steps: tuple[Step, ...]
    tellings: tuple[Step, ...] = ()
    """How far the telling of its outcome came."""
    owed: tuple[Span, ...] = ()
    """While its outcome was known and the caller had not heard it."""


@dataclass(frozen=True, slots=True)
class Course:
    """All of it."""

    sound_ms: Ms
    """Length of the recording."""
    length_ms: Ms
    """With what would have been said, and what settled, soon after the call."""
    said: tuple[Utterance, ...]
    spoken: tuple[Utterance, ...]
    lost: tuple[Span, ...]
    """When the caller sent what never reached the model, up to the session being ready."""
    turns: tuple[Span, ...]
    tools: tuple[ToolUse, ...]
    record: tuple[Lane, ...]
    """What the client's record holds, by operation."""
    book: tuple[Lane, ...]
    """What the provider's book holds, by effect."""
    notes: tuple[Step, ...]
    hushed: tuple[tuple[Speaker, Span], ...]
    """Where a number was spoken that must not be kept."""
    far: FarBook | None = None
    """What the far end did, and the keys that it heard, where the agent makes the call."""

    @property
    def utterances(self) -> tuple[Utterance, ...]:
        """Both sides', by time."""
        return tuple(sorted((*self.said, *self.spoken), key=lambda each: (each.start_ms, each.end_ms)))


def course_of(call: HeardCall) -> Course:
    """What happened in a call."""
    record = call.record
    rows = list(_rows(record.trace))
    sound_ms = len(record.recording.agent) * 1000 // record.recording.rate_hz
    said, spoken = list(_said(call)), [_spoken(reply) for reply in call.replies]
    later_ms = [effect.at_ms + 500 for effect in record.book]
    later_ms += [word.end_ms for reply in spoken for word in reply.words]
    lost = call.arrival.lost_until(ready_ms(record)) if call.arrival.is_known else ()
    masked, hushed = _masked([*said, *spoken])
    return Course(
        sound_ms=sound_ms,
        length_ms=max(sound_ms, min(max(later_ms, default=0), sound_ms + AFTER_MS)),
        said=tuple(masked[: len(said)]),
        spoken=tuple(masked[len(said) :]),
        lost=tuple(Span(*span) for span in lost),
        turns=tuple(_turns(rows, sound_ms)),
        tools=tuple(_tools(rows, record)),
        record=tuple(_operations(rows, sound_ms)),
        book=tuple(_effects(record)),
        notes=tuple(sorted(_notes(rows, call), key=lambda note: note.at_ms)),
        hushed=tuple(hushed),
        far=record.far,
    )


# --- words


def _said(call: HeardCall) -> Iterator[Utterance]:
    """The caller's lines as far as he came, with the words of them that the server understood."""
    lines = sorted(call.record.caller_lines, key=lambda line: line.started_ms)
    spoken = [
        [word for word in call.speech[line.line_id].words if line.started_ms + word.start_ms < line.ended_ms]
        for line in lines
    ]
    said = [normalise(word.text) for words in spoken for word in words]
    understood = [normalise(word) for text in call.understood for word in text.split()]
    known = [False] * len(said)
    for block in SequenceMatcher(None, said, understood, autojunk=False).get_matching_blocks():
        known[block.a : block.a + block.size] = [True] * block.size
    fates = iter(WordFate.HEARD if is_known else WordFate.MISSED for is_known in known)
    for line, words in zip(lines, spoken, strict=True):
        timed = [
            TimedWord(
                word.text,
                line.started_ms + word.start_ms,
                min(line.started_ms + word.end_ms, line.ended_ms),
                next(fates),
            )
            for word in words
        ]
        kind = call.speech[line.line_id].kind
        yield Utterance(Speaker.CALLER, line.started_ms, line.ended_ms, tuple(timed), kind=kind)


def _spoken(reply: Reply) -> Utterance:
    """A reply with all its words: those that were heard when they were, the others when they would have been."""
    played = reply.played
    first_ms = round(played.ended_ms - played.ms) if played.stretches else reply.item.started_ms
    in_record, in_history = (reply.follow(text).matched for text in (reply.in_transcript, reply.in_history))
    is_told = reply.in_transcript is not None
    words = []
    for number, (word, fate) in enumerate(zip(reply.item.words, reply.fates, strict=True)):
        start_ms, end_ms = (
            played.instant_ms(at) if at < played.ms else first_ms + at for at in (word.start_ms, word.end_ms)
        )
        if fate is Fate.UNDER_CUT:
            became = WordFate.CUT if reply.item.sound is None else WordFate.DOUBTED
            end_ms = round(played.ended_ms)
        elif fate is Fate.WHOLE:
            became = WordFate.HEARD if number < in_record or not is_told else WordFate.MISSED
        else:
            became = WordFate.BELIEVED if number < max(in_record, in_history) else WordFate.UNHEARD
        words.append(TimedWord(word.text, start_ms, max(start_ms, end_ms), became))
    sounded = played.first_audible_ms, played.last_audible_ms
    start_ms, end_ms = (reply.item.started_ms if at is None else at for at in sounded)
    return Utterance(Speaker.AGENT, start_ms, end_ms, tuple(words), reply.was_cut)


def _masked(utterances: Sequence[Utterance]) -> tuple[list[Utterance], list[tuple[Speaker, Span]]]:
    """Utterances without card numbers, which may go on from one to the next, and where the audible ones sounded."""
    order = sorted(range(len(utterances)), key=lambda number: utterances[number].start_ms)
    texts = dict(zip(order, without_spoken_cards([utterances[number].text for number in order]), strict=True))
    hushed = []
    found = []
    for number, each in enumerate(utterances):
        words = []
        for word, text in zip(each.words, texts[number].split(), strict=True):
            words.append(replace(word, text=text))
            if text != word.text and word.is_audible:
                hushed.append((each.speaker, Span(word.start_ms, word.end_ms)))
        found.append(replace(each, words=tuple(words)))
    return found, hushed


# --- the trace


@dataclass(frozen=True, slots=True)
class _Row:
    at_ms: Ms
    kind: str
    content: Mapping[str, Any]


def _rows(trace: bytes) -> Iterator[_Row]:
    """Events and commands of our own trace, and the messages of a baseline's by the same names."""
    for line in trace.splitlines():
        match json.loads(line):
            case [int(at_ms), "on" | "do" | "note", str(kind), dict(content)]:
                yield _Row(at_ms, kind, content)
            case [int(at_ms), "got" | "sent", str(message)] if message in _MESSAGES:
                yield _Row(at_ms, _MESSAGES[message], {})


def _turns(rows: Sequence[_Row], end_ms: Ms) -> Iterator[Span]:
    """From the server telling that the caller speaks to its telling that he has stopped."""
    began_ms: Ms | None = None
    for row in rows:
        if row.kind == "SpeechStarted" and began_ms is None:
            began_ms = row.at_ms
        elif row.kind == "SpeechStopped" and began_ms is not None:
            yield Span(began_ms, row.at_ms)
            began_ms = None
    if began_ms is not None:
        yield Span(began_ms, end_ms)


def _tools(rows: Sequence[_Row], record: CallRecord) -> Iterator[ToolUse]:
    """The tool calls, with their times. A baseline's are told apart by their order in the server's history."""
    called = [row for row in rows if row.kind == "ToolCalled"]
    if all(row.content for row in called):
        answers = {row.content["tool_call_id"]: row for row in rows if row.kind == "PostToolOutput"}
        for row in called:
            answer = answers.get(row.content["tool_call_id"])
            output = _text(answer.content["output"]) if answer else ""
            yield ToolUse(
                row.content["name"],
                _text(row.content["arguments"]),
                row.at_ms,
                output,
                answer.at_ms if answer else None,
            )
        return
    asked = [item for item in record.history if isinstance(item, ToolRequested)]
    posted = [item for item in record.history if isinstance(item, (ToolAnswered, SystemNote))]
    posts = zip([row.at_ms for row in rows if row.kind == "Posted"], posted, strict=False)
    outputs = {item.tool_call_id: (at_ms, item.output) for at_ms, item in posts if isinstance(item, ToolAnswered)}
    for row, request in zip(called, asked, strict=False):
        answered_ms, output = outputs.get(request.tool_call_id, (None, ""))
        arguments = json.dumps(dict(request.arguments), ensure_ascii=False)
        yield ToolUse(request.name, _text(arguments), row.at_ms, _text(output), answered_ms)


def _operations(rows: Sequence[_Row], end_ms: Ms) -> Iterator[Lane]:
    """What our record told the call of each operation, and how far telling it came."""
    changes: dict[str, list[_Row]] = {}
    for row in rows:
        if row.kind == "FactChanged" and "milestone" in row.content["facts"]:
            changes.setdefault(row.content["op_id"], []).append(row)
    for op_id, facts in changes.items():
        tellings = [row for row in rows if row.kind == "RecordTold" and row.content["op_id"] == op_id]
        heard = [row for row in tellings if row.content["state"] == "heard"]
        name = facts[-1].content["facts"]
        yield Lane(
            f"{name['kind']} {name['subject']}",
            tuple(Step(row.at_ms, _milestone(row), _text(row.content["sentence"])) for row in facts),
            tuple(Step(row.at_ms, row.content["state"], row.content["milestone"]) for row in tellings),
            tuple(_owed(facts, heard, end_ms)),
        )


def _milestone(row: _Row) -> str:
    """How far it is, and with which card."""
    facts = row.content["facts"]
    return " ".join(filter(None, [facts["milestone"], facts.get("brand"), facts.get("last4")]))


def _owed(facts: Sequence[_Row], heard: Sequence[_Row], end_ms: Ms) -> Iterator[Span]:
    """From each outcome to the caller's having heard it, or the next change of it, or the end."""
    for row, following in zip_longest(facts, facts[1:]):
        if row.content["is_settled"] and row.content["is_ours"]:
            until = [told.at_ms for told in heard if told.content["version"] >= row.content["version"]]
            until += [following.at_ms] if following else []
            yield Span(row.at_ms, min(until, default=end_ms))


def _effects(record: CallRecord) -> Iterator[Lane]:
    """What the provider's book held of each effect, and when."""
    steps: dict[str, list[Step]] = {}
    names: dict[str, str] = {}
    for effect in record.book:
        names[effect.effect_id] = _text(effect.text)
        steps.setdefault(effect.effect_id, []).append(Step(max(effect.at_ms, 0), effect.status))
    for effect_id, name in names.items():
        yield Lane(name, tuple(steps[effect_id]))


def _notes(rows: Sequence[_Row], call: HeardCall) -> Iterator[Step]:
    """Single instants, not in order."""
    record = call.record
    if record.session_ready_ms is not None:
        yield Step(record.session_ready_ms, "session ready", f"{record.held_sent_ms} ms were held, and sent")
    yield from (Step(row.at_ms, "cleared", "what was not played yet is dropped") for row in rows if row.kind == _CLEAR)
    for cut in record.truncations:
        became = "refused by the server" if cut.is_refused else "the server's history is cut there"
        yield Step(cut.at_ms, f"truncated at {cut.audio_end_ms} ms", became)
    for confirmed in record.confirmations:
        yield Step(confirmed.at_ms, "interruption", f"the server tells that he speaks, since {confirmed.onset_ms} ms")
    for row in rows:
        if row.kind == "NoteAnomaly":
            yield Step(row.at_ms, "noted", _text(row.content["what"]))
        elif row.kind in _ASKED:
            yield Step(row.at_ms, _ASKED[row.kind])
    yield Step(record.ended_ms, f"ended by the {record.ended_by}", _text(record.ended_because))


_CLEAR = "ClearPlayout"
_ASKED: Mapping[str, str] = {"RequestReply": "reply asked for", "Authorize": "yes taken", "Withdraw": "no taken"}


def _text(value: object) -> str:
    """A text as it may be shown; what is withheld is told by its length."""
    if isinstance(value, str):
        return without_cards(value)
    return f"({value['characters']} characters, withheld)" if isinstance(value, dict) else ""

"""The figures of one call, by name. `METRICS` is the list of all there are, with their definitions.

Everything is measured from the recording, on the call's one clock; what the client and the server believe is compared
with that. A figure that a call cannot have (no interruption, no yield) is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callwright.measure import goodbye
from callwright.measure.effects import EFFECT_METRICS, live_effects
from callwright.measure.hearing import DELIVERED, Fate, hear_call
from callwright.measure.hold import HOLD_METRICS
from callwright.measure.metric import Aim, Elsewhere, Lack, Metric, share
from callwright.measure.pickup import ready_ms
from callwright.measure.texts import OPENING_WORDS, longest_run, opening, without_lead_in, words_of
from callwright.measure.turns import TURN_METRICS
from callwright.measure.understood import UNDERSTOOD_METRICS
from callwright.measure.untold import unseen, untold
from callwright.measure.void import script_fault, void_reason
from callwright.sim.models import CallerSaid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callwright.ids import ItemId, Ms
    from callwright.measure.hearing import HeardCall, Reply
    from callwright.measure.metric import Values
    from callwright.sim.record import CallRecord
    from callwright.sim.speech import Recording

RESTATED_WORDS = 3
"""A run of fewer words that occurs twice is no repetition."""


@dataclass(frozen=True, slots=True)
class HeardReply:
    """One reply side by side: written, heard, and what server and client believe was heard."""

    item_id: ItemId
    written: str
    heard: str
    """The words that reached the ear whole."""
    in_history: str
    """What the server's history holds; empty if it is gone."""
    in_transcript: str | None
    """What the client's record holds as heard; None where it does not tell."""
    started_ms: Ms | None
    """Instant of its first audible sample at the ear; None if nothing was audible."""
    ended_ms: Ms | None
    was_cut: bool
    partial: str | None
    """The word under the cut."""
    in_doubt: str = ""
    """The words behind ``heard`` of which nobody knows whether they were heard, in one that was cut elsewhere."""


@dataclass(frozen=True, slots=True)
class HeardFarewell:
    """A farewell at the caller's ear, from its first to its last audible sample."""

    item_id: ItemId
    started_ms: Ms | None
    """Instant at which it began; None if nothing was audible."""
    whole_ms: Ms
    """Its length as it was made."""
    heard_ms: Ms
    """How much of that came before the line ended."""

    @property
    def is_whole(self) -> bool:
        """Whether all of it was heard."""
        return self.heard_ms == self.whole_ms


@dataclass(frozen=True, slots=True)
class CallFigures:
    """What was measured of one call."""

    values: Mapping[str, tuple[float, ...]]
    """By the names of `METRICS`; a figure that the call cannot have is not there."""
    void: str | None
    """Why the call did not try what it was meant to; None if it did."""
    replies: tuple[HeardReply, ...]
    lines_heard: tuple[str, ...]
    """Ids of the recorded agent lines of which every word was heard whole, in one reply or in several."""
    lines_touched: tuple[str, ...]
    """Ids of those of which anything arrived, if only a part of a word."""
    ended_by: str
    """Who ended the call: ``agent``, ``caller``, ``model`` or ``fault``."""
    lost: tuple[tuple[Ms, Ms], ...] = ()
    """When the caller sent what never reached the model, up to the session being ready."""
    farewells: tuple[HeardFarewell, ...] = ()
    effects: tuple[str, ...] = ()
    """What the provider's book holds in the end, each as a scenario writes it."""
    violations: tuple[str, ...] = ()
    """Where the client's record and the provider's book do not agree, or a card number was kept."""
    shown: tuple[str, ...] = ()
    """The behaviors of the model that showed."""
    unjudged: Mapping[str, str] = field(default_factory=dict)
    """What cannot be judged because server or client is not ours, and why: figures, ``heard``, ``not_heard``."""
    unscored: Mapping[str, str] = field(default_factory=dict)
    """What was not done where it is seen, so that it counts as neither done nor left undone, and why."""
    is_elsewhere: bool = False
    """Whether the server was not ours."""

    @property
    def estimated(self) -> tuple[str, ...]:
        """The figures that rest on where words are supposed to lie."""
        if not self.is_elsewhere:
            return ()
        return tuple(
            name for name in self.values if METRICS[name].elsewhere in (Elsewhere.ESTIMATED, Elsewhere.DOUBTED)
        )


def measure_call(record: CallRecord, speech: Mapping[str, Recording]) -> CallFigures:
    """All figures of a finished call. ``speech`` has the recorded lines that were played in it."""
    return figures_of(hear_call(record, speech))


def figures_of(call: HeardCall) -> CallFigures:
    """All figures of a call that was found in its recording."""
    record = call.record
    unjudged = {**dict(_unjudged(call)), **untold(record)}
    unscored = unseen(record)
    left_out = (*unjudged, *unscored)
    measured = {name: tuple(metric.values(call)) for name, metric in METRICS.items() if name not in left_out}
    heard, touched = _lines(call)
    return CallFigures(
        values={name: values for name, values in measured.items() if values},
        void=void_reason(call),
        replies=tuple(_side_by_side(reply) for reply in call.replies),
        lines_heard=heard,
        lines_touched=touched,
        ended_by=record.ended_by,
        lost=call.arrival.lost_until(ready_ms(record)) if call.arrival.is_known else (),
        farewells=tuple(_farewell(call, reply) for reply in goodbye.farewells(call)),
        effects=tuple(effect.text for effect in live_effects(record.book)),
        violations=record.violations,
        shown=record.shown,
        unjudged=unjudged,
        unscored=unscored,
        is_elsewhere=record.is_elsewhere,
    )


def _unjudged(call: HeardCall) -> Iterator[tuple[str, str]]:
    """What a call on a server that is not ours cannot be held to, and why."""
    if not call.record.is_elsewhere:
        return
    unknown = call.record.unknown
    is_lacking = {
        Lack.READ: True,
        Lack.LINES: True,
        Lack.CUTS: any(reply.item.item_id in unknown and not reply.outlasted_call for reply in call.replies),
        Lack.WORDS: any(reply.is_wordless for reply in call.replies),
        Lack.LENGTHS: any(reply.is_restated for reply in call.replies),
        Lack.TURNS: any(isinstance(item, CallerSaid) and item.item_id in unknown for item in call.record.history),
    }
    if is_lacking[Lack.WORDS]:
        yield from ((name, Lack.WORDS.value) for name, metric in METRICS.items() if metric.rests_on_words)
    more = call.with_doubtful_words()
    doubted = (name for name, metric in METRICS.items() if metric.elsewhere is Elsewhere.DOUBTED)
    yield from ((name, Lack.ENDS.value) for name in doubted if not _agree(METRICS[name], call, more))
    lacks = {**{name: metric.lacks for name, metric in METRICS.items()}, "heard": Lack.LINES, "not_heard": Lack.LINES}
    yield from ((name, lack.value) for name, lack in lacks.items() if lack and is_lacking[lack])


def _agree(metric: Metric, one: HeardCall, other: HeardCall) -> bool:
    return list(metric.values(one)) == list(metric.values(other))


def _farewell(call: HeardCall, reply: Reply) -> HeardFarewell:
    whole_ms, heard_ms = goodbye.farewell_lengths_ms(call, reply)
    return HeardFarewell(reply.item.item_id, reply.played.first_audible_ms, round(whole_ms), round(heard_ms))


def _side_by_side(reply: Reply) -> HeardReply:
    return HeardReply(
        item_id=reply.item.item_id,
        written=reply.written,
        heard=reply.heard,
        in_history=reply.in_history,
        in_transcript=reply.in_transcript,
        started_ms=reply.played.first_audible_ms,
        ended_ms=reply.played.last_audible_ms,
        was_cut=reply.was_cut,
        partial=reply.under_cut,
        in_doubt=reply.in_doubt,
    )


def _lines(call: HeardCall) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Agent lines heard whole, and those of which anything arrived, in order of appearance."""
    heard: dict[str, dict[int, None]] = {}
    for reply in call.replies:
        for (line_id, word), fate in zip(reply.lines, reply.fates, strict=bool(reply.clips)):
            if fate is not Fate.UNHEARD:
                heard.setdefault(line_id, {})
            if fate is Fate.WHOLE:
                heard[line_id][word] = None
    whole = tuple(line_id for line_id, words in heard.items() if len(words) == len(call.speech[line_id].words))
    return whole, tuple(heard)


# --- what was heard, and what is believed


def _heard_error(call: HeardCall) -> Values:
    sent = {cut.item_id: cut.audio_end_ms for cut in call.record.truncations}
    return [
        round(abs(sent.get(reply.item.item_id, reply.item.streamed_ms) - reply.played.ms))
        for reply in call.replies
        if reply.item.item_id in sent or (reply.was_cut and not reply.outlasted_call)
    ]


def _heard(call: HeardCall) -> Values:
    return [round(reply.played.ms) for reply in call.replies]


def _replies_cut(call: HeardCall) -> Values:
    return _if_spoken(call, sum(reply.was_cut and not reply.outlasted_call for reply in call.replies))


def _unheard_in_history(call: HeardCall) -> Values:
    wrong = sum(reply.unheard_in(reply.in_history) for reply in call.replies if not reply.outlasted_call)
    return _if_spoken(call, call.foreign_in_history + wrong)


def _unheard_in_transcript(call: HeardCall) -> Values:
    wrong = sum(reply.unheard_in(reply.in_transcript) for reply in call.replies)
    return _if_spoken(call, call.foreign_in_transcript + wrong)


def _heard_missing(call: HeardCall) -> Values:
    missing = [reply.count(Fate.WHOLE, reply.follow(reply.in_transcript).matched) for reply in call.replies]
    return _if_spoken(call, sum(missing))


def _if_spoken(call: HeardCall, count: int) -> Values:
    return (count,) if call.replies else ()


# --- what is said again


def _starts_over(call: HeardCall) -> Values:
    if not call.replies:
        return ()
    first, *later = [reply.written for reply in call.replies if reply.played.first_audible_ms is not None] or [""]
    begun = opening(without_lead_in(first))
    again = [text for text in later if begun in (opening(text), opening(without_lead_in(text)))]
    return (len(again) if len(begun) == OPENING_WORDS else 0,)


def _answer_restates(call: HeardCall) -> Values:
    found = []
    for number, reply in enumerate(call.replies):
        later = call.replies[number + 1 :]
        if reply.was_cut and later:
            run = max(longest_run(words_of(reply.heard), words_of(other.heard)) for other in later)
            found.append(run if run >= RESTATED_WORDS else 0)
    return found


# --- the first words


def _pickup_lost_words(call: HeardCall) -> Values:
    ready = ready_ms(call.record)
    lines = [line for line in call.record.caller_lines if line.started_ms < ready]
    words = [(line.started_ms, word) for line in lines for word in call.speech[line.line_id].words]
    lost = 0
    for began_ms, word in words:
        span = (began_ms + word.start_ms, began_ms + word.end_ms)
        lost += call.arrival.lost_ms(*span) > (1 - DELIVERED) * (span[1] - span[0])
    return (lost,) if words else ()


def _pickup_lost(call: HeardCall) -> Values:
    spans = call.arrival.lost_until(ready_ms(call.record))
    return (sum(end - start for start, end in spans),) if call.arrival.is_known else ()


# --- the goodbye


def _goodbye_played(call: HeardCall) -> Values:
    lengths = [goodbye.farewell_lengths_ms(call, reply) for reply in goodbye.farewells(call)[-1:]]
    return [round(heard_ms / whole_ms, 3) for whole_ms, heard_ms in lengths if whole_ms]


def _goodbye_played_ms(call: HeardCall) -> Values:
    return [round(goodbye.farewell_lengths_ms(call, reply)[1]) for reply in goodbye.farewells(call)[-1:]]


def _notice_heard(call: HeardCall) -> Values:
    was_heard = goodbye.notice_heard(call)
    return () if was_heard is None else (int(was_heard),)


def _with_goodbye(call: HeardCall, count: int) -> Values:
    return (count,) if goodbye.farewells(call) else ()


# --- the call itself


def _known(value: float | None) -> Values:
    return () if value is None else (value,)


_NO_GOODBYE = "the agent called no tool that ends the call"

_TABLE = (
    Metric(
        "heard_error_ms",
        "ms",
        "Absolute difference between the length at which the server was told to cut a reply and the length that reached"
        " the caller's ear, measured in the recording. A reply that ended early at the ear and was not truncated counts"
        " with all the audio that left the server, because that is what the server goes by.",
        "per reply that was truncated or ended early at the ear, unless the call ended in it",
        _heard_error,
        "no reply was cut",
        elsewhere=Elsewhere.WIRE,
        lacks=Lack.LENGTHS,
    ),
    Metric(
        "heard_ms",
        "ms",
        "Length of a reply, from its beginning, that reached the caller's ear, measured in the recording.",
        "per reply",
        _heard,
        "the agent said nothing",
        aim=Aim.NEITHER,
        elsewhere=Elsewhere.WIRE,
    ),
    Metric(
        "replies_cut",
        "replies",
        "Replies of which 20 ms or more never reached the caller's ear.",
        "sum over the call's replies, without one that the call ended in",
        _replies_cut,
        "the agent said nothing",
        aim=Aim.NEITHER,
        elsewhere=Elsewhere.WIRE,
    ),
    Metric(
        "unheard_words_in_history",
        "words",
        "Words in the replies of the server's history that the caller's ear never received.",
        "sum over the call's replies, without one that the call ended in",
        _unheard_in_history,
        "the agent said nothing",
        elsewhere=Elsewhere.ESTIMATED,
        lacks=Lack.CUTS,
    ),
    Metric(
        "unheard_words_in_transcript",
        "words",
        "Words that the client's own transcript has as heard and the caller's ear never received.",
        "sum over the call's replies",
        _unheard_in_transcript,
        "the agent said nothing",
        elsewhere=Elsewhere.ESTIMATED,
    ),
    Metric(
        "heard_words_missing",
        "words",
        "Words that the caller heard whole and that the client's transcript lacks.",
        "sum over the call's replies",
        _heard_missing,
        "the agent said nothing",
        elsewhere=Elsewhere.ESTIMATED,
    ),
    *TURN_METRICS,
    Metric(
        "starts_over",
        "replies",
        f"Later replies whose first {OPENING_WORDS} content words equal those of the first audible reply; a lead-in may"
        " stand before them.",
        "sum over the call's audible replies",
        _starts_over,
        "the agent said nothing",
        elsewhere=Elsewhere.WIRE,
        lacks=Lack.WORDS,
    ),
    Metric(
        "answer_restates",
        "words",
        f"Longest run of words heard of a cut reply that is heard again in a later one; 0 below {RESTATED_WORDS} words."
        " A lead-in does not hide it.",
        "per reply that was cut and that another follows",
        _answer_restates,
        "no reply was cut and followed by another",
        elsewhere=Elsewhere.ESTIMATED,
    ),
    Metric(
        "session_ready_ms",
        "ms",
        "From pickup to the model's session being configured.",
        "per call; absent if it never was",
        lambda call: _known(call.record.session_ready_ms),
        "the session was never configured",
        elsewhere=Elsewhere.SAME,
    ),
    Metric(
        "held_sent_ms",
        "ms",
        "Caller audio that was held until the session was ready and then sent.",
        "per call",
        lambda call: (call.record.held_sent_ms,),
        aim=Aim.NEITHER,
        elsewhere=Elsewhere.SAME,
    ),
    Metric(
        "pickup_lost_ms",
        "ms",
        "Caller audio, in frames of 20 ms, that is not in what the server read first. The two are laid over each other"
        " by their samples: audio that was dropped is not there, and audio that was read in another format than it was"
        " sent is like nothing that was said. Silence counts by the speech beside it.",
        "from the opening of the line to the session being ready (the end of the call, if it never was)",
        _pickup_lost,
        "the caller was not audible",
        elsewhere=Elsewhere.NONE,
        lacks=Lack.READ,
    ),
    Metric(
        "pickup_lost_words",
        "words",
        "Words of the caller of which less than 90 % is in what the server read first.",
        "sum over the caller's lines that began before the session was ready",
        _pickup_lost_words,
        "the caller said nothing before the session was ready",
        elsewhere=Elsewhere.NONE,
        lacks=Lack.READ,
    ),
    Metric(
        "goodbyes",
        "farewells",
        "Farewells of which anything was audible at the ear. A farewell is what is spoken in a response that calls a"
        " tool which ends the call.",
        "sum over the call's farewells",
        lambda call: _with_goodbye(call, len(goodbye.heard_farewells(call))),
        _NO_GOODBYE,
        aim=Aim.NEITHER,
        elsewhere=Elsewhere.WIRE,
    ),
    Metric(
        "goodbye_played",
        "part",
        "Part of a farewell, from its first to its last audible sample, that reached the caller's ear before the line"
        " ended; 1 where less than 20 ms of it is missing.",
        "the last farewell of a call, whoever ended the line",
        _goodbye_played,
        _NO_GOODBYE,
        aim=Aim.MORE,
        elsewhere=Elsewhere.ESTIMATED,
    ),
    Metric(
        "goodbye_played_ms",
        "ms",
        "The length of that part.",
        "the last farewell of a call, whoever ended the line",
        _goodbye_played_ms,
        _NO_GOODBYE,
        aim=Aim.MORE,
        elsewhere=Elsewhere.WIRE,
    ),
    Metric(
        "late_talk_over",
        "turns",
        "Turns of the caller that began inside the audible part of a farewell at his ear, its last moments included,"
        " and after which the agent hung up before any other reply was audible.",
        "sum over the call's farewells; murmurs are no turns",
        lambda call: _with_goodbye(call, len(goodbye.hung_up_on(call))),
        _NO_GOODBYE,
        elsewhere=Elsewhere.WIRE,
    ),
    Metric(
        "farewells_repeated",
        "replies",
        "Audible replies that say a recorded line of an earlier farewell again without ending the call.",
        "sum over the call's replies after its first farewell",
        lambda call: _with_goodbye(call, goodbye.repeated(call)),
        _NO_GOODBYE,
        elsewhere=Elsewhere.NONE,
        lacks=Lack.LINES,
    ),
    Metric(
        "open_after_goodbye_ms",
        "ms",
        "From the last audible sample of a farewell at the ear to the end of the line; 0 where the line ended in it.",
        "the last audible farewell of a call that the agent ended",
        lambda call: _known(goodbye.open_after_ms(call)),
        "the agent did not end the call with a goodbye",
        aim=Aim.NEITHER,
        elsewhere=Elsewhere.SAME,
    ),
    Metric(
        "ai_notice_heard",
        "1 or 0",
        "1 if the words by which the agent declares that it is a machine were heard whole, one after the other, in one"
        " reply.",
        "per call",
        _notice_heard,
        "the agent declares no such words",
        aim=Aim.MORE,
        elsewhere=Elsewhere.DOUBTED,
    ),
    Metric(
        "tool_calls_kept",
        "part",
        "Part of the call's tool calls that the server still had in its history, asked for one by one by"
        " `conversation.item.retrieve` before the connection was closed.",
        "per call with `--audit`; absent if the server did not answer for all",
        lambda call: share(call.record.tool_calls_kept or ()),
        "there was no tool call, or the server was not asked (`--audit`) or did not answer",
        aim=Aim.MORE,
        elsewhere=Elsewhere.WIRE,
    ),
    Metric(
        "connected_s",
        "s",
        "Length of the model's connection.",
        "per call",
        lambda call: (call.record.connected_ms / 1000,),
        aim=Aim.NEITHER,
        elsewhere=Elsewhere.SAME,
    ),
    Metric(
        "caller_fidelity",
        "1 or 0",
        "1 if the simulated caller followed his script: every line spoken, every interruption over audible speech.",
        "per call, void ones included; all other figures leave void calls out",
        lambda call: (0 if script_fault(call) else 1,),
        aim=Aim.MORE,
        elsewhere=Elsewhere.SAME,
    ),
)

METRICS: Mapping[str, Metric] = {
    metric.name: metric for metric in (*_TABLE, *UNDERSTOOD_METRICS, *HOLD_METRICS, *EFFECT_METRICS)
}
"""Every figure, by name, in the order of the reference."""

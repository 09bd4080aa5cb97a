"""Where to listen: for each figure the instants in the call that made it what it is, the worst first.

A figure that is of the whole call has no instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from callwright.claims.cards import without_cards
from callwright.measure import goodbye
from callwright.measure.effects import false_claims, live_effects, untold_effects
from callwright.measure.hearing import Fate
from callwright.measure.hold import keys_only_claimed
from callwright.measure.outcome import seconds, words
from callwright.measure.silence import longest_silence
from callwright.measure.understood import echo_interrupts

if TYPE_CHECKING:
    from callwright.ids import Ms
    from callwright.measure.figures import CallFigures
    from callwright.measure.hearing import HeardCall, Reply
    from callwright.measure.verdict import Failure, Verdict

SLOW_MS: Ms = 3_000
"""A longer silence is worth a look, whether something was expected of it or not."""

Instants: TypeAlias = Sequence["Ms"]


@dataclass(frozen=True, slots=True)
class Moment:
    """Something to look at: what it is, and when."""

    at_ms: Ms | None
    """None if it is of the whole call."""
    what: str
    is_failure: bool
    """Whether it is an expectation that did not hold."""


def moments(call: HeardCall, figures: CallFigures, verdict: Verdict) -> tuple[Moment, ...]:
    """The expectations that did not hold, the worst first, and behind them what else is worth a look, by time."""
    failed = sorted(verdict.failed, key=lambda failure: rank(failure.name))
    found = [_failed(call, failure) for failure in failed]
    told = [moment.at_ms for moment in found]
    others = sorted(_noticed(call, figures), key=lambda moment: moment.at_ms or 0)
    return (*found, *(moment for moment in others if moment.at_ms not in told))


def _failed(call: HeardCall, failure: Failure) -> Moment:
    return Moment(
        next(iter(instants(call, failure.name)), None),
        without_cards(f"{failure.name}: wanted {failure.wanted}, got {failure.got}"),
        is_failure=True,
    )


def _noticed(call: HeardCall, figures: CallFigures) -> Iterator[Moment]:
    """What nobody may have asked for, and everybody wants to hear."""
    for start_ms, end_ms in figures.lost:
        yield Moment(start_ms, f"{seconds(end_ms - start_ms)} of the caller never reached the model", is_failure=False)
    for reply in false_claims(call):
        yield Moment(_end_ms(reply), "the caller was told what was not so", is_failure=False)
    for reply in call.replies:
        if reply.was_cut and reply.played.last_audible_ms is not None:
            unheard = reply.count(Fate.UNHEARD, 0)
            what = f"a reply is cut; {words(unheard)} of it were written and never heard"
            yield Moment(reply.played.last_audible_ms, what, is_failure=False)
    silence = longest_silence(call)
    if silence and silence[1] >= SLOW_MS:
        yield Moment(silence[0], f"nobody speaks for {seconds(silence[1])}", is_failure=False)


def instants(call: HeardCall, name: str) -> Instants:
    """When to listen for a figure or another expectation, the worst first; none if it is of the whole call."""
    place = PLACES.get(name)
    return [max(0, at_ms) for at_ms in place(call)] if place else []


# --- places


def _end_ms(reply: Reply) -> Ms:
    """The last audible instant of a reply; of one of which nothing was, when it left the server."""
    return reply.item.started_ms if reply.played.last_audible_ms is None else reply.played.last_audible_ms


def _ends(call: HeardCall, badness: Callable[[Reply], float]) -> Instants:
    """The ends of the replies that are bad at all, the worst first."""
    bad = [reply for reply in call.replies if badness(reply) > 0]
    return [_end_ms(reply) for reply in sorted(bad, key=badness, reverse=True)]


def _heard_error(call: HeardCall) -> Instants:
    sent = {cut.item_id: cut.audio_end_ms for cut in call.record.truncations}

    def wrong_ms(reply: Reply) -> float:
        told_ms = sent.get(reply.item.item_id, reply.item.streamed_ms)
        return abs(told_ms - reply.played.ms) if reply.was_cut else 0

    return _ends(call, wrong_ms)


def _interruptions(call: HeardCall) -> Instants:
    return [turn.onset_ms for turn in call.turns if turn.line.is_interruption and turn.line.overlapped_ms]


def _waits(call: HeardCall) -> Instants:
    """The ends of the caller's turns, the one that is answered latest first."""
    starts = [reply.played.first_audible_ms for reply in call.replies if reply.played.first_audible_ms is not None]
    waits = [
        (min((start for start in starts if start >= turn.onset_ms), default=call.record.ended_ms) - turn.end_ms, turn)
        for turn in call.turns
    ]
    return [turn.end_ms for _, turn in sorted(waits, key=lambda wait: -wait[0])]


def _effects_too_many(call: HeardCall) -> Instants:
    """When each effect was made that another one of the same thing had come before."""
    seen: list[tuple[str, str, str]] = []
    found = []
    for effect in live_effects(call.record.book):
        thing = (effect.kind, effect.subject, effect.slot)
        made_ms = min(each.at_ms for each in call.record.book if each.effect_id == effect.effect_id)
        found += [made_ms] if thing in seen else []
        seen.append(thing)
    return found


def _effects(call: HeardCall) -> Instants:
    made = [min(e.at_ms for e in call.record.book if e.effect_id == each.effect_id) for each in call.record.book]
    return _effects_too_many(call) or made[-1:] or _ended(call)


def _untold(call: HeardCall) -> Instants:
    return [min(effect.at_ms, call.record.ended_ms) for effect in untold_effects(call)]


def _settled(call: HeardCall) -> Instants:
    return [effect.at_ms for effect in call.record.book if effect.status != "pending"]


def _starts(call: HeardCall) -> Instants:
    """The beginnings of the replies behind the first."""
    audible = [reply.played.first_audible_ms for reply in call.replies]
    return [at_ms for at_ms in audible if at_ms is not None][1:]


def _farewells(call: HeardCall) -> Instants:
    return [_end_ms(reply) for reply in goodbye.heard_farewells(call)[-1:]]


def _ended(call: HeardCall) -> Instants:
    return [call.record.ended_ms]


def _silence(call: HeardCall) -> Instants:
    silence = longest_silence(call)
    return [silence[0]] if silence else []


def _spoken_on_hold(call: HeardCall) -> Instants:
    return [each.start_ms for each in call.far.spoken_on_hold] if call.far else []


def _greeting(call: HeardCall) -> Instants:
    return [each.end_ms for each in call.far.person[:1]] if call.far else []


def _keys(call: HeardCall) -> Instants:
    return [key.started_ms for key in call.far.book.keys] if call.far else []


PLACES: Mapping[str, Callable[[HeardCall], Instants]] = {
    "duplicate_effects": _effects_too_many,
    "effects": _effects,
    "missing_effects": _ended,
    "false_claims_heard": lambda call: list(map(_end_ms, false_claims(call))),
    "corrections_heard": lambda call: list(map(_end_ms, false_claims(call))),
    "untold_at_hangup": _untold,
    "outcomes_lost": _untold,
    "time_to_truth_ms": _settled,
    "spoke_on_hold": _spoken_on_hold,
    "menu_talked_over": _spoken_on_hold,
    "keys_only_claimed": lambda call: list(keys_only_claimed(call, call.far)) if call.far else [],
    "message_share": _farewells,
    "spoke_before_beep_ms": _spoken_on_hold,
    "answered_after_ms": _greeting,
    "introduced_after_ms": _greeting,
    "seconds_on_hold": _keys,
    "keys_pressed": _keys,
    "keys_not_alone": _keys,
    "key_after_ms": _keys,
    "late_talk_over": lambda call: [turn.onset_ms for turn in goodbye.hung_up_on(call)],
    "goodbye_played": _farewells,
    "goodbye_played_ms": _farewells,
    "farewells_repeated": _farewells,
    "open_after_goodbye_ms": _ended,
    "ended": _ended,
    "heard": lambda call: _ends(call, lambda reply: reply.was_cut),
    "pickup_lost_words": lambda call: [0],
    "pickup_lost_ms": lambda call: [0],
    "session_ready_ms": lambda call: [0],
    "unheard_words_in_transcript": lambda call: _ends(call, lambda reply: reply.unheard_in(reply.in_transcript)),
    "unheard_words_in_history": lambda call: _ends(call, lambda reply: reply.unheard_in(reply.in_history)),
    "heard_words_missing": lambda call: _ends(
        call, lambda reply: reply.count(Fate.WHOLE, reply.follow(reply.in_transcript).matched)
    ),
    "heard_error_ms": _heard_error,
    "yield_latency_ms": _interruptions,
    "yield_after_confirmation_ms": _interruptions,
    "yield_rate": _interruptions,
    "response_latency_ms": _waits,
    "response_rate": _waits,
    "echo_self_interrupts": echo_interrupts,
    "dead_air_ms": _silence,
    "starts_over": _starts,
    "answer_restates": _starts,
}
"""Where each figure is heard. The order is that of the damage: what was done on the world, what was said of it, how
the call ended and began, what is believed of it, and how it felt."""

_RANKS = {name: rank for rank, name in enumerate(("void", "censored", "invariants", *PLACES))}


def rank(name: str) -> int:
    """How bad it is that this did not hold: 0 is the worst."""
    return _RANKS.get(name, len(_RANKS))

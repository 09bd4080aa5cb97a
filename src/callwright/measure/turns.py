"""Figures of turns: how soon the agent is silent when it is talked over, how soon it answers, how long none speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callwright.measure.metric import Aim, Elsewhere, Metric, share
from callwright.measure.silence import dead_air_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callwright.ids import Ms
    from callwright.measure.hearing import CallerTurn, HeardCall
    from callwright.measure.metric import Values

YIELD_WINDOW_MS: Ms = 2_000


def _interruptions(call: HeardCall) -> Iterator[tuple[CallerTurn, Ms]]:
    """Each true interruption, with the last audible instant of the reply that it was spoken over."""
    for turn in call.turns:
        if turn.line.is_interruption and turn.line.overlapped_ms:
            for reply in call.replies:
                first_ms, last_ms = reply.played.first_audible_ms, reply.played.last_audible_ms
                if first_ms is not None and last_ms is not None and first_ms < turn.end_ms and last_ms > turn.onset_ms:
                    yield turn, last_ms
                    break


def _yield_latency(call: HeardCall) -> Values:
    return [last_ms - turn.onset_ms for turn, last_ms in _interruptions(call)]


def _yield_after_confirmation(call: HeardCall) -> Values:
    found = []
    for turn, last_ms in _interruptions(call):
        told = [each.at_ms for each in call.record.confirmations if turn.onset_ms <= each.at_ms < _next_ms(call, turn)]
        found += [last_ms - told[0]] if told else []
    return found


def _yield_rate(call: HeardCall) -> Values:
    return share([latency <= YIELD_WINDOW_MS for latency in _yield_latency(call)])


def _next_ms(call: HeardCall, turn: CallerTurn) -> float:
    """When the caller's next turn begins."""
    return min((each.onset_ms for each in call.turns if each.onset_ms > turn.onset_ms), default=float("inf"))


def _answers(call: HeardCall) -> Iterator[tuple[CallerTurn, Ms | None]]:
    """Each turn of the caller, with the start of the reply that began between its onset and the next one's."""
    starts = sorted(r.played.first_audible_ms for r in call.replies if r.played.first_audible_ms is not None)
    for turn in call.turns:
        yield turn, next((at for at in starts if turn.onset_ms <= at < _next_ms(call, turn)), None)


def _response_latency(call: HeardCall) -> Values:
    return [start_ms - turn.end_ms for turn, start_ms in _answers(call) if start_ms is not None]


def _response_rate(call: HeardCall) -> Values:
    return share([start_ms is not None for _, start_ms in _answers(call)])


def _agent_interruption_rate(call: HeardCall) -> Values:
    starts = [reply.played.first_audible_ms for reply in call.replies]
    inside = [start for start in starts if start is not None and any(t.onset_ms < start < t.end_ms for t in call.turns)]
    return (len(inside) / len(call.turns),) if call.turns else ()


def _dead_air(call: HeardCall) -> Values:
    found = dead_air_ms(call)
    return () if found is None else (found,)


TURN_METRICS = (
    Metric(
        "yield_latency_ms",
        "ms",
        "From the caller's first audible sample to the last audible sample, at his ear, of the reply that he speaks"
        " over. A reply that plays on to its own end counts with that.",
        "per interruption that lay over audible agent speech",
        _yield_latency,
        "nobody talked over the agent",
        elsewhere=Elsewhere.WIRE,
    ),
    Metric(
        "yield_after_confirmation_ms",
        "ms",
        "From the server telling that the caller speaks over a reply to the last audible sample of that at his ear;"
        " a playback lag that nothing can empty is part of it. Negative where the reply stopped in a pause.",
        "per interruption that the server confirmed before the caller's next turn",
        _yield_after_confirmation,
        "the server confirmed no interruption",
        elsewhere=Elsewhere.WIRE,
    ),
    Metric(
        "yield_rate",
        "share",
        "Interruptions whose yield latency is at most 2.0 s.",
        "interruptions of a call that lay over audible agent speech",
        _yield_rate,
        "nobody talked over the agent",
        aim=Aim.MORE,
        elsewhere=Elsewhere.WIRE,
    ),
    Metric(
        "response_latency_ms",
        "ms",
        "From the caller's last audible sample to the first audible sample of the reply that begins after his onset and"
        " before his next one. Negative where the reply begins before he ends.",
        "per turn of the caller that is answered; murmurs are no turns",
        _response_latency,
        "no turn of the caller was answered",
        elsewhere=Elsewhere.WIRE,
    ),
    Metric(
        "response_rate",
        "share",
        "Turns of the caller that are answered before he speaks again.",
        "turns of a call; murmurs are no turns",
        _response_rate,
        "the caller said nothing",
        aim=Aim.MORE,
        elsewhere=Elsewhere.WIRE,
    ),
    Metric(
        "agent_interruption_rate",
        "share",
        "Replies that begin inside the caller's speech, over the caller's turns; may exceed 1.",
        "turns of a call; murmurs are no turns",
        _agent_interruption_rate,
        "the caller said nothing",
        elsewhere=Elsewhere.WIRE,
    ),
    Metric(
        "dead_air_ms",
        "ms",
        "Longest silence of both sides that the caller's voice begins or the agent's ends: from his turn to the agent's"
        " next audio, and between the agent's replies. What follows the agent and ends with the caller is his own.",
        "per call, from the end of the caller's first turn on",
        _dead_air,
        "the caller said nothing, or nothing was audible after it",
        elsewhere=Elsewhere.SAME,
    ),
)
"""In the order of the reference."""

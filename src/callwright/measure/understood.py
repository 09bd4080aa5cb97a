"""Figures of what the server took for the caller: the agent's own echo, a television, and what of his words it missed.

What was taken for whom is read off the history's words; whether an interruption was an echo, off the samples: the
caller's side of the recording has only him, and what the client was sent has all that his microphone hears.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

import numpy as np

from callwright.audio.echo_delay import DelayFinder
from callwright.measure.metric import Elsewhere, Lack, Metric
from callwright.measure.played import AUDIBLE
from callwright.measure.texts import longest_run, words_of

if TYPE_CHECKING:
    from callwright.ids import Ms
    from callwright.measure.hearing import HeardCall
    from callwright.measure.metric import Values

BEFORE_MS: Ms = 1_000
"""What led to an interruption was heard within so long before it was told: 720 ms are judged, and told within 80."""
_FRAME_MS: Ms = 10


def _own_voice(call: HeardCall) -> Values:
    agent = [words_of(reply.written) for reply in call.replies]
    return _turns_of(call, agent, [line.line_id for line in call.record.caller_lines])


def _noise(call: HeardCall) -> Values:
    lines = {line.line_id: call.speech[line.line_id].kind == "caller" for line in call.record.caller_lines}
    others = [words_of(call.speech[line_id].text) for line_id, is_his in lines.items() if not is_his]
    return _turns_of(call, others, [line_id for line_id, is_his in lines.items() if is_his]) if others else ()


def _turns_of(call: HeardCall, others: list[list[str]], his: list[str]) -> Values:
    """How many of the caller's turns in history are others' words: half or more, and a longer run than of his lines."""
    caller = [words_of(call.speech[line_id].text) for line_id in his]
    count = 0
    for words in map(words_of, call.understood):
        run = max((longest_run(words, said) for said in others), default=0)
        count += run > max((longest_run(words, said) for said in caller), default=0) and 2 * run >= len(words)
    return (count,) if call.understood else ()


def _caller_words_missing(call: HeardCall) -> Values:
    said = [word for turn in call.turns for word in words_of(call.speech[turn.line.line_id].text)]
    understood = [word for text in call.understood for word in words_of(text)]
    blocks = SequenceMatcher(None, said, understood, autojunk=False).get_matching_blocks()
    return (len(said) - sum(block.size for block in blocks),) if said else ()


def echo_interrupts(call: HeardCall) -> list[Ms]:
    """When the server told of each interruption that was the agent's own echo."""
    return [each.at_ms for each in call.record.confirmations if _is_echo(call, each.at_ms)]


def _is_echo(call: HeardCall, told_ms: Ms) -> bool:
    """Whether the caller was silent for half or more of what led to it, and the agent is found in what was sent."""
    sound = call.record.recording
    first, end = (at * sound.rate_hz // 1000 for at in (max(0, told_ms - BEFORE_MS), told_ms))
    frame = _FRAME_MS * sound.rate_hz // 1000
    frames = (end - first) // frame
    span = slice(first, first + frames * frame)
    caller, near, far = (side[span].reshape(frames, frame) for side in (sound.caller, sound.sent, sound.agent))
    is_his = (np.abs(caller.astype(np.int32)) >= AUDIBLE).any(axis=1)
    finder = DelayFinder(sound.rate_hz)
    found = [finder.take(*both) for both in zip(near, far, strict=True)]
    return 2 * int(is_his.sum()) < frames and any(delay is not None for delay in found)


def _echo_self_interrupts(call: HeardCall) -> Values:
    return () if call.record.recording.microphone is None else (len(echo_interrupts(call)),)


_NO_TURN = "the server understood no turn of the caller"

UNDERSTOOD_METRICS = (
    Metric(
        "own_voice_as_caller",
        "turns",
        "Caller turns in the server's history of which half or more is a run of the agent's own words, longer than any"
        " run of the caller's.",
        "sum over the caller turns in history",
        _own_voice,
        _NO_TURN,
        elsewhere=Elsewhere.WIRE,
        lacks=Lack.TURNS,
    ),
    Metric(
        "noise_as_caller",
        "turns",
        "The same of what else the script lets sound at the caller's end: a murmur, a television, music.",
        "sum over the caller turns in history",
        _noise,
        f"nothing else sounded at the caller's end, or {_NO_TURN}",
        elsewhere=Elsewhere.WIRE,
        lacks=Lack.TURNS,
    ),
    Metric(
        "echo_self_interrupts",
        "times",
        "Interruptions that the server told of, and that were the agent's own echo: in the second before, the caller"
        " was silent for more than half, and the agent is found in what the client was sent, up to 512 ms late.",
        "sum over the call's interruptions",
        _echo_self_interrupts,
        "nothing of his room, and no canceller, changed what the microphone was sent",
        elsewhere=Elsewhere.WIRE,
    ),
    Metric(
        "caller_words_missing",
        "words",
        "Words that the caller said and that are not in his turns in the server's history, in their order.",
        "sum over the caller's turns; murmurs are no turns",
        _caller_words_missing,
        "the caller said nothing",
        elsewhere=Elsewhere.WIRE,
        lacks=Lack.TURNS,
    ),
)

"""Silence of both sides for which the caller waits, found in the recording.

```
caller  ~~~~~                       ~~~~
agent          ~~~~        ~~~~~~~~
             |      |     |        |
             counts counts         his own: after the agent, he is the next
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from callwright.measure.played import AUDIBLE

if TYPE_CHECKING:
    from callwright.ids import Ms
    from callwright.measure.hearing import HeardCall


def dead_air_ms(call: HeardCall) -> Ms | None:
    """The length of the longest silence that the caller waits through; None if there is none."""
    silence = longest_silence(call)
    return None if silence is None else silence[1]


def longest_silence(call: HeardCall) -> tuple[Ms, Ms] | None:
    """When the longest silence that the caller's voice begins or the agent's ends began, and how long it is.

    From his first turn's end on. None if there is no turn of his, or nothing audible behind the first.
    """
    if not call.turns:
        return None
    sound = call.record.recording
    caller, agent = ((side >= AUDIBLE) | (side <= -AUDIBLE) for side in (sound.caller, sound.agent))
    audible = caller | agent
    before = np.flatnonzero(audible[: round(call.turns[0].end_ms * sound.rate_hz / 1000)])[-1:]
    start = int(before[0]) if len(before) else int(audible.argmax())
    changes = start + np.flatnonzero(audible[start + 1 :] != audible[start:-1])
    begins, ends = changes[: len(changes) // 2 * 2 : 2], changes[1::2] + 1
    counts = np.flatnonzero(caller[begins] | agent[ends])
    if not len(counts):
        return None
    lengths = (ends - begins - 1)[counts]
    longest = int(lengths.argmax())
    at, length = int(begins[counts[longest]]) + 1, int(lengths[longest])
    return round(at * 1000 / sound.rate_hz), round(length * 1000 / sound.rate_hz)

"""One clock for all lines of a process that have none of their own: it beats every 20 ms, on one timer per group.

A sound card and a carrier bring their own time. A line that has to make it (it pulls reply audio, or sends frames at an
even pace) joins the clock of its event loop instead of keeping a timer of its own: 200 lines cost four timers. The
groups beat 5 ms apart, so that the work of many lines does not come all at once.

```
ms        0    5    10   15   20   25   30   35   40
group 0   |                   |                   |
group 1        |                   |
group 2             |                   |
group 3                  |                   |
```
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import ceil
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

from callwright.audio.formats import FRAME_MS
from callwright.ids import Ms

APART_MS: Ms = 5
"""Between two groups."""
MAKES_UP_MS: Ms = 1_000
"""Beats that a busy loop missed are made up for; those of a longer pause (the machine slept) are not."""

Beat: TypeAlias = Callable[[float], None]
"""Takes the instant at which the beat was due, in seconds of the loop's time."""

_FRAME_S: Final = FRAME_MS / 1000


class LineClock:
    """The clock of one event loop; ``line_clock`` finds it. It does not hold the loop, which may go."""

    def __init__(self) -> None:
        self._groups = [_Group(offset_ms / 1000) for offset_ms in range(0, FRAME_MS, APART_MS)]

    def join(self, beat: Beat) -> None:
        """Call ``beat`` every 20 ms from now on, in the smallest group."""
        min(self._groups, key=lambda group: len(group.beats)).join(beat)

    def leave(self, beat: Beat) -> None:
        """Never call it again; idempotent."""
        for group in self._groups:
            group.beats.pop(beat, None)


class _Group:
    """Lines that beat together; without any, there is no timer."""

    def __init__(self, offset_s: float) -> None:
        self.beats: dict[Beat, None] = {}
        self._offset_s = offset_s
        self._is_armed = False

    def join(self, beat: Beat) -> None:
        self.beats[beat] = None
        if not self._is_armed:
            loop = asyncio.get_running_loop()
            self._arm(loop, self._next_s(loop))

    def _next_s(self, loop: asyncio.AbstractEventLoop) -> float:
        return ceil((loop.time() - self._offset_s) / _FRAME_S) * _FRAME_S + self._offset_s

    def _arm(self, loop: asyncio.AbstractEventLoop, due_s: float) -> None:
        self._is_armed = True
        loop.call_at(due_s, self._beat, due_s)

    def _beat(self, due_s: float) -> None:
        loop = asyncio.get_running_loop()
        for beat in list(self.beats):
            if beat in self.beats:
                try:
                    beat(due_s)
                except Exception as problem:  # one line's mistake: the others go on
                    loop.call_exception_handler({"message": "a line failed in its beat", "exception": problem})
        if not self.beats:
            self._is_armed = False
        elif loop.time() - due_s > MAKES_UP_MS / 1000:
            self._arm(loop, self._next_s(loop))
        else:
            self._arm(loop, due_s + _FRAME_S)


_clocks: WeakKeyDictionary[asyncio.AbstractEventLoop, LineClock] = WeakKeyDictionary()


def line_clock() -> LineClock:
    """The clock of the running loop."""
    loop = asyncio.get_running_loop()
    clock = _clocks.get(loop)
    if clock is None:
        clock = _clocks[loop] = LineClock()
    return clock

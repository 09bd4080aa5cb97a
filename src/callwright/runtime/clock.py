"""The clock of one call: whole milliseconds, on the running loop."""

from __future__ import annotations

import asyncio

from callwright.ids import Ms


class Clock:
    """The call's clock: whole milliseconds of the running loop's time since the call began."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._start_ms = round(self._loop.time() * 1000)

    def now_ms(self) -> Ms:
        """The present instant."""
        return round(self._loop.time() * 1000) - self._start_ms

    def at(self, instant_ms: Ms) -> float:
        """An instant of this clock as the loop tells time (seconds)."""
        return (self._start_ms + instant_ms) / 1000

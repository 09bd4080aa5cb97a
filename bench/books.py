"""What the process of ``bench/clients.py`` notes down while its calls run, whoever the client is."""

from __future__ import annotations

import asyncio
import time
from array import array

FRAME = bytes(range(240)) * 4
"""20 ms of the caller: PCM16 at 24 kHz."""
SILENCE = bytes(960)
BEAT_S = 0.005
"""How often the loop's pauses are looked for."""


class Books:
    """What one process notes down while it runs."""

    def __init__(self) -> None:
        self.late_us = array("L")
        """From the instant at which a caller's frame was due to its write on the socket."""
        self.empty = 0
        """Pulls that found too little reply audio."""
        self.stops: list[Stop] = []
        self.pauses_ms = array("d")
        self.is_open = False
        self.ready = 0

    def sent(self, due_s: float) -> None:
        """A frame was written that was due at this instant of the loop's time, which is the machine's monotonic one."""
        if self.is_open:
            self.late_us.append(max(0, int((time.monotonic() - due_s) * 1e6)))

    async def watch(self) -> None:
        """Note how long the loop was away: no longer than it was late, and than the CPU time that this process took."""
        loop = asyncio.get_running_loop()
        while True:
            due_s, cpu_s = loop.time() + BEAT_S, time.process_time()
            await asyncio.sleep(BEAT_S)
            if self.is_open:
                self.pauses_ms.append(1e3 * min(loop.time() - due_s, time.process_time() - cpu_s))


class Stop:
    """One stop of a reply that the caller talked over."""

    def __init__(self, sent_s: float, item: object = None) -> None:
        self.sent_s = sent_s
        self.item = item
        self.cleared_s = time.monotonic()
        self.silent_s: float | None = None
        self.late = 0
        """Pieces that were handed on or taken afterwards."""

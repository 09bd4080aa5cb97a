"""The caller's audio on its way to the model: held until the session is ready, then sent as it comes.

The 20 ms path: a constant, base64, a constant, one send. What is held is bounded; the oldest frame is dropped first,
and counted.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from callwright.audio.formats import FRAME_MS
from callwright.ids import Ms
from callwright.wire.codec import encode_append

HELD_MS_MAX: Ms = 5_000
"""How much of the caller's first words is held while the model connects."""


class Sender(Protocol):
    """Where frames go."""

    def send(self, message: bytes) -> None:
        """Send one encoded message; never waits."""


class Uplink:
    """The way up of one call. Closed at first: frames are held."""

    def __init__(self) -> None:
        self.frames = 0
        """How many frames came."""
        self._held: deque[bytes] = deque()
        self._connection: Sender | None = None
        self.sent_ms: Ms = 0
        self.held_sent_ms: Ms = 0
        """How much of what was sent had been held."""
        self.lost_ms: Ms = 0
        """How much was held for too long, and dropped."""

    @property
    def held_ms(self) -> Ms:
        """How much is held now."""
        return len(self._held) * FRAME_MS

    def frame(self, frame: bytes) -> None:
        """Send one frame of 20 ms, or hold it."""
        self.frames += 1
        if self._connection is None:
            self._hold(frame)
            return
        self._connection.send(encode_append(frame))
        self.sent_ms += FRAME_MS

    def open(self, connection: Sender) -> None:
        """Send what was held, in order, and every frame from now on."""
        self.held_sent_ms = self.held_ms
        self._connection = connection
        for frame in self._held:
            connection.send(encode_append(frame))
        self.sent_ms += self.held_sent_ms
        self._held.clear()

    def _hold(self, frame: bytes) -> None:
        self._held.append(frame)
        if self.held_ms > HELD_MS_MAX:
            self._held.popleft()
            self.lost_ms += FRAME_MS

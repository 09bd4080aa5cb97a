"""The caller's audio on its way to the model: held until the session is ready, then sent as it comes.

The 20 ms path: a constant, base64, a constant, one send. What is held is bounded; the oldest frame is dropped first,
and counted. What was sent last is kept, too, as far as a session that follows another one may have to hear it again.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from callwright.audio.formats import FRAME_MS
from callwright.core.unheard import QUIET_KEPT_MS
from callwright.errors import UsageError
from callwright.ids import Ms
from callwright.runtime.watch import Loudness
from callwright.wire.codec import encode_append

HOLD_MS: Ms = 5_000
"""How much of the caller's first words is held while the model connects, where the app does not say otherwise."""


class Sender(Protocol):
    """Where frames go."""

    def send(self, message: bytes) -> None:
        """Send one encoded message; never waits."""


class Uplink:
    """The way up of one call. Held at first, then open; held again between two sessions, and shut at the call's end."""

    def __init__(self, hold_ms: Ms = HOLD_MS) -> None:
        """At most ``hold_ms`` are held. Raises UsageError if that is negative."""
        if hold_ms < 0:
            raise UsageError(f"hold_ms is {hold_ms}; it is at least 0 ms")
        self._hold_ms = hold_ms
        self._is_shut = False
        self.frames = 0
        """How many frames came."""
        self.opened_at_ms: Ms | None = None
        self.loudness: Loudness | None = None
        """Measures every frame, while there is one."""
        self._held: deque[bytes] = deque()
        self.kept_ms: Ms = QUIET_KEPT_MS
        """So much of what was sent last is kept, from the next frame on."""
        self._sent: deque[bytes] = deque()
        """What was sent last."""
        self._room_ms = hold_ms
        """How much may be held now: what is sent again comes on top."""
        self._connection: Sender | None = None
        self.sent_ms: Ms = 0
        self.held_sent_ms: Ms = 0
        """How much of what was sent had been held."""
        self.lost_ms: Ms = 0
        """How much was held for too long, and dropped."""
        self.lost_before_ms: Ms = 0
        """How much of that before the present session was waited for."""

    @property
    def held_ms(self) -> Ms:
        """How much is held now."""
        return len(self._held) * FRAME_MS

    def frame(self, frame: bytes) -> bool:
        """Send one frame of 20 ms, or hold it; after the end, neither. True if ``loudness`` has changed by it."""
        self.frames += 1
        if self._connection is None:
            self._hold(frame)
        else:
            self._connection.send(encode_append(frame))
            self._sent.append(frame)
            while len(self._sent) * FRAME_MS > self.kept_ms:
                self._sent.popleft()
            self.sent_ms += FRAME_MS
        return self.loudness is not None and self.loudness.take(frame)

    def open(self, connection: Sender, now_ms: Ms) -> None:
        """Send what was held, in order, and every frame from now on."""
        if self.opened_at_ms is None:
            self.opened_at_ms = now_ms
            self.held_sent_ms = self.held_ms
        self._connection = connection
        for frame in self._held:
            connection.send(encode_append(frame))
        self.sent_ms += self.held_ms
        self._sent.extend(self._held)
        self._held.clear()

    def hold(self, resend_ms: Ms) -> None:
        """Hold what comes for another session, behind the last ``resend_ms`` of what was sent, as far as it is kept."""
        if self._connection is None:
            return
        self._connection = None
        self.lost_before_ms = self.lost_ms
        frames = min(len(self._sent), resend_ms // FRAME_MS)
        self._room_ms = self._hold_ms + frames * FRAME_MS
        self._held.extend(list(self._sent)[len(self._sent) - frames :])
        self._sent.clear()

    def shut(self) -> None:
        """The call is over: what is held and what still comes is for nobody."""
        self._is_shut = True
        self._connection = self.loudness = None
        self._held.clear()
        self._sent.clear()

    def _hold(self, frame: bytes) -> None:
        if self._is_shut:
            return
        self._held.append(frame)
        if self.held_ms > self._room_ms:
            self._held.popleft()
            self.lost_ms += FRAME_MS

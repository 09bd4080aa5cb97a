"""A baseline's way up: what it does with the caller's audio before the session stands and on hold; its connection."""

from __future__ import annotations

from callwright.audio.formats import FRAME_MS, Encoding
from callwright.core.ports import ModelConnection
from callwright.ids import Ms
from callwright.sim.baselines.habits import Early, Habits, OnHold
from callwright.sim.baselines.hold import MusicGate
from callwright.wire.codec import encode_append


class Uplink:
    """Frames and messages on their way to the model."""

    def __init__(self, habits: Habits, encoding: Encoding) -> None:
        self._early = habits.early
        self._gate = MusicGate(encoding) if habits.on_hold is OnHold.SAVES else None
        self._connection: ModelConnection | None = None
        self._is_open = False
        self._held: list[bytes] = []
        self.held_sent_ms: Ms = 0
        """How much was held, and sent."""
        self.lost_ms: Ms = 0
        """How much was dropped."""

    def connected(self, connection: ModelConnection) -> None:
        """The connection stands; nothing is configured yet."""
        self._connection = connection
        if self._early is Early.SENT:
            self._open()

    def ready(self) -> None:
        """The server took the configuration."""
        if not self._is_open:
            self._open()

    def frame(self, frame: bytes) -> None:
        """Take 20 ms of the caller."""
        if self._gate is not None and not self._gate.lets(frame):
            return
        if self._is_open:
            self.send(encode_append(frame))
        elif self._early is Early.DROPPED:
            self.lost_ms += FRAME_MS
        else:
            self._held.append(frame)

    def send(self, message: bytes) -> None:
        """Send one encoded message, if there is a connection."""
        if self._connection:
            self._connection.send(message)

    def _open(self) -> None:
        self._is_open = True
        self.held_sent_ms = len(self._held) * FRAME_MS
        for frame in self._held:
            self.send(encode_append(frame))
        self._held.clear()

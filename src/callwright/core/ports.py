"""The two doors of a call: a line, where the caller is, and a connection to a model.

A line and a connection are driven by the runtime and report through the sinks given to them. All sink
methods are plain calls on the event loop: they return at once and never raise. Audio is bytes in the format
that the port names; 20 ms frames come in, any length goes out.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from callwright.audio.formats import AudioFormat
    from callwright.ids import ItemId, MarkId, Ms


class PlayedReports(Enum):
    """How a line tells what it has played."""

    PULLED = "pulled"
    """It reports each piece that it takes from our queue (a sound card's callback)."""
    MARKS = "marks"
    """It returns named marks when they are reached, or when they are cleared (a carrier's stream)."""


class LineSink(Protocol):
    """What a line calls."""

    def on_frame(self, frame: bytes) -> None:
        """20 ms of the caller's audio, in the line's input format."""

    def on_played(self, item_id: ItemId, generation: int, played_ms: Ms) -> None:
        """A ``PULLED`` line has taken ``played_ms`` of this item in all."""

    def on_mark(self, mark_id: MarkId) -> None:
        """A ``MARKS`` line returned a mark, reached or cleared."""

    def on_closed(self, by: str, reason: str) -> None:
        """The line ended (``by`` is ``caller``, ``agent`` or ``fault``); nothing is called after this."""


class Line(Protocol):
    """A place where audio comes from and goes to."""

    @property
    def input_format(self) -> AudioFormat:
        """Format of the caller's frames."""

    @property
    def output_format(self) -> AudioFormat:
        """Format in which the line wants to be handed audio."""

    @property
    def reports(self) -> PlayedReports:
        """How it tells what was played."""

    @property
    def latency_ms(self) -> Ms:
        """Delay after the last stage that ``clear`` can empty, as the device reports it; 0 where unknown."""

    @property
    def reaches_person(self) -> bool:
        """Whether a person may be at the far end, of whose words nothing is kept unless the agent says that it may be.

        A line that does not tell counts as one that does.
        """

    async def open(self, sink: LineSink) -> None:
        """Begin to carry audio both ways. Raises LineFailed."""

    def play(self, item_id: ItemId, generation: int, audio: bytes) -> None:
        """Queue audio (``output_format``) behind what is queued."""

    def mark(self, mark_id: MarkId) -> None:
        """Queue a mark behind the audio queued so far; only for ``MARKS`` lines."""

    def clear(self) -> None:
        """Drop at once whatever is queued and can still be dropped; pending marks come back."""

    async def hang_up(self) -> None:
        """End the line; idempotent."""


@runtime_checkable
class PressesKeys(Protocol):
    """What a line has besides if it has its own way to press keys of the telephone.

    Every other line is handed the tones of keys as audio. Whether it has this method is asked once, before it opens.
    """

    async def press_keys(self, keys: str) -> None:
        """Press these keys (0 to 9, *, # and A to D), in order; returns when they are out.

        Nothing else is handed to the line meanwhile. If its carrier begins the stream anew for this, that is hidden
        here: the call goes on behind it as if nothing had been. Raises LineFailed if they cannot be pressed.
        """


class ModelSink(Protocol):
    """What a connection calls: never before ``connect`` has returned, and never from within ``send``."""

    def on_message(self, message: bytes | str) -> None:
        """One whole message of the server, as it came."""

    def on_closed(self, code: int, reason: str) -> None:
        """The connection ended; nothing is called after this."""


class ModelConnection(Protocol):
    """An open connection to a realtime model."""

    def send(self, message: bytes) -> None:
        """Send one JSON message, in order; never waits. After the end it does nothing."""

    async def close(self) -> None:
        """End the connection; idempotent."""


class Connector(Protocol):
    """Opens connections to one model."""

    async def connect(self, sink: ModelSink) -> ModelConnection:
        """Connect; nothing is reported to ``sink`` before this has returned.

        Raises ConnectionFailed with the reason and what to do.
        """

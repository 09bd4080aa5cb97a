"""What a client is sent of a room: what the microphone hears, less the echo where a canceller takes it out.

The canceller is the client's. It is given what was handed to the loudspeaker, so a playback lag is part of the delay
that it has to find.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from callwright.audio.echo import Canceller
from callwright.audio.echo_kalman import KalmanCanceller
from callwright.errors import UsageError, how_to_install
from callwright.sim.room.room import Aec, Room, RoomSettings

if TYPE_CHECKING:
    import random

    from callwright.audio.formats import PCM


class Microphone:
    """One call's microphone; ``rng`` is the room's. Raises UsageError for a canceller that is not installed."""

    def __init__(self, settings: RoomSettings, rate_hz: int, rng: random.Random, *, cancels: bool) -> None:
        self._room = None if settings.is_still else Room(settings, rate_hz, rng)
        self.canceller: Canceller | None = _canceller(settings.aec, rate_hz) if cancels else None
        """Takes the echo out, where there is one."""

    def hear(self, caller: PCM, at_ear: PCM, handed: PCM) -> PCM:
        """What is sent (int16, mono, 20 ms) while the caller says this.

        ``at_ear`` is what the loudspeaker plays in the same time, ``handed`` what it is handed, to be played later.
        """
        heard = caller if self._room is None else self._room.apply(caller, at_ear)
        return heard if self.canceller is None else self.canceller.process(heard, handed)


def _canceller(aec: Aec, rate_hz: int) -> Canceller:
    if aec is not Aec.AEC3:
        return KalmanCanceller(rate_hz)
    try:
        from callwright.lines.aec3 import Aec3Canceller
    except ModuleNotFoundError as problem:
        raise UsageError(f"the canceller aec3 is not installed: {how_to_install('aec')}") from problem
    return Aec3Canceller(rate_hz)

"""Taking the loudspeaker's sound out of the microphone's: which device needs it, the interface, what all share.

```
far, what is played --> loudspeaker ~~ room ~~> microphone --> near = the caller + an echo of far
                  \\________________ Canceller ______________/ --> the caller
```

On loudspeakers the agent hears itself and interrupts itself. On headphones and phones there is nothing to take out, and
what tries to anyway can only harm the caller's voice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import log10
from typing import Final, Protocol

import numpy as np

from callwright.audio.formats import PCM
from callwright.errors import AudioFormatError
from callwright.ids import Ms, Samples

ECHO_FRAME_MS: Final[Ms] = 10
"""A canceller works in frames of this length."""

_RATES_HZ: Final = range(8_000, 48_001, 1_000)
_KEPT: Final = 0.98
"""The report looks back over about half a second of the far end."""
FAR_RMS: Final = 100.0
"""The far end speaks when it is louder than this, in int16 steps (-50 dBFS)."""


class OutputDevice(Enum):
    """Where the agent's voice comes out."""

    SPEAKERS = "speakers"
    """In the caller's room, and from there back into the microphone."""
    HEADPHONES = "headphones"
    PHONE = "phone"
    """The network and the handset cancel their own echo."""


CANCELS: Final[Mapping[OutputDevice, bool]] = {
    OutputDevice.SPEAKERS: True,
    OutputDevice.HEADPHONES: False,
    OutputDevice.PHONE: False,
}
"""Whether a device wants a canceller; the assumption that a client states when it starts."""


@dataclass(frozen=True, slots=True)
class EchoReport:
    """What a canceller knows of the echo; None where it does not know yet, or never does."""

    delay_ms: Ms | None = None
    """From a sample's being played to its strongest echo in the microphone."""
    drift_ppm: int | None = None
    """How much faster the loudspeaker's clock runs than the microphone's."""
    erle_db: int | None = None
    """Echo return loss enhancement: how much weaker the microphone got lately while the agent spoke. The caller's own
    voice counts as what is left, so it is a lower bound."""


class Canceller(Protocol):
    """Takes the echo of one loudspeaker out of one microphone. One object serves one call."""

    def process(self, near: PCM, far: PCM) -> PCM:
        """The near samples without the echo of the far ones, in whole frames of 10 ms.

        Args:
            near: What the microphone brought (int16, mono).
            far: What was handed to the loudspeaker in the same time; as many samples, zeros where nothing was.

        Returns:
            The frames that these samples complete; what is left of another length waits for the next call. Samples are
            the same however the streams are cut.

        Raises:
            ValueError: the two have different lengths.
        """
        ...

    @property
    def report(self) -> EchoReport:
        """What it knows of the echo now."""
        ...


class NoCanceller:
    """Leaves the near samples as they are; implements `Canceller`."""

    report: Final = EchoReport()

    def process(self, near: PCM, far: PCM) -> PCM:
        """The near samples, at once. Raises `ValueError` when ``far`` has another length."""
        require_same_length(near, far)
        return near


class FrameCanceller(ABC):
    """Cuts two streams of ``rate_hz`` into frames of 10 ms, has each cancelled, and counts what that removed.

    Raises `AudioFormatError` for a rate that is no multiple of 1000 Hz from 8 to 48 kHz.
    """

    def __init__(self, rate_hz: int) -> None:
        if rate_hz not in _RATES_HZ:
            raise AudioFormatError(f"{rate_hz} Hz: a canceller takes multiples of 1000 Hz from 8000 to 48000 Hz")
        self._frame: Samples = rate_hz // 1000 * ECHO_FRAME_MS
        self._waiting = np.zeros(0, np.int16), np.zeros(0, np.int16)
        self._before = 0.0
        self._after = 0.0

    @abstractmethod
    def cancel(self, near: PCM, far: PCM) -> PCM:
        """One frame of the near end without the echo."""

    def process(self, near: PCM, far: PCM) -> PCM:
        """The frames that these samples complete, without the echo; see `Canceller.process`."""
        require_same_length(near, far)
        if len(self._waiting[0]):
            near, far = (np.concatenate(pair) for pair in zip(self._waiting, (near, far), strict=True))
        end = len(near) - len(near) % self._frame
        self._waiting = near[end:].copy(), far[end:].copy()
        out = np.empty(end, np.int16)
        for at in range(0, end, self._frame):
            frame = slice(at, at + self._frame)
            out[frame] = self.cancel(near[frame], far[frame])
            self._count(near[frame], far[frame], out[frame])
        return out

    def _count(self, near: PCM, far: PCM, out: PCM) -> None:
        if _power(far) > FAR_RMS**2:
            self._before = _KEPT * self._before + _power(near)
            self._after = _KEPT * self._after + _power(out)

    @property
    def erle_db(self) -> int | None:
        """See `EchoReport`; None until the far end speaks."""
        return round(10 * log10((self._before + 1) / (self._after + 1))) if self._before else None

    @property
    def report(self) -> EchoReport:
        """What it knows of the echo now."""
        return EchoReport(erle_db=self.erle_db)


def require_same_length(near: PCM, far: PCM) -> None:
    """Raise `ValueError` unless both streams brought the same time."""
    if len(near) != len(far):
        raise ValueError(f"{len(near)} near and {len(far)} far samples: a canceller takes the same time of both")


def _power(samples: PCM) -> float:
    wide = samples.astype(np.float32)
    return float(wide @ wide) / len(wide)

"""Taking the loudspeaker's sound out of the microphone's: one interface, and which output device needs it.

```
far, what is played --> loudspeaker ~~ room ~~> microphone --> near = the caller + an echo of far
                  \\________________ Canceller ______________/ --> the caller
```

On loudspeakers the agent hears itself and interrupts itself; on headphones and phones there is nothing to take out, and
what tries to hides the caller. So the device decides, by `CANCELS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from callwright.audio.formats import PCM
from callwright.ids import Ms

ECHO_FRAME_MS: Final[Ms] = 10
"""A canceller works in frames of this length."""


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
    """Leaves the near samples as they are: for headphones and phones."""

    report: Final = EchoReport()

    def process(self, near: PCM, far: PCM) -> PCM:
        """The near samples, at once. Raises `ValueError` when ``far`` has another length."""
        require_same_length(near, far)
        return near


def require_same_length(near: PCM, far: PCM) -> None:
    """Raise `ValueError` unless both streams brought the same time."""
    if len(near) != len(far):
        raise ValueError(f"{len(near)} near and {len(far)} far samples: a canceller takes the same time of both")

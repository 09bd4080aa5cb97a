"""The canceller that is built in: the delay is found, the loudspeaker's clock is followed, the path is learned.

```
far ---> FarEnd, read late on the microphone's clock ---> EchoPath ---> prediction
            ^ DelayFinder: jumps      ^ Timing: drift        ^ learns      | Trust: taken out
near -------+-------------------------+----------------------+-------------+---> Hush: the rest is softened ---> out
```

The caller's voice passes as it is: what is taken out is a filtered copy of what was played, and what softens the rest
opens for anything louder than it. With a silent far end the samples are the microphone's own.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from callwright.audio.echo import ECHO_FRAME_MS, FAR_RMS, EchoReport, FrameCanceller
from callwright.audio.echo_delay import DELAY_MS_MAX, DelayFinder
from callwright.audio.echo_far import FarEnd, Floats
from callwright.audio.echo_path import EchoPath
from callwright.audio.echo_rest import Hush, Trust
from callwright.audio.formats import PCM
from callwright.audio.mix import saturated
from callwright.ids import Ms, Samples

TAIL_MS: Final[Ms] = 200
"""How long an echo may last, from the first sound that comes back."""

_LEAD_MS: Final[Ms] = 5
"""So much before the strongest echo the filter begins."""
_MOVED_MS: Final[Ms] = 1
"""An echo that is found this far from where it was has moved; what is less is left to the timing."""
_PRESUMED_MS: Final[Ms] = 1_200
"""An echo that is not found in so much of the far end's speech is not there, and nothing is softened any more."""
_FORGOTTEN_MS: Final[Ms] = 1_200
"""When the far end has been silent for so long, nothing of it can come back, and no window holds any of it."""
_DRIFT_PPM_MAX: Final = 500
"""Clocks of sound cards differ by up to 200 ppm."""


class Timing:
    """How far the prediction lags behind the echo, and the drift of the clocks that makes it lag.

    What was missed, along the slope of the prediction, is the lag. A loop of two terms steers by it: the delay at once,
    the drift slowly, both only as far as the prediction outweighs what it missed.
    """

    _KEPT: Final = 0.9
    _LAG_MAX: Final = 0.5
    _STEER: Final = 0.1
    _LEARN: Final = 2e-3
    _SURE: Final = 10.0
    """A prediction that has so many times the power of what it missed is right."""

    def __init__(self, frame: Samples) -> None:
        self._drift_max = _DRIFT_PPM_MAX * frame / 1e6
        self._along = 0.0
        self._steep = 0.0
        self._loud = 0.0
        self._missed = 0.0
        self.drift = 0.0
        """By how much later each frame comes than the one before it, in samples."""

    def correct(self, predicted: Floats, missed: Floats) -> float:
        """By how many samples later the next frame of the far end has to be read."""
        slope = predicted[2:] - predicted[:-2]  # over two samples
        self._along = self._KEPT * self._along - float(missed[1:-1] @ slope) / 2
        self._steep = self._KEPT * self._steep + float(slope @ slope) / 4 + len(slope)
        lag = min(max(self._along / self._steep, -self._LAG_MAX), self._LAG_MAX)
        loud, left = float(predicted @ predicted), float(missed @ missed)
        self._loud = self._KEPT * self._loud + loud
        self._missed = self._KEPT * self._missed + left
        lag *= loud / (loud + left + len(missed))
        self.drift = min(max(self.drift + self._LEARN * lag, -self._drift_max), self._drift_max)
        return self.drift + self._STEER * lag

    @property
    def is_sure(self) -> bool:
        """Whether the prediction lately was right, so that the echo is where it was."""
        return self._loud > self._SURE * self._missed


class KalmanCanceller(FrameCanceller):
    """Cancels the echo in a stream of ``rate_hz``; implements `callwright.audio.echo.Canceller`.

    Raises `AudioFormatError` for a rate that is no multiple of 1000 Hz from 8 to 48 kHz.
    """

    def __init__(self, rate_hz: int) -> None:
        super().__init__(rate_hz)
        self._per_ms: Samples = rate_hz // 1000
        partitions = TAIL_MS // ECHO_FRAME_MS
        self._span: Samples = (partitions + 1) * self._frame
        self._far = FarEnd(self._frame, DELAY_MS_MAX * self._per_ms, self._span)
        self._path = EchoPath(self._frame, partitions)
        self._finder = DelayFinder(rate_hz)
        self._timing = Timing(self._frame)
        self._trust = Trust(self._frame)
        self._hush = Hush(self._frame)
        self._spoken_ms: Ms = 0
        self._silent_ms: Ms = _FORGOTTEN_MS
        self._seat: float | None = None
        """Where in the filter the strongest echo lies, in samples, once it was found."""

    def cancel(self, near: PCM, far: PCM) -> PCM:
        """One frame of the near end without the echo."""
        played = far.astype(np.float32)
        loud = float(played @ played)
        self._silent_ms = 0 if loud else self._silent_ms + ECHO_FRAME_MS
        if self._silent_ms > _FORGOTTEN_MS:
            self._far.move(self._timing.drift)  # the clocks drift on
            return near
        self._far.push(played)
        found = self._finder.take(near, far, rests=self._seat is not None and self._timing.is_sure)
        if found is not None and self._align(found):
            self._path.hear_again(self._far.read(self._span))
        else:
            self._path.hear(self._far.read(2 * self._frame))
        predicted = self._path.predict()
        heard = near.astype(np.float32)
        missed = heard - predicted
        late = self._timing.drift if self._path.rests else self._timing.correct(predicted, missed)
        if not self._far.move(late):
            self._timing.drift = 0.0  # the end of what is kept: there the filter follows alone
        self._path.learn(missed)
        left = self._trust.take_out(heard, predicted)
        if self._seat is not None or self._is_presumed(loud):
            left = self._hush.soften(left, self._path.expected)
        return saturated(left)

    def _is_presumed(self, loud: float) -> bool:
        """Whether the far end has spoken too little to be found, so that an echo is taken for granted."""
        self._spoken_ms += ECHO_FRAME_MS * (loud > self._frame * FAR_RMS**2)
        return self._spoken_ms < _PRESUMED_MS

    def _align(self, found: float) -> bool:
        """Read the far end such that the echo, which is ``found`` samples late, comes where the filter has it.

        Returns whether that changes anything.
        """
        before = self._far.delay
        if self._seat is None:
            self._far.delay = float(max(0, round(found) - _LEAD_MS * self._per_ms))
            self._path.shift(round(before - self._far.delay))
        elif abs(found - before - self._seat) > _MOVED_MS * self._per_ms:
            self._far.delay = max(0.0, found - self._seat)
            self._path.shift(round(found - self._far.delay - self._seat))
        else:
            return False
        self._seat = found - self._far.delay
        return True

    @property
    def report(self) -> EchoReport:
        """What it knows of the echo now."""
        if self._seat is None:
            return super().report
        return EchoReport(
            delay_ms=round((self._far.delay + self._seat) / self._per_ms),
            drift_ppm=-round(self._timing.drift / self._frame * 1e6),
            erle_db=self.erle_db,
        )

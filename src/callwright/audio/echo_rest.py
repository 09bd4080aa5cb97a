"""What is let through once an echo is predicted: the microphone without the prediction, and softer where only a rest of
the echo is left.

The filter knows, frame by frame, how much it may have missed. What is clearly louder than that is the caller, and opens
the way within 2 ms; nothing looks at single frequencies, so his voice is never coloured.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from callwright.audio.echo_far import Floats
from callwright.ids import Samples


class Trust:
    """How much of a prediction is taken out: all of it, unless that would make the microphone louder.

    A path that has just moved or gone (somebody plugs headphones in) is predicted wrongly. Taking out ``part`` of a
    prediction makes a sound softer as long as ``part`` is below twice their likeness.
    """

    _KEPT: Final = 0.95

    def __init__(self, frame: Samples) -> None:
        self._ramp = _ramp(frame, frame)
        self._along = 0.0
        self._size = 0.0
        self._part = 1.0

    def take_out(self, near: Floats, predicted: Floats) -> Floats:
        """The near samples without the trusted part of the prediction, which changes along the frame."""
        self._along = self._KEPT * self._along + float(near @ predicted)
        self._size = self._KEPT * self._size + float(predicted @ predicted)
        before, self._part = self._part, min(max(2 * self._along / (self._size + 1.0), 0.0), 1.0)
        if before == self._part == 1.0:
            return near - predicted
        return near - predicted * (before + (self._part - before) * self._ramp)


class Hush:
    """Softens the rest of an echo, by 24 dB at most; opens for what is louder than the filter may have missed."""

    _LEAST: Final = 1 / 16
    _CLEAR: Final = 2.5
    """What has this many times the power of the rest is opened for."""
    _KEPT: Final = 0.8
    _AUDIBLE: Final = 3.0
    """Less than this, in int16 steps, is no rest."""
    _OPENS_IN: Final = 5
    """Opens in this part of a frame: 2 ms."""

    def __init__(self, frame: Samples) -> None:
        self._opens = _ramp(frame // self._OPENS_IN, frame)
        self._closes = _ramp(frame, frame)
        self._gain = 1.0

    def soften(self, left: Floats, expected: float) -> Floats:
        """What is left of a frame, softer where it is no more than the rest: ``expected``, a sum of squares."""
        wanted = 1.0
        if expected > len(left) * self._AUDIBLE**2:
            wanted = max(1 - self._CLEAR * expected / (float(left @ left) + 1.0), 0.0) ** 0.5
        before = self._gain
        self._gain = max(wanted, self._KEPT * before + (1 - self._KEPT) * self._LEAST)
        if before == self._gain == 1.0:
            return left
        return left * (before + (self._gain - before) * (self._opens if self._gain > before else self._closes))


def _ramp(within: Samples, count: Samples) -> Floats:
    """From 0 to 1 ``within`` so many samples, then 1."""
    return np.minimum(np.arange(1, count + 1) / within, 1).astype(np.float32)

"""What is let through once an echo is predicted: the microphone without the prediction, and softer where only a rest of
the echo is left.

The rest is known by how loud it was, against the prediction, while nothing else sounded. What is clearly louder than
that is the caller, and opens the way within 2 ms; nothing looks at single frequencies, so his voice is never coloured.
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

    def __init__(self) -> None:
        self._along = 0.0
        self._size = 0.0
        self._part = 1.0

    def take_out(self, near: Floats, predicted: Floats) -> Floats:
        """The near samples without the trusted part of the prediction, which changes along the frame."""
        self._along = self._KEPT * self._along + float(near @ predicted)
        self._size = self._KEPT * self._size + float(predicted @ predicted)
        before, self._part = self._part, min(max(2 * self._along / (self._size + 1.0), 0.0), 1.0)
        if before == self._part:
            return near - np.float32(before) * predicted
        return near - np.linspace(before, self._part, len(near), dtype=np.float32) * predicted


class Hush:
    """Softens what is left of an echo, by 18 dB at most, and opens for whatever is louder than it."""

    _LEAST: Final = 0.125
    _CLEAR: Final = 4.0
    """What is this many times the power of the rest is opened for."""
    _KEPT: Final = 0.8
    _FALL: Final = 0.2
    _RISE: Final = 10 ** (1.5 / 10 / 100)
    """The rest is believed to have grown by 1.5 dB a second at most: a caller who talks on does not close the way."""
    _LEAK_MIN: Final = 1e-4
    _AUDIBLE: Final = 10.0
    """A prediction below this level, in int16 steps, says nothing about the rest."""
    _OPENS_IN: Final = 5
    """Opens in this part of a frame: 2 ms."""

    def __init__(self) -> None:
        self._left = 0.0
        self._echo = 0.0
        self._leak = 1.0
        """Power of the rest, of the predicted echo's."""
        self._gain = 1.0

    def soften(self, left: Floats, predicted: Floats) -> Floats:
        """What is left of a frame, softer where it is no more than the echo's rest."""
        power, echo = float(left @ left), float(predicted @ predicted)
        if echo > len(left) * self._AUDIBLE**2:
            self._follow(power, echo)
        rest = self._CLEAR * self._leak * max(echo, self._echo)
        wanted = max(1 - rest / (power + 1.0), 0.0) ** 0.5 if rest > 1 else 1.0
        before = self._gain
        self._gain = max(wanted, self._KEPT * before + (1 - self._KEPT) * self._LEAST)
        if before == self._gain == 1.0:
            return left
        return left * _ramp(before, self._gain, len(left) // (self._OPENS_IN if self._gain > before else 1), len(left))

    def _follow(self, power: float, echo: float) -> None:
        self._left = self._KEPT * self._left + (1 - self._KEPT) * power
        self._echo = self._KEPT * self._echo + (1 - self._KEPT) * echo
        leak = max(self._left / self._echo, self._LEAK_MIN)
        falls = leak < self._leak
        self._leak = self._leak * (leak / self._leak) ** self._FALL if falls else min(1.0, self._leak * self._RISE)


def _ramp(start: float, end: float, within: Samples, count: Samples) -> Floats:
    ramp = np.full(count, end, np.float32)
    ramp[:within] = np.linspace(start, end, within)
    return ramp

"""The path from loudspeaker to microphone, learned as a filter: a frequency-domain Kalman filter in partitions.

The state is the room's impulse response, cut into partitions of one frame, each as the spectrum of two frames. Every
bin of every partition carries its own uncertainty. A frame is predicted; what was not predicted moves each bin by its
part of the blame: its uncertainty over all uncertainty and the caller's loudness in that bin. So the caller's voice
stops the learning by itself, bin by bin, and no double-talk detector is needed. After G. Enzner and P. Vary,
"Frequency-domain adaptive Kalman filter for acoustic echo control in hands-free telephones" (Signal Processing 86,
2006), and F. Kuech, E. Mabande and G. Enzner, "State-space architecture of the partitioned-block-based acoustic echo
controller" (ICASSP 2014).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from callwright.audio.echo_far import Floats
from callwright.ids import Samples

Spectra = NDArray[np.complex64]

_EAGER: Final = 1_000
"""Lessons that are taken frame by frame, from the start and once the response was moved. Then every other frame is one:
what is left to learn is how the room changes."""
_AT_ONCE: Final = 4
"""Lessons after which the state fades, and partitions that are constrained then: one transform of several is cheaper
than several."""
_KEPT: Final = np.float32(0.999**_AT_ONCE)
"""What of the state is expected to be there still so many frames later; the rest is the room's own change."""
_AT_FIRST: Final = 0.1
"""Uncertainty of the first partition at the start: an echo of 30 % is no surprise. What an echo of 5 % is overrated by
only keeps it soft until it is learned."""
_LESSON: Final = 0.1
"""How much surer a frame makes. It would be 1/2 if the partitions learned of different sounds; but speech goes on for
many frames, so they learn of the same, and a filter that takes it for more is sure too early and learns no more."""
_UNSURE_AGAIN: Final = np.float32(0.1)
"""The part of it that is back, at least, when the response was moved."""
_FALL_DB: Final = 2.0
"""How much less is expected of each further partition: a room whose sound decays by 60 dB in 0.3 s."""
_CALLER_KEPT: Final = 0.7
_CALLER_ONSET: Final = 0.5
_CALLER_LEAST: Final = 0.3
_FLOOR: Final = 3.0
"""What a microphone makes by itself, in int16 steps. A filter that can be wrong by less has nothing to learn."""


class EchoPath:
    """Predicts the echo of a frame and learns from what it missed. ``partitions`` frames of ``frame`` samples long."""

    def __init__(self, frame: Samples, partitions: int) -> None:
        bins = frame + 1
        self._frame = frame
        self._count = partitions
        self._far = np.zeros((2 * partitions, bins), np.complex64)  # newest first from row `_newest` on
        self._far_power = np.zeros((2 * partitions, bins), np.float32)
        self._newest = partitions
        fall = 10 ** (-_FALL_DB / 10 * np.arange(partitions))
        self._at_first = np.repeat((_AT_FIRST * fall)[:, None], bins, axis=1).astype(np.float32)
        self._unsure = self._at_first.copy()
        self._path = np.zeros((partitions, bins), np.complex64)
        self._caller = np.zeros(bins, np.float32)
        self._late = (1 - 2 * (np.arange(bins) % 2)).astype(np.float32)  # a frame later, as a factor of a spectrum
        self._least = np.float32(frame * _FLOOR**2)
        self._lessons = 0
        self.rests = False
        """Whether the present frame is no lesson."""
        self.expected = 0.0
        """How much of the present frame's echo the prediction may have missed, as a sum of squares."""

    def hear(self, late: Floats) -> None:
        """Two frames of the far end, the older one first, of which one was there at the last call."""
        if not self._newest:
            kept = self._count - 1
            self._far[-kept:] = self._far[:kept]
            self._far_power[-kept:] = self._far_power[:kept]
            self._newest = self._count + 1
        self._newest -= 1
        self._set(self._newest, np.fft.rfft(late))

    def hear_again(self, late: Floats) -> None:
        """All that the filter spans, up to the present frame: ``partitions`` + 1 frames, read at another delay."""
        frames = np.lib.stride_tricks.sliding_window_view(late, 2 * self._frame)[:: self._frame]
        self._newest = self._count
        self._set(slice(self._count, None), np.fft.rfft(frames[::-1]))

    def _set(self, rows: int | slice, spectra: NDArray[np.complexfloating]) -> None:
        self._far[rows] = spectra
        self._far_power[rows] = _power(spectra)

    def predict(self) -> Floats:
        """The echo in the present frame."""
        self.rests = not self.rests and self._lessons >= _EAGER
        spectrum = np.add.reduce(self._path * self._far[self._newest : self._newest + self._count])
        return np.fft.irfft(spectrum)[self._frame :].astype(np.float32, copy=False)

    def learn(self, missed: Floats) -> None:
        """Move the state by what of the present frame was not predicted: the caller, noise, and the filter's error."""
        rows = slice(self._newest, self._newest + self._count)
        far, power = self._far[rows], self._far_power[rows]
        blame = self._unsure * power
        left = np.add.reduce(blame) / 2
        self.expected = float(np.add.reduce(left)) / self._frame
        if self.rests or float(np.maximum.reduce(left)) < self._least:
            return
        error = np.fft.rfft(missed, 2 * self._frame).astype(np.complex64, copy=False) * self._late
        all_power = left + self._caller_power(error, left)
        step = far.conj()
        step *= error / all_power
        step *= self._unsure
        self._path += step
        blame *= -_LESSON / all_power
        blame += 1
        self._unsure *= blame
        self._lessons += 1
        if self._lessons % _AT_ONCE == 0:
            first = self._lessons % self._count
            self._fade()
            self._constrain(slice(first, first + _AT_ONCE))

    def _caller_power(self, error: Spectra, left: Floats) -> Floats:
        """The near end's power in each bin, up at once and down slowly, less what the filter itself may have missed."""
        power = _power(error)
        now = (power + left) * self._caller / (2 * (left + self._caller) + 1e-9)
        now = np.maximum(now, _CALLER_LEAST * power)
        self._caller = np.maximum(_CALLER_KEPT * self._caller + (1 - _CALLER_KEPT) * now, _CALLER_ONSET * now)
        return self._caller + self._least

    def _fade(self) -> None:
        """Let the room change a little."""
        self._path *= _KEPT
        self._unsure *= _KEPT**2
        self._unsure += (1 - _KEPT**2) * _power(self._path)

    def _constrain(self, some: slice) -> None:
        """Keep these partitions to one frame each: what is beyond would be heard a frame late."""
        response = np.fft.irfft(self._path[some])
        self._path[some] = np.fft.rfft(response[:, : self._frame], 2 * self._frame)

    def shift(self, samples: Samples) -> None:
        """Move the learned response later by so many samples, or earlier; of what comes in nothing is known yet."""
        response = np.fft.irfft(self._path)[:, : self._frame].astype(np.float32).ravel()
        halves = np.zeros((self._count, 2 * self._frame), np.float32)
        halves[:, : self._frame] = _moved(response, samples, np.zeros_like(response)).reshape(-1, self._frame)
        self._path[:] = np.fft.rfft(halves)
        self._lessons = 0
        unsure = _moved(self._unsure, round(samples / self._frame), self._at_first)
        self._unsure = np.maximum(unsure, _UNSURE_AGAIN * self._at_first)


def _power(spectra: NDArray[np.complexfloating]) -> Floats:
    real, imag = spectra.real, spectra.imag
    power: Floats = real * real + imag * imag
    return power


def _moved(values: Floats, by: int, new: Floats) -> Floats:
    """The values ``by`` places further on, along the first axis; those of ``new`` where none come from."""
    moved = new.copy()
    count = max(0, len(values) - abs(by))
    if by >= 0:
        moved[by:] = values[:count]
    else:
        moved[:count] = values[-by:]
    return moved

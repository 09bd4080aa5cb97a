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

_KEPT: Final = 0.999
"""What of the state is expected to be there still a frame later; the rest is the room's own change."""
_AT_FIRST: Final = 0.02
"""Uncertainty of the first partition at the start: between an echo of 5 % and one of 50 %."""
_FALL_DB: Final = 2.0
"""How much less is expected of each further partition: a room whose sound decays by 60 dB in 0.3 s."""
_CALLER_KEPT: Final = 0.7
_CALLER_ONSET: Final = 0.5
_CALLER_LEAST: Final = 0.3
_QUIET: Final = 30.0
"""A far end that is weaker than this, in int16 steps (-60 dBFS), teaches nothing."""
_FLOOR: Final = 3.0
"""The least level of the near end, in int16 steps: what a microphone makes by itself."""


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
        self._turn = 0

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
        """All that the filter spans: ``partitions`` + 1 frames, read at another delay than they were."""
        frames = np.lib.stride_tricks.sliding_window_view(late, 2 * self._frame)[:: self._frame]
        self._newest = self._count
        self._set(slice(self._count, None), np.fft.rfft(frames[::-1]))

    def _set(self, rows: int | slice, spectra: NDArray[np.complexfloating]) -> None:
        self._far[rows] = spectra
        self._far_power[rows] = spectra.real**2 + spectra.imag**2

    def predict(self) -> Floats:
        """The echo in the present frame."""
        rows = slice(self._newest, self._newest + self._count)
        echo = np.fft.irfft(np.einsum("pk,pk->k", self._path, self._far[rows]))
        return echo[self._frame :].astype(np.float32)

    def learn(self, missed: Floats) -> None:
        """Move the state by what of the present frame was not predicted: the caller, noise, and the filter's error."""
        rows = slice(self._newest, self._newest + self._count)
        far, power = self._far[rows], self._far_power[rows]
        bins = self._frame + 1
        if float(power.sum()) < 2 * self._frame * _QUIET**2 * bins:
            return
        error = np.fft.rfft(np.concatenate((np.zeros(self._frame, np.float32), missed))).astype(np.complex64)
        left = np.einsum("pk,pk->k", self._unsure, power) / 2
        gain = self._unsure / (left + self._caller_power(error, left))
        self._path += gain * far.conj() * error
        self._path *= np.float32(_KEPT)
        self._constrain(self._turn)
        self._turn = (self._turn + 1) % self._count
        gain *= power
        self._unsure *= np.float32(_KEPT**2) * (1 - gain / 2)
        self._unsure += np.float32(1 - _KEPT**2) * (self._path.real**2 + self._path.imag**2)

    def _caller_power(self, error: Spectra, left: Floats) -> Floats:
        """The near end's power in each bin, up at once and down slowly, less what the filter itself may have missed."""
        power = error.real**2 + error.imag**2
        share = self._caller / (left + self._caller + 1e-9)
        now = np.maximum(share * (power + left) / 2, _CALLER_LEAST * power)
        self._caller = np.maximum(_CALLER_KEPT * self._caller + (1 - _CALLER_KEPT) * now, _CALLER_ONSET * now)
        return self._caller + np.float32(self._frame * _FLOOR**2)

    def _constrain(self, partition: int) -> None:
        """Keep a partition to one frame: the other half of its spectrum's span would be heard a frame late."""
        response = np.fft.irfft(self._path[partition])
        response[self._frame :] = 0
        self._path[partition] = np.fft.rfft(response)

    def shift(self, samples: Samples) -> None:
        """Move the learned response later by so many samples, or earlier; of what comes in nothing is known yet."""
        response = np.fft.irfft(self._path)[:, : self._frame].astype(np.float32).ravel()
        halves = np.zeros((self._count, 2 * self._frame), np.float32)
        halves[:, : self._frame] = _moved(response, samples, np.zeros_like(response)).reshape(-1, self._frame)
        self._path[:] = np.fft.rfft(halves)
        self._unsure = _moved(self._unsure, round(samples / self._frame), self._at_first)


def _moved(values: Floats, by: int, new: Floats) -> Floats:
    """The values ``by`` places further on, along the first axis; those of ``new`` where none come from."""
    moved = new.copy()
    count = max(0, len(values) - abs(by))
    if by >= 0:
        moved[by:] = values[:count]
    else:
        moved[:count] = values[-by:]
    return moved

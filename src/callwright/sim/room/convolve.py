"""Convolution of a stream, frame by frame and without delay.

The response is cut into pieces as long as a frame, and kept as their spectra. Each frame is transformed once, together
with the one before it; what comes out is the sum, over all pieces, of a piece's spectrum and that of the frame so long
ago (overlap-save).

    frames       ... n-2   n-1    n
    response      piece 2  1      0      out[n] = sum of frame[n - k] * piece[k]
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]


class Convolver:
    """A stream through an impulse response: frames of ``frame`` samples in, as many out (float64)."""

    def __init__(self, response: Floats, frame: int) -> None:
        self._gain = float(response[0]) if len(response) == 1 else None  # nothing to transform
        pieces = -(-len(response) // frame)
        padded = np.pad(response, (0, pieces * frame - len(response))).reshape(pieces, frame)
        spectra = np.fft.rfft(padded, 2 * frame, axis=1)
        self._spectra = np.concatenate((spectra, spectra))  # twice: whatever the newest row is, one slice fits
        self._seen = np.zeros_like(spectra)
        self._newest = 0
        self._before = np.zeros(frame)
        self._ringing = 0  # frames until everything has rung out

    @property
    def is_still(self) -> bool:
        """Whether silence that comes now would come out as silence."""
        return self._ringing == 0

    def process(self, samples: Floats) -> Floats:
        """The next frame."""
        if self._gain is not None:
            return samples * self._gain
        pieces = len(self._seen)
        self._ringing = pieces + 1 if samples.any() else max(0, self._ringing - 1)
        self._newest = (self._newest - 1) % pieces
        self._seen[self._newest] = np.fft.rfft(np.concatenate((self._before, samples)))
        self._before = samples
        turned = self._spectra[pieces - self._newest : 2 * pieces - self._newest]
        return np.fft.irfft(np.add.reduce(self._seen * turned), 2 * len(samples))[len(samples) :]

"""What a telephone line does to a voice: it passes 300 to 3400 Hz, and hisses.

The filter is linear-phase, 8 ms long on each side. Coefficients are multiples of 2^-24, so every sum is exact in
float64 and the samples do not depend on the order of summation.
"""

from __future__ import annotations

import random
from functools import cache

import numpy as np
from numpy.typing import NDArray

from callwright.audio.formats import PCM
from callwright.audio.mix import saturated
from callwright.ids import Ms

LOW_HZ = 300
HIGH_HZ = 3_400
"""The ends of the band, 6 dB down."""
HISS_MS: Ms = 5_000
"""A round of the hiss."""

_HALF_MS: Ms = 8
_KAISER_BETA = 4.5
_COEFFICIENT_STEP = 2.0**-24
_UNIFORM_RMS = 32768 / 3**0.5
_ADDED = 4  # uniform numbers in a row add up to nearly a bell curve


@cache
def phone_response(rate_hz: int) -> NDArray[np.float64]:
    """The band as an impulse response, centred: what passes it as it is comes out 8 ms later. Read-only."""
    half = _HALF_MS * rate_hz // 1000
    at = np.arange(-half, half + 1)
    high, low = (2 * min(hz / rate_hz, 0.5) * np.sinc(2 * min(hz / rate_hz, 0.5) * at) for hz in (HIGH_HZ, LOW_HZ))
    taps = (high - low) * np.kaiser(2 * half + 1, _KAISER_BETA)
    response: NDArray[np.float64] = np.rint(taps / _COEFFICIENT_STEP) * _COEFFICIENT_STEP
    response.flags.writeable = False
    return response


def over_phone(samples: PCM, rate_hz: int) -> PCM:
    """A whole recording (int16, mono) as a telephone passes it: the same length, content where it was."""
    half = _HALF_MS * rate_hz // 1000
    return saturated(np.convolve(samples.astype(np.float64), phone_response(rate_hz))[half : half + len(samples)])


def hiss(level_dbfs: float, rate_hz: int, rng: random.Random) -> PCM:
    """Noise of a line (int16, mono) at this RMS level, `HISS_MS` long, to be repeated: its end runs into its start."""
    count = HISS_MS * rate_hz // 1000
    numbers = np.frombuffer(rng.randbytes(2 * _ADDED * count), np.dtype("<i2"))
    white = numbers.reshape(count, _ADDED).sum(axis=1) / (_UNIFORM_RMS * _ADDED**0.5)
    response = phone_response(rate_hz)
    around = np.concatenate((white, white[: len(response) - 1]))
    gain = 32768 * 10 ** (level_dbfs / 20) / float(np.sqrt(response @ response))
    return saturated(np.convolve(around, response, "valid") * gain)

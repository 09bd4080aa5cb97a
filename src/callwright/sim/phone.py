"""What a telephone line does to a voice: it passes 300 to 3400 Hz, 3 dB softer at either end, and little else.

The lower end falls as gently as that of telephone sets, 12 dB down at 50 Hz, and the upper one 20 dB in 400 Hz.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from callwright.ids import Ms

LOW_HZ = 200
HIGH_HZ = 3_500
"""Where it is 6 dB softer."""
LATE_MS: Ms = 2
"""By so much what passes is later."""

_KAISER_BETA = 4.5


def phone_response(rate_hz: int) -> NDArray[np.float64]:
    """The band as an impulse response: linear-phase, `LATE_MS` long on each side, and 0 dB inside the band."""
    half = LATE_MS * rate_hz // 1000
    at = np.arange(-half, half + 1)
    above, below = (2 * hz / rate_hz * np.sinc(2 * hz / rate_hz * at) for hz in (HIGH_HZ, LOW_HZ))
    return np.asarray((above - below) * np.kaiser(2 * half + 1, _KAISER_BETA), np.float64)

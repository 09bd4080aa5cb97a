"""WebRTC's echo canceller (AEC3), which the extra ``aec`` installs: it removes more echo, and more of the caller.

It is here to be compared with and chosen; `bench/echo.py` measures both. Noise suppression, gain control and the
high-pass filter stay off, and it is not told the delay: it finds it, and being told changes nothing.
"""

from __future__ import annotations

import numpy as np
from livekit.rtc import AudioFrame
from livekit.rtc.apm import AudioProcessingModule

from callwright.audio.echo import FrameCanceller
from callwright.audio.formats import PCM


class Aec3Canceller(FrameCanceller):
    """Cancels the echo in a stream of ``rate_hz``; implements `callwright.audio.echo.Canceller`.

    It reports no delay and no drift. Raises `AudioFormatError` for a rate that is no multiple of 1000 Hz from 8 to
    48 kHz.
    """

    def __init__(self, rate_hz: int) -> None:
        super().__init__(rate_hz)
        self._rate_hz = rate_hz
        self._module = AudioProcessingModule(echo_cancellation=True)

    def cancel(self, near: PCM, far: PCM) -> PCM:
        """One frame of the near end without the echo."""
        self._module.process_reverse_stream(self._framed(far))
        frame = self._framed(near)
        self._module.process_stream(frame)
        return np.frombuffer(frame.data, np.int16)

    def _framed(self, samples: PCM) -> AudioFrame:
        return AudioFrame(bytearray(samples.tobytes()), self._rate_hz, 1, len(samples))

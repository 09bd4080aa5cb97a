"""One side of a call's sound, kept in an unnamed file: an hour of it costs no memory while the call lasts.

Silence that is known to be such is not written: the file has holes there, which take no room on the disk either.
"""

from __future__ import annotations

import tempfile
import weakref
from typing import TYPE_CHECKING

import numpy as np

from callwright.sim.caller import silent_frame

if TYPE_CHECKING:
    from callwright.audio.formats import PCM


class Spool:
    """Frames of 20 ms (int16, mono) at this rate, in order."""

    def __init__(self, rate_hz: int) -> None:
        self._silence = silent_frame(rate_hz)
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the object
        weakref.finalize(self, self._file.close)
        self._written = 0
        """Frames before the place in the file."""
        self.frames = 0
        """Frames so far."""

    def add(self, samples: PCM) -> None:
        """Keep the next frame."""
        if samples is not self._silence:
            if self._written != self.frames:
                self._file.seek(self.frames * self._silence.nbytes)
            self._file.write(np.ascontiguousarray(samples).data)
            self._written = self.frames + 1
        self.frames += 1

    def read(self, frames: int) -> PCM:
        """The first so many frames as one array, read from the file when it is looked at; silent past the last."""
        if not frames:
            return np.zeros(0, np.int16)
        self._file.truncate(frames * self._silence.nbytes)
        self._file.flush()
        return np.asarray(np.memmap(self._file, np.int16, "r"))

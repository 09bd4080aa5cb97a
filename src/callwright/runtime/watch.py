"""What is watched of the caller's frames: that they come at all, and, while a goodbye is said, how loud they are.

Neither costs anything per frame that is not watched: whether frames come is seen by comparing their count, and levels
are measured only between ``WatchCaller`` and ``UnwatchCaller``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from callwright.audio.encodings import DECODE
from callwright.audio.formats import AudioFormat
from callwright.audio.levels import level_dbfs
from callwright.ids import Ms

SILENT_LINE_MS: Final[Ms] = 30_000
"""A line that has brought no frame for so long is dead, whatever it says."""
_LOOK_MS: Final[Ms] = 5_000

FLOOR_DBFS: Final = -50
"""Nothing below this is speech."""
MARGIN_DB: Final = 10
"""Speech is so much louder than the noise around it."""
_RISE_FRAMES: Final = 10
"""The estimate of the noise falls at once, and rises by 1 dB in so many frames (200 ms): a word does not lift it."""


class Loudness:
    """Whether the caller's frames are louder than the steady noise around him.

    The noise is the level that is never fallen short of for long: it is taken from the quietest frames so far, and
    follows a rising street slowly.
    """

    def __init__(self, stream_format: AudioFormat) -> None:
        """``stream_format`` is that of the frames."""
        self.is_loud = False
        self._decode = DECODE[stream_format.encoding]
        self._noise_db: int | None = None
        self._frames = 0

    def take(self, frame: bytes) -> bool:
        """Measure a frame; true if ``is_loud`` has changed by it."""
        level_db = level_dbfs(self._decode(frame))
        self._frames += 1
        if self._noise_db is None or level_db < self._noise_db:
            self._noise_db = level_db
        elif self._frames % _RISE_FRAMES == 0 and level_db > self._noise_db:
            self._noise_db += 1
        was_loud, self.is_loud = self.is_loud, level_db >= max(FLOOR_DBFS, self._noise_db + MARGIN_DB)
        return self.is_loud is not was_loud


class FrameWatch:
    """Tells once when no frame has come for ``SILENT_LINE_MS`` (up to 5 s later)."""

    def __init__(self, count: Callable[[], int], fell_silent: Callable[[], None]) -> None:
        """``count`` is the number of frames so far; begin with ``start``."""
        self._count = count
        self._fell_silent = fell_silent
        self._seen = 0
        self._still_ms: Ms = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Watch from now on."""
        self._timer = asyncio.get_running_loop().call_later(_LOOK_MS / 1000, self._look)

    def stop(self) -> None:
        """Watch no longer; idempotent."""
        if self._timer:
            self._timer.cancel()

    def _look(self) -> None:
        count = self._count()
        self._still_ms = self._still_ms + _LOOK_MS if count == self._seen else 0
        self._seen = count
        if self._still_ms >= SILENT_LINE_MS:
            self._fell_silent()
        else:
            self.start()

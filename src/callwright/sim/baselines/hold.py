"""What a baseline has for calls on hold: keys, and a way of saving, by which what it takes for music is not sent.

```
line     ~~ ~ ~~~   ♪♪♪♪♪♪♪♪♪♪♪♪♪♪♪♪♪♪♪♪♪♪♪♪♪♪♪   ~~ ~~ ~
sent     ──────────────────┤ three seconds of it ├───────
```

A server ends a turn, and keeps its session, by what it is sent. To one that is sent nothing a turn that music was taken
for goes on, and after five minutes of it the client is gone.
"""

from __future__ import annotations

from typing import Final

from callwright.audio.dtmf import tones
from callwright.audio.encodings import DECODE, ENCODE
from callwright.audio.formats import FRAME_MS, Encoding
from callwright.audio.levels import level_dbfs
from callwright.core.ports import Line
from callwright.declare.tools import Facts
from callwright.ids import ItemId, Ms, ToolCallId

MUSIC_MS: Final[Ms] = 3_000
"""So much sound without a pause is music; who speaks makes one every two seconds."""
QUIET_DBFS: Final = -40
"""A frame that is no louder is a pause."""


class MusicGate:
    """Tells music from speech by its having no pauses."""

    def __init__(self, encoding: Encoding) -> None:
        self._decode = DECODE[encoding]
        self._sound_ms: Ms = 0
        """Sound since the last pause."""

    def lets(self, frame: bytes) -> bool:
        """Whether this frame, 20 ms, is to be sent: it lies in no music."""
        self._sound_ms = self._sound_ms + FRAME_MS if level_dbfs(self._decode(frame)) > QUIET_DBFS else 0
        return self._sound_ms < MUSIC_MS


class Keypad:
    """Presses keys at once, as tones behind what the line has been handed, and lets whatever comes next follow."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def press(self, keys: str, _tool_call_id: ToolCallId) -> Facts:
        """Press keys. Raises UsageError for what is none."""
        output = self._line.output_format
        self._line.play(ItemId("keys"), 0, ENCODE[output.encoding](tones(keys, output.rate_hz)))
        return {"pressed": keys}

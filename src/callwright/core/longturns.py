"""The caller's turns against how much of one the server keeps: what it drops is told, and counted.

```
turn    began ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓ longest_ms ▓▓▓▓▓▓▓│░░░░░░░░ dropped, told at once ░░░░░░░│ over: told how much
```

A queue's music may be taken for a turn that does not end: whoever speaks behind it is not heard in it.
"""

from __future__ import annotations

from callwright.core.outgoing import Outgoing
from callwright.ids import Ms


class LongTurns:
    """The lengths of one call's turns."""

    def __init__(self, longest_ms: Ms | None, out: Outgoing) -> None:
        """``longest_ms`` is how much of a turn the server keeps; None where no limit is known."""
        self.dropped_ms: Ms = 0
        """How much of the caller was dropped in all turns that are over."""
        self._longest_ms = longest_ms
        self._out = out
        self._full_ms: Ms | None = None
        """When the server keeps no more of the open turn; None while there is none, or no limit."""
        self._is_told = False

    def began(self, began_ms: Ms) -> None:
        """A turn is open."""
        self._full_ms = None if self._longest_ms is None else began_ms + self._longest_ms
        self._is_told = False

    def ended(self, now_ms: Ms) -> None:
        """It is over."""
        full_ms, self._full_ms = self._full_ms, None
        if full_ms is not None and now_ms > full_ms:
            self.dropped_ms += now_ms - full_ms
            self._out.note(f"{now_ms - full_ms} ms of the caller were dropped by the server: his turn was too long")

    def look(self, now_ms: Ms) -> None:
        """Tell of a turn that has become too long."""
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is not None and now_ms >= deadline_ms:
            self._is_told = True
            seconds = (self._longest_ms or 0) // 1000
            self._out.note(f"the caller's turn has lasted over {seconds} s; the server drops what comes of it now")

    def next_deadline_ms(self) -> Ms | None:
        """When the open turn becomes too long."""
        return None if self._is_told else self._full_ms

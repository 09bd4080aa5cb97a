"""Keys that the agent says it presses: where none is asked for within ``CLAIM_MS``, that goes on record.

Owns what was said of keys and is not borne out yet. Does not own the keys (``keys``).

```
reply "Pressing two."     tool asks for "2"       reply "Pressing two."
claim │────────────────────│ borne out             │──────── CLAIM_MS ────────│ noted
```

A key counts on either side of its words: it may be out before they are said.
"""

from __future__ import annotations

from callwright.claims.presses import claimed_keys
from callwright.claims.words import plain
from callwright.core.outgoing import Outgoing
from callwright.ids import Ms

CLAIM_MS: Ms = 10_000
"""How far a key may be from the words that say that it is pressed."""


class KeyClaims:
    """What was said of keys in one call."""

    def __init__(self, out: Outgoing) -> None:
        """The commands are the session's."""
        self._out = out
        self._claimed: dict[str, Ms] = {}
        """By key, when it counts as not pressed."""
        self._asked: dict[str, Ms] = {}
        """By key, until when it bears out what is said of it."""

    def wrote(self, text: str, now_ms: Ms) -> bool:
        """A reply says this; true if it says that keys are pressed."""
        keys = [key for _, key in claimed_keys(plain(text))]
        for key in keys:
            if now_ms > self._asked.get(key, -1):
                self._claimed.setdefault(key, now_ms + CLAIM_MS)
        return bool(keys)

    def asked(self, keys: str, now_ms: Ms) -> None:
        """A tool asks for these keys."""
        for key in keys:
            self._claimed.pop(key, None)
            self._asked[key] = now_ms + CLAIM_MS

    def look(self, now_ms: Ms) -> None:
        """Put on record what was only said."""
        for key in [key for key, due_ms in self._claimed.items() if now_ms >= due_ms]:
            del self._claimed[key]
            self._out.note("the agent said that it presses a key, and pressed none")

    def next_deadline_ms(self) -> Ms | None:
        """When the next claim counts as only said."""
        return min(self._claimed.values(), default=None)

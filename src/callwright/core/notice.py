"""Whether the caller has heard what he has to be told: that he talks to a machine, or that the call is recorded.

Owns, for one notice, how far it has come. Goes by what was heard of each reply, never by what was written; does not own
the hearing of replies (``heard``), or what follows from it (``keeping``).

```
model   writes "You're speaking with our automated assistant. Check-in is ..."
stage   UNSAID │ SAID ─ the reply ends, played out or cut; what the line took is at the ear ─│ HEARD
                 └─ cut before the notice's last word ─> UNSAID, until another reply holds it
```

The words count where one reply holds them one behind the other; what was heard of two cut replies is not put together.
An estimate of what was heard keeps a margin, so it never claims a notice too early.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from callwright.claims.words import plain
from callwright.core.table import Table
from callwright.core.transcript import Source, Speaker, Turn
from callwright.ids import ItemId, Ms


class Stage(Enum):
    """How far a notice has come."""

    UNSAID = auto()
    """No reply that may still be heard holds it."""
    SAID = auto()
    """It is in a reply that is being played, or under way to the ear."""
    HEARD = auto()
    """The caller has heard every word of it."""
    MISSED = auto()
    """The call ended before he had."""


class Cue(Enum):
    """What happens to a notice."""

    WRITTEN = auto()
    """A reply holds it whose end is not known."""
    CUT = auto()
    """That reply ended before the notice did."""
    HEARD = auto()
    ENDED = auto()


NOTICE: Table[Stage, Cue] = Table(
    "notice",
    Stage.UNSAID,
    {
        (Stage.UNSAID, Cue.WRITTEN): Stage.SAID,
        (Stage.UNSAID, Cue.ENDED): Stage.MISSED,
        (Stage.SAID, Cue.CUT): Stage.UNSAID,
        (Stage.SAID, Cue.HEARD): Stage.HEARD,
        (Stage.SAID, Cue.ENDED): Stage.MISSED,
    },
)


class Notice:
    """One notice of one call."""

    def __init__(self, words: str, latency_ms: Ms = 0) -> None:
        """``latency_ms`` is how long what was played is under way to the ear. A notice without words stays unsaid."""
        self.stage = NOTICE.start
        self.heard_ms: Ms | None = None
        """When it was known to be heard."""
        self.item_id: ItemId | None = None
        """The reply in which it was heard."""
        self._words = plain(words)
        self._latency_ms = latency_ms
        self._due_ms: Ms | None = None
        """When what was played of it is at the ear."""

    @property
    def is_awaited(self) -> bool:
        """Whether there is a notice that the caller may still come to hear."""
        return bool(self._words) and self.stage in (Stage.UNSAID, Stage.SAID)

    def look(self, turns: Iterable[Turn], now_ms: Ms) -> bool:
        """Go on by what is known of the conversation; true if the notice is heard now, and was not before."""
        if not self.is_awaited:
            return False
        replies = [turn for turn in turns if turn.speaker is Speaker.AGENT]
        played = next((reply for reply in replies if self._is_in(reply.heard)), None)
        is_said = any(reply.source is Source.PENDING and self._is_in(reply.written) for reply in replies)
        if self.stage is Stage.UNSAID and (played or is_said):
            self._move(Cue.WRITTEN)
        if self.stage is Stage.SAID and not (played or is_said):
            self._move(Cue.CUT)
        if played is None:
            self._due_ms = None
            return False
        self._due_ms = now_ms + self._latency_ms if self._due_ms is None else self._due_ms
        if now_ms < self._due_ms:
            return False
        self._move(Cue.HEARD)
        self.heard_ms, self.item_id, self._due_ms = now_ms, played.item_id, None
        return True

    def next_deadline_ms(self) -> Ms | None:
        """When to look again, whatever else happens."""
        return self._due_ms

    def call_is_over(self, turns: Iterable[Turn], now_ms: Ms) -> bool:
        """The call has ended, and ``turns`` hold what was at the ear by then; true if the notice was never heard."""
        self._latency_ms, self._due_ms = 0, None
        self.look(turns, now_ms)
        if self.is_awaited:
            self._move(Cue.ENDED)
        return self.stage is Stage.MISSED

    def _is_in(self, text: str) -> bool:
        words, wanted = plain(text), self._words
        return any(words[at : at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1))

    def _move(self, cue: Cue) -> None:
        self.stage = NOTICE.after(self.stage, cue)

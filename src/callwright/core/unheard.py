"""The caller's latest turn while its words are not known: another session would have to hear it again.

```
caller   speaks ▓▓▓▓▓▓▓▓│
server          started │ stopped ── reply ▒▒▒▒▒▒▒▒▒▒▒▒▒▒│ completed
words                                       transcript │   known from here on, or no longer needed: it was answered
```
"""

from __future__ import annotations

from dataclasses import dataclass

from callwright.core import events as on
from callwright.ids import ItemId, Ms, ResponseId

TAIL_MS: Ms = 1_000
"""So much of what was sent last is always heard again: a server takes 0.8 s to tell that the caller has begun."""
BEFORE_MS: Ms = 300
"""And so much of what was before the turn."""
KEPT_MS: Ms = 15_000
"""So much of what was sent is kept while a turn is open; one that began earlier is not heard again."""
QUIET_KEPT_MS: Ms = 2_000
"""And so much while none is: a server may take a murmur over a reply for a turn once it has gone on for 1.5 s."""


@dataclass(slots=True)
class _Turn:
    item_id: ItemId
    began_ms: Ms
    is_over: bool = False
    answer: ResponseId | None = None


class Unheard:
    """The turn of one call that would have to be heard again."""

    def __init__(self) -> None:
        self._turn: _Turn | None = None
        self._ended_ms: Ms = 0
        """Where the latest turn ended."""
        self._is_sent_again = False
        """A session is about to hear the turn again; it has not told that it begins."""

    @property
    def item_id(self) -> ItemId | None:
        """The turn; None while there is none."""
        return self._turn.item_id if self._turn else None

    @property
    def kept_ms(self) -> Ms:
        """How much of what was sent last has to be kept now, so that it can be heard again."""
        return QUIET_KEPT_MS if self._turn is None and not self._is_sent_again else KEPT_MS

    def take(self, now_ms: Ms) -> tuple[ItemId | None, Ms]:
        """The turn that is to be heard again, if any, and how much of the audio up to now; it is forgotten here."""
        turn, self._turn = self._turn, None
        since_ms = max(now_ms - TAIL_MS, self._ended_ms)
        if turn is None or now_ms - turn.began_ms + BEFORE_MS > KEPT_MS:
            return None, max(0, now_ms - since_ms)
        self._is_sent_again = True
        return turn.item_id, max(0, now_ms - min(since_ms, turn.began_ms - BEFORE_MS))

    def began(self, event: on.SpeechStarted, origin_ms: Ms) -> None:
        """He speaks; the session's audio clock counts from ``origin_ms``."""
        self._turn = _Turn(event.item_id, origin_ms + event.audio_start_ms)
        self._is_sent_again = False

    def ended(self, event: on.SpeechStopped, origin_ms: Ms) -> None:
        """His turn is over."""
        if self._turn is not None and self._turn.item_id == event.item_id:
            self._turn.is_over = True
        self._ended_ms = origin_ms + event.audio_end_ms

    def told(self, event: on.CallerTranscribed) -> None:
        """The words of a turn are known."""
        if self._turn is not None and self._turn.item_id == event.item_id:
            self._turn = None

    def answer_began(self, event: on.ResponseStarted) -> None:
        """A response opened: to his turn, if that is over."""
        if self._turn is not None and self._turn.is_over:
            self._turn.answer = event.response_id

    def answered(self, response_id: ResponseId) -> None:
        """A response was completed, or called a tool: its turn has had its effect."""
        if self._turn is not None and self._turn.answer == response_id:
            self._turn = None

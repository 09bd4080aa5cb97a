"""Whose turn it is, which response is open, and when a reply may be asked for.

The server decides when the caller speaks and answers each of his turns by itself. This machine follows it, and
owns the one thing that the client decides: asking for a reply, for example to a tool's result. It does not own
what is audible (``playout``): a response can be closed long before its last sample is heard.

```
caller     ──speaks──┐         ┌──talks over──┐
server        started stopped   started  cancelled stopped
floor   QUIET │ CALLER │ AWAITED │ REPLY │ OVERLAP │ CALLER │ AWAITED │ ...
```

A wish for a reply is kept until the floor is free. Where the server merges requests it is asked for while the caller
speaks, too, once in a turn of his: the server holds the request, and one reply answers it and the turn.

A response that starts after the wish was made serves it, as its history holds what the wish was about. A refused
request brings the wish back: the response that was in the way began before the request arrived, so it may not have seen
it. A wish that was asked for ``ASKS_MAX`` times is given up.
"""

from __future__ import annotations

from enum import Enum, auto

from callwright.core.table import Table
from callwright.ids import Ms, ResponseId

REPLY_PATIENCE_MS: Ms = 6_000
"""How long a reply that is due may take to begin before it is asked for (again)."""
WORDLESS_PATIENCE_MS: Ms = 1_500
"""How long it may once nothing was understood of the turn: not every server answers a noise or a murmur."""
ASKS_MAX = 3
"""Requests for one wish, refused and unanswered ones included."""


class Floor(Enum):
    """Who has the floor."""

    QUIET = auto()
    """Nobody speaks and no response is open."""
    CALLER = auto()
    """The caller speaks; no response is open."""
    HELD = auto()
    """The same, and a reply was asked for: it is not asked for again in this turn."""
    AWAITED = auto()
    """The caller's turn is over; the server owes the reply."""
    ASKED = auto()
    """A reply was asked for and has not begun."""
    REPLY = auto()
    """A response is open; the caller is silent."""
    OVERLAP = auto()
    """A response is open and the caller speaks."""
    OWED = auto()
    """A response is still open, but the caller's turn over it has ended: the next reply is due after it."""


class Cue(Enum):
    """What happens on the floor."""

    SPEECH_STARTED = auto()
    SPEECH_STOPPED = auto()
    RESPONSE_STARTED = auto()
    RESPONSE_ENDED = auto()
    ASKED = auto()
    REFUSED = auto()
    WAITED = auto()
    SESSION_LOST = auto()
    """The session ended: what is due, or was asked for, does not come, and what the caller says is for the next one."""


_OPEN = (Floor.REPLY, Floor.OVERLAP, Floor.OWED)

TURNS: Table[Floor, Cue] = Table(
    "turns",
    Floor.QUIET,
    {
        (Floor.QUIET, Cue.SPEECH_STARTED): Floor.CALLER,
        (Floor.QUIET, Cue.RESPONSE_STARTED): Floor.REPLY,
        (Floor.QUIET, Cue.ASKED): Floor.ASKED,
        (Floor.QUIET, Cue.REFUSED): Floor.QUIET,
        (Floor.CALLER, Cue.SPEECH_STOPPED): Floor.AWAITED,
        (Floor.CALLER, Cue.RESPONSE_STARTED): Floor.OVERLAP,
        (Floor.CALLER, Cue.ASKED): Floor.HELD,
        (Floor.CALLER, Cue.REFUSED): Floor.CALLER,
        (Floor.HELD, Cue.SPEECH_STOPPED): Floor.AWAITED,
        (Floor.HELD, Cue.RESPONSE_STARTED): Floor.OVERLAP,
        (Floor.HELD, Cue.REFUSED): Floor.HELD,
        (Floor.AWAITED, Cue.SPEECH_STARTED): Floor.CALLER,
        (Floor.AWAITED, Cue.RESPONSE_STARTED): Floor.REPLY,
        (Floor.AWAITED, Cue.REFUSED): Floor.AWAITED,
        (Floor.AWAITED, Cue.WAITED): Floor.QUIET,
        (Floor.ASKED, Cue.SPEECH_STARTED): Floor.HELD,
        (Floor.ASKED, Cue.RESPONSE_STARTED): Floor.REPLY,
        (Floor.ASKED, Cue.REFUSED): Floor.QUIET,
        (Floor.ASKED, Cue.WAITED): Floor.QUIET,
        (Floor.REPLY, Cue.SPEECH_STARTED): Floor.OVERLAP,
        (Floor.REPLY, Cue.RESPONSE_ENDED): Floor.QUIET,
        (Floor.REPLY, Cue.REFUSED): Floor.REPLY,
        (Floor.OVERLAP, Cue.SPEECH_STOPPED): Floor.OWED,
        (Floor.OVERLAP, Cue.RESPONSE_ENDED): Floor.CALLER,
        (Floor.OVERLAP, Cue.REFUSED): Floor.OVERLAP,
        (Floor.OWED, Cue.SPEECH_STARTED): Floor.OVERLAP,
        (Floor.OWED, Cue.RESPONSE_ENDED): Floor.AWAITED,
        (Floor.OWED, Cue.REFUSED): Floor.OWED,
        **{(floor, Cue.SESSION_LOST): Floor.QUIET for floor in Floor if floor not in _OPEN},
    },
)

SPEAKING = (Floor.CALLER, Floor.HELD, Floor.OVERLAP)
"""The caller speaks."""
_WAITING = (Floor.AWAITED, Floor.ASKED)


class Turns:
    """The floor of one call."""

    def __init__(self, *, merges: bool = False) -> None:
        """``merges`` says that the server answers a request that comes while the caller speaks with his turn."""
        self._free = (Floor.QUIET, Floor.CALLER) if merges else (Floor.QUIET,)
        """Where a reply may be asked for."""
        self.floor = TURNS.start
        self.response_id: ResponseId | None = None
        """The open response."""
        self.caller_turns = 0
        """How many turns the caller has begun."""
        self.is_reply_wanted = False
        self._asks = 0
        self._deadline_ms: Ms | None = None

    def speech_started(self) -> None:
        """The caller has begun a turn. Raises IllegalTransition if he had begun already."""
        self._move(Cue.SPEECH_STARTED)
        self.caller_turns += 1

    def speech_stopped(self, now_ms: Ms) -> None:
        """The caller's turn is over. Raises IllegalTransition if he had none."""
        self._move(Cue.SPEECH_STOPPED, now_ms)

    def ended_by_hand(self, now_ms: Ms) -> None:
        """The client ended the caller's turn: the server owes no reply to it. Raises IllegalTransition as above."""
        self._move(Cue.SPEECH_STOPPED, now_ms)
        if self.floor is Floor.AWAITED:
            self._move(Cue.WAITED)

    def nothing_was_said(self, now_ms: Ms) -> None:
        """Nothing was understood of a turn that has to be answered."""
        if self.floor is Floor.AWAITED and self._deadline_ms is not None:
            self._deadline_ms = min(self._deadline_ms, now_ms + WORDLESS_PATIENCE_MS)

    def response_started(self, response_id: ResponseId) -> None:
        """A response opened; it serves a wish made before. Raises IllegalTransition while one is open."""
        self._move(Cue.RESPONSE_STARTED)
        self.response_id = response_id
        self.is_reply_wanted = False
        self._asks = 0

    def response_ended(self, response_id: ResponseId, now_ms: Ms) -> None:
        """Take note that the open response closed. Raises IllegalTransition if it is not the open one."""
        if response_id != self.response_id:
            TURNS.after(Floor.QUIET, Cue.RESPONSE_ENDED)
        self._move(Cue.RESPONSE_ENDED, now_ms)
        self.response_id = None

    def want_reply(self) -> None:
        """Wish for a reply to what history holds now."""
        self.is_reply_wanted = True
        self._asks = 0

    def may_ask(self) -> bool:
        """Whether a reply is wanted and the floor is free for asking."""
        return self.is_reply_wanted and self.floor in self._free

    def asked(self, now_ms: Ms) -> None:
        """A reply was asked for. Raises IllegalTransition while a response is open, due or asked for."""
        self._move(Cue.ASKED, now_ms)
        self._asks += 1

    def refused(self, *, is_still_wanted: bool = True) -> None:
        """The request was refused: the wish comes back, and waits for the response that was in the way.

        Unless it is no longer wanted: whoever wished for it sees for himself whether that response has served him.
        """
        self._move(Cue.REFUSED)
        self.is_reply_wanted = is_still_wanted and self._asks < ASKS_MAX

    def session_lost(self) -> None:
        """Nobody has the floor. Raises IllegalTransition while a response is open: end that first."""
        self._move(Cue.SESSION_LOST)

    def next_deadline_ms(self) -> Ms | None:
        """When a reply that is due counts as not coming."""
        return self._deadline_ms

    def timer(self, now_ms: Ms, *, is_wanted: bool = True) -> bool:
        """Handle the deadline; true if a due reply did not come (it is then wished for, up to the bound).

        Unless none is wanted (``is_wanted``): then the floor is free, and that is all.
        """
        if self._deadline_ms is None or now_ms < self._deadline_ms:
            return False
        if self.floor is Floor.AWAITED:
            self._asks = 0
        self._move(Cue.WAITED)
        self.is_reply_wanted = is_wanted and self._asks < ASKS_MAX
        return True

    def _move(self, given: Cue, now_ms: Ms = 0) -> None:
        self.floor = TURNS.after(self.floor, given)
        if self.floor in _WAITING:
            if self._deadline_ms is None:
                self._deadline_ms = now_ms + REPLY_PATIENCE_MS
        else:
            self._deadline_ms = None

"""What the server has begun and does not end: a response that brings nothing more, a turn of the caller's long silent.

Nobody has the floor while one of them is open, so nobody would speak again. Owns when they count as ended, and ends
them. Does not own a reply that does not begin (``turns``), nor the silence that follows (``lull``).

```
response  begun ▒▒▒▒▒▒▒ audio, as long as it plays ▒▒▒▒▒▒▒│ nothing ── HANGS_MS ──│ given up, and cancelled
turn      begun ── LISTEN_MS ──│ listened to: loud ▒▒▒▒▒▒▒│ quiet ─── QUIET_MS ──│ over
          begun ── LISTEN_MS ──│ listened to: loud ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒ TURN_MAX_MS │ over
```

A server ends a turn by what it hears, and music or a television in the caller's room may be voice to it for as long as
they sound. A turn that is over by this clock is ended by hand, and its reply asked for at once: before the next turn
opens on the same noise. Where nothing comes of ``BY_HAND_MAX`` turns in a row but the next one, the call is given up.
No turn is ended while the agent waits in silence (``hold``): what plays on hold may play for hours.
"""

from __future__ import annotations

from callwright.core.commands import CancelResponse, EndTurn, UnwatchCaller, WatchCaller
from callwright.core.hold import Hold
from callwright.core.lull import Lull
from callwright.core.outgoing import Outgoing
from callwright.core.plan import Can
from callwright.core.playout import Playout
from callwright.core.telling import Tellings
from callwright.core.turns import SPEAKING, Floor, Turns
from callwright.ids import Ms, ResponseId

HANGS_MS: Ms = 10_000
"""How long an open response may bring nothing, from when the last of it was played."""
LISTEN_MS: Ms = 5_000
"""How long a turn of the caller's lasts before the line's own audio is listened to."""
QUIET_MS: Ms = 10_000
"""How long it is quiet before his turn counts as over; servers wait up to 8 s for the rest of a sentence."""
TURN_MAX_MS: Ms = 60_000
"""How long a turn may last at all: nobody speaks for a minute without the half second that ends his turn."""
BY_HAND_MAX = 3
"""How many turns in a row are ended by hand with no word or tool call of the model's in between."""

_PATIENCE_MS = {Floor.REPLY: HANGS_MS, Floor.OWED: HANGS_MS, **dict.fromkeys(SPEAKING, LISTEN_MS)}
"""Whatever is waited for on each of these floors; on the others nothing is open."""


class Stalls:
    """What one call waits for the end of."""

    def __init__(
        self, turns: Turns, playout: Playout, lull: Lull, telling: Tellings, hold: Hold, out: Outgoing
    ) -> None:
        """All of these are the session's; it goes on using them."""
        self._turns = turns
        self._playout = playout
        self._lull = lull
        self._telling = telling
        self._hold = hold
        self._out = out
        self._open: tuple[Ms | None, ResponseId | None, int] = (None, None, 0)
        """What is open: how long it may bring nothing (None: nothing is), its response and its turn."""
        self._since_ms: Ms = 0
        """Since when nothing has come of it; ahead of now while the line plays what came."""
        self._began_ms: Ms = 0
        """When what is open became so."""
        self._is_listening = False
        self._is_loud = False
        self._by_hand = 0
        """How many turns were ended by hand since the model last brought something."""
        self._given_up: ResponseId | None = None
        """The latest one that was: its end is still to come, and news to nobody."""

    def moved(self, now_ms: Ms, audio_ms: Ms = 0) -> None:
        """The open response brought something, which takes so long to play."""
        self._since_ms = max(self._since_ms, now_ms) + audio_ms
        self._by_hand = 0

    def caller_loud(self, now_ms: Ms, *, is_loud: bool) -> None:
        """The caller's audio rose above the noise around him, or fell back."""
        if self._is_listening:
            self._is_loud, self._since_ms = is_loud, now_ms

    def look(self, now_ms: Ms) -> None:
        """End what has stalled."""
        turns = self._turns
        is_open = (self._patience_ms(), turns.response_id, turns.caller_turns)
        if is_open != self._open:
            self._stop_listening()
            self._open, self._began_ms = is_open, now_ms
            self._since_ms = max(now_ms, self._since_ms if turns.floor is Floor.REPLY else 0)
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is None or now_ms < deadline_ms:
            return
        if turns.response_id is not None and turns.floor is not Floor.OVERLAP:
            self._give_up(turns.response_id, now_ms)
            self.look(now_ms)
        elif self._is_listening:
            self._end_turn(now_ms)
            self.look(now_ms)
        else:
            self._is_listening, self._since_ms = True, now_ms
            self._out.add(WatchCaller())

    def next_deadline_ms(self) -> Ms | None:
        """When what is open counts as stalled."""
        patience_ms = self._open[0]
        if patience_ms is None or not self._is_listening:
            return None if patience_ms is None else self._since_ms + patience_ms
        longest_ms = self._began_ms + TURN_MAX_MS
        return longest_ms if self._is_loud else min(longest_ms, self._since_ms + QUIET_MS)

    def is_given_up(self, response_id: ResponseId) -> bool:
        """Whether this response counts as ended already."""
        return response_id == self._given_up

    def ends(self, response_id: ResponseId, now_ms: Ms) -> None:
        """The open response ends without a word of the server's: what it may still send is not played."""
        self._out.add(*self._playout.superseded(response_id))
        self._turns.response_ended(response_id, now_ms)
        self._telling.ended(response_id, now_ms)

    def _patience_ms(self) -> Ms | None:
        """How long what is open may bring nothing; an agent that waits in silence lets music play."""
        floor = self._turns.floor
        return None if self._hold.stays_silent and floor in SPEAKING else _PATIENCE_MS.get(floor)

    def _give_up(self, response_id: ResponseId, now_ms: Ms) -> None:
        self._out.note(f"response {response_id} brings nothing more and does not end: it is given up")
        if Can.CANCEL in self._out.can:
            self._out.request(CancelResponse(self._out.next_id(), response_id))
        self.ends(response_id, now_ms)
        self._given_up = response_id
        self._lull.waits()

    def _end_turn(self, now_ms: Ms) -> None:
        is_silent = not self._is_loud and now_ms - self._since_ms >= QUIET_MS
        what = "is silent" if is_silent else "speaks without a pause"
        self._stop_listening()
        self._out.note(f"the caller {what}, and the server does not end his turn: it is ended by hand")
        self._out.request(EndTurn(self._out.next_id()))
        self._turns.ended_by_hand(now_ms)
        self._hold.ended_by_hand()
        self._lull.caller_is_through()
        self._by_hand += 1
        if self._by_hand < BY_HAND_MAX:
            self._turns.want_reply()
        else:
            self._lull.give_up()

    def _stop_listening(self) -> None:
        if self._is_listening:
            self._out.add(UnwatchCaller())
        self._is_listening = self._is_loud = False

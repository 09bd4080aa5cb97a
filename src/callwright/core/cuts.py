"""Where the ends of replies meet: ``playout`` says what was played, ``heard`` keeps it, the server's history follows.

An item that is cut is truncated to what was played and then retrieved, without waiting for either answer. What the line
played a moment ago may, behind a fixed lag, not have reached the ear when the line ends: that is not counted as heard.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from callwright.core.commands import RetrieveItem, TruncateItem
from callwright.core.heard import HeardRecord, Truncate
from callwright.core.outgoing import Outgoing
from callwright.core.plan import Can
from callwright.core.playout import Cut, Playout
from callwright.core.voicing import OwnVoice
from callwright.ids import ItemId, Ms, ResponseId

JUST_ENDED_MAX = 4
"""How many items can be under way to the ear at once; a fixed lag is shorter than so many replies."""


class Cuts:
    """The ends of one call's replies."""

    def __init__(
        self, playout: Playout, heard: HeardRecord, out: Outgoing, latency_ms: Ms, own_voice: OwnVoice
    ) -> None:
        """``latency_ms`` is the line's fixed lag; ``own_voice`` tells the server what only we know."""
        self.own_voice = own_voice
        self._playout = playout
        self._heard = heard
        self._out = out
        self._latency_ms = latency_ms
        self._just_ended: deque[tuple[Cut, Ms]] = deque(maxlen=JUST_ENDED_MAX)
        """Items that played out or were cut last, with the instants: their ends may still be under way to the ear."""
        self._of_before: tuple[ItemId, ...] = ()
        """Items that were playing when their session ended: the present one does not know them."""

    def session_lost(self) -> None:
        """The session ended; what came of it plays on, and nobody can be asked about it."""
        self._of_before = self._playout.live()
        self.own_voice.session_lost()

    def silence(self, open_response: ResponseId | None, now_ms: Ms) -> list[Cut]:
        """Stop what plays and what the open response still sends; ``shorten`` what was cut next."""
        commands, cuts = self._playout.cut(open_response, now_ms)
        self._out.add(*commands)
        return cuts

    def shorten(self, cuts: list[Cut], now_ms: Ms) -> None:
        """Tell the server how much of these items was played, and ask what its history holds of them now."""
        for cut in cuts:
            self._heard.cut(cut, now_ms)
            self._just_ended.append((cut, now_ms))
            can = Can(0) if cut.item_id in self._of_before else self._out.can
            if Can.TRUNCATE in can:
                self._out.request(TruncateItem(self._out.next_id(), cut.item_id, cut.heard_ms))
            else:
                self._heard.truncated(cut.item_id, Truncate.REFUSED)
            if Can.RETRIEVE in can:
                self._out.request(RetrieveItem(self._out.next_id(), cut.item_id))
            else:
                self._heard.give_up(cut.item_id)

    def take_played_out(self, now_ms: Ms) -> None:
        """Keep as heard what has played to its end since the last call."""
        for item_id in self._playout.take_played_out():
            played_ms = self._playout.position_ms(item_id, now_ms)
            self._heard.played_out(item_id, played_ms)
            self._just_ended.append((Cut(item_id, played_ms, played_ms, is_complete=True), now_ms))

    def at_ear_ms(self) -> Ms:
        """The instant at which the last of what was played or cut so far is at the ear."""
        return self._just_ended[-1][1] + self._latency_ms if self._just_ended else 0

    def line_ended(self, open_response: ResponseId | None, now_ms: Ms) -> None:
        """Nothing more reaches the ear, and nobody is left to ask."""
        _, cuts = self._playout.cut(open_response, now_ms)
        for cut, ended_ms in self._just_ended:
            under_way_ms = self._latency_ms - (now_ms - ended_ms)
            if under_way_ms > 0:
                self._heard.lost(_shorter_by(under_way_ms, cut))
        for cut in cuts:
            self._heard.lost(_shorter_by(self._latency_ms, cut))
        self._heard.unheard_rest(now_ms)
        self._heard.give_up_all()


def _shorter_by(ms: Ms, cut: Cut) -> Cut:
    return replace(cut, heard_ms=max(0, cut.heard_ms - ms))

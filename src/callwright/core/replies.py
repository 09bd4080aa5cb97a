"""Where the model's replies meet the rest of the call: whoever follows a response is told of all that comes of it.

``turns`` holds the floor, ``playout`` the audio, ``heard`` the record; ``telling``, ``lull``, ``stalls`` and the
goodbye weigh a reply each in its own way. No rule is kept here but the order in which they hear of it.
"""

from __future__ import annotations

import json

from callwright.core.asking import Asking
from callwright.core.events import AudioReceived, ReplyWritten, ResponseEnded, ResponseStarted, ResponseStatus
from callwright.core.heard import HeardRecord
from callwright.core.leave import Leave
from callwright.core.outgoing import Outgoing
from callwright.core.playout import Playout
from callwright.core.turns import Turns
from callwright.core.voicing import OwnVoice
from callwright.ids import ItemId, Ms, ResponseId


class Replies:
    """The responses of one call, as they come."""

    def __init__(
        self,
        turns: Turns,
        playout: Playout,
        heard: HeardRecord,
        leave: Leave,
        asking: Asking,
        own_voice: OwnVoice,
        out: Outgoing,
    ) -> None:
        """All of these are the session's; it goes on using them."""
        self._turns = turns
        self._playout = playout
        self._heard = heard
        self._leave = leave
        self._asking = asking
        self._own_voice = own_voice
        self._out = out
        self._items: dict[ResponseId, dict[ItemId, None]] = {}
        """The items of the responses that are open."""

    def began(self, event: ResponseStarted, now_ms: Ms) -> None:
        """A response opened."""
        unended = self._turns.response_id
        if unended is not None and unended != event.response_id:
            self._out.note(f"response {event.response_id} began, so {unended} has ended without a word")
            self._own_voice.ended(unended)
            self._asking.stalls.ends(unended, now_ms)
        self._turns.response_started(event.response_id)
        self._own_voice.began(event.response_id)
        self._asking.telling.began(event.response_id)
        self._asking.lull.began(event.response_id)
        self._asking.hold.reply_began(event.response_id)

    def audio(self, event: AudioReceived, now_ms: Ms) -> None:
        """A piece of a reply's audio came."""
        commands = self._playout.audio(event.response_id, event.item_id, event.samples, now_ms)
        if commands:
            self._heard.reply(event.item_id)
            self._items.setdefault(event.response_id, {})[event.item_id] = None
            self._leave.goodbye.audio(now_ms)
            self._own_voice.has(event.response_id, event.item_id, now_ms)
            self._asking.telling.spoke(event.response_id, event.item_id)
            self._asking.lull.spoke(event.response_id)
            self._asking.hold.spoke(event.response_id, now_ms)
            self._asking.stalls.moved(now_ms, event.samples * 1000 // self._playout.rate_hz)
            self._out.add(*commands)

    def written(self, event: ReplyWritten, now_ms: Ms) -> None:
        """The text of a reply came."""
        self._heard.reply(event.item_id, event.text)
        self._own_voice.has(event.response_id, event.item_id, now_ms)
        self._items.setdefault(event.response_id, {})[event.item_id] = None
        self._asking.stalls.moved(now_ms)
        self._asking.lull.wrote(event.response_id, event.text)
        if self._asking.claims.wrote(event.text, now_ms):
            self._asking.hold.claimed_keys(event.response_id)

    def ended(self, event: ResponseEnded, now_ms: Ms) -> None:
        """A response closed."""
        self._ground(event)
        if self._asking.stalls.is_given_up(event.response_id):
            return
        is_ours = event.response_id == self._turns.response_id or self._playout.is_live(event.response_id)
        if event.status is ResponseStatus.CANCELLED and is_ours and not self._playout.is_cut(event.response_id):
            self._leave.talked_over(event.response_id, now_ms)
        self._own_voice.ended(event.response_id)
        self._out.add(*self._playout.response_ended(event.response_id))
        self._leave.response_ended(event.response_id, event.status, now_ms)
        self._turns.response_ended(event.response_id, now_ms)
        self._asking.telling.ended(event.response_id, now_ms)
        self._asking.lull.ended(event.response_id, event.status)
        self._asking.hold.reply_ended(event.response_id, is_completed=event.status is ResponseStatus.COMPLETED)
        if event.status in (ResponseStatus.FAILED, ResponseStatus.INCOMPLETE):
            self._out.note(f"response {event.response_id} {event.status}: {event.reason or 'no reason given'}")

    def _ground(self, event: ResponseEnded) -> None:
        items = self._items.pop(event.response_id, {})
        if event.cited or event.out_of_domain is not None:
            topics = tuple(json.loads(event.cited)) if event.cited else ()
            for item_id in items:
                self._heard.grounds.rests_on(item_id, topics, out_of_domain=event.out_of_domain)

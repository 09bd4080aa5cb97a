"""Where telling meets the rest of the call: notes into the model's history, replies and what was heard of them.

``told`` says what is owed. Here the replies are followed from their beginning to the text that was heard of them, each
with what the record said when it began; what they were worth is handed on, and the session is told when a reply is
wanted. What is said in a response that calls a tool is a holding line or a farewell: it tells nothing, but it is as
wrong as any other where it claims what is not so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from callwright.claims.readback import is_read_back
from callwright.claims.words import Heard
from callwright.core.commands import PostFacts
from callwright.core.consent import Consents
from callwright.core.events import FactChanged
from callwright.core.judging import first_told, heard_of, tells, wrong_claims
from callwright.core.notes import note_of
from callwright.core.outgoing import Outgoing
from callwright.core.plan import Untold
from callwright.core.told import Told
from callwright.core.transcript import Source, Turn
from callwright.ids import ItemId, Ms, ResponseId

TEXT_PATIENCE_MS: Ms = 3_000
"""How long after its last sample the text of a reply may take; without text nothing is known to be told."""
REPLIES_MAX = 32
"""How many of the latest replies are followed: what is heard of one can change until its last sample is at the ear."""


@dataclass(slots=True)
class _Reply:
    began_with: Mapping[str, FactChanged]
    """What might be said when it began."""
    is_closed: bool = False
    calls: bool = False
    """It calls a tool."""
    items: dict[ItemId, Turn | None] = field(default_factory=dict)
    """What was heard of each of its spoken items, as it was judged; None until then."""
    settled_ms: dict[ItemId, Ms] = field(default_factory=dict)
    """When each of them was played out, or it became known what was heard of it."""


class Tellings:
    """How one call tells what it owes."""

    def __init__(self, out: Outgoing, locale: str, latency_ms: Ms) -> None:
        """``out`` is the session's; ``locale`` is the language that is spoken, ``latency_ms`` the line's fixed lag."""
        self._told = Told()
        self._consents = Consents()
        self._latency_ms = latency_ms
        self._out = out
        self._locale = locale
        self._replies: dict[ResponseId, _Reply] = {}
        self._by_item: dict[ItemId, ResponseId] = {}
        self._settled: dict[ItemId, Turn] = {}
        """What was heard of replies that are still open."""
        self._textless: dict[ItemId, Ms] = {}
        """Items that were played and have no text yet, with the instant at which it is waited for no longer."""
        self._unposted: list[str] | None = []
        """Notes that wait for the session; None once it is ready."""

    def ready(self) -> None:
        """The model takes notes from here on."""
        notes, self._unposted = self._unposted, None
        for note in notes or ():
            self._post(note)

    def changed(self, fact: FactChanged) -> None:
        """What may be said of an operation has changed."""
        if self._told.changed(fact):
            self._consents.changed(fact.op_id, fact.consent)
            self._post(note_of(fact))
            self._keep()

    def began(self, response_id: ResponseId) -> None:
        """A response opened: what it says is weighed against what is known now, or later."""
        if response_id in self._replies:
            return
        self._replies[response_id] = _Reply(self._told.known())
        if len(self._replies) > REPLIES_MAX:
            self._forget(next(iter(self._replies)))
        self._told.begun(response_id)
        self._consents.reply_began()

    def caller_began(self, item_id: ItemId, told_ms: Ms, now_ms: Ms) -> None:
        """The caller speaks, since ``told_ms`` on the call's clock, as the server counts his audio."""
        self._consents.turn_began(item_id, told_ms, now_ms)

    def caller_said(self, item_id: ItemId, text: str) -> None:
        """The words of a turn of the caller's are known."""
        self._out.add(*self._consents.turn_said(item_id, text))

    def called(self, response_id: ResponseId) -> None:
        """A response calls a tool."""
        if response_id in self._replies:
            self._replies[response_id].calls = True

    def spoke(self, response_id: ResponseId, item_id: ItemId) -> None:
        """Audio of an item was handed to the line."""
        reply = self._replies.get(response_id)
        if reply is not None and item_id not in reply.items:
            reply.items[item_id] = None
            self._by_item[item_id] = response_id

    def ended(self, response_id: ResponseId, now_ms: Ms) -> None:
        """A response closed."""
        reply = self._replies.get(response_id)
        if reply is None or reply.is_closed:
            return
        reply.is_closed = True
        for item_id in list(reply.items):
            if item_id in self._settled:
                self._judge(response_id, reply, self._settled.pop(item_id), now_ms)
        self._look_through(response_id, reply)

    def settled(self, turns: Iterable[Turn], now_ms: Ms) -> None:
        """What was heard of replies has become known, or has changed."""
        for turn in turns:
            response_id = self._by_item.get(turn.item_id)
            if response_id is None:
                continue
            reply = self._replies[response_id]
            reply.settled_ms.setdefault(turn.item_id, now_ms)
            if reply.is_closed:
                self._judge(response_id, reply, turn, now_ms)
            else:
                self._settled[turn.item_id] = turn

    def asked(self) -> None:
        """A reply is about to be asked for: remind the model of what is owed first."""
        self._post_notes()
        self._told.asked()
        self._keep()

    def never_began(self) -> None:
        """The reply that was asked for last does not come."""
        self._told.never_began()
        self._keep()

    def wants_reply(self, *, in_turn: bool = False) -> bool:
        """Whether a reply is to be asked for, or, ``in_turn``, while the caller speaks."""
        return self._told.is_owing(in_turn=in_turn)

    def is_telling(self) -> bool:
        """Whether something is owed, or it is not known yet whether it was heard."""
        return self._told.is_telling()

    def is_waiting(self) -> bool:
        """Whether the caller is about to be told something, or to answer whether to go ahead."""
        return self.is_telling() or self._consents.is_asked()

    def known(self) -> dict[str, FactChanged]:
        """What may be said now, by operation."""
        return self._told.known()

    def session_lost(self) -> None:
        """No reply that was asked for comes, and no answer of the caller's is known in time."""
        self.never_began()
        self._consents.session_lost()

    def outstanding(self) -> int:
        """How many operations the caller is not through with."""
        return self._told.outstanding()

    def next_deadline_ms(self) -> Ms | None:
        """When a text that has not come is waited for no longer."""
        return min(self._textless.values()) if self._textless else None

    def timer(self, now_ms: Ms) -> None:
        """Handle the deadline."""
        for item_id in [each for each, deadline_ms in self._textless.items() if now_ms >= deadline_ms]:
            del self._textless[item_id]
            response_id = self._by_item[item_id]
            self._look_through(response_id, self._replies[response_id])

    def call_is_over(self, turns: Iterable[Turn], now_ms: Ms) -> None:
        """Nothing more is told or heard."""
        self.settled(turns, now_ms)
        for response_id in list(self._replies):
            self.ended(response_id, now_ms)
        self._told.call_is_over()
        self._keep()
        self._textless.clear()

    def untold(self) -> tuple[Untold, ...]:
        """What the caller was owed, and did not hear."""
        return self._told.untold()

    def _judge(self, response_id: ResponseId, reply: _Reply, turn: Turn, now_ms: Ms) -> None:
        if reply.items[turn.item_id] == turn:
            return
        reply.items[turn.item_id] = turn
        if turn.source is Source.NONE and turn.cut_ms is None:
            self._textless[turn.item_id] = now_ms + TEXT_PATIENCE_MS
            return
        self._textless.pop(turn.item_id, None)
        self._weigh(reply, turn)
        self._look_through(response_id, reply)

    def _weigh(self, reply: _Reply, turn: Turn) -> None:
        heard, now = heard_of(turn), self._told.known()
        if not now:
            return
        mine = {op_id for op_id in now if self._told.is_heard_in(op_id, turn.item_id)}
        may_be_told = [fact for op_id, fact in now.items() if self._is_after(reply, fact) and op_id not in mine]
        may_be_told.sort(key=lambda fact: not self._told.is_open(fact.op_id))
        for op_id in now:
            if op_id in mine and not tells(heard, now[op_id], self._locale):
                self._told.unheard(op_id, turn.item_id)
        for fact in first_told(heard, may_be_told, self._locale):
            self._told.heard(fact.op_id, turn.item_id)
        self._read_back(reply, turn, now)
        for op_id, said in wrong_claims(heard, reply.began_with, now, self._locale).items():
            self._told.contradicted(op_id, said)
            self._post_notes()
        self._keep()

    def _read_back(self, reply: _Reply, turn: Turn, now: Mapping[str, FactChanged]) -> None:
        """Whether the terms of one proposal were read back, and heard whole; a question about two is about neither."""
        if turn.source is not Source.WHOLE or reply is not next(reversed(self._replies.values())):
            return
        heard = heard_of(turn)
        asked = [
            op_id
            for op_id in self._consents.wanted()
            if self._is_after(reply, now[op_id]) and _is_read_back(heard, now[op_id])
        ]
        if len(asked) == 1:
            asked_ms = reply.settled_ms[turn.item_id] + self._latency_ms
            self._consents.read_back(asked[0], turn.heard, asked_ms)

    def _is_after(self, reply: _Reply, fact: FactChanged) -> bool:
        return not reply.calls and reply.began_with.get(fact.op_id) == fact

    def _look_through(self, response_id: ResponseId, reply: _Reply) -> None:
        """Whether all that will be heard of a reply is known."""
        is_known = all(turn is not None and item_id not in self._textless for item_id, turn in reply.items.items())
        if reply.is_closed and (reply.calls or is_known):
            self._told.through(response_id)
            self._keep()

    def _forget(self, response_id: ResponseId) -> None:
        self._told.through(response_id)
        for item_id in self._replies.pop(response_id).items:
            del self._by_item[item_id]
            self._settled.pop(item_id, None)
            self._textless.pop(item_id, None)

    def _post_notes(self) -> None:
        for note in self._told.notes():
            self._post(note)

    def _post(self, note: str) -> None:
        if self._unposted is not None:
            self._unposted.append(note)
        else:
            self._out.request(PostFacts(self._out.next_id(), note))

    def _keep(self) -> None:
        self._out.add(*self._told.take_records())


def _is_read_back(heard: Heard, fact: FactChanged) -> bool:
    return is_read_back(heard, fact.facts, spelled=fact.consent is not None and fact.consent.is_anew)

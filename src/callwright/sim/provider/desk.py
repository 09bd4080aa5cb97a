"""What the stand-in provider does with a request: it owns execution, answers, and what goes wrong on the way.

A request is served in steps, and time is an argument: `Desk.serve` yields how long to wait, is sent the instant
after the wait, and returns a reply. A refund's request:

```
refused | sent -- late -------> arrives -- checked, key judged --> executed --------- after_ms ------> answered
   F1   |  lost F2     F4                 F7, F10, F12, 402, F5    pending refund    (sync: settled)   F3, F6, F8
```

| request | answers |
|---|---|
| ``POST /refunds``, with ``Idempotency-Key`` | 201 the refund; 400, 402, 404, 409, 422, 429, 500 |
| ``GET /refunds``, with ``key``, ``op`` or that header | 200 ``{"data": [...], "has_more": false}`` |
| ``GET /refunds/ID`` | 200 the refund; 404 |
| ``POST /refunds/ID/cancel`` | 200 the refund; 404; 409 when it is too late |
| ``GET /book`` | 200 the book: charges, entries, and how often each fault happened |

``/cancellations`` takes the same requests: an order that has neither left the house nor been refunded is cancelled, at
once and for good, and all that was captured of it is given back.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable
from typing import Final, TypeAlias

from callwright.errors import IllegalTransition
from callwright.ids import Ms
from callwright.ledger.provider import Idempotency
from callwright.sim.provider.book import CANCELLATION_KIND, Ask, Book, Charge, Cue, Refund, Status
from callwright.sim.provider.faults import Faults
from callwright.sim.provider.keys import Keys, Repeat
from callwright.sim.provider.messages import (
    KINDS,
    REPLAYED,
    Call,
    Reply,
    Way,
    answer,
    entry_told,
    error,
    read_ask,
    refund_told,
)
from callwright.sim.provider.settings import Answers, Cancel, Destinations, ProviderSettings

KEY_LENGTH_MAX: Final = 255

Serving: TypeAlias = Generator[Ms, Ms, Reply]
"""Yields lengths of time to wait, and is sent the instants after them."""


class Desk:
    """One provider: its book, its keys, its faults. The same seed and the same requests give the same book."""

    def __init__(self, settings: ProviderSettings, charges: Iterable[Charge], seed: int) -> None:
        self.settings = settings
        self.book = Book(charges)
        self.faults = Faults(settings.faults, seed, settings.faults_until_ms)
        self._keys = Keys(settings.idempotency)

    def serve(self, call: Call, now_ms: Ms) -> Serving:
        """Serve one request that leaves now."""
        self.book.advance(now_ms)
        match call.method, call.path.strip("/").split("/"):
            case "GET", ["book"]:
                return _at_once(answer(200, self.dump(now_ms)))
            case method, [endpoint, *rest] if endpoint in KINDS:
                return self._serve_kind(method, KINDS[endpoint], rest, call, now_ms)
        return _at_once(error(404, "no_such_endpoint"))

    def _serve_kind(self, method: str, kind: str, rest: list[str], call: Call, now_ms: Ms) -> Serving:
        """Serve a request at the endpoint of one kind of effect."""
        match method, rest:
            case "POST", []:
                return self._create(call, kind, now_ms)
            case "GET", []:
                return self._list(call, kind, now_ms)
            case "GET", [refund_id]:
                return self._show(refund_id, kind, now_ms)
            case "POST", [refund_id, "cancel"]:
                return self._cancel(refund_id, kind, now_ms)
        return _at_once(error(404, "no_such_endpoint"))

    def dump(self, now_ms: Ms) -> dict[str, object]:
        """The book as JSON-like values, with everything that is due by now."""
        self.book.advance(now_ms)
        charges = [
            {"id": each.id, "captured": each.captured.minor, "currency": each.captured.currency, "cards": each.cards}
            for each in self.book.charges.values()
        ]
        entries = [entry_told(each) for each in self.book.entries]
        return {"now_ms": now_ms, "charges": charges, "entries": entries, "faults": dict(self.faults.fired)}

    # A refund, or a cancellation

    def _create(self, call: Call, kind: str, now_ms: Ms) -> Serving:
        """Make one, or say why not."""
        if self.faults.happens("refused", now_ms):
            return Reply(way=Way.REFUSED)
        ask = read_ask(call.body, kind)
        if call.key and ask is not None:
            self.book.note_sent(call.key, ask, now_ms)
        if self.faults.happens("lost-request", now_ms):
            return self._nothing("lost-request")
        if self.faults.happens("late", now_ms):
            now_ms = yield self.faults.between("late", self.settings.late_ms)
            self.book.advance(now_ms)
        key = call.key or ""
        if not key and self.settings.idempotency is not Idempotency.NONE:
            return error(400, "idempotency_key_missing")
        if ask is None or len(key) > KEY_LENGTH_MAX:
            return error(400, "malformed")
        if objection := self._objection(ask):
            return objection
        if self.faults.happens("busy", now_ms):
            return error(429, "too_many_requests") if self.faults.coin("busy") else error(409, "key_in_use")
        reply = yield from self._judge(key, ask, now_ms)
        return reply

    def _objection(self, ask: Ask) -> Reply | None:
        """Why a request cannot be executed."""
        charge = self.book.charges.get(ask.charge)
        if charge is None:
            return error(404, "no_such_charge")
        if ask.amount is not None and ask.amount.currency != charge.captured.currency:
            return error(422, "wrong_currency")
        if ask.amount is not None and ask.amount.minor > charge.captured.minor:
            return error(422, "more_than_captured")
        allowed = charge.cards if self.settings.destinations is Destinations.ON_FILE else charge.cards[:1]
        if ask.card is not None and ask.card not in allowed:
            return error(422, "destination_not_allowed")
        return None

    def _judge(self, key: str, ask: Ask, now_ms: Ms) -> Serving:
        """Execute a request, or answer from memory."""
        match self._keys.judge(key, ask.fingerprint, now_ms):
            case Repeat.REFUSE_OTHER:
                self.faults.note("other-params")
                return error(422, "key_of_other_parameters")
            case Repeat.REFUSE_BUSY:
                self.faults.note("in-use")
                return error(409, "key_in_use")
            case Repeat.REPLAY:
                self.faults.note("replayed")
                memory = self._keys.recall(key)
                now_ms = yield self.settings.after_ms
                assert memory.status is not None
                return self._on_its_way(Reply(memory.status, memory.body, REPLAYED), now_ms)
            case Repeat.SHOW:
                self.faults.note("replayed")
                refund_id = self._keys.recall(key).refund_id
                assert refund_id is not None
                self._take_up(refund_id, now_ms)
                now_ms = yield self.settings.after_ms
                self.book.advance(now_ms)
                return self._on_its_way(answer(200, refund_told(self.book.current(refund_id)), REPLAYED), now_ms)
            case Repeat.EXECUTE:
                reply = yield from self._execute(key, ask, now_ms)
                return reply

    def _take_up(self, refund_id: str, now_ms: Ms) -> None:
        """A provider that resumes takes up what failed."""
        if self.settings.idempotency is Idempotency.RESUME and self.book.current(refund_id).status is Status.FAILED:
            self.book.change(refund_id, Cue.RESUME, now_ms)
            self.book.schedule(refund_id, Cue.SETTLE, now_ms + self.settings.settles_ms)

    def _execute(self, key: str, ask: Ask, now_ms: Ms) -> Serving:
        """Execute a request, remember the answer, and give it."""
        pruned = self.faults.happens("key-pruned", now_ms)
        kept_ms = self.settings.window_ms if pruned else self.settings.kept_ms
        memory = self._keys.begin(key, ask.fingerprint, now_ms, now_ms + kept_ms)
        reply = self._refusal(ask, now_ms)
        wait_ms = self.settings.after_ms
        if reply is None:
            if any(each.key == key for each in self.book.refunds()):
                self.faults.note("paid-again")
            memory.refund_id = self._make(ask, key, now_ms).id
            if self.faults.happens("error-after", now_ms):
                reply = error(500, "internal")
            elif self.settings.answers is Answers.SYNC:
                wait_ms = max(wait_ms, self._settles_ms(ask))
        now_ms = yield wait_ms
        self.book.advance(now_ms)
        if reply is None:
            assert memory.refund_id is not None
            reply = answer(201, refund_told(self.book.current(memory.refund_id)))
        memory.status, memory.body = reply.status, reply.body
        return self._on_its_way(reply, now_ms)

    def _refusal(self, ask: Ask, now_ms: Ms) -> Reply | None:
        """Why a request that could be executed is not."""
        charge, live = self.book.charges[ask.charge], self.book.live(ask.charge)
        is_cancelled = any(each.ask.kind == CANCELLATION_KIND for each in live)
        if ask.kind == CANCELLATION_KIND and (live or charge.is_shipped):
            return error(422, "already_cancelled" if is_cancelled else "shipped" if charge.is_shipped else "refunded")
        if is_cancelled:
            return error(422, "order_cancelled")
        left = charge.captured.minor - sum(self.book.given_back(each.ask).minor for each in live)
        if self.book.given_back(ask).minor > left and self.faults.happens("already-refunded", now_ms):
            return error(422, "already_refunded")
        if self.faults.happens("declined", now_ms):
            return error(402, "declined")
        if self.faults.happens("error-before", now_ms):
            return error(500, "internal")
        return None

    def _make(self, ask: Ask, key: str, now_ms: Ms) -> Refund:
        """Make what is asked for, and settle what will become of it; a cancellation takes hold at once."""
        refund = self.book.open(ask, key, now_ms)
        settles_ms = now_ms + self._settles_ms(ask)
        if ask.kind == CANCELLATION_KIND:
            self.book.schedule(refund.id, Cue.SETTLE, settles_ms)
            return refund
        if self.settings.answers is Answers.PENDING and self.faults.happens("pending-days", now_ms):
            settles_ms = now_ms + self.faults.between("pending-days", self.settings.pending_days_ms)
        if self.faults.happens("fails", now_ms):
            self.book.schedule(refund.id, Cue.FAIL, settles_ms)
            return refund
        self.book.schedule(refund.id, Cue.SETTLE, settles_ms)
        if self.faults.happens("reversed", now_ms):
            back_ms = settles_ms + self.faults.between("reversed", self.settings.reversed_ms)
            self.book.schedule(refund.id, Cue.REVERSE, back_ms)
        return refund

    def _settles_ms(self, ask: Ask) -> Ms:
        """How long the settlement takes."""
        return 0 if ask.kind == CANCELLATION_KIND else self.settings.settles_ms

    def _on_its_way(self, reply: Reply, now_ms: Ms) -> Reply:
        """An answer as it arrives, if it does."""
        if self.faults.happens("lost-reply", now_ms):
            return self._nothing("lost-reply")
        if reply.status < 300 and self.faults.happens("garbled", now_ms):
            told = json.loads(reply.body)
            if self.faults.coin("garbled") or "amount" not in told:
                return Reply(reply.status, reply.body[: len(reply.body) // 2], reply.headers)
            return answer(reply.status, {**told, "amount": told["amount"] + 1}, reply.headers)
        return reply

    def _nothing(self, fault: str) -> Reply:
        return Reply(way=Way.SILENCE if self.faults.coin(fault) else Way.RESET)

    # Looking up and cancelling

    def _list(self, call: Call, kind: str, now_ms: Ms) -> Serving:
        """Tell of all of a kind that one key made, or that carry one reference of the merchant's."""
        if down := self._down(now_ms):
            return down
        now_ms = yield self.settings.lookup_ms
        self.book.advance(now_ms)
        key, op = call.query.get("key", call.key), call.query.get("op")
        if key is None and op is None:
            return error(400, "key_or_op_missing")
        of_kind = [each for each in self.book.refunds() if each.ask.kind == kind]
        found = [each for each in of_kind if (each.key == key if key is not None else each.ask.op == op)]
        seen = [refund for refund in (self._seen(each, now_ms) for each in found) if refund is not None]
        if self.faults.happens("lookup-short", now_ms):
            return answer(200, {"data": [], "has_more": True})
        return answer(200, {"data": [refund_told(refund) for refund in seen], "has_more": False})

    def _show(self, refund_id: str, kind: str, now_ms: Ms) -> Serving:
        """Tell of one refund."""
        if down := self._down(now_ms):
            return down
        now_ms = yield self.settings.lookup_ms
        self.book.advance(now_ms)
        refund = self._seen(self.book.current(refund_id), now_ms) if self._has(refund_id, kind) else None
        return error(404, "no_such_refund") if refund is None else answer(200, refund_told(refund))

    def _has(self, refund_id: str, kind: str) -> bool:
        return refund_id in self.book and self.book.current(refund_id).ask.kind == kind

    def _seen(self, refund: Refund, now_ms: Ms) -> Refund | None:
        """A refund as a look-up sees it: as it is, as it was, or not at all."""
        past_ms = now_ms - self.settings.lag_ms
        if refund.created_ms > past_ms and self.faults.happens("lookup-lag", now_ms):
            return None
        if refund.at_ms > past_ms and refund.version > 1 and self.faults.happens("lookup-stale", now_ms):
            return self.book.as_of(refund.id, max(past_ms, refund.created_ms))
        return refund

    def _down(self, now_ms: Ms) -> Reply | None:
        """A look-up that fails, in one of three ways."""
        if not self.faults.happens("lookup-down", now_ms):
            return None
        ways = error(503, "unavailable"), Reply(way=Way.REFUSED), Reply(way=Way.SILENCE)
        return ways[self.faults.between("lookup-down", (0, len(ways) - 1))]

    def _cancel(self, refund_id: str, kind: str, now_ms: Ms) -> Serving:
        """Cancel a refund, if that is still possible; one that is cancelled already stays so."""
        if self.faults.happens("cancel-lost-request", now_ms):
            return self._nothing("cancel-lost-request")
        if not self._has(refund_id, kind):
            return error(404, "no_such_refund")
        status = self.book.current(refund_id).status
        if status is Status.PENDING and self.faults.happens("cancel-too-late", now_ms):
            self.book.change(refund_id, Cue.SETTLE, now_ms)
        never = self.settings.cancel is Cancel.NEVER or self.settings.answers is Answers.SYNC
        refused = status is not Status.CANCELLED and (never or not self._cancelled(refund_id, now_ms))
        told = refund_told(self.book.current(refund_id))
        now_ms = yield self.settings.lookup_ms
        if refused:
            return error(409, "not_cancellable", refund=told)
        return (
            self._nothing("cancel-lost-reply")
            if self.faults.happens("cancel-lost-reply", now_ms)
            else answer(200, told)
        )

    def _cancelled(self, refund_id: str, now_ms: Ms) -> bool:
        """Cancel a refund, and say whether that took hold."""
        try:
            self.book.change(refund_id, Cue.CANCEL, now_ms)
        except IllegalTransition:
            return False
        return True


def _at_once(reply: Reply) -> Serving:
    """A reply that takes no time."""
    yield from ()
    return reply

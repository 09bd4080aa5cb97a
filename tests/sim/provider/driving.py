"""What the provider's tests share: requests served without a loop, and one dispatch of the demo shop."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from callwright.ledger.provider import Card, Dispatch, Idempotency, Money, Terms
from callwright.sim.provider import SHOP
from callwright.sim.provider.book import Refund, Status
from callwright.sim.provider.desk import Desk
from callwright.sim.provider.messages import Call, Reply
from callwright.sim.provider.settings import Answers, Fault, ProviderSettings

ORDER = "order:4417"
VISA, MASTERCARD = "card:4242", "card:8812"
HOUR = 3_600_000
ALWAYS = Fault()
ONCE = Fault(times=1)


@dataclass(frozen=True)
class Answer:
    """A reply, and when it came."""

    reply: Reply
    at_ms: int

    @property
    def status(self) -> int:
        return self.reply.status

    @property
    def told(self) -> Any:
        return json.loads(self.reply.body)

    @property
    def code(self) -> str:
        return str(self.told["error"]["code"])


class Client:
    """Sends requests to a desk, one after the other, and keeps the time."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.now_ms = 0

    def ask(self, method: str, path: str, *, query: Mapping[str, str] | None = None, **more: Any) -> Answer:
        steps = self.desk.serve(Call(method, path, query or {}, more.get("key"), more.get("body", b"")), self.now_ms)
        try:
            wait_ms = next(steps)
            while True:
                self.now_ms += wait_ms
                wait_ms = steps.send(self.now_ms)
        except StopIteration as end:
            return Answer(end.value, self.now_ms)

    def refund(self, key: str | None = "K", **changes: Any) -> Answer:
        return self.ask("POST", "/refunds", key=key, body=body(**changes))

    def look(self, key: str = "K") -> Answer:
        return self.ask("GET", "/refunds", query={"key": key})

    def cancel(self, refund_id: str = "re_1") -> Answer:
        return self.ask("POST", f"/refunds/{refund_id}/cancel")

    def later(self, ms: int) -> Client:
        self.now_ms += ms
        self.desk.book.advance(self.now_ms)
        return self

    @property
    def statuses(self) -> list[Status]:
        return [refund.status for refund in self.desk.book.refunds()]

    @property
    def versions(self) -> list[Refund]:
        return [entry for entry in self.desk.book.entries if isinstance(entry, Refund)]


def body(**changes: Any) -> bytes:
    """A request for a refund of the skillet; what is None is left out."""
    asked = {
        "charge": ORDER,
        "amount": 3200,
        "currency": "USD",
        "destination": VISA,
        "metadata": {"op": "op1", "slot": "full"},
        **changes,
    }
    return json.dumps({name: value for name, value in asked.items() if value is not None}).encode()


def client(
    mode: Idempotency = Idempotency.REPLAY, answers: Answers = Answers.PENDING, *, seed: int = 1, **faults: Fault
) -> Client:
    """A client of a desk with these faults, their names with underscores."""
    named = {name.replace("_", "-"): fault for name, fault in faults.items()}
    return Client(Desk(ProviderSettings(idempotency=mode, answers=answers, faults=named), SHOP, seed))


def dispatch(op: str = "op1", key: str = "K", card: str = VISA, **more: Any) -> Dispatch:
    """One attempt at the refund of the skillet."""
    terms = Terms(ORDER, Money(3200, "USD"), Card(card, "Visa", card[-4:]))
    return Dispatch(op, 1, 1, key, "refund", more.pop("slot", "full"), more.pop("terms", terms), "hash", **more)

"""The words on the wire of the stand-in provider: requests and replies as data, and effects as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from callwright.declare.actions import Money
from callwright.sim.provider.book import CANCELLATION_KIND, REFUND_KIND, Ask, Entry, Refund, Sent

KEY_HEADER: Final = "Idempotency-Key"
REPLAYED: Final[Mapping[str, str]] = {"Idempotency-Replayed": "true"}
KINDS: Final[Mapping[str, str]] = {"refunds": REFUND_KIND, "cancellations": CANCELLATION_KIND}
"""What is made at each endpoint."""


class Way(Enum):
    """What reaches the client of a reply."""

    ANSWER = "answer"
    SILENCE = "silence"
    """Nothing, ever."""
    RESET = "reset"
    """The connection breaks."""
    REFUSED = "refused"
    """There never was a connection."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request, as it is read from the wire."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    """The header ``Idempotency-Key``."""
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Reply:
    """What becomes of a request, seen from the client."""

    status: int = 0
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    way: Way = Way.ANSWER


def answer(status: int, told: object, headers: Mapping[str, str] | None = None) -> Reply:
    """A reply with a JSON body."""
    return Reply(status, json.dumps(told).encode(), headers or {})


def error(status: int, code: str, **more: object) -> Reply:
    """A refusal: a code for programs, no prose."""
    return answer(status, {"error": {"code": code}, **more})


def read_ask(body: bytes, kind: str) -> Ask | None:
    """What a request for an effect of this kind asks for; None if it cannot be read."""
    try:
        told = json.loads(body)
        metadata = told.get("metadata", {})
        texts = told["charge"], told.get("destination"), metadata.get("op", ""), metadata.get("slot", "full")
        amount = Money(told["amount"], told["currency"]) if kind == REFUND_KIND else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    charge, card, op, slot = texts
    if not all(isinstance(text, str) for text in (charge, op, slot)) or not isinstance(card, str | None):
        return None
    return Ask(charge, amount, card if kind == REFUND_KIND else None, op, slot, kind)


def refund_told(refund: Refund) -> dict[str, Any]:
    """A refund or a cancellation as clients see it: without its key."""
    return {
        "id": refund.id,
        "status": refund.status.value,
        "version": refund.version,
        **_asked(refund.ask, refund.card),
        "metadata": {"op": refund.ask.op, "slot": refund.ask.slot},
        "created_ms": refund.created_ms,
    }


def entry_told(entry: Entry) -> dict[str, Any]:
    """An entry of the book, as ``GET /book`` shows it."""
    match entry:
        case Sent(at_ms, key, ask):
            about = {"kind": ask.kind, **_asked(ask, ask.card), "op": ask.op, "slot": ask.slot}
            return {"at_ms": at_ms, "sent": key, **about}
        case Refund():
            return {"at_ms": entry.at_ms, entry.ask.kind: refund_told(entry), "key": entry.key}


def _asked(ask: Ask, card: str | None) -> dict[str, Any]:
    """What an effect is of, and where an amount goes; a cancellation names none."""
    if ask.amount is None:
        return {"charge": ask.charge}
    return {"charge": ask.charge, "amount": ask.amount.minor, "currency": ask.amount.currency, "destination": card}

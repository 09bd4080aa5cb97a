"""What the ledger keeps: one frozen row for each table, and how rows are named and hashed.

Names are hashes of what they name, so that a store which lost everything would still send the same keys.
"""

from __future__ import annotations

import base64
import hashlib
import json
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from callwright.declare.actions import Authority, Card, Money, Terms
from callwright.ids import Ms
from callwright.ledger.operation import Actor, State, Step
from callwright.ledger.provider import Outcome

NOTHING_INSTEAD: Final = "null"
"""What is wanted instead of an operation that is withdrawn while it is under way."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What is done to one thing. Its key is kind, subject and slot; ``op_id`` is their hash."""

    op_id: str
    kind: str
    subject: str
    slot: str
    party: str
    """Whose it is: nobody else sees or changes it."""
    provider: str
    authority: Authority
    must_hear: str
    """The terms that a caller has to hear before he counts as told, joined by commas."""
    rev: int
    terms_json: str
    params_hash: str
    state: State
    state_version: int
    """How many events it has had; a write compares it with what it read."""
    milestone: str
    """What may be said of it: the state, but while a key in doubt is sent again it stays ``unknown``."""
    fact_version: int
    """The state's version at which what may be said of it changed last."""
    amend_json: str | None
    """The terms that are wanted instead, or `NOTHING_INSTEAD`, while what is under way cannot be changed yet."""
    escalated: str
    """Why a person has to look at it; empty if none has to."""
    changed_at_ms: Ms

    @property
    def terms(self) -> Terms:
        """The terms of the present revision."""
        return read_terms(self.terms_json)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One dispatch of one revision; it owns the provider's key."""

    op_id: str
    n: int
    rev: int
    provider_key: str
    params_hash: str
    terms_json: str
    sends: int
    """How often it was, or may have been, sent."""
    opened_at_ms: Ms
    sent_at_ms: Ms
    """When it was sent last."""
    asked_at_ms: Ms
    """When its look-up or cancel was answered last; before the first one, when it was opened."""
    outcome: Outcome | None
    """What was observed last; None as long as nothing was."""
    reference: str | None
    """The provider's own id."""

    @property
    def is_unresolved(self) -> bool:
        """Whether it may yet have an effect that nobody knows of."""
        return self.outcome in UNRESOLVED


UNRESOLVED = (None, Outcome.UNKNOWN, Outcome.STILL_OPEN, Outcome.ABSENT)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something observed of one attempt; the same observation again is the same row."""

    evidence_id: str
    op_id: str
    n: int
    source: Actor
    outcome: Outcome
    reference: str | None
    version: int | None
    reason: str
    received_at_ms: Ms


@dataclass(frozen=True, slots=True)
class Authorization:
    """Leave to dispatch one revision, for a while; one chain of attempts uses it up."""

    op_id: str
    version: int
    """The operation's version that it led to."""
    rev: int
    params_hash: str
    granted_by: Actor
    expires_at_ms: Ms
    consumed_n: int | None
    """The first attempt that was made on it."""


@dataclass(frozen=True, slots=True)
class Told:
    """What became of telling the caller one fact, as ``core`` decided it."""

    op_id: str
    milestone: str
    version: int
    state: str
    at_ms: Ms


@dataclass(frozen=True, slots=True)
class Waiting:
    """A caller who waits on the line for what becomes of an operation."""

    op_id: str
    since_ms: Ms
    done_at_ms: Ms | None
    """Since when he does not: he heard how it ended, or it was left to the outbox."""


@dataclass(frozen=True, slots=True)
class Outbox:
    """Something owed outside the call: a person has to look, or somebody has to be sent a message."""

    op_id: str
    version: int
    """The operation's version that it is about, or that it led to."""
    kind: str
    """``person``, ``conflict`` or ``untold``."""
    reason: str
    """A short code, the terms that were wanted too late, or the sentence that is to be passed on."""
    done_at_ms: Ms | None


@dataclass(frozen=True, slots=True)
class Event:
    """One step of an operation, numbered without gaps; a change without a step names none."""

    op_id: str
    seq: int
    step: Step | None
    source: State | None
    target: State
    actor: Actor
    cause: str
    at_ms: Ms


Row = Operation | Attempt | Evidence | Authorization | Told | Waiting | Outbox | Event


def canonical(value: object) -> str:
    """JSON that is equal for equal values: sorted keys, no spaces, normal form C."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return unicodedata.normalize("NFC", text)


def _hash(*parts: object) -> str:
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


def _short(*parts: object) -> str:
    digest = hashlib.sha256(canonical(parts).encode()).digest()
    return base64.b32encode(digest[:20]).decode().lower()


def operation_id(kind: str, subject: str, slot: str) -> str:
    """The name of an operation."""
    return _short("operation", kind, subject, slot)


def provider_key(op_id: str, rev: int, n: int) -> str:
    """The idempotency key of one attempt: the same after any crash, and it says nothing of what is done."""
    return _short("attempt", op_id, rev, n)


def params_hash(kind: str, slot: str, terms_json: str) -> str:
    """SHA-256 of what exactly is to be done."""
    return _hash(kind, slot, terms_json)


def evidence_id(op_id: str, n: int, source: Actor, *what: object) -> str:
    """The name of an observation: the same one again has the same name."""
    return _hash(op_id, n, source.value, *what)


def write_terms(terms: Terms) -> str:
    """Terms as canonical JSON."""
    return canonical(
        {
            "subject": terms.subject,
            "amount": _written_money(terms.amount),
            "card": [terms.card.token, terms.card.brand, terms.card.last4] if terms.card else None,
            "cap": _written_money(terms.cap),
            "details": dict(terms.details),
        }
    )


@lru_cache(1024)
def read_terms(text: str) -> Terms:
    """Terms from their JSON."""
    read: dict[str, Any] = json.loads(text)
    return Terms(
        subject=read["subject"],
        amount=Money(*read["amount"]) if read["amount"] else None,
        card=Card(*read["card"]) if read["card"] else None,
        cap=Money(*read["cap"]) if read["cap"] else None,
        details=MappingProxyType(read["details"]),
    )


def _written_money(money: Money | None) -> list[object] | None:
    return [money.minor, money.currency] if money else None

"""The stand-in provider's own book: it owns the truth about all money given back, and about every request for it.

Money is given back by a refund, or by the cancellation of an order, which gives back all of it and settles at once.

The book is append-only, and each entry has its instant. A request is entered when its first byte leaves, whether it
arrives or not; a refund is entered anew at every change:

```
sent key=K ......... pending v1 ------------- succeeded v2 ------- reversed v3     (comes back, days later)
  |  lost, late, or      |                        ^
  |  executed at once    +-- cancelled v2         settles_ms after its request
  |                      +-- failed v2
```

Time is an argument. What is due, such as a settlement, is entered with its own instant as soon as the book is told
a later one.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeAlias

from callwright.core.table import Table
from callwright.declare.actions import Money
from callwright.errors import UsageError
from callwright.ids import Ms

REFUND_KIND: Final = "refund"
CANCELLATION_KIND: Final = "cancellation"
"""The kinds of effect, as a merchant's actions call them."""
_CHARGE: Final = re.compile(r"(?P<id>[^=\s]+)=(?P<minor>[0-9]+),(?P<currency>[A-Z]{3}),(?P<cards>[^,\s]+(,[^,\s]+)*)")
_PREFIXES: Final[Mapping[str, str]] = {REFUND_KIND: "re", CANCELLATION_KIND: "ca"}


class Status(Enum):
    """What became of a refund."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REVERSED = "reversed"

    @property
    def is_live(self) -> bool:
        """Whether the money has gone, or is going."""
        return self in (Status.PENDING, Status.SUCCEEDED)


class Cue(Enum):
    """What can happen to a refund."""

    SETTLE = "settle"
    FAIL = "fail"
    CANCEL = "cancel"
    REVERSE = "reverse"
    RESUME = "resume"


REFUND: Final = Table(
    "refund",
    Status.PENDING,
    {
        (Status.PENDING, Cue.SETTLE): Status.SUCCEEDED,
        (Status.PENDING, Cue.FAIL): Status.FAILED,
        (Status.PENDING, Cue.CANCEL): Status.CANCELLED,
        (Status.SUCCEEDED, Cue.REVERSE): Status.REVERSED,
        (Status.FAILED, Cue.RESUME): Status.PENDING,
    },
)


@dataclass(frozen=True, slots=True)
class Charge:
    """A payment that was taken, and can be refunded."""

    id: str
    """The merchant's own name for what was paid, for example ``order:4417``."""
    captured: Money
    cards: tuple[str, ...]
    """Tokens of the customer's cards on file; the first one paid."""
    is_shipped: bool = False
    """Whether the goods have left the house: the order can be refunded then, and no longer cancelled."""

    @classmethod
    def parse(cls, text: str) -> Charge:
        """Read ``ID=MINOR,CURRENCY,CARD,...``; the first card paid, and nothing was shipped. Raises UsageError."""
        found = _CHARGE.fullmatch(text)
        if found is None or int(found["minor"]) == 0:
            raise UsageError(
                f"charge {text!r}: expected ID=MINOR,CURRENCY,CARD..., such as order:4417=3200,USD,card:4242"
            )
        return cls(found["id"], Money(int(found["minor"]), found["currency"]), tuple(found["cards"].split(",")))


@dataclass(frozen=True, slots=True)
class Ask:
    """What one request asks for."""

    charge: str
    amount: Money | None
    """None for a cancellation: it gives back whatever was captured."""
    card: str | None
    """Token of the card to refund to; None for the one that paid."""
    op: str = ""
    """The merchant's own reference."""
    slot: str = "full"
    kind: str = REFUND_KIND

    @property
    def fingerprint(self) -> str:
        """The same for the same parameters, and for no others."""
        amount = None if self.amount is None else (self.amount.minor, self.amount.currency)
        parts = [self.kind, self.charge, amount, self.card, self.op, self.slot]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Sent:
    """A request whose first byte left; nothing says that it arrived."""

    at_ms: Ms
    key: str
    ask: Ask


@dataclass(frozen=True, slots=True)
class Refund:
    """Money given back, as it is since ``at_ms``."""

    id: str
    ask: Ask
    card: str
    """Token of the card that the money goes to."""
    key: str
    """The idempotency key of the request that made it."""
    created_ms: Ms
    at_ms: Ms
    version: int = 1
    status: Status = Status.PENDING


Entry: TypeAlias = Sent | Refund


class Book:
    """All refunds of one provider. No method takes an earlier instant than the one before."""

    def __init__(self, charges: Iterable[Charge]) -> None:
        self.charges: Mapping[str, Charge] = {charge.id: charge for charge in charges}
        self.entries: list[Entry] = []
        """Everything that was ever entered, in order; never changed."""
        self._now_ms: Ms = 0
        self._history: dict[str, list[Refund]] = {}
        self._due: list[tuple[Ms, int, str, Cue]] = []
        self._order = itertools.count()

    def note_sent(self, key: str, ask: Ask, now_ms: Ms) -> None:
        """A request left for the provider."""
        self.advance(now_ms)
        self.entries.append(Sent(now_ms, key, ask))

    def open(self, ask: Ask, key: str, now_ms: Ms) -> Refund:
        """Make a refund, pending. The charge must be in the book."""
        self.advance(now_ms)
        card = ask.card or self.charges[ask.charge].cards[0]
        refund = Refund(f"{_PREFIXES[ask.kind]}_{len(self._history) + 1}", ask, card, key, now_ms, now_ms)
        self._history[refund.id] = [refund]
        self.entries.append(refund)
        return refund

    def schedule(self, refund_id: str, cue: Cue, due_ms: Ms) -> None:
        """Let something happen to a refund later, if its status allows it then."""
        heapq.heappush(self._due, (due_ms, next(self._order), refund_id, cue))

    def change(self, refund_id: str, cue: Cue, now_ms: Ms) -> Refund:
        """Let something happen to a refund now. Raises IllegalTransition, and changes nothing then."""
        self.advance(now_ms)
        return self._enter(refund_id, cue, now_ms)

    def advance(self, now_ms: Ms) -> None:
        """Enter what is due by then."""
        assert now_ms >= self._now_ms, "time runs forwards"
        while self._due and self._due[0][0] <= now_ms:
            due_ms, _, refund_id, cue = heapq.heappop(self._due)
            if REFUND.allows(self.current(refund_id).status, cue):
                self._enter(refund_id, cue, due_ms)
        self._now_ms = now_ms

    def _enter(self, refund_id: str, cue: Cue, at_ms: Ms) -> Refund:
        old = self.current(refund_id)
        status = REFUND.after(old.status, cue)
        refund = replace(old, at_ms=at_ms, version=old.version + 1, status=status)
        self._history[refund_id].append(refund)
        self.entries.append(refund)
        return refund

    def __contains__(self, refund_id: str) -> bool:
        return refund_id in self._history

    def current(self, refund_id: str) -> Refund:
        """A refund as it is. Raises KeyError."""
        return self._history[refund_id][-1]

    def as_of(self, refund_id: str, at_ms: Ms) -> Refund | None:
        """A refund as it was; None before it was made. Raises KeyError."""
        return next((refund for refund in reversed(self._history[refund_id]) if refund.at_ms <= at_ms), None)

    def refunds(self) -> Iterator[Refund]:
        """All refunds as they are, in the order of their making."""
        return (versions[-1] for versions in self._history.values())

    def live(self, charge: str) -> list[Refund]:
        """What of a charge has been given back or is about to be."""
        return [each for each in self.refunds() if each.ask.charge == charge and each.status.is_live]

    def given_back(self, ask: Ask) -> Money:
        """How much is given back where this is done."""
        return ask.amount or self.charges[ask.charge].captured

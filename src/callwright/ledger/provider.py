"""The contract of a provider: the system of record that does what an action plans, and knows what was done.

An adapter sends, looks up and cancels, and says what its provider promises: for how long a key is remembered, what a
repeat of it does, what to do when an outcome is in doubt. It classifies what it observes, and decides nothing: which
state follows is the ledger's business.

| observed | outcome |
|---|---|
| connecting failed, and not one byte of the request left | NOT_SENT |
| refused before it was executed (400 to 404, 422); on a look-up: an object that failed for good | NOT_APPLIED |
| the same key is in use (409), too early (425), too often (429) | STILL_OPEN |
| timeout, reset, 5xx, unreadable body, or another amount, currency, card or reference than was asked | UNKNOWN |
| the provider holds it, the outcome is pending | ACCEPTED |
| it was done | APPLIED |
| it was done, and undone or failed later | REVERSED |
| a cancel took hold; on a look-up: an object that was cancelled | CANCELLED |
| a look-up that found nothing, which proves nothing | ABSENT |

"Already refunded" is no outcome: the adapter looks up, and says what it found. An adapter may raise; whatever it raises
counts as UNKNOWN.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from callwright.declare.actions import AUTOMATIC, Authority, Card, Money, Terms
from callwright.errors import Refuse
from callwright.ids import Ms

__all__ = [
    "AUTOMATIC",
    "Authority",
    "Card",
    "Dispatch",
    "Idempotency",
    "Money",
    "Observed",
    "OnAmbiguous",
    "Outcome",
    "Provider",
    "Refuse",
    "Terms",
    "Traits",
]


class Idempotency(Enum):
    """What a provider does with a key that it has seen."""

    REPLAY = "replay"
    """Answers as it answered first, whatever that was."""
    RESUME = "resume"
    """Finishes what was left undone, and repeats nothing that was done."""
    CURRENT_STATE = "current-state"
    """Answers with what became of the first request."""
    SUCCESS_ONLY = "success-only"
    """Remembers only what it answered with success: after a failed answer the same key may be done twice."""
    NONE = "none"
    """Does it again."""

    @property
    def protects(self) -> bool:
        """Whether a key that is in doubt may be sent again."""
        return self in (Idempotency.REPLAY, Idempotency.RESUME, Idempotency.CURRENT_STATE)


class OnAmbiguous(Enum):
    """What is done about an attempt in doubt."""

    QUARANTINE = "quarantine"
    """Look it up; never send it again. What look-ups do not settle goes to a person."""
    SAME_KEY = "same-key"
    """Send the same key again at once, inside its window."""
    PROBE = "probe"
    """Look it up first; if nothing is found for long enough, send the same key again, inside its window."""


class Outcome(Enum):
    """What an adapter saw; the table is in the module's docstring."""

    NOT_SENT = "not_sent"
    NOT_APPLIED = "not_applied"
    STILL_OPEN = "still_open"
    UNKNOWN = "unknown"
    ACCEPTED = "accepted"
    APPLIED = "applied"
    REVERSED = "reversed"
    CANCELLED = "cancelled"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Traits:
    """What a provider promises. Raises ValueError for promises that contradict each other."""

    idempotency: Idempotency
    on_ambiguous: OnAmbiguous
    window_ms: Ms
    """How long a key is remembered, from its first use."""
    margin_ms: Ms
    """So long before the window's end a key is sent no more; at least ``request_max_ms``."""
    absence_wait_ms: Ms
    """So long after a send an empty look-up begins to count."""
    request_max_ms: Ms
    """How long a request may be under way before it lands or is lost for good."""
    cancels: tuple[Outcome, ...] = ()
    """What can still be cancelled: ``(Outcome.ACCEPTED,)``, or nothing."""
    destination_change: bool = False
    """Whether money can go elsewhere than where it came from."""

    def __post_init__(self) -> None:
        if self.on_ambiguous is OnAmbiguous.SAME_KEY and not self.idempotency.protects:
            raise ValueError(f"{self.idempotency.value} keys do not protect from a repeat: quarantine or probe")
        if self.idempotency.protects and self.margin_ms < self.request_max_ms:
            raise ValueError("margin_ms is below request_max_ms: a repeat could land after its key is forgotten")
        if min(self.window_ms, self.margin_ms, self.absence_wait_ms, self.request_max_ms) < 0:
            raise ValueError("lengths of time are not negative")


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One attempt at an operation, as an adapter is handed it to send, look up or cancel."""

    op_id: str
    rev: int
    """The operation's revision: which terms."""
    n: int
    """The attempt's number within the operation, from 1."""
    key: str
    """The provider's idempotency key: the same for every send of this attempt, and no other's."""
    kind: str
    """What is done, for example ``refund``."""
    slot: str
    """Which of the subject's operations of this kind, for example ``full``."""
    terms: Terms
    params_hash: str
    """SHA-256 of kind, slot and terms: a key belongs to one of these."""
    reference: str | None = None
    """The provider's own id of it, once known."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What an adapter saw of one attempt. What an object of the provider says of itself comes along, to be compared."""

    outcome: Outcome
    reference: str | None = None
    """The provider's own id of it."""
    amount: Money | None = None
    card_token: str | None = None
    version: int | None = None
    """The object's own version or time: a later state of it has a greater one. None where a provider has neither."""
    reason: str = ""
    """A short code from the adapter's own list, for example ``timeout`` or ``http_503``; never a provider's prose."""
    escalates: bool = False
    """A person has to look: what came back is not what was asked for."""


class Provider(Protocol):
    """A system of record. Each method may raise or be cancelled at any time; the outcome is UNKNOWN then."""

    name: str
    """Under which attempts are stored; it must not change while any is open."""
    traits: Traits

    async def send(self, dispatch: Dispatch) -> Observed:
        """Do it, under the dispatch's key."""
        ...

    async def look_up(self, dispatch: Dispatch) -> Observed:
        """Say what became of it, by reference, key or metadata; do nothing."""
        ...

    async def cancel(self, dispatch: Dispatch) -> Observed:
        """Stop what was accepted: CANCELLED if that took hold, else what became of it."""
        ...

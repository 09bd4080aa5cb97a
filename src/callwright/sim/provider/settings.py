"""How the stand-in payment provider behaves: what it answers, what it remembers, and what goes wrong with it.

Every fault has a name, a rate, and a counter of how often it happened. The rest are habits that real providers have,
each documented by one of them at least.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final

from callwright.errors import UsageError
from callwright.ids import Ms
from callwright.ledger.provider import Idempotency, OnAmbiguous, Outcome, Traits
from callwright.sim.advice import one_of

_MINUTE: Final = 60_000
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR


class Answers(Enum):
    """When the provider answers."""

    PENDING = "pending"
    """Soon, with a pending refund that settles later."""
    SYNC = "sync"
    """Once the refund is settled; it cannot be cancelled."""


class Cancel(Enum):
    """Until when a refund can be cancelled."""

    UNTIL_SETTLED = "until_settled"
    NEVER = "never"


class Destinations(Enum):
    """Where the money may go."""

    ON_FILE = "on_file"
    """To any card of the charge's customer."""
    ORIGINAL = "original"
    """To the card that was charged, and to no other."""


FAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "refused": "F1: connecting fails, and nothing is sent",
        "lost-request": "F2: the request never arrives",
        "lost-reply": "F3: the refund is made, and the answer never arrives",
        "late": "F4: the request lands after the client gave up",
        "error-before": "F5: a 500, and nothing was done",
        "error-after": "F6: a 500, although the refund was made",
        "busy": "F7: 429, or 409 as if the key were in use; nothing was done",
        "garbled": "F8: the answer is cut short, or names another amount",
        "key-pruned": "F9: a key is forgotten at the end of its window, instead of some time after",
        "already-refunded": "F12: a charge that has been refunded is not refunded again",
        "declined": "402: the refund is refused for good",
        "pending-days": "F13: a refund stays pending for days",
        "fails": "a pending refund fails instead of settling",
        "reversed": "F14: a settled refund comes back later",
        "lookup-lag": "F15: a new refund is not found for a while",
        "lookup-stale": "F15: a look-up tells of a refund as it was a while ago",
        "lookup-short": "F15: a page of refunds ends too soon",
        "lookup-down": "F16: a look-up is refused, fails or is never answered",
        "cancel-too-late": "F17: the refund settles before the cancel arrives",
        "cancel-lost-request": "F17: the cancel never arrives",
        "cancel-lost-reply": "F17: the cancel takes hold, and the answer never arrives",
    }
)
"""What can be made to go wrong, by name."""

NOTED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "other-params": "F10: a key came again with other parameters, and was refused",
        "paid-again": "F11: a key that had made a refund made another one",
        "replayed": "a key came again, and nothing was done again",
        "in-use": "a key came again while the first request was still under way",
    }
)
"""What depends on the client, and is only counted."""

_FAULT = re.compile(r"(?P<name>[\w-]+)(?:=(?P<rate>[0-9.]+))?(?:\*(?P<times>[0-9]+))?")


@dataclass(frozen=True, slots=True)
class Fault:
    """How often something goes wrong. Raises UsageError for a rate that is no probability."""

    rate: float = 1.0
    """The chance at each occasion, 0 to 1."""
    times: int | None = None
    """After so many it does not happen again; None for no limit."""

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1:
            raise UsageError(f"the rate of a fault is a number from 0 to 1, not {self.rate:g}")


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """Habits and faults of one stand-in provider. Raises UsageError for a fault that does not exist."""

    answers: Answers = Answers.PENDING
    after_ms: Ms = 150
    """From the arrival of a request to its answer, where that does not wait for the settlement."""
    settles_ms: Ms = 4_000
    """From the arrival of a request to the settlement of its refund."""
    cancel: Cancel = Cancel.UNTIL_SETTLED
    destinations: Destinations = Destinations.ON_FILE
    idempotency: Idempotency = Idempotency.REPLAY
    window_ms: Ms = _DAY
    """How long a key is promised to be remembered."""
    kept_ms: Ms = 3 * _DAY
    """How long it is remembered in fact, unless ``key-pruned`` happens to it."""
    lookup_ms: Ms = 50
    """From the arrival of a look-up or a cancel to its answer."""
    late_ms: tuple[Ms, Ms] = (30_000, 10 * _MINUTE)
    """How late a late request lands, the least and the most."""
    lag_ms: Ms = 30_000
    """For so long a new refund is not found, and so old is what a stale look-up tells."""
    pending_days_ms: tuple[Ms, Ms] = (_DAY, 5 * _DAY)
    reversed_ms: tuple[Ms, Ms] = (_MINUTE, 3 * _DAY)
    """From the settlement of a refund to its coming back, the least and the most."""
    faults: Mapping[str, Fault] = field(default_factory=dict)
    faults_until_ms: Ms | None = None
    """From then on nothing goes wrong any more; None for never."""

    def __post_init__(self) -> None:
        for name in self.faults:
            if name not in FAULTS:
                raise UsageError(f"the stand-in provider's fault {name!r}: expected {one_of(FAULTS, name)}")

    @property
    def traits(self) -> Traits:
        """What an adapter has to know of a provider with these settings."""
        longest = self.late_ms[1] + self.settles_ms
        cancels = self.answers is Answers.PENDING and self.cancel is Cancel.UNTIL_SETTLED
        return Traits(
            idempotency=self.idempotency,
            on_ambiguous=OnAmbiguous.PROBE if self.idempotency.protects else OnAmbiguous.QUARANTINE,
            window_ms=self.window_ms,
            margin_ms=longest + _MINUTE,
            absence_wait_ms=self.lag_ms,
            request_max_ms=longest,
            cancels=(Outcome.ACCEPTED,) if cancels else (),
            destination_change=self.destinations is Destinations.ON_FILE,
        )


def parse_fault(text: str) -> tuple[str, Fault]:
    """Read ``NAME``, ``NAME=RATE`` or ``NAME=RATE*TIMES``. Raises UsageError."""
    found = _FAULT.fullmatch(text)
    if found is None or found["name"] not in FAULTS:
        name = found["name"] if found else text
        raise UsageError(f"fault {text!r}: expected NAME=RATE, with {one_of(FAULTS, name)}")
    try:
        rate = float(found["rate"] or 1)
    except ValueError:
        raise UsageError(f"fault {text!r}: expected NAME=RATE with a rate from 0 to 1") from None
    return found["name"], Fault(rate, int(found["times"]) if found["times"] else None)

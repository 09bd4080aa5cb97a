"""What an action plans: its terms, and on whose word it may be done.

An action's function only plans. It returns ``Terms``, or raises :class:`~callwright.errors.Refuse` with a reason that
the model may pass on; the provider that the action names does it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

_CURRENCY = re.compile(r"[A-Z]{3}")
_LAST4 = re.compile(r"[0-9]{4}")
_NOTHING: Mapping[str, str] = MappingProxyType({})


class Authority(Enum):
    """On whose word an action may be dispatched."""

    AUTOMATIC = "automatic"
    """The app's own rules: what its function plans is allowed."""
    CALLER = "caller"
    """The caller's yes to a read-back of exactly these terms."""
    HUMAN = "human"
    """A person's, outside the call."""


AUTOMATIC = Authority.AUTOMATIC


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in whole minor units (cents) of a currency. Raises ValueError for anything else, a float above all."""

    minor: int
    currency: str
    """Three capital letters, as in ISO 4217."""

    def __post_init__(self) -> None:
        if type(self.minor) is not int or self.minor <= 0:
            raise ValueError(f"an amount is a whole number of minor units above zero, not {self.minor!r}")
        if not _CURRENCY.fullmatch(self.currency):
            raise ValueError(f"a currency is three capital letters such as USD, not {self.currency!r}")


@dataclass(frozen=True, slots=True)
class Card:
    """A card on file: the provider's token, and what may be said of it. Raises ValueError if last4 is not four digits.

    The card's number has no place here.
    """

    token: str
    brand: str
    last4: str

    def __post_init__(self) -> None:
        if not _LAST4.fullmatch(self.last4):
            raise ValueError("last4 is four digits")


@dataclass(frozen=True, slots=True)
class Terms:
    """What exactly is to be done; the same terms hash alike, and any change makes a new revision of the operation."""

    subject: str
    """The thing acted on, for example ``order:4417``; with kind and slot it names the operation."""
    amount: Money | None = None
    card: Card | None = None
    """Where the money goes."""
    cap: Money | None = None
    """The most that all operations of this kind may come to on this subject; None for no limit."""
    details: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Further terms of an action that is not a payment, as text by name."""

    def __post_init__(self) -> None:
        if not self.subject.strip():
            raise ValueError("an action needs a subject, the thing that it acts on, for example order:4417")
        if self.cap is not None and (self.amount is None or self.amount.currency != self.cap.currency):
            raise ValueError("a cap limits an amount of its own currency")

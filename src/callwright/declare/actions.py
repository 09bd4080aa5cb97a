"""What an action plans: its terms, and on whose word it may be done.

An action's function only plans. It returns ``Terms``, or raises :class:`~callwright.errors.Refuse` with a reason that
the model may pass on; the provider that the action names does it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final, Protocol

from callwright.claims.lexicon import Lexicon, lexicon_of
from callwright.errors import DeclarationError, UsageError

_CURRENCY = re.compile(r"[A-Z]{3}")
_LAST4 = re.compile(r"[0-9]{4}")
_KIND = re.compile(r"[a-z][a-z0-9_]*")
_NOTHING: Mapping[str, str] = MappingProxyType({})
MUST_HEAR: Final = ("amount", "card", "subject")
"""The terms that every caller may have to hear; an action's own details come beside them."""


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

    token: str = field(repr=False)
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


class Named(Protocol):
    """What an action has to know of its provider: the name under which the ledger has it."""

    @property
    def name(self) -> str:
        """The name."""
        ...


@dataclass(frozen=True, slots=True)
class Action:
    """What makes an action of a tool: what it does, once, and what the caller has to hear of it."""

    kind: str
    """What is done, for example ``refund``; with the terms' subject and the slot it names the operation."""
    slot: str | Callable[[Terms], str]
    """Which of a subject's operations of this kind: a fixed one, or found from the terms."""
    provider: str
    """The name of the provider that does it."""
    must_hear: tuple[str, ...]
    authority: Authority
    lexicon: Lexicon | None
    """The words of a kind that has none in `claims`."""

    def slot_of(self, terms: Terms) -> str:
        """The slot of planned terms. Raises whatever a function of the app's raises, and ValueError for no slot."""
        slot: object = self.slot if isinstance(self.slot, str) else self.slot(terms)
        if not isinstance(slot, str) or not slot.strip():
            raise ValueError(f"a slot is a text that is not empty, not {slot!r}")
        return slot


def declare_action(
    what: str,
    *,
    kind: str,
    slot: str | Callable[[Terms], str],
    provider: Named | str,
    must_hear: Sequence[str],
    details: tuple[str, ...],
    authority: Authority,
    lexicon: Lexicon | None,
) -> Action:
    """Check what an action says of itself; ``what`` begins its problems. Raises DeclarationError."""
    if not _KIND.fullmatch(kind):
        raise DeclarationError(f"{what}: kind is {kind!r}; expected a word such as refund or cancel_order")
    if isinstance(slot, str) and not slot.strip():
        raise DeclarationError(f"{what}: slot is empty; expected a word such as full, or a function of the terms")
    name = provider if isinstance(provider, str) else getattr(provider, "name", None)
    if not isinstance(name, str) or not name:
        raise DeclarationError(f"{what}: provider is {provider!r}; expected the system that does it, or its name")
    if isinstance(must_hear, str):
        raise DeclarationError(f"{what}: must_hear is one text; expected a tuple such as ({must_hear!r},)")
    if wrong := [field for field in must_hear if field not in (*MUST_HEAR, *details)]:
        known = ", ".join((*MUST_HEAR, *details))
        raise DeclarationError(f"{what}: must_hear: there is no {wrong[0]!r}; known: {known}, and what details names")
    if not isinstance(authority, Authority):
        raise DeclarationError(f"{what}: authority is {authority!r}; expected a callwright.Authority")
    if lexicon is None:
        try:
            lexicon_of(kind)
        except UsageError as problem:
            raise DeclarationError(
                f"{what}: {problem}, so that it is known when a caller is told: lexicon=callwright.Lexicon(...)"
            ) from problem
    return Action(kind, slot, name, tuple(must_hear), authority, lexicon)

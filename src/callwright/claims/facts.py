"""What the record says of an operation, as far as a sentence can say it; and what was found out about a sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from callwright.claims.lexicon import Lexicon, lexicon_of
from callwright.claims.numbers import CURRENCIES
from callwright.errors import UsageError

Span = tuple[int, int]
"""From a word up to a word (excluded), counted from 0 as blanks divide the heard text."""


class Milestone(StrEnum):
    """How far an operation is, in the record."""

    PROPOSED = "proposed"
    """Nothing is done before somebody has said yes."""
    REQUESTED = "requested"
    RUNNING = "running"
    ACCEPTED = "accepted"
    CONFIRMED = "confirmed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"
    REVERSED = "reversed"


SETTLED = (Milestone.CONFIRMED, Milestone.FAILED, Milestone.CANCELLED, Milestone.REVERSED)
"""Nothing further is under way."""
OUTCOMES = (*SETTLED, Milestone.UNKNOWN)
"""What a caller is owed. What is still under way he may be told; nothing is owed for it."""


class Said(StrEnum):
    """What a sentence claims about an operation."""

    DONE = "done"
    FAILED = "failed"
    PENDING = "pending"
    """Under way, or with the provider."""
    UNKNOWN = "unknown"
    """That it cannot be told."""
    CANCELLED = "cancelled"
    REVERSED = "reversed"
    NOTHING = "nothing"


class Verdict(StrEnum):
    """What a heard reply is worth for a milestone."""

    TOLD = "told"
    """The milestone and all that must be heard, affirmed."""
    PARTIAL = "partial"
    """The milestone, but not every field, or not clearly."""
    CONTRADICTED = "contradicted"
    """The opposite, or another outcome."""
    MISMATCH = "mismatch"
    """The milestone, with another amount, card or subject: worse than partial."""
    INTENT = "intent"
    """A plan, a wish, a question, a condition, somebody else's words."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ClaimFacts:
    """One operation as it may be told.

    ``must_hear`` names what has to be heard beside the milestone: ``amount``, ``card``, ``subject`` (or its noun, as
    ``order`` of ``order:4417``), or a key of ``texts``. Money is in minor units; ``exponent`` is the number of decimals
    that the provider counts for the currency. ``words`` are the words of the kind where it is not one of `LEXICONS`.

    Raises:
        UsageError: the kind has no words, the currency is not known, or something that must be heard has no value.
    """

    kind: str
    milestone: Milestone
    must_hear: tuple[str, ...] = ()
    amount_minor: int | None = None
    currency: str = ""
    exponent: int = 2
    brand: str = ""
    last4: str = ""
    subject: str = ""
    texts: tuple[tuple[str, str], ...] = ()
    words: Lexicon | None = None

    def __post_init__(self) -> None:
        if self.amount_minor is not None and self.currency not in CURRENCIES:
            raise UsageError(f"currency {self.currency!r}: expected one of {', '.join(CURRENCIES)}")
        known = {
            "amount": self.amount_minor is not None,
            "card": bool(self.brand or self.last4),
            "subject": bool(self.subject),
            **({self.noun: True} if self.subject else {}),
            **{name: bool(value) for name, value in self.texts},
        }
        for name in self.must_hear:
            if not known.get(name):
                raise UsageError(f"must_hear: {name!r} has no value in these facts")
        if self.words is None:
            lexicon_of(self.kind)

    @property
    def lexicon(self) -> Lexicon:
        """The words of the kind."""
        return self.words or lexicon_of(self.kind)

    @property
    def noun(self) -> str:
        """What the subject is: ``order`` of ``order:4417``."""
        return self.subject.partition(":")[0]

    @property
    def number(self) -> str:
        """The subject's own name: ``4417`` of ``order:4417``."""
        return self.subject.partition(":")[2]


@dataclass(frozen=True, slots=True)
class Match:
    """What a heard reply is worth: which fields were affirmed, and where the words are that decided."""

    verdict: Verdict
    affirmed: frozenset[str] = frozenset()
    spans: dict[str, Span] = field(default_factory=dict, hash=False)
    """``claim`` and the affirmed fields, by name."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a heard reply claims about an operation, and where; nothing at all where ``said`` is ``NOTHING``."""

    said: Said
    span: Span = (0, 0)

"""What may be said of an operation: one canonical sentence for each milestone, worded from the record alone.

Amounts and cards come from the stored terms, never from the model and never from a provider's prose. Digits of a card
are set apart, so that they are spoken one by one. A confirmation says what was sent; that it has arrived is the bank's
to say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from callwright.claims.facts import OUTCOMES as OUTCOMES
from callwright.claims.facts import SETTLED, Milestone
from callwright.declare.actions import Authority, Money, Terms
from callwright.ledger.rows import NOTHING_INSTEAD, Operation

SENTENCES: Mapping[str, str] = {
    Milestone.PROPOSED: "Nothing has been done yet about the {what}; it needs a yes first.",
    Milestone.REQUESTED: "The {what} has been noted, and nothing has been sent yet.",
    Milestone.RUNNING: "The {what} is being processed; there is no result yet.",
    Milestone.ACCEPTED: "The {what} has been submitted; there is no result yet.",
    Milestone.CONFIRMED: "The {what} is done.",
    Milestone.FAILED: "The {what} did not go through.",
    Milestone.UNKNOWN: "I can't tell yet whether the {what} went through; it is being checked.",
    Milestone.CANCELLED: "The {what} was stopped.",
    Milestone.REVERSED: "The {what} was sent, but it came back.",
}
AMENDING = " A change has been asked for, and takes hold only if the first one can still be stopped."
WITHDRAWING = " It is to be stopped, if that is still possible."
ESCALATED = " Somebody will look at it."

_SPOKEN_CURRENCIES = {"USD": ("dollar", "cent"), "EUR": ("euro", "cent"), "GBP": ("pound", "penny")}
_WITHOUT_MINOR = ("JPY", "KRW", "VND", "CLP")
_PENCE = {"penny": "pence"}


@dataclass(frozen=True, slots=True)
class FactChanged:
    """What may be said of an operation has changed; a reply that began before is stale."""

    op_id: str
    kind: str
    party: str
    milestone: str
    """The state's word, for example ``confirmed``."""
    version: int
    """Grows with every change of what may be said; with operation and milestone it names the fact."""
    must_hear: tuple[str, ...]
    """The terms that the caller has to hear."""
    terms: Terms
    sentence: str
    is_settled: bool
    """Whether nothing further is under way."""
    slot: str
    authority: Authority
    rev: int
    params_hash: str
    """With ``rev`` what a consent has to name."""


def fact_of(operation: Operation) -> FactChanged:
    """What may be said of an operation now."""
    return FactChanged(
        operation.op_id,
        operation.kind,
        operation.party,
        operation.milestone,
        operation.fact_version,
        tuple(operation.must_hear.split(",")) if operation.must_hear else (),
        operation.terms,
        sentence(operation),
        operation.milestone in SETTLED,
        operation.slot,
        operation.authority,
        operation.rev,
        operation.params_hash,
    )


def sentence(operation: Operation) -> str:
    """The canonical sentence of an operation, in English."""
    named = what(operation.kind, operation.terms, operation.must_hear.split(","))
    said = SENTENCES[operation.milestone].format(what=named)
    wish = {None: "", NOTHING_INSTEAD: WITHDRAWING}.get(operation.amend_json, AMENDING)
    return f"{said}{wish}{ESCALATED if operation.escalated else ''}"


def what(kind: str, terms: Terms, must_hear: Sequence[str] = (), say: Callable[[str], str] = str) -> str:
    """An action with its terms, for example ``refund of 32 dollars to the Visa ending in 4 2 4 2``.

    One without an amount is known by its subject: ``cancellation of order 5 5 3 0``. Details that must be heard come
    behind, as ``say`` writes them: ``booking of table 4 with name Reid``.
    """
    amount = f" of {spoken_money(terms.amount) if terms.amount else spoken_subject(terms.subject)}"
    card = f" to the {terms.card.brand} ending in {' '.join(terms.card.last4)}" if terms.card else ""
    details = [f"{name.replace('_', ' ')} {say(terms.details[name])}" for name in must_hear if name in terms.details]
    return f"{kind.replace('_', ' ')}{amount}{card}{' with ' if details else ''}{' and '.join(details)}"


def spoken_subject(subject: str) -> str:
    """A subject for speech: ``order 5 5 3 0`` of ``order:5530``."""
    noun, _, name = subject.partition(":")
    return f"{noun} {' '.join(name) if name.isdecimal() else name}".strip().replace("_", " ")


def spoken_money(money: Money) -> str:
    """An amount for speech, for example ``32 dollars and 50 cents``; other currencies by their code."""
    if money.currency in _WITHOUT_MINOR:
        return f"{money.minor} {money.currency}"
    whole, rest = divmod(money.minor, 100)
    if money.currency not in _SPOKEN_CURRENCIES:
        return f"{whole}.{rest:02} {money.currency}"
    major, minor = _SPOKEN_CURRENCIES[money.currency]
    parts = [_count(whole, major)] if whole else []
    parts += [_count(rest, minor)] if rest else []
    return " and ".join(parts)


def exponent_of(currency: str) -> int:
    """How many decimals an amount in minor units has."""
    return 0 if currency in _WITHOUT_MINOR else 2


def _count(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else _PENCE.get(noun, f'{noun}s')}"

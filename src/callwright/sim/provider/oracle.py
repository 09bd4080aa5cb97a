"""The judge of actions: it owns what the provider's book says about whoever dispatched them.

It reads the book, and never a ledger's tables. What the application asked for, which attempts were committed, and what
the record says in the end are handed in as plain data. A violation is named by the invariant that it breaks:

| | holds |
|---|---|
| I1 | never more than one live effect for one kind, subject and slot, never more back than was captured for a subject |
| I2 | no request leaves before its attempt was committed |
| I3 | no request under a new key while an older one of the same operation is live, or lands later |
| I4 | a key stands for one set of parameters, and is sent no more when its window nears its end |
| I5 | what the record says was done is in the book, with the same amount and card |
| I7 | no request that nobody authorised |
| I8 | what the record says was not done is not in the book |
| I10 | money goes where it was last authorised to go before it was sent |
| I22 | in the end nothing is open that is not in a person's hands (asked for only where faults have ended) |

All functions are pure. Let the book advance to the end of time first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from callwright.sim.provider.book import REFUND_KIND, Ask, Book, Refund, Sent, Status

if TYPE_CHECKING:
    from callwright.ids import Ms
    from callwright.ledger.provider import Money, Traits

Thing: TypeAlias = tuple[str, str, str]
"""Kind, subject and slot: what may be done once."""

_EXPONENTS: Final[Mapping[str, int]] = {"BHD": 3, "CLP": 0, "JOD": 3, "JPY": 0, "KRW": 0, "KWD": 3, "TND": 3, "VND": 0}
_USUAL_EXPONENT: Final = 2

_DONE: Final[Mapping[str, tuple[Status, ...]]] = {
    "accepted": (Status.PENDING, Status.SUCCEEDED),
    "confirmed": (Status.SUCCEEDED,),
    "cancelled": (Status.CANCELLED,),
    "reversed": (Status.REVERSED, Status.FAILED),
}
"""States of a record that name a refund, and a status that it must have had."""
_NOT_DONE: Final = ("proposed", "requested", "failed", "cancelled", "reversed")
"""States of a record that say that no money has gone or is going."""
_OPEN: Final = ("requested", "running", "unknown")
"""States of a record that a ledger must not be left in."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The application authorised this, at that instant."""

    at_ms: Ms
    op: str
    subject: str
    slot: str
    amount: Money | None
    card: str | None
    kind: str = REFUND_KIND


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt was durable at that instant."""

    key: str
    committed_ms: Ms


@dataclass(frozen=True, slots=True)
class Claim:
    """What the record says of one operation in the end."""

    op: str
    subject: str
    slot: str
    state: str
    """In small letters: ``confirmed``, ``failed``, ``unknown`` and so on."""
    amount: Money | None
    card: str | None
    reference: str | None = None
    escalated: bool = False
    """Whether it is in a person's hands."""
    kind: str = REFUND_KIND


@dataclass(frozen=True, slots=True)
class Record:
    """What is held against the book."""

    grants: tuple[Grant, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold, and where."""

    invariant: str
    what: str


@dataclass(frozen=True, slots=True)
class Effect:
    """A refund in the book, as it ended."""

    refund: Refund
    sent_ms: Ms
    """When the first request under its key left."""

    @property
    def thing(self) -> Thing:
        """What was done."""
        return self.refund.ask.kind, self.refund.ask.charge, self.refund.ask.slot

    def __str__(self) -> str:
        """For example ``refund order:4417 32.00 USD card:8812``, or ``cancellation order:5530``."""
        ask = self.refund.ask
        where = "" if ask.amount is None else f" {money(ask.amount)} {self.refund.card}"
        return f"{ask.kind} {ask.charge}{where}"


def money(amount: Money) -> str:
    """An amount as a person writes it, for example ``32.00 USD``."""
    places = _EXPONENTS.get(amount.currency, _USUAL_EXPONENT)
    if places == 0:
        return f"{amount.minor} {amount.currency}"
    units, rest = divmod(amount.minor, 10**places)
    return f"{units}.{rest:0{places}} {amount.currency}"


def effects(book: Book) -> list[Effect]:
    """All refunds that were ever made, in order."""
    sent = _first_sent(book)
    return [Effect(refund, sent.get(refund.key, refund.created_ms)) for refund in book.refunds()]


def live_effects(book: Book) -> list[Effect]:
    """The refunds whose money has gone or is going."""
    return [effect for effect in effects(book) if effect.refund.status.is_live]


def duplicate_effects(book: Book) -> int:
    """How many refunds became live while another one for the same subject and slot was."""
    return len(_doubled(book))


def missing_effects(book: Book, things: Iterable[Thing]) -> list[Thing]:
    """Which of these were not done, or not for good."""
    done = {effect.thing for effect in live_effects(book)}
    return [thing for thing in things if thing not in done]


def effects_per_thing(book: Book) -> dict[Thing, int]:
    """How many effects are live for each thing that was ever done."""
    counts = {effect.thing: 0 for effect in effects(book)}
    for effect in live_effects(book):
        counts[effect.thing] += 1
    return counts


def check(book: Book, record: Record, traits: Traits, *, healed: bool = False) -> list[Violation]:
    """Every violation. With ``healed`` faults ended long ago, so that nothing may be open any more."""
    found = [Violation(name, what) for name, judge in _CHECKS for what in judge(book, record, traits)]
    return found + ([Violation("I22", what) for what in _left_open(record)] if healed else [])


def _first_sent(book: Book) -> dict[str, Ms]:
    first: dict[str, Ms] = {}
    for entry in book.entries:
        if isinstance(entry, Sent):
            first.setdefault(entry.key, entry.at_ms)
    return first


def _doubled(book: Book) -> list[Refund]:
    """Refunds that became live while another one for the same thing was."""
    live: dict[Thing, dict[str, Refund]] = {}
    doubled = []
    for entry in book.entries:
        if isinstance(entry, Refund):
            of_thing = live.setdefault((entry.ask.kind, entry.ask.charge, entry.ask.slot), {})
            if not entry.status.is_live:
                of_thing.pop(entry.id, None)
                continue
            if of_thing and entry.id not in of_thing:
                doubled.append(entry)
            of_thing[entry.id] = entry
    return doubled


def _one_effect(book: Book, record: Record, traits: Traits) -> Iterator[str]:
    for refund in _doubled(book):
        yield f"{refund.id} at {refund.at_ms} ms: {refund.ask.charge} {refund.ask.slot} was refunded already"


def _within_captured(book: Book, record: Record, traits: Traits) -> Iterator[str]:
    live: dict[str, dict[str, int]] = {}
    for entry in book.entries:
        if isinstance(entry, Refund):
            amounts = live.setdefault(entry.ask.charge, {})
            amounts[entry.id] = book.given_back(entry.ask).minor if entry.status.is_live else 0
            captured = book.charges[entry.ask.charge].captured
            if entry.status.is_live and sum(amounts.values()) > captured.minor:
                yield f"{entry.id} at {entry.at_ms} ms: more than {money(captured)} of {entry.ask.charge}"


def _committed_first(book: Book, record: Record, traits: Traits) -> Iterator[str]:
    committed = {attempt.key: attempt.committed_ms for attempt in record.attempts}
    for entry in book.entries:
        if isinstance(entry, Sent) and not committed.get(entry.key, entry.at_ms + 1) <= entry.at_ms:
            yield f"a request left at {entry.at_ms} ms, before its attempt was committed"


def _one_unresolved(book: Book, record: Record, traits: Traits) -> Iterator[str]:
    """A new key is a violation while an effect of an older one is live, and if one lands afterwards."""
    first = _first_sent(book)
    opened: dict[str, str] = {}
    live: dict[str, dict[str, str]] = {}
    newest: dict[str, str] = {}
    for entry in book.entries:
        op = entry.ask.op
        if isinstance(entry, Refund):
            keys = live.setdefault(op, {})
            if not entry.status.is_live:
                keys.pop(entry.id, None)
                continue
            keys[entry.id] = entry.key
            late = newest.get(op, entry.key) != entry.key
            if entry.id not in opened and late and first.get(entry.key, 0) <= first[newest[op]]:
                yield f"{entry.id} of {op} landed at {entry.at_ms} ms, when a newer key had been sent"
            opened[entry.id] = entry.key
        elif newest.get(op) != entry.key:
            newest[op] = entry.key
            if any(key != entry.key for key in live.get(op, {}).values()):
                yield f"a new key for {op} was sent at {entry.at_ms} ms, while a refund of it was live"


def _keys_kept(book: Book, record: Record, traits: Traits) -> Iterator[str]:
    first: dict[str, Sent] = {}
    for entry in book.entries:
        if isinstance(entry, Sent):
            earliest = first.setdefault(entry.key, entry)
            if entry.ask != earliest.ask:
                yield f"a key was sent at {entry.at_ms} ms with other parameters than at {earliest.at_ms} ms"
            if entry.at_ms - earliest.at_ms > traits.window_ms - traits.margin_ms:
                yield f"a key of {earliest.at_ms} ms was sent at {entry.at_ms} ms, too near to the end of its window"


def _done_is_in_the_book(book: Book, record: Record, traits: Traits) -> Iterator[str]:
    for claim in record.claims:
        if claim.state not in _DONE or (claim.reference is None and claim.state == "cancelled"):
            continue
        if claim.reference is None or claim.reference not in book:
            yield f"{claim.op} is {claim.state}, and the book has no {claim.reference}"
            continue
        refund = book.current(claim.reference)
        had = [each.status for each in book.entries if isinstance(each, Refund) and each.id == refund.id]
        if not any(status in _DONE[claim.state] for status in had):
            yield f"{claim.op} is {claim.state}, and {refund.id} never was"
        if refund.ask.op != claim.op or (refund.ask.charge, refund.ask.slot) != (claim.subject, claim.slot):
            yield f"{claim.op} is {claim.state} by {refund.id}, which belongs to {refund.ask.op}"
        elif refund.ask.amount != claim.amount or claim.card not in (None, refund.card):
            yield f"{claim.op} is {claim.state}, and {refund.id} has another amount or card"


def _authorised(book: Book, record: Record, traits: Traits) -> Iterator[str]:
    for entry in book.entries:
        if isinstance(entry, Sent) and not any(_covers(grant, entry.ask, entry.at_ms) for grant in record.grants):
            yield f"a request for {entry.ask.charge} {entry.ask.slot} left at {entry.at_ms} ms, unauthorised"


def _covers(grant: Grant, ask: Ask, at_ms: Ms) -> bool:
    return grant.at_ms <= at_ms and (grant.kind, grant.op, grant.subject, grant.slot, grant.amount, grant.card) == (
        ask.kind,
        ask.op,
        ask.charge,
        ask.slot,
        ask.amount,
        ask.card,
    )


def _not_done_is_not_in_the_book(book: Book, record: Record, traits: Traits) -> Iterator[str]:
    for claim in record.claims:
        if claim.state in _NOT_DONE:
            for effect in live_effects(book):
                if effect.thing == (claim.kind, claim.subject, claim.slot):
                    yield f"{claim.op} is {claim.state}, and {effect.refund.id} is {effect.refund.status.value}"


def _to_the_right_card(book: Book, record: Record, traits: Traits) -> Iterator[str]:
    for effect in effects(book):
        if effect.refund.status in (Status.CANCELLED, Status.FAILED):
            continue
        granted = [
            each
            for each in record.grants
            if each.at_ms <= effect.sent_ms and (each.kind, each.subject, each.slot) == effect.thing
        ]
        if not granted:
            continue
        latest = max(each.at_ms for each in granted)
        cards = [each.card or book.charges[each.subject].cards[0] for each in granted if each.at_ms == latest]
        if effect.refund.card not in cards:
            yield f"{effect.refund.id} went to {effect.refund.card}; last authorised was {cards[-1]}"


def _left_open(record: Record) -> Iterator[str]:
    for claim in record.claims:
        if claim.state in _OPEN and not claim.escalated:
            yield f"{claim.op} is still {claim.state}, and nobody's task"


_Check: TypeAlias = "Callable[[Book, Record, Traits], Iterator[str]]"

_CHECKS: Final[tuple[tuple[str, _Check], ...]] = (
    ("I1", _one_effect),
    ("I1", _within_captured),
    ("I2", _committed_first),
    ("I3", _one_unresolved),
    ("I4", _keys_kept),
    ("I5", _done_is_in_the_book),
    ("I7", _authorised),
    ("I8", _not_done_is_not_in_the_book),
    ("I10", _to_the_right_card),
)

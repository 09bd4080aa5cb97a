"""The fields of an operation in heard clauses: amount, card, subject, and other texts.

Each field is affirmed, wrong, torn or absent. Right and wrong at once is neither ("32 of the 50 dollars"): a listener
cannot tell, so it counts as absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from functools import lru_cache

from callwright.claims.clauses import Clause, Reading
from callwright.claims.facts import ClaimFacts, Span
from callwright.claims.numbers import numbers_of
from callwright.claims.spelling import is_spelled
from callwright.claims.words import plain, tokens_of

BRANDS = {
    "visa": ("visa",),
    "mastercard": ("mastercard", "master card"),
    "amex": ("amex", "american express"),
    "american express": ("amex", "american express"),
    "discover": ("discover card",),
    "maestro": ("maestro",),
    "diners": ("diners club", "diners"),
    "jcb": ("jcb",),
    "unionpay": ("unionpay", "union pay"),
}
"""The card brands that are told apart, and how they are said."""

_BRAND = "|".join(sorted({name for names in BRANDS.values() for name in names}))
_FILLER = r"(?: (?:in|with|is|are|of|number|on|card|debit|credit|the|digits|account|numbers?|those))*"
_CARD = re.compile(
    rf" (?:ending|ends|ended|last(?: (?:four|4|N\d+))?(?: digits?| numbers?)?|digits|card|{_BRAND}){_FILLER} (N\d+)\b"
    rf"| (N\d+) (?:{_BRAND}|(?:debit |credit )?card)\b"
)
_OF_OTHERS = re.compile(
    r" (?:order|invoice|ticket|receipt|policy|booking|file|case)(?: number| total)? (?:that )?(?:ends|ending|ended)\b"
    rf"| (?:my|his|her|their|our|its|somebody's|another) (?:\w+ )?(?:{_BRAND}|card|account)\b"
)
_BARE_CARD = re.compile(r" (?:to|onto|on) (?:the |your |my )?(N\d+)\b|^ (N\d+)$")
_BRANDS_SAID = re.compile(rf" ({_BRAND})\b")
_AMOUNT = re.compile(r" (A\d+)\b")
_GROUP = re.compile(r" (N\d+)\b")
_OTHER_AMOUNT = re.compile(
    r" (?:orders?|payment|purchase|charged?|deposit|fee|balance|price|costs?|(?<!a )total|voucher|discount|shipping"
    r"|paid|worth|originally|limit)(?: (?:of|for|was|is|were|at|a|the|your|us|now))* (A\d+)\b(?! back\b)"
    r"|(?<! all) of the (A\d+)\b"
)
_ROUGHLY = re.compile(
    r" (?:(?:more|less|fewer) than|up to|at (?:least|most)|about|around|roughly|approximately|nearly|almost|over|under"
    r"|another|all but|everything but|part of|some of|twice|double)(?: (?:all|of|the|your|a))* (A\d+)\b"
    r"| (?:N\d+|several|many|few|multiple) \w+ (?:of|at) (A\d+)\b"
    r"| (A\d+) (?:less|more|or so|minus|plus|short|each|twice|monthly|apiece|at a time)\b"
    r"| (A\d+) (?:a|per|every) (?:day|week|month|year)\b"
)


class Found(Enum):
    """What became of a field."""

    AFFIRMED = auto()
    WRONG = auto()
    ABSENT = auto()


class Fields:
    """Looks for the fields of one operation in clauses of one reading."""

    def __init__(self, reading: Reading, facts: ClaimFacts) -> None:
        self._reading = reading
        self._facts = facts
        others = [clause.sentence for clause in reading.clauses if self._names_another_subject(clause)]
        self._elsewhere = frozenset(others)

    def look(self, clauses: Sequence[Clause]) -> dict[str, tuple[Found, Span]]:
        """Every field that the facts have a value for, by the name that ``must_hear`` can call it."""
        facts = self._facts
        found: dict[str, tuple[Found, Span]] = {}
        if facts.amount_minor is not None:
            found["amount"] = self._amount(clauses)
        if facts.last4 or facts.brand:
            found["card"] = self._card(clauses)
        if facts.subject:
            found["subject"] = found[facts.noun] = self._subject(clauses)
        for name, value in facts.texts:
            found[name] = self._text(clauses, value)
        return found

    def is_elsewhere(self, clause: Clause) -> bool:
        """Whether the sentence of a clause is about another order, booking, or whatever the subject is."""
        return clause.sentence in self._elsewhere

    def _amount(self, clauses: Sequence[Clause]) -> tuple[Found, Span]:
        votes: list[tuple[bool | None, Span]] = []
        for clause in clauses:
            names = _AMOUNT.findall(clause.text)
            if not names:
                continue
            matches = [*_OTHER_AMOUNT.finditer(clause.text), *_ROUGHLY.finditer(clause.text)]
            set_aside = [name for match in matches for name in match.groups() if name]
            votes += [(self._is_amount(int(name[1:])), clause.span) for name in names if name not in set_aside]
        return _settled(votes)

    def _is_amount(self, number: int) -> bool | None:
        amount, facts = self._reading.amounts[number], self._facts
        if self._reading.is_torn(amount):
            return None
        if not amount.is_in(facts.currency):
            return False
        if amount.value is not None and amount.value.minor(facts.exponent) == facts.amount_minor:
            return True
        if amount.value is None or any(other.minor(facts.exponent) == facts.amount_minor for other in amount.others):
            return None
        return False

    def _card(self, clauses: Sequence[Clause]) -> tuple[Found, Span]:
        last4 = self._facts.last4
        brand = _settled((self._is_brand(clause), clause.span) for clause in clauses)
        if brand[0] is Found.WRONG or not last4:
            return brand
        votes: list[tuple[bool | None, Span]] = []
        for clause in clauses:
            if len(set(_BRANDS_SAID.findall(clause.text))) > 1:
                votes += [(True, clause.span), (False, clause.span)]
            if " N" not in clause.text or _OF_OTHERS.search(clause.text):
                continue
            named = list(_CARD.finditer(clause.text))
            votes += [(self._is_number(match, last4), clause.span) for match in named]
            if not named:
                bare = [match for match in _BARE_CARD.finditer(clause.text) if self._is_number(match, last4)]
                votes += [(True, clause.span) for _ in bare]
        return _settled(votes)

    def _is_brand(self, clause: Clause) -> bool | None:
        said = _BRANDS_SAID.findall(clause.text)
        brand = self._facts.brand.lower()
        if not said or not brand:
            return None
        return any(name in BRANDS.get(brand, (brand,)) for name in said)

    def _is_number(self, match: re.Match[str], digits: str) -> bool | None:
        """Whether the group in a match is these digits; none where it is torn or of another length."""
        name = next(name for name in match.groups() if name)
        group = self._reading.groups[int(name[1:])]
        if self._reading.is_torn(group):
            return None
        if digits in group.readings:
            return True
        return False if any(len(row) == len(digits) for row in group.readings) else None

    def _names_another_subject(self, clause: Clause) -> bool:
        return " N" in clause.text and bool(self._facts.subject) and self._subject([clause])[0] is Found.WRONG

    def _subject(self, clauses: Sequence[Clause]) -> tuple[Found, Span]:
        noun, number = self._facts.noun, self._facts.number
        if not number.isdecimal():
            return self._text(clauses, number)
        named = _named(noun)
        return _settled(
            (self._is_number(match, number), clause.span) for clause in clauses for match in named.finditer(clause.text)
        )

    def _text(self, clauses: Sequence[Clause], value: str) -> tuple[Found, Span]:
        """A text is looked for word by word and letter by letter, a number by its readings.

        Another text is not known for a wrong one.
        """
        wanted = plain(value)
        groups = numbers_of(tokens_of(value)).groups
        for clause in clauses:
            names = [int(name[1:]) for name in _GROUP.findall(clause.text)]
            if len(groups) == 1 and len(wanted) == groups[0].end - groups[0].start:
                here = [self._reading.groups[number] for number in names]
                if any(group.readings == groups[0].readings and not self._reading.is_torn(group) for group in here):
                    return Found.AFFIRMED, clause.span
                continue
            said = self._words([clause])
            starts = range(len(said) - len(wanted) + 1)
            if wanted and any(said[at : at + len(wanted)] == wanted for at in starts):
                return Found.AFFIRMED, clause.span
        if clauses and self.is_spelled(clauses, value):
            return Found.AFFIRMED, clauses[-1].span
        return Found.ABSENT, (0, 0)

    def is_spelled(self, clauses: Sequence[Clause], value: str) -> bool:
        """Whether a text is said letter by letter, with or without commas between."""
        return is_spelled(value, self._words(clauses), cut=self._reading.cut)

    def _words(self, clauses: Sequence[Clause]) -> list[str]:
        spans = [clause.span for clause in clauses]
        said = [token for token in self._reading.tokens if any(start <= token.word < end for start, end in spans)]
        return [token.text for token in said if token.text[0].isalnum()]


@lru_cache(maxsize=256)
def _named(noun: str) -> re.Pattern[str]:
    """A group of digits that is said to be the number of a subject."""
    return re.compile(rf"(?: {re.escape(noun.lower())}(?: (?:number|id|no|is|with|the))*| #) (N\d+)\b")


def _settled(votes: Iterable[tuple[bool | None, Span]]) -> tuple[Found, Span]:
    """Affirmed or wrong where all who can tell agree."""
    told = [(vote, span) for vote, span in votes if vote is not None]
    if not told or len({vote for vote, _ in told}) > 1:
        return Found.ABSENT, (0, 0)
    vote, span = told[-1]
    return (Found.AFFIRMED if vote else Found.WRONG), span

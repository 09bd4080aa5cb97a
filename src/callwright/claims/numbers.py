"""The numbers in a heard text: every way a group can be read, and amounts of money.

Spoken digits have more than one spelling, and a spelling more than one reading. A group is a lattice: it *is* a number
if one of its readings is.

```
four two four two    4242        forty-two forty-two  4242        double four two    442
42 42                4242        four hundred two     402, 4002   oh oh seven one    0071
```

An amount needs its unit. Digits keep their leading zeros, and money is a whole number of minor units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from callwright.claims.words import Token

READINGS_MAX = 64
"""So many readings of one group are kept; a longer group of short numbers has no more that matter."""
WORDS_MAX = 40
"""A longer row of number words is read as nothing."""
_PAIRED_MAX = 1000  # "thirty-two fifty" is 32.50, "4417 fifty" is two numbers
DIGITS_MAX = 18
"""A longer number is no amount."""
ID_DIGITS = 4
"""A piece of so many digits stands alone; shorter ones are joined over a comma: "four two, four two"."""

_DIGIT_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEEN_NAMES = (
    *("ten", "eleven", "twelve", "thirteen", "fourteen"),
    *("fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TEN_NAMES = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_DIGITS = {
    **{word: str(value) for value, word in enumerate(_DIGIT_NAMES)},
    **dict.fromkeys(("oh", "o", "nought", "naught"), "0"),
}
_TEENS = {word: value for value, word in enumerate(_TEEN_NAMES, 10)}
_TENS = {"fourty": 40, **{word: 10 * value for value, word in enumerate(_TEN_NAMES, 2)}}
_SCALES = {"thousand": 1_000, "million": 1_000_000}
_REPEATS = {"double": 2, "triple": 3, "treble": 3}
_WORDS = {*_DIGITS, *_TEENS, *_TENS, *_SCALES, "hundred"}

_FIRST = {*_DIGITS, *_TEENS, *_TENS, *_REPEATS, "a"}
"""What a row of number words can begin with, beside figures."""

_FAMILIES = {
    "dollar": ("USD", "CAD", "AUD", "NZD", "SGD", "HKD", "MXN"),
    "pound": ("GBP",),
    "euro": ("EUR",),
    "yen": ("JPY",),
    "franc": ("CHF",),
    "rupee": ("INR",),
    "won": ("KRW",),
    "yuan": ("CNY",),
    "krona": ("SEK", "NOK", "DKK", "ISK"),
    "zloty": ("PLN",),
}
_FAMILY = {code: family for family, codes in _FAMILIES.items() for code in codes}
_UNITS = {
    **{word: family for family in _FAMILIES for word in (family, f"{family}s")},
    **{code.lower(): family for code, family in _FAMILY.items()},
    **dict.fromkeys(("$", "buck", "bucks"), "dollar"),
    **dict.fromkeys(("£", "quid"), "pound"),
    "€": "euro",
    "¥": "yen",
    **dict.fromkeys(("kronor", "kroner", "krone"), "krona"),
}
_BEFORE = {"$", "£", "€", "¥", *(code.lower() for code in _FAMILY)}
_HUNDREDTHS = {"cent": "", "cents": "", "penny": "pound", "pence": "pound", "p": "pound", "c": ""}
_COUNTRIES = {
    "us": "USD",
    "american": "USD",
    "canadian": "CAD",
    "australian": "AUD",
    "singapore": "SGD",
    "mexican": "MXN",
}
CURRENCIES = tuple(sorted(_FAMILY))
"""The currencies whose spoken names are known, as ISO 4217 codes."""


class Group(NamedTuple):
    """A group of number words: its tokens from ``start`` up to ``end`` (excluded), and all its readings as digits."""

    start: int
    end: int
    readings: tuple[str, ...]


class Money(NamedTuple):
    """So many whole units, and the digits behind the point."""

    whole: int
    fraction: str = ""

    def minor(self, exponent: int) -> int | None:
        """In minor units of a currency with ``exponent`` decimals; none where it has more decimals than that."""
        fraction = self.fraction.rstrip("0")
        if len(fraction) > exponent:
            return None
        scale: int = 10**exponent
        return self.whole * scale + int(fraction.ljust(exponent, "0") or "0")


@dataclass(frozen=True, slots=True)
class Amount:
    """Money with its unit: its tokens from ``start`` up to ``end`` (excluded).

    ``value`` is what a listener takes it for, none where he cannot tell; ``others`` are further readings, which neither
    confirm an amount nor contradict it. ``code`` is a currency that was named exactly, empty for a plain "dollars".
    """

    start: int
    end: int
    family: str
    code: str
    value: Money | None
    others: tuple[Money, ...] = ()

    def is_in(self, currency: str) -> bool:
        """Whether the unit fits a currency (ISO 4217 code)."""
        return self.code == currency if self.code else not self.family or _FAMILY.get(currency) == self.family


@dataclass(frozen=True, slots=True)
class Numbers:
    """The amounts of a text, and the groups of digits that are none."""

    amounts: tuple[Amount, ...]
    groups: tuple[Group, ...]


class Row(NamedTuple):
    """Number words in a row, from token ``start`` up to ``end`` (excluded), and how many digits they make at most."""

    start: int
    end: int
    digits: int


class _Piece(NamedTuple):
    start: int
    end: int
    joined: bool
    """A comma is all that stands between it and the piece before."""


def numbers_of(tokens: Sequence[Token]) -> Numbers:
    """All numbers of a text."""
    words = tuple(token.text for token in tokens)
    pieces = list(_pieces(words))
    if not pieces:
        return Numbers((), ())
    amounts = tuple(_amounts(words, pieces))
    taken = {at for amount in amounts for at in range(amount.start, amount.end)}
    left = [_without(piece, taken) for piece in pieces] if taken else pieces
    return Numbers(amounts, tuple(_groups(words, [piece for piece in left if piece.start < piece.end])))


def _without(piece: _Piece, taken: set[int]) -> _Piece:
    """What an amount leaves of a piece: what stands before it, or behind it."""
    amount = taken.intersection(range(piece.start, piece.end))
    if not amount:
        return piece
    return piece._replace(start=max(amount) + 1) if piece.start in amount else piece._replace(end=min(amount))


def rows_of(tokens: Sequence[Token]) -> Iterator[Row]:
    """All rows of number words that nothing divides, without those that have a unit of money."""
    words = tuple(token.text for token in tokens)
    pieces = list(_pieces(words))
    taken = {at for amount in _amounts(words, pieces) for at in range(amount.start, amount.end)}
    for piece in pieces:
        if piece.start not in taken:
            lengths = [len(reading) for reading in readings(words[piece.start : piece.end])]
            yield Row(piece.start, piece.end, max(lengths, default=piece.end - piece.start))


def _pieces(words: tuple[str, ...]) -> Iterator[_Piece]:
    """Runs of number words that nothing divides."""
    behind = end = -1
    for at, word in enumerate(words):
        if at < end or (word not in _FIRST and not word[0].isdecimal()):
            continue
        end = at
        while end < len(words) and _goes_on(words, at, end):
            end += 1
        if end > at:
            yield _Piece(at, end, behind == at - 1 and words[at - 1] == ",")
            behind = end


def _goes_on(words: tuple[str, ...], start: int, at: int) -> bool:
    word = words[at]
    following = words[at + 1] if at + 1 < len(words) else ""
    if word in ("four", "4") and at > 0 and words[at - 1] == "last":
        return False  # "the last four" are not yet a number
    if _is_number(word):
        return at > start or (word not in _SCALES and word != "hundred")
    if word in _REPEATS:
        return following in _DIGITS
    if word == "a":
        return at == start and (following == "hundred" or following in _SCALES)
    if word == "and":
        return at > start and (words[at - 1] == "hundred" or words[at - 1] in _SCALES) and _is_number(following)
    return word == "point" and at > start and _is_number(following)


def _is_number(word: str) -> bool:
    return word in _WORDS or word[:1].isdecimal()


# --- Readings as digits -------------------------------------------------------------------------------------------


def _groups(words: tuple[str, ...], pieces: Sequence[_Piece]) -> Iterator[Group]:
    """Pieces over commas make one group while they are short."""
    open_group: Group | None = None
    for piece in pieces:
        group = Group(piece.start, piece.end, readings(words[piece.start : piece.end]))
        if open_group is not None and piece.joined and _is_short(open_group) and _is_short(group):
            both = [one + other for one in open_group.readings for other in group.readings][:READINGS_MAX]
            open_group = Group(open_group.start, group.end, tuple(both))
            continue
        if open_group is not None:
            yield open_group
        open_group = group
    if open_group is not None:
        yield open_group


def _is_short(group: Group) -> bool:
    return any(len(reading) < ID_DIGITS for reading in group.readings)


@lru_cache(maxsize=4096)
def readings(words: tuple[str, ...]) -> tuple[str, ...]:
    """Every way to read number words as a row of digits, without repeats; none where one of them is a fraction."""
    if len(words) > WORDS_MAX:
        return ()
    found: dict[int, list[str]] = {len(words): [""]}
    for at in range(len(words) - 1, -1, -1):
        rows = [head + row for head, end in _heads(words, at) for row in found[end]]
        found[at] = list(dict.fromkeys(rows))[:READINGS_MAX]
    return tuple(found[0])


def _heads(words: tuple[str, ...], at: int) -> Iterator[tuple[str, int]]:
    """What can stand at a place, and where it ends."""
    word = words[at]
    if word in _REPEATS and at + 1 < len(words):
        yield _DIGITS[words[at + 1]] * _REPEATS[word], at + 2
    elif word in _DIGITS:
        yield _DIGITS[word], at + 1
    elif word[:1].isdecimal() and "." not in word:
        yield word.replace(",", ""), at + 1
    elif (small := _small(words, at)) is not None:
        yield str(small[0]), small[1]
    for value, end in _large(words, at):
        yield str(value), end


def _small(words: tuple[str, ...], at: int) -> tuple[int, int] | None:
    """A number from 1 to 99 at a place, and where it ends."""
    word = words[at] if at < len(words) else ""
    if word in _TENS:
        following = _DIGITS.get(words[at + 1], "0") if at + 1 < len(words) else "0"
        return _TENS[word] + int(following), at + 1 + (following != "0")
    if word in _TEENS:
        return _TEENS[word], at + 1
    if _DIGITS.get(word, "0") != "0":
        return int(_DIGITS[word]), at + 1
    if word.isdecimal() and len(word) < 3 and word[0] != "0":
        return int(word), at + 1
    return (1, at + 1) if word == "a" else None


def _large(words: tuple[str, ...], at: int) -> list[tuple[int, int]]:
    """The numbers with a hundred or a scale in them that begin at a place, and where they end."""
    hundreds = _hundreds(words, at)
    found = list(hundreds)
    heads = [*hundreds, *_as_list(_small(words, at)), *_plain_number(words, at)]
    for head, end in heads:
        if end < len(words) and words[end] in _SCALES:
            whole = head * _SCALES[words[end]]
            found.append((whole, end + 1))
            behind = end + 1 + (end + 1 < len(words) and words[end + 1] == "and")
            rest = [*_large(words, behind), *_as_list(_small(words, behind))] if behind < len(words) else []
            found += [(whole + value, stop) for value, stop in rest if value < _SCALES[words[end]]]
    return found


def _hundreds(words: tuple[str, ...], at: int) -> list[tuple[int, int]]:
    small = _small(words, at)
    if small is None or small[1] >= len(words) or words[small[1]] != "hundred":
        return []
    whole, end = small[0] * 100, small[1] + 1
    found = [(whole, end)]
    behind = end + (end < len(words) and words[end] == "and")
    return found + [(whole + value, stop) for value, stop in _as_list(_small(words, behind))]


def _as_list(small: tuple[int, int] | None) -> list[tuple[int, int]]:
    return [] if small is None else [small]


def _plain_number(words: tuple[str, ...], at: int) -> list[tuple[int, int]]:
    word = words[at].replace(",", "")
    return [(int(word), at + 1)] if word.isdecimal() and 2 < len(word) <= DIGITS_MAX else []


# --- Amounts ------------------------------------------------------------------------------------------------------


def _amounts(words: tuple[str, ...], pieces: Sequence[_Piece]) -> Iterator[Amount]:
    after = {piece.start: piece for piece in pieces}
    done = 0
    for piece in pieces:
        if piece.start < done:
            continue
        amount = _before(words, piece, after) or _behind(words, piece, after)
        if amount is not None:
            done = amount.end
            yield amount


def _before(words: tuple[str, ...], piece: _Piece, after: dict[int, _Piece]) -> Amount | None:
    """An amount whose unit stands before it: $32.00, USD 32."""
    unit = words[piece.start - 1] if piece.start else ""
    if unit not in _BEFORE:
        return None
    end = piece.start + 1 if words[piece.start][0].isdecimal() else piece.end
    if end < piece.end and (words[end] in _SCALES or words[end] == "hundred"):
        end = piece.end
    value, others = _value(words[piece.start : end])
    start = piece.start - 1
    code = unit.upper() if unit.upper() in _FAMILY else ""
    if start and words[start - 1] in _COUNTRIES:
        start, code = start - 1, _COUNTRIES[words[start - 1]]
    amount = Amount(start, end, _UNITS[unit], code, value, others)
    behind = words[end] if end < len(words) else ""
    if end == piece.end and _UNITS.get(behind) == amount.family:  # "$32 dollars"
        amount = Amount(start, end + 1, amount.family, code or _code(behind), value, others)
    return _with_hundredths(words, amount, after)


def _behind(words: tuple[str, ...], piece: _Piece, after: dict[int, _Piece]) -> Amount | None:
    """An amount whose unit stands behind it: thirty-two dollars, 32 US dollars, fifty cents."""
    at = piece.end
    code = _COUNTRIES.get(words[at], "") if at < len(words) else ""
    at += bool(code)
    unit = words[at] if at < len(words) else ""
    value, others = _value(words[piece.start : piece.end])
    if unit in _UNITS:
        amount = Amount(piece.start, at + 1, _UNITS[unit], code or _code(unit), value, others)
        return _with_hundredths(words, amount, after)
    if unit in _HUNDREDTHS and not code:
        whole = value.whole if value is not None and not value.fraction else None
        money = None if whole is None else Money(whole // 100, f"{whole % 100:02}")
        return Amount(piece.start, at + 1, _HUNDREDTHS[unit], "", money)
    return None


def _code(unit: str) -> str:
    return unit.upper() if unit.upper() in _FAMILY else ""


def _with_hundredths(words: tuple[str, ...], amount: Amount, after: dict[int, _Piece]) -> Amount:
    """Whole units followed by "and fifty cents", "fifty cents" or, for two digits, just "fifty"."""
    has_and = amount.end < len(words) and words[amount.end] == "and"
    piece = after.get(amount.end + has_and)
    if piece is None or amount.value is None or amount.value.fraction:
        return amount
    hundredths = _cardinals(words[piece.start : piece.end])
    if not hundredths or hundredths[0] > 99:
        return amount
    unit = words[piece.end] if piece.end < len(words) else ""
    named = unit in _HUNDREDTHS
    if not named and (has_and or hundredths[0] < 10 or unit in _UNITS):
        return amount
    money = Money(amount.value.whole, f"{hundredths[0]:02}")
    return Amount(amount.start, piece.end + named, amount.family, amount.code, money)


@lru_cache(maxsize=1024)
def _value(words: tuple[str, ...]) -> tuple[Money | None, tuple[Money, ...]]:
    """What number words before a unit are worth, and what else they could be."""
    if len(words) > WORDS_MAX:
        return None, ()
    if len(words) == 1 and words[0][0].isdecimal():
        whole, _, fraction = words[0].replace(",", "").partition(".")
        return (Money(int(whole), fraction) if len(whole) <= DIGITS_MAX else None), ()
    if "point" in words:
        at = words.index("point")
        heads, tails = _cardinals(words[:at]), readings(words[at + 1 :])
        return (Money(heads[0], tails[0]) if heads and tails else None), ()
    if cardinals := _cardinals(words):
        return Money(cardinals[0]), ()
    others = tuple(Money(int(row)) for row in readings(words) if len(row) <= DIGITS_MAX)
    for middle in range(1, len(words)):
        heads, tail = _cardinals(words[:middle]), _pair(words[middle:])
        if heads and tail and 0 < heads[0] < _PAIRED_MAX:
            return Money(heads[0], tail), others
    return None, others


@lru_cache(maxsize=1024)
def _cardinals(words: tuple[str, ...]) -> list[int]:
    """The numbers that words are as a whole."""
    if len(words) > WORDS_MAX:
        return []
    if len(words) == 1 and _DIGITS.get(words[0]) == "0":
        return [0]
    if not words:
        return []
    found = [*_as_list(_small(words, 0)), *_plain_number(words, 0), *_large(words, 0)]
    return [value for value, end in found if end == len(words)]


def _pair(words: tuple[str, ...]) -> str:
    """Two digits behind whole units: "fifty", "oh five"; empty where the words are something else."""
    if len(words) == 2 and _DIGITS.get(words[0]) == "0" and words[1] in _DIGITS:
        return f"0{_DIGITS[words[1]]}"
    small = _small(words, 0)
    return str(small[0]) if small is not None and small[1] == len(words) and small[0] >= 10 else ""

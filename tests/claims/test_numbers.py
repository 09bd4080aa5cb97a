"""Every way to say a number leads back to it, and an amount is its minor units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.claims.sentence_sets import REFUND

from callwright.claims.facts import Verdict
from callwright.claims.matcher import judge
from callwright.claims.numbers import CURRENCIES, numbers_of, readings
from callwright.claims.words import Heard, tokens_of

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEENS = ("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
UNITS = {"USD": "dollars", "GBP": "pounds", "EUR": "euros", "JPY": "yen", "INR": "rupees"}

C141_SAID = (
    *("4242", "42 42", "42-42", "4-2-4-2", "4 2 4 2", "four two four two", "four two, four two", "forty-two forty-two"),
    *("forty two four two", "four two forty two", "four thousand two hundred forty-two", "forty-two hundred forty-two"),
)
C141_NEAR = ("4224", "42042", "442", "double four two", "2424", "four two four", "forty-two", "four two four two two")


def small(value: int) -> str:
    if value < 20:
        return (*DIGITS, *TEENS)[value]
    return TENS[value // 10] + (f"-{DIGITS[value % 10]}" if value % 10 else "")


def cardinal(value: int) -> str:
    if value < 100:
        return small(value)
    if value < 1000:
        return f"{small(value // 100)} hundred" + (f" and {small(value % 100)}" if value % 100 else "")
    head = f"{cardinal(value // 1000)} thousand"
    return head + (f" {cardinal(value % 1000)}" if value % 1000 else "")


def pair(digits: str) -> str:
    """Two digits as one speaks them: "oh five", "double oh", "forty-two"."""
    if digits == "00":
        return "double oh"
    return f"oh {DIGITS[int(digits[1])]}" if digits[0] == "0" else small(int(digits))


def doubled(digits: str) -> str:
    words, at = [], 0
    while at < len(digits):
        twice = digits[at : at + 2] == digits[at] * 2
        words.append(f"double {DIGITS[int(digits[at])]}" if twice else DIGITS[int(digits[at])])
        at += 2 if twice else 1
    return " ".join(words)


SPELLINGS = {
    "figures": str,
    "blanks": " ".join,
    "hyphens": "-".join,
    "words": lambda digits: " ".join(DIGITS[int(digit)] for digit in digits),
    "with oh": lambda digits: " ".join("oh" if digit == "0" else DIGITS[int(digit)] for digit in digits),
    "two and two": lambda digits: f"{digits[:2]} {digits[2:]}",
    "grouped": lambda digits: ", ".join(" ".join(DIGITS[int(d)] for d in part) for part in (digits[:2], digits[2:])),
    "pairs": lambda digits: f"{pair(digits[:2])} {pair(digits[2:])}",
    "doubled": doubled,
    "cardinal": lambda digits: digits if digits[0] == "0" else cardinal(int(digits)),
}

FOUR = st.text("0123456789", min_size=4, max_size=4)


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(FOUR)
def test_a_group_of_four_digits_can_be_read_however_it_is_spelled(spelling, digits):
    groups = numbers_of(tokens_of(f"ending in {SPELLINGS[spelling](digits)} today")).groups
    assert len(groups) == 1
    assert digits in groups[0].readings


@given(FOUR, FOUR)
def test_digits_said_one_by_one_are_read_in_one_way_only(digits, other):
    said = readings(tuple(DIGITS[int(digit)] for digit in digits))
    assert (other in said) is (other == digits)


@pytest.mark.parametrize("spelling", C141_SAID)
def test_c141_every_spelling_of_the_card_is_told(spelling):
    text = f"I've refunded thirty-two dollars to your Visa ending in {spelling}."
    assert judge(Heard(text), REFUND).verdict is Verdict.TOLD


@pytest.mark.parametrize("near", C141_NEAR)
def test_c141_a_near_miss_of_the_card_is_not_told(near):
    text = f"I've refunded thirty-two dollars to your Visa ending in {near}."
    assert judge(Heard(text), REFUND).verdict in (Verdict.PARTIAL, Verdict.MISMATCH)


def spoken(whole: int, cents: int, currency: str) -> list[str]:
    unit = UNITS[currency]
    if not cents:
        return [f"{cardinal(whole)} {unit}", f"{whole} {unit}", f"{whole:,} {currency}", f"{currency} {whole}"]
    hundredths = "pence" if currency == "GBP" else "cents"
    return [
        f"{cardinal(whole)} {unit} and {small(cents)} {hundredths}",
        f"{whole} {unit} {cents} {hundredths}",
        f"{whole:,}.{cents:02} {unit}",
        f"{currency} {whole}.{cents:02}",
    ]


@given(st.integers(0, 9999), st.integers(0, 99), st.sampled_from(["USD", "GBP", "EUR"]), st.sampled_from([0, 1, 2, 3]))
def test_an_amount_comes_back_as_its_minor_units(whole, cents, currency, spelling):
    text = spoken(whole, cents, currency)[spelling]
    (amount,) = numbers_of(tokens_of(f"we sent {text} to you")).amounts
    assert amount.is_in(currency)
    assert amount.value is not None
    assert amount.value.minor(2) == 100 * whole + cents


@given(st.integers(0, 99_999))
def test_a_currency_without_decimals_is_counted_in_whole_units(whole):
    (amount,) = numbers_of(tokens_of(f"it was {cardinal(whole)} yen today")).amounts
    assert amount.value is not None
    assert (amount.is_in("JPY"), amount.is_in("USD"), amount.value.minor(0)) == (True, False, whole)


def test_a_fraction_fits_no_currency_without_decimals():
    (amount,) = numbers_of(tokens_of("32.50 yen")).amounts
    assert amount.value is not None
    assert amount.value.minor(0) is None


@pytest.mark.parametrize(
    ("said", "minor"),
    [
        ("thirty-two fifty dollars", 3250),
        ("thirty-two dollars fifty", 3250),
        ("nineteen ninety-nine dollars", 1999),
        ("thirty-two point five dollars", 3250),
        ("thirty-two hundred dollars", 320_000),
        ("a hundred dollars", 10_000),
        ("fifty cents", 50),
        ("three thousand two hundred cents", 3200),
        ("$32", 3200),
        ("$1,200.50", 120_050),
        ("US$32.00", 3200),
        ("thirty-two bucks", 3200),
        ("oh thirty-two dollars", None),
        ("4417 32 dollars", None),
    ],
)
def test_what_a_listener_takes_an_amount_for(said, minor):
    (amount,) = numbers_of(tokens_of(said)).amounts
    assert (None if amount.value is None else amount.value.minor(2)) == minor


@pytest.mark.parametrize("said", ["thirty-two fifty", "nineteen ninety nine", "32.00", "we won 4", "the last four"])
def test_a_number_without_a_unit_is_no_amount(said):
    assert numbers_of(tokens_of(said)).amounts == ()


def test_an_exact_currency_is_not_another_dollar():
    (amount,) = numbers_of(tokens_of("thirty-two Canadian dollars")).amounts
    assert (amount.is_in("CAD"), amount.is_in("USD")) == (True, False)


def test_an_amount_and_a_card_beside_each_other_stay_two_numbers():
    numbers = numbers_of(tokens_of("order four four one seven, thirty-two dollars, four two, four two"))
    assert [amount.value.minor(2) for amount in numbers.amounts] == [3200]
    assert [group.readings for group in numbers.groups] == [("4417",), ("4242",)]


def test_the_currencies_are_iso_codes():
    assert all(code.isupper() and len(code) == 3 for code in CURRENCIES)

"""No card number is kept: not in figures, not in words, not over turns; and nothing else is touched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.claims.cards import is_card_number, without_cards, without_spoken_cards

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@st.composite
def cards(draw: st.DrawFn) -> str:
    """A number of 13 to 19 digits with the right check digit."""
    body = draw(st.sampled_from("123456789")) + draw(st.text("0123456789", min_size=11, max_size=17))
    return next(body + last for last in "0123456789" if is_card_number(body + last))


@pytest.mark.parametrize("digits", ["4111111111111111", "5500005555555559", "378282246310005", "6011111111111117"])
def test_a_card_number_has_13_to_19_digits_and_the_right_check_digit(digits: str) -> None:
    assert is_card_number(digits)
    assert not is_card_number(digits[:-1] + str((int(digits[-1]) + 1) % 10))
    assert not is_card_number(digits[:12])


@given(cards(), st.sampled_from(["", " ", "-"]), st.integers(1, 6))
def test_of_a_card_number_in_figures_the_last_four_are_left(digits: str, gap: str, size: int) -> None:
    number = gap.join(digits[at : at + size] for at in range(0, len(digits), size))
    hidden = without_cards(json.dumps({"card": f"{number}, 12/27", "order": "4417"}))
    read = json.loads(hidden)
    assert read["order"] == "4417"
    assert read["card"].endswith(", 12/27")
    assert len(read["card"]) == len(number) + len(", 12/27")
    shown = "".join(character for character in read["card"].removesuffix(", 12/27") if character.isdigit())
    assert shown == digits[-4:]


@given(cards())
def test_a_number_that_stands_before_its_expiry_date_is_found(digits: str) -> None:
    assert digits not in without_cards(f"{digits} 12 27").replace(" ", "")


@settings(max_examples=50)
@given(cards(), st.data())
def test_a_card_number_in_words_and_figures_is_masked_over_two_turns(digits: str, data: st.DataObject) -> None:
    words = [data.draw(st.sampled_from([digit, NAMES[int(digit)]])) for digit in digits]
    at = data.draw(st.integers(0, len(words)))
    first, second = without_spoken_cards([" ".join(["so", *words[:at]]), " ".join([*words[at:], "bye"])])
    left = f"{first} {second}".split()
    assert len([word for word in left if word in NAMES or word.isdigit()]) <= 4
    assert (left[0], left[-1]) == ("so", "bye")


def test_a_number_whose_check_digit_is_wrong_is_no_cards() -> None:
    assert without_cards("4111 1111 1111 1112") == "4111 1111 1111 1112"


@given(st.text(st.characters(exclude_categories=["Nd"])))
def test_a_text_without_digits_comes_back_as_it_is(text: str) -> None:
    assert without_cards(text) == text


@pytest.mark.parametrize(
    "texts",
    [
        ["Order  4417, thirty-two dollars,", "Visa ending in four two four two."],
        ["Call 555 0134 0199 between nine and five."],
        ["It was 1712345678901 ms."],
        [],
        ["", " "],
    ],
)
def test_what_is_no_card_number_comes_back_as_it_is(texts: list[str]) -> None:
    assert without_spoken_cards(texts) == texts


@given(st.text("0123456789 -.*x", max_size=60))
def test_masking_twice_is_masking_once(text: str) -> None:
    once = without_cards(text)
    assert without_cards(once) == once
    assert len(once) == len(text)

"""A card number is a card number in words, in figures, and over turns."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.claims.masking import MASK, masked

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@pytest.mark.parametrize(
    "texts",
    [
        ["4111 1111 1111 1111"],
        ["four one one one one one one one one one one one one one one one"],
        ["four one one one, 1111.", "11 11 eleven eleven"],
        ["forty-one eleven, eleven eleven", "and then", "eleven eleven, eleven eleven"],
        ["four", "one", "one", "one", "1111", "one one one one", "double one", "double one"],
    ],
)
def test_c143_a_card_number_is_masked_however_it_is_said_and_divided(texts):
    left = " ".join(masked(["My card is", *texts, "thanks a lot"])).replace(MASK, "").replace("and then", "").split()
    assert left == ["My", "card", "is", "thanks", "a", "lot"]


@given(st.text("0123456789", min_size=13, max_size=19), st.data())
def test_c143_no_digit_is_left_of_a_long_number_in_words_and_figures(digits, data):
    words = [data.draw(st.sampled_from([digit, DIGITS[int(digit)]])) for digit in digits]
    at = data.draw(st.integers(0, len(words)))
    one, other = masked([" ".join(["so", *words[:at]]), " ".join([*words[at:], "bye"])])
    assert (one.split(), other.split()) == (["so", *[MASK] * at], [*[MASK] * (len(words) - at), "bye"])


def test_c143_the_last_four_stay_where_they_are_allowed():
    assert masked(["4111 1111 1111 4242"], keep_last4=True) == [f"{MASK} {MASK} {MASK} 4242"]
    assert masked(["four one one one 1111 1111 four two", "four two."], keep_last4=True)[1] == "four two."
    assert masked(["4111111111114242"], keep_last4=True) == [MASK]


@pytest.mark.parametrize(
    "text",
    [
        "Order 4417, thirty-two dollars, Visa ending in four two four two.",
        "Call 555 0100 123 between nine and five.",
        "It costs 1,234,567.00 dollars and 4,000,000.00 euros.",
        "",
    ],
)
def test_short_numbers_and_amounts_are_left_alone(text):
    assert masked([text]) == [text]


@settings(max_examples=40)
@given(st.lists(st.text(max_size=40), max_size=5))
def test_masking_keeps_the_number_of_texts_and_of_words(texts):
    hidden = masked(texts)
    assert [len(text.split()) for text in hidden] == [len(text.split()) for text in texts]

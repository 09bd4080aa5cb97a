"""One sentence for each milestone, worded from the record alone."""

from __future__ import annotations

import pytest
from tests.ledger.rows import operation

from callwright.declare.actions import Card, Money, Terms
from callwright.ledger.operation import State
from callwright.ledger.rows import write_terms
from callwright.ledger.saying import SENTENCES, fact_of, sentence, spoken_money


@pytest.mark.parametrize(
    ("money", "spoken"),
    [
        (Money(3200, "USD"), "32 dollars"),
        (Money(3250, "USD"), "32 dollars and 50 cents"),
        (Money(100, "USD"), "1 dollar"),
        (Money(101, "GBP"), "1 pound and 1 penny"),
        (Money(7, "GBP"), "7 pence"),
        (Money(5, "EUR"), "5 cents"),
        (Money(1200, "JPY"), "1200 JPY"),
        (Money(1205, "CHF"), "12.05 CHF"),
    ],
)
def test_money_is_said_in_whole_units_and_the_rest(money, spoken):
    assert spoken_money(money) == spoken


def test_every_state_has_a_sentence_and_it_names_amount_and_card():
    assert set(SENTENCES) == {state.value for state in State}
    for state in State:
        said = sentence(operation(state=state, milestone=state.value))
        assert "refund of 32 dollars to the Visa ending in 4 2 4 2" in said


def test_i21_a_doubt_is_said_to_be_neither_done_nor_failed_nor_tried_again():
    said = sentence(operation(state=State.UNKNOWN, milestone="unknown")).lower()
    for word in ("done", "did not", "again", "failed", "has been"):
        assert word not in said
    assert "can't tell" in said


def test_only_a_confirmation_says_done():
    for state in State:
        said = sentence(operation(state=state, milestone=state.value))
        assert ("is done" in said) is (state is State.CONFIRMED)


def test_a_wish_and_an_escalation_are_said():
    said = sentence(operation(amend_json="{}", escalated="unknown"))
    assert said.endswith("Somebody will look at it.")
    assert "A change has been asked for" in said


def test_an_action_without_money_is_named_by_its_kind_and_subject():
    terms = Terms("booking:7", details={"date": "2026-12-24"})
    row = operation(kind="cancel_booking", terms_json=write_terms(terms), milestone="confirmed", must_hear="")
    assert sentence(row) == "The cancel booking of booking 7 is done."
    assert (fact_of(row).must_hear, fact_of(row).terms) == ((), terms)


def test_a_fact_carries_what_telling_needs():
    fact = fact_of(operation(milestone="confirmed", state=State.CONFIRMED, fact_version=7))
    assert (fact.milestone, fact.version, fact.must_hear, fact.is_settled) == ("confirmed", 7, ("amount", "card"), True)


@pytest.mark.parametrize("wrong", [3200.0, 0, -1, True, "32"])
def test_an_amount_is_whole_minor_units(wrong):
    with pytest.raises(ValueError, match="minor units"):
        Money(wrong, "USD")


@pytest.mark.parametrize("wrong", ["usd", "US", "$", "USDX"])
def test_a_currency_is_three_capital_letters(wrong):
    with pytest.raises(ValueError, match="currency"):
        Money(1, wrong)


@pytest.mark.parametrize("wrong", ["424", "42424", "4a42", "4111111111111111", "٤٢٤٢"])
def test_i13_a_card_is_its_last_four_digits(wrong):
    with pytest.raises(ValueError, match="four digits") as caught:
        Card("tok", "Visa", wrong)
    assert wrong not in str(caught.value)


def test_terms_need_a_subject_and_a_cap_in_their_own_currency():
    with pytest.raises(ValueError, match="subject"):
        Terms(" ")
    with pytest.raises(ValueError, match="currency"):
        Terms("order:1", Money(1, "USD"), cap=Money(1, "EUR"))
    with pytest.raises(ValueError, match="amount"):
        Terms("order:1", cap=Money(1, "EUR"))

"""What was done and what was told: a book and replies written by hand, held against each other."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from callwright.measure.effects import EFFECT_METRICS, live_effects
from callwright.sim.models import ToolRequested
from callwright.sim.record import Effect

DONE = "The refund of 32 dollars to your Visa ending in 4242 is done."
DONE_8812 = "The refund of 32 dollars to your Mastercard ending in 8812 is done."
PENDING = "It is still being processed."


def entry(status: str, at_ms: int, card: str = "4242", effect_id: str = "re_1") -> Effect:
    return Effect(effect_id, "refund", "order:4417", "full", 3200, "USD", f"card:{card}", status, at_ms)


SETTLED = entry("pending", 1_000), entry("succeeded", 5_000)


def said(text: str, from_ms: int, *, was_cut: bool = False) -> Any:
    """A reply of 3 s whose words are equally long."""
    word_ms = 3_000 // len(text.split())
    played = SimpleNamespace(first_audible_ms=from_ms, last_audible_ms=from_ms + 3_000)
    return SimpleNamespace(
        heard=text, was_cut=was_cut, played=played, began_ms=lambda number: from_ms + number * word_ms
    )


def measured(
    book: tuple[Effect, ...], *replies: Any, expected: tuple[str, ...] | None = None, calls: int = 1, outbox: Any = ()
) -> Any:
    request: Any = SimpleNamespace
    history = tuple(ToolRequested(request, request, "issue_refund", {}) for _ in range(calls))
    record = SimpleNamespace(
        book=book,
        effects_expected=expected,
        action_tools=("issue_refund", "cancel_order"),
        history=history,
        outbox=outbox,
    )
    call: Any = SimpleNamespace(record=record, replies=replies)
    return {metric.name: tuple(metric.values(call)) for metric in EFFECT_METRICS}


def test_an_outcome_that_was_heard_with_amount_and_card_is_told() -> None:
    values = measured(SETTLED, said(DONE, 6_000))
    assert values["untold_at_hangup"] == (0,)
    assert values["time_to_truth_ms"] == (4_000,)
    assert values["false_claims_heard"] == (0,)


@pytest.mark.parametrize("text", ["The refund is done.", "The refund to your Visa ending in 4242 is done.", PENDING])
def test_an_outcome_without_its_terms_is_untold(text: str) -> None:
    assert measured(SETTLED, said(text, 6_000))["untold_at_hangup"] == (1,)


def test_what_is_untold_is_lost_unless_the_record_owes_it_outside() -> None:
    assert measured(SETTLED)["outcomes_lost"] == (1,)
    assert measured(SETTLED, outbox=[("refund", "order:4417", "full")])["outcomes_lost"] == (0,)
    assert measured(SETTLED, outbox=[("refund", "order:5120", "full")])["outcomes_lost"] == (1,)
    assert measured(SETTLED, said(DONE, 6_000))["outcomes_lost"] == (0,)


def test_a_claim_before_the_book_has_it_is_false_and_tells_nothing() -> None:
    values = measured(SETTLED, said(DONE, 1_500))
    assert (values["false_claims_heard"], values["untold_at_hangup"], values["corrections_heard"]) == ((1,), (1,), (0,))


HOURS = "Thank you again for your patience, have a lovely day."


@pytest.mark.parametrize(("from_ms", "is_false"), [(2_500, True), (3_350, True), (3_450, False), (4_900, False)])
def test_a_claim_has_to_be_so_when_its_last_word_begins_however_long_the_reply_goes_on(
    from_ms: int, is_false: bool
) -> None:
    """Its last word is the thirteenth of 23 and begins 1,560 ms into the reply; the book has it from 5,000 ms on."""
    text = f"{DONE} {HOURS}"
    assert (len(text.split()), text.split()[12]) == (23, "done.")
    values = measured(SETTLED, said(text, from_ms))
    assert (values["false_claims_heard"], values["untold_at_hangup"]) == ((int(is_false),), (int(is_false),))


def test_a_claim_about_one_order_is_not_so_because_another_one_is_done() -> None:
    other = replace(entry("pending", 2_000, effect_id="re_2"), subject="order:4420")
    claim = said("The refund of 32 dollars for order 4420 to your Visa ending in 4242 is done.", 6_000)
    assert measured((*SETTLED, other), claim)["false_claims_heard"] == (1,)
    assert measured((*SETTLED, replace(other, status="succeeded")), claim)["false_claims_heard"] == (0,)


def test_a_false_claim_is_corrected_by_the_outcome_behind_it() -> None:
    values = measured(SETTLED, said(DONE_8812, 5_500), said(DONE, 9_000))
    assert (values["false_claims_heard"], values["corrections_heard"]) == ((1,), (1,))


def test_another_card_is_a_false_claim() -> None:
    assert measured(SETTLED, said(DONE_8812, 6_000))["false_claims_heard"] == (1,)


def test_a_claim_with_nothing_in_the_book_is_false() -> None:
    assert measured((), said(DONE, 6_000))["false_claims_heard"] == (1,)


def test_what_is_under_way_is_no_claim() -> None:
    assert measured(SETTLED, said(PENDING, 1_500))["false_claims_heard"] == (0,)


def test_one_that_was_stopped_for_another_is_owed_to_nobody() -> None:
    book = (
        entry("pending", 1_000),
        entry("cancelled", 2_000),
        entry("pending", 2_100, "8812", "re_2"),
        entry("succeeded", 6_000, "8812", "re_2"),
    )
    values = measured(book, said(DONE_8812, 7_000), calls=2)
    assert (values["untold_at_hangup"], values["duplicate_effects"], values["asks_per_operation"]) == ((0,), (0,), (2,))
    assert [effect.destination for effect in live_effects(book)] == ["card:8812"]


def test_two_effects_on_one_thing_are_one_too_many() -> None:
    book = (*SETTLED, entry("succeeded", 7_000, "8812", "re_2"))
    values = measured(book, expected=("refund order:4417 32.00 USD card:8812",))
    assert (values["duplicate_effects"], values["missing_effects"]) == ((1,), (0,))


def test_an_effect_that_was_expected_and_is_not_there_is_missing() -> None:
    assert measured((), expected=("refund order:4417 32.00 USD card:8812",))["missing_effects"] == (1,)
    assert measured(())["missing_effects"] == ()

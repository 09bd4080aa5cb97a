"""Consent is a plain yes to a question that named every parameter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.claims.sentence_sets import REFUND

from callwright.claims.readback import Answer, answered, is_read_back
from callwright.claims.words import Heard

ANSWERS = {
    Answer.YES: (
        *("Yes.", "Yes, please.", "Yeah, go ahead.", "Yep, do it.", "Sure.", "Correct.", "That's right, go ahead."),
        *("Please do.", "Of course, thanks.", "Yes, that's correct, thank you.", "Okay, yes.", "Um, yes."),
    ),
    Answer.NO: (
        *("No.", "No, wait.", "Wait, wrong card.", "Don't.", "Stop!", "Yes... no.", "Hold on.", "That's not right."),
        *("Well, no.", "Never mind.", "I'd rather not.", "Yes, I mean no."),
    ),
    Answer.CHANGE: (
        *("Yes, but to the Mastercard.", "Yes, forty dollars.", "Yes if it is fast.", "Yes to the other card"),
        "Sure, and the shipping too.",
    ),
    Answer.OTHER: (
        *(
            "Mm-hmm.",
            "Okay.",
            "Right.",
            "Yes? Which card was that?",
            "How long does it take?",
            "The skillet cracked.",
            "",
        ),
        *("Thank you.", "I guess so.", "[music]", "so"),
    ),
}


@pytest.mark.parametrize(("answer", "text"), [(answer, text) for answer, texts in ANSWERS.items() for text in texts])
def test_only_a_plain_yes_is_a_yes(answer, text):
    assert answered(text) is answer


@given(st.text(max_size=60))
def test_any_answer_is_one_of_four(text):
    assert answered(text) in Answer


@given(st.sampled_from(ANSWERS[Answer.YES]), st.sampled_from(["no", "not", "never", "the Mastercard", "fifty", "if"]))
def test_a_yes_with_a_change_or_a_no_in_it_is_no_yes(yes, more):
    assert answered(f"{yes.rstrip('.')} {more}") is not Answer.YES


@pytest.mark.parametrize(
    "asked",
    [
        "That's thirty-two dollars, to your Visa ending in 4242. Shall I go ahead?",
        "Shall I refund thirty-two dollars to your Visa ending in four two four two?",
        "Just to confirm, thirty-two dollars to the Visa ending in 42 42, is that right?",
    ],
)
def test_a_question_with_every_parameter_is_a_read_back(asked):
    assert is_read_back(Heard(asked), REFUND)


@pytest.mark.parametrize(
    "asked",
    [
        "Shall I refund thirty-two dollars to your Visa?",
        "Shall I refund it to your Visa ending in 4242?",
        "Shall I refund twenty-three dollars to your Visa ending in 4242?",
        "Shall I refund thirty-two dollars to your Visa ending in 4224?",
        "Shall I refund thirty-two dollars or fifty dollars to your Visa ending in 4242?",
        "I will refund thirty-two dollars to your Visa ending in 4242.",
        "I've refunded thirty-two dollars to your Visa ending in 4242. Is that all right?",
        "It's thirty-two dollars to your Visa ending in 4242. Anything else?",
        "Shall I refund thirty-two dollars to your Visa ending in 4242",
        "?",
        "",
    ],
)
def test_what_leaves_a_parameter_open_or_asks_nothing_is_no_read_back(asked):
    assert not is_read_back(Heard(asked), REFUND)


def test_a_question_that_was_cut_is_no_read_back():
    text = "Shall I refund thirty-two dollars to your Visa ending in 4242?"
    assert not is_read_back(Heard(text, cut=True), REFUND)

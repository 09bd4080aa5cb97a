"""Our own sentence, heard word by word, in any language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.claims.sentences import is_rendered
from callwright.claims.words import Heard

GERMAN = "Ihre Erstattung von 32,00 Euro auf Ihre Visa-Karte mit den Endziffern vier zwei, vier zwei ist erledigt."
JAPANESE = "\u8fd4\u91d1\u306f \u5b8c\u4e86 \u3057\u307e\u3057\u305f\u3002"


@pytest.mark.parametrize("sentence", [GERMAN, "It is done. You'll see it soon.", JAPANESE])
def test_a_sentence_of_ours_is_known_in_any_language(sentence):
    assert is_rendered(Heard(sentence), sentence)
    assert is_rendered(Heard(f"Hallo. {sentence} Danke!"), sentence)


@pytest.mark.parametrize(
    "heard",
    [
        "Wenn " + GERMAN,
        GERMAN.removesuffix(".") + "?",
        GERMAN.removesuffix(".") + " oder nicht.",
        GERMAN.replace("ist", "ist nicht"),
        GERMAN.replace("zwei ist", "drei ist"),
        GERMAN.removesuffix(" erledigt."),
        "",
    ],
)
def test_one_word_more_less_or_other_is_another_sentence(heard):
    assert not is_rendered(Heard(heard), GERMAN)


@given(st.integers(0, len(GERMAN.split()) - 1))
def test_a_sentence_that_was_cut_was_not_heard(count):
    heard = " ".join(GERMAN.split()[:count])
    assert not is_rendered(Heard(heard, cut=True), GERMAN)


def test_of_a_cut_reply_a_sentence_counts_with_its_full_stop():
    assert is_rendered(Heard(f"{GERMAN} Kann", cut=True), GERMAN)
    assert is_rendered(Heard(GERMAN, cut=True), GERMAN)
    assert not is_rendered(Heard(GERMAN.removesuffix("."), cut=True), GERMAN)


def test_a_sentence_that_says_nothing_is_never_heard():
    assert not is_rendered(Heard("Anything."), " ... ")


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_texts_can_be_compared(heard, sentence):
    assert is_rendered(Heard(heard), sentence) in (True, False)

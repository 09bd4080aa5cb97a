"""A listener's sound is told from an answer."""

from __future__ import annotations

import pytest

from callwright.claims.murmurs import says_nothing


@pytest.mark.parametrize("text", ["", "...", "Mm-hmm.", "Mhm, mhm.", "Uh-huh.", "Oh, hmm."])
def test_a_sound_has_nothing_that_has_to_be_answered(text: str) -> None:
    assert says_nothing(text)


@pytest.mark.parametrize("text", ["Yes.", "Mm-hmm, yes.", "[music]", "Hmm, which card?", "네", "Okay."])
def test_a_word_does(text: str) -> None:
    assert not says_nothing(text)

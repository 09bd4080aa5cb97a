"""Which words lie in the audio that was played: never one too many."""

from __future__ import annotations

from callwright.core.estimate import estimate, is_too_short
from callwright.core.playout import Cut
from callwright.ids import ItemId

NUMBER = "your number is 48219377 and check in is at three"


def test_an_estimate_counts_the_digits_of_a_number_as_words_to_be_spoken() -> None:
    assert estimate(NUMBER, Cut(ItemId("a"), 2_500, 3_000, is_complete=False)) == "your number is"


def test_audio_is_too_short_for_a_text_that_nobody_says_so_fast() -> None:
    assert is_too_short(3_000, NUMBER)
    assert not is_too_short(5_000, NUMBER)

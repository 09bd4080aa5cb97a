"""A word of a text counts as told once all of its letters were told, in order; who tells others is not believed."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from callwright.ids import ItemId
from callwright.runtime.voicedtext import VoicedText

RATE_HZ = 16_000
SECOND = RATE_HZ * 2
TEXTS = st.text(st.sampled_from("abÉé́ß4 ,.—'你ש"), max_size=30)


def text_of(*pieces: str) -> VoicedText:
    text = VoicedText(ItemId("a"))
    for piece in pieces:
        text.give(piece)
    text.made_bytes = 60 * SECOND
    return text


def tell(text: VoicedText, *told: str) -> list[int | None]:
    return [text.told(words, SECOND, RATE_HZ) for words in told]


@given(TEXTS, st.lists(st.integers(0, 30)), st.lists(st.integers(0, 30)))
def test_however_a_text_is_cut_to_pieces_each_word_counts_when_its_last_letter_is_told(
    whole: str, given_at: list[int], told_at: list[int]
) -> None:
    def pieces(places: list[int]) -> list[str]:
        ends = [0, *sorted(places), len(whole)]
        return [whole[start:end] for start, end in pairwise(ends)]

    text = text_of(*pieces(given_at))
    counts = tell(text, *pieces(told_at))
    assert None not in counts
    assert counts == sorted(counts, key=lambda count: count or 0)
    assert counts[-1] == len(whole.split())
    assert text.untold() == ""


@given(TEXTS, TEXTS)
def test_no_more_words_count_than_were_told_letter_for_letter(whole: str, told: str) -> None:
    (count,) = tell(text_of(whole), told)
    heard = " ".join(whole.split()[: count or 0])
    assert len([sign for sign in heard if sign.isalnum()]) <= len([sign for sign in told if sign.isalnum()])


def test_who_told_of_another_word_is_not_believed_from_then_on() -> None:
    assert tell(text_of("one two three"), "one", "three", "two") == [1, None, None]


def test_half_a_word_does_not_count() -> None:
    assert tell(text_of("seventeen rooms"), "seven", "teen", "rooms") == [0, 1, 2]


def test_composed_letters_are_the_same_as_those_that_are_not() -> None:
    assert tell(text_of("Cafe\u0301 Straße"), "CAFÉ", "strasse") == [1, 2]


def test_what_is_missing_is_told_in_words_and_only_of_a_voice_that_tells_some() -> None:
    text = text_of("one two three")
    assert text.untold() == ""
    tell(text, "one")
    assert text.untold() == "it told of 1 of 3 words"
    tell(text, "two three")
    assert text.untold() == ""

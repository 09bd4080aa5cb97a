"""Which of a reply's written words lie in the audio that was played of it.

Speech has no even pace, so an estimate is rounded down: no word is claimed that may not have been heard.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isqrt

from callwright.claims.masking import MASK
from callwright.core.playout import Cut
from callwright.ids import Ms

HEARD_WITHIN_MS: Ms = 20
"""A word of which no more than a frame is missing was heard; a position is not known better than that either."""
SLOW_LETTERS_PER_S = 12
"""A slow speaker, with what words and pauses add to their letters: about 110 words a minute, where 150 are usual."""
UNEVENNESS = 12
"""How far speech strays from an even pace between two points that are known: this times the root of the ms between.

No word too many is claimed at any cut of the recorded lines, alone or up to seven in a row, from 10 on.
"""
_DIGIT_LETTERS = 6
WORD_LETTERS = 2
"""A word takes as long as its letters and so many more."""
_PAUSE_LETTERS = {",": 3, ";": 3, ":": 3, ".": 6, "!": 6, "?": 6}
"""And the pause behind what ends in one of these is as long as so many letters."""
FAST_LETTERS_PER_S = 18
"""Faster than speech is: the recorded lines reach 16 at most. A longer text than that was not all in the audio."""
_SHORT_LETTERS = 8  # a short reply may be faster than a long one can be


def is_too_short(audio_ms: Ms, written: str) -> bool:
    """Whether this much audio cannot hold the text, however fast it was spoken."""
    return _letters(written) - _SHORT_LETTERS > audio_ms * FAST_LETTERS_PER_S // 1000


def estimate(written: str, cut: Cut) -> str:
    """The written words that must have been heard in the audio that was played, rounded down.

    With all audio at hand the words lie along it by their lengths, and those count that end so long before the cut that
    no unevenness of speech brings them behind it. Otherwise the text is longer than the audio, and a slow speaker's
    rate (``SLOW_LETTERS_PER_S``) is assumed.
    """
    words = written.split()
    ends = list(_ends(words))
    if not cut.is_complete:
        return " ".join(
            word for word, end in zip(words, ends, strict=True) if end * 1000 <= cut.heard_ms * SLOW_LETTERS_PER_S
        )
    total_ms = max(cut.received_ms, 1)
    spread = UNEVENNESS**2 * cut.heard_ms * max(0, total_ms - cut.heard_ms)
    sure_ms = cut.heard_ms - isqrt(spread // total_ms)
    return " ".join(word for word, end in zip(words, ends, strict=True) if end * total_ms <= sure_ms * ends[-1])


def aligned(written: str, pieces: Sequence[tuple[int, Ms]], cut: Cut) -> int:
    """How many words of a text were said before a cut, by whoever told where in the audio so many of them end.

    Of the piece that the cut is in, those words count that must lie before it.
    """
    count, start_ms = 0, 0
    for words, end_ms in pieces:
        if end_ms > cut.heard_ms + HEARD_WITHIN_MS:
            piece = " ".join(written.split()[count:words])
            part = Cut(cut.item_id, max(0, cut.heard_ms - start_ms), end_ms - start_ms, is_complete=True)
            return count + (len(estimate(piece, part).split()) if piece else 0)
        count, start_ms = words, end_ms
    return count


def ends_ms(text: str, audio_ms: Ms) -> tuple[Ms, ...]:
    """Where the words of a text end if they lie evenly, by their lengths, along ``audio_ms`` of audio."""
    ends = list(_ends(text.split()))
    return tuple(end * audio_ms // ends[-1] for end in ends)


def _letters(text: str) -> int:
    """Letters to be spoken; a digit is a word of its own, also where it was masked as one of a card number."""
    return sum(map(_word_letters, text.split()))


def letters_of(word: str) -> int:
    """Letters to be spoken of a word, without those of its pause; a digit takes as long as its name."""
    return sum(_DIGIT_LETTERS if letter.isdigit() else letter.isalnum() for letter in word)


def _word_letters(word: str) -> int:
    is_number = not any(letter.isalnum() and not letter.isdigit() for letter in word)
    return letters_of(word) + _DIGIT_LETTERS * word.count(MASK) * is_number


def _ends(words: list[str]) -> Iterator[int]:
    """Where each word ends, in letters from the beginning."""
    at = 0
    for word in words:
        at += _letters(word) + WORD_LETTERS
        yield at
        at += _PAUSE_LETTERS.get(word[-1], 0)

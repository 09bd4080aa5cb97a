"""When a word is spoken, guessed from text and sound: how near that comes to the recorded lines' own times."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.server.driving import speech

from callwright.sim.open.timing import timed
from callwright.sim.speech import PER_MS


def test_half_of_the_words_of_the_recorded_lines_lie_within_60_ms_and_9_of_10_within_360() -> None:
    off_ms = [
        abs(guessed.start_ms + guessed.end_ms - word.start_ms - word.end_ms) / 2
        for line in speech().values()
        if line.kind == "agent"
        for guessed, word in zip(timed(line.text, line.pcm), line.words, strict=True)
    ]
    assert len(off_ms) > 200
    assert np.percentile(off_ms, 50) <= 60
    assert np.percentile(off_ms, 90) <= 360


def test_what_stands_behind_a_comma_is_spoken_behind_the_pause() -> None:
    loud = np.full(500 * PER_MS, 5_000, np.int16)
    pause = np.zeros(300 * PER_MS, np.int16)
    words = timed("Well, no.", np.concatenate([pause, loud, pause, loud, pause]))
    assert [(word.text, word.start_ms, word.end_ms) for word in words] == [("Well,", 300, 800), ("no.", 1_100, 1_600)]


@pytest.mark.parametrize("length_ms", [0, 5, 1_000])
def test_of_a_sound_that_is_silent_every_word_has_all_of_it(length_ms: int) -> None:
    words = timed("one two", np.zeros(length_ms * PER_MS, np.int16))
    assert [(word.start_ms, word.end_ms) for word in words] == [(0, length_ms)] * 2


@given(st.lists(st.text("ab,.", min_size=1, max_size=9), max_size=9), st.integers(0, 4), st.integers(0, 2_000))
def test_words_are_in_order_and_inside_the_sound(words: list[str], seed: int, length_ms: int) -> None:
    rng = np.random.default_rng(seed)
    gate = np.repeat(rng.integers(0, 2, length_ms // 50 + 1), 50 * PER_MS)[: length_ms * PER_MS]
    pcm = (rng.integers(-9_000, 9_000, length_ms * PER_MS) * gate).astype(np.int16)
    found = timed(" ".join(words), pcm)
    assert [word.text for word in found] == words
    assert all(0 <= word.start_ms <= word.end_ms <= length_ms + 10 for word in found)
    if len({(word.start_ms, word.end_ms) for word in found}) > 1:  # else the sound is silent
        assert all(before.end_ms <= word.start_ms for before, word in pairwise(found))

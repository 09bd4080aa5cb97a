"""Where words lie in a reply of which only text and audio are known, beside where they were recorded."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.audio.formats import PCM16_24K
from callwright.sim.elsewhere.placing import PAIRS_MAX, USUAL_PACE, doubt_ms, pace_of, place_words, whole_ms
from callwright.sim.models import Clip
from callwright.sim.record import Streamed
from callwright.sim.server.speaking import Utterance, render
from callwright.sim.speech import Speech

SPEECH = Speech.load(Path(str(resources.files("callwright.apps"))) / "hotel/speech")
AGENT = [line.id for line in SPEECH.values() if line.kind == "agent"]


@cache
def replies() -> tuple[Utterance, ...]:
    """Replies of one line up to seven."""
    chance = random.Random(11)
    return tuple(render([Clip(chance.choice(AGENT)) for _ in range(lines)], SPEECH, 200) for lines in (1, 2, 3, 5, 7))


def sound_of(made: Utterance, part: float = 1.0) -> Streamed:
    samples = np.frombuffer(made.audio, np.dtype("<i2"))
    return Streamed(PCM16_24K.rate_hz, samples[: int(len(samples) * part)], is_whole=part == 1.0)


def shares(part: float = 1.0) -> Iterator[float]:
    """By how much of its doubt each word that is heard is placed off."""
    for made in replies():
        sound = sound_of(made, part)
        for word, placed in zip(made.words, place_words(made.text, sound, USUAL_PACE), strict=True):
            if word.end_ms <= part * made.audio_ms:
                off = max(abs(word.start_ms - placed.start_ms), abs(word.end_ms - placed.end_ms))
                yield off / doubt_ms(placed.end_ms, sound)


@pytest.mark.parametrize("part", [1.0, 0.6, 0.3])
def test_words_lie_where_they_are_supposed_to_within_the_doubt_that_is_told(part: float) -> None:
    found = list(shares(part))
    assert len(found) > 20
    assert sum(share <= 1 for share in found) >= 0.95 * len(found)


def test_a_reply_that_is_not_whole_is_about_as_long_as_its_text_takes() -> None:
    for made in replies()[1:]:
        sound = sound_of(made, 0.4)
        words = place_words(made.text, sound, pace_of([(made.text, sound_of(made))]))
        assert whole_ms(words, sound) == pytest.approx(made.audio_ms, rel=0.2)
        assert whole_ms(words, sound_of(made)) == pytest.approx(made.audio_ms, abs=1)


def test_the_pace_is_that_of_the_whole_replies_that_have_a_text() -> None:
    made = replies()[2]
    own = pace_of([(made.text, sound_of(made))])
    assert pace_of([(made.text, sound_of(made)), (made.text, sound_of(made, 0.5)), ("", sound_of(made))]) == own
    assert pace_of([("Hello.", Streamed(PCM16_24K.rate_hz, np.zeros(0, np.int16), is_whole=True))]) == USUAL_PACE


@given(
    text=st.lists(st.text("ab.,1!-", min_size=1, max_size=6), max_size=12).map(" ".join),
    bursts=st.lists(st.tuples(st.booleans(), st.integers(1, 40)), max_size=12),
    is_whole=st.booleans(),
)
def test_words_come_one_after_the_other_whatever_text_and_audio_are(
    text: str, bursts: list[tuple[bool, int]], is_whole: bool
) -> None:
    parts = [np.full(frames * 240, 9_000 if is_loud else 0, np.int16) for is_loud, frames in bursts]
    sound = Streamed(PCM16_24K.rate_hz, np.concatenate([np.zeros(0, np.int16), *parts]), is_whole)
    words = place_words(text, sound, USUAL_PACE)
    assert [word.text for word in words] == text.split()
    times = [time for word in words for time in (word.start_ms, word.end_ms)]
    assert times == sorted(times)
    assert all(time >= 0 for time in times)
    assert whole_ms(words, sound) >= len(sound.samples) // 24


def test_a_reply_of_more_pauses_than_can_be_compared_is_placed_by_its_letters() -> None:
    """A model that talks for many minutes must not be measured for hours."""
    count = math.isqrt(PAIRS_MAX) + 2
    rate_hz = 1_000
    spoken = [np.full(100, 5_000, np.int16), np.zeros(130, np.int16)] * count
    words = place_words("word, " * count, Streamed(rate_hz, np.concatenate(spoken), is_whole=True), USUAL_PACE)
    assert [word.start_ms // 230 for word in words] == list(range(count))
    assert words[-1].end_ms == count * 230 - 130

"""What is let through is never louder than the microphone, softer where only echo is left, open for the caller."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.audio.echo_rest import Hush, Trust

FRAME = 160


def noise(rms: float, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, rms, FRAME).astype(np.float32)


def level(samples: np.ndarray) -> float:
    return float(np.sqrt(np.mean(samples.astype(float) ** 2)))


REST = FRAME * 100.0**2
"""The filter may have missed a sound of 100."""


def hushed() -> Hush:
    """One that has heard nothing but the rest of an echo for half a second."""
    hush = Hush(FRAME)
    for seed in range(50):
        hush.soften(noise(100, seed), REST)
    return hush


def test_a_right_prediction_is_taken_out_whole() -> None:
    trust = Trust(FRAME)
    echo = noise(3_000)
    assert [level(trust.take_out(echo, echo)) for _ in range(5)] == [0.0] * 5


@settings(max_examples=20)
@given(near=st.floats(0, 10_000), wrong=st.floats(0, 10_000))
def test_a_wrong_prediction_makes_nothing_much_louder(near: float, wrong: float) -> None:
    """After a fifth of a second, not by 1 dB."""
    trust = Trust(FRAME)
    frames = [(noise(near, 2 * at), noise(wrong, 2 * at + 1)) for at in range(40)]
    out = [trust.take_out(*frame) for frame in frames]
    assert level(np.concatenate(out[20:])) <= 1.12 * level(np.concatenate([frame[0] for frame in frames[20:]])) + 1


def test_where_nothing_can_have_been_missed_nothing_is_softened() -> None:
    caller = noise(50)
    assert Hush(FRAME).soften(caller, 0.0) is caller


def test_the_rest_of_an_echo_is_softened_by_24_db() -> None:
    assert level(hushed().soften(noise(100), REST)) == pytest.approx(level(noise(100)) / 16, rel=0.01)


def test_a_caller_opens_the_way_in_2_ms() -> None:
    out = hushed().soften(noise(1_000), REST)
    assert level(out[FRAME // 5 :]) > 0.95 * level(noise(1_000)[FRAME // 5 :])


def test_the_way_stays_open_between_a_callers_syllables() -> None:
    hush = hushed()
    hush.soften(noise(1_000), REST)
    assert level(hush.soften(noise(100), REST)) > 70


def test_a_caller_who_talks_on_does_not_close_the_way_to_himself() -> None:
    hush = hushed()
    for seed in range(500):
        out = hush.soften(noise(1_000, seed), REST)
    assert level(out) > 0.9 * level(noise(1_000, 499))


@given(st.lists(st.tuples(st.floats(0, 10_000), st.floats(0, 1e12)), max_size=20))
def test_nothing_is_ever_made_louder(frames: list[tuple[float, float]]) -> None:
    hush = Hush(FRAME)
    for seed, (rms, expected) in enumerate(frames):
        left = noise(rms, seed)
        assert (np.abs(hush.soften(left, expected)) <= np.abs(left)).all()

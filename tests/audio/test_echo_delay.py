"""An echo's delay is found from the samples, and not made up where there is no echo."""

from __future__ import annotations

import numpy as np
import pytest

from callwright.audio.echo_delay import DelayFinder

RATE_HZ = 8_000
FRAME = 80


def noise(seconds: float, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 3_000, int(seconds * RATE_HZ))


def late(samples: np.ndarray, delay: int) -> np.ndarray:
    return np.concatenate((np.zeros(delay), samples))[: len(samples)]


def looks(near: np.ndarray, far: np.ndarray) -> list[float]:
    """The delays that were confirmed, in samples."""
    finder = DelayFinder(RATE_HZ)
    frames = (slice(at, at + FRAME) for at in range(0, len(far), FRAME))
    taken = (finder.take(near[frame].astype(np.int16), far[frame].astype(np.int16)) for frame in frames)
    return [delay for delay in taken if delay is not None]


@pytest.mark.parametrize("delay", [0, 1, 320, 1_001, 4_000])
def test_a_delay_is_found_to_a_sample(delay: int) -> None:
    far = noise(1.5, 1)
    found = looks(late(far, delay) * 0.1 + noise(1.5, 2) * 0.1, far)
    assert found
    assert found == pytest.approx([delay] * len(found), abs=1)


@pytest.mark.parametrize("near_seed", [1, 2])
def test_a_caller_and_an_agent_who_talk_at_once_are_no_echo(near_seed: int) -> None:
    """Not even a caller who says what the agent will say half a second later."""
    far = noise(2, 1)
    near = noise(2.6, near_seed)[int(0.6 * RATE_HZ) :]
    assert looks(near, far) == []


def test_an_echo_upside_down_is_one() -> None:
    far = noise(1.5, 1)
    assert looks(late(far, 320) * -0.3, far)[-1] == pytest.approx(320, abs=1)


def test_a_finder_that_rests_looks_at_once_at_what_it_was_given() -> None:
    far = noise(2, 1)
    finder = DelayFinder(RATE_HZ)
    frames = [slice(at, at + FRAME) for at in range(0, len(far), FRAME)]
    pairs = [(late(far, 320)[frame].astype(np.int16), far[frame].astype(np.int16)) for frame in frames]
    assert [finder.take(*pair, rests=True) for pair in pairs[:170]] == [None] * 170
    assert [finder.take(*pair) for pair in pairs[170:]][-1] == pytest.approx(320, abs=1)


def test_of_two_like_echoes_the_one_that_was_found_stays() -> None:
    """A car's window reflects; which of the two is stronger for a moment says nothing of the loudspeaker."""
    far = noise(4, 1)
    direct, window = late(far, 320), late(far, 336)
    first = np.arange(len(far)) < 2 * RATE_HZ
    near = np.where(first, 0.3 * direct + 0.25 * window, 0.25 * direct + 0.3 * window)
    assert looks(near, far)[-1] == pytest.approx(320, abs=1)


def test_an_echo_that_moves_is_found_within_a_second() -> None:
    far = noise(3, 1)
    near = np.where(np.arange(len(far)) < 2 * RATE_HZ, late(far, 320), late(far, 800)) * 0.3
    assert looks(near, far)[-1] == pytest.approx(800, abs=1)

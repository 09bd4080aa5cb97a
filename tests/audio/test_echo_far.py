"""A far end is read at any delay, to a fraction of a sample."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.audio.echo_far import FarEnd

FRAME = 80
DELAY_MAX = 400
READ = 160


def tone(at: np.ndarray) -> np.ndarray:
    return np.asarray(10_000 * np.sin(2 * np.pi * at / 16), np.float32)


def filled(frames: int = 10) -> tuple[FarEnd, int]:
    """A far end that heard a tone of an eighth of half the rate, and for how many samples."""
    far = FarEnd(FRAME, DELAY_MAX, READ)
    heard = frames * FRAME
    for at in range(0, heard, FRAME):
        far.push(tone(np.arange(at, at + FRAME)))
    return far, heard


@pytest.mark.parametrize("frames", range(8, 24))
@pytest.mark.parametrize("delay", [0, 1, 399])
def test_a_whole_delay_gives_the_samples_themselves(delay: int, frames: int) -> None:
    """However much was heard before."""
    far, heard = filled(frames)
    far.move(delay)
    expected = tone(np.arange(heard - READ, heard) - delay)
    np.testing.assert_allclose(far.read(READ), expected, atol=0.01)


@given(delay=st.floats(20, DELAY_MAX))
def test_a_fraction_of_a_sample_gives_what_lies_between(delay: float) -> None:
    """To a hundredth of full scale: 40 dB down, at the resolution of 1/64 sample."""
    far, heard = filled()
    far.move(delay)
    expected = tone(np.arange(heard - READ, heard) - delay)
    assert np.abs(far.read(READ) - expected).max() < 100


def test_it_is_read_neither_before_it_is_heard_nor_after_it_is_gone() -> None:
    far, _ = filled()
    assert far.move(1)
    assert not far.move(-2)
    assert far.delay == 0
    assert not far.move(1e6)
    assert far.delay == DELAY_MAX
    assert len(far.read(READ)) == READ

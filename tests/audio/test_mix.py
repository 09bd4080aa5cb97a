"""Sounds add up and saturate; they never wrap around and never leave their buffer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from callwright.audio.mix import add_at, gain_db, mix

sounds = st.lists(st.integers(-32768, 32767), max_size=20).map(lambda values: np.array(values, np.int16))


def pcm(*values: int) -> NDArray[np.int16]:
    return np.array(values, np.int16)


@given(sounds, sounds)
def test_a_mix_is_the_saturated_sum_as_long_as_the_longer(a: NDArray[np.int16], b: NDArray[np.int16]) -> None:
    length = max(len(a), len(b))
    wide = np.pad(a.astype(int), (0, length - len(a))) + np.pad(b.astype(int), (0, length - len(b)))
    mixed = mix(a, b)
    assert mixed.dtype == np.int16
    assert mixed.tolist() == wide.clip(-32768, 32767).tolist()
    assert mix(b, a).tolist() == mixed.tolist()


def test_the_second_sound_has_a_gain() -> None:
    assert mix(pcm(100, 100), pcm(1000, -1000), gain_b=0.25).tolist() == [350, -150]


def test_a_timeline_collects_overlapping_sounds() -> None:
    timeline = np.zeros(6, np.int16)
    add_at(timeline, pcm(10, 20, 30), 1)
    add_at(timeline, pcm(5, 32767, 5), 3)
    assert timeline.tolist() == [0, 10, 20, 35, 32767, 5]


@pytest.mark.parametrize("at", [-1, 4])
def test_a_sound_that_sticks_out_of_the_timeline_is_refused_whole(at: int) -> None:
    timeline = np.zeros(6, np.int16)
    with pytest.raises(ValueError, match="inside a buffer of 6"):
        add_at(timeline, pcm(1, 2, 3), at)
    assert not timeline.any()


def test_gain_in_decibels_saturates() -> None:
    assert gain_db(pcm(1000, -1000), 20).tolist() == [10_000, -10_000]
    assert gain_db(pcm(1000, -1000), -20).tolist() == [100, -100]
    assert gain_db(pcm(30_000, -30_000), 6).tolist() == [32_767, -32_768]

"""A path is learned from what it missed, and keeps what it learned when its place in time moves."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from callwright.audio.echo_path import EchoPath

FRAME = 40
PARTITIONS = 8
RESPONSE = np.concatenate((np.zeros(40), np.random.default_rng(3).normal(0, 0.1, 200) * 0.985 ** np.arange(200)))
FAR = np.random.default_rng(1).normal(0, 3_000, 400 * FRAME).astype(np.float32)
ECHO = np.convolve(FAR, RESPONSE)[: len(FAR)].astype(np.float32)


def two_frames(index: int, late: int = 0) -> np.ndarray:
    end = (index + 1) * FRAME - late
    return FAR[end - 2 * FRAME : end]


def missed(path: EchoPath, index: int, late: int = 0) -> np.ndarray:
    path.hear(two_frames(index, late))
    return ECHO[index * FRAME : (index + 1) * FRAME] - path.predict()


def taught(caller: np.ndarray, lessons: int = 299) -> EchoPath:
    path = EchoPath(FRAME, PARTITIONS)
    for lesson in range(lessons):
        index = 1 + lesson % 299
        path.learn(missed(path, index) + caller[index * FRAME : (index + 1) * FRAME])
    return path


@cache
def left(caller_rms: float) -> float:
    """Power of what is not predicted, of the echo's, when a caller of this level talked during the lesson."""
    path = taught(
        np.random.default_rng(2).normal(0, caller_rms, len(FAR)).astype(np.float32) if caller_rms else 0 * FAR
    )
    rest = np.concatenate([missed(path, index) for index in range(300, 320)])
    return float((rest**2).sum() / (ECHO[300 * FRAME : 320 * FRAME] ** 2).sum())


def test_a_path_is_learned() -> None:
    assert left(0) < 1e-3


def test_a_caller_slows_the_learning_and_does_not_undo_it() -> None:
    """He is as loud as the far end, three times as loud as the echo."""
    assert left(3_000) < 0.3


def test_a_path_that_is_known_learns_from_every_other_frame() -> None:
    path = taught(0 * FAR, lessons=1_000)
    rested = []
    known = [path.predict()]
    for _ in range(4):
        rested.append(path.rests)
        path.learn(FAR[:FRAME])  # it misses much: each lesson shows
        known.append(path.predict())
    assert sorted(rested) == [False, False, True, True]
    assert rested == [bool((before == after).all()) for before, after in pairwise(known)]


@pytest.mark.parametrize("samples", [-30, 30])
def test_a_path_that_is_moved_expects_the_same_echo_of_a_far_end_that_is_moved_back(samples: int) -> None:
    path = taught(0 * FAR)
    path.shift(samples)
    end = 301 * FRAME + samples
    path.hear_again(FAR[end - (PARTITIONS + 1) * FRAME : end])
    rest = ECHO[300 * FRAME : 301 * FRAME] - path.predict()
    assert (rest**2).sum() < 0.05 * (ECHO[300 * FRAME : 301 * FRAME] ** 2).sum()


def test_a_silent_far_end_teaches_nothing() -> None:
    path = EchoPath(FRAME, PARTITIONS)
    path.hear(np.zeros(2 * FRAME, np.float32))
    path.learn(FAR[:FRAME])
    path.hear(FAR[: 2 * FRAME])
    assert not path.predict().any()

"""Adding sounds: two streams, sounds on a timeline, gain. All int16 mono; what is too loud saturates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from callwright.audio.formats import PCM
from callwright.ids import Samples


def mix(a: PCM, b: PCM, gain_b: float = 1.0) -> PCM:
    """``a`` and ``gain_b`` (a factor) times ``b``, both from the same instant; as long as the longer of the two."""
    total = np.zeros(max(len(a), len(b)), np.float64)
    total[: len(a)] = a
    total[: len(b)] += b * gain_b
    return saturated(total)


def add_at(buffer: PCM, samples: PCM, at: Samples) -> None:
    """Add ``samples`` to what ``buffer`` holds from sample ``at`` on, in place.

    Raises `ValueError` when they do not lie inside the buffer.
    """
    end = at + len(samples)
    if at < 0 or end > len(buffer):
        raise ValueError(f"samples {at} to {end} do not lie inside a buffer of {len(buffer)}")
    buffer[at:end] = saturated(np.add(buffer[at:end], samples, dtype=np.float64))


def gain_db(samples: PCM, db: float) -> PCM:
    """The samples louder by ``db`` decibels, or softer when it is negative."""
    return saturated(samples.astype(np.float64) * gain_factor(db))


def gain_factor(db: float) -> float:
    """The factor of an amplitude that is ``db`` decibels."""
    return float(10.0 ** (db / 20))


def saturated(samples: NDArray[np.floating]) -> PCM:
    """The samples (in int16 steps) as int16: rounded, and held at the limits where they are too loud."""
    whole = np.rint(samples)
    np.minimum(whole, 32767, out=whole)
    np.maximum(whole, -32768, out=whole)
    rounded: PCM = whole.astype(np.int16)
    return rounded

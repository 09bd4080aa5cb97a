"""Levels are whole dB of full scale, and speech is found where it is."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from callwright.audio.levels import SILENCE_DBFS, active_spans, level_dbfs, peak, window_rms

RATE = 8_000


def sine(peak_value: float, ms: int) -> NDArray[np.int16]:
    return np.rint(peak_value * np.sin(2 * np.pi * 500 / RATE * np.arange(RATE * ms // 1000))).astype(np.int16)


def quiet(ms: int) -> NDArray[np.int16]:
    return np.zeros(RATE * ms // 1000, np.int16)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (np.full(160, -32768, np.int16), 0),
        (sine(32767, 20), -3),
        (sine(3276.7, 20), -23),
        (np.ones(160, np.int16), -90),
        (quiet(20), SILENCE_DBFS),
        (quiet(0), SILENCE_DBFS),
        (np.eye(1, 8000, dtype=np.int16)[0], SILENCE_DBFS),
    ],
)
def test_levels_are_whole_db_of_full_scale(samples: NDArray[np.int16], expected: int) -> None:
    assert level_dbfs(samples) == expected


def test_the_peak_of_the_lowest_sample_is_its_true_magnitude() -> None:
    assert peak(np.array([5, -32768, 7], np.int16)) == 32768
    assert peak(quiet(0)) == 0


def test_rms_of_whole_windows_only() -> None:
    assert window_rms(np.array([3, -3, 0, 4, 9], np.int16), 2).tolist() == pytest.approx([3, 8**0.5])


def test_speech_is_found_where_it_is() -> None:
    recording = np.concatenate(
        (quiet(200), sine(8_000, 300), quiet(100), sine(8_000, 150), quiet(400), sine(8_000, 55))
    )
    assert active_spans(recording, RATE, -40, 100) == [(200, 750), (1150, 1205)]
    assert active_spans(recording, RATE, -40, 90) == [(200, 500), (600, 750), (1150, 1205)]
    assert active_spans(recording, RATE, -40, 400) == [(200, 1205)]


@pytest.mark.parametrize("recording", [quiet(0), quiet(500), sine(100, 500)])
def test_what_is_below_the_threshold_is_no_speech(recording: NDArray[np.int16]) -> None:
    assert active_spans(recording, RATE, -40, 100) == []

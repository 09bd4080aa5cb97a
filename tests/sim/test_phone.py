"""A telephone passes its band flat, where it was, and hisses as loud as it is told; the same seed hisses the same."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from callwright.audio.formats import PCM
from callwright.audio.levels import level_dbfs, window_rms
from callwright.sim.phone import HISS_MS, hiss, over_phone, phone_response
from callwright.sim.room.convolve import Convolver

RATES_HZ = (8_000, 16_000, 24_000)


def tone(hz: float, rate_hz: int) -> PCM:
    return np.rint(10_000 * np.sin(2 * np.pi * hz * np.arange(rate_hz) / rate_hz)).astype(np.int16)


def gain_db(hz: float, rate_hz: int) -> float:
    steady = slice(rate_hz // 10, -rate_hz // 10)
    before, after = (x[steady].astype(float) for x in (tone(hz, rate_hz), over_phone(tone(hz, rate_hz), rate_hz)))
    return float(10 * np.log10(np.mean(after**2) / np.mean(before**2)))


@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_the_band_passes_and_the_rest_is_gone(rate_hz: int) -> None:
    for hz in (450, 1_000, 3_000, 3_200):
        assert gain_db(hz, rate_hz) == pytest.approx(0, abs=0.2)
    for hz in (300, 3_400):
        assert gain_db(hz, rate_hz) == pytest.approx(-6, abs=0.5)
    for hz in (50, 100, 150, *(hz for hz in (3_700, 5_000) if hz < rate_hz / 2)):
        assert gain_db(hz, rate_hz) < -40


@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_content_stays_where_it_was(rate_hz: int) -> None:
    samples = tone(1_000, rate_hz)
    steady = slice(rate_hz // 10, -rate_hz // 10)
    assert np.abs(over_phone(samples, rate_hz)[steady] - samples[steady].astype(int)).max() <= 100
    assert len(over_phone(samples[:7], rate_hz)) == 7


def test_a_stream_through_the_response_is_the_recording_8_ms_later() -> None:
    samples = tone(700, 8_000)
    stream = Convolver(phone_response(8_000), 160)
    out = np.concatenate([stream.process(frame.astype(float)) for frame in np.split(samples, 50)])
    np.testing.assert_array_equal(np.rint(out[64:]), over_phone(samples, 8_000)[:-64])


@pytest.mark.parametrize("rate_hz", RATES_HZ)
@pytest.mark.parametrize("level", [-60, -45])
def test_hiss_is_as_loud_as_asked_even_and_without_a_seam(rate_hz: int, level: int) -> None:
    noise = hiss(level, rate_hz, Random(3))
    assert len(noise) == HISS_MS * rate_hz // 1000
    assert level_dbfs(noise) == level
    windows = 20 * np.log10(window_rms(np.append(noise[len(noise) // 2 :], noise), rate_hz // 5) / 32768)
    assert np.abs(windows - level).max() < 1.5


def test_one_seed_is_one_hiss() -> None:
    np.testing.assert_array_equal(hiss(-55, 8_000, Random(1)), hiss(-55, 8_000, Random(1)))
    assert (hiss(-55, 8_000, Random(1)) != hiss(-55, 8_000, Random(2))).any()

"""A telephone line passes its band flat and the rest not at all, wherever a voice is on it; its noise is in it, too."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from callwright.audio.formats import PCM
from callwright.audio.levels import level_dbfs
from callwright.sim.phone import HIGH_HZ, LATE_MS, LOW_HZ
from callwright.sim.room import Noise, Room, RoomSettings

RATES_HZ = (8_000, 16_000, 24_000)


def tone(hz: float, rate_hz: int) -> PCM:
    return np.rint(10_000 * np.sin(2 * np.pi * hz * np.arange(rate_hz) / rate_hz)).astype(np.int16)


def over_line(samples: PCM, rate_hz: int, noise: Noise | None = None) -> PCM:
    room = Room(RoomSettings(name="phone-line", noise=noise), rate_hz, Random(1))
    silence = np.zeros(rate_hz // 50, np.int16)
    return np.concatenate([room.apply(frame, silence) for frame in np.split(samples, 50)])


def gain_db(hz: float, rate_hz: int) -> float:
    steady = slice(rate_hz // 10, -rate_hz // 10)
    before, after = (x[steady].astype(float) for x in (tone(hz, rate_hz), over_line(tone(hz, rate_hz), rate_hz)))
    return float(10 * np.log10(np.mean(after**2) / np.mean(before**2)))


@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_the_band_passes_and_the_rest_is_gone(rate_hz: int) -> None:
    for hz in (600, 1_000, 2_000, 3_000):
        assert gain_db(hz, rate_hz) == pytest.approx(0, abs=0.3)
    for hz in (300, 3_400):
        assert gain_db(hz, rate_hz) == pytest.approx(-3, abs=1)
    assert gain_db(50, rate_hz) == pytest.approx(-12, abs=1)
    for hz in (3_900, *(hz for hz in (5_000, 7_000) if hz < rate_hz / 2)):
        assert gain_db(hz, rate_hz) < -30


@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_what_passes_is_2_ms_late_and_otherwise_as_it_was(rate_hz: int) -> None:
    samples, late = tone(1_000, rate_hz), LATE_MS * rate_hz // 1000
    steady = slice(rate_hz // 10, -rate_hz // 10)
    passed = np.roll(over_line(samples, rate_hz), -late)[steady].astype(int)
    assert np.abs(passed - samples[steady]).max() <= 100


@pytest.mark.parametrize("level", [-60, -45])
def test_its_noise_is_as_loud_as_asked_and_in_the_band(level: int) -> None:
    noise = over_line(np.zeros(8_000, np.int16), 8_000, Noise("hiss", level))
    assert abs(level_dbfs(noise) - level) <= 1
    spectrum = np.abs(np.fft.rfft(noise)) ** 2
    assert spectrum[LOW_HZ:HIGH_HZ].sum() > 0.95 * spectrum[1:].sum()

"""Call progress tones have their frequencies, rhythm and level, and press no key."""

from __future__ import annotations

import numpy as np
import pytest

from callwright.audio.dtmf import KeyDetector
from callwright.audio.levels import active_spans, level_dbfs
from callwright.audio.progress import BEEP, BUSY, RINGING, Rhythm, one_round


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 24_000])
@pytest.mark.parametrize(
    ("rhythm", "tones_hz", "on_ms", "round_ms", "level"),
    [(RINGING, [440, 480], 2_000, 6_000, -22), (BUSY, [480, 620], 500, 1_000, -27), (BEEP, [1_000], 500, 500, -19)],
)
def test_a_round_is_the_tones_and_their_pause(
    rhythm: Rhythm, tones_hz: list[int], on_ms: int, round_ms: int, level: int, rate_hz: int
) -> None:
    """Levels in dBFS: 0 dBm0 is -6.2 dBFS, and two tones are 3 dB louder than one."""
    samples = one_round(rhythm, rate_hz)
    assert len(samples) == round_ms * rate_hz // 1000
    sound, pause = samples[: on_ms * rate_hz // 1000], samples[on_ms * rate_hz // 1000 :]
    assert not pause.any()
    spectrum = np.abs(np.fft.rfft(sound)) * 1000 / on_ms
    loudest = np.sort(np.argsort(spectrum)[-len(tones_hz) :])
    assert (loudest * 1000 // on_ms).tolist() == tones_hz
    assert level_dbfs(sound) == level
    assert active_spans(samples, rate_hz, -40, 0) == [(0, on_ms)]


@pytest.mark.parametrize("rhythm", [RINGING, BUSY, BEEP])
def test_no_signal_of_the_network_is_a_key(rhythm: Rhythm) -> None:
    assert KeyDetector(8_000).take(np.tile(one_round(rhythm, 8_000), 3)) == ()

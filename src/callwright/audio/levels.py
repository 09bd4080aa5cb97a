"""How loud samples are, and where in a recording somebody speaks.

A level is in dB of full scale (dBFS): a square wave of full scale has 0, a sine of full scale -3. Sums of squares are
exact and levels are whole dB, so a decision on a level is the same on every machine. Telephony's levels are in dBm0: a
tone of full scale has 3.17 (ITU-T G.711).
"""

from __future__ import annotations

from math import floor, log10

import numpy as np
from numpy.typing import NDArray

from callwright.audio.formats import PCM
from callwright.ids import Ms, Samples

SILENCE_DBFS = -100
"""The level of digital silence, and of no samples at all."""

_FULL_SCALE = 32768.0
_G711_PEAK = 32636.0  # the loudest that G.711 carries
_G711_PEAK_DBM0 = 3.17
_WINDOW_MS: Ms = 10


def level_dbfs(samples: PCM) -> int:
    """RMS level of int16 samples, rounded to whole dBFS; never below `SILENCE_DBFS`."""
    wide = samples.astype(np.float64)
    energy = float(np.dot(wide, wide))
    if not energy:
        return SILENCE_DBFS
    return max(SILENCE_DBFS, floor(10 * log10(energy / len(samples) / _FULL_SCALE**2) + 0.5))


def tone_amplitude(dbm0: float) -> float:
    """Amplitude of a tone of this level, in int16 steps."""
    return float(_G711_PEAK * 10 ** ((dbm0 - _G711_PEAK_DBM0) / 20))


def peak(samples: PCM) -> int:
    """The largest magnitude, 0 to 32768."""
    return max(int(samples.max()), -int(samples.min())) if len(samples) else 0


def window_rms(samples: PCM, window: Samples) -> NDArray[np.float64]:
    """RMS of each whole window of ``window`` samples, in sample units (0 to 32768); a part at the end is left out."""
    whole = len(samples) // window
    wide = samples[: whole * window].reshape(whole, window).astype(np.float64)
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", wide, wide) / window), np.float64)


def active_spans(samples: PCM, rate_hz: int, threshold_dbfs: float, hang_ms: Ms) -> list[tuple[Ms, Ms]]:
    """Where a recording (int16 mono) is at least as loud as ``threshold_dbfs``, as (start, end) in ms, in order.

    The recording is looked at in windows of 10 ms, the last of which may be shorter. Pauses of up to ``hang_ms`` belong
    to the span around them; a span ends with its last loud window.
    """
    window = rate_hz * _WINDOW_MS // 1000
    padded = np.concatenate((samples, np.zeros(-len(samples) % window, np.int16)))
    loud = np.flatnonzero(window_rms(padded, window) >= _FULL_SCALE * 10.0 ** (threshold_dbfs / 20))
    if not len(loud):
        return []
    breaks = np.flatnonzero(np.diff(loud) - 1 > hang_ms / _WINDOW_MS)
    starts = loud[np.concatenate(([0], breaks + 1))] * _WINDOW_MS
    ends = (loud[np.concatenate((breaks, [len(loud) - 1]))] + 1) * _WINDOW_MS
    last = len(samples) * 1000 // rate_hz
    return [(start, min(end, last)) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]

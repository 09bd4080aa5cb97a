"""The sound of a call as a page holds it: to be listened to, and to be looked at."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

import numpy as np

from callwright.audio.formats import Encoding
from callwright.audio.resample import resample
from callwright.audio.wav import wav_file
from callwright.measure.report.markup import Html, tag

if TYPE_CHECKING:
    from callwright.audio.formats import PCM
    from callwright.ids import Ms
    from callwright.measure.sides import Sides

RATES_HZ = (8_000, 16_000)
"""A page's sound has one of these rates: that of the call, or the higher one."""
COLUMN_MS: Ms = 20
"""A waveform has one column for so much sound,"""
COLUMNS_MAX = 6_000
"""and no more columns than this: those of a longer call are wider."""
_HEIGHT = 100


def sound_uri(sides: Sides) -> str:
    """A recording as the address of itself: stereo WAV, μ-law, the caller on the left as he was sent."""
    channels = [sides.sent, sides.heard]
    page_hz = sides.rate_hz
    if page_hz not in RATES_HZ:
        page_hz = RATES_HZ[-1]
        channels = [resample(side, sides.rate_hz, page_hz) for side in channels]
    wav = wav_file(page_hz, *channels, encoding=Encoding.PCMU)
    return f"data:audio/wav;base64,{b64encode(wav).decode()}"


def waveform(samples: PCM, rate_hz: int, length_ms: Ms, kind: str, name: str) -> Html:
    """The loudest sample of every column, as a picture that is as wide as ``length_ms``; its path can be used again."""
    columns = _columns(length_ms)
    per_column = -(-length_ms * rate_hz // 1000 // columns)
    padded = np.zeros(columns * per_column, np.int32)
    padded[: len(samples)] = np.abs(samples[: len(padded)].astype(np.int32))
    peaks = padded.reshape(columns, per_column).max(axis=1)
    heights = np.round(peaks * _HEIGHT / 32_768).astype(int)
    bars = "".join(f"M{at} {_HEIGHT - int(heights[at])}v{2 * int(heights[at])}" for at in np.flatnonzero(heights))
    path = tag("path", d=bars or "M0 0", transform="translate(.5 0)", id=name)
    box = view_box(length_ms)
    return tag("svg", path, class_=f"wave {kind}", viewBox=box, preserveAspectRatio="none", aria_hidden="true")


def view_box(length_ms: Ms) -> str:
    """What a waveform of this length is drawn in."""
    return f"0 0 {_columns(length_ms)} {2 * _HEIGHT}"


def _columns(length_ms: Ms) -> int:
    return max(1, min(COLUMNS_MAX, -(-length_ms // COLUMN_MS)))

"""Changing the sample rate of a stream, and cutting a stream of bytes into samples.

A linear-phase FIR filter, 3 ms long on each side, evaluated only at the samples that are kept. Its whole work for one
call is one matrix product: the input is laid out as overlapping rows, the filter as a matrix that turns a row into a
run of output samples.

```
input    ..........|-- group --|-- group --|-- group --|       a group: the fewest samples that give a whole number
row 0    [ history |  8 groups ]                               of output samples (24 -> 8 kHz: 3 samples give 1)
row 1              [ history   |  8 groups ]
```

Coefficients are multiples of 2^-24, so every product and every sum is exact in float64. The samples therefore do not
depend on how the stream was cut, on the order of summation or on the linear algebra library.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache
from math import gcd

import numpy as np
from numpy.typing import NDArray

from callwright.audio.formats import PCM
from callwright.errors import AudioFormatError

DELAY_MS = 3
"""How far ahead the filter looks, for every pair of rates."""

_GROUPS_PER_ROW = 8
_ROWS_PER_PRODUCT = 128  # products this small stay on one thread; waking a second one costs more than it saves
_PASS_MARGIN_HZ = 100  # the -6 dB point is so far below half the lower rate: at 8 kHz flat to 3.4, closed from 4.4 kHz
_KAISER_BETA = 8.6  # at least 84 dB down outside the pass-band, by bench/audio.py
_COEFFICIENT_STEP = 2.0**-24
_MAX_RATE_HZ = 48_000
_PIECE_S = 1  # bounds the memory of `resample`

_NOTHING = np.zeros(0, np.int16)


class Align(Enum):
    """Where the delay of the filter goes."""

    FRAMES = "frames"
    """Every frame in gives a frame out at once, and the content is 3 ms late: for a live line."""
    CONTENT = "content"
    """The first 3 ms out are left out, so the content is where it was: for an item with a beginning and an end."""


@dataclass(frozen=True, slots=True)
class _Filter:
    """The filter of one pair of rates. A group of ``group_in`` samples becomes ``group_out`` samples."""

    group_in: int
    group_out: int
    row_in: int
    history: int
    matrix: NDArray[np.float64]
    """Shape (history + row_in, samples out of a row)."""
    padding: PCM
    """Zeros that fill up the last row."""


class Resampler:
    """Changes the rate of one stream: int16 mono at ``from_hz`` in, int16 mono at ``to_hz`` out.

    The rates are multiples of 1000 Hz up to 48 kHz; `AudioFormatError` otherwise. 20 ms in give exactly 20 ms out. The
    stream has no clock: a pause between two calls changes nothing. One object serves one item or one live line;
    `flush` ends the item and makes it ready for the next. Samples of another type than int16 raise `TypeError`.
    """

    def __init__(self, from_hz: int, to_hz: int, align: Align = Align.FRAMES) -> None:
        self._filter = None if from_hz == to_hz else _filter(from_hz, to_hz)
        self._from_hz = from_hz
        self._to_hz = to_hz
        self._align = align
        self._begin()

    def _begin(self) -> None:
        self._held = np.zeros(self._filter.history if self._filter else 0, np.int16)
        self._to_skip = DELAY_MS * self._to_hz // 1000 if self._filter and self._align is Align.CONTENT else 0

    def process(self, samples: PCM) -> PCM:
        """The output that these samples complete. It grows by whole groups: a frame of 20 ms gives 20 ms, and what is
        left of another length waits for the next call.
        """
        fir = self._filter
        if fir is None:
            return samples
        groups = (len(self._held) - fir.history + len(samples)) // fir.group_in
        if not groups:
            self._held = np.concatenate((self._held, samples))
            return _NOTHING
        used = groups * fir.group_in
        rows = -(-groups // _GROUPS_PER_ROW)
        padding = fir.padding[: rows * fir.row_in - used]
        stream = np.concatenate((self._held, samples, padding), dtype=np.int16, casting="equiv")
        self._held = stream[used : len(self._held) + len(samples)]
        windows = np.ndarray((rows, fir.history + fir.row_in), np.int16, stream, 0, (2 * fir.row_in, 2))
        out = np.empty((rows, fir.matrix.shape[1]))
        for row in range(0, rows, _ROWS_PER_PRODUCT):
            part = slice(row, row + _ROWS_PER_PRODUCT)
            np.dot(windows[part].astype(np.float64), fir.matrix, out=out[part])
        np.rint(out, out=out)
        np.minimum(out, 32767.0, out=out)
        np.maximum(out, -32768.0, out=out)
        converted: PCM = out.astype(np.int16).ravel()[: groups * fir.group_out]
        if not self._to_skip:
            return converted
        kept: PCM = converted[self._to_skip :]
        self._to_skip -= len(converted) - len(kept)
        return kept

    def flush(self) -> PCM:
        """The rest of the item, which still was inside the filter; the next sample begins a new item.

        With `Align.CONTENT` the item's total is the ratio of its length, rounded up to a whole sample; with
        `Align.FRAMES` it is that and 3 ms more.
        """
        fir = self._filter
        if fir is None:
            return _NOTHING
        pending = len(self._held) - fir.history
        wanted = -(-pending * self._to_hz // self._from_hz) + DELAY_MS * self._to_hz // 1000
        groups = -(-wanted // fir.group_out)
        tail = self.process(np.zeros(groups * fir.group_in - pending, np.int16))
        skipped = groups * fir.group_out - len(tail)
        self._begin()
        return tail[: wanted - skipped]


def resample(samples: PCM, from_hz: int, to_hz: int) -> PCM:
    """A whole recording (int16, mono) at another rate: the same length, content where it was."""
    resampler = Resampler(from_hz, to_hz, Align.CONTENT)
    step = _PIECE_S * from_hz
    pieces = [resampler.process(samples[at : at + step]) for at in range(0, len(samples), step)]
    return np.concatenate((*pieces, resampler.flush()))


class Pcm16Carry:
    """Turns the bytes of one PCM16 item into samples, however they are cut: an odd byte waits for its other half."""

    def __init__(self) -> None:
        self._odd = b""

    def take(self, data: bytes) -> PCM:
        """The samples that these bytes complete (int16, mono)."""
        if self._odd:
            data = self._odd + data
        whole = len(data) & ~1
        self._odd = data[whole:]
        return np.frombuffer(data, np.dtype("<i2"), whole // 2)

    def end(self) -> int:
        """End the item; returns how many bytes (0 or 1) were dropped. The next item begins on a whole sample."""
        dropped = len(self._odd)
        self._odd = b""
        return dropped


@cache
def _filter(from_hz: int, to_hz: int) -> _Filter:
    for hz in (from_hz, to_hz):
        if not 0 < hz <= _MAX_RATE_HZ or hz % 1000:
            raise AudioFormatError(f"{hz} Hz: a resampler takes multiples of 1000 Hz up to {_MAX_RATE_HZ} Hz")
    common = gcd(from_hz, to_hz)
    up, down = to_hz // common, from_hz // common
    half = DELAY_MS * from_hz * up // 1000
    taps = up * _low_pass(half, (min(from_hz, to_hz) / 2 - _PASS_MARGIN_HZ) / (from_hz * up))
    taps = np.rint(taps / _COEFFICIENT_STEP) * _COEFFICIENT_STEP
    history = 2 * half // up
    row_in, row_out = _GROUPS_PER_ROW * down, _GROUPS_PER_ROW * up
    # Output j of a row stands at tap j * down; input i of a row stands at (i - history) * up.
    tap = np.arange(row_out) * down - (np.arange(history + row_in)[:, None] - history) * up
    inside = (tap >= 0) & (tap < len(taps))
    matrix = np.where(inside, taps[tap.clip(0, len(taps) - 1)], 0.0)
    return _Filter(down, up, row_in, history, matrix, np.zeros(row_in, np.int16))


def _low_pass(half: int, cutoff: float) -> NDArray[np.float64]:
    """2 * half + 1 taps of a windowed sinc that sum to 1; the cut-off is a part of the rate."""
    taps = np.sinc(2 * cutoff * np.arange(-half, half + 1)) * np.kaiser(2 * half + 1, _KAISER_BETA)
    return np.asarray(taps / taps.sum(), np.float64)

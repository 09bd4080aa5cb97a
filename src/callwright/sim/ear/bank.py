"""The lines that an ear knows, and the search for the one that a short stretch of sound is taken from.

Search works at 2 kHz, where a line is small, with the low notes held down (pre-emphasis), so that a match needs the
whole sound and not just the pitch. All lines stand in one row with silence between them; the row is kept as spectra of
overlapping blocks, so that one query costs one short transform and one inverse transform a block.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from callwright.audio.resample import resample
from callwright.sim.speech import RATE_HZ, Pcm, Recording

Floats: TypeAlias = npt.NDArray[np.float64]

FIT_HZ = 8_000
FIT_PER_MS = FIT_HZ // 1000
SEARCH_HZ = 2_000
STEP = FIT_HZ // SEARCH_HZ
QUERY = 320 * FIT_PER_MS
"""Samples at 8 kHz of one query: long enough to hold more than one sound, short enough to fall into a first word."""
FINE = 2
_PIECE = 500 * FIT_PER_MS
_QUERY = QUERY // STEP
_BLOCK = 4096
_HOP = _BLOCK - _QUERY + 1
_CANDIDATES = 6
_PITCH = 12 * FIT_PER_MS
"""One period of a low voice, by which the best place at 2 kHz may be wrong."""
_EMPHASIS = 0.95
_QUIET = 100.0**2
"""Power below which a stretch of a line is silence."""
_HALF = 40
_LOW_PASS = np.sinc(np.arange(-_HALF, _HALF + 1) * 0.9 / STEP) * np.hamming(2 * _HALF + 1) * 0.9 / STEP


@dataclass(frozen=True, eq=False)
class Line:
    """One known line: its recording, and its samples at 8 kHz (float64, in int16 steps)."""

    recording: Recording
    samples: Floats

    @cached_property
    def fine(self) -> Floats:
        """The same, with `FINE` times the samples: dense enough for a line that drifts to be read between them."""
        return resample(self.samples.astype(np.int16), FIT_HZ, FIT_HZ * FINE).astype(np.float64)

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """First and end sample at 8 kHz of each word; of each half second where there are no words."""
        whole = range(0, len(self.samples), _PIECE)
        words = [(w.start_ms * FIT_PER_MS, w.end_ms * FIT_PER_MS) for w in self.recording.words]
        return words or [(at, min(at + _PIECE, len(self.samples))) for at in whole]


@dataclass(frozen=True)
class Match:
    """Where a query fits best: the line, the query's first sample in it (8 kHz; may be negative), and how well."""

    line: Line
    at: int
    peak: float


class Bank:
    """Known lines, searchable by sound."""

    def __init__(self, recordings: Iterable[Recording]) -> None:
        self.lines = [Line(r, narrow(r.pcm, RATE_HZ)) for r in recordings]
        self._lows = [lowered(line.samples) for line in self.lines]
        row = [np.zeros(_QUERY)]
        self._starts: list[int] = []
        for low in self._lows:
            self._starts.append(sum(map(len, row)))
            row += [low[::STEP], np.zeros(_QUERY)]
        length = sum(map(len, row))
        blocks = -(-length // _HOP)
        padded = np.concatenate([*row, np.zeros(blocks * _HOP + _QUERY - 1 - length)])
        framed = np.lib.stride_tricks.sliding_window_view(padded, _BLOCK)[::_HOP]
        self._spectra = np.fft.rfft(framed.astype(np.float32), axis=1)
        self._scale = inverse_norms(padded, _QUERY).reshape(blocks, _HOP).astype(np.float32)

    def find(self, sound: Floats) -> Match | None:
        """The best match of `sound` (`QUERY` samples at 8 kHz); None where there is nothing to match."""
        query = lowered(sound)
        if not query.any():
            return None
        coarse = query[::STEP].astype(np.float32)
        spectrum = np.conj(np.fft.rfft(coarse, _BLOCK))
        likeness = np.fft.irfft(self._spectra * spectrum, _BLOCK, axis=1)[:, :_HOP] * self._scale
        peaks = likeness.argmax(axis=1)
        best = np.argsort(-likeness.max(axis=1), kind="stable")[:_CANDIDATES]
        likely = [self._refined(query, *self._place(int(b) * _HOP + int(peaks[b])), STEP) for b in best]
        index, at, _ = max(likely, key=lambda found: found[2])
        index, at, peak = self._refined(query, index, at, _PITCH)
        return Match(self.lines[index], at, peak)

    def _place(self, at: int) -> tuple[int, int]:
        """The line at a place in the row, and the place in the line (8 kHz)."""
        index = max(0, bisect_right(self._starts, at + _QUERY // 2) - 1)
        return index, (at - self._starts[index]) * STEP

    def _refined(self, query: Floats, index: int, at: int, reach: int) -> tuple[int, int, float]:
        """The line, the best place within `reach` samples of `at` in it, and how well `query` fits there."""
        near = cut(self._lows[index], at - reach, at + reach + QUERY)
        likeness = np.correlate(near, query) * inverse_norms(near, QUERY) / np.sqrt(query @ query)
        best = int(likeness.argmax())
        return index, at - reach + best, float(likeness[best])


def narrow(samples: Pcm, rate_hz: int) -> Floats:
    """Samples (int16, mono, 8 or 16 kHz) at 8 kHz, as float64 in whole int16 steps."""
    return (samples if rate_hz == FIT_HZ else resample(samples, rate_hz, FIT_HZ)).astype(np.float64)


def cut(samples: Floats, begin: int, end: int) -> Floats:
    """The samples from `begin` to `end`, with silence where those lie outside."""
    inside = samples[max(0, begin) : max(0, end)]
    before = min(max(0, -begin), end - begin)
    return np.concatenate([np.zeros(before), inside, np.zeros(end - begin - before - len(inside))])


def lowered(samples: Floats) -> Floats:
    """Samples at 8 kHz through the band of the search: below 1 kHz, pre-emphasised, without delay, in whole steps."""
    low = np.convolve(samples, _LOW_PASS)[_HALF : _HALF + len(samples)]
    return np.round(low - _EMPHASIS * np.concatenate([np.zeros(STEP), low[:-STEP]]))


def inverse_norms(samples: Floats, window: int) -> Floats:
    """One over the norm of every window, where that is not next to silence."""
    sums = np.concatenate([[0.0], np.cumsum(samples**2)])
    norms: Floats = np.sqrt(np.maximum(sums[window:] - sums[:-window], window * _QUIET))
    return 1 / norms

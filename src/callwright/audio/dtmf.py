"""Keys of a telephone as tones (DTMF, ITU-T Q.23): made, and detected in a stream.

A key is the sum of a tone of the low group (its row) and one of the high group (its column):

```
Hz    1209  1336  1477  1633
697      1     2     3     A
770      4     5     6     B
852      7     8     9     C
941      *     0     #     D
```

The detector looks at windows of 20 ms, 5 ms apart. Of each it takes the eight frequencies (Goertzel's sums, all windows
of a call as one matrix product). A window holds a key when

- both tones are loud enough, neither is too loud against the other, and together they are most of what sounds: speech
  and music have more around them;
- their phases go on from the window before as those of these frequencies do: 5 ms turn a tone that is 3.5 % off by 44
  degrees at 697 Hz, which a window this short would not tell by its level;
- it is at least half as loud, as an amplitude, as its neighbours within 10 ms: so as many windows hold a key as have
  their middle inside its tone, and their count is the length of the tone.

```
tone         |================ 100 ms ================|          interruption: |===|  |===|, up to 10 ms
windows  . . k k k k k k k k k k k k k k k k k k k k k . . . . . .
                       ^ sure: six in a row, 30 ms               ^ ended: six without, 30 ms; `KeyHeard`
```

Coefficients are multiples of 2^-16 and 2^-10, so every sum is exact in float64: what is detected does not depend on how
the stream was cut, on the order of summation or on the linear algebra library. ``bench/dtmf.py`` prints the limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from callwright.audio.formats import PCM
from callwright.audio.levels import peak, tone_amplitude
from callwright.audio.mix import saturated
from callwright.errors import AudioFormatError, UsageError
from callwright.ids import Ms, Samples

KEYS = "1234567890*#ABCD"
"""Every key that there is."""
ROWS_HZ = (697, 770, 852, 941)
COLUMNS_HZ = (1209, 1336, 1477, 1633)

LOW_DBM0 = -10
"""Level of the low group's tone as it is sent; what spandsp sends."""
TWIST_DB = 2
"""How much louder the high group is sent; common practice, since lines weaken high frequencies."""
TONE_MS: Ms = 100
GAP_MS: Ms = 100
"""Tone and gap of 100 ms are safe everywhere; 50 and 45 ms are the least that one may send."""

_PAD = ("123A", "456B", "789C", "*0#D")

_HOP_MS: Ms = 5
_WINDOW_MS: Ms = 20
_AROUND = 2
"""Windows before and after one that it is compared with: half a window, 10 ms."""
_SURE = 6
"""Windows in a row with one key that make a key: between 24 ms (refused) and 40 ms (accepted)."""
_ENDED = 6
"""Windows in a row without the key that end it: between 10 ms (an interruption) and 40 ms (a gap)."""
_LEAST_DBM0 = -45
"""The softest tone of a key: -36 dBm0 must be accepted, below -55 refused (RFC 2833 §3.5, after Q.24 annex A)."""
_TWIST_DB = (-9.5, 5.5)
"""The high group against the low one: -8 to +4 dB must be accepted, with noise and a tone off its frequency."""
_SHARE = 0.5
"""Part of a window's energy that the two tones are at least."""
_OFF = 0.025
"""Part of its frequency that a tone may be off: 1.5 % must be accepted, 3.5 % refused."""

_LEAST = tone_amplitude(_LEAST_DBM0)
_COEFFICIENT_STEP = 2.0**-16
_WEIGHT_STEP = 2.0**-10
_MAX_RATE_HZ = 48_000
_PIECE_MS = 500  # bounds the memory of `take`; products this small stay on one thread
_NONE = -1


@dataclass(frozen=True, slots=True)
class KeyHeard:
    """A key, and when its tone sounded, on the clock of the samples taken; right to about 5 ms."""

    key: str
    started_ms: Ms
    ended_ms: Ms


def checked_keys(text: str) -> str:
    """The keys in a text, without blanks and with A to D as capitals. It is text: leading zeros count.

    Raises UsageError for another character, and for no key at all.
    """
    keys = "".join(text.split()).upper()
    wrong = next((key for key in keys if key not in KEYS), None)
    if wrong is not None:
        raise UsageError(f'"{text}": "{wrong}" is no key of a telephone; expected only 0 to 9, *, # and A to D')
    if not keys:
        raise UsageError("no keys to press; expected at least one of 0 to 9, *, # and A to D")
    return keys


def tones(keys: str, rate_hz: int, *, tone_ms: Ms = TONE_MS, gap_ms: Ms = GAP_MS) -> PCM:
    """The keys as int16 samples (mono): of each its tone and the gap after it, so one sequence may follow another.

    Raises UsageError for what is no key.
    """
    per_ms = rate_hz // 1000
    time = np.arange(tone_ms * per_ms) / rate_hz
    gap = np.zeros(gap_ms * per_ms, np.int16)
    low, high = tone_amplitude(LOW_DBM0), tone_amplitude(LOW_DBM0 + TWIST_DB)
    parts = []
    for key in checked_keys(keys):
        row = next(row for row, line in enumerate(_PAD) if key in line)
        angle = 2 * np.pi * time
        tone = low * np.sin(angle * ROWS_HZ[row]) + high * np.sin(angle * COLUMNS_HZ[_PAD[row].index(key)])
        parts += [saturated(tone), gap]
    return np.concatenate(parts)


@dataclass(frozen=True, slots=True)
class _Bank:
    """What one rate needs: the sums of a window as a matrix, and what they are compared with."""

    hop: Samples
    window: Samples
    sums: NDArray[np.float64]
    """Shape (window, 16): real parts of the eight frequencies, then imaginary parts."""
    weights: NDArray[np.float64]
    """What the square of each sample weighs in the energy of a window."""
    turn: NDArray[np.complex128]
    """How far 5 ms turn each frequency, backwards."""
    slack: NDArray[np.float64]
    """The tangent of the angle by which 5 ms may turn a tone more or less."""
    least: float
    """Power of the softest tone of a key."""
    share: float
    """Power that the two tones have together, for each unit of a window's energy, at least."""


class KeyDetector:
    """Detects keys in one stream of int16 samples, mono, at a multiple of 1000 Hz up to 48 kHz.

    A key is told once, when its tone has ended: 30 ms without it and 20 ms that the windows look ahead, so 50 to 60 ms
    after the end. How the stream is cut changes nothing. What is softer than any key costs next to nothing.
    """

    def __init__(self, rate_hz: int) -> None:
        self._bank = _bank(rate_hz)
        self._rate_hz = rate_hz
        self._held = np.zeros(self._bank.window // 2 + _AROUND * self._bank.hop, np.int16)
        self._hops = 0
        self._key = _NONE
        self._first = 0
        self._last = 0
        self._in_a_row = 0

    def take(self, samples: PCM) -> tuple[KeyHeard, ...]:
        """The keys whose end these samples show, in order."""
        step = _PIECE_MS * self._rate_hz // 1000
        return tuple(key for at in range(0, len(samples), step) for key in self._take(samples[at : at + step]))

    def _take(self, samples: PCM) -> list[KeyHeard]:
        bank = self._bank
        stream = np.concatenate((self._held, samples), dtype=np.int16, casting="equiv")
        hops = max(0, (len(stream) - bank.window) // bank.hop + 1 - 2 * _AROUND)
        self._held = stream[hops * bank.hop :]
        found: list[KeyHeard] = []
        start, self._hops = self._hops, self._hops + hops
        if not hops or (self._key == _NONE and peak(stream) < _LEAST):
            return found
        keys = _keys(stream, hops, bank)
        if self._key == _NONE and not (keys != _NONE).any():
            return found
        for hop, key in enumerate(keys.tolist(), start):
            if heard := self._next(hop, key):
                found.append(heard)
        return found

    def _next(self, hop: int, key: int) -> KeyHeard | None:
        """One window, with a key or none: six in a row begin a key, six without it end it."""
        if key == self._key != _NONE:
            self._in_a_row += 1
            self._last = hop
            return None
        if self._in_a_row < _SURE:
            self._key, self._first, self._last, self._in_a_row = key, hop, hop, 1
            return None
        if hop - self._last < _ENDED:
            return None
        heard = KeyHeard(_PAD[self._key // 4][self._key % 4], _edge(self._first), _edge(self._last + 1))
        self._key, self._first, self._last, self._in_a_row = key, hop, hop, 1
        return heard


def _edge(hop: int) -> Ms:
    """The instant between the middle of a window and that of the one before."""
    return max(0, hop * _HOP_MS - _HOP_MS // 2)


def _keys(stream: PCM, hops: int, bank: _Bank) -> NDArray[np.intp]:
    """The key of each window but the first two and the last two: 4 * row + column, or `_NONE`."""
    count = hops + 2 * _AROUND
    windows = np.ndarray((count, bank.window), np.int16, stream, 0, (2 * bank.hop, 2)).astype(np.float64)
    parts = windows @ bank.sums
    powers = (parts**2).reshape(count, 2, 2, 4).sum(axis=1)  # of each window: the low group, the high one
    low, high = powers.max(axis=2).T
    total = low + high
    clear = total >= bank.share * (windows**2 @ bank.weights)
    middle = slice(_AROUND, _AROUND + hops)
    if not clear[middle].any():
        return np.full(hops, _NONE)
    least_twist, most_twist = (10 ** (db / 10) for db in _TWIST_DB)
    around = np.lib.stride_tricks.sliding_window_view(total, 2 * _AROUND + 1).max(axis=1)
    balanced = (np.minimum(low, high) >= bank.least) & (high >= least_twist * low) & (high <= most_twist * low)
    held = (clear & balanced)[middle] & (4 * total[middle] >= around)
    sums = parts[:, :8] + 1j * parts[:, 8:]
    turned = sums[middle] * sums[_AROUND - 1 : _AROUND - 1 + hops].conj() * bank.turn
    steady = (np.abs(turned.imag) <= bank.slack * turned.real).reshape(hops, 2, 4)
    row, column = powers[middle].argmax(axis=2).T
    at = np.arange(hops)
    return np.where(held & steady[at, 0, row] & steady[at, 1, column], 4 * row + column, _NONE)


@cache
def _bank(rate_hz: int) -> _Bank:
    if not 0 < rate_hz <= _MAX_RATE_HZ or rate_hz % 1000:
        raise AudioFormatError(f"{rate_hz} Hz: keys are detected at multiples of 1000 Hz up to {_MAX_RATE_HZ} Hz")
    hop, window = _HOP_MS * rate_hz // 1000, _WINDOW_MS * rate_hz // 1000
    shape = np.sin(np.pi * (np.arange(window) + 0.5) / window) ** 2
    hz = np.array(ROWS_HZ + COLUMNS_HZ)
    angle = 2 * np.pi * hz * np.arange(window)[:, None] / rate_hz
    sums = np.concatenate((np.cos(angle), -np.sin(angle)), axis=1) * shape[:, None]
    # A tone of amplitude a has the power (a/2 * sum of shape)^2 and the energy a^2/2 * sum of shape^2.
    gain, weight = shape.sum() / 2, (shape**2).sum()
    return _Bank(
        hop,
        window,
        np.rint(sums / _COEFFICIENT_STEP) * _COEFFICIENT_STEP,
        np.rint(shape**2 / _WEIGHT_STEP) * _WEIGHT_STEP,
        np.exp(-2j * np.pi * hz * _HOP_MS / 1000),
        np.tan(2 * np.pi * _OFF * hz * _HOP_MS / 1000),
        (_LEAST * gain) ** 2,
        _SHARE * 2 * gain**2 / weight,
    )

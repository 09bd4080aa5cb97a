"""What of the caller's first words reached the model: his side of the recording laid over what the server read first.

```
caller said   ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓    frames of 20 ms, on the call's clock
server read           ░░ ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓    ░ read in another format than it was sent: like nothing he said
              lost ─────┘ arrived
```

Both are the same samples but for the codec, so a stretch of speech is found again to the sample, or is not there; one
that stands alone between two losses must be 320 ms long to be found. A server cannot have read more than was said, so
nothing is looked for later than it was spoken. Silence is like any other silence: it counts by the speech beside it, as
far back as there is room for it; where no speech is beside it, it was read if there is room for it at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from callwright.audio.resample import resample
from callwright.measure.played import AUDIBLE
from callwright.sim.record import FIRST_AUDIO_MS
from callwright.sim.speech import PER_MS, RATE_HZ, Pcm

if TYPE_CHECKING:
    from callwright.ids import Ms, Samples
    from callwright.sim.record import CallRecord

FRAME_MS: Ms = 20
_FRAME = FRAME_MS * PER_MS
_MIDDLE = slice(4 * PER_MS, -4 * PER_MS)
"""The part of a frame that a conversion of rates does not mix with its neighbors."""
_QUERY = 16
"""Frames by which a stretch is found: long enough that no other sound of the same voice is like it."""
_ON = 8
"""Frames after which it is tried again where nothing was found."""
_ALIKE = 0.9
_AS_SAID = 0.75
"""Part of the energy of a query, and of a frame, that what was read must bear out."""
_NOISE = 33.0**2
"""Power, in int16 steps, that tells nothing: -60 dBFS."""
_AHEAD = 10 * PER_MS
"""How much later than it was said a stretch may lie in what was read: conversions delay a little."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Arrival:
    """Which of the caller's first frames the server read."""

    arrived: tuple[bool, ...]
    """For each frame of 20 ms from the opening of the line on; what comes after the last is not known, and not lost."""
    is_known: bool
    """The caller was audible and the server tells what it read, so that it could be told."""

    def lost_ms(self, from_ms: float, to_ms: float) -> float:
        """How much of what he sent in this time was lost."""
        frames = range(int(from_ms) // FRAME_MS, min(len(self.arrived), -(-int(to_ms) // FRAME_MS)))
        edges = ((max(from_ms, n * FRAME_MS), min(to_ms, (n + 1) * FRAME_MS)) for n in frames if not self.arrived[n])
        return sum(max(0.0, end - start) for start, end in edges)

    def lost_until(self, ms: Ms) -> tuple[tuple[Ms, Ms], ...]:
        """When he sent what was lost of the frames that began before this instant."""
        frames = [False, *(not arrived for arrived in self.arrived[: -(-ms // FRAME_MS)]), False]
        edges = [n * FRAME_MS for n, (before, after) in enumerate(pairwise(frames)) if before is not after]
        return tuple(zip(edges[::2], edges[1::2], strict=True))


def ready_ms(record: CallRecord) -> Ms:
    """When the session was ready; the end of the call if it never was."""
    return record.ended_ms if record.session_ready_ms is None else record.session_ready_ms


def find_arrival(record: CallRecord) -> Arrival:
    """Look for what was sent of the caller before the session was ready, and of what he was saying then."""
    if record.first_audio is None:
        return Arrival((), is_known=False)
    before = [line.ended_ms for line in record.caller_lines if line.started_ms < ready_ms(record)]
    wanted = -(-max([FRAME_MS, ready_ms(record), *before]) // FRAME_MS)
    sound = record.recording
    samples = sound.sent[: (wanted * FRAME_MS + FIRST_AUDIO_MS) * sound.rate_hz // 1000]
    search = _Search(resample(samples, sound.rate_hz, RATE_HZ), record.first_audio)
    search.run(wanted)
    return Arrival(tuple(bool(each) for each in search.arrived[:wanted]), bool(search.loud.any()))


class _Search:
    """The frames that were said, and those of them that were found in what was read."""

    def __init__(self, said: Pcm, read: Pcm) -> None:
        count = len(said) // _FRAME
        self._said = said[: count * _FRAME].astype(np.float64).reshape(count, _FRAME)
        self._read = read.astype(np.float64)
        self._is_all = len(read) < FIRST_AUDIO_MS * PER_MS
        self._used: Samples = 0
        """Samples read that are accounted for."""
        self.loud = np.abs(self._said).max(axis=1, initial=0) >= AUDIBLE
        self.arrived = np.zeros(count, np.bool_)

    def run(self, wanted: int) -> None:
        """Find so many frames, or as many as there are; silence at their end is placed by what is said next."""
        at = 0
        while at < len(self.loud) and (at < wanted or not self.arrived[wanted - 1]):
            if not self.loud[at]:
                at += 1
                continue
            lag = self._lag(at)
            at = at + _ON if lag is None else self._follow(at, lag)
        self._fill(wanted)

    def _fill(self, wanted: int) -> None:
        """Silence behind the last of his words, which nothing else places: it was read as far as there is room."""
        silent = int(np.flatnonzero(self.loud[:wanted]).max(initial=-1)) + 1
        if self.arrived[silent:].any():
            return
        room = len(self.loud)
        if self._is_all:
            room = (len(self._read) - self._used) // _FRAME - (len(self.loud) - wanted)
        self.arrived[max(silent, wanted - max(room, 0)) : wanted] = True

    def _follow(self, at: int, lag: Samples) -> int:
        """Enter the frames around this one that were read with this lag; returns the first that was not."""
        first, end = at, at + 1
        while first > 0 and not self.arrived[first - 1] and self._is_read(first - 1, lag):
            first -= 1
        while end < len(self.loud) and self._is_read(end, lag):
            end += 1
        self.arrived[first:end] = True
        self._used = end * _FRAME + lag
        return end

    def _is_read(self, frame: int, lag: Samples) -> bool:
        begin = frame * _FRAME + lag
        if begin < self._used:
            return False
        piece = self._read[begin : begin + _FRAME]
        if len(piece) < _FRAME:
            return not self._is_all  # nothing more of what was read is known
        wanted = self._said[frame][_MIDDLE]
        missed = piece[_MIDDLE] - wanted
        return bool(missed @ missed <= (1 - _AS_SAID) * (wanted @ wanted) + len(wanted) * _NOISE)

    def _lag(self, at: int) -> Samples | None:
        """How many samples later than they were said the frames from here on were read; None where they were not."""
        query = self._said[at : at + _QUERY].ravel()
        read = self._read[self._used : at * _FRAME + _AHEAD + len(query)]
        if len(read) < len(query):
            return None
        size = 1 << (len(read) + len(query)).bit_length()
        along = np.fft.irfft(np.fft.rfft(read, size) * np.conj(np.fft.rfft(query, size)), size)
        sums = np.concatenate(([0.0], np.cumsum(read**2)))
        energy = sums[len(query) :] - sums[: -len(query)]
        alike = np.round((2 * along[: len(energy)] - energy) / (query @ query), 3)
        best = int(alike.argmax())
        return self._used + best - at * _FRAME if alike[best] >= _ALIKE else None

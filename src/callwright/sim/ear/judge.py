"""What a fit says of a line: which stretch of it sounds, how it lies on the sound's clock, and how each word fares."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from callwright.sim.ear.bank import FIT_HZ, FIT_PER_MS, Floats
from callwright.sim.ear.fit import BLOCK, Fit, Track, fit

HEARD_DB = -1
"""A word is heard when its part is at least this much against the rest (measured: see ``bench/ear.py``)."""
_HEARD_SHARE = 0.5
_SIGN = 4.0
"""What the heard words of a line add up to, dB over the rest times seconds, before the line counts as present."""
_UNLIKE = 0.2
"""The part of a sound's energy that lies along a line's even where the two have nothing to do with each other."""
_LOST = 0.01
"""A line's ends are cut off when they hold more than this part of its energy, and did not sound."""
_LAG = 1
"""Samples that a track may be off before it is moved."""
_PACED = 3
"""Blocks that it takes to tell a track's pace."""
_DRIFT_MAX = 0.0005
_FRAME = 10 * FIT_PER_MS
_SILENT = 33.0**2
"""Energy, in int16 steps, of a part that is as good as nothing."""


class Score(NamedTuple):
    """How a word fares in a fit: its part against the rest, in whole dB, and the share of its energy that is there."""

    db: int
    share: float


class _Frames(NamedTuple):
    """Energies of one track of a fit in frames of 10 ms.

    `whole` is the sound without the other tracks' parts; `arrived` is what of it lies along the track's part, signed:
    negative where it opposes it.
    """

    part: Floats
    rest: Floats
    whole: Floats
    reference: Floats
    arrived: Floats

    @classmethod
    def of(cls, result: Fit, row: int) -> _Frames:
        part, rest = result.parts[row], result.rest
        whole = part + rest
        energy, along = _framed(part * part), _framed(whole * part)
        arrived = np.sign(along) * along**2 / (energy + 1e-9)
        return cls(energy, _framed(rest**2), _framed(whole**2), _framed(result.references[row] ** 2), arrived)

    def gain(self) -> float:
        """Energy of the sound over that of the line, where the sound is surely the line's."""
        sure = (self.arrived > self.whole / 2) & (self.reference > 0)
        return float(self.arrived[sure].sum() / (self.reference[sure].sum() + 1e-9))


def energy(samples: Floats) -> float:
    """Sum of squares."""
    return float(samples @ samples)


def ratio_db(part: float, rest: float) -> int:
    """Two energies against each other, in whole dB."""
    return round(10 * math.log10((part + 1e-9) / (rest + 1e-9)))


def scores(track: Track, row: int, result: Fit, begin: int = 0) -> list[Score]:
    """How each word of `track`, row `row` of `result`, fares; `begin` is where in the segment the fit begins."""
    heard = _Frames.of(result, row)
    there = np.clip(heard.arrived / (heard.gain() + 1e-9), 0.0, heard.reference)
    found = []
    for first, last in track.line.spans:
        frames = slice(*(max(0, round((track.when(x) - begin) / _FRAME)) for x in (first, last)))
        part, rest, whole = (float(x[frames].sum()) for x in (heard.part, heard.rest, heard.whole))
        share = min(1.0, float(there[frames].sum()) / energy(track.line.samples[first:last]))
        alike = part > _SILENT and float(heard.arrived[frames].sum()) > _UNLIKE * whole
        found.append(Score(ratio_db(part, rest), share) if alike else Score(-99, 0.0))
    return found


def is_heard(score: Score, least_db: int = HEARD_DB) -> bool:
    """Whether a word is heard: clear enough, and at least half of it."""
    return score.db >= least_db and score.share >= _HEARD_SHARE


def is_present(track: Track, words: list[Score], least_db: int = HEARD_DB) -> bool:
    """Whether two words in a row of the line, or its only one, are heard, and all that are add up to a clear sign."""
    heard = [is_heard(word, least_db) for word in words]
    sign = sum(
        10 * math.log10(1 + 10 ** (word.db / 10)) * (last - first) / FIT_HZ
        for word, (first, last), yes in zip(words, track.line.spans, heard, strict=True)
        if yes
    )
    return sign >= _SIGN and (len(heard) == 1 or any(a and b for a, b in pairwise(heard)))


def trimmed(tracks: list[Track], result: Fit, sound: Floats, begin: int = 0) -> tuple[list[Track], Fit]:
    """`tracks` without those ends that did not sound, and the fit of them.

    What is kept of a line is the stretch that speaks most for it: a frame does so by how alike it is, and how loud for
    the line at that place.
    """
    kept = []
    for row, track in enumerate(tracks):
        frames = _Frames.of(result, row)
        alike = frames.arrived / (frames.whole + 1e-9)
        loud = frames.arrived / (frames.gain() * frames.reference + 1e-9)
        speaks = frames.reference * (np.minimum(np.minimum(alike, loud), 1.0) - _UNLIKE)
        sums = np.concatenate([[0.0], np.cumsum(speaks)])
        last = int((sums - np.minimum.accumulate(sums)).argmax())
        first = int(sums[: last + 1].argmin())
        if frames.reference[first:last].sum() < (1 - _LOST) * frames.reference.sum():
            ends = (round((begin + edge * _FRAME - track.at) / (1 + track.drift)) for edge in (first, last))
            first, last = (min(max(end, track.first), track.last) for end in ends)
            track = replace(track, first=first, last=last)
        kept.append(track)
    return (kept, fit(sound, kept, begin)) if kept != tracks else (tracks, result)


def placed(sound: Floats, track: Track, together: list[Track], begin: int) -> tuple[Track, Fit]:
    """`track` moved to where the sound has it, at its pace; and the fit of `together` and, last, of it."""
    for _ in range(3):
        result = fit(sound, [*together, track], begin)
        moved = _moved(track, result, begin)
        if moved is None:
            return track, result
        track = moved
    return track, fit(sound, [*together, track], begin)


def _moved(track: Track, result: Fit, begin: int) -> Track | None:
    """The last track of a fit, moved by the lags of the blocks that it explains; None where it is in place."""
    blocks = np.arange(0, len(result.rest), BLOCK)
    part, rest = (np.add.reduceat(x**2, blocks) for x in (result.parts[-1], result.rest))
    clear = part > 2 * rest
    if not clear.any():
        return None
    time, lag, weight = (blocks + BLOCK // 2 + begin)[clear], result.lags[-1][clear], part[clear] / part[clear].sum()
    middle, shift = float(weight @ time), float(weight @ lag)
    spread = float(weight @ (time - middle) ** 2)
    slope = float(weight @ ((time - middle) * (lag - shift))) / spread if len(time) >= _PACED else 0.0
    slope = min(max(slope, -_DRIFT_MAX), _DRIFT_MAX)
    off = [shift + slope * (track.when(x) - middle) for x in (track.first, track.last)]
    if max(map(abs, off)) <= _LAG:
        return None
    at = round(track.at + shift + slope * (track.at - middle))
    return replace(track, at=at, drift=(1 + track.drift) * (1 + slope) - 1)


def _framed(values: Floats) -> Floats:
    """Sums over frames."""
    sums: Floats = np.add.reduceat(values, np.arange(0, len(values), _FRAME))
    return sums

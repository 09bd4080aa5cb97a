"""The ear: which words of known recorded lines are in a stretch of samples.

It stands for speech recognition in a simulated call, but it never guesses: a word counts only when its own recorded
samples explain the sound, so an unknown line gives no words, and a word that was cut away is not heard.

    onset of sound that nothing explains yet
      -> search: the bank's best match for 320 ms of it (at least 0.6 alike, otherwise look 160 ms later)
      -> fit: the line through a 12-tap filter, together with the other lines that sound at the same time
      -> what is left unexplained is searched again
    word by word: heard when its part is at least -1 dB against the rest, and at least half of it is there

A line counts as present once two of its words in a row are heard (a line of one word stands alone); then a single word
of it is enough, so a line that is spoken in pieces is heard whole. All decisions are made on whole dB and whole
samples, so that the same samples give the same words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from callwright.ids import Ms
from callwright.sim.ear.bank import FIT_PER_MS, QUERY, Bank, Floats, cut, narrow
from callwright.sim.ear.fit import BLOCK, Track, fit
from callwright.sim.ear.judge import energy, is_heard, is_present, placed, ratio_db, scores, trimmed
from callwright.sim.ear.music import Music, Tune, find_music
from callwright.sim.speech import Kind, Pcm, Recording

_ALIKE = 0.6
"""The least likeness, of 1, of a match."""
_GLANCE = 640 * FIT_PER_MS
"""How much of a match is tried before its whole line is."""
_MATCH_DB = -3
"""What a match's line must reach against the rest there."""
_SUPPOSED_DB = -5
"""What two words in a row must reach for their line to be fitted with the others: these may cover it until they are."""
_KIND_DB = 3
"""What a match must reach to tell the kind of a sound, where no whole line can be waited for."""
_BACK_OFF = 160 * FIT_PER_MS
_FRAME = 20 * FIT_PER_MS
_EXPLAINED = 0.3
"""A frame of which at most this part is left over is explained."""
_FLOOR = 33.0**2
"""Mean power, in int16 steps, below which a frame is silence: -60 dBFS."""
_FADED = 10**-3.5
"""A frame that is weaker than this part of the strongest one is not searched."""
_TRACKED = 8_000  # a second tells where a line lies; a longer product would wake a second thread
_RINGS_MS: Ms = 300
"""How long a room may ring: a word that comes again so soon is the same word."""
_ASTRAY = 5 * FIT_PER_MS
"""How far from its place a line that is followed is looked for."""


class HeardWord(NamedTuple):
    """One word that arrived, with its punctuation, and when; `share` is how much of its energy did, 0 to 1."""

    text: str
    line_id: str
    kind: Kind
    start_ms: Ms
    end_ms: Ms
    share: float


class Placement(NamedTuple):
    """Words of a line, up to `last_word` excluded, played such that the first sample of their slice came at `at_ms`."""

    line_id: str
    first_word: int
    last_word: int
    at_ms: Ms


class Ear:
    """Hears the words of the lines that it knows; music and other sounds without words are known by their kind."""

    def __init__(self, bank: Iterable[Recording]) -> None:
        self._bank = Bank(bank)
        self._lines = {line.recording.id: line for line in self._bank.lines}
        self._tunes = [Tune(line.recording) for line in self._bank.lines if line.recording.kind == "music"]

    def listen(self, samples: Pcm, rate_hz: int, *, start_ms: Ms = 0) -> list[HeardWord]:
        """The words in `samples` (int16, mono, 8 or 16 kHz), in order of time; the first sample is at `start_ms`.

        Lines may follow each other, overlap, be cut at both ends and be covered by noise.
        """
        sound = narrow(samples, rate_hz)
        tracks = self._search(sound)
        if not tracks:
            return []
        result = fit(sound, tracks)
        for _ in range(2):
            tracks, result = trimmed(tracks, result, sound)
        judged = [(track, scores(track, row, result)) for row, track in enumerate(tracks)]
        present = {track.line.recording.id for track, words in judged if is_present(track, words)}
        heard: dict[tuple[str, int], list[HeardWord]] = {}
        for track, words in judged:
            if track.line.recording.id in present and track.line.recording.words:
                for word in (number for number, score in enumerate(words) if is_heard(score)):
                    same = heard.setdefault((track.line.recording.id, word), [])
                    again = _heard(track, word, words[word].share, start_ms)
                    if all(abs(again.start_ms - before.start_ms) > _RINGS_MS for before in same):
                        same.append(again)
        return _in_order(word for same in heard.values() for word in same)

    def follow(self, samples: Pcm, rate_hz: int, placements: Sequence[Placement]) -> list[HeardWord]:
        """Every word of `placements` with the share of it that is in `samples` (int16, mono, 8 or 16 kHz).

        For use when it is known what was played where: nothing is searched for, and a word of which nothing came is in
        the list with share 0. A constant filter, and a misplacement of up to 5 ms, do not matter.
        """
        sound = narrow(samples, rate_hz)
        wanted = [(self._track(place, sound), range(place.first_word, place.last_word)) for place in placements]
        words = []
        for group in _overlapping(wanted):
            begin = max(0, min(track.when(track.first) for track, _ in group))
            end = min(len(sound), max(track.when(track.last) for track, _ in group))
            result = fit(sound[begin:end], [track for track, _ in group], begin) if begin < end else None
            for row, (track, which) in enumerate(group):
                shares = [s.share for s in scores(track, row, result, begin)] if result else [0.0] * which.stop
                words += [_heard(track, word, shares[word], 0) for word in which]
        return _in_order(words)

    def kind_of(self, samples: Pcm, rate_hz: int) -> Kind | None:
        """What kind of sound begins in `samples` (int16, mono, 8 or 16 kHz; about 600 ms); None when it is unknown."""
        sound = narrow(samples, rate_hz)
        onset = _onset(sound, sound, 0)
        for begin in () if onset is None else (onset, onset + _BACK_OFF):
            track, db = self._match(sound, begin)
            if track and db >= _KIND_DB:
                return track.line.recording.kind
        return None

    def music(self, samples: Pcm) -> Music | None:
        """The music at the end of `samples` (int16, mono, 16 kHz; 160 ms at least), to be followed; None if none is."""
        return find_music(self._tunes, samples)

    def _search(self, sound: Floats) -> list[Track]:
        """The lines that may be in `sound`, each where it would begin."""
        rest, tracks = sound.copy(), list[Track]()
        at = _onset(sound, rest, 0)
        while at is not None:
            if not self._explain(sound, rest, at, tracks):
                at += _BACK_OFF
            at = _onset(sound, rest, at)
        return tracks

    def _explain(self, sound: Floats, rest: Floats, at: int, tracks: list[Track]) -> bool:
        """Looks for one more line at `at`; where there is one, adds it to `tracks` and takes it out of `rest`."""
        track, db = self._match(rest, at)
        if track is None or db < _MATCH_DB or any(_same(track, other) for other in tracks):
            return False
        begin = max(0, track.when(track.first)) // BLOCK * BLOCK
        end = min(track.when(track.last), len(sound))
        together = [t for t in tracks if t.when(t.first) < end and t.when(t.last) > begin]
        track, result = placed(sound[begin:end], track, together, begin)
        (*_, present), result = trimmed([*together, track], result, sound[begin:end], begin)
        if not is_present(present, scores(present, len(together), result, begin), _SUPPOSED_DB):
            return False
        tracks.append(track)
        rest[begin:end] = result.rest
        return True

    def _match(self, rest: Floats, at: int) -> tuple[Track | None, int]:
        """The line most like the sound at `at`, where it is like any, and its part against the rest there, in dB."""
        begin = max(0, min(at, len(rest) - QUERY))
        match = self._bank.find(cut(rest, begin, begin + QUERY))
        if match is None or match.peak < _ALIKE:
            return None, 0
        track = Track(match.line, begin - match.at, 0, len(match.line.samples))
        near = fit(rest[begin : begin + _GLANCE], [track], begin)
        return track, ratio_db(energy(near.parts[0]), energy(near.rest))

    def _track(self, place: Placement, sound: Floats) -> Track:
        """The samples of a placement, moved by up to 5 ms to where they are most like the sound."""
        line = self._lines[place.line_id]
        first, last = (line.recording.cut_at(word) // 2 for word in (place.first_word, place.last_word))
        track = Track(line, place.at_ms * FIT_PER_MS - first, first, last)
        begin = track.when(first)
        end = min(track.when(last), begin + _TRACKED)
        likeness = np.correlate(cut(sound, begin - _ASTRAY, end + _ASTRAY), track.reference(begin, end))
        best = int(np.abs(likeness).argmax()) if likeness.any() else _ASTRAY
        return replace(track, at=track.at + best - _ASTRAY)


def _onset(sound: Floats, rest: Floats, at: int) -> int | None:
    """The first frame from `at` on that is loud, and of which nothing explains the most part."""
    count = len(sound) // _FRAME
    whole, left = ((x[: count * _FRAME].reshape(count, _FRAME) ** 2).mean(axis=1) for x in (sound, rest))
    least = np.maximum(_EXPLAINED * whole, max(_FLOOR, _FADED * left.max(initial=0.0)))
    unexplained = (left > least) & (np.arange(count) * _FRAME >= at)
    return int(unexplained.argmax()) * _FRAME if unexplained.any() else None


def _same(track: Track, other: Track) -> bool:
    return track.line is other.line and abs(track.at - other.at) < _FRAME


def _overlapping(wanted: list[tuple[Track, range]]) -> Iterator[list[tuple[Track, range]]]:
    """Groups of tracks that sound at the same time; no two groups do."""
    group, until = list[tuple[Track, range]](), 0
    for track, words in sorted(wanted, key=lambda item: item[0].when(item[0].first)):
        if group and track.when(track.first) >= until:
            yield group
            group, until = [], 0
        group.append((track, words))
        until = max(until, track.when(track.last))
    if group:
        yield group


def _heard(track: Track, word: int, share: float, start_ms: Ms) -> HeardWord:
    recording = track.line.recording
    first, last = (start_ms + round(track.when(x) / FIT_PER_MS) for x in track.line.spans[word])
    return HeardWord(recording.words[word].text, recording.id, recording.kind, first, last, round(share, 2))


def _in_order(words: Iterable[HeardWord]) -> list[HeardWord]:
    return sorted(words, key=lambda word: (word.start_ms, word.end_ms, word.line_id))

"""Which reply a client's audio is part of, found by its samples: what it hands over has no name on it.

The server's replies are known as they were streamed. What the client hands to the line is looked at in frames of 20 ms,
as it comes, up to 2 kHz: each goes on where the one before it ended, or it is looked for, first at the beginning of the
reply that comes next, then in all that was streamed. A client may have changed the rate on the way, the level or the
encoding; it may begin late, leave out, pause and repeat.

```
streamed   item 1 ~~~~~~~~~~~~~~~~~~        item 2 ~~~~~~~~~
handed     ___~~~~~~~?~~~____~~~~~~~|cleared    __~~~~~~~~~
              sure   | sure  sure               nobody's, then found at its beginning
                     in doubt, and sure again by what follows
```

Of what sounds the same at several places, it is the first behind what was handed last. Silence belongs to a reply where
that is silent, too, and otherwise to nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from callwright.audio.formats import FRAME_MS, PCM
from callwright.audio.resample import Resampler
from callwright.ids import ItemId, Ms, Samples
from callwright.sim.record import EarSpan

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOBODY = ItemId("")
"""The name of what is part of no reply."""

_HZ = 8_000
_PER_MS = _HZ // 1000
_FRAME = FRAME_MS * _PER_MS
_MEAN = 4
_SHORT = _FRAME // 2
"""A shorter end of a frame waits for more."""
_AUDIBLE = 104
"""The smallest magnitude of an audible sample, in int16 steps: -50 dBFS."""
_PLAIN = 4 * _AUDIBLE
"""That of a sample which no change of level hides."""
_GOES_ON = 0.8
"""Likeness by which a frame goes on where the one before it ended."""
_BEGINS = 0.9
"""Likeness by which it is the beginning of the reply that comes next."""
_SURE = 0.98
"""Likeness of what is the same to the sample: a vowel is like itself a period later, but not so much."""
_NEAR = 12 * _PER_MS
_FOUND = 0.95
"""Likeness by which a query is found anywhere."""
_EQUAL = 0.02
"""Two places that differ by less in likeness sound the same."""
_QUERY = 80 * _PER_MS
_DOUBT = 240 * _PER_MS
"""For so long a reply may sound like something else, and go on."""
_BEGINNING = 120 * _PER_MS
_AGAIN = 200 * _PER_MS
"""What is not found is searched for again after so much more of it, and then each time after twice as much."""
_AGAIN_MAX = 400 * _PER_MS
_SEARCHED = 60_000 * _PER_MS
"""How much of the latest replies is searched."""


class _Spot(NamedTuple):
    """A place in the replies: of them by number, and the sample in it."""

    item: int
    sample: Samples


@dataclass(slots=True)
class _Run:
    """What was handed over in one go from one place; ``spot`` is where in a reply it begins. Samples are of 8 kHz."""

    at: Samples
    """Where it begins in all that was handed over."""
    length: Samples
    spot: _Spot | None
    back: Samples = 0
    """How much of what was handed over just before was found with it."""
    is_doubtful: bool = False
    loud: Samples = 0
    """How much of it is audible."""


class _Called(NamedTuple):
    """A piece as it was named when it was handed over: how much had that name before, and where it is of all."""

    name: ItemId
    before: Samples
    at: Samples
    length: Samples


class StreamedReplies:
    """The replies of one call as they were streamed, and what was handed to the line of each.

    All audio is int16, mono, at ``rate_hz``, a multiple of 8000.
    """

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._ratio = rate_hz // _HZ
        self._names: list[ItemId] = []
        self._audio: list[_Growing] = []
        self._thinner = _Thinner(rate_hz)
        self._track = _Track(self._audio)
        self._rest: PCM = np.zeros(0, np.int16)
        """What does not fill a frame yet."""
        self._runs: list[_Run] = []
        self._called: list[_Called] = []
        self._handed: dict[ItemId, Samples] = {}
        self._all: Samples = 0

    def streamed(self, item_id: ItemId, samples: PCM) -> None:
        """Take in more of a reply."""
        if item_id not in self._names:
            self._names.append(item_id)
            self._audio.append(_Growing(self._rate_hz))
            self._track.search_again()
        self._audio[self._names.index(item_id)].add(samples)

    def handed(self, samples: PCM) -> Iterator[tuple[ItemId, PCM]]:
        """Name what is handed to the line now, as far as it can be told: parts in order, each with its reply.

        What is shorter than half a frame waits, under the name of what came before it; `spans` knows better.
        """
        thin = np.concatenate((self._rest, self._thinner.process(samples)))
        whole = len(thin) - len(thin) % _FRAME * (len(thin) % _FRAME < _SHORT)
        self._rest = thin[whole:]
        begin = 0
        for at in range(0, whole, _FRAME):
            name = self._name
            self._enter(thin[at : min(at + _FRAME, whole)])
            end = min(len(samples), len(samples) - (len(thin) - at) * self._ratio)
            if self._name != name and end > begin:
                yield self._call(name, samples[begin:end])
                begin = end
        if begin < len(samples):
            yield self._call(self._name, samples[begin:])

    def spans(self, ear: Sequence[EarSpan]) -> tuple[EarSpan, ...]:
        """What was at the ear by replies and positions in them; in ``ear`` positions count what had that name."""
        runs = list(self._named_runs())
        found: list[EarSpan] = []
        for span in ear:
            for part in self._parts(span, runs):
                last = found[-1] if found else None
                if last and last.item_id == part.item_id and _follows(last, part):
                    found[-1] = replace(last, to_ms=part.to_ms)
                elif part.from_ms < part.to_ms:
                    found.append(part)
        return tuple(found)

    @property
    def strange_ms(self) -> Ms:
        """How much that is audible was handed over, and is part of no reply."""
        strange = sum(run.loud for run in self._runs if run.spot is None or run.is_doubtful)
        found_later = sum(run.back for run in self._runs if run.spot is not None)
        return max(0, strange - found_later) // _PER_MS

    @property
    def _name(self) -> ItemId:
        """The reply of the latest frame."""
        spot = self._runs[-1].spot if self._runs else None
        return NOBODY if spot is None else self._names[spot.item]

    def _call(self, name: ItemId, samples: PCM) -> tuple[ItemId, PCM]:
        before = self._handed.get(name, 0)
        self._called.append(_Called(name, before, self._all, len(samples)))
        self._handed[name] = before + len(samples)
        self._all += len(samples)
        return name, samples

    def _enter(self, frame: PCM) -> None:
        """Note where a frame is, and what that says of those before it."""
        place = self._track.take(frame)
        if place.is_settled:
            for run in reversed(self._runs):
                if not run.is_doubtful:
                    break
                run.is_doubtful = False
                if not place.is_confirmed:
                    run.spot = None
        is_doubtful = place.spot is not None and not place.is_settled
        last = self._runs[-1] if self._runs else None
        loud = len(frame) * (_peak(frame) >= _AUDIBLE)
        if last and is_doubtful == last.is_doubtful and _goes_on(last, place.spot):
            last.length += len(frame)
            last.loud += loud
        else:
            at = last.at + last.length if last else 0
            self._runs.append(_Run(at, len(frame), place.spot, place.back, is_doubtful, loud))

    def _named_runs(self) -> Iterator[_Run]:
        """The runs that are part of a reply, and of what came before them what was found with them."""
        room: Samples = 0
        for run in self._runs:
            if run.spot is None or run.is_doubtful:
                room += run.length
                continue
            back = min(run.back, run.spot.sample, room)
            spot = _Spot(run.spot.item, run.spot.sample - back)
            whole = len(self._audio[spot.item].samples) - spot.sample
            yield _Run(run.at - back, min(run.length + back, whole), spot)
            room = 0

    def _parts(self, span: EarSpan, runs: Sequence[_Run]) -> Iterator[EarSpan]:
        """The parts of a span of the line's, each with its reply and the position in that."""
        per_ms = self._rate_hz // 1000
        first, end = span.from_ms * per_ms, span.to_ms * per_ms
        for called in self._called:
            begins, ends = max(first, called.before), min(end, called.before + called.length)
            if called.name != span.item_id or begins >= ends:
                continue
            shift = called.at - called.before
            for run, at, to in _within(runs, (begins + shift) // self._ratio, (ends + shift) // self._ratio):
                assert run.spot is not None
                place = run.spot.sample + at - run.at
                heard_ms = span.at_ms + (at * self._ratio - shift - first) // per_ms
                name = self._names[run.spot.item]
                yield EarSpan(name, place // _PER_MS, (place + to - at) // _PER_MS, heard_ms)


def _within(runs: Sequence[_Run], first: Samples, end: Samples) -> Iterator[tuple[_Run, Samples, Samples]]:
    """The runs that lie in a part of all that was handed over, each with where that begins and ends."""
    for run in runs:
        at, to = max(first, run.at), min(end, run.at + run.length)
        if at < to:
            yield run, at, to


def _goes_on(run: _Run, spot: _Spot | None) -> bool:
    """Whether what is at ``spot`` follows a run without a gap."""
    if run.spot is None or spot is None:
        return run.spot is spot
    return (run.spot.item, run.spot.sample + run.length) == spot


def _follows(one: EarSpan, other: EarSpan) -> bool:
    """Whether a span goes on where another ended, in the reply and at the ear, to the millisecond."""
    return abs(other.from_ms - one.to_ms) <= 1 and abs(other.at_ms - one.at_ms - (one.to_ms - one.from_ms)) <= 2


class _Place(NamedTuple):
    """Where a frame is, as far as it can be told."""

    spot: _Spot | None
    is_settled: bool = True
    """It is there for sure, or nowhere for sure."""
    is_confirmed: bool = True
    """What was in doubt before it was right."""
    back: Samples = 0


class _Track:
    """Follows what is handed over, frame by frame."""

    def __init__(self, audio: Sequence[_Growing]) -> None:
        self._audio = audio
        self._next: _Spot | None = None
        """Where the next frame is expected."""
        self._last = _Spot(0, 0)
        """Behind what was found last."""
        self._doubt: Samples = 0
        """How much has sounded like something else since."""
        self._query: PCM = np.zeros(0, np.int16)
        """The latest that was loud and is not sure, for the search."""
        self._before: PCM = np.zeros(0, np.int16)
        """The latest that is not sure, loud or not."""
        self._wait: Samples = 0
        """How much more is to come before the next search."""
        self._again: Samples = _AGAIN
        """How much more will be, if that finds nothing either."""

    def search_again(self) -> None:
        """There is more to be searched."""
        self._wait, self._again = 0, _AGAIN

    def take(self, frame: PCM) -> _Place:
        """Tell where a frame is."""
        place = self._place(frame)
        if place.spot is None or not place.is_settled:
            self._before = np.concatenate((self._before, frame))[-_AGAIN_MAX - _QUERY :]
        else:
            self._before = self._before[:0]
        return place

    def _place(self, frame: PCM) -> _Place:
        if _peak(frame) < _AUDIBLE:
            return self._silent(len(frame))
        if self._next is not None and (spot := self._going_on(frame, self._next)):
            return self._found(spot, len(frame))
        if begins := self._beginning(frame):
            back = self._back(begins)
            return self._found(begins, len(frame))._replace(is_confirmed=False, back=back)
        self._query = np.concatenate((self._query, frame))[-_QUERY:]
        self._wait -= len(frame)
        spot = self._search_now()
        if spot is not None:
            found = _Spot(spot.item, spot.sample + len(self._query) - len(frame))
            back = self._back(found)
            return self._found(found, len(frame))._replace(is_confirmed=False, back=back)
        if self._next is None:
            return _Place(None)
        self._doubt += len(frame)
        if self._doubt > _DOUBT:
            self._next = None
            return _Place(None, is_confirmed=False)
        return self._doubtful(len(frame))

    def _found(self, spot: _Spot, length: Samples) -> _Place:
        self._next = self._last = _Spot(spot.item, spot.sample + length)
        self._query = self._query[:0]
        self._doubt = self._wait = 0
        self._again = _AGAIN
        return _Place(spot)

    def _doubtful(self, length: Samples) -> _Place:
        spot = self._next
        assert spot is not None
        self._next = _Spot(spot.item, spot.sample + length)
        return _Place(spot, is_settled=not self._doubt)

    def _silent(self, length: Samples) -> _Place:
        """A silent frame is part of the reply if that is silent there; it may as well be the client's own pause."""
        self._query = self._query[:0]
        if self._next is not None:
            there = self._audio[self._next.item].between(self._next.sample, length)
            if len(there) and _peak(there) < _PLAIN:
                return self._doubtful(length)
        return _Place(None, is_settled=not self._doubt)

    def _going_on(self, frame: PCM, spot: _Spot) -> _Spot | None:
        """Where a frame is that is expected at a place: there, or a little beside it; None if neither."""
        alike = self._likeness(frame, spot)
        if alike < _SURE:
            first = max(0, spot.sample - _NEAR)
            there = self._audio[spot.item].between(first, len(frame) + 2 * _NEAR)
            near = _likeness(there, frame) if len(there) > len(frame) else np.zeros(1)
            best = int(near.argmax())
            if near[best] > max(_SURE, alike + _EQUAL):
                return _Spot(spot.item, first + best)
        return spot if alike >= _GOES_ON else None

    def _likeness(self, frame: PCM, spot: _Spot) -> float:
        """How much a frame is like what is there: 1 is the same, at whatever level."""
        there = self._audio[spot.item].between(spot.sample, len(frame))
        return float(_likeness(there, frame[: len(there)])[0]) if 2 * len(there) >= len(frame) else 0.0

    def _beginning(self, frame: PCM) -> _Spot | None:
        """Where a frame is in the beginning of one of the replies that come next; None if it is in none."""
        for item in range(self._last.item + (self._last.sample > 0), len(self._audio)):
            first = max(0, self._audio[item].first_loud - _FRAME)
            there = self._audio[item].between(first, _BEGINNING)
            if len(there) >= len(frame):
                alike = _likeness(there, frame)
                best = int(alike.argmax())
                if alike[best] >= _BEGINS:
                    return _Spot(item, first + best)
        return None

    def _back(self, spot: _Spot) -> Samples:
        """How much of what came just before, without a place, lies before this one."""
        longest = min(len(self._before), spot.sample)
        there = self._audio[spot.item].between(spot.sample - longest, longest)
        ours = self._before[len(self._before) - longest :]
        back = 0
        while back < longest:
            piece = slice(max(0, longest - back - _FRAME), longest - back)
            is_quiet = max(_peak(ours[piece]), _peak(there[piece])) < _PLAIN
            if not is_quiet and _likeness(ours[piece], there[piece])[0] < _GOES_ON:
                break
            back = longest - piece.start
        return back

    def _search_now(self) -> _Spot | None:
        """Search, if there is enough to search for, and it is time."""
        if len(self._query) < _QUERY or self._wait > 0:
            return None
        spot = self._search(self._query)
        if spot is None and self._next is None:
            self._wait, self._again = self._again, min(2 * self._again, _AGAIN_MAX)
        return spot

    def _search(self, query: PCM) -> _Spot | None:
        """Where a piece is found; the first place behind what was found last, of those that sound the same."""
        room = _SEARCHED
        found: list[tuple[float, _Spot]] = []
        for item in reversed(range(len(self._audio))):
            there = self._audio[item].samples
            found += _peaks(item, there, query)
            room -= len(there)
            if room <= 0:
                break
        best = max((likeness for likeness, _ in found), default=0.0)
        expected = 0.0
        if self._next is not None:
            expected = self._likeness(query, _Spot(self._next.item, max(0, self._next.sample - self._doubt)))
        if best < max(_FOUND, expected + _EQUAL):
            return None
        equal = [spot for likeness, spot in found if likeness >= best - _EQUAL]
        behind = [spot for spot in equal if spot >= self._last]
        return min(behind) if behind else max(equal)


def _peaks(item: int, there: PCM, query: PCM) -> Iterator[tuple[float, _Spot]]:
    """The best place in a reply, and those that are as good, each the best of its neighbourhood."""
    if len(there) < len(query):
        return
    alike = _likeness(there, query)
    good = np.flatnonzero(alike >= max(_FOUND, float(alike.max()) - _EQUAL))
    for group in np.split(good, np.flatnonzero(np.diff(good) > _FRAME) + 1):
        if len(group):
            place = int(group[alike[group].argmax()])
            yield float(alike[place]), _Spot(item, place)


def _likeness(there: PCM, query: PCM) -> NDArray[np.float64]:
    """How much a piece is like each place in another one: 1 is the same, at whatever level."""
    one, other = there.astype(np.float64), query.astype(np.float64)
    if len(one) == len(other):
        along = np.array([one @ other])
        energy = np.array([one @ one])
    else:
        size = 1 << (len(one) + len(other)).bit_length()
        along = np.fft.irfft(np.fft.rfft(one, size) * np.conj(np.fft.rfft(other, size)), size)
        along = along[: len(one) - len(other) + 1]
        sums = np.concatenate(([0.0], np.cumsum(one**2)))
        energy = sums[len(other) :] - sums[: -len(other)]
    alike: NDArray[np.float64] = along / np.sqrt(np.maximum(energy, 1.0) * max(float(other @ other), 1.0))
    return alike


def _peak(samples: PCM) -> int:
    return int(np.abs(samples.astype(np.int32)).max(initial=0))


class _Thinner:
    """A stream at 8 kHz, without what a shift by half a sample there would turn around: hissing, above all."""

    def __init__(self, rate_hz: int) -> None:
        self._resampler = Resampler(rate_hz, _HZ)
        self._last: PCM = np.zeros(_MEAN - 1, np.int16)

    def process(self, samples: PCM) -> PCM:
        """The next samples of it: each the mean of the latest."""
        stream = np.concatenate((self._last, self._resampler.process(samples)))
        self._last = stream[len(stream) - _MEAN + 1 :]
        sums = np.concatenate(([0], np.cumsum(stream, dtype=np.int64)))
        mean: PCM = ((sums[_MEAN:] - sums[:-_MEAN]) // _MEAN).astype(np.int16)
        return mean


class _Growing:
    """The samples of one reply, thinned, as many as have come."""

    def __init__(self, rate_hz: int) -> None:
        self._thinner = _Thinner(rate_hz)
        self._pieces: list[PCM] = []
        self._whole: PCM = np.zeros(0, np.int16)
        self._silent: Samples = 0
        """So many at the beginning are known to be silent; once one is not, no more is looked at."""

    def add(self, samples: PCM) -> None:
        """Add to the end."""
        self._pieces.append(self._thinner.process(samples))

    @property
    def samples(self) -> PCM:
        """All of them."""
        if self._pieces:
            self._whole = np.concatenate((self._whole, *self._pieces))
            self._pieces.clear()
        return self._whole

    @property
    def first_loud(self) -> Samples:
        """The first that is audible."""
        while self._silent < len(self.samples):
            piece = self.samples[self._silent : self._silent + _BEGINNING]
            loud = np.flatnonzero(np.abs(piece.astype(np.int32)) >= _AUDIBLE)
            if len(loud):
                return self._silent + int(loud[0])
            self._silent += len(piece)
        return 0

    def between(self, first: Samples, length: Samples) -> PCM:
        """So many of them from ``first`` on, or as many as there are."""
        return self.samples[first : first + length]

"""How much of a reply reached the caller's ear, measured from samples.

The line's books say where in the recording a reply should be; its recorded lines, or what came of it from a server that
is not ours, say how it should sound there. For every span of the books the two are brought into step (within 5 ms), and
the last sample that still agrees is the end:

```
line's books   |------- from_ms .. to_ms -------|
reference      ~~~~~~~~ ~~~~ ~~~~~~~~~~~~~ ~~~~~~~~~ ~~~~
recording      ~~~~~~~~ ~~~~ ~~~~~~~~~~~~~______________
evidence       rises while they agree      falls after that: its summit is the end, to the sample
```

Where the reply itself pauses, samples can't tell the end; there, and only there, the books decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from callwright.audio.resample import resample
from callwright.sim.speech import PER_MS, RATE_HZ

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from callwright.ids import Ms, Samples
    from callwright.sim.record import EarSpan, SpokenItem, StereoRecording
    from callwright.sim.speech import Pcm, Recording

AUDIBLE = 104
"""The smallest magnitude of an audible sample, in int16 steps: -50 dBFS."""

_ASTRAY_MS: Ms = 5
_STEP_MS: Ms = 400
"""Length of sound by which recording and reference are brought into step."""
_BEYOND_MS: Ms = 200
"""How far behind the end that the books say a reply is looked for."""


@dataclass(frozen=True, slots=True)
class PlacedClip:
    """Words of a recorded line in a reply, and the first sample (16 kHz) of their slice in it."""

    line: Recording
    first_word: int
    end_word: int
    at: Samples

    @property
    def length(self) -> Samples:
        """Samples at 16 kHz."""
        return self.line.cut_at(self.end_word) - self.line.cut_at(self.first_word)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Part of a reply that was found in the recording: samples of the reply, and where its first one is there."""

    first: Samples
    end: Samples
    at: Samples


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """What arrived of one reply; samples count at the recording's rate."""

    rate_hz: int
    stretches: tuple[Stretch, ...]
    sound: Pcm
    """The reply as it arrived (int16), at its own positions, silent where nothing did; as long as the whole reply."""
    first_audible_ms: Ms | None
    """Instant of its first audible sample at the ear; None when nothing of it was audible."""
    last_audible_ms: Ms | None
    audible: tuple[Samples, Samples]
    """The first audible sample of the whole reply, had all of it arrived, and one past the last: of a reply that its
    server cut and that is no recorded line, where that is estimated to be."""

    @property
    def ms(self) -> float:
        """Length from the beginning of the reply to the last of it that arrived."""
        return max((each.end for each in self.stretches), default=0) * 1000 / self.rate_hz

    @property
    def ended_ms(self) -> float:
        """Instant at which the last of it arrived; 0 when nothing did."""
        return max((each.at + each.end - each.first for each in self.stretches), default=0) * 1000 / self.rate_hz

    def instant_ms(self, at_ms: Ms) -> Ms:
        """The instant at the ear of a position of the reply; of one that did not arrive, that of the next that did."""
        sample = at_ms * self.rate_hz // 1000
        later = [each.at + max(0, sample - each.first) for each in self.stretches if each.end > sample]
        return round(min(later) * 1000 / self.rate_hz) if later else round(self.ended_ms)

    def share(self, start_ms: Ms, end_ms: Ms) -> float:
        """How much of a part of the reply arrived, 0 to 1."""
        first, end = (ms * self.rate_hz / 1000 for ms in (start_ms, end_ms))
        arrived = sum(max(0.0, min(end, each.end) - max(first, each.first)) for each in self.stretches)
        return arrived / max(end - first, 1)


def placed_clips(item: SpokenItem, speech: Mapping[str, Recording]) -> list[PlacedClip]:
    """Where each clip of a reply lies in it, to the sample; the pauses between clips are whole milliseconds."""
    placed: list[PlacedClip] = []
    word, end = 0, 0
    for clip in item.clips:
        line = speech[clip.line_id]
        end_word = len(line.words) if clip.end_word is None else clip.end_word
        shift_ms = item.words[word].start_ms - line.words[clip.first_word].start_ms
        floored = shift_ms * PER_MS + line.cut_at(clip.first_word)
        pause_ms = max(0, -((end - floored) // PER_MS))
        placed.append(PlacedClip(line, clip.first_word, end_word, end + pause_ms * PER_MS))
        end = placed[-1].at + placed[-1].length
        word += end_word - clip.first_word
    return placed


def measure_played(
    item: SpokenItem, clips: Sequence[PlacedClip], spans: Sequence[EarSpan], recording: StereoRecording
) -> Played:
    """Find a reply in the agent's side of the recording, given the line's ``spans`` of the whole call, in order.

    It is looked for by its recorded lines or, where it has none, by the audio that came from its server.
    """
    rate_hz = recording.rate_hz
    came = item.sound
    reference = _reference(clips, rate_hz) if came is None else resample(came.samples, came.rate_hz, rate_hz)
    stretches = []
    for span, next_ms in zip_longest(spans, [span.at_ms for span in spans[1:]]):
        if span.item_id == item.item_id:
            limit = len(recording.agent) if next_ms is None else next_ms * rate_hz // 1000
            stretches.append(_found(span, reference, recording.agent[:limit], rate_hz))
    sound = np.zeros(len(reference), np.int16)
    audible: list[int] = []
    for each in stretches:
        piece = recording.agent[each.at : each.at + each.end - each.first]
        sound[each.first : each.end] = piece
        loud = each.at + np.flatnonzero(_magnitude(piece) >= AUDIBLE)
        audible += [int(loud[0]), int(loud[-1]) + 1] if len(loud) else []
    ends_ms = [round(sample * 1000 / rate_hz) for sample in audible]
    first_ms, last_ms = (ends_ms[0], ends_ms[-1]) if ends_ms else (None, None)
    wanted = np.flatnonzero(_magnitude(reference) >= AUDIBLE)
    whole = (int(wanted[0]), int(wanted[-1]) + 1) if len(wanted) else (0, 0)
    if came is not None and not came.is_whole:
        whole = whole[0], max(whole[1], item.audio_ms * rate_hz // 1000)
    return Played(rate_hz, tuple(stretches), sound, first_ms, last_ms, whole)


def _magnitude(samples: Pcm) -> npt.NDArray[np.int32]:
    return np.abs(samples.astype(np.int32))


def audible_bounds_ms(samples: Pcm, rate_hz: int, start_ms: Ms, end_ms: Ms) -> tuple[Ms, Ms] | None:
    """The first and the last audible instant in a part of a channel (int16, mono); None where all of it is silent."""
    first = start_ms * rate_hz // 1000
    loud = first + np.flatnonzero(_magnitude(samples[first : end_ms * rate_hz // 1000]) >= AUDIBLE)
    if not len(loud):
        return None
    return round(int(loud[0]) * 1000 / rate_hz), round((int(loud[-1]) + 1) * 1000 / rate_hz)


def _reference(clips: Sequence[PlacedClip], rate_hz: int) -> Pcm:
    """The whole reply (int16, mono) at the recording's rate."""
    whole = np.zeros(max((clip.at + clip.length for clip in clips), default=0) * rate_hz // RATE_HZ, np.int16)
    for clip in clips:
        first, end = clip.line.cut_at(clip.first_word), clip.line.cut_at(clip.end_word)
        at = round(clip.at * rate_hz / RATE_HZ)
        piece = _resampled(clip.line, rate_hz)[round(first * rate_hz / RATE_HZ) : round(end * rate_hz / RATE_HZ)]
        piece = piece[: len(whole) - at]
        whole[at : at + len(piece)] = piece
    return whole


@lru_cache(maxsize=256)
def _resampled(line: Recording, rate_hz: int) -> Pcm:
    return resample(line.pcm, RATE_HZ, rate_hz)


def _found(span: EarSpan, reference: Pcm, channel: Pcm, rate_hz: int) -> Stretch:
    """The part of ``span`` that the channel bears out."""
    per_ms = rate_hz // 1000
    first, booked, at = span.from_ms * per_ms, (span.to_ms - span.from_ms) * per_ms, span.at_ms * per_ms
    wanted = reference[first : first + booked + _BEYOND_MS * per_ms].astype(np.float64)
    at = max(0, at + _lag(wanted[: booked + per_ms], channel, at, per_ms))
    heard = channel[at : at + len(wanted)].astype(np.float64)
    wanted = wanted[: len(heard)]
    evidence = np.concatenate(([0.0], np.cumsum(wanted * (2 * heard - wanted))))
    doubt = per_ms * float(AUDIBLE) ** 2
    ends = np.flatnonzero(evidence >= evidence.max() - doubt)
    return Stretch(first, first + min(max(booked, int(ends[0])), int(ends[-1])), at)


def _lag(wanted: npt.NDArray[np.float64], channel: Pcm, at: Samples, per_ms: int) -> Samples:
    """How many samples later than supposed the channel is most like ``wanted``; 0 where that is silent."""
    loud = np.flatnonzero(np.abs(wanted) >= AUDIBLE)
    if not len(loud):
        return 0
    begin, astray = int(loud[0]), _ASTRAY_MS * per_ms
    part = wanted[begin : begin + _STEP_MS * per_ms]
    first = at + begin - astray
    near = channel[max(0, first) : first + len(part) + 2 * astray].astype(np.float64)
    near = np.pad(near, (max(0, -first), 0))
    near = np.pad(near, (0, len(part) + 2 * astray - len(near)))
    return int(np.correlate(near, part).argmax()) - astray

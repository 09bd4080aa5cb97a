"""The far end of a call that the agent makes, found in its book and in the recording.

```
far end   ringing  menu........  .  announcement  music  announcement  music  person     music    person
agent                            2                                            ~~ ~~~     .
          |__________________________________________________________________|         |_____|
                                   nobody is there                                        nor here
```

What the far end did, and when, is in its own book; when either side sounded, is measured in the recording. A key is
told by its tone at the far end, and is no speech.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np

from callwright.measure.played import AUDIBLE, audible_bounds_ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from callwright.ids import Ms
    from callwright.sim.record import CallRecord, FarBook, FarKind, FarSpan, StereoRecording

NOBODY: Final[Sequence[FarKind]] = ("ringing", "menu", "announcement", "music", "busy")
"""What a far end does while nobody is there to be spoken to."""
LATE_MS: Ms = 1_000
"""So long after a person is gone the agent may still be heard: it learns of a voice after 0.8 s, and lines lag."""
PAUSE_MS: Ms = 700
"""Speech behind a longer pause is another instance of it."""
_EDGE_MS: Ms = 25
"""How far a key's tone may go beyond what the detector tells of it."""
_FRAME_MS: Ms = 10


@dataclass(frozen=True, slots=True)
class Period:
    """A part of the call, on its clock."""

    start_ms: Ms
    end_ms: Ms

    def meets(self, start_ms: Ms, end_ms: Ms) -> bool:
        """Whether the two have any time in common."""
        return self.start_ms < end_ms and start_ms < self.end_ms


@dataclass(frozen=True, slots=True)
class Phase:
    """What a call was in for a while."""

    name: str
    """``ringing``, ``menu``, ``queue``, ``person``, ``on hold again``, ``voicemail`` or ``busy``."""
    start_ms: Ms
    end_ms: Ms


@dataclass(frozen=True, slots=True)
class FarSide:
    """What there was to be heard, and when the agent was."""

    book: FarBook
    person: tuple[Period, ...]
    """What a person said, line by line, from its first to its last audible sample."""
    agent: tuple[Period, ...]
    """When the agent spoke: audible sound without a pause of more than `PAUSE_MS`, but for its keys."""

    @property
    def keys(self) -> str:
        """The keys that were heard, in order."""
        return "".join(heard.key for heard in self.book.keys)

    @property
    def alone(self) -> tuple[Period, ...]:
        """When nobody was there: from the first to the last of what `NOBODY` is there for."""
        stretches = (list(spans) for is_alone, spans in groupby(self.book.spans, _is_alone) if is_alone)
        return tuple(Period(spans[0].started_ms, spans[-1].ended_ms) for spans in stretches)

    @property
    def spoken_on_hold(self) -> tuple[Period, ...]:
        """What the agent said then."""
        return tuple(
            each for each in self.agent if any(each.meets(time.start_ms + LATE_MS, time.end_ms) for time in self.alone)
        )

    @property
    def on_hold_ms(self) -> Ms | None:
        """From the last key before a person's first word to that word, or to the end of the waiting where none comes.

        None without such a key.
        """
        alone = self.alone
        ends_ms = self.person[0].start_ms if self.person else alone[-1].end_ms if alone else 0
        keys = [key.started_ms for key in self.book.keys if key.started_ms < ends_ms]
        return ends_ms - keys[-1] if keys else None

    @property
    def answered_after_ms(self) -> Ms | None:
        """From the end of a person's greeting to the agent's first word after its beginning; None without either."""
        starts = [each.start_ms for each in self.agent if self.person and each.start_ms > self.person[0].start_ms]
        return starts[0] - self.person[0].end_ms if starts else None

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases of the call, in order. An announcement belongs to the queue, or to the voicemail behind it."""
        spans = self.book.spans
        named = ((_phase(spans, number), span) for number, span in enumerate(spans))
        phases = ((name, [span for _, span in group]) for name, group in groupby(named, lambda each: each[0]))
        return tuple(Phase(name, group[0].started_ms, group[-1].ended_ms) for name, group in phases)

    def spans(self, kind: FarKind) -> list[FarSpan]:
        """What the far end did of this kind."""
        return [span for span in self.book.spans if span.kind == kind]


def find_far_side(record: CallRecord) -> FarSide | None:
    """The far end's side of a call; None where the agent was called."""
    book, sound = record.far, record.recording
    if book is None:
        return None
    said = [(span.started_ms, span.ended_ms) for span in book.spans if span.kind == "person"]
    return FarSide(book, tuple(_audible(sound, said)), tuple(_speech(record, book)))


def _is_alone(span: FarSpan) -> bool:
    return span.kind in NOBODY


def _phase(spans: Sequence[FarSpan], number: int) -> str:
    kind = spans[number].kind
    if kind in ("ringing", "menu", "person", "busy"):
        return kind
    behind = next((span.kind for span in spans[number:] if span.kind != "announcement"), None)
    if kind in ("beep", "recording") or (kind == "announcement" and behind == "beep"):
        return "voicemail"
    return "on hold again" if any(span.kind == "person" for span in spans[:number]) else "queue"


def _audible(sound: StereoRecording, spans: Sequence[tuple[Ms, Ms]]) -> Iterator[Period]:
    for span in spans:
        if bounds := audible_bounds_ms(sound.caller, sound.rate_hz, *span):
            yield Period(*bounds)


def _speech(record: CallRecord, book: FarBook) -> Iterator[Period]:
    """When the agent's side was audible, without the tones of its keys, and no later than the call."""
    sound = record.recording
    size = sound.rate_hz * _FRAME_MS // 1000
    heard = sound.agent[: record.ended_ms * sound.rate_hz // 1000]
    frames = heard[: len(heard) // size * size].reshape(-1, size)
    loud = (frames.max(axis=1) >= AUDIBLE) | (frames.min(axis=1) <= -AUDIBLE)
    for key in book.keys:
        loud[max(0, key.started_ms - _EDGE_MS) // _FRAME_MS : -(-(key.ended_ms + _EDGE_MS) // _FRAME_MS)] = False
    at = np.flatnonzero(loud)
    for run in np.split(at, np.flatnonzero(np.diff(at) * _FRAME_MS > PAUSE_MS) + 1) if len(at) else ():
        bounds = audible_bounds_ms(sound.agent, sound.rate_hz, int(run[0]) * _FRAME_MS, (int(run[-1]) + 1) * _FRAME_MS)
        assert bounds is not None, "a loud frame has an audible sample"
        yield Period(*bounds)

"""The far end of a call that we make, frame by frame: what is sent, what is heard there, and the book of both.

It sends a frame every 20 ms for the whole call, silence included. Frames of what is recorded are parts of one array
each, so an hour of music costs no memory. Keys are known by their tones alone, as a real detector does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from callwright.audio.dtmf import KeyDetector, KeyHeard
from callwright.audio.formats import FRAME_MS, PCM
from callwright.audio.levels import level_dbfs
from callwright.audio.mix import saturated
from callwright.ids import Ms
from callwright.sim.caller import AUDIBLE_DBFS, silent_frame
from callwright.sim.exchange.sounds import as_telephoned, framed
from callwright.sim.exchange.tree import HoldMusic, Part, Sound, Wait
from callwright.sim.exchange.walker import Stage, Walker
from callwright.sim.phone import hiss
from callwright.sim.record import CallerLine, FarBook, FarKind, FarSpan

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from callwright.ids import ItemId
    from callwright.sim.exchange.callee import Callee
    from callwright.sim.speech import Recording

ENDED_MS: Ms = 100
"""Silence after which a detector has told every key before it."""


class FarEnd:
    """Answers one call; implements `callwright.sim.line.Caller`.

    ``lines`` has what the callee's tree sounds like, ``rate_hz`` is the line's rate, and ``chance`` says where in the
    music each stretch of it begins, and how the line hisses.
    """

    def __init__(self, callee: Callee, lines: Mapping[str, Recording], rate_hz: int, chance: Random) -> None:
        self.hung_up = False
        self._lines = lines
        self._rate_hz = rate_hz
        self._chance = chance
        self._silence = silent_frame(rate_hz)
        self._hiss = None if callee.hiss_dbfs is None else hiss(callee.hiss_dbfs, rate_hz, chance)
        self._walker = Walker(callee.tree, callee.answers, callee.rings, callee.hold_s * 1000, self._length_ms)
        self._keys = _Keys(rate_hz)
        self._spans: list[FarSpan] = []
        self._stretch = self._stretch_at(0)

    @property
    def lines(self) -> tuple[CallerLine, ...]:
        """What was said so far, in order: announcements and persons alike."""
        return tuple(
            CallerLine(span.line_id, span.started_ms, span.ended_ms, span.node, False, span.overlapped_ms)
            for span in self.book.spans
            if span.line_id and span.kind in ("menu", "announcement", "person")
        )

    @property
    def unspoken(self) -> tuple[str, ...]:
        """Nothing: a call that never came to a person is a call."""
        return ()

    @property
    def book(self) -> FarBook:
        """What was sent and heard so far."""
        return FarBook((*self._spans, *self._stretch.spans()), tuple(self._keys.heard))

    def step(self, now_ms: Ms, ear: PCM, item_id: ItemId | None) -> PCM:
        """What is sent (int16, mono, 20 ms) in the frame that begins at ``now_ms``, in which ``ear`` arrives."""
        is_silent = ear is self._silence
        keys = self._keys.take(now_ms, ear, is_silent=is_silent)
        is_audible = not is_silent and level_dbfs(ear) >= AUDIBLE_DBFS
        if not self.hung_up:
            self._walker.step(now_ms, is_audible=is_audible, keys=[heard.key for heard in keys])
        self.hung_up = self._walker.stage is Stage.OVER
        if self.hung_up:
            return self._silence
        if self._walker.began_ms != self._stretch.began_ms or self._walker.part is not self._stretch.part:
            self._spans += self._stretch.spans()
            self._stretch = self._stretch_at(now_ms)
        frame = self._stretch.frame(is_audible=is_audible)
        return frame if self._hiss is None else self._hissing(frame, self._hiss, now_ms)

    def _hissing(self, frame: PCM, hiss: PCM, now_ms: Ms) -> PCM:
        at = now_ms * self._rate_hz // 1000 % len(hiss)
        return saturated(np.add(frame, hiss[at : at + len(frame)], dtype=np.float64))

    def _audio(self, line_id: str, *, is_loop: bool) -> PCM:
        """What is sent of a line."""
        line = self._lines[line_id] if self._hiss is None else as_telephoned(self._lines[line_id])
        return framed(line, self._rate_hz, is_loop=is_loop)

    def _length_ms(self, line_id: str) -> Ms:
        return len(self._audio(line_id, is_loop=False)) // len(self._silence) * FRAME_MS

    def _stretch_at(self, now_ms: Ms) -> _Stretch:
        """What begins now."""
        part, place = self._walker.part, self._walker.place
        at, audio = 0, self._silence
        if isinstance(part, (Sound, HoldMusic)):
            is_loop = isinstance(part, HoldMusic) or part.lasts_ms is not None
            audio = self._audio(part.line_id, is_loop=is_loop)
        if _kind(part) == "music":
            at = self._chance.randrange(len(audio) // len(self._silence)) * len(self._silence)
        return _Stretch(part, place, now_ms, audio, at, len(self._silence))


class _Keys:
    """A detector that is off while nothing sounds: after `ENDED_MS` of silence it holds nothing that could matter."""

    def __init__(self, rate_hz: int) -> None:
        self.heard: list[KeyHeard] = []
        self._rate_hz = rate_hz
        self._detector: KeyDetector | None = None
        self._began_ms: Ms = 0
        self._silent_ms: Ms = ENDED_MS

    def take(self, now_ms: Ms, ear: PCM, *, is_silent: bool) -> list[KeyHeard]:
        """The keys whose end this frame shows."""
        self._silent_ms = self._silent_ms + FRAME_MS if is_silent else 0
        if self._silent_ms > ENDED_MS:
            self._detector = None
            return []
        if self._detector is None:
            self._detector, self._began_ms = KeyDetector(self._rate_hz), now_ms
        began_ms, heard = self._began_ms, self._detector.take(ear)
        keys = [KeyHeard(each.key, began_ms + each.started_ms, began_ms + each.ended_ms) for each in heard]
        self.heard += keys
        return keys


@dataclass(slots=True)
class _Stretch:
    """One part of a node while it lasts."""

    part: Part
    place: str
    began_ms: Ms
    audio: PCM
    """What sounds, over and over."""
    at: int
    """Samples of it."""
    size: int
    """Samples of a frame."""
    frames: int = 0
    """Frames sent."""
    overlapped_ms: Ms = 0

    def frame(self, *, is_audible: bool) -> PCM:
        """The next frame, while the agent is audible or not."""
        self.frames += 1
        self.overlapped_ms += FRAME_MS * is_audible
        frame = self.audio[self.at : self.at + self.size]
        self.at = (self.at + self.size) % len(self.audio)
        return frame

    def spans(self) -> tuple[FarSpan, ...]:
        """Its entry in the book so far; none for a pause."""
        kind = _kind(self.part)
        if kind is None or not self.frames:
            return ()
        line_id = None if isinstance(self.part, Wait) else self.part.line_id
        ended_ms = self.began_ms + self.frames * FRAME_MS
        return (FarSpan(kind, line_id, self.began_ms, ended_ms, self.place, self.overlapped_ms),)


def _kind(part: Part) -> FarKind | None:
    return "music" if isinstance(part, HoldMusic) else part.kind

"""A line that works out when each piece plays, instead of playing it. Owns its books; hears nothing.

```
handed over   |piece 1|piece 2|            |piece 3|                    each begins at the end of the one before it,
plays         |   piece 1   |   piece 2   | dry    |   piece 3   |      or with the first frame after it is ripe
marks         .             ^             ^                      ^      one timer each
reports       .         (every 200 ms, and as the last of the queue is taken)
frames up     every 200 ms while the caller is silent, every 40 ms while he speaks and a little longer
```

It behaves as `SimulatedLine` does, frame by frame: audio is taken in frames of 20 ms, so a clear leaves the rest of the
frame that was taken. Positions are counted in samples of its one format.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callwright.audio.formats import FRAME_MS, AudioFormat
from callwright.core.ports import PlayedReports
from callwright.errors import AudioFormatError, LineFailed, UsageError
from callwright.sim.line import LineKind, LineSettings
from callwright.sim.quick.told import FORMAT, SILENCE
from callwright.sim.record import EarSpan

if TYPE_CHECKING:
    from callwright.core.ports import LineSink
    from callwright.ids import ItemId, MarkId, Ms, Samples
    from callwright.sim.quick.script import Script
    from callwright.sim.quick.told import ToldSpeech

REPORT_MS: Ms = 200
"""How often a pulled line reports, and a silent caller's frames arrive."""
SPEECH_MS: Ms = 40
"""How often a speaking caller's frames arrive."""
WAKEFUL_MS: Ms = 700
"""How long after a line the caller's frames still come as while he speaks: a turn's end is decided meanwhile."""
_PER_MS = FORMAT.rate_hz // 1000
_FRAME: Samples = FRAME_MS * _PER_MS
_REPORTS = {LineKind.PHONE: PlayedReports.MARKS, LineKind.SPEAKER: PlayedReports.PULLED}


@dataclass(slots=True)
class _Span:
    """Audio of one item that plays without a break: from which sample of the item, and from which of the line on."""

    item_id: ItemId
    generation: int
    position: Samples
    at: Samples
    length: Samples

    @property
    def end(self) -> Samples:
        """The sample of the line after its last."""
        return self.at + self.length

    def is_before(self, other: _Span) -> bool:
        """Whether the other goes on where this one ends."""
        places = (self.item_id, self.generation, self.position + self.length, self.end)
        return places == (other.item_id, other.generation, other.position, other.at)


class QuickLine:
    """A `Line` on the running loop, at whose far end a ``script`` is spoken.

    Ends when the script hangs up, when ``hang_up`` is called, or where the settings break it. Raises UsageError for
    another format than that of calls without samples.
    """

    def __init__(self, settings: LineSettings, speech: ToldSpeech, script: Script) -> None:
        if settings.format not in (None, FORMAT):
            raise UsageError(f"a call without samples has {FORMAT} both ways, not {settings.format}")
        self._settings = settings
        self._plan = _Plan(settings)
        self._caller = _Caller(self, speech, script)
        self._loop: asyncio.AbstractEventLoop
        self._opened_s = 0.0
        self._sink: LineSink | None = None
        self._timers: list[asyncio.TimerHandle] = []
        """Those that end with the line."""
        self._report: asyncio.TimerHandle | None = None
        self._marks: dict[MarkId, tuple[Samples, asyncio.TimerHandle]] = {}
        """Marks that are out, with their places."""
        self._mark_count = 0
        self.ended_ms: Ms | None = None
        """When it ended."""

    @property
    def input_format(self) -> AudioFormat:
        """Format of the caller's frames."""
        return FORMAT

    @property
    def output_format(self) -> AudioFormat:
        """Format in which the line is handed audio."""
        return FORMAT

    @property
    def reports(self) -> PlayedReports:
        """Pulled from a speaker, marks from a phone."""
        return _REPORTS[self._settings.kind]

    @property
    def reaches_person(self) -> bool:
        """No: its caller is a script."""
        return False

    @property
    def latency_ms(self) -> Ms:
        """The fixed lag; the hidden one is not told."""
        return self._settings.fixed_lag_ms

    @property
    def now_ms(self) -> Ms:
        """The call's clock: whole milliseconds since the line opened."""
        return round((self._loop.time() - self._opened_s) * 1000)

    @property
    def ear(self) -> tuple[EarSpan, ...]:
        """What was at the caller's ear when, and, while the call runs, what will be."""
        return tuple(self._plan.ear())

    async def open(self, sink: LineSink) -> None:
        """Begin to carry audio both ways. Raises LineFailed when it was opened before."""
        if self._sink is not None or self.ended_ms is not None:
            raise LineFailed("a line is opened once")
        self._loop = asyncio.get_running_loop()
        self._opened_s = self._loop.time()
        self._sink = sink
        if self._settings.close_at_ms is not None:
            self._timers.append(self.at(self._settings.close_at_ms, self._break))
        self._caller.begin()

    def at(self, due_ms: float, action: object, *given: object) -> asyncio.TimerHandle:
        """Do something at an instant of the line's clock."""
        return self._loop.call_at(self._opened_s + due_ms / 1000, action, *given)  # type: ignore[arg-type]

    def play(self, item_id: ItemId, generation: int, audio: bytes) -> None:
        """Queue audio. Raises AudioFormatError for a part of a sample."""
        if len(audio) % FORMAT.sample_bytes:
            raise AudioFormatError(f"{item_id}: expected whole samples of {FORMAT.sample_bytes} bytes")
        if self._sink is None or not audio:
            return
        self._plan.put(item_id, generation, FORMAT.samples_of(len(audio)), self.now_ms)
        if self.reports is PlayedReports.PULLED and self._report is None:
            self._await_report()
        self._caller.plan()

    def mark(self, mark_id: MarkId) -> None:
        """Queue a mark; it comes back at once where nothing is queued. Raises LineFailed on a speaker."""
        if self.reports is not PlayedReports.MARKS:
            raise LineFailed("a speaker has no marks: it reports what it takes")
        self._mark_count += 1
        if self._sink is None or self._mark_count in self._settings.lose_marks:
            return
        place = self._plan.tail
        due_ms = place / _PER_MS if place > self._plan.taken_by(self.now_ms) else self.now_ms
        self._marks[mark_id] = place, self.at(due_ms, self._return_mark, mark_id)

    def clear(self) -> None:
        """Drop what was not taken; marks in between come back, unless the settings drop them."""
        if self._sink is None:
            return
        taken = self._plan.clear(self.now_ms)
        for mark_id, (place, timer) in list(self._marks.items()):
            if place > taken:
                timer.cancel()
                del self._marks[mark_id]
                if self._settings.clear_returns_marks:
                    self._marks[mark_id] = taken, self.at(self.now_ms, self._return_mark, mark_id)
        self._caller.plan()

    async def hang_up(self) -> None:
        """End the line from the agent's side; idempotent."""
        self.close("agent", "hung up")

    def frames(self, frames: list[bytes]) -> None:
        """Hand in frames of the caller."""
        for frame in frames:
            if self._sink is not None:
                self._sink.on_frame(frame)

    def close(self, by: str, reason: str) -> None:
        """End the line; idempotent."""
        sink, self._sink = self._sink, None
        if sink is None:
            return
        self.ended_ms = self.now_ms
        self._plan.end(self.ended_ms)
        self._caller.end()
        for timer in (*self._timers, *(timer for _, timer in self._marks.values())):
            timer.cancel()
        if self._report is not None:
            self._report.cancel()
        sink.on_closed(by, reason)

    def _break(self) -> None:
        self.close("fault", self._settings.close_reason)

    def _return_mark(self, mark_id: MarkId) -> None:
        del self._marks[mark_id]
        if self._sink is not None:
            self._sink.on_mark(mark_id)

    def _await_report(self) -> None:
        """Report again after a while, or as the last that is queued is taken."""
        self._report = self.at(min(self.now_ms + REPORT_MS, self._plan.last_taken_ms), self._tell_played)

    def _tell_played(self) -> None:
        self._report = None
        for (item_id, generation), played in self._plan.played_by(self.now_ms).items():
            if self._sink is not None:
                self._sink.on_played(item_id, generation, played // _PER_MS)
        is_armed = self._report is not None  # what was reported may have led to more audio
        if self.ended_ms is None and not is_armed and self._plan.is_waiting(self.now_ms):
            self._await_report()


class _Plan:
    """What was handed to the line, and when it plays."""

    def __init__(self, settings: LineSettings) -> None:
        self._hidden_lag_ms = settings.hidden_lag_ms
        self._fixed_lag_ms = settings.fixed_lag_ms
        self._spans: list[_Span] = []
        self._told: deque[_Span] = deque()
        """Those that were not reported to their ends."""
        self._handed: dict[ItemId, Samples] = {}
        self._played: dict[tuple[ItemId, int], Samples] = {}
        """Of spans that were reported to their ends."""
        self.tail: Samples = 0
        """Where the last of it ends, on the line's clock."""

    @staticmethod
    def taken_by(now_ms: Ms) -> Samples:
        """The end of the frame that is on its way."""
        return (now_ms // FRAME_MS + 1) * _FRAME

    @property
    def last_taken_ms(self) -> Ms:
        """When the last frame is taken."""
        return (self.tail - 1) // _FRAME * FRAME_MS

    def is_waiting(self, now_ms: Ms) -> bool:
        """Whether something is still to be taken."""
        return self.tail > self.taken_by(now_ms)

    def put(self, item_id: ItemId, generation: int, samples: Samples, now_ms: Ms) -> None:
        """Queue samples of an item."""
        ripe = -(-(now_ms + self._hidden_lag_ms) // FRAME_MS) * _FRAME
        at = self.tail if ripe <= self.tail // _FRAME * _FRAME else ripe
        span = _Span(item_id, generation, self._handed.get(item_id, 0), at, samples)
        self._handed[item_id] = span.position + samples
        self.tail = span.end
        last = self._spans[-1] if self._spans else None
        if last is None or not last.is_before(span):
            self._spans.append(span)
            self._told.append(span)
            return
        if not self._told:  # it was reported to its end, and now has another
            self._played[item_id, generation] -= last.length
            self._told.append(last)
        last.length += samples

    def clear(self, now_ms: Ms) -> Samples:
        """Drop what was not taken; returns the place up to which it was."""
        taken = self.taken_by(now_ms)
        self._cut(taken)
        return taken

    def end(self, now_ms: Ms) -> None:
        """Nothing reaches the ear after the frame that is there now."""
        self._cut(self.taken_by(now_ms - self._fixed_lag_ms))

    def _cut(self, place: Samples) -> None:
        while self._spans and self._spans[-1].at >= place:
            del self._spans[-1]
        if self._spans and self._spans[-1].end > place:
            self._spans[-1].length = place - self._spans[-1].at
        self._told = deque(span for span in self._told if span.at < place)
        self.tail = min(self.tail, place)

    def played_by(self, now_ms: Ms) -> dict[tuple[ItemId, int], Samples]:
        """How much was taken of each item that has something new to report."""
        taken = self.taken_by(now_ms)
        news: dict[tuple[ItemId, int], Samples] = {}
        while self._told and self._told[0].at < taken:
            span = self._told[0]
            key = (span.item_id, span.generation)
            news[key] = self._played.get(key, 0) + min(span.length, taken - span.at)
            if span.end > taken:
                break
            self._played[key] = news[key]
            self._told.popleft()
        return news

    def ear(self) -> list[EarSpan]:
        """The spans as they reach the ear, in order."""
        return [
            EarSpan(
                span.item_id,
                span.position // _PER_MS,
                (span.position + span.length) // _PER_MS,
                span.at // _PER_MS + self._fixed_lag_ms,
            )
            for span in self._spans
        ]


class _Caller:
    """The far end: speaks the script, and sends a frame for every 20 ms of the call."""

    def __init__(self, line: QuickLine, speech: ToldSpeech, script: Script) -> None:
        self._line = line
        self._speech = speech
        self._script = script
        self._sent = 0
        """Frames handed in."""
        self._speaking: list[bytes] = []
        self._began = 0
        """The frame with which the present line began."""
        self._wake_until_ms: Ms = 0
        self._next: asyncio.TimerHandle | None = None
        self._next_ms: Ms | None = None
        self._frames: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """The line is open."""
        self.plan()
        self._await_frames()

    def end(self) -> None:
        """The line is over."""
        for timer in (self._next, self._frames):
            if timer is not None:
                timer.cancel()

    def plan(self) -> None:
        """Work out when the next step is due."""
        due_ms = self._script.due_ms(self._line.ear)
        if due_ms == self._next_ms:
            return
        if self._next is not None:
            self._next.cancel()
        self._next_ms, self._next = due_ms, None
        if due_ms is not None:
            self._next = self._line.at(max(due_ms, self._line.now_ms), self._step)

    def _step(self) -> None:
        now_ms = -(-self._line.now_ms // FRAME_MS) * FRAME_MS
        self._next = self._next_ms = None
        line_id = self._script.next_line()
        self._send()
        if line_id is None:
            self._script.begin(now_ms, None)
            self._line.close("caller", "hung up")
            return
        self._script.begin(now_ms, self._speech[line_id])
        self._speaking, self._began = self._speech.frames(line_id), now_ms // FRAME_MS
        self._wake_until_ms = now_ms + len(self._speaking) * FRAME_MS + WAKEFUL_MS
        self._await_frames()
        self.plan()

    def _await_frames(self) -> None:
        if self._frames is not None:
            self._frames.cancel()
        sent_ms = self._sent * FRAME_MS
        wait_ms = SPEECH_MS if sent_ms < self._wake_until_ms else REPORT_MS
        self._frames = self._line.at(sent_ms + wait_ms, self._pass_on)

    def _pass_on(self) -> None:
        self._send()
        if self._line.ended_ms is None:
            self._await_frames()

    def _send(self) -> None:
        """Hand in the frames that are over by now."""
        until = self._line.now_ms // FRAME_MS
        frames: list[bytes] = []
        for number in range(self._sent, until):
            at = number - self._began
            frames.append(self._speaking[at] if 0 <= at < len(self._speaking) else SILENCE)
        self._sent = until
        self._line.frames(frames)

"""A simulated line: a phone bridge or a sound card, with a scripted caller at its far end.

    play -> [ queue, hidden lag ] -> [ fixed pipe ] -> the caller's ear
              clear empties this       never emptied
    on_frame <----------------------------------------- the caller's mouth

Every 20 ms the line takes one frame of what is queued and is ripe: with a hidden lag, audio ripens so long after it was
handed over. A taken frame will be heard, after the pipe's lag. A speaker reports what it takes; a phone returns a mark
at the instant at which what lay before it has left the queue for the pipe, and says nothing of its lag.

The line keeps its own books of what was at the ear when, and of both sides' sound, on the call's clock: 0 is the
instant of opening, and frame ``n`` of either side lies at 20 x n ms.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Protocol

import numpy as np

from callwright.audio.encodings import DECODE, ENCODE
from callwright.audio.formats import FRAME_MS, PCM, PCM16_24K, PCMU_8K, AudioFormat
from callwright.core.ports import PlayedReports
from callwright.errors import AudioFormatError, LineFailed, UsageError
from callwright.sim.caller import silent_frame
from callwright.sim.record import EarSpan, StereoRecording
from callwright.sim.spool import Spool

if TYPE_CHECKING:
    from callwright.core.ports import LineSink
    from callwright.ids import ItemId, MarkId, Ms
    from callwright.sim.room import Microphone


class LineKind(Enum):
    """What stands for the line."""

    PHONE = "phone"
    """A carrier's stream: marks, and μ-law at 8 kHz."""
    SPEAKER = "speaker"
    """A sound card that pulls: linear samples at 24 kHz."""


_FORMAT = {LineKind.PHONE: PCMU_8K, LineKind.SPEAKER: PCM16_24K}
_REPORTS = {LineKind.PHONE: PlayedReports.MARKS, LineKind.SPEAKER: PlayedReports.PULLED}


@dataclass(frozen=True, slots=True)
class LineSettings:
    """How a simulated line behaves. Raises UsageError where that can't be."""

    kind: LineKind
    format: AudioFormat | None = None
    """Both ways; None is the usual one of the kind."""
    hidden_lag_ms: Ms = 0
    """How long audio is held before it plays, in a stage that ``clear`` empties and nobody reports."""
    fixed_lag_ms: Ms = 0
    """How long what was taken needs to the ear: reported, never emptied, a multiple of 20."""
    clear_returns_marks: bool = True
    """Marks come back when their audio is cleared; some carriers drop them."""
    lose_marks: tuple[int, ...] = ()
    """Marks that never come back, by number, from 1."""
    close_at_ms: Ms | None = None
    """The instant at which the line breaks."""
    close_reason: str = "the line broke"
    """What is told of it then."""

    def __post_init__(self) -> None:
        if self.hidden_lag_ms < 0 or self.fixed_lag_ms < 0:
            raise UsageError("a line's lag is at least 0 ms")
        if self.fixed_lag_ms % FRAME_MS:
            raise UsageError(f"a line's fixed lag is a multiple of {FRAME_MS} ms, not {self.fixed_lag_ms} ms")

    @property
    def stream_format(self) -> AudioFormat:
        """Format of the audio both ways."""
        return self.format or _FORMAT[self.kind]

    def until(self, limit_ms: Ms) -> LineSettings:
        """The same line, ended at ``limit_ms`` of the call if it does not break before."""
        if self.close_at_ms is not None and self.close_at_ms <= limit_ms:
            return self
        return replace(self, close_at_ms=limit_ms, close_reason=f"ended at limit_ms {limit_ms}")


class Caller(Protocol):
    """Who is at the far end."""

    hung_up: bool
    """He has put down the phone: the line ends."""

    def step(self, now_ms: Ms, ear: PCM, item_id: ItemId | None) -> PCM:
        """His frame (int16 mono, 20 ms) from ``now_ms`` on, in which ``ear``, a part of this item, reaches him."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Queued audio of one item."""

    item_id: ItemId
    generation: int
    position: int
    """Bytes of the item that were handed over before these."""
    audio: bytes
    ripe_ms: float


@dataclass(slots=True)
class _Span:
    """Audio of one item that runs without a break: bytes of the item, and the byte of the line's clock it begins at."""

    item_id: ItemId
    position: int
    length: int
    at: int


@dataclass(frozen=True, slots=True)
class _Frame:
    """20 ms on their way to the ear, and the item that the last of them belongs to."""

    samples: PCM
    spans: tuple[_Span, ...] = ()

    @property
    def item_id(self) -> ItemId | None:
        return self.spans[-1].item_id if self.spans else None


class SimulatedLine:
    """A `Line` on the running loop, whose far end is ``caller``, at the rate of the settings' format.

    With a ``microphone`` the client is sent what that hears of him; the recording has him as he spoke.

    Ends when the caller hangs up, when ``hang_up`` is called, or where the settings break it. What is in the fixed pipe
    then is not heard.
    """

    def __init__(self, settings: LineSettings, caller: Caller, microphone: Microphone | None = None) -> None:
        self._settings = settings
        self._caller = caller
        self._microphone = microphone
        self._format = settings.stream_format
        self._outbox = _Outbox(settings, self._format)
        self._silence = _Frame(silent_frame(self._format.rate_hz))
        self._silent_bytes = self._format.silence(FRAME_MS)
        self._pipe = deque([self._silence] * (settings.fixed_lag_ms // FRAME_MS))
        self._books = _Books(self._format)
        self._at_ear: _Frame | None = None
        self._sink: LineSink | None = None
        self._timer: asyncio.Handle | None = None
        self._loop: asyncio.AbstractEventLoop
        self._opened_s = 0.0
        self.ended_ms: Ms | None = None
        """Instant at which the line ended; None while it has not."""

    @property
    def input_format(self) -> AudioFormat:
        """Format of the caller's frames."""
        return self._format

    @property
    def output_format(self) -> AudioFormat:
        """Format in which the line is handed audio."""
        return self._format

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
        """What was at the caller's ear when."""
        return tuple(self._books.ear())

    @property
    def recording(self) -> StereoRecording:
        """Both sides' sound, at the line's rate."""
        return self._books.recording()

    async def open(self, sink: LineSink) -> None:
        """Begin to carry audio both ways. Raises LineFailed when it was opened before."""
        if self._timer is not None:
            raise LineFailed("a simulated line is opened once")
        self._loop = asyncio.get_running_loop()
        self._opened_s = self._loop.time()
        self._sink = sink
        self._timer = self._loop.call_soon(self._tick)

    def play(self, item_id: ItemId, generation: int, audio: bytes) -> None:
        """Queue audio. Raises AudioFormatError for a part of a sample."""
        if len(audio) % self._format.sample_bytes:
            raise AudioFormatError(f"{item_id}: expected whole samples of {self._format.sample_bytes} bytes")
        if self._sink is not None and audio:
            ripe_ms = self.now_ms + self._settings.hidden_lag_ms if self._settings.hidden_lag_ms else 0
            self._outbox.put(item_id, generation, audio, ripe_ms)

    def watch(self, watcher: Callable[[ItemId, bytes], None]) -> None:
        """Have somebody told of all audio that is handed over, as it comes."""
        self._outbox.watcher = watcher

    def mark(self, mark_id: MarkId) -> None:
        """Queue a mark; it comes back at once where nothing is queued. Raises LineFailed on a speaker."""
        if self.reports is not PlayedReports.MARKS:
            raise LineFailed("a simulated speaker has no marks: it reports what it takes")
        if self._sink is not None and self._outbox.put_mark(mark_id):
            self._loop.call_soon(self._return_mark, mark_id)

    def clear(self) -> None:
        """Drop what was not taken; marks in between come back, unless the settings drop them."""
        if self._sink is not None:
            for mark_id in self._outbox.clear():
                self._loop.call_soon(self._return_mark, mark_id)

    async def hang_up(self) -> None:
        """End the line from the agent's side; idempotent."""
        self._close("agent", "hung up")

    def _tick(self) -> None:
        """One frame each way: the caller's last 20 ms come in, the agent's next 20 ms go out."""
        now_ms = self._books.frames * FRAME_MS
        if self._at_ear is not None:
            self._hear_caller(now_ms - FRAME_MS, self._at_ear)
        if self._settings.close_at_ms is not None and now_ms >= self._settings.close_at_ms:
            self._close("fault", self._settings.close_reason)
        if self._sink is None:
            return
        self._pipe.append(self._take(now_ms))
        self._at_ear = self._pipe.popleft()
        self._books.agent(self._at_ear)
        if self._sink is not None:
            self._timer = self._loop.call_at(self._opened_s + (now_ms + FRAME_MS) / 1000, self._tick)

    def _hear_caller(self, started_ms: Ms, at_ear: _Frame) -> None:
        samples = self._caller.step(started_ms, at_ear.samples, at_ear.item_id)
        self._books.caller(samples)
        if self._microphone is not None:
            handed = self._pipe[-1] if self._pipe else at_ear
            samples = self._microphone.hear(samples, at_ear.samples, handed.samples)
            self._books.microphone(samples)
        if self._sink is not None:
            is_silent = samples is self._silence.samples
            self._sink.on_frame(self._silent_bytes if is_silent else ENCODE[self._format.encoding](samples))
        if self._caller.hung_up:
            self._close("caller", "hung up")

    def _take(self, now_ms: Ms) -> _Frame:
        """What of the queue is ripe, up to one frame, told to the sink."""
        if self._outbox.is_empty:
            return self._silence
        taken = self._outbox.take(now_ms)
        for mark_id, offset in taken.marks:
            reached_ms = now_ms + offset / self._format.bytes_per_ms
            self._loop.call_at(self._opened_s + reached_ms / 1000, self._return_mark, mark_id)
        if self.reports is PlayedReports.PULLED:
            for (item_id, generation), played in taken.played.items():
                if self._sink is not None:
                    self._sink.on_played(item_id, generation, self._format.ms_of(played))
        if not taken.spans:
            return self._silence
        samples = DECODE[self._format.encoding](taken.audio)
        padding = self._silence.samples[len(samples) :]
        return _Frame(np.concatenate((samples, padding)) if len(padding) else samples, taken.spans)

    def _return_mark(self, mark_id: MarkId) -> None:
        if self._sink is not None:
            self._sink.on_mark(mark_id)

    def _close(self, by: str, reason: str) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            self.ended_ms = self.now_ms
            if self._timer is not None:
                self._timer.cancel()
            sink.on_closed(by, reason)


@dataclass(slots=True)
class _Taken:
    """What one tick took: bytes of audio, where they come from, and bytes played of each item in all."""

    audio: bytes
    spans: tuple[_Span, ...]
    marks: list[tuple[MarkId, int]]
    """Marks that were passed, each with the bytes taken before it."""
    played: dict[tuple[ItemId, int], int]


class _Outbox:
    """What was handed to the line and not yet taken: audio and marks in one order."""

    def __init__(self, settings: LineSettings, stream_format: AudioFormat) -> None:
        self._settings = settings
        self._frame_bytes = stream_format.frame_bytes
        self._queue: deque[_Piece | MarkId] = deque()
        self._offset = 0  # bytes taken of the first piece
        self._handed: dict[ItemId, int] = {}
        self._played: dict[tuple[ItemId, int], int] = {}
        self._marks = 0
        self.watcher: Callable[[ItemId, bytes], None] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._queue

    def put(self, item_id: ItemId, generation: int, audio: bytes, ripe_ms: Ms) -> None:
        """Queue audio that can be taken from ``ripe_ms`` on."""
        if self.watcher is not None:
            self.watcher(item_id, audio)
        position = self._handed.get(item_id, 0)
        self._handed[item_id] = position + len(audio)
        self._queue.append(_Piece(item_id, generation, position, audio, ripe_ms))

    def put_mark(self, mark_id: MarkId) -> bool:
        """Queue a mark; true where it is reached at once."""
        self._marks += 1
        if self._marks in self._settings.lose_marks:
            return False
        if not self._queue:
            return True
        self._queue.append(mark_id)
        return False

    def clear(self) -> list[MarkId]:
        """Empty the queue; the marks that come back."""
        marks = [entry for entry in self._queue if not isinstance(entry, _Piece)]
        self._queue.clear()
        self._offset = 0
        return marks if self._settings.clear_returns_marks else []

    def take(self, now_ms: Ms) -> _Taken:
        """Up to one frame of what is ripe, and the marks on the way."""
        chunks: list[bytes] = []
        spans: list[_Span] = []
        marks: list[tuple[MarkId, int]] = []
        played: dict[tuple[ItemId, int], int] = {}
        wanted = self._frame_bytes
        while self._queue and wanted:
            entry = self._queue[0]
            if not isinstance(entry, _Piece):
                marks.append((entry, self._frame_bytes - wanted))
                self._queue.popleft()
                continue
            if entry.ripe_ms > now_ms:
                break
            chunk = entry.audio[self._offset : self._offset + wanted]
            spans.append(_Span(entry.item_id, entry.position + self._offset, len(chunk), self._frame_bytes - wanted))
            chunks.append(chunk)
            wanted -= len(chunk)
            self._offset += len(chunk)
            key = (entry.item_id, entry.generation)
            played[key] = self._played[key] = self._played.get(key, 0) + len(chunk)
            if self._offset == len(entry.audio):
                self._queue.popleft()
                self._offset = 0
        return _Taken(b"".join(chunks), tuple(spans), marks, played)


class _Books:
    """What reached the ear and what the caller said, frame by frame."""

    def __init__(self, stream_format: AudioFormat) -> None:
        self._format = stream_format
        self._agent, self._caller, self._microphone = (Spool(stream_format.rate_hz) for _ in range(3))
        self._spans: list[_Span] = []

    @property
    def frames(self) -> int:
        """Frames of the agent's side so far."""
        return self._agent.frames

    def agent(self, frame: _Frame) -> None:
        """Enter the next frame at the ear."""
        for span in frame.spans:
            at = self.frames * self._format.frame_bytes + span.at
            last = self._spans[-1] if self._spans else None
            is_next = last is not None and (last.item_id, last.position + last.length) == (span.item_id, span.position)
            if last is not None and is_next and last.at + last.length == at:
                last.length += span.length
            else:
                self._spans.append(_Span(span.item_id, span.position, span.length, at))
        self._agent.add(frame.samples)

    def caller(self, samples: PCM) -> None:
        """Enter the next frame from the caller."""
        self._caller.add(samples)

    def microphone(self, samples: PCM) -> None:
        """Enter what the client is sent of that frame, where it is not the same."""
        self._microphone.add(samples)

    def ear(self) -> Iterator[EarSpan]:
        """The spans of the agent's side, in order."""
        ms = self._format.ms_of
        for span in self._spans:
            yield EarSpan(span.item_id, ms(span.position), ms(span.position + span.length), ms(span.at))

    def recording(self) -> StereoRecording:
        """Both sides at equal length: a frame that only began on the caller's side is silent there."""
        frames = self.frames
        return StereoRecording(
            self._format.rate_hz,
            self._caller.read(frames),
            self._agent.read(frames),
            self._microphone.read(frames) if self._microphone.frames else None,
        )

"""A session on its own clock, and a line that plays in real time: calls are told in numbers, and nothing waits."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.keys import KEY_MS
from callwright.core.playout import Playing
from callwright.core.ports import PlayedReports
from callwright.core.session import CallPlan, Can, Session
from callwright.core.toolcalls import AfterOutput
from callwright.ids import EventId, ItemId, MarkId, Ms, ResponseId, Samples, ToolCallId

RATE_HZ = 24_000
EVERYTHING = Can.TRUNCATE | Can.RETRIEVE | Can.CANCEL
TOOLS: Mapping[str, AfterOutput] = {
    "look_up": AfterOutput.REPLY,
    "find": AfterOutput.REPLY,
    "wait": AfterOutput.SILENCE,
    "end_call": AfterOutput.HANG_UP,
}
PULLED, MARKS = BOTH_LINES = (PlayedReports.PULLED, PlayedReports.MARKS)
both_lines = pytest.mark.parametrize("reports", BOTH_LINES)
TEN_WORDS = "one two three four five six seven eight nine ten"

R1, R2, R3 = ResponseId("r1"), ResponseId("r2"), ResponseId("r3")
A, B, C = ItemId("a"), ItemId("b"), ItemId("c")
U1, U2 = ItemId("u1"), ItemId("u2")
K1, K2 = ToolCallId("k1"), ToolCallId("k2")

Kind = TypeVar("Kind")


def speaks(item_id: ItemId = U1) -> on.SpeechStarted:
    return on.SpeechStarted(item_id, 0)


def stops(item_id: ItemId = U1) -> on.SpeechStopped:
    return on.SpeechStopped(item_id, 0)


def samples(ms: float) -> Samples:
    return round(ms * RATE_HZ / 1000)


def audio(response_id: ResponseId, item_id: ItemId, ms: float) -> on.AudioReceived:
    return on.AudioReceived(response_id, item_id, samples(ms))


def ended(response_id: ResponseId, status: on.ResponseStatus = on.ResponseStatus.COMPLETED) -> on.ResponseEnded:
    return on.ResponseEnded(response_id, status)


CANCELLED = on.ResponseStatus.CANCELLED


def called(tool_call_id: ToolCallId, name: str = "look_up", response_id: ResponseId = R1) -> on.ToolCalled:
    return on.ToolCalled(response_id, ItemId(f"item of {tool_call_id}"), tool_call_id, name, "{}")


def finished(tool_call_id: ToolCallId, outcome: on.ToolOutcome = on.ToolOutcome.RETURNED) -> on.ToolFinished:
    return on.ToolFinished(tool_call_id, outcome, f"output of {tool_call_id}")


def plan(
    reports: PlayedReports = PlayedReports.PULLED,
    can: Can = EVERYTHING,
    tools: Mapping[str, AfterOutput] = TOOLS,
    latency_ms: Ms = 0,
    **more: Any,
) -> CallPlan:
    return CallPlan(RATE_HZ, reports, can, tools, latency_ms, **more)


@dataclass
class Piece:
    """A piece of an item: it is at the ear from ``start_ms`` to ``end_ms``."""

    item_id: ItemId
    generation: int
    start_ms: float
    end_ms: float


@dataclass
class FakeLine:
    """Plays what it is handed one after the other, ``lag_ms`` behind; a clear empties all that is not at the ear."""

    reports: PlayedReports
    lag_ms: Ms = 0
    lost_marks: Container[int] = ()
    """Marks that never come back, by number (the first one sent is 1)."""
    returns_cleared: bool = True
    pieces: list[Piece] = field(default_factory=list)
    marks: list[tuple[float, MarkId]] = field(default_factory=list)
    marks_sent: int = 0
    free_ms: float = 0
    pressed: list[tuple[float, float]] = field(default_factory=list)
    """When keys began and ended."""
    held: list[do.Command] | None = None
    """Reply audio that waits for keys."""
    tells_keys: bool = True
    keys_told: int = 0
    told: dict[tuple[ItemId, int], on.LinePlayed] = field(default_factory=dict)
    """What a pulled line has reported last of each item; what did not change it does not report again."""

    def take(self, command: do.Command, now_ms: Ms) -> None:
        if self.held is not None and isinstance(command, do.PlayAudio | do.SendMark):
            self.held.append(command)
            return
        match command:
            case do.HoldReply():
                self.held = []
            case do.ReleaseReply():
                held, self.held = self.held or [], None
                for each in held:
                    self.take(each, now_ms)
            case do.PressKeys(keys):
                start_ms = max(self.free_ms, now_ms + self.lag_ms)
                self.free_ms = start_ms + len(keys) * KEY_MS
                self.pressed.append((start_ms, self.free_ms))
            case do.ClearPlayout() if self.held is not None:
                self.held.clear()
            case do.PlayAudio(item_id, generation, count):
                start_ms = max(self.free_ms, now_ms + self.lag_ms)
                self.free_ms = start_ms + count * 1000 / RATE_HZ
                self.pieces.append(Piece(item_id, generation, start_ms, self.free_ms))
            case do.SendMark(mark_id):
                self.marks_sent += 1
                if self.marks_sent not in self.lost_marks:
                    self.marks.append((max(self.free_ms, now_ms + self.lag_ms), mark_id))
            case do.ClearPlayout():
                self.pieces = [piece for piece in self.pieces if piece.start_ms < now_ms]
                for piece in self.pieces:
                    piece.end_ms = min(piece.end_ms, now_ms)
                self.free_ms = now_ms
                self.marks = [(now_ms, mark_id) for _, mark_id in self.marks] if self.returns_cleared else []

    def heard_ms(self, item_id: ItemId, now_ms: Ms) -> Ms:
        """What has reached the ear of an item: the truth that no client can see."""
        heard = [min(p.end_ms, now_ms) - p.start_ms for p in self.pieces if p.item_id == item_id]
        return int(sum(ms for ms in heard if ms > 0))

    def next_report_ms(self, after_ms: Ms) -> Ms | None:
        """When it says something next: a carrier with each mark, a pulled line every 20 ms while it plays."""
        keys = [-int(-end_ms // 1) for _, end_ms in self.pressed[self.keys_told :] if self.tells_keys]
        if self.reports is PlayedReports.MARKS:
            return min((*keys, *(-int(-at_ms // 1) for at_ms, _ in self.marks)), default=None)
        return after_ms + 20 if self.free_ms > after_ms else min(keys, default=None)

    def said(self, now_ms: Ms) -> Iterator[on.LineEvent]:
        """What it reports at this instant."""
        while self.tells_keys and self.keys_told < len(self.pressed) and self.pressed[self.keys_told][1] <= now_ms:
            self.keys_told += 1
            yield on.KeysPressed()
        if self.reports is PlayedReports.MARKS:
            due = [mark_id for at_ms, mark_id in self.marks if at_ms <= now_ms]
            self.marks = [mark for mark in self.marks if mark[1] not in due]
            yield from (on.MarkReturned(mark_id) for mark_id in due)
            return
        heard_ms: dict[ItemId, float] = {}
        for piece in self.pieces:
            heard_ms[piece.item_id] = heard_ms.get(piece.item_id, 0) + max(
                0, min(piece.end_ms, now_ms) - piece.start_ms
            )
        for item_id, generation in dict.fromkeys((piece.item_id, piece.generation) for piece in self.pieces):
            played = on.LinePlayed(item_id, generation, int(heard_ms[item_id]))
            if self.told.get((item_id, generation)) != played:
                self.told[item_id, generation] = played
                yield played


class Call:
    """A configured session with an empty history, its line and its clock; all commands are kept with their time."""

    def __init__(self, line: FakeLine | PlayedReports = PlayedReports.PULLED, **planned: Any) -> None:
        self.line = line if isinstance(line, FakeLine) else FakeLine(line)
        self.session = Session(plan(self.line.reports, **planned))
        self.now_ms: Ms = 0
        self.log: list[tuple[Ms, do.Command]] = []
        self.at(0, on.LineOpened(), on.ModelConnected(), on.SessionReady())
        self.log.clear()

    def at(self, now_ms: Ms, *events: on.Event) -> list[do.Command]:
        """Let time pass until ``now_ms``, with what the line and the timer say on the way; then these events.

        Returns the commands of these events.
        """
        self.pass_until(now_ms)
        before = len(self.log)
        for event in events:
            self._handle(event)
        return [command for _, command in self.log[before:]]

    def pass_until(self, end_ms: Ms) -> None:
        while True:
            due = [
                at for at in (self.session.next_deadline_ms(), self.line.next_report_ms(self.now_ms)) if at is not None
            ]
            at_ms = max(min(due, default=end_ms + 1), self.now_ms)
            if at_ms > end_ms:
                break
            self.now_ms = at_ms
            for event in self.line.said(at_ms):
                self._handle(event)
            deadline_ms = self.session.next_deadline_ms()
            if deadline_ms is not None and deadline_ms <= at_ms:
                self._handle(on.TimerFired())
                assert self.session.next_deadline_ms() != deadline_ms, "a timer that fired is still due"
        self.now_ms = end_ms
        for event in self.line.said(end_ms):
            self._handle(event)

    def stream(self, response_id: ResponseId, item_id: ItemId, ms: Ms, *, speed: float = 1, piece_ms: Ms = 200) -> None:
        """``ms`` of an item from now on, in pieces that arrive ``speed`` times as fast as they play."""
        start_ms = self.now_ms
        for offset_ms in range(0, ms, piece_ms):
            self.at(start_ms + round(offset_ms / speed), audio(response_id, item_id, min(piece_ms, ms - offset_ms)))

    def reply(self, response_id: ResponseId, item_id: ItemId, ms: Ms, text: str = "", *, speed: float = 1) -> None:
        """A whole reply that begins now: started, streamed, written and closed."""
        self.at(self.now_ms, on.ResponseStarted(response_id))
        self.stream(response_id, item_id, ms, speed=speed)
        self.at(self.now_ms, on.ReplyWritten(response_id, item_id, text), ended(response_id))

    def done(self, kind: type[Kind]) -> list[Kind]:
        """All commands of one kind so far."""
        return [command for _, command in self.log if isinstance(command, kind)]

    def times(self, kind: type) -> list[Ms]:
        """When commands of one kind were given."""
        return [at_ms for at_ms, command in self.log if isinstance(command, kind)]

    def cuts(self) -> list[tuple[ItemId, Ms]]:
        """What the server was told of cuts: item and ``audio_end_ms``."""
        return [(command.item_id, command.audio_end_ms) for command in self.done(do.TruncateItem)]

    def heard(self) -> dict[ItemId, tuple[str, str]]:
        """The heard text of every turn with its source, in the transcript's order."""
        return {turn.item_id: (turn.heard, turn.source.value) for turn in self.session.transcript()}

    def anomalies(self) -> list[str]:
        return [command.text for command in self.done(do.NoteAnomaly)]

    def refuse(self, request: do.Request, code: str = "invalid_request_error") -> list[do.Command]:
        return self.at(self.now_ms, on.RequestRefused(code, "no", EventId(request.event_id)))

    def state(self, item_id: ItemId) -> Playing | None:
        return self.session.playout.state(item_id)

    def _handle(self, event: on.Event) -> None:
        self.session.handle(event, self.now_ms)
        for command in self.session.commands():
            self.log.append((self.now_ms, command))
            self.line.take(command, self.now_ms)

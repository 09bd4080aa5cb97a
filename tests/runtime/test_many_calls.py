"""Many calls and long calls: nothing is left behind by an ending, nothing grows with an hour but the record of it."""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import FrameType

import pytest
from bench.attempt import Clock as Confirms
from tests.ledger.rows import TERMS
from tests.runtime.calls import (
    ANYTHING,
    CREATED,
    OPENING,
    UPDATED,
    Model,
    delta,
    ended,
    error,
    reply,
    retrieved,
    run,
    speech_started,
    speech_stopped,
    started,
    take,
    written,
)
from tests.runtime.refunds import Shop, take_call

from callwright.audio.formats import PCM16_24K
from callwright.core.ports import LineSink, ModelSink, PlayedReports
from callwright.errors import LineFailed
from callwright.ids import ItemId, MarkId
from callwright.ledger.asking import Ask
from callwright.ledger.store import MemoryStore
from callwright.lines.clock import line_clock
from callwright.lines.player import WAITING_MS_MAX, Player
from callwright.runtime.call import CallResult
from callwright.runtime.dispatcher import Ledger
from callwright.sim.server import MemoryConnector
from callwright.sim.vloop import VirtualLoop, run_virtual
from callwright.testing.scripted import Emit, Step, after, close

FRAME = PCM16_24K.silence(20)
TraceFunction = Callable[[FrameType, str, object], object]


class PlainLine:
    """The least line with pulled reports, on the clock of its loop. Keeps nothing of what went through it."""

    input_format = output_format = PCM16_24K
    reports = PlayedReports.PULLED
    latency_ms = 0
    reaches_person = False

    def __init__(self, *, stalls: bool = False, hang_up_s: float = 1e9) -> None:
        self.ended: list[str] = []
        self._stalls = stalls
        self._hang_up_s = hang_up_s
        self._player: Player
        self._sink: LineSink

    async def open(self, sink: LineSink) -> None:
        self._sink = sink
        self._player = Player(PCM16_24K, sink.on_played)
        self._hang_up_s += asyncio.get_running_loop().time()
        line_clock().join(self._beat)

    def _beat(self, due_s: float) -> None:
        if due_s >= self._hang_up_s:
            self.close()
            return
        self._sink.on_frame(FRAME)
        if not self._stalls:
            self._player.take()

    def play(self, item_id: ItemId, generation: int, audio: bytes) -> None:
        self._player.put(item_id, generation, audio)

    def close(self) -> None:
        line_clock().leave(self._beat)
        self._sink.on_closed("caller", "hung up")

    def mark(self, mark_id: MarkId) -> None:
        raise NotImplementedError

    def clear(self) -> None:
        self._player.clear()

    async def hang_up(self) -> None:
        line_clock().leave(self._beat)
        self.ended.append("hung up")


def taken_by(line: PlainLine, *steps: Step) -> CallResult:
    return run_virtual(run(line, MemoryConnector(lambda: Model(*steps, ignoring=ANYTHING))))


def test_a_line_that_stalls_ends_the_call_aloud_at_a_bound() -> None:
    """What waits for a line that takes nothing does not grow without end, and no audio is dropped in silence."""
    minute = [delta(60_000) for _ in range(WAITING_MS_MAX // 60_000 + 1)]
    line = PlainLine(stalls=True)
    with pytest.raises(LineFailed, match="the line has stalled: 300000 ms"):
        taken_by(line, *OPENING, started(), *minute, ended(), after(60_000))
    assert line.ended == ["hung up"]


def test_a_model_much_faster_than_the_line_is_waited_for() -> None:
    """Four minutes of reply at once: all of it is played."""
    line = PlainLine(hang_up_s=250)
    result = taken_by(line, *OPENING, *reply("Long.", 240_000)[:-2], ended(), after(260_000))
    assert [(turn.heard, turn.source) for turn in result.turns] == [("Long.", "whole")]


ENDINGS: dict[str, Callable[[], object]] = {
    "the caller hangs up": lambda: taken_by(PlainLine(hang_up_s=1), *OPENING, *reply("Yes.")),
    "in the middle of a reply": lambda: taken_by(PlainLine(hang_up_s=0.5), *OPENING, started(), delta(2_000)),
    "the session is refused": lambda: taken_by(PlainLine(), CREATED, after(20), error("cw_1")),
    "the connection breaks": lambda: taken_by(PlainLine(), *OPENING, started(), delta(400), close(1008)),
    "nobody answers": lambda: taken_by(PlainLine(hang_up_s=1)),
    "the simulated caller hangs up": lambda: take(*OPENING, *reply("Yes."), hang_up_ms=1_000),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_c131_a_call_leaves_nothing_behind_however_it_ends(ending: str) -> None:
    """Ten calls take no more than one: what a call held is free after it."""
    call = ENDINGS[ending]
    for _ in range(3):
        call()
    gc.collect()
    objects = len(gc.get_objects())
    for _ in range(10):
        call()
    gc.collect()
    assert len(gc.get_objects()) - objects < 10


def test_c131_nor_does_it_leave_anything_with_a_ledger_that_outlives_it() -> None:
    """A ledger is the process's: whoever listens to it and does not stop is there for ever."""

    async def calls() -> int:
        async with Shop().ledger() as ledger:

            async def take(count: int) -> int:
                for _ in range(count):
                    await take_call(ledger, *OPENING, hang_up_ms=100)
                await asyncio.sleep(60)  # timers that are not wanted any more go when they are due
                gc.collect()
                return len(gc.get_objects())

            await take(3)
            before = await take(3)
            return await take(10) - before

    assert run_virtual(calls()) < 10


def test_c131_a_ledger_tends_what_was_confirmed_in_the_last_days_and_nothing_else() -> None:
    """Ten days with two refunds each: three days long a provider is asked whether one has come back."""

    async def days() -> list[int]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        tasks = []
        async with Ledger(MemoryStore(), [Confirms()], clock=loop.now_ms) as ledger:
            for number in range(20):
                terms = replace(TERMS, subject=f"order:{number}")
                await ledger.propose(Ask("refund", "full", "customer:81", Confirms.name, terms))
                await asyncio.sleep(43_200)
                tasks.append(len(loop.pending_tasks()))
        return tasks

    tasks = run_virtual(days())
    assert tasks[0] + 3 < tasks[9] == tasks[-1]
    assert tasks[-1] - tasks[0] < 2 * 3


class Direct:
    """A connection whose server is the test."""

    sink: ModelSink

    async def connect(self, sink: ModelSink) -> Direct:
        self.sink = sink
        return self

    def send(self, message: bytes) -> None: ...

    async def close(self) -> None: ...

    def says(self, *steps: Step) -> None:
        for step in steps:
            assert isinstance(step, Emit)
            self.sink.on_message(step.data)


def turn(number: int) -> list[Step]:
    """Twelve seconds of a call: six of a reply, which every other time is cut, and what the caller says."""
    item, response, caller = f"item_{number:016x}", f"resp_{number:016x}", f"caller_{number:016x}"
    pieces = [delta(200, item, response) for _ in range(30)]
    reply = [started(response), *pieces, written("Check in is from three. " * 5, item, response)]
    if number % 2:
        return [*reply, ended(response), speech_started(caller), speech_stopped(caller)]
    cut = [ended(response, "cancelled"), retrieved("Check-", item)]
    return [*reply, speech_started(caller), *cut, speech_stopped(caller)]


def lines_run(code: Callable[[], object]) -> int:
    """How many lines of Python ``code`` runs; each round of a loop counts."""
    count = 0

    def counted(frame: FrameType, event: str, arg: object) -> TraceFunction:
        nonlocal count
        count += event == "line"
        return counted

    theirs = sys.gettrace()
    sys.settrace(counted)
    try:
        code()
    finally:
        sys.settrace(theirs)
    return count


def test_c133_an_hour_of_talk_takes_little_memory_and_its_end_is_handled_in_as_many_steps_as_its_beginning() -> None:
    """300 turns: 4 kB each, trace and transcript together, and no event costs more for what came before.

    ``bench/hour.py`` tells the time.
    """
    steps: dict[int, int] = {}
    sizes: list[int] = []

    async def hour() -> CallResult:
        line, server = PlainLine(), Direct()
        call = asyncio.get_running_loop().create_task(run(line, server))
        await asyncio.sleep(1)
        server.says(CREATED, UPDATED)
        for number in range(300):
            says = partial(server.says, *turn(number))
            if number in (10, 11, 298, 299):  # either kind of turn
                steps[number] = lines_run(says)
            else:
                says()
            await asyncio.sleep(0.5)
            sizes.append(tracemalloc.get_traced_memory()[0])
        line.close()
        return await call

    tracemalloc.start()
    try:
        result = run_virtual(hour())
    finally:
        tracemalloc.stop()
    assert len(result.turns) == 600
    assert (sizes[-1] - sizes[99]) / 200 < 4_096
    assert 1_000 < steps[298] < 1.01 * steps[10]
    assert 1_000 < steps[299] < 1.01 * steps[11]


def test_the_count_of_lines_sees_a_search_through_what_came_before() -> None:
    assert lines_run(lambda: [n for n in range(100) if n > 98]) > 80 + lines_run(
        lambda: [n for n in range(10) if n > 8]
    )

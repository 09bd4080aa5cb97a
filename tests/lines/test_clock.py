"""One clock beats for all lines of a loop: every 20 ms, few at a time, whatever one of them does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from functools import partial
from itertools import pairwise
from random import Random
from typing import TypeVarTuple, Unpack

import pytest

from callwright.audio.formats import FRAME_MS, PCMU_8K
from callwright.ids import ItemId
from callwright.lines.clock import APART_MS, MAKES_UP_MS, line_clock
from callwright.lines.player import Player
from callwright.sim.vloop import VirtualLoop, run_virtual

Ts = TypeVarTuple("Ts")


def beats(count: int, during: Callable[[], Awaitable[None]]) -> list[list[tuple[float, float]]]:
    """What so many lines were called with meanwhile: (due, now) in ms of the loop's time."""
    seen: list[list[tuple[float, float]]] = [[] for _ in range(count)]

    async def join() -> None:
        loop = asyncio.get_running_loop()
        members = [
            lambda due_s, notes=notes: notes.append((round(due_s * 1000, 6), round(loop.time() * 1000, 6)))
            for notes in seen
        ]
        for member in members:
            line_clock().join(member)
        await during()
        for member in members:
            line_clock().leave(member)
            line_clock().leave(member)

    run_virtual(join())
    return seen


def test_every_line_beats_every_20_ms_and_is_told_when_it_was_due() -> None:
    for notes in beats(9, partial(asyncio.sleep, 1)):
        assert all(due == now for due, now in notes)
        assert len(notes) in (1000 // FRAME_MS, 1000 // FRAME_MS + 1)
        assert all(later[0] - before[0] == pytest.approx(FRAME_MS) for before, later in pairwise(notes))


def test_the_work_of_many_lines_does_not_come_at_once() -> None:
    """Eight lines are spread over the four groups, two in each, 5 ms apart."""
    phases = sorted(notes[0][0] % FRAME_MS for notes in beats(8, partial(asyncio.sleep, 0.1)))
    assert phases == [offset for offset in range(0, FRAME_MS, APART_MS) for _ in range(2)]


def test_a_loop_has_one_clock_and_without_lines_no_timer() -> None:
    async def check() -> None:
        assert line_clock() is line_clock()
        line_clock().join(lambda due_s: None)

    async def leave_all() -> None:
        member: Callable[[float], None] = lambda due_s: None  # noqa: E731
        line_clock().join(member)
        await asyncio.sleep(0.1)
        line_clock().leave(member)
        await asyncio.sleep(0.1)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not others
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):  # the only timer that is left
                await asyncio.get_running_loop().create_future()

    run_virtual(check())
    run_virtual(leave_all())


def test_a_line_that_leaves_in_a_beat_is_not_called_again_nor_is_one_that_it_takes_along() -> None:
    calls: list[str] = []

    async def check() -> None:
        clock = line_clock()

        def second(due_s: float) -> None:
            calls.append("second")

        def first(due_s: float) -> None:
            calls.append("first")
            clock.leave(first)
            clock.leave(second)

        clock.join(first)
        for _ in range(3):
            clock.join(lambda due_s: None)
        clock.join(second)  # the same group as the first
        await asyncio.sleep(0.2)

    run_virtual(check())
    assert calls == ["first"]


def test_a_line_that_raises_is_reported_and_silences_no_other() -> None:
    problems: list[object] = []

    async def check() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: problems.append(context["exception"]))
        calls: list[float] = []

        def broken(due_s: float) -> None:
            raise ValueError("mine")

        for _ in range(4):
            line_clock().join(lambda due_s: None)
            line_clock().join(broken)
            line_clock().leave(broken)
        line_clock().join(broken)
        line_clock().join(calls.append)
        await asyncio.sleep(0.1)
        assert len(calls) == 5

    run_virtual(check())
    assert problems
    assert all(isinstance(problem, ValueError) for problem in problems)


class Jittery(VirtualLoop):
    """A loop whose timers are up to 10 ms late, each by another amount; the one after 30 s by 150 ms."""

    rng = Random(7)
    has_stalled = False

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        late_s = self.rng.uniform(0, 0.010)
        if when > 30 and not self.has_stalled:
            self.has_stalled, late_s = True, 0.150
        return super().call_at(max(when, self.time()) + late_s, callback, *args, context=context)


def test_c123_late_timers_and_a_stall_do_not_add_up() -> None:
    """A reply of 60 s ends within 40 ms of 60 s; a sleep per frame would have ended 15 s later."""
    ends_s: list[float] = []

    async def play() -> None:
        loop = asyncio.get_running_loop()
        is_over = loop.create_future()
        player = Player(PCMU_8K, lambda item_id, generation, played_ms: None)
        player.put(ItemId("a"), 0, bytes(PCMU_8K.bytes_for_ms(60_000)))

        def beat(due_s: float) -> None:
            player.take()
            if not player.waiting_ms and not is_over.done():
                is_over.set_result(None)

        line_clock().join(beat)
        await is_over
        ends_s.append(loop.time())
        line_clock().leave(beat)

    loop = Jittery()
    loop.run_until_complete(play())
    loop.cancel_pending()
    loop.close()
    assert loop.has_stalled
    assert ends_s == [pytest.approx(60, abs=0.040)]


class Late(asyncio.SelectorEventLoop):
    """A loop whose time jumps when it is told to."""

    jump_s = 0.0

    def time(self) -> float:
        return super().time() + self.jump_s


@pytest.mark.parametrize(("away_ms", "is_sleep"), [(200, False), (MAKES_UP_MS + 60, True)])
def test_c123_missed_beats_are_made_up_for_unless_the_machine_slept(away_ms: int, is_sleep: bool) -> None:
    """Instants are absolute, so that a line never starves for a busy moment; after a sleep no burst makes up for it."""
    loop = Late()
    due: list[float] = []

    async def check() -> None:
        come = asyncio.Event()

        def beat(due_s: float) -> None:
            due.append(due_s)
            come.set()

        line_clock().join(beat)
        await come.wait()
        last_s = due[-1]
        due.clear()
        loop.jump_s += away_ms / 1000
        jumped_s = loop.time()
        while not due or due[-1] < jumped_s:
            come.clear()
            await come.wait()
        late = [due_s for due_s in due if due_s < jumped_s]
        owed = 1 if is_sleep else round((jumped_s - last_s) * 1000) // 20
        assert owed - 1 <= len(late) <= owed + 1

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(check())

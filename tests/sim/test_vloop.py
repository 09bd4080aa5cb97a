"""Rules of virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.errors import DeadlockError, OutsideWorldError, SimulationError
from callwright.sim.vloop import MAX_TURNS_PER_INSTANT, VirtualLoop, run_virtual

LITTLE_WORLD = Path(__file__).parent / "little_world.py"


def now_ms() -> int:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.now_ms()


# --- Order and time ----------------------------------------------------------------------------------------------


def test_two_writers_at_one_instant_keep_the_order_of_submission():
    written: list[str] = []

    async def writer(name: str, first_ms: int) -> None:
        await asyncio.sleep(first_ms / 1000)
        written.append(f"{name}1@{now_ms()}")
        await asyncio.sleep((100 - first_ms) / 1000)
        written.append(f"{name}2@{now_ms()}")

    async def main() -> None:
        await asyncio.gather(writer("a", 60), writer("b", 40))

    run_virtual(main())
    assert written == ["b1@40", "a1@60", "b2@100", "a2@100"]  # b asked for 100 ms first


def test_callbacks_of_one_instant_run_first_in_first_out_and_what_they_ask_for_runs_after_them():
    loop, ran = VirtualLoop(), []
    loop.call_later(0.005, loop.stop)
    loop.call_later(0, ran.append, "timer of now")
    loop.call_soon(lambda: loop.call_soon(ran.append, "asked at 0"))
    loop.call_soon(ran.append, "soon")
    loop.run_forever()
    loop.close()
    assert ran == ["soon", "timer of now", "asked at 0"]
    assert loop.now_ms() == 5


@pytest.mark.parametrize(
    ("delay_s", "due_ms"),
    [(0, 0), (-1, 0), (0.0001, 1), (0.001, 1), (0.0011, 2), (0.0204, 21), (0.3, 300), (12.345, 12345)],
)
def test_timers_round_up_to_whole_milliseconds(delay_s: float, due_ms: int):
    async def main() -> tuple[int, int]:
        loop = asyncio.get_running_loop()
        later: asyncio.Future[int] = loop.create_future()
        at: asyncio.Future[int] = loop.create_future()
        loop.call_later(delay_s, lambda: later.set_result(now_ms()))
        loop.call_at(loop.time() + delay_s, lambda: at.set_result(now_ms()))
        return await later - 7, await at - 7

    assert run_virtual(main(), start_ms=7) == (due_ms, due_ms)


@given(start_ms=st.integers(0, 10**10), delay_ms=st.integers(0, 10**9))
def test_whole_milliseconds_survive_the_floats_of_asyncio(start_ms: int, delay_ms: int):
    loop = VirtualLoop(start_ms=start_ms)
    loop.call_at(loop.time() + delay_ms / 1000, loop.stop)
    loop.run_forever()
    loop.close()
    assert loop.now_ms() == start_ms + delay_ms


def test_twelve_minutes_of_20_ms_are_36000_ticks():
    async def main() -> int:
        ticks = 0
        while now_ms() < 12 * 60_000:
            await asyncio.sleep(0.02)
            ticks += 1
        return ticks

    assert run_virtual(main()) == 36_000


def test_a_cancelled_timer_does_not_move_the_clock_and_a_sweep_loses_no_other():
    loop, ran = VirtualLoop(), []
    timers = [loop.call_later(n / 1000, ran.append, n) for n in range(1, 401)]
    for n, timer in enumerate(timers, 1):
        if n % 50:
            timer.cancel()
            timer.cancel()
    loop.call_later(0.4, loop.stop)
    loop.call_later(3600, ran.append, "never").cancel()
    assert len(loop._timers) < 200
    loop.run_forever()
    loop.close()
    assert ran == [50, 100, 150, 200, 250, 300, 350, 400]
    assert loop.now_ms() == 400


def test_a_timer_that_ran_may_be_cancelled():
    async def main() -> None:
        timer = asyncio.get_running_loop().call_later(0.001, lambda: None)
        await asyncio.sleep(0.002)
        timer.cancel()
        await asyncio.sleep(0.002)

    run_virtual(main())


# --- Timeouts and cancellation ------------------------------------------------------------------------------------


async def _timeout(seconds: float) -> None:
    async with asyncio.timeout(seconds):
        await asyncio.Event().wait()


async def _wait_for(seconds: float) -> None:
    await asyncio.wait_for(asyncio.Event().wait(), seconds)


@pytest.mark.parametrize("limit", [_timeout, _wait_for])
@pytest.mark.parametrize("limit_ms", [1, 20, 1333, 60_001])
def test_timeouts_are_exact_to_the_millisecond(limit: Callable[[float], Awaitable[None]], limit_ms: int):
    async def main() -> int:
        with pytest.raises(TimeoutError):
            await limit(limit_ms / 1000)
        return now_ms() - 1001

    assert run_virtual(main(), start_ms=1001) == limit_ms


def test_tasks_left_over_are_cancelled_in_the_order_of_their_creation():
    ended: list[int] = []

    async def left_over(number: int) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.001)
            ended.append(number)

    async def main() -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(left_over(n)) for n in range(50)]
        await asyncio.sleep(1)
        return tasks

    assert all(task.cancelled() for task in run_virtual(main()))
    assert ended == list(range(50))


def test_a_failure_of_main_passes_and_tasks_that_will_not_end_do_not_hide_it():
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.create_task(stubborn())
        await asyncio.sleep(1)
        raise ValueError(task.get_name())

    with pytest.raises(ValueError, match="Task-2"):
        run_virtual(main())


def test_tasks_are_numbered_by_their_loop_so_names_repeat():
    async def main() -> list[str]:
        tasks = [asyncio.create_task(asyncio.sleep(0), name=name) for name in (None, "pump", None)]
        await asyncio.gather(*tasks)
        return [task.get_name() for task in tasks]

    assert run_virtual(main()) == run_virtual(main()) == ["Task-2", "pump", "Task-4"]


def test_asynchronous_generators_left_open_are_closed_in_order():
    closed: list[int] = []

    async def numbers(name: int):
        try:
            yield name
        finally:
            await asyncio.sleep(0.001)
            closed.append(name)

    async def main() -> object:
        generators = [numbers(n) for n in range(20)]
        for generator in generators:
            await anext(generator)
        return generators

    run_virtual(main())
    assert closed == list(range(20))


def test_the_garbage_collector_ends_nothing_at_a_time_of_its_own():
    log: list[str] = []

    async def endless():
        try:
            while True:
                yield
        finally:
            log.append("closed")

    async def main() -> None:
        generator = endless()
        cycle = [generator]
        cycle.append(cycle)
        await anext(generator)
        del generator, cycle
        garbage = [[] for _ in range(10_000)]
        for item in garbage:
            item.append(item)
        await asyncio.sleep(1)
        log.append("main ended")

    run_virtual(main())
    assert log == ["main ended", "closed"]
    assert gc.isenabled()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_eager_tasks_run_at_their_creation():
    async def main() -> bool:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]
        return asyncio.create_task(asyncio.sleep(0, result=None), name="eager").get_name() == "eager"

    assert run_virtual(main())


def test_asyncio_runner_takes_the_loop():
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(asyncio.sleep(3600, "slept")) == "slept"


def test_a_callback_that_raises_reaches_the_exception_handler_and_the_loop_goes_on():
    caught: list[object] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: caught.append(context["exception"]))
        loop.call_soon(int, "x")
        await asyncio.sleep(1)

    run_virtual(main())
    assert [type(error) for error in caught] == [ValueError]


def test_without_a_handler_the_exception_is_logged_with_its_time(caplog: pytest.LogCaptureFixture):
    async def main() -> None:
        asyncio.get_running_loop().call_later(0.25, int, "x")
        await asyncio.sleep(1)

    run_virtual(main())
    assert "at 250 ms" in caplog.text


# --- Executors ----------------------------------------------------------------------------------------------------


def test_a_job_runs_at_once_on_this_thread_and_its_result_arrives_after_the_latency():
    ran: list[str] = []

    async def main() -> tuple[int, int]:
        ran.append("before")
        job = asyncio.get_running_loop().run_in_executor(None, lambda: ran.append("job") or threading.get_ident())
        ran.append("after")
        return await job, now_ms()

    assert run_virtual(main(), executor_latency_ms=4) == (threading.get_ident(), 4)
    assert ran == ["before", "job", "after"]


def test_an_exception_of_a_job_arrives_after_the_latency():
    async def main() -> int:
        job = asyncio.get_running_loop().run_in_executor(None, int, "x")
        assert not job.done()
        with pytest.raises(ValueError, match="invalid literal"):
            await job
        return now_ms()

    assert run_virtual(main(), executor_latency_ms=3) == 3


def test_jobs_of_one_instant_arrive_in_the_order_of_submission():
    arrived: list[int] = []

    async def submit(number: int) -> None:
        arrived.append(await asyncio.to_thread(int, number))

    async def main() -> None:
        await asyncio.gather(*(submit(n) for n in range(30)))

    run_virtual(main())
    assert arrived == list(range(30))


def test_a_job_sees_no_running_loop_and_cancelling_it_does_not_undo_it():
    ran: list[object] = []

    async def main() -> None:
        job = asyncio.get_running_loop().run_in_executor(None, lambda: ran.append(asyncio._get_running_loop()))
        job.cancel()
        await asyncio.sleep(1)

    run_virtual(main())
    assert ran == [None]


def test_another_thread_may_not_call_in():
    go, refused = threading.Event(), []

    def call_in() -> None:
        go.wait()
        with pytest.raises(OutsideWorldError, match="another thread"):
            loop.call_soon_threadsafe(refused.append, "came in")
        refused.append("refused")

    async def main() -> None:
        go.set()
        thread.join()
        loop.call_soon_threadsafe(refused.append, "from this thread")
        await asyncio.sleep(0)

    loop, thread = VirtualLoop(), threading.Thread(target=call_in)
    thread.start()
    loop.run_until_complete(main())
    loop.close()
    assert refused == ["refused", "from this thread"]


# --- Deadlock -----------------------------------------------------------------------------------------------------


def test_nothing_left_to_wait_for_names_the_tasks_and_where_they_wait():
    async def hungry(queue: asyncio.Queue[int]) -> int:
        return await queue.get()  # waits here

    async def main() -> None:
        await asyncio.sleep(0.25)
        await asyncio.create_task(hungry(asyncio.Queue()), name="hungry")

    with pytest.raises(DeadlockError) as caught:
        run_virtual(main())
    message = str(caught.value)
    line = next(n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if text.endswith("# waits here"))
    assert "at 250 ms" in message
    assert "Task-1 waits at" in message
    assert f"hungry waits at {__file__}:{line} in " in message


def test_a_deadlock_lets_finally_blocks_run():
    ended: list[int] = []

    async def main() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.5)
            ended.append(now_ms())

    with pytest.raises(DeadlockError):
        run_virtual(main())
    assert ended == [500]


def test_a_program_that_spins_at_one_instant_is_stopped():
    async def main() -> None:
        for _ in iter(int, 1):
            await asyncio.sleep(0)

    with pytest.raises(DeadlockError, match=r"time stands still at 0 ms.*\n  Task-1 waits at"):
        run_virtual(main())
    assert MAX_TURNS_PER_INSTANT >= 10_000


# --- A crash ------------------------------------------------------------------------------------------------------


def test_after_a_crash_nothing_scheduled_runs():
    ran: list[str] = []
    begun: list[asyncio.Task[None]] = []

    async def bystander(name: str) -> None:
        try:
            await asyncio.sleep(0.01)
            ran.append(f"{name} went on")
        finally:
            ran.append(f"{name} ended")
            begun.append(asyncio.create_task(bystander("never begun")))
            await asyncio.sleep(0.01)
            ran.append(f"{name} cleaned up")

    async def main() -> None:
        tasks = [asyncio.create_task(bystander(name)) for name in ("first", "second")]
        await asyncio.sleep(0.005)
        loop.call_soon(ran.append, "next")
        loop.abandon()
        loop.call_soon(ran.append, "soon")
        loop.call_later(0, ran.append, "later")
        job = loop.run_in_executor(None, ran.append, "job")
        ran.append("to the next await")
        await asyncio.gather(job, *tasks)
        ran.append("main went on")

    loop = VirtualLoop()
    with pytest.raises(SimulationError, match="abandoned at 5 ms"):
        loop.run_until_complete(main())
    assert ran == ["to the next await"]
    loop.close()
    assert ran == ["to the next await", "first ended", "second ended"]


def test_a_crash_passes_through_the_public_door_and_takes_the_rest_of_its_instant_along():
    ran: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.call_later(1, loop.abandon)
        loop.call_later(1, ran.append, "at the same instant")
        await asyncio.sleep(3600)

    with pytest.raises(SimulationError, match="abandoned at 1000 ms"):
        run_virtual(main())
    assert ran == []


# --- Ctrl-C -------------------------------------------------------------------------------------------------------


@pytest.fixture
def takes_ctrl_c() -> Iterator[None]:
    """Ctrl-C raises, whatever this process was started by does with it."""
    theirs = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, theirs)


@pytest.mark.usefixtures("takes_ctrl_c")
def test_ctrl_c_cancels_main_once_lets_it_end_and_propagates():
    ended: list[int] = []

    async def main() -> None:
        try:
            await asyncio.sleep(1)
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(2)
            ended.append(now_ms())

    with pytest.raises(KeyboardInterrupt):
        run_virtual(main())
    assert ended == [3000]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("takes_ctrl_c")
def test_a_second_ctrl_c_does_not_wait():
    async def main() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_virtual(main())


@pytest.mark.usefixtures("takes_ctrl_c")
def test_ctrl_c_in_a_program_that_answers_it_with_a_result_still_propagates():
    async def main() -> str:
        try:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass
        return "kept"

    with pytest.raises(KeyboardInterrupt):
        run_virtual(main())


# --- Same seed, same log ------------------------------------------------------------------------------------------


def hash_of_little_world(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, str(LITTLE_WORLD), "5"]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


def test_the_log_of_a_world_is_equal_in_two_processes_with_any_hash_seed_and_under_load():
    quiet = [hash_of_little_world(seed) for seed in ("0", "1")]
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        loaded = hash_of_little_world("random")
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert len(quiet[0]) == 64
    assert {*quiet, loaded} == {quiet[0]}


Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["sleep", "put", "get", "job", "yield", "event", "limit"]), st.integers(0, 30)),
    max_size=12,
)


def log_of(programs: list[list[Step]]) -> list[tuple[int, str, Step]]:
    """Run one task for each program; return (ms, task, step) as the steps end."""
    log: list[tuple[int, str, Step]] = []

    async def act(queue: asyncio.Queue[int], lock: asyncio.Lock, kind: str, number: int) -> None:
        match kind:
            case "sleep":
                await asyncio.sleep(number / 1000)
            case "put":
                queue.put_nowait(number)
            case "get":
                await queue.get()
            case "job":
                await asyncio.to_thread(int, number)
            case "event":
                async with lock:
                    await asyncio.sleep(number / 3000)
            case "limit":
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(queue.get(), number / 1000)
            case _:
                await asyncio.sleep(0)

    async def run(queue: asyncio.Queue[int], lock: asyncio.Lock, program: list[Step]) -> None:
        task = asyncio.current_task()
        assert task is not None
        for step in program:
            await act(queue, lock, *step)
            log.append((now_ms(), task.get_name(), step))

    async def main() -> None:
        queue, lock = asyncio.Queue[int](), asyncio.Lock()
        await asyncio.gather(*(run(queue, lock, program) for program in programs))

    try:
        run_virtual(main())
    except DeadlockError:
        log.append((log[-1][0] if log else 0, "-", ("deadlock", 0)))
    return log


@given(st.lists(STEPS, min_size=1, max_size=6))
def test_any_program_gives_the_same_log_twice_and_time_never_goes_back(programs: list[list[Step]]):
    log = log_of(programs)
    assert log == log_of(programs)
    times = [ms for ms, _, _ in log]
    assert times == sorted(times)


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=200), st.integers())
def test_timers_run_by_time_then_by_submission_whatever_is_cancelled(delays: list[tuple[int, bool]], seed: int):
    loop, ran = VirtualLoop(), []
    timers = [loop.call_later(ms / 1000, ran.append, (ms, n)) for n, (ms, _) in enumerate(delays)]
    doomed = [timer for timer, (_, cancelled) in zip(timers, delays, strict=True) if cancelled]
    random.Random(seed).shuffle(doomed)
    for timer in doomed:
        timer.cancel()
    loop.call_later(0.051, loop.stop)
    loop.run_forever()
    loop.close()
    assert ran == sorted((ms, n) for n, (ms, cancelled) in enumerate(delays) if not cancelled)

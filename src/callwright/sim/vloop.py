"""An event loop whose clock is a number: it owns virtual time.

Time stands still while anything is ready to run, and then jumps to the next timer. So twelve minutes of a call take as
long as their callbacks do, and the order of all callbacks is a function of the program alone:

```
now = 40 ms   ready: a b c ......... run in the order they were asked for; what they ask for runs next, still at 40 ms
              timers: (60, 7) (60, 9) (75, 8) ......... ordered by (whole ms, order of asking)
now = 60 ms   ready: 7 9
```

The loop takes any asyncio program, with three differences. Timers count whole milliseconds, rounded up. Jobs for an
executor run at once, on the same thread, and their results arrive after a fixed latency. And there is no outside world:
reaching for a socket, a child process or a thread raises :class:`~callwright.errors.OutsideWorldError`.

Not deterministic on any loop, because they walk sets of objects in the order of their addresses: ``asyncio.wait``,
``asyncio.as_completed``, ``asyncio.TaskGroup``, ``asyncio.all_tasks`` and the clean-up of ``asyncio.Runner``. Use
``asyncio.gather``, :meth:`VirtualLoop.pending_tasks` and :func:`run_virtual`.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import functools
import gc
import heapq
import itertools
import math
import signal
import sys
import threading
import weakref
from asyncio import events, tasks
from asyncio.log import logger
from collections import deque
from contextvars import Context, copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, Unpack

from callwright.errors import DeadlockError, OutsideWorldError, SimulationError
from callwright.sim.outside import SealedLoop, sealed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterator
    from types import FrameType

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EXECUTOR_LATENCY_MS = 1
"""How long after its submission a job's result arrives; the least that keeps it from arriving at the same instant."""

MAX_TURNS_PER_INSTANT = 100_000
"""After so many rounds of callbacks without a step of the clock the program is taken to spin (about half a second)."""

MAX_CLOSES = 100
"""So often a coroutine of a closed loop may answer its end with another ``await`` before it is left as it is."""

_ROUNDING_MS = 1e-3
"""What a float's error may add to a time: a microsecond past a whole millisecond still counts as that millisecond."""

_STALE_TIMERS_MIN = 64
"""Below so many cancelled timers the heap is not worth sweeping."""

_ASYNCIO = str(Path(asyncio.__file__).parent)


class _State(enum.Enum):
    OPEN = "open"
    STOPPING = "stopping"
    ABANDONED = "abandoned"
    CLOSED = "closed"


class _Handle(asyncio.Handle):
    """A callback for this instant. Filled by hand: the base class costs half a microsecond more."""

    __slots__ = ()

    def __init__(self, callback: Any, args: tuple[Any, ...], loop: VirtualLoop, context: Context | None) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = self._source_traceback = None


class _Timer(asyncio.TimerHandle):
    """A callback for a later instant, ``_scheduled`` while it is in the heap. Filled by hand, as the other."""

    __slots__ = ()

    def __init__(
        self, due_ms: int, callback: Any, args: tuple[Any, ...], loop: VirtualLoop, context: Context | None
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = self._source_traceback = None
        self._when = due_ms / 1000
        self._scheduled = True


class VirtualLoop(SealedLoop):
    """An asyncio event loop in virtual time, for one thread.

    ``start_ms`` is what the clock shows at first. ``executor_latency_ms`` is the time between the submission of a job
    to an executor, which runs it, and the arrival of its result.
    """

    def __init__(self, *, start_ms: int = 0, executor_latency_ms: int = EXECUTOR_LATENCY_MS) -> None:
        self._now_ms = start_ms
        self._executor_latency_ms = executor_latency_ms
        self._state = _State.OPEN
        self._thread: int | None = None
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[int, int, _Timer]] = []
        self._stale_timers = 0
        self._sequence = itertools.count()
        self._tasks: dict[Any, None] = {}
        self._task_numbers = itertools.count(1)
        self._task_factory: Any = None
        self._asyncgens: weakref.WeakKeyDictionary[AsyncGenerator[Any, Any], None] = weakref.WeakKeyDictionary()
        self._exception_handler: Any = None
        self._debug = False

    def __repr__(self) -> str:
        return f"<VirtualLoop {self._state.value} at {self._now_ms} ms>"

    # Time

    def now_ms(self) -> int:
        """Virtual time in whole milliseconds."""
        return self._now_ms

    def time(self) -> float:
        """Virtual time in seconds: :meth:`now_ms` divided by 1000."""
        return self._now_ms / 1000

    # Callbacks

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Run ``callback`` at this instant, after everything that is ready already."""
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Like :meth:`call_soon`; from another thread it raises OutsideWorldError, as its timing would be real."""
        if self._thread not in (None, threading.get_ident()):
            raise OutsideWorldError("call_soon_threadsafe from another thread: virtual time has one thread only")
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run ``callback`` after ``delay`` seconds, rounded up to whole milliseconds."""
        due_ms = self._now_ms + math.ceil(delay * 1000 - _ROUNDING_MS)
        return self._call_at_ms(due_ms, callback, args, context)

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run ``callback`` when :meth:`time` is ``when`` seconds, rounded up to whole milliseconds."""
        return self._call_at_ms(math.ceil(when * 1000 - _ROUNDING_MS), callback, args, context)

    def _call_at_ms(
        self, due_ms: int, callback: Callable[..., object], args: tuple[Any, ...], context: Context | None
    ) -> asyncio.TimerHandle:
        timer = _Timer(due_ms, callback, args, self, context)
        heapq.heappush(self._timers, (due_ms, next(self._sequence), timer))
        return timer

    def _timer_handle_cancelled(self, handle: _Timer) -> None:
        """Count a cancelled timer, and sweep the heap when most of it is cancelled. Called by the handle itself."""
        if not handle._scheduled:
            return
        self._stale_timers += 1
        if self._stale_timers > max(_STALE_TIMERS_MIN, len(self._timers) // 2):
            self._timers[:] = [entry for entry in self._timers if not (entry[2] is handle or entry[2].cancelled())]
            heapq.heapify(self._timers)
            handle._scheduled = False
            self._stale_timers = 0

    # Running

    def run_forever(self) -> None:
        """Run until :meth:`stop`.

        Raises DeadlockError when nothing is left to wait for, or when the program spins without letting time pass.
        """
        self._check_open()
        if self._thread is not None or events._get_running_loop() is not None:
            raise RuntimeError("cannot run a virtual loop while another event loop is running in this thread")
        hooks = sys.get_asyncgen_hooks()
        self._thread = threading.get_ident()
        sys.set_asyncgen_hooks(firstiter=self._asyncgen_first, finalizer=self._asyncgen_dropped)
        events._set_running_loop(self)
        try:
            with sealed(self):
                self._run()
        finally:
            events._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)
            self._thread = None
            if self._state is _State.STOPPING:
                self._state = _State.OPEN

    def _run(self) -> None:
        turns = 0
        instant = self._now_ms
        while True:
            self._turn()
            if self._state is not _State.OPEN:
                return
            turns += 1
            if instant != self._now_ms:
                instant, turns = self._now_ms, 0
            elif turns >= MAX_TURNS_PER_INSTANT:
                raise DeadlockError(self._predicament(f"time stands still at {instant} ms: something spins"))

    def _turn(self) -> None:
        """Run what is ready, once; when nothing is, let time jump to the next timer first."""
        ready, timers = self._ready, self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)[2]._scheduled = False
            self._stale_timers -= 1
        if not ready and self._state is _State.OPEN:
            if not timers:
                raise DeadlockError(self._predicament(f"nothing is left to wait for at {self._now_ms} ms"))
            self._now_ms = max(self._now_ms, timers[0][0])
        while timers and timers[0][0] <= self._now_ms:
            timer = heapq.heappop(timers)[2]
            timer._scheduled = False
            if timer._cancelled:
                self._stale_timers -= 1
            else:
                ready.append(timer)
        for _ in range(len(ready)):
            if not ready:  # abandoned by the callback before
                return
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        """Run until ``future`` is done, and return its result or raise its exception.

        Raises DeadlockError as :meth:`run_forever` does, and SimulationError if the loop was abandoned meanwhile.
        """
        self._check_open()
        main: asyncio.Future[T] = asyncio.ensure_future(future, loop=self)  # type: ignore[arg-type]
        main.add_done_callback(self._stop_when_done)
        try:
            self.run_forever()
        finally:
            main.remove_done_callback(self._stop_when_done)
        if self._state is _State.ABANDONED:
            raise SimulationError(f"the world was abandoned at {self._now_ms} ms")
        if not main.done():
            raise RuntimeError("the virtual loop was stopped before its future was done")
        return main.result()

    def _stop_when_done(self, main: asyncio.Future[Any]) -> None:
        if main.cancelled() or not isinstance(main.exception(), (KeyboardInterrupt, SystemExit)):
            self.stop()  # those two have left run_forever by themselves

    def stop(self) -> None:
        """Leave :meth:`run_forever` after the present round of callbacks."""
        if self._state is _State.OPEN:
            self._state = _State.STOPPING

    def abandon(self) -> None:
        """Stop dead, as a killed process does: nothing that is or will be scheduled runs any more.

        The callback that calls this goes on to its next ``await``. Pending coroutines are ended by :meth:`close`; their
        ``finally`` blocks run there, but nothing that they schedule does.
        """
        self._state = _State.ABANDONED
        self._ready.clear()
        self._ready = deque(maxlen=0)
        self._timers.clear()

    def close(self) -> None:
        """Close the loop, and end the coroutines of tasks that are still pending, in the order of their creation."""
        if self._thread is not None:
            raise RuntimeError("cannot close a running loop")
        if self._state is _State.CLOSED:
            return
        self.abandon()
        with sealed(self):
            while self._tasks:
                task = next(iter(self._tasks))
                del self._tasks[task]
                self._bury(task)
        self._state = _State.CLOSED

    def _bury(self, task: Any) -> None:
        """End the coroutine of a task that will never go on; what it does on its way out reaches nobody."""
        task._log_destroy_pending = False
        outer = events._get_running_loop()
        events._set_running_loop(self)
        tasks._enter_task(self, task)
        try:
            for _ in range(MAX_CLOSES):
                with contextlib.suppress(Exception, asyncio.CancelledError):
                    task.get_coro().close()
                    return
        finally:
            tasks._leave_task(self, task)
            events._set_running_loop(outer)

    def is_running(self) -> bool:
        """Whether the loop is inside :meth:`run_forever`."""
        return self._thread is not None

    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._state is _State.CLOSED

    def _check_open(self) -> None:
        if self._state in (_State.ABANDONED, _State.CLOSED):
            raise RuntimeError(f"the virtual loop is {self._state.value}")

    def _predicament(self, what: str) -> str:
        pending = [f"\n  {task.get_name()} waits at {_waits_at(task)}" for task in self.pending_tasks()]
        return f"{what}, but {len(pending) or 'no'} task(s) are not done; who should wake them?{''.join(pending)}"

    # Tasks and futures

    def create_future(self) -> asyncio.Future[Any]:
        """Make a future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
        **options: Any,
    ) -> asyncio.Task[T]:
        """Start a task. Without a name it is ``Task-N``, the Nth of this loop, so that names repeat run by run.

        A pending task is kept alive by the loop. A task factory is called with ``name``, ``context`` and ``options``.
        """
        if self._state is _State.CLOSED:
            raise RuntimeError("the virtual loop is closed")
        number = next(self._task_numbers)
        label = f"Task-{number}" if name is None else str(name)
        make = self._task_factory or _plain_task
        task: asyncio.Task[T] = make(self, coro, name=label, context=context, **options)
        if not task.done():
            self._tasks[task] = None
            task.add_done_callback(self._tasks.pop, context=context)
        return task

    def pending_tasks(self) -> list[asyncio.Task[Any]]:
        """List the tasks that are not done, in the order of their creation."""
        return [task for task in self._tasks if not task.done()]

    def cancel_pending(self) -> None:
        """Cancel what is pending, in the order of creation, run it to its end, and close asynchronous generators.

        An exception of a task goes to the exception handler. Raises DeadlockError if a cancelled task does not end.
        Does nothing in an abandoned loop.
        """
        if self._state is _State.ABANDONED:
            return
        pending = self.pending_tasks()
        for task in pending:
            task.cancel()
        if pending:
            self.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        for task in pending:
            if not task.cancelled() and (error := task.exception()) is not None:
                message = f"task {task.get_name()!r} failed when it was cancelled at the end"
                self.call_exception_handler({"message": message, "exception": error, "task": task})
        self.run_until_complete(self.shutdown_asyncgens())

    def set_task_factory(self, factory: Any) -> None:
        """Make tasks with ``factory(loop, coro, *, name, context, ...)``; None for plain tasks."""
        self._task_factory = factory

    def get_task_factory(self) -> Any:
        """Return the task factory, or None."""
        return self._task_factory

    # Executors

    def run_in_executor(self, executor: object, func: Callable[[Unpack[Ts]], T], *args: *Ts) -> asyncio.Future[T]:
        """Run ``func(*args)`` at once, on this thread; its result or exception arrives ``executor_latency_ms`` later.

        The executor is not used. As in a thread, the job sees no running loop, and cancelling the future does not
        undo it. In an abandoned loop the job does not run.
        """
        future: asyncio.Future[T] = self.create_future()
        if self._state is _State.ABANDONED:
            return future
        running = events._get_running_loop()
        events._set_running_loop(None)
        try:
            result = func(*args)
        except Exception as error:
            deliver: Callable[[], None] = functools.partial(future.set_exception, error)
        else:
            deliver = functools.partial(future.set_result, result)
        finally:
            events._set_running_loop(running)
        self._call_at_ms(self._now_ms + self._executor_latency_ms, _unless_done, (future, deliver), None)
        return future

    def set_default_executor(self, executor: object) -> None:
        """Accept an executor, and do not use it."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncio's own
        """Return at once: there is no executor."""

    # Asynchronous generators

    def _asyncgen_first(self, agen: AsyncGenerator[Any, Any]) -> None:
        self._asyncgens[agen] = None

    def _asyncgen_dropped(self, agen: AsyncGenerator[Any, Any]) -> None:
        self._asyncgens.pop(agen, None)
        if self._state in (_State.OPEN, _State.STOPPING):
            self.call_soon(self.create_task, agen.aclose())

    async def shutdown_asyncgens(self) -> None:
        """Close the asynchronous generators that are not finished, in the order in which they were begun."""
        for agen in list(self._asyncgens):
            try:
                await agen.aclose()
            except Exception as error:
                message = f"an asynchronous generator failed when it was closed: {agen!r}"
                self.call_exception_handler({"message": message, "exception": error, "asyncgen": agen})

    # Errors and debugging

    def set_exception_handler(self, handler: Any) -> None:
        """Let ``handler(loop, context)`` take exceptions that nobody awaits; None for the log."""
        self._exception_handler = handler

    def get_exception_handler(self) -> Any:
        """Return the exception handler, or None."""
        return self._exception_handler

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Hand an exception that nobody awaits to the exception handler."""
        (self._exception_handler or VirtualLoop.default_exception_handler)(self, context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Log ``context`` to the ``asyncio`` logger."""
        details = [f"{key}: {value!r}" for key, value in context.items() if key not in ("message", "exception")]
        lines = [context.get("message", "unhandled exception in a virtual loop"), f"at {self._now_ms} ms", *details]
        logger.error("\n".join(lines), exc_info=context.get("exception"))

    def get_debug(self) -> bool:
        """Whether futures remember where they were made."""
        return self._debug

    def set_debug(self, enabled: bool) -> None:
        """Let futures remember where they were made, and asyncio make its own checks."""
        self._debug = enabled


def _plain_task(loop: VirtualLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
    return asyncio.Task(coro, loop=loop, **options)


def _unless_done(future: asyncio.Future[Any], deliver: Callable[[], None]) -> None:
    if not future.done():
        deliver()


def _waits_at(task: asyncio.Task[Any]) -> str:
    """Name the innermost place outside asyncio where ``task`` waits, as ``file:line in function``."""
    place = "an unknown place"
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame: FrameType | None = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is not None and not frame.f_code.co_filename.startswith(_ASYNCIO):
            place = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    return place


def run_virtual(
    main: Coroutine[Any, Any, T], *, start_ms: int = 0, executor_latency_ms: int = EXECUTOR_LATENCY_MS
) -> T:
    """Run ``main`` in a new virtual loop, and return its result; what is still pending then is cancelled in order.

    Ctrl-C cancels ``main``, lets it end, and raises KeyboardInterrupt; a second one raises it at once. Raises what
    ``main`` raises, DeadlockError when nothing is left to wait for, OutsideWorldError when something reaches for a
    socket, a child process or a thread, and SimulationError when the loop was abandoned.

    The cyclic garbage collector rests meanwhile: when it runs depends on what the process did before, and it ends
    asynchronous generators.
    """
    loop = VirtualLoop(start_ms=start_ms, executor_latency_ms=executor_latency_ms)
    collects = gc.isenabled()
    gc.disable()
    try:
        task = loop.create_task(main)
        with _interrupt_cancels(task):
            result = loop.run_until_complete(task)
    except BaseException:
        with contextlib.suppress(DeadlockError):
            loop.cancel_pending()
        raise
    else:
        loop.cancel_pending()
        return result
    finally:
        loop.close()
        if collects:
            gc.enable()


@contextlib.contextmanager
def _interrupt_cancels(task: asyncio.Task[Any]) -> Iterator[None]:
    """Let the first Ctrl-C cancel ``task`` and the next one interrupt at once; either leaves as KeyboardInterrupt."""
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not ours:
        yield
        return
    interrupts = itertools.count()

    def on_interrupt(signum: int, frame: FrameType | None) -> None:
        if next(interrupts) or task.done():
            raise KeyboardInterrupt
        task.cancel()

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    except asyncio.CancelledError:
        if next(interrupts):
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if next(interrupts):
        raise KeyboardInterrupt

"""Plays calls in this process, or in several at the same time.

```
this process                               worker: a fresh interpreter
   | task ------------------------------------> | plays, measures, writes the files
   | <------------------- run, or what it raised |
   | closes the pipe -------------------------> | ends
```

A worker has one pipe and one task at a time. It never sees Ctrl-C: whoever gave it the task does, and ends it. Where
that one is ended without a word, the worker ends by itself, and a program that takes its call ends with it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

from callwright.cli.plan import Plan
from callwright.cli.playing import play_one, save
from callwright.cli.report import PAGE, write_calls, write_export
from callwright.errors import SimulationError
from callwright.measure.batch import RunResult
from callwright.sim.children import ctrl_c_held_back, end_with_parent

Outcome: TypeAlias = RunResult | Exception
"""What became of a task: a measured run, or what playing it raised."""
Pause: TypeAlias = Callable[[Plan, int, Exception, int], float | None]
"""In how many seconds a call that raised is played again, while so many others go on; None where it is not.

May raise what ends all calls.
"""


@dataclass(frozen=True, slots=True)
class Task:
    """One call that is to be played, and where its files go; None for no files."""

    plan: Plan
    seed: int
    out: Path | None = None
    export: Path | None = None
    has_page: bool = False
    """Whether its page is among the files in ``out``."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """How calls on a live server are played: so many at once, whatever the number of jobs, and again after a pause.

    Each has a process of its own, so that measuring one does not make another stutter. What one of them raises, and
    what no pause helps, ends all: time is money there.
    """

    at_once: int
    pause_s: Pause


def cores() -> int:
    """How many processes this one may keep busy."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Batch:
    """Calls that are played ``jobs`` at a time and taken in their order. Leave it, and nothing plays any more."""

    def __init__(self, tasks: Sequence[Task], jobs: int, live: Waiting | None = None) -> None:
        if live:
            self._outcomes = _elsewhere(tasks, min(live.at_once, len(tasks)), live.pause_s)
        else:
            self._outcomes = _here(tasks) if jobs == 1 else _elsewhere(tasks, min(jobs, len(tasks)))
        self._arrived: dict[int, Outcome] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, where: TracebackType | None
    ) -> None:
        self._outcomes.close()

    def run(self, number: int) -> RunResult:
        """The run of this task, once it is there. Raises what playing it raised."""
        while number not in self._arrived:
            came, outcome = next(self._outcomes)
            self._arrived[came] = outcome
        found = self._arrived[number]
        if isinstance(found, Exception):
            raise found
        return found

    def finished(self, numbers: Iterable[int]) -> list[RunResult]:
        """The runs of those of these tasks that are there by now."""
        outcomes = [self._arrived.get(number) for number in numbers]
        return [outcome for outcome in outcomes if isinstance(outcome, RunResult)]


def _here(tasks: Sequence[Task]) -> Generator[tuple[int, Outcome], None, None]:
    """Play the tasks in this process; yields the number of each with its outcome."""
    yield from ((number, _outcome(task)) for number, task in enumerate(tasks))


def _elsewhere(
    tasks: Sequence[Task], jobs: int, pause_s: Pause | None = None
) -> Generator[tuple[int, Outcome], None, None]:
    """Play the tasks in as many processes; yields as ``_here`` does, as the outcomes come in.

    With ``pause_s`` some are played again: after a pause, or once another one is over, and before all that come after.
    What any other raises is raised at once.
    """
    with _workers(jobs) as workers:
        waiting = deque(range(len(tasks)))
        busy: dict[Connection, int] = {}
        free = list(workers)
        due_s = 0.0
        while busy or (free and waiting):
            while free and waiting and due_s <= time.monotonic():
                pipe, number = free.pop(0), waiting.popleft()
                with contextlib.suppress(BrokenPipeError):  # one that died is told when its answer is read
                    pipe.send(tasks[number])
                busy[pipe] = number
            patience_s = max(0.0, due_s - time.monotonic()) if free and waiting else None
            for pipe in [each for each in wait(list(busy), patience_s) if isinstance(each, Connection)]:
                number = busy.pop(pipe)
                outcome = _answer(pipe, workers[pipe], tasks[number])
                if workers[pipe].exitcode is None:  # one that has died plays nothing more; its task says so in its turn
                    free.append(pipe)
                if pause_s and isinstance(outcome, Exception):
                    again_in_s = pause_s(tasks[number].plan, tasks[number].seed, outcome, len(busy))
                    if again_in_s is None:
                        raise outcome
                    due_s = time.monotonic() + again_in_s
                    waiting.appendleft(number)
                else:
                    due_s = 0.0
                    yield number, outcome


def _answer(pipe: Connection, worker: BaseProcess, task: Task) -> Outcome:
    """What a worker sends back; of one that has died, a SimulationError."""
    try:
        outcome: Outcome = pipe.recv()
    except (EOFError, OSError):
        worker.join()
        return SimulationError(
            f"the process that played {task.plan.scenario.name} seed {task.seed} ended with exit code "
            f"{worker.exitcode}; play it alone: {task.plan.replay(task.seed)}"
        )
    return outcome


@contextlib.contextmanager
def _workers(count: int) -> Iterator[dict[Connection, BaseProcess]]:
    """Processes that wait for tasks, each by its pipe; none of them outlives this."""
    context = multiprocessing.get_context("spawn")
    workers: dict[Connection, BaseProcess] = {}
    try:
        with ctrl_c_held_back():
            for _ in range(count):
                ours, theirs = context.Pipe()
                worker: BaseProcess = context.Process(target=_work, args=(theirs,), daemon=True)
                worker.start()
                theirs.close()
                workers[ours] = worker
        yield workers
    finally:
        for worker in workers.values():
            worker.terminate()
        for pipe, worker in workers.items():
            worker.join()
            pipe.close()


def _work(pipe: Connection) -> None:
    """Play one task after the other, until there is nobody any more who gives them."""
    end_with_parent()  # a call by the wall clock would go on for minutes
    with pipe, contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            pipe.send(_portable(_outcome(pipe.recv())))


def _outcome(task: Task) -> Outcome:
    try:
        played = play_one(task.plan, task.seed)
        if task.out:
            directory = save(played, task.out)
            if task.has_page:
                write_calls([played], directory / PAGE)
        if task.export:
            write_export(played, task.export)
    except Exception as problem:  # an agent's own code may raise anything
        return problem
    return played.run


def _portable(outcome: Outcome) -> Outcome:
    """The outcome as it can be sent; what was raised brings with it where, which another process does not know."""
    if isinstance(outcome, RunResult):
        return outcome
    where = "".join(traceback.format_exception(outcome))
    outcome.add_note(f"in a worker:\n{where}")
    try:
        pickle.loads(pickle.dumps(outcome))
    except Exception:  # an exception may be made in any way, so that nothing is known of how it fails
        return RuntimeError(where)
    return outcome

"""Calls in several processes: the same words and bytes as in one, and nothing left behind."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cli.calling import callwright, interrupted, variant

from callwright.cli.jobs import Batch, Task
from callwright.errors import CallwrightError, IllegalTransition, SimulationError


def test_any_number_of_jobs_tells_the_same_in_the_same_order(tmp_path: Path) -> None:
    arguments = ("measure", variant(tmp_path, "own"), "pickup", "--client", "naive", "--json")
    alone = callwright(*arguments)
    together = callwright(*arguments, "--jobs", 2, "--out", tmp_path)
    assert (together.exit_code, together.stdout, together.stderr) == (1, alone.stdout, alone.stderr)
    assert [remark.split(":")[0] for remark in alone.stderr.splitlines()] == [
        "FAILED own seed 1",
        "FAILED pickup seed 1",
    ]
    assert len(list(tmp_path.glob("*-naive-1/call.wav"))) == 2


@pytest.mark.parametrize("jobs", ["0", "many"])
def test_a_number_of_jobs_that_makes_no_sense_is_refused(jobs: str) -> None:
    result = callwright("measure", "check-in", "--jobs", jobs)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--jobs" in result.stderr


def test_ctrl_c_ends_all_processes_and_keeps_what_was_finished() -> None:
    measure = ("measure", "check-in", "--client", "naive", "--json", "--runs", 200, "--jobs", 2)
    process = interrupted("FAILED check-in seed 1: ", *measure)
    assert process.returncode == 130, process.stderr
    assert "Traceback" not in process.stderr
    assert " of 200 runs of check-in\n" in process.stderr
    assert process.stdout.count("\n") == 1


@dataclass(frozen=True)
class Broken:
    """A plan that cannot be played."""

    problem: type[Exception] | None
    live: None = None

    @property
    def setup(self) -> Any:
        if self.problem is IllegalTransition:
            raise IllegalTransition("turns", "idle", "Reply")
        if self.problem:
            raise self.problem("first", "second")
        os._exit(7)

    @property
    def scenario(self) -> Any:
        return self

    name = "broken"

    def replay(self, seed: int) -> str:
        return f"play {seed}"


@dataclass(frozen=True)
class Endless:
    """A plan whose call goes on until its process ends, which the end of what a pipe says tells."""

    pipe: Path
    live: None = None

    @property
    def setup(self) -> Any:
        with self.pipe.open("w") as pipe:
            print("up", file=pipe, flush=True)
            threading.Event().wait(60)


class Particular(CallwrightError):
    """It is made of two things, and cannot be sent."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} {other}")


def test_what_a_call_raises_reads_the_same_from_another_process_and_a_process_that_dies_is_told() -> None:
    tasks: list[Any] = [Task(Broken(problem), 1) for problem in (KeyError, IllegalTransition, Particular, None)]
    alone, together = Batch(tasks, 1), Batch(tasks, 2)
    with together:
        for number, problem in ((0, KeyError), (1, IllegalTransition)):
            with pytest.raises(problem) as here:
                alone.run(number)
            with pytest.raises(problem) as there:
                together.run(number)
            assert str(there.value) == str(here.value)
            assert "test_jobs.py" in there.value.__notes__[0]
        with pytest.raises(RuntimeError, match="Particular: first second"):
            together.run(2)
        with pytest.raises(SimulationError, match=r"broken seed 1 ended with exit code 7; .* alone: play 1$"):
            together.run(3)


def test_an_illegal_transition_can_be_sent() -> None:
    problem = pickle.loads(pickle.dumps(IllegalTransition("turns", "idle", "Reply")))
    assert (str(problem), problem.state) == ("turns: Reply is not allowed in state idle", "idle")


def test_a_process_ends_with_the_one_that_gave_it_a_call_however_that_ends(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    play = "from tests.cli.test_jobs import *; Batch([Task(Endless(Path(sys.argv[1])), 1)], 2).run(0)"
    with subprocess.Popen([sys.executable, "-c", play, str(pipe)]) as process, pipe.open() as reading:
        assert reading.readline() == "up\n"
        process.kill()
        began_s = time.monotonic()
        assert reading.read() == ""
        assert time.monotonic() - began_s < 30

"""Recogniser and voice in processes of their own, with stand-ins for the two packages."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import TextIO

import numpy as np
import pytest

from callwright.errors import UsageError
from callwright.sim.open.workers import PACKAGES, Worker, check_installed, open_senses

STAND_INS = Path(__file__).parent / "packages"
ROOT = Path(__file__).parents[3]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the extra were installed; the processes find their modules where this one does."""
    for place in (ROOT, STAND_INS):
        monkeypatch.syspath_prepend(str(place))


@pytest.mark.usefixtures("installed")
def test_they_hear_and_speak_and_a_failure_is_of_one_errand_alone() -> None:
    async def scene() -> None:
        async with open_senses() as senses:
            assert await senses.words(np.zeros(16_000, np.int16)) == ""
            with pytest.raises(RuntimeError, match="the engine has failed"):
                await senses.speak("nothing can be said of this")
            with pytest.raises(BrokenExecutor):
                await senses.speak("the process dies of this")
            piece = await senses.speak("Good morning.")
            assert len(piece.pcm) == 960 * len("Good morning.")
            assert [word.text for word in piece.words] == ["Good", "morning."]

    asyncio.run(scene())


@pytest.mark.parametrize("absent", [PACKAGES, PACKAGES[:1], PACKAGES[1:]])
@pytest.mark.usefixtures("installed")
def test_what_is_not_installed_is_told_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, absent: tuple[str, ...]
) -> None:
    check_installed()
    for package in absent:
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=r"pip install 'callwright\[local\]'") as told:
        check_installed()
    assert [package for package in PACKAGES if package in str(told.value)] == list(absent)


@pytest.mark.usefixtures("installed")
def test_an_engine_that_cannot_be_loaded_is_told_instead_of_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_IS_BROKEN", "yes")

    async def scene() -> None:
        async with open_senses():
            raise AssertionError("it is not to come to that")

    with pytest.raises(UsageError, match="cannot be loaded here"):
        asyncio.run(scene())


def stay(pipe: str) -> None:
    """Hold a pipe, whose end tells that of this process, and see no Ctrl-C."""
    assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    held.append(Path(pipe).open("w"))  # noqa: SIM115
    print("up", file=held[0], flush=True)


held: list[TextIO] = []


def begin_and_wait() -> None:
    """Begin a process, and be there until killed."""
    worker = Worker(dir, stay)
    asyncio.run(worker.run(sys.argv[1]))
    sys.stdin.read()


def test_a_process_without_work_ends_with_the_one_that_began_it_however_that_ends(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    begin = "from tests.sim.open.test_workers import *; begin_and_wait()"
    command = [sys.executable, "-c", begin, str(pipe)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=ROOT) as process, pipe.open() as reading:
        assert reading.readline() == "up\n"
        process.kill()
        assert select.select([reading], [], [], 30)[0]
        assert reading.read() == ""

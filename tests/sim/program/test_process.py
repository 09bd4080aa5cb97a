"""A client's process begins with its call and is gone with it, whatever it has started."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import pytest

from callwright.errors import UsageError
from callwright.sim.program.process import OUTPUT_BYTES, Program, running


def never() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


def fails_to_connect(program: Program, hidden: Sequence[str] = ()) -> str:
    """What is told of a program that does not come to the audio socket."""

    async def try_it() -> None:
        async with running(program, {}, hidden) as process:
            await process.connects(never())

    with pytest.raises(UsageError) as told:
        asyncio.run(try_it())
    return str(told.value)


def test_a_program_that_ends_before_it_connects_is_told_with_its_last_words() -> None:
    told = fails_to_connect(Program("sh -c 'for n in 1 2 3 4 5 6 7; do echo line $n; done; echo no key >&2; exit 3'"))
    assert "ended (exit code 3) before it connected to CALLWRIGHT_AUDIO_URL; its last lines:" in told
    assert told.endswith("\n  line 4\n  line 5\n  line 6\n  line 7\n  no key")
    assert fails_to_connect(Program("true")).endswith(
        "(exit code 0) before it connected to CALLWRIGHT_AUDIO_URL; it printed nothing"
    )
    assert "ended (signal SIGKILL)" in fails_to_connect(Program("sh -c 'kill -9 $$'"))


@pytest.mark.skipif(not hasattr(signal, "SIGRTMIN"), reason="there are no real-time signals here")
def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    number = signal.SIGRTMIN + 1
    assert f"ended (signal {number})" in fails_to_connect(Program(f"sh -c 'kill -{number} $$'"))


def test_of_its_last_words_no_terminal_obeys_one_and_no_key_and_card_number_is_told() -> None:
    printed = r"\033[2J\033]0;title\007 key k-1\r\n\n\tcard 4111 1111 1111 1111\r" + "x" * 1_000
    told = fails_to_connect(Program(f"printf '{printed}'"), hidden=["k-1"])
    lines = told.partition("its last lines:\n  ")[2].split("\n  ")
    assert lines[:2] == ["?[2J?]0;title? key ***", " card **** **** **** 1111"]
    assert all(line.isprintable() for line in lines)
    assert len(lines[2]) == 399


def test_a_program_that_does_not_connect_in_time_is_told_and_ended() -> None:
    told = fails_to_connect(Program("sleep 60", connects_within_ms=100))
    assert "'sleep 60' did not connect to CALLWRIGHT_AUDIO_URL within 0.1 s; it printed nothing" in told


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("", "got nothing"),
        ("a 'b", "No closing quotation"),
        ("no-such-program -x", "no-such-program: cannot be started"),
    ],
)
def test_a_command_that_starts_nothing_is_wrong_use(command: str, told: str) -> None:
    async def start() -> None:
        async with running(Program(command), {}):
            pass

    with pytest.raises(UsageError, match=told):
        asyncio.run(start())


async def alive(pipe: Path) -> TextIO:
    """A pipe whose other end is held by somebody who said so; there is no more to read once nobody holds it."""
    reading = await asyncio.to_thread(pipe.open)
    assert await asyncio.to_thread(reading.readline) == "up\n"
    return reading


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_what_it_has_started_ends_with_it(pipe: Path) -> None:
    ignores = "trap '' TERM"
    script = f"{ignores}; ({ignores}; echo up; exec sleep 60) > {pipe} & wait"

    async def take() -> TextIO:
        async with running(Program(f'sh -c "{script}"'), {}) as process:
            reading = await alive(pipe)
            await process.end(within_s=0.1)
            assert process.code == "signal SIGKILL"
        return reading

    with asyncio.run(take()) as reading:
        assert reading.read() == ""


def test_a_call_that_is_broken_off_ends_it(pipe: Path) -> None:
    readings = []

    async def take() -> None:
        async with running(Program(f"sh -c '(echo up; exec sleep 60) > {pipe}'"), {}):
            readings.append(await alive(pipe))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(take())
    with readings[0] as reading:
        assert reading.read() == ""


def test_whoever_stops_waiting_for_its_end_has_it_killed(pipe: Path) -> None:
    script = f"(trap '' TERM; echo up; exec sleep 60) > {pipe} & trap '' TERM; exec sleep 60"
    readings = []

    async def take() -> None:
        async with running(Program(f'sh -c "{script}"'), {}) as process:
            readings.append(await alive(pipe))
            ending = asyncio.get_running_loop().create_task(process.end(within_s=60))
            asyncio.get_running_loop().call_soon(ending.cancel)
            with pytest.raises(asyncio.CancelledError):
                await ending
            assert await process.goes(10)
            assert process.code == "signal SIGKILL"

    asyncio.run(take())
    with readings[0] as reading:
        assert reading.read() == ""


def test_it_is_told_where_everything_is_and_the_last_of_what_it_prints_is_kept() -> None:
    async def ask() -> bytes:
        script = "echo at $CALLWRIGHT_AUDIO_URL; head -c 1100000 /dev/zero | tr '\\0' x; echo end >&2"
        async with running(Program(f'sh -c "{script}"'), {"CALLWRIGHT_AUDIO_URL": "ws://here"}) as process:
            assert await process.goes()
            assert process.printed(2_000_000).startswith(b"at ws://here\n")
            return process.printed()

    printed = asyncio.run(ask())
    assert len(printed) == OUTPUT_BYTES
    assert printed.endswith(b"xend\n")

"""A recording never waits for a disk on the loop, never grows in memory, and is a whole file at any time."""

from __future__ import annotations

import asyncio
import resource
import signal
import subprocess
import sys
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from callwright.audio.encodings import ENCODE
from callwright.audio.formats import PCM16_24K, PCMU_8K, AudioFormat
from callwright.runtime.tape import BLOCKS_MAX, PATIENCE_MS, Block, StereoFile, Tape
from callwright.sim.vloop import run_virtual

SECOND = Block([PCMU_8K.silence(20)] * 50, [(800, memoryview(ENCODE[PCMU_8K.encoding](np.full(80, 4_988, np.int16))))])


def frames(path: Path) -> int:
    with wave.open(str(path)) as file:
        assert len(file.readframes(file.getnframes())) == 4 * file.getnframes()
        return file.getnframes()


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A disk that takes no more than so many bytes of a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_the_file_is_whole_behind_every_block(tmp_path: Path) -> None:
    file = StereoFile(tmp_path / "call.wav", PCMU_8K, PCMU_8K)
    for count in (1, 2, 3):
        file.append(SECOND)
        assert frames(tmp_path / "call.wav") == count * 8_000
    file.close()


def test_what_was_heard_lies_where_its_block_says(tmp_path: Path) -> None:
    file = StereoFile(tmp_path / "call.wav", PCMU_8K, PCMU_8K)
    file.append(SECOND)
    file.close()
    sound = np.frombuffer((tmp_path / "call.wav").read_bytes()[44:], "<i2").reshape(-1, 2)
    assert np.flatnonzero(sound[:, 1]).tolist() == list(range(800, 880))
    assert not sound[:, 0].any()


@pytest.mark.parametrize(("far", "agent"), [(PCM16_24K, PCMU_8K), (PCMU_8K, PCM16_24K)])
def test_a_line_of_two_rates_is_recorded_at_that_of_its_output(
    far: AudioFormat, agent: AudioFormat, tmp_path: Path
) -> None:
    file = StereoFile(tmp_path / "call.wav", far, agent)
    file.append(Block([far.silence(20)] * 50, []))
    file.close()
    assert frames(tmp_path / "call.wav") == agent.rate_hz


def test_a_process_that_is_killed_leaves_a_file_that_is_right_up_to_its_last_block(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from callwright.runtime.tape import *\n"
        "from callwright.audio.formats import PCMU_8K\n"
        "file = StereoFile(Path(sys.argv[1]), PCMU_8K, PCMU_8K)\n"
        "while True: file.append(Block([PCMU_8K.silence(20)] * 50, [])); print(flush=True)"
    )
    path = tmp_path / "call.wav"
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        for _ in range(5):
            assert writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert frames(path) >= 5 * 8_000


def test_more_than_the_disk_takes_ends_the_recording_and_says_so(tmp_path: Path) -> None:
    failed: list[str] = []

    async def fill() -> None:
        tape = Tape(StereoFile(tmp_path / "call.wav", PCMU_8K, PCMU_8K), failed.append)
        for _ in range(BLOCKS_MAX + 5):  # all in one instant: the disk takes none of them meanwhile
            tape.add(SECOND)
        await tape.close()

    run_virtual(fill())
    assert failed == ["the disk does not keep up"]
    assert frames(tmp_path / "call.wav") == BLOCKS_MAX * 8_000


def test_a_disk_that_hangs_holds_the_end_of_a_call_up_for_a_bounded_time(tmp_path: Path) -> None:
    failed: list[str] = []

    async def close() -> float:
        tape = Tape(StereoFile(tmp_path / "call.wav", PCMU_8K, PCMU_8K), failed.append)
        tape.add(SECOND)
        await tape.close()
        return asyncio.get_running_loop().time()

    assert run_virtual(close(), executor_latency_ms=60_000) == PATIENCE_MS / 1000
    assert failed == ["the disk does not take the rest"]


def test_a_failure_is_told_once_and_later_blocks_do_nothing(tmp_path: Path) -> None:
    failed: list[str] = []

    async def write() -> None:
        tape = Tape(StereoFile(tmp_path / "none" / "call.wav", PCMU_8K, PCMU_8K), failed.append)
        for _ in range(3):
            tape.add(SECOND)
            await asyncio.sleep(1)
        await tape.close()

    run_virtual(write())
    assert failed == ["No such file or directory"]


def test_what_is_dropped_is_off_the_disk_whatever_still_waited(tmp_path: Path) -> None:
    async def drop() -> None:
        tape = Tape(StereoFile(tmp_path / "call.wav", PCMU_8K, PCMU_8K), pytest.fail)
        tape.add(SECOND)
        await asyncio.sleep(1)
        assert (tmp_path / "call.wav").exists()
        tape.add(SECOND)
        tape.drop()
        await tape.close()

    run_virtual(drop())
    assert list(tmp_path.iterdir()) == []


def test_what_is_dropped_is_off_the_disk_although_the_disk_was_full(tmp_path: Path) -> None:
    failed: list[str] = []

    async def drop() -> None:
        tape = Tape(StereoFile(tmp_path / "call.wav", PCMU_8K, PCMU_8K), failed.append)
        for _ in range(3):
            tape.add(SECOND)
            await asyncio.sleep(1)
        assert (tmp_path / "call.wav").exists()
        tape.drop()
        await tape.close()

    with files_of_at_most(40_000):
        run_virtual(drop())
    assert failed == ["File too large"]
    assert list(tmp_path.iterdir()) == []

"""A recording on its way to the disk: written in blocks by a thread, so that the loop never waits for a disk.

What waits to be written is bounded: where the disk does not keep up, the recording ends there and says so. Behind each
block the file's header is brought up to date: a process that is killed leaves a file that is right up to the last one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from callwright.audio.encodings import DECODE, ENCODE
from callwright.audio.formats import PCM, AudioFormat, Encoding
from callwright.audio.resample import Resampler
from callwright.audio.wav import wav_header
from callwright.ids import Ms
from callwright.runtime.played import Placed

BLOCKS_MAX: Final = 30
"""So many blocks may wait for the disk."""
PATIENCE_MS: Final[Ms] = 3_000
"""So long the end of a call waits for the disk."""
CHANNELS: Final = 2

_DISK: Final = ThreadPoolExecutor(4, "recording")  # for all calls of the process; no thread starts before its first job


@dataclass(frozen=True, slots=True)
class Block:
    """Both sides of a stretch of a call, in the formats of its line."""

    far: Sequence[bytes]
    """The far end's frames, in a row."""
    agent: Sequence[Placed]
    """What was heard of the agent, by bytes from the start of the block."""


class StereoFile:
    """A WAV file of 16 bits at the rate of the line's output, far end left and agent right. Its methods block."""

    def __init__(self, path: Path, far: AudioFormat, agent: AudioFormat) -> None:
        self._path = path
        self._decode = DECODE[far.encoding]
        self._resampler = Resampler(far.rate_hz, agent.rate_hz)
        self._agent = agent
        self._file: BinaryIO | None = None
        self._bytes = 0

    def append(self, block: Block) -> None:
        """Write a block, then the header. The first block creates the file. Raises OSError."""
        data = ENCODE[Encoding.PCM16](np.stack(self._sides(block), axis=1).ravel())
        if self._file is None:
            self._file = self._path.open("xb")
            self._file.write(self._header())
        self._file.seek(0, SEEK_END)
        self._file.write(data)
        self._file.flush()
        self._bytes += len(data)
        self._file.seek(0)
        self._file.write(self._header())
        self._file.flush()

    def close(self) -> None:
        """No more is written; idempotent."""
        if self._file is not None:
            self._file.close()

    def delete(self) -> None:
        """Take the file away, if there is one."""
        self.close()
        if self._file is not None:
            self._path.unlink(missing_ok=True)

    def _header(self) -> bytes:
        return wav_header(self._agent.rate_hz, CHANNELS, self._bytes)

    def _sides(self, block: Block) -> tuple[PCM, PCM]:
        far = self._resampler.process(self._decode(b"".join(block.far)))
        agent = np.zeros_like(far)
        for at, audio in block.agent:
            start = at // self._agent.sample_bytes
            samples = DECODE[self._agent.encoding](bytes(audio))
            agent[start : start + len(samples)] = samples
        return far, agent


class Tape:
    """Has a file written block by block; ``failed`` is called on the loop, once, where that cannot go on."""

    def __init__(self, file: StereoFile, failed: Callable[[str], None]) -> None:
        self._file = file
        self._failed: Callable[[str], None] | None = failed
        self._jobs: asyncio.Queue[Callable[[], None] | None] = asyncio.Queue(BLOCKS_MAX)
        self._work = asyncio.get_running_loop().create_task(self._do_jobs())

    def add(self, block: Block) -> None:
        """Write a block when its turn comes. After a failure it does nothing."""
        if self._failed is not None:
            try:
                self._jobs.put_nowait(partial(self._file.append, block))
            except asyncio.QueueFull:
                self._fail("the disk does not keep up")

    async def close(self) -> None:
        """Wait until all is on the disk, for a bounded time."""
        try:
            async with asyncio.timeout(PATIENCE_MS / 1000):
                await self._jobs.put(None)
                await asyncio.shield(self._work)
        except TimeoutError:
            self._fail("the disk does not take the rest")

    def drop(self) -> None:
        """Write no more, and delete the file, also one that could not be written to its end."""
        while not self._jobs.empty():
            self._jobs.get_nowait()
        self._jobs.put_nowait(self._file.delete)

    async def _do_jobs(self) -> None:
        loop = asyncio.get_running_loop()
        is_broken = False
        try:
            while job := await self._jobs.get():
                if is_broken and job != self._file.delete:
                    continue  # a block behind one that is missing would lie in the wrong place
                try:
                    await loop.run_in_executor(_DISK, job)
                except OSError as problem:
                    is_broken = True
                    self._fail(problem.strerror or type(problem).__name__)
        finally:
            await loop.run_in_executor(_DISK, self._file.close)

    def _fail(self, why: str) -> None:
        failed, self._failed = self._failed, None
        if failed is not None:
            failed(why)

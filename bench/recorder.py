"""What a recording costs: CPU for a minute of a call, on the event loop and beside it, and memory over 80 minutes.

Run: ``python bench/recorder.py``; it takes a minute or two. A phone's frames come every 20 ms of virtual time, and the
agent speaks for four of every ten seconds, or not at all. Costs are those of the cheapest minute, since other programs
may share the machine. Beside the loop is what the writing thread does: decode, interleave, write. Memory is what Python
has allocated, at minute 80 beside minute 5.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

from callwright.audio.formats import FRAME_MS, PCMU_8K
from callwright.core.ports import LineSink, PlayedReports
from callwright.ids import ItemId, MarkId, Ms
from callwright.runtime.kept import Kept
from callwright.runtime.recorder import recorder_of
from callwright.runtime.tape import Block, StereoFile
from callwright.sim.vloop import run_virtual

MINUTES = 80
EARLY_MINUTE = 5
TURN_MS: Ms = 10_000
REPLY_MS: Ms = 4_000
MARK_MS: Ms = 200

allocated: list[int] = []
"""Bytes that Python had allocated at the early minute, and at the end."""


class Phone:
    """A line and a call that do nothing: what costs is the recorder between them."""

    input_format = output_format = PCMU_8K
    reports = PlayedReports.MARKS
    latency_ms: Ms = 0
    reaches_person = False

    async def open(self, sink: LineSink) -> None:
        """Nothing comes by itself."""

    def play(self, item_id: ItemId, generation: int, audio: bytes) -> None:
        """Take audio."""

    def mark(self, mark_id: MarkId) -> None:
        """Take a mark."""

    def clear(self) -> None:
        """Drop nothing."""

    async def hang_up(self) -> None:
        """End."""

    def on_frame(self, frame: bytes) -> None:
        """Hear the far end."""

    def on_played(self, item_id: ItemId, generation: int, played_ms: Ms) -> None:
        """Know what was played."""

    def on_mark(self, mark_id: MarkId) -> None:
        """Get a mark back."""

    def on_closed(self, by: str, reason: str) -> None:
        """Be over."""


async def call(minutes: int, path: Path, *, speaks: bool) -> list[float]:
    """Play a call; the CPU seconds of each minute on the loop."""
    phone, frame, piece = Phone(), PCMU_8K.silence(FRAME_MS), bytes(range(160)) * (MARK_MS // FRAME_MS)
    recorder = recorder_of(phone, path)
    recorder.obey(Kept(is_kept=True), sys.exit)
    costs_s = [0.0] * minutes
    async with recorder:
        await recorder.open(phone)
        for at_ms in range(0, minutes * 60_000, FRAME_MS):
            await asyncio.sleep(FRAME_MS / 1000)
            began_s, turn, in_turn_ms = time.process_time(), *divmod(at_ms, TURN_MS)
            recorder.on_frame(frame)
            if speaks and in_turn_ms <= REPLY_MS and in_turn_ms % MARK_MS == 0:
                number = in_turn_ms // MARK_MS
                recorder.on_mark(MarkId(f"{turn}.{number}"))
                recorder.play(ItemId(f"i{turn}"), 0, piece)
                recorder.mark(MarkId(f"{turn}.{number + 1}"))
            costs_s[at_ms // 60_000] += time.process_time() - began_s
            if at_ms == EARLY_MINUTE * 60_000:
                allocated.append(tracemalloc.get_traced_memory()[0])
        allocated.append(tracemalloc.get_traced_memory()[0])
    return costs_s


def beside_s(path: Path) -> float:
    """The CPU seconds of writing a minute."""
    file = StereoFile(path, PCMU_8K, PCMU_8K)
    blocks = [Block([PCMU_8K.silence(FRAME_MS)] * 50, [(0, memoryview(bytes(8_000)))])] * 60
    costs_s = []
    for _ in range(10):
        began_s = time.process_time()
        for block in blocks:
            file.append(block)
        costs_s.append(time.process_time() - began_s)
    file.close()
    return min(costs_s)


def main() -> None:
    """Print the three figures."""
    with tempfile.TemporaryDirectory() as directory:
        for name, speaks in (("speaks", True), ("is silent", False)):
            costs_s = run_virtual(call(10, Path(directory) / f"{name}.wav", speaks=speaks))
            print(f"on the loop, the agent {name:10} {min(costs_s) * 1000:6.1f} ms a minute")
        print(f"beside it                        {beside_s(Path(directory) / 'beside.wav') * 1000:6.1f} ms a minute")
        allocated.clear()
        tracemalloc.start()
        run_virtual(call(MINUTES, Path(directory) / "long.wav", speaks=True))
        print(f"memory, minute {EARLY_MINUTE} to {MINUTES}           {(allocated[1] - allocated[0]) / 1024:+6.0f} KiB")


if __name__ == "__main__":
    main()

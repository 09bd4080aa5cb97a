"""What an hour on hold costs: the clock on the wall, and how much memory grows while a call waits.

Run ``python bench/hold.py [SECONDS [SCENARIO]]``: 4800 s of the scenario ``hold`` if nothing is said. The call is
played in virtual time, in one process. Prints the CPU and wall clock of the whole of it, and the growth of the process
from minute 5 to the end of the hold, as the system counts it (resident memory). ``--lines`` prints which lines of code
hold what has grown, and takes three times as long for it.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

from callwright.cli.plan import ROOTS
from callwright.sim.record import CallRecord
from callwright.sim.scenario import load_scenario, locate_scenario
from callwright.sim.vloop import run_virtual
from callwright.sim.world import OURS, Options, in_memory, take_call

FROM_S = 300
SHOWN = 12
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Sample:
    """The process at one instant of the call."""

    at_s: int
    resident: int
    traced: tracemalloc.Snapshot | None


def sampled(at_s: int) -> Sample:
    """What the process holds, without what nobody refers to."""
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text("ascii").split()[1]) * PAGE_BYTES
    return Sample(at_s, resident, tracemalloc.take_snapshot() if tracemalloc.is_tracing() else None)


async def held(name: str, hold_s: int, samples: list[Sample]) -> CallRecord:
    """Play the call, and look at the process at minute 5 and shortly before the hold is over."""
    scenario = load_scenario(locate_scenario(name, ROOTS))
    call = asyncio.get_running_loop().create_task(take_call(scenario, 1, OURS, Options(hold_s=hold_s), in_memory))
    for at_s in (FROM_S, hold_s):
        await asyncio.sleep(at_s - (samples[-1].at_s if samples else 0))
        samples.append(sampled(at_s))
    return await call


def main(arguments: list[str]) -> None:
    """Play the call and print what it cost."""
    given = [each for each in arguments if not each.startswith("--")]
    hold_s, name = int(given[0]) if given else 4800, given[1] if len(given) > 1 else "hold"
    if "--lines" in arguments:
        tracemalloc.start()
    samples: list[Sample] = []
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    record = run_virtual(held(name, hold_s, samples))
    wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    first, last = samples
    grown = (last.resident - first.resident) / 1e6
    print(
        f"{name} --hold {hold_s}: {record.ended_ms / 1000:.1f} s, ended by {record.ended_by} ({record.ended_because})"
    )
    print(f"wall clock {wall_s:.1f} s, CPU {cpu_s:.1f} s: {record.ended_ms / 1000 / cpu_s:.0f} times as fast as time")
    print(f"growth from minute {first.at_s / 60:.0f} to minute {last.at_s / 60:.0f}: {grown:.1f} MB")
    if first.traced and last.traced:
        for line in last.traced.compare_to(first.traced, "lineno")[:SHOWN]:
            print(f"  {line.size_diff / 1e6:7.2f} MB  {line.traceback}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""What a turn costs at the end of an hour of talk, beside one at its beginning.

Run ``python bench/hour.py``. The turns are those of ``tests/runtime/test_many_calls.py``: six seconds of reply in 30
pieces, which every other time is cut. Prints milliseconds of CPU per turn, the best of a hundred in a row, since other
programs may share the machine; and the ratio, which grows from 1 when an event costs more for what came before.
"""

from __future__ import annotations

import asyncio
import sys
import time
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.runtime.calls import CREATED, UPDATED, run
from tests.runtime.test_many_calls import Direct, PlainLine, turn

from callwright.sim.vloop import run_virtual

TURNS = 300
MANY = 100


async def hour() -> list[float]:
    """Take the call; return the CPU seconds that each turn took."""
    line, server = PlainLine(), Direct()
    call = asyncio.get_running_loop().create_task(run(line, server))
    await asyncio.sleep(1)
    server.says(CREATED, UPDATED)
    costs_s = []
    for number in range(TURNS):
        steps = turn(number)
        began_s = time.process_time()
        server.says(*steps)
        costs_s.append(time.process_time() - began_s)
        await asyncio.sleep(0.5)
    line.close()
    await call
    return costs_s


def main() -> None:
    """Print one line per hundred turns, and the ratio of the last to the first."""
    costs_s = run_virtual(hour())
    bounds = pairwise(range(0, TURNS + 1, MANY))
    best_ms = [min(costs_s[first:last]) * 1000 for first, last in bounds]
    for first, cost_ms in enumerate(best_ms):
        print(f"turns {first * MANY + 1:3} to {(first + 1) * MANY:3} {cost_ms:8.3f} ms")
    print(f"last to first {best_ms[-1] / best_ms[0]:12.2f}")


if __name__ == "__main__":
    main()

"""Schedules for the ledger, by the thousand: what is judged, and what has to have happened for that to mean anything.

    python bench/ledger.py              10,000 schedules on all processors
    python bench/ledger.py 500 --from 20000 --jobs 1

Prints every violation with its seed, how often every fault fired and every point was died at, and the time it took.
Exits with 1 if there is a violation, or something that has to happen sometimes never did.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from callwright.sim.schedules import sweep, wanted

CHUNK = 100


def main() -> int:
    """Play, print, and return the exit code."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("count", nargs="?", type=int, default=10_000)
    arguments.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = arguments.parse_args()
    begun = time.perf_counter()
    chunks = [
        range(seed, min(seed + CHUNK, given.first + given.count))
        for seed in range(given.first, given.first + given.count, CHUNK)
    ]
    violations: list[str] = []
    counts: Counter[str] = Counter()
    with ProcessPoolExecutor(given.jobs) as pool:
        for found, counted in pool.map(sweep, chunks):
            violations += found
            counts.update(counted)
    for name, count in sorted(counts.items()):
        print(f"{count:8} {name}")
    never = [name for name in wanted() if not counts[name]]
    print(*(f"VIOLATION {violation}" for violation in violations), sep="\n")
    print(*(f"NEVER {name}" for name in never), sep="\n")
    seconds = time.perf_counter() - begun
    print(f"{given.count} schedules, {len(violations)} violations, {len(never)} never, {seconds:.1f} s")
    return 1 if violations or never else 0


if __name__ == "__main__":
    sys.exit(main())

"""How long it takes from a wish to an attempt that is on the disk, before its first byte leaves.

    python bench/attempt.py             1,000 wishes, one after another, in a file of the working directory's disk
    python bench/attempt.py 200 --at /tmp

Each wish comes when the one before is settled. Prints median, 99th percentile and the longest, in milliseconds, beside
those of a bare commit to the same disk, one after each wish; exits with 1 if the 99th percentile is above 50.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from callwright.declare.actions import Card, Money, Terms
from callwright.ledger.asking import Ask
from callwright.ledger.provider import Dispatch, Idempotency, Observed, OnAmbiguous, Outcome, Traits
from callwright.runtime.dispatcher import Ledger

BOUND_MS = 50


class Clock:
    """A provider that notes when it was asked first; its attempt is on the disk by then."""

    name = "payments"
    traits = Traits(Idempotency.REPLAY, OnAmbiguous.PROBE, 86_400_000, 60_000, 30_000, 20_000)

    def __init__(self) -> None:
        self.asked: dict[str, float] = {}

    async def send(self, dispatch: Dispatch) -> Observed:
        """Note the instant."""
        self.asked[dispatch.terms.subject] = time.perf_counter()
        return Observed(Outcome.APPLIED, "re_1", dispatch.terms.amount)

    async def look_up(self, dispatch: Dispatch) -> Observed:
        """Say that it is done: what was confirmed is looked up again after a while."""
        return Observed(Outcome.APPLIED, "re_1", dispatch.terms.amount)

    async def cancel(self, dispatch: Dispatch) -> Observed:
        """Never asked here."""
        raise AssertionError


async def measure(count: int, directory: Path) -> tuple[list[float], list[float]]:
    """The times of the wishes, and of the bare commits between them, sorted, in milliseconds."""
    clock = Clock()
    took: list[float] = []
    bare: list[float] = []
    settled = asyncio.Event()
    async with Ledger.open(directory / "bench.db", providers=[clock]) as ledger:
        ledger.subscribe(lambda fact: settled.set() if fact.is_settled else None)
        with closing(floor(directory)) as file:
            for number in range(count):
                terms = Terms(f"order:{number}", Money(3200, "USD"), Card("card:4242", "Visa", "4242"))
                settled.clear()
                begun = time.perf_counter()
                await ledger.propose(Ask("refund", "full", "customer:81", clock.name, terms))
                await settled.wait()
                took.append((clock.asked[terms.subject] - begun) * 1000)
                begun = time.perf_counter()
                file.execute("INSERT INTO row VALUES (?)", (terms.subject,))
                bare.append((time.perf_counter() - begun) * 1000)
    return sorted(took), sorted(bare)


def floor(directory: Path) -> sqlite3.Connection:
    """A file in which each row is a commit, on the disk as the ledger's are."""
    file = sqlite3.connect(directory / "floor.db", isolation_level=None)
    file.execute("PRAGMA journal_mode=PERSIST")
    file.execute("PRAGMA synchronous=FULL")
    file.execute("CREATE TABLE row (text)")
    return file


def told(name: str, times: list[float]) -> str:
    """A line with median, 99th percentile and the longest of sorted times."""
    return f"{name:14} median {at(times, 0.5):6.1f} ms   p99 {at(times, 0.99):6.1f} ms   longest {times[-1]:6.1f} ms"


def at(times: list[float], share: float) -> float:
    """The quantile of sorted times."""
    return times[int((len(times) - 1) * share)]


def main() -> int:
    """Measure, print, and return the exit code."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("count", nargs="?", type=int, default=1_000)
    arguments.add_argument("--at", type=Path, default=Path.cwd(), help="a directory on the disk to measure")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=given.at) as directory:
        took, bare = asyncio.run(measure(given.count, Path(directory)))
    print(told(f"{len(took)} wishes", took), told("bare commits", bare), sep="\n")
    return 1 if at(took, 0.99) > BOUND_MS else 0


if __name__ == "__main__":
    sys.exit(main())

"""How long it takes from a wish to an attempt that is on the disk, before its first byte leaves.

    python bench/attempt.py             1,000 wishes, one after another, in a file of the working directory's disk
    python bench/attempt.py 200 --at /tmp

Prints median, 99th percentile and the longest, in milliseconds; exits with 1 if the 99th percentile is above 50.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
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
        self.news = asyncio.Event()

    async def send(self, dispatch: Dispatch) -> Observed:
        """Note the instant."""
        self.asked[dispatch.terms.subject] = time.perf_counter()
        self.news.set()
        return Observed(Outcome.APPLIED, "re_1", dispatch.terms.amount)

    async def look_up(self, dispatch: Dispatch) -> Observed:
        """Say that it is done: what was confirmed is looked up again after a while."""
        return Observed(Outcome.APPLIED, "re_1", dispatch.terms.amount)

    async def cancel(self, dispatch: Dispatch) -> Observed:
        """Never asked here."""
        raise AssertionError


async def measure(count: int, directory: Path) -> list[float]:
    """The time of each wish, in milliseconds."""
    clock = Clock()
    took: list[float] = []
    async with Ledger.open(directory / "bench.db", providers=[clock]) as ledger:
        for number in range(count):
            terms = Terms(f"order:{number}", Money(3200, "USD"), Card("card:4242", "Visa", "4242"))
            clock.news.clear()
            begun = time.perf_counter()
            await ledger.propose(Ask("refund", "full", "customer:81", clock.name, terms))
            await clock.news.wait()
            took.append((clock.asked[terms.subject] - begun) * 1000)
    return sorted(took)


def main() -> int:
    """Measure, print, and return the exit code."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("count", nargs="?", type=int, default=1_000)
    arguments.add_argument("--at", type=Path, default=Path.cwd(), help="a directory on the disk to measure")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=given.at) as directory:
        took = asyncio.run(measure(given.count, Path(directory)))
    p99 = took[int(len(took) * 0.99)]
    print(f"{len(took)} wishes: median {took[len(took) // 2]:.1f} ms, p99 {p99:.1f} ms, longest {took[-1]:.1f} ms")
    return 1 if p99 > BOUND_MS else 0


if __name__ == "__main__":
    sys.exit(main())

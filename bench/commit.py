"""How long a commit of the ledger takes, and how late a media loop beside it is for it.

    python bench/commit.py              200 commits in a file of the working directory's disk
    python bench/commit.py 1000 --at /tmp

The commits are those of a refund, one after another: the wish, its attempt, its outcome. A loop like the media's wants
to wake every 20 ms in the same thread that awaits them. So that both are measured on the same machine, the loop runs
beside a few commits, then as long alone, in turn:

```
commits  │▓▓▓▓▓▓│      │▓▓▓▓▓▓│      │▓▓▓
ticks    │ │ │ ││ │ │ ││ │ │ ││ │ │ ││ │
          beside  alone  beside  alone
```

Exits with 1 if the loop's 99th percentile beside the commits is above 5 ms, and above twice that of the loop alone.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, closing
from pathlib import Path

from callwright.declare.actions import Card, Money, Terms
from callwright.ledger.asking import Ask
from callwright.ledger.folding import fold
from callwright.ledger.operation import Actor
from callwright.ledger.page import Page
from callwright.ledger.provider import Idempotency, Observed, OnAmbiguous, Outcome, Traits
from callwright.ledger.record import Record
from callwright.ledger.rows import operation_id
from callwright.ledger.sending import advance
from callwright.ledger.sqlite import SQLiteStore
from callwright.providers.payments import Payments

TICK_S = 0.02
REFUNDS = 5
"""So many of them, three commits each, are seen to beside the loop before its turn alone."""
BOUND_MS = 5
CARD = Card("card:4242", "Visa", "4242")
TRAITS = Traits(Idempotency.REPLAY, OnAmbiguous.PROBE, 86_400_000, 60_000, 30_000, 20_000)


@asynccontextmanager
async def ticking(late_ms: list[float]) -> AsyncIterator[None]:
    """Wake every 20 ms, and note how late that is."""

    async def tick() -> None:
        due = time.perf_counter()
        while True:
            due = max(due + TICK_S, time.perf_counter())
            await asyncio.sleep(due - time.perf_counter())
            late_ms.append((time.perf_counter() - due) * 1000)

    task = asyncio.get_running_loop().create_task(tick())
    try:
        yield
    finally:
        task.cancel()


async def refund(record: Record, number: int, took_ms: list[float]) -> None:
    """The three commits of a refund, each with its time."""
    ask = Ask("refund", "full", "customer:81", "payments", Terms(f"order:{number}", Money(3200, "USD"), CARD))
    op_id = operation_id(ask.kind, ask.terms.subject, ask.slot)
    seen = Observed(Outcome.APPLIED, "re_1", ask.terms.amount)

    def take_in(page: Page) -> None:
        fold(page, op_id, 1, seen, Actor.ADAPTER)

    took_ms.append(await timed(record.propose(ask)))
    took_ms.append(await timed(record.commit(lambda page: advance(page, op_id))))
    took_ms.append(await timed(record.commit(take_in)))


async def timed(verb: Coroutine[object, object, object]) -> float:
    """How long something takes, in milliseconds."""
    begun = time.perf_counter()
    await verb
    return (time.perf_counter() - begun) * 1000


async def measure(count: int, file: Path) -> tuple[list[float], list[float], list[float]]:
    """The times of the commits, and how late the loop was beside them and alone, all in milliseconds."""
    took_ms: list[float] = []
    beside_ms: list[float] = []
    alone_ms: list[float] = []
    record = Record(SQLiteStore(file), [Payments("http://nowhere.invalid", TRAITS)])
    with closing(record):
        numbers = itertools.count()
        while len(took_ms) < count:
            begun = time.perf_counter()
            async with ticking(beside_ms):
                for number in itertools.islice(numbers, REFUNDS):
                    await refund(record, number, took_ms)
            lasted_s = time.perf_counter() - begun
            async with ticking(alone_ms):
                await asyncio.sleep(lasted_s)
    return sorted(took_ms), sorted(beside_ms), sorted(alone_ms)


def told(name: str, times: list[float]) -> str:
    """A line with median, 99th percentile and the longest of sorted times."""
    return (
        f"{name:24} {len(times):5}   p50 {at(times, 0.5):7.2f}   p99 {at(times, 0.99):7.2f}   longest {times[-1]:7.2f}"
    )


def at(times: list[float], share: float) -> float:
    """The quantile of sorted times."""
    return times[int((len(times) - 1) * share)]


def main() -> int:
    """Measure, print, and return the exit code."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("count", nargs="?", type=int, default=200)
    arguments.add_argument("--at", type=Path, default=Path.cwd(), help="a directory on the disk to measure")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=given.at) as folder:
        took_ms, beside_ms, alone_ms = asyncio.run(measure(given.count, Path(folder) / "bench.db"))
    print("milliseconds", told("commits", took_ms), told("loop late beside them", beside_ms), sep="\n")
    print(told("loop late alone", alone_ms))
    ratios = at(beside_ms, 0.99) / at(alone_ms, 0.99), beside_ms[-1] / alone_ms[-1]
    print(f"beside to alone: p99 {ratios[0]:.2f}, longest {ratios[1]:.2f}")
    is_late = at(beside_ms, 0.99) > max(BOUND_MS, 2 * at(alone_ms, 0.99))
    return 1 if is_late else 0


if __name__ == "__main__":
    sys.exit(main())

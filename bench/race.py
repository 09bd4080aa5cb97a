"""Two processes race for one order after another: one operation and one effect for each, or it is said which not.

    python bench/race.py                1,000 rounds, and 100 orders that wait as both open the file
    python bench/race.py --rounds 50 --at /tmp
    python bench/race.py --apart        the control: a file for each, so everything is done twice

Both have the same SQLite file and reach a stand-in provider over HTTP, which lives in a third process, remembers no
key and would refund everything twice. The orders that wait were asked for by a process that is gone, and both begin to
dispatch them as they open the file. Then both ask for the same order in every round, as soon as both are there:

```
left waiting   open ── both dispatch ──┐ barrier  propose ── answer ┐ barrier  propose ...
               open ── both dispatch ──┘          propose ── answer ┘
```

Exits with 1 if an order has not exactly one operation, one attempt, one request and one effect.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path

from callwright.declare.actions import Card, Money, Terms
from callwright.ledger.asking import Ask, Verdict
from callwright.ledger.page import Patience
from callwright.ledger.provider import Idempotency
from callwright.ledger.record import Record
from callwright.ledger.rows import Attempt, Operation
from callwright.ledger.sqlite import SQLiteStore
from callwright.providers.payments import Payments
from callwright.runtime.dispatcher import Ledger
from callwright.sim.provider import Answers, Charge, Desk, ProviderSettings
from callwright.sim.provider.book import Book, Sent
from callwright.sim.provider.server import ProviderServer

SETTINGS = ProviderSettings(Answers.SYNC, after_ms=0, settles_ms=5, lookup_ms=1, idempotency=Idempotency.NONE)
AMOUNT = Money(3200, "USD")
CAPTURED = Money(9600, "USD")
"""Enough to do everything twice, so that the provider stops nobody."""
CARD = Card("card:4242", "Visa", "4242")
PARTY = "customer:81"
TOGETHER_S = 60
"""For so long one process waits for the other before it gives up."""


@dataclass(frozen=True, slots=True)
class Both:
    """What the two processes share with the one that keeps the book."""

    barrier: Barrier
    url: SimpleQueue[str]
    """The provider's address, once for each."""
    verdicts: SimpleQueue[Counter[str]]


def ask_for(subject: str) -> Ask:
    """The wish that both have."""
    return Ask("refund", "full", PARTY, "payments", Terms(subject, AMOUNT, CARD))


def racer(file: Path, rounds: list[str], both: Both) -> None:
    """One of the two processes."""
    both.verdicts.put(asyncio.run(_run(file, rounds, both)))


async def _run(file: Path, rounds: list[str], both: Both) -> Counter[str]:
    heard: Counter[str] = Counter()
    async with Payments(both.url.get(), SETTINGS.traits) as payments:
        ledger = Ledger(SQLiteStore(file), [payments], patience=Patience(watch_ms=0))
        news = asyncio.Event()
        ledger.subscribe(lambda fact: news.set() if fact.is_settled else None)
        both.barrier.wait(TOGETHER_S)
        async with ledger:
            await _settled(ledger, news)
            for subject in rounds:
                both.barrier.wait(TOGETHER_S)  # the loop is held on purpose: nothing is under way in this process
                news.clear()
                answer = await ledger.propose(ask_for(subject))
                heard[answer.verdict.value] += 1
                if answer.verdict is Verdict.CREATED:  # the other's news does not come here
                    await asyncio.wait_for(news.wait(), TOGETHER_S)
    return heard


async def _settled(ledger: Ledger, news: asyncio.Event) -> None:
    """Wait until nothing is open, whoever sees to it: looked at after each outcome, and at times without."""
    async with asyncio.timeout(TOGETHER_S):
        while not all(fact.is_settled for fact in await ledger.snapshot(PARTY)):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), 0.1)
            news.clear()


def race(rounds: int, waiting: int, folder: Path, *, is_apart: bool) -> tuple[Counter[str], list[str]]:
    """Race; returns what was answered, and in which way an order is not done exactly once."""
    left, raced = [f"order:left:{n}" for n in range(waiting)], [f"order:{n}" for n in range(rounds)]
    files = [folder / "one.db", folder / ("two.db" if is_apart else "one.db")]
    with _racing(files, raced) as (both, racers):
        return asyncio.run(_judged(left, raced, files, both, racers))


async def _judged(
    left: list[str], raced: list[str], files: list[Path], both: Both, racers: list[ForkProcess]
) -> tuple[Counter[str], list[str]]:
    desk = Desk(SETTINGS, [Charge(each, CAPTURED, (CARD.token,)) for each in (*left, *raced)], seed=1)
    for file in sorted(set(files)):
        with closing(_record(file)) as record:
            for subject in left:
                await record.propose(ask_for(subject))
    async with ProviderServer(desk) as server:
        for _ in racers:
            both.url.put(server.url)
        for each in racers:
            await asyncio.to_thread(each.join)
    heard: Counter[str] = Counter()
    while not both.verdicts.empty():
        heard.update(both.verdicts.get())
    problems = [f"a process ended with {each.exitcode}" for each in racers if each.exitcode]
    for subject in (*left, *raced):
        problems += _wrong(subject, desk.book)
    for file in sorted(set(files)):
        problems += await _stored(file, [*left, *raced])
    return heard, problems


def _record(file: Path) -> Record:
    """A file's record, of which nothing is dispatched."""
    return Record(SQLiteStore(file), [Payments("http://nowhere.invalid", SETTINGS.traits)])


@contextlib.contextmanager
def _racing(files: list[Path], raced: list[str]) -> Iterator[tuple[Both, list[ForkProcess]]]:
    """Both processes, begun before this one has a loop or a thread; they wait for the provider's address."""
    fork = multiprocessing.get_context("fork")
    both = Both(fork.Barrier(len(files)), fork.SimpleQueue(), fork.SimpleQueue())
    racers = [fork.Process(target=racer, args=(file, raced, both)) for file in files]
    try:
        for each in racers:
            each.start()
        yield both, racers
    finally:
        for each in racers:
            each.kill()
            each.join()


def _wrong(subject: str, book: Book) -> list[str]:
    """What the provider's book has of an order beside one request and one refund."""
    sent = sum(isinstance(entry, Sent) and entry.ask.charge == subject for entry in book.entries)
    effects = sum(refund.ask.charge == subject for refund in book.refunds())
    return [] if (sent, effects) == (1, 1) else [f"{subject}: {sent} requests, {effects} effects"]


async def _stored(file: Path, subjects: list[str]) -> list[str]:
    """What the file has of the orders beside one operation and one attempt, and what does not agree in it."""
    with closing(_record(file)) as record:
        operations = await record.commit(lambda page: page.tx.find(Operation))
        attempts = await record.commit(lambda page: page.tx.find(Attempt))
        problems = list(await record.problems())
    made, tried = Counter(each.subject for each in operations), Counter(each.op_id for each in attempts)
    problems += [f"{each}: {made[each]} operations" for each in subjects if made[each] != 1]
    return problems + [f"{each.subject}: {tried[each.op_id]} attempts" for each in operations if tried[each.op_id] != 1]


def main() -> int:
    """Race, print, and return the exit code."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=1_000)
    arguments.add_argument("--waiting", type=int, help="orders that wait as both open the file; a tenth of the rounds")
    arguments.add_argument("--at", type=Path, default=Path.cwd(), help="a directory on the disk to use")
    arguments.add_argument("--apart", action="store_true", help="a file for each: everything is done twice")
    given = arguments.parse_args()
    waiting = given.rounds // 10 if given.waiting is None else given.waiting
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=given.at) as folder:
        heard, problems = race(given.rounds, waiting, Path(folder), is_apart=given.apart)
    seconds = time.perf_counter() - begun
    print(*problems[:20], sep="\n")
    print(f"answers: {', '.join(f'{count} {verdict}' for verdict, count in sorted(heard.items()))}")
    print(f"{given.rounds} rounds, {waiting} left waiting: {len(problems)} not done exactly once, {seconds:.1f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

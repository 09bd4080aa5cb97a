"""A process that refunds through a ledger in a file, and kills itself at a named point. Run by ``test_kill.py``.

It prints the milestone, how many problems the record has, and what is owed outside the call.

    python killed.py LEDGER BOOK POINT

The provider is a file of its own, to which each effect is a line; a repeat of a key adds none. Its first answer is
lost after the effect, so that every life goes through a doubt.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from callwright.declare.actions import Card, Money, Terms
from callwright.ledger.asking import Ask
from callwright.ledger.page import Patience
from callwright.ledger.provider import Dispatch, Idempotency, Observed, OnAmbiguous, Outcome, Traits
from callwright.ledger.sqlite import SQLiteStore
from callwright.runtime.dispatcher import Ledger

TRAITS = Traits(
    Idempotency.REPLAY,
    OnAmbiguous.PROBE,
    window_ms=3_600_000,
    margin_ms=10_000,
    absence_wait_ms=50,
    request_max_ms=1_500,
)


class FileProvider:
    """A system of record that outlives its clients."""

    name = "payments"
    traits = TRAITS

    def __init__(self, book: Path) -> None:
        self._book = book

    async def send(self, dispatch: Dispatch) -> Observed:
        if dispatch.key in self._effects():
            return Observed(Outcome.APPLIED, dispatch.key)
        with self._book.open("a", encoding="utf-8") as book:
            book.write(f"{dispatch.key}\n")
            book.flush()
            os.fsync(book.fileno())
        raise ConnectionResetError

    async def look_up(self, dispatch: Dispatch) -> Observed:
        found = dispatch.key in self._effects()
        return Observed(Outcome.APPLIED, dispatch.key) if found else Observed(Outcome.ABSENT)

    async def cancel(self, dispatch: Dispatch) -> Observed:
        return await self.look_up(dispatch)

    def _effects(self) -> list[str]:
        return self._book.read_text(encoding="utf-8").split() if self._book.exists() else []


async def main(ledger_path: str, book_path: str, point: str) -> None:
    """Ask for the refund, and print the milestone once it is settled; or die before that."""

    def crash_at(passed: str) -> None:
        if passed == point:
            os.kill(os.getpid(), signal.SIGKILL)

    store, providers = SQLiteStore(ledger_path), [FileProvider(Path(book_path))]
    settled = asyncio.Event()
    async with Ledger(store, providers, patience=Patience(ask_ms=20), crash_at=crash_at) as ledger:
        ledger.subscribe(lambda fact: settled.set() if fact.is_settled else None)
        terms = Terms("order:4417", Money(3200, "USD"), Card("tok_visa", "Visa", "4242"))
        answer = await ledger.propose(Ask("refund", "full", "customer:81", "payments", terms, is_waited_for=True))
        if answer.fact is None or not answer.fact.is_settled:
            await asyncio.wait_for(settled.wait(), 20)
        (fact,) = await ledger.snapshot("customer:81")
        owed = [row.kind for row in await ledger.outbox()]
        sys.stdout.write(f"{fact.milestone} {len(await ledger.problems())} {' '.join(owed)}\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

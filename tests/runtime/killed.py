"""Processes that refund through a ledger in a file, and kill themselves at a named point. Run by ``test_kill.py``.

    python killed.py FOLDER POINT       one process, with the files of that folder
    python killed.py FOLDER POINT ...   a process that is killed at each point, and another one that comes after it

A process prints the milestone, how many problems the record has, and what is owed outside the call. Of several points
each has a folder of its own, and a line: the point, the signal of its death, then of the process that came after it the
milestone and the problems, how many effects there are, and what is owed. What is imported once is forked for each.

The provider is a file of its own, to which each effect is a line; a repeat of a key adds none. Its first answer is
lost after the effect, and so is every look-up until the process has waited once, so that every life goes through a
doubt and comes by every point, however slow the disk is.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
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
LEDGER, BOOK = "ledger.db", "book.txt"
NOWHERE = "nowhere"


class FileProvider:
    """A system of record that outlives its clients."""

    name = "payments"
    traits = TRAITS

    def __init__(self, book: Path) -> None:
        self._book = book
        self.is_reachable = True

    async def send(self, dispatch: Dispatch) -> Observed:
        if dispatch.key in effects(self._book):
            return Observed(Outcome.APPLIED, dispatch.key)
        with self._book.open("a", encoding="utf-8") as book:
            book.write(f"{dispatch.key}\n")
            book.flush()
            os.fsync(book.fileno())
        raise ConnectionResetError

    async def look_up(self, dispatch: Dispatch) -> Observed:
        if not self.is_reachable:
            raise ConnectionResetError
        found = dispatch.key in effects(self._book)
        return Observed(Outcome.APPLIED, dispatch.key) if found else Observed(Outcome.ABSENT)

    async def cancel(self, dispatch: Dispatch) -> Observed:
        return await self.look_up(dispatch)


def effects(book: Path) -> list[str]:
    """The keys under which something was done, each time."""
    return book.read_text(encoding="utf-8").split() if book.exists() else []


async def live(folder: Path, point: str) -> str:
    """Ask for the refund, and say what became of it once it is settled; or die before that."""

    def crash_at(passed: str) -> None:
        if passed == point:
            os.kill(os.getpid(), signal.SIGKILL)
        if passed == "after wait":
            provider.is_reachable = True

    store, provider = SQLiteStore(folder / LEDGER), FileProvider(folder / BOOK)
    provider.is_reachable = False
    settled = asyncio.Event()
    async with Ledger(store, [provider], patience=Patience(ask_ms=20, left_ms=5), crash_at=crash_at) as ledger:
        ledger.subscribe(lambda fact: settled.set() if fact.is_settled else None)
        terms = Terms("order:4417", Money(3200, "USD"), Card("tok_visa", "Visa", "4242"))
        answer = await ledger.propose(Ask("refund", "full", "customer:81", "payments", terms, is_waited_for=True))
        if answer.fact is None or not answer.fact.is_settled:
            await asyncio.wait_for(settled.wait(), 20)
        (fact,) = await ledger.snapshot("customer:81")
        owed = [row.kind for row in await ledger.outbox()]
        return f"{fact.milestone} {len(await ledger.problems())} {' '.join(owed)}"


def forked(folder: Path, point: str) -> tuple[int, str]:
    """Live in a process of its own; how it ended (as ``subprocess`` counts), and what it said."""
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(here, asyncio.run(live(folder, point)).encode())
        except Exception:
            traceback.print_exc()
        os._exit(0)  # whatever came of it: the rest is its parent's
    os.close(here)
    with os.fdopen(there, encoding="utf-8") as pipe:
        said = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def killed(folder: Path, point: str) -> str:
    """Die at a point and be followed by another process; the line that tells of it."""
    folder.mkdir()
    code, _ = forked(folder, point)
    _, said = forked(folder, NOWHERE)
    milestone, problems, *owed = said.split()
    return " ".join([f"{point}: {-code}", milestone, problems, str(len(effects(folder / BOOK))), *owed])


if __name__ == "__main__":
    root, points = Path(sys.argv[1]), sys.argv[2:]
    if len(points) == 1:
        sys.stdout.write(asyncio.run(live(root, *points)))
    else:
        sys.stdout.writelines(f"{killed(root / point.replace(' ', '-'), point)}\n" for point in points)

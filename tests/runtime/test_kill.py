"""A process killed for good, with a file on a real disk: the next one finds what it left, and there is one effect."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.runtime.killed import FileProvider

from callwright.declare.actions import Card, Money, Terms
from callwright.ledger import sending
from callwright.ledger.asking import Ask
from callwright.ledger.operation import State
from callwright.ledger.page import Patience
from callwright.ledger.provider import Dispatch, Observed, Outcome
from callwright.ledger.rows import Operation
from callwright.ledger.sqlite import SQLiteStore
from callwright.runtime.dispatcher import Ledger

KILLED = Path(__file__).parent / "killed.py"


def live(folder: Path, point: str) -> subprocess.CompletedProcess[str]:
    paths = [str(folder / "ledger.db"), str(folder / "book.txt")]
    return subprocess.run(
        [sys.executable, str(KILLED), *paths, point], capture_output=True, text=True, timeout=60, check=False
    )


def effects(folder: Path) -> list[str]:
    return (folder / "book.txt").read_text(encoding="utf-8").split()


@pytest.mark.parametrize(
    "point",
    ["after ask", "before provider", "after provider", "before fold", "after fold", "before wait"],
)
def test_f26_killed_at_a_point_and_started_again_there_is_one_effect_and_its_caller_is_owed_it(point, tmp_path):
    assert live(tmp_path, point).returncode == -signal.SIGKILL
    last = live(tmp_path, "nowhere")
    assert (last.stdout.split(), last.returncode) == (["confirmed", "0", "untold"], 0), last.stderr
    assert len(effects(tmp_path)) == 1


@pytest.mark.parametrize("point", ["after ask", "after fold"])
def test_i23_a_living_neighbour_takes_over_what_a_killed_process_left(point, tmp_path):
    """Its attempt may have been sent, or is known to be in doubt; nobody starts anew."""
    patience = Patience(ask_ms=20, left_ms=200, tell_ms=0)

    async def neighbour() -> list[str]:
        settled = asyncio.Event()
        store, provider = SQLiteStore(tmp_path / "ledger.db"), FileProvider(tmp_path / "book.txt")
        async with Ledger(store, [provider], patience=patience) as ledger:
            ledger.subscribe(lambda fact: settled.set() if fact.is_settled else None)
            killed = await asyncio.to_thread(live, tmp_path, point)
            assert killed.returncode == -signal.SIGKILL
            await asyncio.wait_for(settled.wait(), 20)
            await ledger.commit(lambda page: sending.left(page, ()))
            return [row.kind for row in await ledger.outbox()]

    assert asyncio.run(neighbour()) == ["untold"]
    assert len(effects(tmp_path)) == 1


class Held(FileProvider):
    """Answers a send when it is let go."""

    def __init__(self, book: Path) -> None:
        super().__init__(book)
        self.asked, self.let_go = asyncio.Event(), asyncio.Event()

    async def send(self, dispatch: Dispatch) -> Observed:
        self.asked.set()
        await self.let_go.wait()
        return Observed(Outcome.APPLIED, dispatch.key)


def test_who_starts_beside_a_living_process_leaves_it_its_calls_and_what_it_has_under_way(tmp_path):
    """An attempt whose sender lives is in no doubt, and the caller who waits on his line is not owed it elsewhere."""

    async def started(provider: FileProvider) -> tuple[State, list[str]]:
        async with Ledger(SQLiteStore(tmp_path / "ledger.db"), [provider]) as ledger:
            (operation,) = await ledger.commit(lambda page: page.tx.find(Operation))
            return operation.state, [row.kind for row in await ledger.outbox()]

    async def main() -> None:
        held, settled = Held(tmp_path / "book.txt"), asyncio.Event()
        async with Ledger(SQLiteStore(tmp_path / "ledger.db"), [held]) as owner:
            owner.subscribe(lambda fact: settled.set() if fact.is_settled else None)
            terms = Terms("order:4417", Money(3200, "USD"), Card("tok_visa", "Visa", "4242"))
            await owner.propose(Ask("refund", "full", "customer:81", "payments", terms, is_waited_for=True))
            await held.asked.wait()
            assert await started(Held(tmp_path / "book.txt")) == (State.RUNNING, [])
            held.let_go.set()
            await settled.wait()
            assert await started(Held(tmp_path / "book.txt")) == (State.CONFIRMED, [])
        assert await started(Held(tmp_path / "book.txt")) == (State.CONFIRMED, ["untold"])

    asyncio.run(main())

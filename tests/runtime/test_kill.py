"""A process killed for good, with a file on a real disk: the next one finds what it left, and there is one effect."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.runtime.killed import BOOK, LEDGER, FileProvider, effects

from callwright.declare.actions import Card, Money, Terms
from callwright.ledger import sending
from callwright.ledger.asking import Ask
from callwright.ledger.operation import State
from callwright.ledger.page import Patience
from callwright.ledger.provider import Dispatch, Observed, Outcome
from callwright.ledger.rows import Operation
from callwright.ledger.sqlite import SQLiteStore
from callwright.runtime.dispatcher import Ledger
from callwright.sim.behind.dying import POINTS_IN_A_CALL, POINTS_OF_DEATH

KILLED = Path(__file__).parent / "killed.py"
NOT_COME_BY = ("broken", "reconcile", "report")
"""Where a store fails, and where somebody asks by hand."""
WISHED = POINTS_IN_A_CALL[POINTS_IN_A_CALL.index("after ask") :]
"""Those behind the wish's own commit."""
POINTS = [point for point in POINTS_OF_DEATH if point.split()[1] not in NOT_COME_BY]


def run(folder: Path, *points: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(KILLED), str(folder), *points], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What became of the refund for each point at which a process was killed."""
    told = run(tmp_path_factory.mktemp("killed"), *POINTS)
    assert told.returncode == 0, told.stderr
    return dict(line.split(": ") for line in told.stdout.splitlines())


@pytest.mark.parametrize("point", POINTS)
def test_f26_killed_at_a_point_and_started_again_there_is_one_effect_and_its_caller_is_owed_it(point, lines):
    """Who was killed before the wish was on the disk owes nobody anything."""
    killed_by, milestone, problems, made, *owed = lines[point].split()
    assert killed_by == str(signal.SIGKILL.value), "the point was not passed"
    assert (milestone, problems, made) == ("confirmed", "0", "1")
    assert owed == ["untold"] or point not in WISHED


@pytest.mark.parametrize("point", ["after ask", "after fold"])
def test_i23_a_living_neighbour_takes_over_what_a_killed_process_left(point, tmp_path):
    """Its attempt may have been sent, or is known to be in doubt; nobody starts anew."""
    patience = Patience(ask_ms=20, left_ms=200, tell_ms=0)

    async def neighbour() -> list[str]:
        settled = asyncio.Event()
        store, provider = SQLiteStore(tmp_path / LEDGER), FileProvider(tmp_path / BOOK)
        async with Ledger(store, [provider], patience=patience) as ledger:
            ledger.subscribe(lambda fact: settled.set() if fact.is_settled else None)
            killed = await asyncio.to_thread(run, tmp_path, point)
            assert killed.returncode == -signal.SIGKILL
            await asyncio.wait_for(settled.wait(), 20)
            await ledger.commit(lambda page: sending.left(page, ()))
            return [row.kind for row in await ledger.outbox()]

    assert asyncio.run(neighbour()) == ["untold"]
    assert len(effects(tmp_path / BOOK)) == 1


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
        async with Ledger(SQLiteStore(tmp_path / LEDGER), [provider]) as ledger:
            (operation,) = await ledger.commit(lambda page: page.tx.find(Operation))
            return operation.state, [row.kind for row in await ledger.outbox()]

    async def main() -> None:
        held, settled = Held(tmp_path / BOOK), asyncio.Event()
        async with Ledger(SQLiteStore(tmp_path / LEDGER), [held]) as owner:
            owner.subscribe(lambda fact: settled.set() if fact.is_settled else None)
            terms = Terms("order:4417", Money(3200, "USD"), Card("tok_visa", "Visa", "4242"))
            await owner.propose(Ask("refund", "full", "customer:81", "payments", terms, is_waited_for=True))
            await held.asked.wait()
            assert await started(Held(tmp_path / BOOK)) == (State.RUNNING, [])
            held.let_go.set()
            await settled.wait()
            assert await started(Held(tmp_path / BOOK)) == (State.CONFIRMED, [])
        assert await started(Held(tmp_path / BOOK)) == (State.CONFIRMED, ["untold"])

    asyncio.run(main())

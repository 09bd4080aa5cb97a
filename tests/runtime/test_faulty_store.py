"""A disk that is full, locked or slow costs patience: nothing is sent that is not on it, and no caller waits for it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from tests.ledger.rows import TERMS
from tests.runtime.calls import ANYTHING, OPENING, Taken, calls, delta, ended, started, written
from tests.runtime.refunds import CARDS, EFFECT, PARTY, Shop, outputs, refund, take_call

from callwright.errors import LedgerError
from callwright.ids import Ms
from callwright.ledger.asking import Ask
from callwright.ledger.provider import Dispatch, Observed
from callwright.ledger.sqlite import SQLiteStore
from callwright.ledger.store import MemoryStore, Transaction
from callwright.runtime.dispatcher import Ledger
from callwright.sim.loop import loop_ms
from callwright.sim.vloop import run_virtual

COMMIT_MS: Ms = 2_000


def ask(note: str = "") -> Ask:
    return Ask("refund", "full", PARTY, "payments", replace(TERMS, card=CARDS["4242"], details={"note": note}))


def test_f28_a_full_disk_takes_no_wish_and_nothing_is_sent_until_there_is_room(tmp_path: Path) -> None:
    shop, store = Shop(), SQLiteStore(tmp_path / "ledger.db")
    run = store._connection.execute

    async def main() -> None:
        async with Ledger(store, [shop.provider.adapter()], clock=loop_ms) as ledger:
            run("PRAGMA max_page_count = 1")  # as many as there are
            with pytest.raises(LedgerError, match="full"):
                await ledger.propose(ask("x" * 50_000))
            await asyncio.sleep(60)
            assert shop.sends == []
            assert await ledger.snapshot(PARTY) == ()
            run("PRAGMA max_page_count = 100000")
            await ledger.propose(ask("x" * 50_000))
            await asyncio.sleep(60)
            assert [fact.milestone for fact in await ledger.snapshot(PARTY)] == ["confirmed"]
            assert await ledger.problems() == ()

    run_virtual(main())
    assert shop.effects == [EFFECT]


def test_f28_a_file_that_is_locked_as_the_answer_comes_leaves_a_doubt_that_is_looked_up(tmp_path: Path) -> None:
    """The effect is there, and what was seen of it could not be kept: it is sent no second time."""
    shop, store = Shop(), SQLiteStore(tmp_path / "ledger.db")
    store._connection.execute("PRAGMA busy_timeout = 0")
    other = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)

    class Locking:
        """An adapter that locks the file before it answers."""

        def __init__(self) -> None:
            self._adapter = shop.provider.adapter()
            self.name, self.traits = self._adapter.name, self._adapter.traits
            self.look_up, self.cancel = self._adapter.look_up, self._adapter.cancel

        async def send(self, dispatch: Dispatch) -> Observed:
            seen = await self._adapter.send(dispatch)
            other.execute("BEGIN IMMEDIATE")
            return seen

    async def main() -> None:
        async with Ledger(store, [Locking()], clock=loop_ms) as ledger:
            await ledger.propose(ask())
            await asyncio.sleep(10)
            with pytest.raises(LedgerError, match="locked"):
                await ledger.snapshot(PARTY)
            other.execute("ROLLBACK")
            await asyncio.sleep(7_200)
            assert [fact.milestone for fact in await ledger.snapshot(PARTY)] == ["confirmed"]
            assert await ledger.problems() == ()

    run_virtual(main())
    other.close()
    assert shop.effects == [EFFECT]
    assert len(shop.sends) == 1


def test_i25_a_commit_that_hangs_holds_up_nothing_on_the_loop() -> None:
    """The disk answers only once the loop has turned a hundred times: one that waited for it would never turn."""
    turned = threading.Event()

    class Hanging(MemoryStore):
        @contextmanager
        def transaction(self) -> Iterator[Transaction]:
            assert turned.wait(10)
            with super().transaction() as tx:
                yield tx

    async def main() -> None:
        ledger = Ledger(Hanging(), [Shop().provider.adapter()])
        asking = asyncio.get_running_loop().create_task(ledger.propose(ask()))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not asking.done()
        turned.set()
        await asking
        ledger.close()

    asyncio.run(main())


def test_f33_while_a_commit_takes_two_seconds_the_caller_hears_the_holding_line_and_is_heard() -> None:
    shop = Shop()
    asks = (started(), delta(1_000), written("One moment."), calls("issue_refund", arguments=refund()), ended())

    async def main() -> Taken:
        async with shop.ledger() as ledger:
            taken = await take_call(ledger, *OPENING, *asks, hang_up_ms=8_000, ignoring=ANYTHING)
            await asyncio.sleep(60)
            return taken

    taken = run_virtual(main(), executor_latency_ms=COMMIT_MS)
    called_ms = next(row[0] for row in taken.rows if row[1:3] == ["on", "ToolCalled"])
    told_ms = next(row[0] for row in taken.rows if row[1:3] == ["on", "ToolFinished"])
    assert told_ms - called_ms >= COMMIT_MS
    assert taken.agent_turns[0] == ("One moment.", "One moment.", "whole")
    assert len(taken.model.appends) > COMMIT_MS // 20
    assert max(later - sooner for sooner, later in pairwise(taken.model.appends)) <= 20
    assert outputs(taken)["k1"]["asked"] == "created"
    assert shop.effects == [EFFECT]

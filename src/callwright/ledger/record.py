"""The record: the one door to the ledger for everything that runs on an event loop.

Each verb is one transaction, carried out in a thread of the record's own, in the order of asking. Whoever waits for a
verb may be cancelled: the transaction is carried out and published all the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from callwright.errors import LedgerError
from callwright.ids import Ms
from callwright.ledger import asking, audit, folding, owing
from callwright.ledger.asking import Answer, Ask
from callwright.ledger.operation import SETTLED, Actor
from callwright.ledger.page import Page, Patience
from callwright.ledger.provider import Observed, Provider
from callwright.ledger.rows import Operation, Outbox, Told
from callwright.ledger.saying import OUTCOMES, FactChanged, fact_of
from callwright.ledger.sending import attempt_of_key
from callwright.ledger.store import Store

T = TypeVar("T")
Listener = Callable[[FactChanged], None]


def wall_clock_ms() -> Ms:
    """Milliseconds since 1970: rows outlive the process, so their times are the wall's."""
    return time.time_ns() // 1_000_000


class Record:
    """Operations in a store, for the code on one event loop."""

    def __init__(
        self,
        store: Store,
        providers: Sequence[Provider],
        *,
        clock: Callable[[], Ms] = wall_clock_ms,
        patience: Patience | None = None,
    ) -> None:
        self.providers: Mapping[str, Provider] = {provider.name: provider for provider in providers}
        self.patience = patience or Patience()
        self._traits = {provider.name: provider.traits for provider in providers}
        self._store = store
        self._clock = clock
        self._latest_ms = 0
        self._thread = ThreadPoolExecutor(1, "ledger")
        self._listeners: dict[int, tuple[str | None, Listener]] = {}
        self._numbers = 0
        self._is_open = True

    @property
    def is_shared(self) -> bool:
        """Whether other processes may have the same record open."""
        return self._store.is_shared

    def is_first(self) -> bool:
        """Begin to tend the record, inside a transaction; true if no other process does."""
        return self._store.is_first()

    def now_ms(self) -> Ms:
        """The time, which never runs backwards: a window that has closed stays closed."""
        self._latest_ms = max(self._latest_ms, self._clock())
        return self._latest_ms

    async def commit(self, write: Callable[[Page], T], then: Callable[[T], None] | None = None) -> T:
        """Do something on one page: all of it, on the disk when this returns, or nothing of it.

        ``then`` is called with the result once it is on the disk, before any fact is published, whoever still waits.
        Raises what ``write`` raises, and LedgerError for a store that cannot be read or written, or is closed.
        """
        if not self._is_open:
            raise LedgerError("the ledger is closed")
        done = asyncio.get_running_loop().run_in_executor(self._thread, self._write, write, self.now_ms())
        done.add_done_callback(partial(self._publish, then))
        result, _ = await asyncio.shield(done)
        return result

    def _write(self, write: Callable[[Page], T], now_ms: Ms) -> tuple[T, Page]:
        with self._store.transaction() as tx:
            page = Page(tx, now_ms, self._traits, self.patience)
            result = write(page)
        return result, page

    def _publish(self, then: Callable[[T], None] | None, done: asyncio.Future[tuple[T, Page]]) -> None:
        if done.cancelled() or done.exception() is not None:
            return
        result, page = done.result()
        if then is not None:
            then(result)
        for operation in page.written.values():
            fact = fact_of(operation)
            for party, listener in list(self._listeners.values()):
                if party in (None, operation.party):
                    listener(fact)
        if page.is_owing:
            self._is_owing()

    def _is_owing(self) -> None:
        """Something is on the outbox that was not there."""

    def subscribe(self, listener: Listener, *, party: str | None = None) -> Callable[[], None]:
        """Call ``listener`` on the loop with each fact that changes, of one party or of all; returns what ends it."""
        self._numbers += 1
        number = self._numbers
        self._listeners[number] = (party, listener)
        return lambda: self._listeners.pop(number, None) and None

    # Asking

    async def propose(self, ask: Ask) -> Answer:
        """Ask for an action; asking again, in any call or process, is the same operation.

        Raises LedgerError if its provider is not one of this ledger's.
        """
        return await self.commit(lambda page: asking.propose(page, ask))

    async def authorize(self, op_id: str, rev: int, params_hash: str, by: Actor) -> Answer:
        """Say yes to exactly the terms that ``rev`` and ``params_hash`` name. Raises LedgerError if there are none."""
        return await self.commit(lambda page: asking.authorize(page, op_id, rev, params_hash, by))

    async def withdraw(self, op_id: str, party: str, by: Actor = Actor.CALLER) -> Answer:
        """Withdraw an action that was not sent yet. Raises LedgerError if there is no such operation."""
        return await self.commit(lambda page: asking.withdraw(page, op_id, party, by))

    async def observe(self, provider_key: str, observed: Observed, source: Actor = Actor.WEBHOOK) -> FactChanged:
        """Take in what a provider's verified message, or a person, says of an attempt; the same twice is once.

        Raises LedgerError for a key that is none of ours: such an effect is somebody else's.
        """

        def take_in(page: Page) -> FactChanged:
            attempt = attempt_of_key(page, provider_key)
            return fact_of(folding.fold(page, attempt.op_id, attempt.n, observed, source))

        return await self.commit(take_in)

    # Telling

    async def snapshot(self, party: str) -> tuple[FactChanged, ...]:
        """What may be said now of each of a party's operations, oldest first."""

        def read(page: Page) -> tuple[FactChanged, ...]:
            return tuple(fact_of(each) for each in page.tx.find(Operation, party=party))

        return await self.commit(read)

    async def untold(self, party: str) -> tuple[FactChanged, ...]:
        """The outcomes of a party's operations that he has not heard, oldest first; not what a person has seen to.

        What a call left before there was an outcome is among them.
        """

        def is_due(page: Page, fact: FactChanged) -> bool:
            is_outcome = fact.milestone in OUTCOMES
            return not owing.is_told(page, fact) if is_outcome else owing.is_left(page, fact.op_id)

        def read(page: Page) -> tuple[FactChanged, ...]:
            facts = (fact_of(each) for each in page.tx.find(Operation, party=party))
            return tuple(fact for fact in facts if is_due(page, fact))

        return await self.commit(read)

    async def note_told(self, op_id: str, milestone: str, version: int, state: str) -> None:
        """Store how far the telling of one fact has come, in the words of whoever decides it.

        An outcome that is ``deferred`` goes to the outbox as well, and comes off it once it is ``heard``.
        """

        await self.commit(lambda page: owing.note(page, op_id, milestone, version, state))

    async def told(self, op_id: str) -> tuple[Told, ...]:
        """How far the telling of each fact of an operation has come, oldest first."""
        return await self.commit(lambda page: tuple(page.tx.find(Told, op_id=op_id)))

    async def outbox(self) -> tuple[Outbox, ...]:
        """What is owed outside the calls and was not done yet, oldest first."""
        return await self.commit(lambda page: tuple(page.tx.find(Outbox, done_at_ms=None)))

    async def done(self, op_id: str, version: int, kind: str | None = None) -> FactChanged:
        """Take a row off the outbox, or all of a version: a person has seen to it.

        An operation in doubt stays his until it is settled. Raises LedgerError if there is no such row.
        """

        def write(page: Page) -> FactChanged:
            rows = page.tx.find(Outbox, op_id=op_id, version=version, **({} if kind is None else {"kind": kind}))
            if not rows:
                raise LedgerError(f"the outbox has nothing of operation {op_id} at version {version}")
            for row in rows:
                page.tx.update(replace(row, done_at_ms=page.now_ms))
            operation = page.operation(op_id)
            is_looked_at = any(row.kind == owing.PERSON for row in rows)
            if is_looked_at and operation.escalated and operation.state in SETTLED:
                operation = page.note(operation, Actor.HUMAN, "seen to", escalated="")
            return fact_of(operation)

        return await self.commit(write)

    # Checking

    async def problems(self) -> tuple[str, ...]:
        """What does not agree in the record, and with what was heard, each as one line; empty if everything does."""
        return (*await self._contradictions(), *await self.commit(audit.unheard))

    async def _contradictions(self) -> tuple[str, ...]:
        damage = await asyncio.get_running_loop().run_in_executor(self._thread, self._store.check)
        return (*damage, *await self.commit(audit.problems))

    async def check(self) -> None:
        """Raise LedgerError if the record is not fit to dispatch from."""
        if found := await self._contradictions():
            raise LedgerError(f"nothing is dispatched from a ledger that does not agree with itself: {found[0]}")

    def close(self) -> None:
        """Wait for the transaction that is under way, and close the store."""
        self._is_open = False
        self._thread.shutdown()
        self._store.close()

"""Dispatches what the record holds: a service of the process, not of any call.

One task tends each operation that is not at rest: it asks the record what is next, does that outside, and gives the
record what it saw. Nothing else sends. A call that ends, a caller who interrupts and a tool that is cancelled reach
none of these tasks; a process that dies leaves rows, and the next one begins with those.

```
ask      a wish, and the attempt with it where nothing speaks against that
advance  or later, when the record says: send, and has stored the attempt
  send   ░░░░░░░░░░░░░░░░░░░░░ the provider answers, or does not
    fold what was seen is stored, and the state follows
      advance ... until the record says: rest
```

Every await has a name in ``POINTS``, before and after which a simulated process may die.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from callwright.errors import LedgerError
from callwright.ids import Ms
from callwright.ledger import asking, audit, sending
from callwright.ledger.asking import Answer, Ask
from callwright.ledger.folding import fold
from callwright.ledger.operation import Actor
from callwright.ledger.page import Page, Patience
from callwright.ledger.provider import Dispatch, Observed, Outcome, Provider
from callwright.ledger.record import Record, wall_clock_ms
from callwright.ledger.rows import Operation
from callwright.ledger.saying import FactChanged, fact_of
from callwright.ledger.sending import Act, Next
from callwright.ledger.sqlite import SQLiteStore
from callwright.ledger.store import MemoryStore, Store
from callwright.runtime.outbox import OutboxFile
from callwright.runtime.problems import Whole, kind_and_place

T = TypeVar("T")
log = logging.getLogger("callwright.ledger")

POINTS = (
    "check",
    "recover",
    "pause",
    "left",
    "ask",
    "advance",
    "wait",
    "broken",
    "provider",
    "fold",
    "reconcile",
    "report",
)
"""The names of all awaits of the dispatcher, each a place where a process can die: before it and after it."""

BROKEN_STORE_MS: Ms = 1_000
"""After a store that failed an operation is tended again after so long."""


def _nowhere(point: str) -> None:
    """Let nothing happen at a named point."""


class Dispatcher:
    """Tends the operations of one record. ``crash_at`` is told each named point as it is passed."""

    def __init__(self, record: Record, *, crash_at: Callable[[str], None] = _nowhere) -> None:
        self._record = record
        self._crash_at = crash_at
        self._tended: dict[str, asyncio.Task[None]] = {}
        self._news: dict[str, asyncio.Event] = {}
        self._due: dict[str, Next] = {}
        """What was stored with the wish itself, and is sent by whoever tends the operation."""
        self._is_open = False
        self._neighbour: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], object] = _nothing

    async def start(self) -> None:
        """Check the record, take over what another process left behind, and tend from now on what is asked for.

        Raises LedgerError if the record does not agree with itself; nothing is dispatched then.
        """
        await self._through("check", self._record.check)
        self._is_open = True
        self._unsubscribe = self._record.subscribe(self._on_fact)
        for op_id in await self._through("recover", self._record.commit, self._begin_with):
            if op_id not in self._tended:
                self._tend(op_id)
        if self._record.is_shared:
            self._neighbour = asyncio.get_running_loop().create_task(self._take_over())

    def _begin_with(self, page: Page) -> list[str]:
        return sending.recover(page) if self._record.is_first() else sending.join(page)

    async def close(self) -> None:
        """Stop tending. What is under way stays as it is in the record, and the next process finds it."""
        self._is_open = False
        self._unsubscribe()
        tasks = [*self._tended.values(), *([self._neighbour] if self._neighbour else [])]
        self._tended.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _take_over(self) -> None:
        """Time and again look for what a neighbour has left, whose process died or hangs, and tend that as well."""
        while True:
            await self._through("pause", self._wait, asyncio.Event(), self._record.patience.left_ms)
            look = partial(sending.left, tended=tuple(self._tended))
            try:
                for op_id in await self._through("left", self._record.commit, look):
                    if op_id not in self._tended:
                        self._tend(op_id)
            except LedgerError as problem:
                log.warning("what neighbours have left cannot be read: %s", problem)

    async def ask(self, wish: Callable[[Page], Answer]) -> Answer:
        """Ask for something. What may be sent at once has its attempt in the same transaction, and leaves after it."""

        def write(page: Page) -> tuple[Answer, Next]:
            answer = wish(page)
            return sending.start(page, answer) if self._is_open else (answer, sending.REST)

        begun: tuple[Answer, Next] = await self._through("ask", self._record.commit, write, self._begin)
        return begun[0]

    def _begin(self, begun: tuple[Answer, Next]) -> None:
        """Leave a send to whoever tends the operation; the fact that is published next wakes him."""
        answer, upcoming = begun
        if upcoming.act is Act.SEND:
            self._due[answer.op_id] = upcoming

    async def reconcile(self, op_id: str) -> FactChanged:
        """Ask the provider now what became of an operation, and return what may be said of it then."""
        commit = self._record.commit
        upcoming = await self._through("reconcile", commit, lambda page: sending.look_up(page, op_id))
        if upcoming.dispatch:
            await self._carry_out(upcoming)
        return await self._through("report", commit, lambda page: fact_of(page.operation(op_id)))

    def _on_fact(self, fact: FactChanged) -> None:
        if fact.op_id in self._tended:
            self._news[fact.op_id].set()
        else:
            self._tend(fact.op_id)

    def _tend(self, op_id: str) -> None:
        self._news[op_id] = asyncio.Event()
        task = asyncio.get_running_loop().create_task(self._until_it_rests(op_id))
        self._tended[op_id] = task
        task.add_done_callback(partial(self._on_rest, op_id))

    def _on_rest(self, op_id: str, task: asyncio.Task[None]) -> None:
        if self._tended.get(op_id) is not task:
            return
        del self._tended[op_id]
        if self._news.pop(op_id).is_set():
            self._tend(op_id)
        elif not task.cancelled() and (problem := task.exception()) is not None:
            log.error("operation %s is no longer tended: %s", op_id, kind_and_place(problem))
            log.debug("operation %s is no longer tended\n%s", op_id, Whole(problem))

    async def _until_it_rests(self, op_id: str) -> None:
        news = self._news[op_id]
        while True:
            news.clear()
            try:
                upcoming = await self._next(op_id)
                if upcoming.act is Act.REST:
                    return
                if upcoming.act is Act.WAIT:
                    await self._through("wait", self._wait, news, upcoming.at_ms - self._record.now_ms())
                else:
                    await self._carry_out(upcoming)
            except LedgerError as problem:
                log.warning("operation %s: %s", op_id, problem)
                await self._through("broken", self._wait, asyncio.Event(), BROKEN_STORE_MS)

    async def _next(self, op_id: str) -> Next:
        """What is to be done outside: what was stored with the wish, else what the record says now."""
        if op_id in self._due:
            return self._due.pop(op_id)
        return await self._through("advance", self._record.commit, lambda page: sending.advance(page, op_id))

    async def _carry_out(self, upcoming: Next) -> None:
        """Send, look up or cancel, and give the record what was seen."""
        dispatch = upcoming.dispatch
        assert dispatch is not None
        provider = self._record.providers.get(upcoming.provider)
        if provider is None:
            raise LedgerError(
                f"operation {dispatch.op_id} needs the provider {upcoming.provider!r}; open the ledger with it"
            )
        if upcoming.act is Act.SEND and self._record.now_ms() >= upcoming.at_ms:
            verb = _too_late
        else:
            verb = {Act.SEND: provider.send, Act.LOOK_UP: provider.look_up, Act.CANCEL: provider.cancel}[upcoming.act]
        observed = await self._through("provider", _observed, verb, dispatch, provider.traits.request_max_ms)
        source = Actor.ADAPTER if upcoming.act is Act.SEND else Actor.RECONCILER

        def take_in(page: Page) -> None:
            fold(page, dispatch.op_id, dispatch.n, observed, source, state_version=upcoming.state_version)

        await self._through("fold", self._record.commit, take_in)

    async def _wait(self, news: asyncio.Event, wait_ms: Ms) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(wait_ms, 1) / 1000):
                await news.wait()

    async def _through(self, point: str, do: Callable[..., Awaitable[T]], *args: object) -> T:
        """Await something that has a name."""
        self._crash_at(f"before {point}")
        result = await do(*args)
        self._crash_at(f"after {point}")
        return result


def _nothing() -> None:
    """End no subscription."""


async def _too_late(dispatch: Dispatch) -> Observed:
    """Send nothing."""
    return Observed(Outcome.NOT_SENT, reason="too_late")


async def _observed(verb: Callable[[Dispatch], Awaitable[Observed]], dispatch: Dispatch, timeout_ms: Ms) -> Observed:
    """What an adapter saw; whatever it raises, and a silence, is a doubt."""
    try:
        async with asyncio.timeout(timeout_ms / 1000):  # wait_for forgets a cancel that comes with the answer
            return await verb(dispatch)
    except TimeoutError:
        return Observed(Outcome.UNKNOWN, reason="timeout")
    except Exception as problem:
        log.warning("a provider's adapter raised %s", type(problem).__name__)
        return Observed(Outcome.UNKNOWN, reason="adapter_raised")


class Ledger(Record):
    """The record of what was asked for, and the dispatcher that sees to it while the ledger is open.

    ``async with Ledger.open("refunds.db", providers=[payments]) as ledger:`` opens a file; a path of None keeps the
    record in memory. Entering raises LedgerError for a file that is none of ours or does not agree with itself.
    """

    def __init__(
        self,
        store: Store,
        providers: Sequence[Provider],
        *,
        clock: Callable[[], Ms] = wall_clock_ms,
        patience: Patience | None = None,
        crash_at: Callable[[str], None] = _nowhere,
        outbox: str | Path | None = None,
    ) -> None:
        super().__init__(store, providers, clock=clock, patience=patience)
        self._dispatcher = Dispatcher(self, crash_at=crash_at)
        self._outbox_file = None if outbox is None else OutboxFile(outbox)
        self._mirroring: dict[asyncio.Task[None], None] = {}

    @classmethod
    def open(
        cls,
        path: str | Path | None,
        *,
        providers: Sequence[Provider],
        patience: Patience | None = None,
        outbox: str | Path | None = None,
    ) -> Ledger:
        """A ledger in a SQLite file, or in memory if ``path`` is None; it works inside ``async with``.

        ``outbox`` names a file to which each row of the outbox is appended as a JSON line. Raises LedgerError if the
        ledger's file cannot be opened or is of another schema.
        """
        return cls(MemoryStore() if path is None else SQLiteStore(path), providers, patience=patience, outbox=outbox)

    async def __aenter__(self) -> Ledger:
        await self._dispatcher.start()
        await self._mirror()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._dispatcher.close()
        await self._mirror()
        self.close()

    async def propose(self, ask: Ask) -> Answer:
        """Ask for an action; asking again, in any call or process, is the same operation.

        What may be sent at once is sent as soon as this is on the disk. Raises LedgerError if its provider is not one
        of this ledger's.
        """
        return await self._dispatcher.ask(lambda page: asking.propose(page, ask))

    async def authorize(self, op_id: str, rev: int, params_hash: str, by: Actor) -> Answer:
        """Say yes to exactly the terms that ``rev`` and ``params_hash`` name. Raises LedgerError if there are none."""
        return await self._dispatcher.ask(lambda page: asking.authorize(page, op_id, rev, params_hash, by))

    def _is_owing(self) -> None:
        if self._outbox_file is None:
            return
        task = asyncio.get_running_loop().create_task(self._mirror())
        self._mirroring[task] = None
        task.add_done_callback(lambda done: self._mirroring.pop(done, None))

    async def _mirror(self) -> None:
        """Append to the outbox's file what is new in the outbox; a file that cannot be written stops nothing."""
        if self._outbox_file is None:
            return
        try:
            await self.commit(self._outbox_file.write)
        except (OSError, LedgerError) as problem:
            log.warning("the outbox's file is behind: %s", problem)

    async def reconcile(self, op_id: str) -> FactChanged:
        """Ask the provider now what became of an operation; returns what may be said of it then.

        Raises LedgerError if there is no such operation.
        """
        return await self._dispatcher.reconcile(op_id)

    async def problems(self, *, ask_providers: bool = False) -> tuple[str, ...]:
        """What does not agree in the record, and with what was heard, each as one line; empty if everything does.

        With ``ask_providers`` each attempt is looked up as well, and what its provider says is held against the record.
        Nothing is sent by that, and nothing of it taken in: ``reconcile`` does.
        """
        found = list(await super().problems())
        for operation, upcoming in await self.commit(sending.look_ups) if ask_providers else ():
            found += await self._differences(operation, upcoming)
        return tuple(found)

    async def _differences(self, operation: Operation, upcoming: Next) -> list[str]:
        dispatch, provider = upcoming.dispatch, self.providers.get(upcoming.provider)
        assert dispatch is not None
        if provider is None:
            seen = Observed(Outcome.UNKNOWN, reason="the ledger was opened without it")
        else:
            seen = await _observed(provider.look_up, dispatch, provider.traits.request_max_ms)
        told = await self.commit(lambda page: audit.differs(page, operation, dispatch.n, seen))
        return [] if told is None else [told]

"""The world behind the agent while calls are played: the app's deps, the stand-in provider, and the process that has
the ledger.

```
opened ── calls ── hung up ── settled: nothing is under way, or SETTLES_WITHIN_MS have passed ── the books are read
process   ├────────── ✝ a call in it dies, too ── after a while ├──────────────────────────────┤
```

Store and provider outlive a process: the next one begins with what the store has. The provider's book is the truth;
the ledger's rows are what the product believes, to be held against it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callwright.ids import Ms
from callwright.ledger import audit
from callwright.ledger.page import Page
from callwright.ledger.rows import Attempt, Authorization, Event, Operation, Outbox, Row, Told
from callwright.ledger.store import KEYS, MemoryStore
from callwright.runtime.dispatcher import Ledger
from callwright.sim.agents import make_deps
from callwright.sim.behind.dying import Crash, Life, MortalProvider, MortalStore
from callwright.sim.loop import loop_ms
from callwright.sim.record import Effect

if TYPE_CHECKING:
    from callwright.ledger.provider import Provider, Traits
    from callwright.sim.behind.settings import Behind
    from callwright.sim.provider import Book, StandIn

SETTLES_WITHIN_MS: Ms = 120_000
"""For so long after the last call the provider and the ledger may go on before the books are read."""
_LOOK_EVERY_MS: Ms = 250


@dataclass(frozen=True, slots=True)
class Books:
    """What the provider and the ledger hold in the end. All instants are on the loop's clock."""

    book: Book
    """The provider's own: every request that was sent, every refund."""
    fired: Mapping[str, int]
    """How often each fault happened."""
    operations: tuple[Operation, ...]
    attempts: tuple[Attempt, ...]
    authorizations: tuple[Authorization, ...]
    told: tuple[Told, ...]
    """How far the ledger believes that each telling has come."""
    outbox: tuple[Outbox, ...]
    events: tuple[Event, ...]
    rows: tuple[Row, ...]
    """All rows of the ledger, of every table that it has."""
    problems: tuple[str, ...]
    """What the ledger's rows say against themselves, and against what was heard."""
    opened_ms: Ms
    """When the call's clock began."""


class Backend:
    """What calls share. ``ledger`` and ``provider`` are None where there is no ``stand_in``.

    ``provider`` is the adapter as a client without a ledger uses it; ``timeout_ms`` is how long it waits for an answer.
    It works inside ``async with``.
    """

    def __init__(self, stand_in: StandIn | None, timeout_ms: Ms, deps: object = None, party: str | None = None) -> None:
        self.deps = deps
        self.party = party
        self.stand_in = stand_in
        self.provider: Provider | None = stand_in.adapter(timeout_ms=timeout_ms) if stand_in else None
        self.ledger: Ledger | None = None
        """That of the process that lives now."""
        self._store = MemoryStore()
        self._survived: list[str] = []
        """What a process was to die of, and did not come to."""

    async def __aenter__(self) -> Backend:
        await self._begin(Life([]))
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self._end()

    async def _begin(self, life: Life) -> None:
        """Begin a process with what the store has."""
        if self.provider is not None:
            store, provider = MortalStore(self._store, life), MortalProvider(self.provider, life)
            self.ledger = await Ledger(store, [provider], clock=loop_ms, crash_at=life.crash_at).__aenter__()

    async def _end(self) -> None:
        if self.ledger is not None:
            await self.ledger.__aexit__(None, None, None)

    async def die_in(self, call: Coroutine[Any, Any, object], crash: Crash) -> None:
        """Take a call in a process that dies at a point in it, and begin the next one after ``crash.gap_ms``.

        For the caller the line goes dead. A process that does not come by that point lives on.
        """
        await self._end()
        life = Life([crash])
        await self._begin(life)
        loop = asyncio.get_running_loop()
        taking, dying = loop.create_task(call), loop.create_task(life.died.wait())
        dying.add_done_callback(lambda _died: taking.cancel())
        try:
            await taking
        except asyncio.CancelledError:
            if not life.is_dead:
                raise
        finally:
            dying.cancel()
        if life.crash is None:
            self._survived.append(f"the death {crash.point}")
            return
        await self._end()
        await asyncio.sleep(crash.gap_ms / 1000)
        await self._begin(Life([]))

    async def settle(self) -> None:
        """Wait until nothing is under way."""
        for _ in range(SETTLES_WITHIN_MS // _LOOK_EVERY_MS):
            if not await self.is_busy():
                return
            await asyncio.sleep(_LOOK_EVERY_MS / 1000)

    async def is_busy(self) -> bool:
        """Whether something is still under way, at the provider or for the ledger."""
        if self.stand_in is None or self.ledger is None:
            return False
        self.stand_in.book.advance(loop_ms())
        if any(refund.status.value == "pending" for refund in self.stand_in.book.refunds()):
            return True
        return not all(fact.is_settled for fact in await self.ledger.snapshot(self.party or ""))

    async def books(self, opened_ms: Ms) -> Books | None:
        """Both books as they are; None where there are none. ``opened_ms`` is when the call's clock began."""
        stand_in = self.stand_in
        if stand_in is None or self.ledger is None:
            return None
        stand_in.book.advance(loop_ms())

        def read(page: Page) -> Books:
            return Books(
                book=stand_in.book,
                fired=stand_in.fired,
                operations=tuple(page.tx.find(Operation)),
                attempts=tuple(page.tx.find(Attempt)),
                authorizations=tuple(page.tx.find(Authorization)),
                told=tuple(page.tx.find(Told)),
                outbox=tuple(page.tx.find(Outbox)),
                events=tuple(page.tx.find(Event)),
                rows=tuple(row for table in KEYS for row in page.tx.find(table)),
                problems=(*audit.problems(page), *audit.unheard(page)),
                opened_ms=opened_ms,
            )

        return await self.ledger.commit(read)

    @property
    def traits(self) -> Traits:
        """What an adapter knows of the provider, which has to be there."""
        assert self.provider is not None
        return self.provider.traits

    @property
    def unfired(self) -> tuple[str, ...]:
        """What always happens where it can, and never did."""
        if self.stand_in is None:
            return ()
        faults, fired = self.stand_in.desk.settings.faults, self.stand_in.fired
        never = [name for name, fault in faults.items() if fault.rate == 1 and not fired.get(name)]
        return (*(f"the provider's fault {name}" for name in never), *self._survived)


def effects(book: Book, opened_ms: Ms) -> tuple[Effect, ...]:
    """All that a provider's book has, in order; ``opened_ms`` is when the call's clock began, on the loop's."""
    from callwright.sim.provider.book import Refund

    return tuple(
        Effect(
            effect_id=entry.id,
            kind=entry.ask.kind,
            subject=entry.ask.charge,
            slot=entry.ask.slot,
            amount_minor=entry.ask.amount.minor if entry.ask.amount else None,
            currency=entry.ask.amount.currency if entry.ask.amount else "",
            destination=entry.card if entry.ask.amount else "",
            status=entry.status.value,
            at_ms=entry.at_ms - opened_ms,
        )
        for entry in book.entries
        if isinstance(entry, Refund)
    )


@asynccontextmanager
async def open_backend(behind: Behind, seed: int) -> AsyncIterator[Backend]:
    """What is behind the agent of one run. Raises UsageError for deps that cannot be made."""
    deps = make_deps(behind.deps) if behind.deps else None
    stand_in = None
    if behind.provider is not None:
        from callwright.sim.provider import SHOP, StandIn  # only where needed: it brings an HTTP client

        stand_in = StandIn(behind.provider, behind.charges or SHOP, seed=seed)
    async with Backend(stand_in, behind.timeout_ms, deps, behind.party) as backend:
        yield backend

"""What is behind the agent of a call without samples: a stand-in provider, a ledger in memory, and what both hold.

```
provider, ledger   opened ── call ── hung up ── after_ms: late requests land, doubts are looked up ──│ Books
```

The provider's book is the truth; the ledger's rows are what the product believes, to be held against it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callwright.ids import Ms
from callwright.ledger import audit
from callwright.ledger.page import Page
from callwright.ledger.rows import Attempt, Operation, Outbox, Told
from callwright.ledger.store import MemoryStore
from callwright.runtime.dispatcher import Ledger
from callwright.sim.loop import loop_ms
from callwright.sim.provider import SHOP, ProviderSettings, StandIn
from callwright.sim.provider.book import Ask

if TYPE_CHECKING:
    from callwright.sim.provider import Book

_BY_HAND = "by hand"


@dataclass(frozen=True, slots=True)
class QuickProvider:
    """How the provider behind a call behaves, and what became of its charges before the call."""

    settings: ProviderSettings = field(default_factory=ProviderSettings)
    timeout_ms: Ms = 10_000
    """How long its client waits for an answer."""
    by_hand: tuple[str, ...] = ()
    """Charges that a person has refunded in full at the provider, past the ledger."""
    after_ms: Ms = 0
    """How long the world goes on after the call."""


@dataclass(frozen=True, slots=True)
class Books:
    """What the provider and the ledger hold in the end. All instants are on the loop's clock."""

    book: Book
    """The provider's own: every request that was sent, every refund."""
    fired: Mapping[str, int]
    """How often each fault happened."""
    operations: tuple[Operation, ...]
    attempts: tuple[Attempt, ...]
    told: tuple[Told, ...]
    """How far the ledger believes that each telling has come."""
    outbox: tuple[Outbox, ...]
    problems: tuple[str, ...]
    """What the ledger's rows say against themselves."""
    opened_ms: Ms
    """When the call's clock began."""


@dataclass(slots=True)
class Open:
    """A provider and its ledger while a call is played."""

    provider: QuickProvider
    stand_in: StandIn
    ledger: Ledger

    async def close(self, opened_ms: Ms) -> Books:
        """Let the world go on for as long as is wished, and read the books."""
        await asyncio.sleep(self.provider.after_ms / 1000)
        self.stand_in.book.advance(loop_ms())
        return await self.ledger.commit(lambda page: self._read(page, opened_ms))

    def _read(self, page: Page, opened_ms: Ms) -> Books:
        find = page.tx.find
        return Books(
            book=self.stand_in.book,
            fired=self.stand_in.fired,
            operations=tuple(find(Operation)),
            attempts=tuple(find(Attempt)),
            told=tuple(find(Told)),
            outbox=tuple(find(Outbox)),
            problems=audit.problems(page),
            opened_ms=opened_ms,
        )


@asynccontextmanager
async def open_books(provider: QuickProvider | None, seed: int) -> AsyncIterator[Open | None]:
    """The provider and the ledger behind one call; None where it has none."""
    if provider is None:
        yield None
        return
    stand_in = StandIn(provider.settings, seed=seed)
    for charge in SHOP:
        if charge.id in provider.by_hand:
            ask = Ask(charge.id, charge.captured, charge.cards[0], _BY_HAND, _BY_HAND)
            stand_in.book.open(ask, _BY_HAND, loop_ms())
    adapter = stand_in.adapter(timeout_ms=provider.timeout_ms)
    async with Ledger(MemoryStore(), [adapter], clock=loop_ms) as ledger:
        yield Open(provider, stand_in, ledger)

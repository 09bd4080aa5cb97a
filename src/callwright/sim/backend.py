"""The world behind the agent while a scenario is played: the app's deps, the stand-in provider, and the ledger.

```
opened ── calls ── hung up ── settled: nothing is under way, or SETTLES_WITHIN_MS have passed ── the book is read
```
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callwright.sim.agents import make_deps
from callwright.sim.loop import loop_ms
from callwright.sim.record import Effect

if TYPE_CHECKING:
    from callwright.ids import Ms
    from callwright.ledger.provider import Provider
    from callwright.runtime.dispatcher import Ledger
    from callwright.sim.behind import Behind
    from callwright.sim.provider import StandIn

SETTLES_WITHIN_MS: Ms = 120_000
"""For so long after the last call the provider and the ledger may go on before the book is read."""
_LOOK_EVERY_MS: Ms = 250


@dataclass(frozen=True, slots=True)
class Backend:
    """What calls share; ``ledger``, ``provider`` and ``stand_in`` are None in a scenario without a provider."""

    deps: object
    party: str | None
    ledger: Ledger | None = None
    provider: Provider | None = None
    """The adapter, as a client without a ledger uses it."""
    stand_in: StandIn | None = None

    async def settle(self) -> None:
        """Wait until nothing is under way."""
        for _ in range(SETTLES_WITHIN_MS // _LOOK_EVERY_MS):
            if not await self._is_busy():
                return
            await asyncio.sleep(_LOOK_EVERY_MS / 1000)

    async def _is_busy(self) -> bool:
        if self.stand_in is None or self.ledger is None:
            return False
        self.stand_in.book.advance(loop_ms())
        if any(refund.status.value == "pending" for refund in self.stand_in.book.refunds()):
            return True
        return not all(fact.is_settled for fact in await self.ledger.snapshot(self.party or ""))

    def effects(self, opened_ms: Ms) -> tuple[Effect, ...]:
        """All that the provider's book has, in order; ``opened_ms`` is when the call's clock began, on the loop's."""
        from callwright.sim.provider.book import Refund

        entries = self.stand_in.book.entries if self.stand_in else ()
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
            for entry in entries
            if isinstance(entry, Refund)
        )

    @property
    def unfired(self) -> tuple[str, ...]:
        """The faults that always happen where they can, and never did."""
        if self.stand_in is None:
            return ()
        faults, fired = self.stand_in.desk.settings.faults, self.stand_in.fired
        return tuple(name for name, fault in faults.items() if fault.rate == 1 and not fired.get(name))


@asynccontextmanager
async def open_backend(behind: Behind, seed: int) -> AsyncIterator[Backend]:
    """What is behind the agent of one run. Raises UsageError for deps that cannot be made."""
    deps = make_deps(behind.deps) if behind.deps else None
    if behind.provider is None:
        yield Backend(deps, behind.party)
        return
    from callwright.ledger.store import MemoryStore
    from callwright.runtime.dispatcher import Ledger
    from callwright.sim.provider import StandIn

    stand_in = StandIn(behind.provider, seed=seed)
    adapter = stand_in.adapter(timeout_ms=behind.timeout_ms)
    async with Ledger(MemoryStore(), [adapter], clock=loop_ms) as ledger:
        yield Backend(deps, behind.party, ledger, adapter, stand_in)

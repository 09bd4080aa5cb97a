"""What is behind the agent of a call without samples: a stand-in provider, a ledger in memory, and what both hold.

```
provider, ledger   opened ── call ── hung up ── after_ms: late requests land, doubts are looked up ──│ Books
```
"""

from __future__ import annotations

from dataclasses import dataclass, field

from callwright.ids import Ms
from callwright.sim.behind.backend import Backend
from callwright.sim.behind.settings import TIMEOUT_MS
from callwright.sim.loop import loop_ms
from callwright.sim.provider import SHOP, ProviderSettings, StandIn
from callwright.sim.provider.book import Ask

_BY_HAND = "by hand"


@dataclass(frozen=True, slots=True)
class QuickProvider:
    """How the provider behind a call behaves, and what became of its charges before the call."""

    settings: ProviderSettings = field(default_factory=ProviderSettings)
    timeout_ms: Ms = TIMEOUT_MS
    """How long its client waits for an answer."""
    by_hand: tuple[str, ...] = ()
    """Charges that a person has refunded in full at the provider, past the ledger."""
    after_ms: Ms = 0
    """How long the world goes on after the call."""

    def backend(self, seed: int) -> Backend:
        """This provider and a ledger, to be opened."""
        stand_in = StandIn(self.settings, seed=seed)
        for charge in SHOP:
            if charge.id in self.by_hand:
                ask = Ask(charge.id, charge.captured, charge.cards[0], _BY_HAND, _BY_HAND)
                stand_in.book.open(ask, _BY_HAND, loop_ms())
        return Backend(stand_in, self.timeout_ms)

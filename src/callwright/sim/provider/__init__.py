"""A stand-in payment provider with its own book: refunds settle, fail, come back, get lost on the way, or land late."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import httpx

from callwright.ids import Ms
from callwright.ledger.provider import Money
from callwright.providers.payments import Payments
from callwright.sim.http import MemoryTransport
from callwright.sim.provider.book import Book, Charge
from callwright.sim.provider.desk import Desk
from callwright.sim.provider.http import Host
from callwright.sim.provider.settings import Answers, Cancel, Destinations, Fault, ProviderSettings

__all__ = [
    "Answers",
    "Book",
    "Cancel",
    "Charge",
    "Desk",
    "Destinations",
    "Fault",
    "Host",
    "ProviderSettings",
    "StandIn",
]

HOST: Final = "payments.test"
_CARDS: Final = "card:4242", "card:8812"
SHOP: Final = (
    Charge("order:4417", Money(3200, "USD"), _CARDS, is_shipped=True),
    Charge("order:5120", Money(8950, "USD"), ("card:7003",), is_shipped=True),
    Charge("order:5530", Money(4500, "USD"), _CARDS),
    Charge("order:6210", Money(3900, "USD"), _CARDS, is_shipped=True),
)
"""What the demo shop has charged."""


class Adapter(Payments):
    """An adapter that knows the desk which it reaches, for a client that cannot be handed an adapter."""

    desk: Desk


class StandIn:
    """A stand-in provider in the same world as its client, and the way to it.

    ``host`` answers for `HOST` in a `MemoryTransport` of your own. `adapter` makes one with a client and transport of
    its own, for one running loop. The ``book`` is the truth, and ``fired`` counts what went wrong.
    """

    def __init__(self, settings: ProviderSettings, charges: Iterable[Charge] = SHOP, *, seed: int = 1) -> None:
        self.desk = Desk(settings, charges, seed)
        self.host = Host(self.desk)

    @property
    def book(self) -> Book:
        """Every request that was sent and every refund, with their instants."""
        return self.desk.book

    @property
    def fired(self) -> dict[str, int]:
        """How often each fault happened."""
        return self.desk.faults.fired

    def adapter(self, *, name: str = "payments", timeout_ms: Ms = 10_000, way_ms: Ms = 1) -> Adapter:
        """An adapter that reaches this provider; a request and its answer take ``way_ms`` each."""
        transport = MemoryTransport({HOST: self.host}, request_ms=way_ms, reply_ms=way_ms)
        client = httpx.AsyncClient(transport=transport, trust_env=False)
        traits = self.desk.settings.traits
        adapter = Adapter(f"https://{HOST}", traits, name=name, timeout_ms=timeout_ms, client=client)
        adapter.desk = self.desk
        return adapter

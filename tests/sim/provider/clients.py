"""A small careful client, and four careless ones, for the oracle to tell apart.

Each asks for one refund, again and again for twenty minutes of virtual time, as its policy says, and keeps a record.
They stand for what a ledger must and must not do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from tests.sim.provider.driving import dispatch

from callwright.ledger.provider import Dispatch, Idempotency, Observed, Outcome, Provider
from callwright.sim.loop import loop_ms
from callwright.sim.provider import ProviderSettings, StandIn
from callwright.sim.provider.oracle import Attempt, Claim, Grant, Record, Violation, check
from callwright.sim.vloop import run_virtual

GAPS_S = (20, 20, 300, 900)
ASKS = len(GAPS_S)
LONG_AFTER_MS = 10 * 86_400_000

STATES = {
    Outcome.NOT_SENT: "requested",
    Outcome.NOT_APPLIED: "failed",
    Outcome.STILL_OPEN: "running",
    Outcome.UNKNOWN: "unknown",
    Outcome.ABSENT: "unknown",
    Outcome.ACCEPTED: "accepted",
    Outcome.APPLIED: "confirmed",
    Outcome.REVERSED: "reversed",
    Outcome.CANCELLED: "cancelled",
}
SETTLED = ("confirmed", "failed", "reversed", "cancelled")


@dataclass
class Memory:
    """What a client keeps of its one operation."""

    provider: Provider
    attempts: dict[str, int]
    order: Dispatch
    state: str = "requested"
    escalated: bool = False
    sends: int = 0

    async def send(self, key: str) -> Observed:
        """Send the order under a key."""
        self.sends += 1
        return await self.provider.send(self.under(key))

    def under(self, key: str) -> Dispatch:
        """The order under a key, stored before it is sent."""
        self.attempts.setdefault(key, loop_ms())
        self.order = replace(self.order, key=key)
        return self.order

    def fold(self, seen: Observed) -> None:
        """What a repeat was told says nothing about the sends before it, unless the provider replays."""
        replays = self.provider.traits.idempotency is Idempotency.REPLAY
        proves = (Outcome.NOT_APPLIED,) if self.sends == 1 or replays else ()
        proves += (Outcome.NOT_SENT,) if self.sends == 1 else ()
        in_doubt = seen.outcome in (Outcome.NOT_SENT, Outcome.NOT_APPLIED) and seen.outcome not in proves
        self.state = "unknown" if in_doubt else STATES[seen.outcome]
        self.escalated |= seen.escalates
        self.order = replace(self.order, reference=seen.reference or self.order.reference)


Policy = Callable[[Memory, int], Awaitable[None]]


async def careful(memory: Memory, ask: int) -> None:
    """Look up what is in doubt; the same key again if nothing is found; a person at the end."""
    provider = memory.provider
    if memory.state == "requested":
        memory.fold(await memory.send("op1-1"))
        return
    seen = await provider.look_up(memory.order)
    memory.fold(seen)
    if seen.outcome is Outcome.ABSENT and memory.provider.traits.idempotency.protects:
        memory.fold(await memory.send(memory.order.key))
    memory.escalated |= ask == ASKS - 1


async def believes_a_repeat(memory: Memory, ask: int) -> None:
    """As the careful one, but what a repeat is told counts for the sends before it."""
    memory.sends = 0
    await careful(memory, ask)


async def new_key_after_empty_look_up(memory: Memory, ask: int) -> None:
    """As the careful one, but what is not found is sent under a new key."""
    provider = memory.provider
    if memory.state == "requested":
        memory.fold(await memory.send(f"op1-{ask + 1}"))
        return
    seen = await provider.look_up(memory.order)
    memory.fold(seen)
    if seen.outcome is Outcome.ABSENT:
        memory.fold(await memory.send(f"op1-{ask + 1}"))
    memory.escalated |= ask == ASKS - 1


async def failed_on_5xx(memory: Memory, ask: int) -> None:
    """As the careful one, but whatever goes wrong has failed."""
    if memory.state == "requested":
        seen = await memory.send("op1-1")
        memory.fold(replace(seen, outcome=Outcome.NOT_APPLIED) if seen.outcome is Outcome.UNKNOWN else seen)
    else:
        await careful(memory, ask)


async def keyed_by_call(memory: Memory, ask: int) -> None:
    """Every ask is sent under a key of its own, as if it were another refund."""
    memory.fold(await memory.send(f"call-{ask + 1}"))
    memory.escalated |= ask == ASKS - 1


async def _asks(stand_in: StandIn, policy: Policy) -> Record:
    memory = Memory(stand_in.adapter(), {}, dispatch())
    terms = memory.order.terms
    assert terms.amount is not None
    assert terms.card is not None
    for ask in range(ASKS):
        if memory.state not in SETTLED or policy is keyed_by_call:
            await policy(memory, ask)
        await asyncio.sleep(GAPS_S[ask])
    stand_in.book.advance(loop_ms() + LONG_AFTER_MS)
    order = memory.order
    about = order.op_id, terms.subject, order.slot
    return Record(
        grants=(Grant(0, *about, terms.amount, terms.card.token),),
        attempts=tuple(Attempt(key, at_ms) for key, at_ms in memory.attempts.items()),
        claims=(Claim(*about, memory.state, terms.amount, terms.card.token, order.reference, memory.escalated),),
    )


def judged(settings: ProviderSettings, policy: Policy, seed: int) -> tuple[list[Violation], StandIn]:
    """What the oracle finds in one client's hour, and the provider that it spent it with."""
    stand_in = StandIn(settings, seed=seed)

    async def main() -> Record:
        return await _asks(stand_in, policy)

    record = run_virtual(main())
    return check(stand_in.book, record, settings.traits), stand_in

"""A refund desk for whole calls with a scripted model, a ledger in memory and a stand-in provider, in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.runtime.calls import Model, Taken

import callwright as cw
from callwright.ids import Ms
from callwright.ledger.store import MemoryStore, Store
from callwright.runtime.dispatcher import Ledger
from callwright.sim.caller import Anchor, ScriptedCaller, Step, Trigger
from callwright.sim.line import LineKind, LineSettings, SimulatedLine
from callwright.sim.provider import ProviderSettings, StandIn
from callwright.sim.provider.book import Sent
from callwright.sim.provider.oracle import duplicate_effects, live_effects
from callwright.sim.server import MemoryConnector
from callwright.sim.vloop import VirtualLoop, run_virtual
from callwright.testing.scripted import APPEND
from callwright.testing.scripted import Step as ModelStep

PARTY = "customer:81"
CARDS = {"4242": cw.Card("card:4242", "Visa", "4242"), "8812": cw.Card("card:8812", "Mastercard", "8812")}
EFFECT = "refund order:4417 32.00 USD card:4242"
OTHER_EFFECT = "refund order:4417 32.00 USD card:8812"
PHONE = LineSettings(LineKind.PHONE)

desk = cw.Agent("refunds", model=cw.polyai(), instructions="You are the refund desk.")


@desk.action(kind="refund", provider="payments", must_hear=("amount", "card"), timeout_ms=2_000)
async def issue_refund(ctx: cw.Context[Any], order: str, card: str, holding: cw.Spoken) -> cw.Terms:
    """Refund an order."""
    if order == "slow":
        await asyncio.sleep(10)
    if order == "broken":
        raise ValueError("card 4111 1111 1111 1111")
    if order != "4417":
        raise cw.Refuse(f"there is no order {order}")
    return cw.Terms(subject="order:4417", amount=cw.Money(3200, "USD"), card=CARDS[card])


@desk.tool
async def check_refund(ctx: cw.Context[Any], order: str) -> cw.Facts:
    """Say how far a refund is."""
    return await ctx.look_up("refund", f"order:{order}")


@desk.tool
async def stop_refund(ctx: cw.Context[Any], order: str) -> cw.Facts:
    """Stop a refund of which nothing was sent yet."""
    return await ctx.withdraw("refund", f"order:{order}")


@desk.tool
async def history(ctx: cw.Context[Any]) -> cw.Facts:
    """Say what was asked for."""
    return {"operations": [*await ctx.operations()]}


def refund(card: str = "4242", order: str = "4417") -> str:
    return json.dumps({"order": order, "card": card, "holding": "One moment."})


def stand_in(*, seed: int = 1, **settings: Any) -> StandIn:
    faults = {name.replace("_", "-"): fault for name, fault in settings.pop("faults", {}).items()}
    return StandIn(ProviderSettings(faults=faults, **settings), seed=seed)


def now_ms() -> Ms:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.now_ms()


@dataclass
class Shop:
    """A provider with its book, and a store that lasts from one ledger to the next."""

    provider: StandIn = field(default_factory=stand_in)
    store: Store = field(default_factory=MemoryStore)

    def ledger(self, **options: Any) -> Ledger:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        return Ledger(self.store, [self.provider.adapter()], clock=loop.now_ms, **options)

    @property
    def sends(self) -> list[Sent]:
        """Every request for a refund whose first byte left."""
        return [entry for entry in self.provider.book.entries if isinstance(entry, Sent)]

    @property
    def effects(self) -> list[str]:
        assert duplicate_effects(self.provider.book) == 0
        return [str(effect) for effect in live_effects(self.provider.book)]


async def take_call(
    ledger: Ledger, *steps: ModelStep, hang_up_ms: Ms = 6_000, agent: cw.Agent = desk, is_whole: bool = True, **run: Any
) -> Taken:
    """Take one call, in which the caller says nothing and hangs up."""
    model = Model(*steps, ignoring=run.pop("ignoring", (APPEND,)))
    line = SimulatedLine(PHONE, ScriptedCaller([Step(Trigger(Anchor.PICKUP, hang_up_ms), None)], {}, 8_000))
    options: dict[str, Any] = {"party": PARTY, **run}
    result = await cw.run(agent, line, connector=MemoryConnector(lambda: model), ledger=ledger, **options)
    if is_whole:
        model.finish()
    return Taken(result, model, line)


def play(shop: Shop, do: Callable[[Ledger], Awaitable[Any]], *, settle_s: float = 60) -> Any:
    """Do something with an open ledger, and let its provider settle."""

    async def go() -> Any:
        async with shop.ledger() as ledger:
            result = await do(ledger)
            await asyncio.sleep(settle_s)
            assert await ledger.problems() == ()
            return result

    return run_virtual(go())


def outputs(taken: Taken) -> dict[str, dict[str, Any]]:
    """The tool outputs that were posted, by call; there is one for each."""
    posted = [event["item"] for event in taken.model.of("conversation.item.create")]
    outputs = [item for item in posted if item["type"] == "function_call_output"]
    assert len({item["call_id"] for item in outputs}) == len(outputs)
    return {item["call_id"]: json.loads(item["output"]) for item in outputs}


def notes(taken: Taken) -> list[dict[str, Any]]:
    """The facts that were put into history."""
    posted = [event["item"] for event in taken.model.of("conversation.item.create")]
    return [json.loads(item["content"][0]["text"]) for item in posted if item["type"] == "message"]

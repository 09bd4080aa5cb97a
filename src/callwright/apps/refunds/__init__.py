"""The refund desk of Copperline Kitchen Supply: refunds an order, once, and tells the caller what became of it.

Everything here is written on the public API. The rules file, the scenarios and the recorded speech that let it be
played offline lie beside this file. The system that moves the money is handed over from outside: the ledger of the
call has it under the name ``payments``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import callwright as cw

INSTRUCTIONS = """\
You are the automated refund desk of Copperline Kitchen Supply. Answer briefly.
When a caller wants his money back, ask for the number of the order and for the card, and call issue_refund. If he
changes the card, call it again with the other card. Never say that a refund is done, or that it failed, unless the
record says so: an output or a note has the one sentence that you may say. If he asks meanwhile how it stands, say that
it is being processed. When the caller needs nothing more, end the call. If he speaks into your goodbye, answer him.
"""


@dataclass(frozen=True, slots=True)
class Order:
    """An order that was paid."""

    id: str
    what: str
    party: str
    """Whose it is."""
    total: cw.Money


def _card(last4: str, brand: str) -> cw.Card:
    return cw.Card(f"card:{last4}", brand, last4)


ORDERS = (
    Order("4417", "cast iron skillet", "customer:81", cw.Money(3200, "USD")),
    Order("5120", "copper kettle", "customer:52", cw.Money(8950, "USD")),
)
CARDS: Mapping[str, tuple[cw.Card, ...]] = {
    "customer:81": (_card("4242", "Visa"), _card("8812", "Mastercard")),
    "customer:52": (_card("7003", "Visa"),),
}


@dataclass(frozen=True, slots=True)
class Shop:
    """The store's records: who ordered what, and who has which cards on file."""

    orders: tuple[Order, ...] = ORDERS
    cards: Mapping[str, tuple[cw.Card, ...]] = field(default_factory=lambda: CARDS)

    def order(self, party: str | None, order_id: str) -> Order:
        """An order of this caller's. Raises Refuse, in the same words for one that is somebody else's."""
        found = (order for order in self.orders if order.id == order_id.strip().lstrip("#"))
        order = next(found, None)
        if order is None or order.party != party:
            raise cw.Refuse("there is no such order of this caller's; ask for the number again")
        return order

    def card(self, party: str | None, named: str) -> cw.Card:
        """A card of this caller's, by its last four digits, or by its brand if he has one of that. Raises Refuse."""
        own = self.cards.get(party or "", ())
        meant = [card for card in own if named.strip().casefold() in (card.last4, card.brand.casefold())]
        if len(meant) != 1:
            raise cw.Refuse("there is no such card of this caller's on file; ask which card he means")
        return meant[0]


desk = cw.Agent("refunds", model=cw.polyai(), instructions=INSTRUCTIONS)


@desk.tool
async def find_order(
    ctx: cw.Context[Shop],
    order_id: Annotated[str, "the number of the order"],
    holding: Annotated[cw.Spoken, "what to say while the order is looked up"],
) -> cw.Facts:
    """Look up an order of the caller's, and what became of a refund of it."""
    try:
        order = ctx.deps.order(ctx.party, order_id)
    except cw.Refuse as reason:
        return {"found": False, "why": str(reason)}
    refund = await ctx.facts("refund", f"order:{order.id}")
    return {"order": order.id, "what": order.what, "refund": refund}


@desk.tool
async def check_refund(
    ctx: cw.Context[Shop],
    order_id: Annotated[str, "the number of the order"],
    holding: Annotated[cw.Spoken, "what to say while it is looked up"],
) -> cw.Facts:
    """Say how the refund of an order stands. Where that is in doubt the payment provider is asked; nothing is sent."""
    try:
        order = ctx.deps.order(ctx.party, order_id)
    except cw.Refuse as reason:
        return {"found": False, "why": str(reason)}
    return await ctx.look_up("refund", f"order:{order.id}")


@desk.action(kind="refund", provider="payments", must_hear=("amount", "card"))
async def issue_refund(
    ctx: cw.Context[Shop],
    order_id: Annotated[str, "the number of the order"],
    card_last4: Annotated[str, "the last four digits of the card that the money goes to, or its brand"],
    holding: Annotated[cw.Spoken, "what to say while the refund is made; never that it is done"],
) -> cw.Terms:
    """Refund an order in full, to a card of the caller's. Call it again to change the card."""
    order = ctx.deps.order(ctx.party, order_id)
    return cw.Terms(f"order:{order.id}", amount=order.total, card=ctx.deps.card(ctx.party, card_last4), cap=order.total)


@desk.tool(after=cw.AfterOutput.HANG_UP)
async def end_call(
    ctx: cw.Context[Shop],
    reason: Annotated[str, "why the call ends, in a few words, for the log"],
    goodbye: Annotated[cw.Spoken, "the goodbye, in one or two sentences"],
) -> str:
    """End the call, once the caller has said that he needs nothing more."""
    return reason

"""The refund desk of Copperline Kitchen Supply: refunds or cancels an order, once, and tells what became of it.

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
When a caller wants his money back, ask for the number of the order and for the card, and call issue_refund, or
refund_line for one line of an order. If he changes the card, call it again with the other card. If he wants to leave it
after all, call withdraw_refund. If he wants to cancel an order, call cancel_order. Never say that something is done, or
that it failed, unless the record says so: an output or a note has the one sentence that you may say. If he asks
meanwhile how it stands, say that it is being processed. When the caller needs nothing more, end the call. If he speaks
into your goodbye, answer him.
"""


def _dollars(minor: int) -> cw.Money:
    return cw.Money(minor, "USD")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an order."""

    what: str
    price: cw.Money


@dataclass(frozen=True, slots=True)
class Order:
    """An order that was paid."""

    id: str
    party: str
    """Whose it is."""
    lines: tuple[Line, ...]
    """At least one, all in one currency."""
    is_shipped: bool = True

    @property
    def subject(self) -> str:
        """What the ledger and the provider call it."""
        return f"order:{self.id}"

    @property
    def what(self) -> str:
        """What was ordered."""
        return ", ".join(line.what for line in self.lines)

    @property
    def total(self) -> cw.Money:
        """What was paid."""
        return cw.Money(sum(line.price.minor for line in self.lines), self.lines[0].price.currency)

    def line(self, number: str) -> Line:
        """A line by its number, from 1. Raises Refuse."""
        if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= len(self.lines)):
            raise cw.Refuse(f"the order has no such line; it has the lines 1 to {len(self.lines)}")
        return self.lines[int(number) - 1]


def _card(last4: str, brand: str) -> cw.Card:
    return cw.Card(f"card:{last4}", brand, last4)


ORDERS = (
    Order("4417", "customer:81", (Line("cast iron skillet", _dollars(3200)),)),
    Order("5120", "customer:52", (Line("copper kettle", _dollars(8950)),)),
    Order("5530", "customer:81", (Line("enamel teapot", _dollars(4500)),), is_shipped=False),
    Order("6210", "customer:81", (Line("copper ladle", _dollars(1500)), Line("baking tray", _dollars(2400)))),
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
    lines = {str(number): line.what for number, line in enumerate(order.lines, 1)}
    refund = await ctx.facts("refund", order.subject)
    return {"order": order.id, "lines": lines, "shipped": order.is_shipped, "refund": refund}


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
    return await ctx.look_up("refund", order.subject)


@desk.tool
async def withdraw_refund(
    ctx: cw.Context[Shop],
    order_id: Annotated[str, "the number of the order"],
    holding: Annotated[cw.Spoken, "what to say while it is looked up; never that it was stopped"],
) -> cw.Facts:
    """Stop the refund of an order if that is still possible, when the caller wants to leave it after all."""
    try:
        order = ctx.deps.order(ctx.party, order_id)
    except cw.Refuse as reason:
        return {"found": False, "why": str(reason)}
    return await ctx.withdraw("refund", order.subject)


@desk.action(kind="refund", provider="payments", must_hear=("amount", "card"))
async def issue_refund(
    ctx: cw.Context[Shop],
    order_id: Annotated[str, "the number of the order"],
    card_last4: Annotated[str, "the last four digits of the card that the money goes to, or its brand"],
    holding: Annotated[cw.Spoken, "what to say while the refund is made; never that it is done"],
) -> cw.Terms:
    """Refund an order in full, to a card of the caller's. Call it again to change the card."""
    order = ctx.deps.order(ctx.party, order_id)
    return cw.Terms(order.subject, amount=order.total, card=ctx.deps.card(ctx.party, card_last4), cap=order.total)


@desk.action(kind="refund", provider="payments", slot=lambda terms: terms.details["line"], must_hear=("amount", "card"))
async def refund_line(
    ctx: cw.Context[Shop],
    order_id: Annotated[str, "the number of the order"],
    line: Annotated[str, "the number of the line, from 1"],
    card_last4: Annotated[str, "the last four digits of the card that the money goes to, or its brand"],
    holding: Annotated[cw.Spoken, "what to say while the refund is made; never that it is done"],
) -> cw.Terms:
    """Refund one line of an order, to a card of the caller's. Call it again to change the card."""
    order = ctx.deps.order(ctx.party, order_id)
    return cw.Terms(
        order.subject,
        amount=order.line(line).price,
        card=ctx.deps.card(ctx.party, card_last4),
        cap=order.total,
        details={"line": f"line:{int(line)}"},
    )


@desk.action(kind="cancellation", provider="payments", must_hear=("subject",), authority=cw.Authority.CALLER)
async def cancel_order(
    ctx: cw.Context[Shop],
    order_id: Annotated[str, "the number of the order"],
    holding: Annotated[cw.Spoken, "what to say while the order is looked up; never that it is cancelled"],
) -> cw.Terms:
    """Cancel an order that has not been sent, once the caller has said yes to it. All of the money goes back."""
    order = ctx.deps.order(ctx.party, order_id)
    if order.is_shipped:
        raise cw.Refuse("the order has been sent, so it cannot be cancelled; it can be refunded")
    slots = "full", *(f"line:{number}" for number in range(1, len(order.lines) + 1))
    refunds = [await ctx.facts("refund", order.subject, slot) for slot in slots]
    if any(refund["state"] not in ("none", "failed", "cancelled") for refund in refunds):
        raise cw.Refuse("a refund of the order was asked for, so it cannot be cancelled any more")
    return cw.Terms(order.subject)


@desk.tool(after=cw.AfterOutput.HANG_UP)
async def end_call(
    ctx: cw.Context[Shop],
    reason: Annotated[str, "why the call ends, in a few words, for the log"],
    goodbye: Annotated[cw.Spoken, "the goodbye, in one or two sentences"],
) -> str:
    """End the call, once the caller has said that he needs nothing more."""
    return reason

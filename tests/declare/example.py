"""What the documentation tells users to write. ``make check`` types it strictly: its one slip must be seen."""

from __future__ import annotations

import callwright as cw
from callwright.core.ports import Connector, Line
from callwright.ids import ToolCallId


class Shop:
    async def order(self, order_id: str) -> dict[str, object]:
        return {"id": order_id}


desk = cw.Agent("refunds", model=cw.polyai(), instructions="You are the refund desk.")


@desk.tool
async def find_order(ctx: cw.Context[Shop], order_id: str, holding: cw.Spoken) -> cw.Facts:
    """Find an order."""
    return await ctx.deps.order(order_id)


@desk.tool(after=cw.AfterOutput.SILENCE, timeout_ms=500)
async def wait(ctx: cw.Context[Shop]) -> str:
    """Wait."""
    return "waited"


async def main(line: Line, connector: Connector) -> list[str]:
    call = await cw.run(desk, line, connector=connector, deps=Shop(), party="customer:81")
    return [f"{turn.speaker}: {turn.heard} | {turn.written} {turn.source}" for turn in call.turns]


slip = find_order(cw.Context(Shop(), None, ToolCallId("k")))  # type: ignore[call-arg]  # its other arguments are missing

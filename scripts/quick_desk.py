"""A front desk whose booking system answers at once: the result waits behind a holding line that is still heard."""

from __future__ import annotations

from typing import Annotated

import callwright as cw

desk = cw.Agent(
    "quick-desk",
    model=cw.polyai(),
    instructions="You are the front desk of the Harborview Inn. When the caller needs nothing more, end the call.",
)


@desk.tool
async def look_up_booking(
    ctx: cw.Context[None],
    surname: Annotated[str, "the surname that the booking is under"],
    holding: Annotated[cw.Spoken, "what to say while the booking is looked up"],
) -> cw.Facts:
    """Look up a booking by surname."""
    return {"found": False, "surname": surname}


@desk.tool(after=cw.AfterOutput.HANG_UP)
async def end_call(
    ctx: cw.Context[None],
    reason: Annotated[str, "why the call ends, in a few words, for the log"],
    goodbye: Annotated[cw.Spoken, "the goodbye, in one or two sentences"],
) -> str:
    """End the call, once the caller has said that he needs nothing more."""
    return reason

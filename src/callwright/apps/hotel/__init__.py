"""The front desk of the Harborview Inn: answers questions about a stay, looks up bookings, and hangs up.

Everything here is written on the public API. The rules file, the scenarios and the recorded speech that let it be
played offline lie beside this file.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

import callwright as cw

INSTRUCTIONS = """\
You are the automated front desk assistant of the Harborview Inn. Answer briefly and only from these facts.
Check-in is from 3 pm; guests bring a photo ID and the card that they booked with; a deposit of 100 dollars is held.
Guests who arrive early may leave their bags at the desk. Breakfast is from 7 to 10 in the Atrium, included with every
room. The pool is on floor 2. The wifi network is HarborGuest, without a password. Parking is valet only, 40 dollars a
night. When a caller who interrupted you asks you to go on, continue where you were stopped; never start over.
When the caller needs nothing more, end the call. If he speaks into your goodbye, answer him first.
"""

LOOK_UP_S = 3.0
"""How long the booking system takes."""

_BOOKINGS: dict[str, cw.Facts] = {
    "okafor": {"room": "214", "nights": 2, "check_in": "Friday"},
}

AI_NOTICE = "speaking with our automated assistant"
"""What every caller has to hear before anything else."""

desk = cw.Agent("hotel", model=cw.polyai(), instructions=INSTRUCTIONS, ai_notice=AI_NOTICE)


@desk.tool
async def look_up_booking(
    ctx: cw.Context[None],
    surname: Annotated[str, "the surname that the booking is under"],
    holding: Annotated[cw.Spoken, "what to say while the booking is looked up"],
) -> cw.Facts:
    """Look up a booking by surname."""
    await asyncio.sleep(LOOK_UP_S)
    booking = _BOOKINGS.get(surname.strip().casefold())
    return {"found": True, **booking} if booking else {"found": False}


@desk.tool(after=cw.AfterOutput.HANG_UP)
async def end_call(
    ctx: cw.Context[None],
    reason: Annotated[str, "why the call ends, in a few words, for the log"],
    goodbye: Annotated[cw.Spoken, "the goodbye, in one or two sentences"],
) -> str:
    """End the call, once the caller has said that he needs nothing more."""
    return reason

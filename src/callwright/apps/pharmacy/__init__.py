"""A call for Jane Porter: rings Riverside Pharmacy, waits on hold, and asks whether her prescription is ready.

Everything here is written on the public API. The rules file, the phone tree, the scenarios and the recorded speech that
let it be played offline lie beside this file.
"""

from __future__ import annotations

from typing import Annotated

import callwright as cw

INSTRUCTIONS = """\
You are an automated assistant on an outbound call to Riverside Pharmacy, for Jane Porter, born on 4 May 1982. Find out
whether her prescription is ready.
Every turn that you hear needs exactly one answer. To recorded announcements, music and whatever is not meant for you it
is the tool wait, without a word; to a menu it is the tool press_keys, without a word, with the key for prescriptions.
When a person answers, say first that you are an automated assistant calling for Jane Porter, then ask. Spell her
surname when you are asked to. When you are asked to hold on, say one word and no more, and then wait.
To a voicemail's greeting the answer is leave_voicemail, once it says that the tone follows. When you have the answer,
or the person will not talk to you, thank him and end the call with end_call.
"""

AI_NOTICE = "an automated assistant calling for Jane Porter"
"""What every person has to hear before anything else."""

QUIET_MS = 6_000
"""So long it listens to a line on which nobody says anything: longer than a pause of ringing."""

caller = cw.Agent(
    "pharmacy", model=cw.polyai(), instructions=INSTRUCTIONS, ai_notice=AI_NOTICE, opens_after_ms=QUIET_MS
)


@caller.tool(after=cw.AfterOutput.SILENCE)
async def wait(ctx: cw.Context[None]) -> str:
    """Say nothing and go on listening: to announcements, music, and whatever needs no answer."""
    return "waiting"


@caller.tool(after=cw.AfterOutput.SILENCE)
async def press_keys(
    ctx: cw.Context[None],
    digits: Annotated[str, "the keys, such as 2 or 0415#"],
) -> cw.Facts:
    """Press keys of the telephone, to choose from a menu."""
    return await ctx.press_keys(digits)


@caller.tool(after=cw.AfterOutput.HANG_UP)
async def leave_voicemail(
    ctx: cw.Context[None],
    message: Annotated[cw.Spoken, "the message: who calls for whom, what for, and a goodbye"],
) -> str:
    """Speak a message after a voicemail's tone, and hang up."""
    return "left a message"


@caller.tool(after=cw.AfterOutput.HANG_UP)
async def end_call(
    ctx: cw.Context[None],
    result: Annotated[str, "what was found out, in the words of the person, or why nothing was"],
    goodbye: Annotated[cw.Spoken, "thanks and a goodbye, in one or two sentences"],
) -> str:
    """End the call, once the answer is known or cannot be had."""
    return result

"""A desk that owes its caller the outcome of a refund: what its record and its model say, and how the telling went."""

from __future__ import annotations

import json
from typing import Any

from tests.core.drive import (
    BOTH_LINES,
    K1,
    R1,
    A,
    Call,
    called,
    ended,
)

from callwright.claims.facts import ClaimFacts, Milestone
from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.toolcalls import AfterOutput
from callwright.ids import ItemId, ResponseId

R4, D = ResponseId("r4"), ItemId("d")
OP, OTHER = "op1", "op2"
TOOLS = {"issue_refund": AfterOutput.REPLY, "look_up": AfterOutput.REPLY, "end_call": AfterOutput.HANG_UP}
HOLDING = "One moment while I send your 32 dollar refund to the Visa ending in 4242."
DONE = "Your refund of 32 dollars to the Visa ending in 4 2 4 2 has gone through."
PENDING = "Your refund is still being processed."
WHAT = "refund of 32 dollars to the Visa ending in 4 2 4 2"
SENTENCES = {
    Milestone.REQUESTED: f"The {WHAT} has been noted, and nothing has been sent yet.",
    Milestone.RUNNING: f"The {WHAT} is being processed; there is no result yet.",
    Milestone.ACCEPTED: f"The {WHAT} has been submitted; there is no result yet.",
    Milestone.CONFIRMED: f"The {WHAT} is done.",
    Milestone.FAILED: f"The {WHAT} did not go through.",
    Milestone.UNKNOWN: f"I can't tell yet whether the {WHAT} went through; it is being checked.",
    Milestone.CANCELLED: f"The {WHAT} was stopped.",
    Milestone.REVERSED: f"The {WHAT} was sent, but it came back.",
}
SETTLED = (Milestone.CONFIRMED, Milestone.FAILED, Milestone.CANCELLED, Milestone.REVERSED)


def fact(milestone: Milestone, version: int = 1, op_id: str = OP, *, ours: bool = True, **facts: Any) -> on.FactChanged:
    known: dict[str, Any] = {"amount_minor": 3200, "currency": "USD", "brand": "Visa", "last4": "4242"}
    known |= {"subject": "order:4417", **facts}
    claim = ClaimFacts("refund", milestone, ("amount", "card"), **known)
    return on.FactChanged(op_id, version, claim, SENTENCES[milestone], milestone in SETTLED, is_ours=ours)


def desk(reports: Any = BOTH_LINES[0]) -> Call:
    return Call(reports, tools=TOOLS, actions=frozenset({"issue_refund"}))


def underway(call: Call) -> None:
    """The model calls the action with its holding line, and the output is posted; the provider has it."""
    call.at(0, on.ResponseStarted(R1), called(K1, "issue_refund"))
    call.stream(R1, A, 2_000, speed=4)
    call.at(call.now_ms, fact(Milestone.RUNNING, 1), on.ToolFinished(K1, on.ToolOutcome.RETURNED, "{}", speaks=False))
    call.at(call.now_ms, on.ReplyWritten(R1, A, HOLDING), ended(R1))
    call.at(2_500, fact(Milestone.ACCEPTED, 2))


def played(call: Call) -> None:
    """The line plays all that it has."""
    call.at(int(call.line.free_ms) + 300)


def records(call: Call, op_id: str = OP) -> list[str]:
    """How the telling went: milestone and state, in order."""
    return [f"{each.milestone} {each.state}" for each in call.done(do.RecordTold) if each.op_id == op_id]


def asks(call: Call) -> int:
    return len(call.done(do.RequestReply))


def notes(call: Call) -> list[dict[str, Any]]:
    return [json.loads(command.text) for command in call.done(do.PostFacts)]

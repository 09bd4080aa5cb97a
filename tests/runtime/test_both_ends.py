"""One owner ends both sides of a call, whoever ends it and whatever is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
from tests.runtime.calls import OPENING, PHONE, Model, calls, delta, desk, ended, started
from tests.runtime.refunds import EFFECT, PARTY, Shop, refund
from tests.runtime.refunds import desk as refunds

import callwright as cw
from callwright.core.ports import ModelConnection, ModelSink
from callwright.ids import Ms
from callwright.runtime.call import Call
from callwright.sim.caller import Anchor, ScriptedCaller, Step, Trigger
from callwright.sim.line import SimulatedLine
from callwright.sim.server import MemoryConnector
from callwright.sim.vloop import VirtualLoop, run_virtual
from callwright.testing.scripted import APPEND, after, close
from callwright.testing.scripted import Step as ModelStep

ENDS_MS: Ms = 400
"""When the call ends, on its own clock."""
OVER_MS: Ms = 1_000
"""How long after that both sides may still be open."""


@dataclass(frozen=True)
class End:
    """How a call ends at ``ENDS_MS``, and by whom the record says that it did."""

    by: str | None
    """None where there is no record: whoever took the call has cancelled it."""
    caller: Sequence[Step] = ()
    line_closes_ms: Ms | None = None
    model_closes: Sequence[ModelStep] = ()
    watch: Callable[[Call], object] | None = None


def hangs_up(call: Call) -> None:
    """The agent's own process ends the call."""
    asyncio.get_running_loop().call_later(ENDS_MS / 1000, call.hang_up, "shutting down")


def cancels(_call: Call) -> None:
    """Whoever took the call does not want it any more."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_later(ENDS_MS / 1000, task.cancel)


ENDS = {
    "the caller hangs up": End("caller", caller=[Step(Trigger(Anchor.PICKUP, ENDS_MS), None)]),
    "the line is cut": End("fault", line_closes_ms=ENDS_MS),
    "the model closes": End("model", model_closes=(after(ENDS_MS), close(1008, "enough"))),
    "the agent hangs up": End("agent", watch=hangs_up),
    "the call is cancelled": End(None, watch=cancels),
}
UNDER_WAY: dict[str, tuple[cw.Agent, Sequence[ModelStep]]] = {
    "nothing": (desk, ()),
    "a reply": (desk, (started(), delta(5_000))),
    "a tool": (desk, (started(), calls("endless"), ended())),
    "an action": (refunds, (started(), calls("issue_refund", "k1", arguments=refund()), ended())),
}


@pytest.mark.parametrize("under_way", UNDER_WAY)
@pytest.mark.parametrize("how", ENDS)
def test_c113_both_sides_are_closed_within_a_second_and_nothing_is_left(how: str, under_way: str) -> None:
    """But an action: the ledger sees to it, and has its outcome in the end."""
    end, (agent, steps) = ENDS[how], UNDER_WAY[under_way]
    model = Model(*OPENING, *steps, *end.model_closes, ignoring=(APPEND, "conversation.item.create", "response.create"))
    line = SimulatedLine(replace(PHONE, close_at_ms=end.line_closes_ms), ScriptedCaller(end.caller, {}, 8_000))
    shop = Shop()

    async def take() -> cw.CallResult | None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        async with shop.ledger() as ledger:
            before = loop.pending_tasks()
            connector, used = MemoryConnector(lambda: model), ledger if agent is refunds else None
            call = cw.run(agent, line, connector=connector, ledger=used, party=PARTY, watch=end.watch)
            result = (await asyncio.gather(call, return_exceptions=True))[0]
            assert ENDS_MS <= loop.now_ms() < ENDS_MS + OVER_MS
            assert line.ended_ms is not None
            assert model.closing is not None
            left = [task for task in loop.pending_tasks() if task not in before]
            assert len(left) <= (under_way == "an action"), "who tends the operation"
            await asyncio.sleep(10)
        assert loop.pending_tasks() == [asyncio.current_task()]
        if isinstance(result, asyncio.CancelledError):
            return None
        assert isinstance(result, cw.CallResult), result
        return result

    result = run_virtual(take())
    assert (result and result.ending.by) == end.by
    assert shop.effects == ([EFFECT] if under_way == "an action" else [])


class Clings:
    """Does not give up connecting when it is told to."""

    async def connect(self, sink: ModelSink) -> ModelConnection:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(60)
        raise cw.ConnectionFailed("no answer")


def test_a_call_that_is_cancelled_while_it_lets_go_of_a_connection_is_cancelled() -> None:
    async def go() -> None:
        line = SimulatedLine(PHONE, ScriptedCaller([Step(Trigger(Anchor.PICKUP, ENDS_MS), None)], {}, 8_000))
        task = asyncio.get_running_loop().create_task(cw.run(desk, line, connector=Clings()))
        await asyncio.sleep((ENDS_MS + OVER_MS) / 1000)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(go())

"""Calls of one process beside each other and one after the other: none knows of another, none leaves a place taken."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.runtime.calls import (
    ANYTHING,
    OPENING,
    PHONE,
    Model,
    calls,
    delta,
    ended,
    reply,
    retrieved,
    run,
    speech_started,
    speech_stopped,
    started,
    written,
)

import callwright as cw
from callwright.core.ports import Connector
from callwright.ids import Ms
from callwright.runtime.endpoint import Endpoint
from callwright.runtime.fast import PicowsConnector
from callwright.runtime.websocket import WebSocketConnector
from callwright.sim.caller import Anchor, ScriptedCaller, Step, Trigger
from callwright.sim.line import SimulatedLine
from callwright.sim.server import MemoryConnector
from callwright.sim.server.websocket import RealtimeServer
from callwright.sim.vloop import run_virtual
from callwright.testing.connections import Witness
from callwright.testing.scripted import Step as ModelStep
from callwright.testing.scripted import after, close

SOCKETS = pytest.mark.parametrize("make", [WebSocketConnector, PicowsConnector])
CARDS = ("4417", "5528", "6639")
CUT_OFF = "5528"


def line(hang_up_ms: Ms) -> SimulatedLine:
    return SimulatedLine(PHONE, ScriptedCaller([Step(Trigger(Anchor.PICKUP, hang_up_ms), None)], {}, 8_000))


def script(card: str) -> Iterator[ModelStep]:
    """A reply, a tool with this card, a reply that is talked over; all under the same ids in every call."""
    yield from OPENING
    yield from (started(), calls("look", arguments=json.dumps({"order": card})), after(50), ended())
    yield from reply(f"Card {card}.", 200, response_id="r2")
    if card == CUT_OFF:
        yield from (after(300), close(1008, "enough"))  # its reply is heard to the end, on any clock
        return
    yield from (started("r3"), delta(600, "b", "r3"), written(f"Once more: {card}.", "b", "r3"), after(200))
    yield from (speech_started(), retrieved(f"Once more: {card}-", "b"), ended("r3", "cancelled"), speech_stopped())


@dataclass
class Taken:
    """One call, from both ends."""

    result: cw.CallResult
    sent: list[tuple[Ms, dict[str, Any]]]
    ear: object

    @property
    def summary(self) -> tuple[object, ...]:
        """What does not depend on the clock: turns, ending, what was sent."""
        turns = [(turn.speaker, turn.heard, turn.written, turn.source) for turn in self.result.turns]
        return turns, self.result.ending, sorted(event["type"] for _, event in self.sent), self.outputs()

    def outputs(self) -> list[str]:
        """What the tools answered."""
        posted = [event["item"] for _, event in self.sent if event["type"] == "conversation.item.create"]
        return [item["output"] for item in posted]


async def take(card: str, connect: Callable[[Model], Connector], start_ms: Ms = 0) -> Taken:
    model, its_line = Model(*script(card), ignoring=ANYTHING), line(1_200)
    await asyncio.sleep(start_ms / 1000)
    began_ms = round(asyncio.get_running_loop().time() * 1000)
    result = await run(its_line, connect(model), party=f"guest:{card}")
    return Taken(result, [(at_ms - began_ms, event) for at_ms, event in model.sent], its_line.ear)


def in_memory(model: Model) -> Connector:
    return MemoryConnector(lambda: model)


def check_own(card: str, taken: Taken) -> None:
    """What one call holds is its own."""
    whole = f"{taken.result.turns} {taken.sent} {taken.result.trace.decode()}"
    assert card in whole
    assert not [other for other in CARDS if other != card and other in whole]
    assert taken.outputs() == [json.dumps({"order": card, "party": f"guest:{card}"}, separators=(",", ":"))]
    assert taken.result.ending.by == ("model" if card == CUT_OFF else "caller")


def test_c135_three_calls_at_once_are_what_each_is_alone() -> None:
    """One breaks off under the others. Each record equals that of the same call alone, to the byte."""

    async def together() -> list[Taken]:
        return await asyncio.gather(*(take(card, in_memory, 20 * n) for n, card in enumerate(CARDS)))

    for card, taken in zip(CARDS, run_virtual(together()), strict=True):
        check_own(card, taken)
        alone = run_virtual(take(card, in_memory))
        assert taken.result == alone.result
        assert (taken.sent, taken.ear) == (alone.sent, alone.ear)


@SOCKETS
def test_c135_nor_does_one_server_mix_them_up(make: Callable[[Endpoint], Connector]) -> None:
    async def together() -> list[Taken]:
        models: list[Model] = []
        async with RealtimeServer(lambda: models.pop(), drain_ms=0) as server:

            def connect(model: Model) -> Connector:
                models.insert(0, model)
                return make(Endpoint(server.url))

            return await asyncio.gather(*(take(card, connect, 20 * n) for n, card in enumerate(CARDS)))

    for card, taken in zip(CARDS, asyncio.run(together()), strict=True):
        check_own(card, taken)
        assert taken.summary == run_virtual(take(card, in_memory)).summary


# --- places


@SOCKETS
def test_c134_a_full_server_is_named_and_its_place_is_free_when_a_caller_leaves_unanswered(
    make: Callable[[Endpoint], Connector],
) -> None:
    """The refused call ends its line, so that the caller is not left in silence."""

    async def go() -> tuple[cw.CallResult, SimulatedLine, cw.CallResult]:
        async with RealtimeServer(Model, sessions_max=1, drain_ms=0) as server:
            connector = make(Endpoint(server.url))
            unanswered = asyncio.create_task(run(line(3_000), connector))
            refused = line(60_000)
            await Witness().expect(lambda: server.sessions, "the first caller has the place")
            with pytest.raises(cw.ConnectionFailed, match="HTTP 429: too many sessions are open"):
                await run(refused, connector)
            left = await unanswered
            await Witness().expect(lambda: not server.sessions, "the place is free")
            return left, refused, await run(line(100), connector)

    left, refused, third = asyncio.run(asyncio.wait_for(go(), 10))
    assert left.session_ready_ms is None
    assert left.ending == third.ending == cw.Ending("caller", "hung up")
    assert len(refused.recording.agent) < 60 * 8_000


@SOCKETS
def test_c131_refused_handshakes_leave_nothing(make: Callable[[Endpoint], Connector]) -> None:
    """Neither with us nor with the server."""

    async def go() -> int:
        async with RealtimeServer(Model, key="another") as server:
            connector = make(Endpoint(server.url, "key"))

            async def refused(times: int) -> int:
                for _ in range(times):
                    with pytest.raises(cw.ConnectionFailed, match="HTTP 401"):
                        await connector.connect(Witness())
                await asyncio.sleep(0.05)
                gc.collect()
                return len(gc.get_objects())

            before = await refused(20)
            after_all = await refused(200)
            assert server.sessions == 0
            return after_all - before

    assert asyncio.run(go()) < 20

"""A call whose model gives no session, over a real socket: it is told what to do, soon, and the line is ended."""

from __future__ import annotations

import asyncio
import re

import pytest
from tests.runtime.calls import PHONE, run

import callwright as cw
from callwright.runtime.endpoint import Endpoint
from callwright.runtime.fast import PicowsConnector
from callwright.runtime.websocket import WebSocketConnector
from callwright.sim.caller import ScriptedCaller
from callwright.sim.line import SimulatedLine
from callwright.testing.connections import _stays_silent, answers, raw_server

REFUSALS = [
    (answers(401), r"HTTP 401: POLY_API_KEY was refused: it is missing, wrong, a personal token .* another host"),
    (answers(403), r"HTTP 403: .*POLY_API_KEY is of another host, or .* User-Agent"),
    (answers(429), r"HTTP 429: too many sessions are open: .* close it, or wait"),
    (_stays_silent, r"no answer within 300 ms"),
]


def refused(url: str, make: type[WebSocketConnector | PicowsConnector]) -> tuple[str, SimulatedLine, float]:
    """What is told, the line, and the seconds it took."""

    async def go() -> tuple[str, SimulatedLine, float]:
        line = SimulatedLine(PHONE, ScriptedCaller((), {}, 8_000))
        began_s = asyncio.get_running_loop().time()
        with pytest.raises(cw.ConnectionFailed) as failed:
            await run(line, make(Endpoint(url, "key", "POLY_API_KEY", open_timeout_ms=300)))
        return str(failed.value), line, asyncio.get_running_loop().time() - began_s

    return asyncio.run(asyncio.wait_for(go(), 10))


@pytest.mark.parametrize("make", [WebSocketConnector, PicowsConnector])
@pytest.mark.parametrize(("serve", "advice"), REFUSALS, ids=["401", "403", "429", "silent"])
def test_a_refusal_ends_the_line_and_says_what_to_do(serve, advice, make):
    async def listen() -> None:
        async with raw_server(serve) as url:
            told, line, took_s = await asyncio.to_thread(refused, url, make)
            assert re.search(advice, told)
            assert line._sink is None, "the line has ended"
            assert took_s < 5

    asyncio.run(listen())


@pytest.mark.parametrize("make", [WebSocketConnector, PicowsConnector])
def test_a_port_where_nobody_listens_ends_the_line(make):
    told, line, _ = refused("ws://127.0.0.1:1/v1/realtime", make)
    assert "cannot connect" in told
    assert "is the server up there?" in told
    assert line._sink is None

"""A call whose model gives no session, over a real socket: it is told what to do, soon, and the line is ended."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import pytest
from tests.runtime.calls import PHONE, run

import callwright as cw
from callwright.runtime.endpoint import Endpoint
from callwright.runtime.fast import PicowsConnector
from callwright.runtime.websocket import WebSocketConnector
from callwright.sim.caller import ScriptedCaller
from callwright.sim.line import SimulatedLine
from callwright.testing.connections import _stays_silent, answers, raw_server

Make: TypeAlias = type[WebSocketConnector | PicowsConnector]
MAKES: tuple[Make, ...] = (WebSocketConnector, PicowsConnector)
SERVERS = {"401": answers(401), "403": answers(403), "429": answers(429), "silent": _stays_silent, "nobody": None}
ADVICE = {
    "401": r"HTTP 401: POLY_API_KEY was refused: it is missing, wrong, a personal token .* another host",
    "403": r"HTTP 403: .*POLY_API_KEY is of another host, or .* User-Agent",
    "429": r"HTTP 429: too many sessions are open: .* close it, or wait",
    "silent": r"no answer within 300 ms",
    "nobody": r"cannot connect.*is the server up there\?",
}


class Refused(NamedTuple):
    told: str
    line: SimulatedLine
    took_s: float


async def call(url: str, make: Make) -> Refused:
    line = SimulatedLine(PHONE, ScriptedCaller((), {}, 8_000))
    began_s = asyncio.get_running_loop().time()
    with pytest.raises(cw.ConnectionFailed) as failed:
        await run(line, make(Endpoint(url, "key", "POLY_API_KEY", open_timeout_ms=300)))
    return Refused(str(failed.value), line, asyncio.get_running_loop().time() - began_s)


async def call_at(name: str, make: Make) -> Refused:
    serve = SERVERS[name]
    if serve is None:
        return await call("ws://127.0.0.1:1/v1/realtime", make)
    async with raw_server(serve) as url:
        return await call(url, make)


@pytest.fixture(scope="module")
def refused() -> Mapping[tuple[str, Make], Refused]:
    """What became of a call at each server over each connector: all at once, as what may pass is tried three times."""
    cases = [(name, make) for name in SERVERS for make in MAKES]

    async def at_once() -> list[Refused]:
        return await asyncio.gather(*(call_at(*case) for case in cases))

    return dict(zip(cases, asyncio.run(asyncio.wait_for(at_once(), 20)), strict=True))


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("name", SERVERS)
def test_a_refusal_ends_the_line_and_says_what_to_do(name, make, refused):
    told, line, took_s = refused[name, make]
    assert re.search(ADVICE[name], told)
    assert line._sink is None, "the line has ended"
    assert took_s < 5

"""The stand-in provider as a host of `MemoryTransport`: requests of an ``httpx.AsyncClient`` in, replies out.

Time is the running loop's, so in virtual time a settlement after five days takes no longer than another. A request
goes on when its client has given up, as it would at any real provider.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx

from callwright.sim.loop import loop_ms
from callwright.sim.provider.messages import KEY_HEADER, Call, Reply, Way

if TYPE_CHECKING:
    from callwright.sim.provider.desk import Desk


async def serve(desk: Desk, call: Call) -> Reply:
    """Serve one request, and wait as long as it takes."""
    steps = desk.serve(call, loop_ms())
    try:
        wait_ms = next(steps)
        while True:
            await asyncio.sleep(wait_ms / 1000)
            wait_ms = steps.send(loop_ms())
    except StopIteration as end:
        reply: Reply = end.value
        return reply


class Host:
    """A handler for `MemoryTransport`: what answers for one provider's host name."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer, or not. Raises ``httpx.ConnectError`` and ``httpx.ReadError`` as the network would."""
        key = request.headers.get(KEY_HEADER)
        call = Call(request.method, request.url.path, dict(request.url.params), key, request.content)
        reply = await serve(self.desk, call)
        match reply.way:
            case Way.ANSWER:
                headers = {"Content-Type": "application/json", **reply.headers}
                return httpx.Response(reply.status, content=reply.body, headers=headers)
            case Way.REFUSED:
                raise httpx.ConnectError("connection refused", request=request)
            case Way.RESET:
                raise httpx.ReadError("connection reset", request=request)
            case Way.SILENCE:
                await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody ends a silence")

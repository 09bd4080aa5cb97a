"""HTTP without a network: it owns the way of a request from a client to a handler in the same world, and back.

The loop's clock is the only one, so a request takes as long as it is said to, to the millisecond:

```
client   connect_ms |  request_ms        handler        reply_ms | response
         connect ^  |<---------------- read -------------------->|   limits of the request's own timeout
```

As with a real server, a request that has left is not called back: when the client gives up or is cancelled, the handler
goes on, and its effects stand. That is where an action of unknown outcome comes from.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import httpx

from callwright.errors import OutsideWorldError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    Handler = Callable[[httpx.Request], Awaitable[httpx.Response]]

T = TypeVar("T")


class MemoryTransport(httpx.AsyncBaseTransport):
    """Carry the requests of an ``httpx.AsyncClient`` to handlers, by host name.

    ``hosts`` maps a host name (``payments.test``) to the coroutine function that answers for it. It may await, never
    return, or raise: an ``httpx.TransportError`` reaches the client as if the network had failed there. What a
    connection, the way to the handler and the way back take is ``connect_ms``, ``request_ms`` and ``reply_ms``.

    The request's own timeouts hold, and the limit itself is too late: ``connect`` raises ``httpx.ConnectTimeout``,
    and ``read``, counted from the departure of the request to the response and then for each chunk of its body, raises
    ``httpx.ReadTimeout``. Sending never blocks and there is no pool, so ``write`` and ``pool`` cannot run out. A host
    that nobody answers for raises OutsideWorldError.
    """

    def __init__(
        self, hosts: Mapping[str, Handler], *, connect_ms: int = 0, request_ms: int = 1, reply_ms: int = 1
    ) -> None:
        self._hosts = hosts
        self._connect_ms = connect_ms
        self._request_ms = request_ms
        self._reply_ms = reply_ms
        self._served: dict[asyncio.Task[httpx.Response | httpx.TransportError], None] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request; see the class for what it raises."""
        host = request.url.host
        if host not in self._hosts:
            known = ", ".join(self._hosts) or "none"
            raise OutsideWorldError(
                f"{request.method} {request.url}: nobody answers for {host!r} in this world (hosts: {known}); "
                "add a handler for it, in the scenario's provider or in MemoryTransport(hosts=...)"
            )
        limits = request.extensions.get("timeout", {})
        body = await request.aread()
        await _within(limits.get("connect"), asyncio.sleep(self._connect_ms / 1000), httpx.ConnectTimeout, request)
        arriving = httpx.Request(request.method, request.url, headers=request.headers, content=body)
        serving = asyncio.get_running_loop().create_task(self._serve(self._hosts[host], arriving))
        self._served[serving] = None
        serving.add_done_callback(self._served.pop)
        response = await _within(limits.get("read"), asyncio.shield(serving), httpx.ReadTimeout, request)
        if isinstance(response, httpx.TransportError):
            raise response
        assert isinstance(response.stream, httpx.AsyncByteStream)
        chunks = _TimedStream(response.stream, limits.get("read"), request)
        return httpx.Response(response.status_code, headers=response.headers, stream=chunks)

    async def _serve(self, handler: Handler, request: httpx.Request) -> httpx.Response | httpx.TransportError:
        """Answer; a broken network is returned, as the client may be gone and nobody left to raise it to."""
        await asyncio.sleep(self._request_ms / 1000)
        try:
            response = await handler(request)
        except httpx.TransportError as broken:
            return broken
        await asyncio.sleep(self._reply_ms / 1000)
        return response


class _TimedStream(httpx.AsyncByteStream):
    """A response's body, each chunk of which must come within ``limit`` seconds."""

    def __init__(self, chunks: httpx.AsyncByteStream, limit: float | None, request: httpx.Request) -> None:
        self._chunks = chunks
        self._limit = limit
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._chunks)
        while True:
            try:
                yield await _within(self._limit, anext(chunks), httpx.ReadTimeout, self._request)
            except StopAsyncIteration:
                return

    async def aclose(self) -> None:
        await self._chunks.aclose()


async def _within(
    limit: float | None, awaitable: Awaitable[T], error: type[httpx.TimeoutException], request: httpx.Request
) -> T:
    """Await for less than ``limit`` seconds, or raise ``error``; a TimeoutError from within passes through."""
    try:
        async with asyncio.timeout(limit) as scope:
            return await awaitable
    except TimeoutError as expired:
        if not scope.expired():
            raise
        raise error(f"no answer from {request.url.host} within {limit} s", request=request) from expired

"""The stand-in provider as a real server: JSON over HTTP/1.1 on a socket, in real time.

It reads plain requests with a ``Content-Length`` and keeps connections open. What is malformed or too long is answered
with 400, 411, 413 or 431, and the connection closed. A connection cannot be refused while the port listens, so the
fault ``refused`` closes it without an answer: to a client that is a break, not a proof that nothing was sent.

One line for each request goes to the log ``callwright.access``: method, path, status and time, never a key or a body.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from callwright.errors import UsageError
from callwright.sim.loop import loop_ms
from callwright.sim.provider.desk import Desk
from callwright.sim.provider.http import serve
from callwright.sim.provider.messages import KEY_HEADER, Call, Reply, Way, error

HEAD_BYTES_MAX: Final = 16 * 1024
BODY_BYTES_MAX: Final = 64 * 1024

_access = logging.getLogger("callwright.access")


class ProviderServer:
    """Serves one desk, inside ``async with``; ``url`` is its address. The desk must be used by nothing else.

    ``port`` 0 takes a free one. Raises UsageError where it cannot listen. At the end open connections are closed.
    """

    def __init__(self, desk: Desk, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._desk = desk
        self._host = host
        self._port = port
        self._server: asyncio.Server
        self._open: dict[asyncio.Task[None], None] = {}
        self.url = ""
        """The address, once it is served."""

    async def __aenter__(self) -> ProviderServer:
        try:
            self._server = await asyncio.start_server(self._connected, self._host, self._port, limit=HEAD_BYTES_MAX)
        except OSError as problem:
            told = problem.strerror or problem
            raise UsageError(f"cannot listen on {self._host}, port {self._port}: {told}") from problem
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"http://{host}:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_exc: object) -> None:
        """Stop listening, and drop what is open: whoever waits for an answer gets none."""
        self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = None
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client is gone, or the server is: a connection has nobody else to tell
        finally:
            del self._open[task]
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer. Returns whether the connection goes on."""
        began_ms = loop_ms()
        call = await _read_call(reader)
        if isinstance(call, Reply):
            await _write(writer, call, keep=False)
            await _drained(writer)
            return False
        reply = await serve(self._desk, call)
        _access.info("%s %s %s ms=%d", call.method, call.path, reply.status or reply.way.value, loop_ms() - began_ms)
        if reply.way is Way.SILENCE:
            await reader.read()  # until the client gives up
        if reply.way is not Way.ANSWER:
            return False
        await _write(writer, reply, keep=True)
        return True


async def _read_call(reader: asyncio.StreamReader) -> Call | Reply:
    """Read one request, or say how to refuse it. Raises IncompleteReadError when the client is gone."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError:
        return error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "head_too_long")
    first, *lines = head[:-4].split("\r\n")
    words = first.split(" ")
    pairs = [line.partition(":") for line in lines]
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not all(name and colon for name, colon, _ in pairs):
        return error(HTTPStatus.BAD_REQUEST, "malformed")
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if "transfer-encoding" in headers:
        return error(HTTPStatus.LENGTH_REQUIRED, "length_required")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdecimal()):
        return error(HTTPStatus.BAD_REQUEST, "malformed")
    if len(length) > len(str(BODY_BYTES_MAX)) or int(length) > BODY_BYTES_MAX:
        return error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body_too_long")
    body = await reader.readexactly(int(length))
    target = urlsplit(words[1])
    query = dict(parse_qsl(target.query, keep_blank_values=True))
    return Call(words[0], unquote(target.path), query, headers.get(KEY_HEADER.lower()), body)


async def _write(writer: asyncio.StreamWriter, reply: Reply, *, keep: bool) -> None:
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(len(reply.body)),
        "Connection": "keep-alive" if keep else "close",
        **reply.headers,
    }
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}", *(f"{k}: {v}" for k, v in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + reply.body)
    await writer.drain()


async def _drained(writer: asyncio.StreamWriter) -> None:
    """Close so that the last answer still arrives."""
    writer.close()
    await writer.wait_closed()

"""The default connection to a model: the sans-I/O protocol of ``websockets`` on a transport of the running loop.

A message goes out in one write, and comes in on the call of ``data_received`` that completes it: no task, no queue and
no lock lies between the socket and the call. Compression is never offered: it costs more than the audio it saves.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, cast

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus, PayloadTooBig
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.uri import parse_uri

from callwright.core.ports import ModelSink
from callwright.errors import ConnectionFailed
from callwright.runtime.endpoint import ABNORMAL, NORMAL, TOO_BIG, Endpoint, Inbox

_quiet: Final = logging.getLogger(f"{__name__}.frames")
_quiet.setLevel(logging.INFO)  # below, headers and whole frames would be logged: the key, and what was said
_DATA: Final = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)


class WebSocketConnector:
    """Opens WebSockets to one endpoint; implements ``callwright.core.ports.Connector``."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._endpoint.address})"

    async def connect(self, sink: ModelSink) -> WebSocketConnection:
        """Connect. Raises ConnectionFailed with the reason and what to do."""
        endpoint = self._endpoint
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(endpoint.open_timeout_ms / 1000):
                transport, connection = await loop.create_connection(
                    lambda: WebSocketConnection(endpoint, sink), endpoint.host, endpoint.port, ssl=endpoint.tls
                )
                try:
                    await connection.opened
                except BaseException:
                    transport.abort()
                    raise
        except TimeoutError:
            raise endpoint.silent() from None
        except OSError as problem:
            raise endpoint.unreachable(problem) from problem
        loop.call_soon(connection.begin)
        return connection


class WebSocketConnection(asyncio.Protocol):
    """One WebSocket; implements ``callwright.core.ports.ModelConnection``."""

    def __init__(self, endpoint: Endpoint, sink: ModelSink) -> None:
        self._loop = asyncio.get_running_loop()
        self.opened: asyncio.Future[None] = self._loop.create_future()
        """Done when the handshake is; fails with ConnectionFailed."""
        self.answer: Response | None = None
        """What the server answered to the handshake, accepted or not."""
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self._endpoint = endpoint
        self._inbox = Inbox(sink, endpoint.message_bytes_max, endpoint.key)
        self.begin = self._inbox.open
        self._protocol = ClientProtocol(parse_uri(endpoint.url), max_size=endpoint.message_bytes_max, logger=_quiet)
        self._transport: asyncio.Transport

    # --- what the call does

    def send(self, message: bytes) -> None:
        """Send one text message. After the end it does nothing."""
        if self._inbox.is_open and self._protocol.state is State.OPEN and not self._transport.is_closing():
            self._protocol.send_text(message)
            self._flush()

    async def close(self) -> None:
        """End the connection with code 1000, and wait until the socket is closed, at most ``close_timeout_ms``."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
            self._flush()
        self._end(NORMAL, "")
        await asyncio.shield(self._lost)

    # --- what the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket stands: ask for a WebSocket."""
        self._transport = cast(asyncio.Transport, transport)  # by its methods: no loop but the default subclasses it
        self._transport.set_write_buffer_limits(high=self._endpoint.unsent_bytes_max)
        self._endpoint.watch_way(transport)
        request = self._protocol.connect()
        request.headers.update(self._endpoint.headers)
        self._protocol.send_request(request)
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Bytes came: answer what the protocol answers by itself, and report each message that is whole."""
        self._protocol.receive_data(data)
        self._flush()
        self._shake_hands()
        for event in self._protocol.events_received():
            if isinstance(event, Frame):
                self._take(event)
            elif isinstance(event, Response):
                self.answer = event
        if self._protocol.parser_exc is not None:
            self._end(*self._broken(self._protocol.parser_exc))

    def pause_writing(self) -> None:
        """More is unsent than may be; told as soon as the ``send`` that led to it has returned."""
        self._loop.call_soon(self._inbox.end, ABNORMAL, self._endpoint.unread())
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        self._protocol.receive_eof()
        self._shake_hands()
        self._lost.set_result(None)
        self._inbox.end(ABNORMAL, f"the connection broke: {exc or 'the server closed it without a word'}")

    def _take(self, frame: Frame) -> None:
        if frame.opcode in _DATA:
            self._inbox.part(bytes(frame.data), is_last=frame.fin)
        elif frame.opcode is Opcode.CLOSE and (close := self._protocol.close_rcvd) is not None:
            self._end(close.code, close.reason)

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._transport.write(data)
            else:  # the protocol has nothing more to say
                self._transport.close()

    def _shake_hands(self) -> None:
        """See whether the handshake is done, or failed."""
        if self.opened.done():
            return
        if self._protocol.handshake_exc is not None:
            self.opened.set_exception(self._refused(self._protocol.handshake_exc))
        elif self._protocol.state is not State.CONNECTING:
            self.opened.set_result(None)

    def _refused(self, problem: Exception) -> ConnectionFailed:
        if isinstance(problem, InvalidStatus):
            retry_after = next(iter(problem.response.headers.get_all("Retry-After")), None)
            return self._endpoint.refused(problem.response.status_code, retry_after)
        return self._endpoint.not_a_websocket()

    def _broken(self, problem: Exception) -> tuple[int, str]:
        """Code and reason of an end that the server's bytes led to."""
        if isinstance(problem, PayloadTooBig):
            return TOO_BIG, self._endpoint.too_big(str(problem))
        sent = self._protocol.close_sent
        return sent.code if sent else ABNORMAL, self._endpoint.broken(str(problem))

    def _end(self, code: int, reason: str) -> None:
        """Report the end now; the socket gets a while to close in good order."""
        if self._inbox.is_open:
            self._loop.call_later(self._endpoint.close_timeout_ms / 1000, self._transport.abort)
        self._inbox.end(code, reason)

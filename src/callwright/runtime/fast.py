"""The fast connection to a model, over ``picows``, which the extra ``fast`` installs. Behaves like the default one."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from picows import (
    WSCloseCode,
    WSFrame,
    WSHandshakeError,
    WSListener,
    WSMsgType,
    WSTransport,
    ws_connect,
)

from callwright.core.ports import ModelSink
from callwright.runtime.endpoint import ABNORMAL, NO_STATUS, NORMAL, PROTOCOL_ERROR, TOO_BIG, Endpoint, Inbox

_quiet: Final = logging.getLogger(f"{__name__}.frames")
_quiet.setLevel(logging.CRITICAL + 1)  # what goes wrong is reported; below, the handshake would be logged with its key
_GRACE_MS: Final = 100


class PicowsConnector:
    """Opens WebSockets to one endpoint; implements ``callwright.core.ports.Connector``."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._endpoint.address})"

    async def connect(self, sink: ModelSink) -> PicowsConnection:
        """Connect. Raises ConnectionFailed with the reason and what to do."""
        endpoint = self._endpoint
        connection = PicowsConnection(endpoint, sink)
        patience_ms = endpoint.open_timeout_ms
        try:
            async with asyncio.timeout((patience_ms + _GRACE_MS) / 1000):  # the handshake ends the socket by itself
                _, listener = await ws_connect(
                    lambda: connection,
                    endpoint.url,
                    ssl_context=endpoint.tls,
                    websocket_handshake_timeout=patience_ms / 1000,
                    logger_name=_quiet,
                    max_frame_size=endpoint.message_bytes_max,
                    extra_headers=endpoint.headers,
                    max_redirects=0,
                )
        except TimeoutError:
            raise endpoint.silent() from None
        except WSHandshakeError as problem:
            if problem.response is None or problem.response.status == 101:
                raise endpoint.not_a_websocket() from None
            answer = problem.response
            raise endpoint.refused(answer.status, answer.headers.get("Retry-After")) from None
        except OSError as problem:
            raise endpoint.unreachable(problem) from problem
        if listener is None:  # the socket was closed during the handshake
            raise endpoint.not_a_websocket()
        asyncio.get_running_loop().call_soon(connection.begin)
        return connection


class PicowsConnection(WSListener):
    """One WebSocket; implements ``callwright.core.ports.ModelConnection``."""

    def __init__(self, endpoint: Endpoint, sink: ModelSink) -> None:
        self._endpoint = endpoint
        self._inbox = Inbox(sink, endpoint.message_bytes_max, endpoint.key)
        self.begin = self._inbox.open
        self._transport: WSTransport

    # --- what the call does

    def send(self, message: bytes) -> None:
        """Send one text message. After the end it does nothing."""
        if self._inbox.is_open:
            self._transport.send(WSMsgType.TEXT, message)

    async def close(self) -> None:
        """End the connection with code 1000, and wait until the socket is closed, at most ``close_timeout_ms``."""
        self._end(WSCloseCode.OK, NORMAL, "")
        try:
            await self._transport.wait_disconnected()
        except Exception:  # why it broke was reported
            _quiet.debug("closed after a failure")

    # --- what the transport calls

    def on_ws_connected(self, transport: WSTransport) -> None:
        """The handshake is done."""
        self._transport = transport
        transport.underlying_transport.set_write_buffer_limits(high=self._endpoint.unsent_bytes_max)
        self._endpoint.watch_way(transport.underlying_transport)

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        """A whole frame came."""
        kind = frame.msg_type
        if kind == WSMsgType.CLOSE:
            self._end(WSCloseCode.OK, frame.get_close_code().value or NO_STATUS, frame.get_close_reason() or "")
        elif kind == WSMsgType.PONG or not self._inbox.is_open:
            return
        elif (kind == WSMsgType.CONTINUATION) is not self._inbox.has_parts:
            self._end(WSCloseCode.PROTOCOL_ERROR, PROTOCOL_ERROR, self._endpoint.broken("a fragment out of place"))
        elif not self._inbox.part(frame.get_payload_as_bytes(), is_last=bool(frame.fin)):
            reason = self._endpoint.too_big(f"{frame.payload_size} bytes in its last fragment")
            self._end(WSCloseCode.MESSAGE_TOO_BIG, TOO_BIG, reason)

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        """The socket is closed; a close that we sent first is one that the transport sent for a broken frame."""
        sent = getattr(transport.close_handshake, "sent", None)
        if sent is not None and sent.code == WSCloseCode.MESSAGE_TOO_BIG:
            self._inbox.end(TOO_BIG, self._endpoint.too_big(sent.reason))
        elif sent is not None:
            self._inbox.end(sent.code.value, self._endpoint.broken(sent.reason))
        self._inbox.end(ABNORMAL, "the connection broke: the server closed it without a word")

    def pause_writing(self) -> None:
        """More is unsent than may be; told as soon as the ``send`` that led to it has returned."""
        asyncio.get_running_loop().call_soon(self._inbox.end, ABNORMAL, self._endpoint.unread())
        self._transport.disconnect(graceful=False)

    def _end(self, answer: WSCloseCode, code: int, reason: str) -> None:
        """Report the end now; the socket gets a while to close in good order."""
        if self._inbox.is_open:
            self._transport.send_close(answer)
            loop = asyncio.get_running_loop()
            loop.call_later(self._endpoint.close_timeout_ms / 1000, self._transport.disconnect, False)
        self._inbox.end(code, reason)

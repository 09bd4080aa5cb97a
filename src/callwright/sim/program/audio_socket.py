"""A simulated line behind a WebSocket: the audio socket, at which a client that is a program of its own takes a call.

```
caller side                         client
start, its rate    ------------>                          the line opens: pickup
20 ms of audio     ------------>    (binary)
                   <------------    any length of audio   played in order
mark NAME          <------------                          comes back when it is reached, or cleared
clear              <------------                          drops what was not played
keys, hang_up      <------------
end, by whom       ------------>                          the line is over; the client goes
```

Audio is PCM16, little-endian, mono, everything else a JSON object with a ``type``. It is what carriers do, without what
differs between them. One client is served, once: whoever has the address, which holds a token that nobody can guess.
Whatever it sends that is not in the protocol ends the call, and the end says what was expected.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections import deque
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.http11 import Request, Response

from callwright.audio.dtmf import GAP_MS, TONE_MS, tones
from callwright.audio.encodings import DECODE, ENCODE
from callwright.audio.formats import FRAME_MS, PCM16_24K, Encoding
from callwright.core.plan import Ending
from callwright.errors import UsageError
from callwright.ids import ItemId, MarkId, Ms
from callwright.sim.program.quoted import quoted
from callwright.sim.program.streamed import StreamedReplies

if TYPE_CHECKING:
    from callwright.sim.line import SimulatedLine

PATH: Final = "/audio"
FORMAT: Final = PCM16_24K
VERSION: Final = 1
KEYS: Final = ItemId("keys")
"""The name of the tones of keys on the line."""
MESSAGE_BYTES_MAX: Final = 1024 * 1024
"""A longer message of the client ends the call: 20 s of audio."""
UNREAD_BYTES_MAX: Final = 4 * 1024 * 1024
"""A client that leaves more than this unread, 80 s of the caller, is dropped."""
UNPLAYED_MS_MAX: Final[Ms] = 600_000
"""More audio than this ahead of what was played ends the call."""
GOES_WITHIN_S: Final = 2.0
"""How long a client may stay when the line is over."""
_NO_WEBSOCKET: Final = (CloseCode.PROTOCOL_ERROR, CloseCode.INVALID_DATA, CloseCode.MESSAGE_TOO_BIG)
"""The codes with which the WebSocket itself closes for what the client sent."""
_REASON_MAX: Final = 300
_CLOSE_BYTES_MAX: Final = 123
"""How long the reason of a close may be."""

_quiet = logging.getLogger(f"{__name__}.frames")
_quiet.setLevel(logging.CRITICAL + 1)  # it would log content, and a traceback for each broken handshake


class Mark(msgspec.Struct, tag="mark", tag_field="type"):
    """A point behind the audio that was sent so far."""

    name: str


class Clear(msgspec.Struct, tag="clear", tag_field="type"):
    """Drop what was not played."""


class Keys(msgspec.Struct, tag="keys", tag_field="type"):
    """Press keys of the telephone."""

    keys: str


class Heard(msgspec.Struct, tag="heard", tag_field="type"):
    """What the client holds the caller to have heard of a reply: its own record, to be compared with the ear."""

    item_id: str
    text: str


class HangUp(msgspec.Struct, tag="hang_up", tag_field="type"):
    """End the call."""


Message = Mark | Clear | Keys | Heard | HangUp
_TYPES: Final = "mark, clear, keys, heard, hang_up"
_decoder = msgspec.json.Decoder(Message)
_encode = msgspec.json.Encoder().encode


class AudioSocket:
    """Serves a line to one client, inside ``async with``; ``url`` is where.

    The line opens when the client has connected. It is the sink of that line.
    """

    def __init__(self, line: SimulatedLine, replies: StreamedReplies) -> None:
        self._line = line
        self._replies = replies
        self.token = secrets.token_urlsafe(16)
        self._connection: ServerConnection | None = None
        self._server: Server
        self._waiting: deque[bytes | str] = deque()
        self._unread = 0
        self._has_more = asyncio.Event()
        self._handed_ms: Ms = 0
        """Audio handed over since the line was last empty for sure, which was at ``_empty_ms``."""
        self._empty_ms: Ms = 0
        self.url = ""
        self.connected: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """The client is there, and the line is open."""
        self.ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        """How the line ended."""
        self.is_hung_up = False
        """The client said that it hangs up."""
        self.heard: dict[ItemId, str] | None = None
        """What the client says of what was heard, by reply; None where it never said anything."""

    async def __aenter__(self) -> AudioSocket:
        self._server = await serve(
            self._handle,
            "127.0.0.1",
            0,
            compression=None,
            max_size=MESSAGE_BYTES_MAX,
            close_timeout=GOES_WITHIN_S,
            process_request=self._refusal,
            process_response=self._reserve,
            logger=_quiet,
        )
        port = next(iter(self._server.sockets)).getsockname()[1]
        self.url = f"ws://127.0.0.1:{port}{PATH}/{self.token}"
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    # --- what the line calls

    def on_frame(self, frame: bytes) -> None:
        """Send 20 ms of the caller's."""
        self._send(frame)

    def on_played(self, item_id: ItemId, generation: int, played_ms: Ms) -> None:
        """Nothing: this line reports by marks."""

    def on_mark(self, mark_id: MarkId) -> None:
        """Send a mark back."""
        self._tell(type="mark", name=str(mark_id))

    def on_closed(self, by: str, reason: str) -> None:
        """Tell the client that the line is over."""
        self._end(by, reason)
        self._tell(type="end", by=by, reason=reason)

    # --- the connection

    def _refusal(self, connection: ServerConnection, request: Request) -> Response | None:
        path, _, token = request.path.partition("?")[0].rpartition("/")
        if path != PATH:
            return connection.respond(HTTPStatus.NOT_FOUND, f"The audio socket is at {PATH}/TOKEN.\n")
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return connection.respond(HTTPStatus.FORBIDDEN, "The token is missing or wrong.\n")
        if self._connection is not None:
            return connection.respond(HTTPStatus.CONFLICT, "The audio socket is for one client, once.\n")
        return None

    def _reserve(self, connection: ServerConnection, _request: Request, response: Response) -> None:
        """An accepted handshake takes the line; one that is none, whoever sent it, does not."""
        if response.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
            self._connection = connection

    async def _handle(self, connection: ServerConnection) -> None:
        sending = asyncio.get_running_loop().create_task(self._pump(connection))
        try:
            self._tell(type="start", version=VERSION, encoding="pcm16", rate=FORMAT.rate_hz, frame_ms=FRAME_MS)
            await self._line.open(self)
            self.connected.set_result(None)
            async for message in connection:
                wrong = await self._take(message)
                if wrong and not self.ended.done():
                    reason = self._broken(wrong).encode()[:_CLOSE_BYTES_MAX].decode(errors="ignore")
                    await connection.close(CloseCode.POLICY_VIOLATION, reason)
            await self._over(connection)
        except ConnectionClosed:
            await self._over(connection)
        finally:
            sending.cancel()

    async def _over(self, connection: ServerConnection) -> None:
        """The client has closed the connection: in good order it has hung up."""
        received, sent = connection.protocol.close_rcvd, connection.protocol.close_sent
        if sent and sent.code in _NO_WEBSOCKET and not connection.protocol.close_rcvd_then_sent:
            self._broken(sent.reason)
        elif received is not None and received.code in (CloseCode.NORMAL_CLOSURE, CloseCode.GOING_AWAY):
            self._end("agent", "closed the audio socket")
        else:
            told = f"code {received.code}" if received else (sent and sent.reason) or "without a close"
            self._ends(Ending("fault", f"the audio socket broke ({told})"))
        await self._line.hang_up()

    def _broken(self, wrong: str) -> str:
        """The client has sent what is not in the protocol; what of it is told."""
        wrong = quoted(wrong, _REASON_MAX)
        self._ends(Ending("fault", f"the client broke the protocol of the audio socket: {wrong}"))
        return wrong

    def _end(self, by: str, reason: str) -> None:
        self._ends(Ending(by, reason))

    def _ends(self, ending: Ending) -> None:
        """The first ending counts."""
        if not self.ended.done():
            self.ended.set_result(ending)

    async def _pump(self, connection: ServerConnection) -> None:
        """Send what waits; when the line is over, give the client a while to go."""
        try:
            while not self.ended.done() or self._waiting:
                await self._has_more.wait()
                self._has_more.clear()
                while self._waiting:
                    message = self._waiting.popleft()
                    self._unread -= len(message)
                    await connection.send(message)
            async with asyncio.timeout(GOES_WITHIN_S):
                await connection.wait_closed()
        except TimeoutError:
            await connection.close()
        except ConnectionClosed:
            pass

    def _tell(self, **fields: object) -> None:
        self._send(_encode(fields).decode())

    def _send(self, message: bytes | str) -> None:
        self._waiting.append(message)
        self._unread += len(message)
        self._has_more.set()
        if self._unread > UNREAD_BYTES_MAX and self._connection is not None:
            self._ends(Ending("fault", f"the client left {self._unread} bytes of the audio socket unread"))
            self._connection.transport.abort()

    # --- what the client says

    async def _take(self, message: bytes | str) -> str | None:
        """Do what the client asks for; what was expected instead, if that is not in the protocol."""
        if isinstance(message, bytes):
            return self._play(message)
        try:
            said = _decoder.decode(message)
        except msgspec.MsgspecError as problem:
            return f"expected audio, or an object of type {_TYPES}: {problem}"
        match said:
            case Heard():
                self.heard = {} if self.heard is None else self.heard
                self.heard[ItemId(said.item_id)] = said.text
            case _ if self.ended.done():
                pass
            case Mark():
                self._line.mark(MarkId(said.name))
            case Clear():
                self._line.clear()
                self._handed_ms, self._empty_ms = 0, self._line.now_ms
            case Keys():
                return self._press(said.keys)
            case HangUp():
                self.is_hung_up = True
                self._end("agent", "hung up")
                await self._line.hang_up()
        return None

    def _play(self, audio: bytes) -> str | None:
        if self.ended.done():
            return None
        if len(audio) % FORMAT.sample_bytes:
            return f"expected whole samples of {FORMAT.sample_bytes} bytes; got {len(audio)} bytes"
        if wrong := self._too_far_ahead(FORMAT.ms_of(len(audio))):
            return wrong
        for item_id, samples in self._replies.handed(DECODE[Encoding.PCM16](audio)):
            self._line.play(item_id, 0, ENCODE[Encoding.PCM16](samples))
        return None

    def _press(self, keys: str) -> str | None:
        if wrong := self._too_far_ahead(len(keys) * (TONE_MS + GAP_MS)):
            return wrong
        try:
            pressed = tones(keys, FORMAT.rate_hz)
        except UsageError as problem:
            return str(problem)
        self._line.play(KEYS, 0, ENCODE[Encoding.PCM16](pressed))
        return None

    def _too_far_ahead(self, more_ms: Ms) -> str | None:
        """Enter so much more sound; what was expected, where that is more than may wait."""
        self._handed_ms += more_ms
        if self._handed_ms > UNPLAYED_MS_MAX + self._line.now_ms - self._empty_ms:
            return f"expected at most {UNPLAYED_MS_MAX} ms of audio ahead of what was played"
        return None

"""Where a realtime model is reached, and what every WebSocket to it has in common.

The key is in one header and nowhere else: no message, log line or ``repr`` holds it, and an address is told without its
query. Whatever stands in the way of a session is a `ConnectionFailed` that says what to do.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cache, partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

from callwright.errors import ConnectionFailed, UsageError
from callwright.ids import Ms
from callwright.wire.readable import readable

if TYPE_CHECKING:
    import asyncio

    from callwright.core.ports import ModelSink

MIB: Final = 1024 * 1024
USER_AGENT: Final = f"callwright/{version('callwright')}"

NORMAL = 1000
PROTOCOL_ERROR = 1002
NO_STATUS = 1005
ABNORMAL = 1006
TOO_BIG = 1009

_DIGITS_MAX = 9
_KEY_CHARS_MIN = 16
"""A shorter key may be a word that a server says by itself, and is left in what it says."""
_NO_KEY: Final = b"***"
_PORTS: Final = {"ws": 80, "wss": 443}
_REFUSALS: Final[Mapping[int, str]] = {
    401: "{key} was refused: it is missing, wrong, a personal token instead of a workspace's key, or of another host",
    403: "the request was refused: {key} is of another host, or something on the way took out the User-Agent",
    404: "there is no realtime endpoint at this path; it usually ends in /v1/realtime",
    429: "too many sessions are open: one that was left open counts until it is closed; close it, or wait",
}
_PASSING: Final = (408, 425, 429, *range(500, 600))
"""The refusals that may be over in a moment."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address, the key for it, and the bounds of a connection. Raises UsageError for what cannot be used."""

    url: str = field(repr=False)
    key: str | None = field(default=None, repr=False)
    """Sent as ``Authorization: Bearer``."""
    key_name: str = "the key"
    """What the key is called when it is refused."""
    open_timeout_ms: Ms = 15_000
    """For the connection and both handshakes together: more than the slowest seen, and less than a session may take."""
    close_timeout_ms: Ms = 1_000
    """How long the server may take to answer a close."""
    message_bytes_max: int = 16 * MIB
    """A longer message of the server ends the connection."""
    unsent_bytes_max: int = MIB
    """More than this unsent ends the connection: about 15 s of the caller at 24 kHz that the server has not read."""
    dead_after_ms: Ms = 10_000
    """What was sent and not received for so long ends the connection, where the system can tell: the way is dead."""

    def __post_init__(self) -> None:
        told = "an address that cannot be read"
        try:
            told = self.address or "an empty address"
            usable = (
                self._split.scheme in _PORTS and self.host.encode("idna") and self.port and not self._split.fragment
            )
        except ValueError:  # a port that is no number, half a bracket, a name that no host has
            usable = False
        if not usable:
            raise UsageError(f"{told}: the address of a model is ws:// or wss:// and a host, and has no fragment (#)")
        if self.key is not None and not (self.key.isascii() and self.key.isprintable() and self.key.strip()):
            raise UsageError(f"{self.key_name} holds characters that no key has (a line break?); copy it anew")

    @property
    def _split(self) -> SplitResult:
        return urlsplit(self.url)

    @property
    def host(self) -> str:
        """The host's name or number."""
        return self._split.hostname or ""

    @property
    def port(self) -> int:
        """The TCP port."""
        port = self._split.port
        return _PORTS[self._split.scheme] if port is None else port

    @property
    def address(self) -> str:
        """The address as it may be told: without user, query and fragment."""
        parts = self._split
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()

    @property
    def tls(self) -> ssl.SSLContext | None:
        """How the server is known, for ``wss``."""
        return _tls() if self._split.scheme == "wss" else None

    @property
    def headers(self) -> dict[str, str]:
        """What the handshake says of us. Servers refuse a request without ``User-Agent`` with 403."""
        authorization = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        return {**authorization, "User-Agent": USER_AGENT}

    def watch_way(self, transport: asyncio.BaseTransport) -> None:
        """Let the system end a connection over which nothing goes any more; it would wait for a quarter of an hour.

        A caller's frames go out all the time, so that it shows soon. Systems that cannot be told so go on waiting.
        """
        raw = transport.get_extra_info("socket")
        if raw is not None and (option := getattr(socket, "TCP_USER_TIMEOUT", None)) is not None:
            raw.setsockopt(socket.IPPROTO_TCP, option, self.dead_after_ms)

    # --- what stands in the way

    def refused(self, status: int, retry_after: str | None = None) -> ConnectionFailed:
        """The server answered the handshake with this HTTP status, and with this ``Retry-After``."""
        if status in _REFUSALS:
            what = _REFUSALS[status].format(key=self.key_name)
        elif 300 <= status < 400:
            what = "the server sends us elsewhere, which is not followed, because the key belongs to one host"
        elif status >= 500:
            what = "the server is in trouble; try again later"
        else:
            what = "the server did not open a WebSocket; is this the address of a realtime endpoint?"
        return ConnectionFailed(
            f"{self.address}: HTTP {status}: {what}",
            is_final=status not in _PASSING,
            status=status,
            retry_after_s=_seconds(retry_after or ""),
        )

    def not_a_websocket(self) -> ConnectionFailed:
        """The server answered something else than a WebSocket's handshake, or closed without an answer."""
        return ConnectionFailed(
            f"{self.address}: what is there speaks no WebSocket; check scheme (ws:// or wss://), host, port and path"
        )

    def silent(self, advice: str = "is the host right, and reachable from here?") -> ConnectionFailed:
        """Nothing answered in time."""
        return ConnectionFailed(f"{self.address}: no answer within {self.open_timeout_ms} ms; {advice}")

    def unreachable(self, problem: OSError) -> ConnectionFailed:
        """The connection below the WebSocket did not come about."""
        if isinstance(problem, socket.gaierror):
            return ConnectionFailed(
                f"{self.address}: no address is known for {self.host} ({problem.strerror}); is the name right,"
                " and this machine on the network?"
            )
        told = getattr(problem, "verify_message", None) or problem.strerror or str(problem) or type(problem).__name__
        is_tls = isinstance(problem, ssl.SSLError | ConnectionResetError)
        advice = (
            "is TLS spoken there, its certificate known here, and this clock right?"
            if is_tls
            else "is the server up there?"
        )
        return ConnectionFailed(f"{self.address}: cannot connect ({told}); {advice}")

    # --- why a connection ended by itself

    def unread(self) -> str:
        """The server has stopped reading."""
        return f"the server does not read: more than {self.unsent_bytes_max} bytes wait to be sent"

    def broken(self, told: str) -> str:
        """The server's bytes were no WebSocket's."""
        return f"the server broke the WebSocket protocol: {told}"

    def too_big(self, told: str) -> str:
        """A message was longer than allowed."""
        return f"a message of the server is longer than {self.message_bytes_max} bytes ({told})"


def _seconds(retry_after: str) -> float | None:
    """What ``Retry-After`` says, a number of seconds or a date, as seconds from now; None for what says nothing."""
    if retry_after.isascii() and retry_after.isdecimal():
        return float(retry_after[:_DIGITS_MAX])
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


class Inbox:
    """What came in over one connection, on its way to the sink: whole messages in order, and one end.

    Nothing is reported before ``open``, so that whoever connects has the connection in hand when its first message
    comes; and nothing after the end. A server that says the key again, as one may that refuses it, says it to nobody.
    """

    def __init__(self, sink: ModelSink, message_bytes_max: int, key: str | None = None) -> None:
        self._key = (key or "").encode() if len(key or "") >= _KEY_CHARS_MIN else b""
        self._sink: ModelSink | None = sink
        self._early: list[Callable[[], None]] | None = []
        self._parts: list[bytes] = []
        self._room = self._message_bytes_max = message_bytes_max

    @property
    def is_open(self) -> bool:
        """Whether the end was not reported yet."""
        return self._sink is not None

    @property
    def has_parts(self) -> bool:
        """Whether a message is still incomplete."""
        return bool(self._parts)

    def open(self) -> None:
        """Report what came so far, and from now on as it comes."""
        early, self._early = self._early or [], None
        for report in early:
            report()

    def part(self, data: bytes, *, is_last: bool) -> bool:
        """Take one part of a message; false if that makes the message longer than allowed."""
        self._room -= len(data)
        if self._room < 0:
            return False
        if is_last:
            message = b"".join((*self._parts, data)) if self._parts else data
            self._parts.clear()
            self._room = self._message_bytes_max
            self._message(message)
        else:
            self._parts.append(data)
        return True

    def _message(self, message: bytes) -> None:
        message = self._without_key(message)
        if self._early is not None:
            self._early.append(partial(self._message, message))
        elif self._sink is not None:
            self._sink.on_message(message)

    def end(self, code: int, reason: str) -> None:
        """Report the end, unless it was."""
        if self._early is not None:
            self._early.append(partial(self.end, code, reason))
            return
        sink, self._sink = self._sink, None
        self._parts.clear()
        if sink is not None:
            sink.on_closed(code, readable(self._without_key(reason.encode(errors="replace")).decode()))

    def _without_key(self, said: bytes) -> bytes:
        return said.replace(self._key, _NO_KEY) if self._key and self._key in said else said

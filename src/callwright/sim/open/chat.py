"""Any endpoint that speaks the chat completions protocol as the thinker, its answers spoken sentence by sentence.

```
history ── messages ── POST .../chat/completions ─┬─ content ── sentences ── voice ── pieces
                                                  └─ tool calls ── each whole ── its call, its spoken arguments
```

The answer may be streamed (server-sent events) or come as one object; which of the two it is, is taken from its type.
What the model thinks is not said, be it between marks in the content or beside it. A reply that is dropped ends the
request. What goes wrong ends the reply with `Failed`, which names the address, and never the key nor anything that the
endpoint wrote.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx
import msgspec

from callwright.errors import ConnectionFailed, RemoteProtocolError, UsageError
from callwright.sim.models import ToolRequest
from callwright.sim.open.messages import request, spoken_arguments
from callwright.sim.open.sentences import Sentences
from callwright.sim.open.thoughts import Aloud
from callwright.sim.server.errands import Failed

if TYPE_CHECKING:
    from callwright.ids import Ms
    from callwright.sim.open.senses import Voice
    from callwright.sim.server.errands import MakeReply, Part

CHAT_KEY_ENV: Final = "CALLWRIGHT_CHAT_KEY"
ANSWER_BYTES_MAX: Final = 1024 * 1024
"""A longer answer is broken off: nobody could listen to it."""
_PATH: Final = "/chat/completions"
_PORT_MAX: Final = 65_535
_BYTE_ORDER_MARK: Final = "\ufeff".encode()
"""Some put it before all that they write."""
_REFUSALS: Final = {
    401: f"the key was refused; it is read from {CHAT_KEY_ENV}",
    403: f"the key was refused; it is read from {CHAT_KEY_ENV}",
    404: "nothing is there; does the address end in /v1, and does the endpoint have this model?",
    429: "too many requests, or no credit; wait, or look at the account",
}


@dataclass(frozen=True, slots=True)
class ChatEndpoint:
    """Where the chat endpoint is and which model it is to take.

    Raises UsageError for what cannot be used, and for an address that could hold a key.
    """

    url: str = field(repr=False)
    """Up to ``/v1``, or the whole of it up to ``/chat/completions``."""
    model: str
    key: str | None = field(default=None, repr=False)
    """Sent as ``Authorization: Bearer``."""
    timeout_ms: Ms = 30_000
    """The longest silence of the endpoint, before its answer and in it."""
    connect_timeout_ms: Ms = 5_000

    def __post_init__(self) -> None:
        try:
            url = httpx.URL(self.address)
            usable = url.scheme in ("http", "https") and url.host and (url.port or 0) <= _PORT_MAX
        except (ValueError, httpx.InvalidURL):
            usable = False
        if not usable or url.userinfo or url.query or url.fragment:
            raise UsageError(
                "--chat-url: the address of a chat endpoint is http:// or https:// and a host, without user, query and "
                f"fragment: HTTP clients log it; its key goes into {CHAT_KEY_ENV}"
            )
        if not self.model.strip():
            raise UsageError("--chat-model: expected the name of a model that the chat endpoint has")
        if self.key is not None and not (self.key.isascii() and self.key.isprintable() and self.key.strip()):
            raise UsageError(f"{CHAT_KEY_ENV} holds characters that no key has (a line break?); copy it anew")

    @property
    def address(self) -> str:
        """What is asked; nothing of it is secret."""
        parts = urlsplit(self.url)
        path = parts.path.rstrip("/")
        return parts._replace(path=path if path.endswith(_PATH) else path + _PATH).geturl()

    def post(self, client: httpx.AsyncClient, body: object) -> httpx.Request:
        """A request with this body."""
        authorization = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        headers = {**authorization, "Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
        timeout = httpx.Timeout(self.timeout_ms / 1000, connect=self.connect_timeout_ms / 1000)
        return client.build_request(
            "POST", self.address, content=msgspec.json.encode(body), headers=headers, timeout=timeout
        )


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function = msgspec.field(default_factory=_Function)


class _Part(msgspec.Struct):
    type: str = "text"
    text: str | None = None


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None

    @property
    def text(self) -> str:
        """The text of its content, which may be in parts; other parts are not for the ear."""
        if isinstance(self.content, list):
            return "".join(part.text or "" for part in self.content if part.type == "text")
        return self.content or ""


class _Choice(msgspec.Struct):
    delta: _Message | None = None
    message: _Message | None = None


class _Answer(msgspec.Struct):
    """One event of a stream, or a whole answer; what else it says is of no use here."""

    choices: list[_Choice] = msgspec.field(default_factory=list)
    error: object = None


_answer = msgspec.json.Decoder(_Answer)
_arguments = msgspec.json.Decoder(dict[str, object])


class ChatThinker:
    """A `Thinker` that asks a chat endpoint, over this HTTP client, and speaks with this voice."""

    def __init__(self, endpoint: ChatEndpoint, voice: Voice, client: httpx.AsyncClient) -> None:
        self._endpoint = endpoint
        self._voice = voice
        self._client = client

    async def reply(self, wanted: MakeReply) -> AsyncGenerator[Part, None]:
        """Sentences as they are written, then the tool calls, each with what of it is said aloud."""
        calls, aloud, sentences = _Calls(), Aloud(), Sentences()
        try:
            async with aclosing(self._messages(wanted)) as messages:
                async for message in messages:
                    calls.take(message.tool_calls or [])
                    for sentence in sentences.take(aloud.take(message.text)):
                        yield await self._voice.speak(sentence)
            for sentence in (*sentences.take(aloud.rest()), *sentences.rest()):
                yield await self._voice.speak(sentence)
            for call in calls.whole(self._endpoint.address):
                yield call
                for sentence in _said_aloud(wanted, call):
                    yield await self._voice.speak(sentence)
        except ConnectionFailed as problem:
            yield Failed("model_unreachable", str(problem))
        except RemoteProtocolError as problem:
            yield Failed("model_garbled", str(problem))

    async def _messages(self, wanted: MakeReply) -> AsyncGenerator[_Message, None]:
        """The pieces of the answer. Raises ConnectionFailed and RemoteProtocolError."""
        where = self._endpoint.address
        post = self._endpoint.post(self._client, request(wanted, self._endpoint.model))
        try:
            response = await self._client.send(post, stream=True)
            try:
                self._check(response)
                async with aclosing(_events(response, where)) as events:
                    async for data in events:
                        yield _read(data, where)
            finally:
                await response.aclose()
        except httpx.TimeoutException as problem:
            limit_ms = self._endpoint.timeout_ms
            if isinstance(problem, httpx.ConnectTimeout):
                limit_ms = self._endpoint.connect_timeout_ms
            raise ConnectionFailed(f"{where}: no answer within {limit_ms} ms; is the chat endpoint up?") from problem
        except httpx.RemoteProtocolError as problem:
            raise RemoteProtocolError(f"{where}: the chat endpoint broke its answer off") from problem
        except httpx.DecodingError as problem:
            raise _garbled(where) from problem
        except httpx.TransportError as problem:
            told = f"{where}: cannot connect ({type(problem).__name__})"
            raise ConnectionFailed(f"{told}; is the chat endpoint up, and its address right?") from problem

    def _check(self, response: httpx.Response) -> None:
        status, where = response.status_code, self._endpoint.address
        if status == httpx.codes.OK:
            return
        what = _REFUSALS.get(status, "it did not take the request; does it have this model, and does it take tools?")
        if status >= httpx.codes.INTERNAL_SERVER_ERROR:
            what = "it is in trouble; its own log says more"
        if response.is_redirect:
            what = "it sends elsewhere, where neither key nor words are sent; give the address itself"
        raise ConnectionFailed(f"{where}: the chat endpoint answered HTTP {status}: {what}")


class _Calls:
    """The tool calls of an answer, which may come in pieces: a new place, or a new id in it, begins another one."""

    def __init__(self) -> None:
        self._calls: list[tuple[int | None, str | None, str, list[str]]] = []

    def take(self, pieces: list[_Call]) -> None:
        """More of the calls."""
        for piece in pieces:
            last = self._calls[-1] if self._calls else None
            is_new = last is None or piece.index != last[0] or (piece.id and last[1] and piece.id != last[1])
            if last is None or is_new:
                self._calls.append((piece.index, piece.id, piece.function.name or "", [piece.function.arguments or ""]))
            else:
                last[3].append(piece.function.arguments or "")

    def whole(self, where: str) -> Iterator[ToolRequest]:
        """The calls in their order. Raises RemoteProtocolError for one that is none."""
        for _, _, name, pieces in self._calls:
            try:
                arguments = _arguments.decode("".join(pieces) or "{}")
            except (msgspec.MsgspecError, RecursionError) as problem:
                raise _garbled(where) from problem
            if not name:
                raise _garbled(where)
            yield ToolRequest(name, arguments)


def _said_aloud(wanted: MakeReply, call: ToolRequest) -> list[str]:
    """What of a call is said aloud, in sentences."""
    sentences = Sentences()
    texts = [call.arguments.get(name) for name in spoken_arguments(wanted, call.name)]
    return [each for text in texts if isinstance(text, str) for each in (*sentences.take(text), *sentences.rest())]


async def _events(response: httpx.Response, where: str) -> AsyncGenerator[bytes, None]:
    """The data of each event of a stream, or the one object that the answer is."""
    is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    rest, size = b"", 0
    async for data in response.aiter_bytes():
        size += len(data)
        if size > ANSWER_BYTES_MAX:
            raise RemoteProtocolError(f"{where}: the answer is longer than {ANSWER_BYTES_MAX} bytes; it is broken off")
        rest += data
        if is_stream:
            *lines, rest = rest.split(b"\n")
            for line in lines:
                if event := _data(line):
                    yield event
    if not is_stream:
        yield rest
    elif event := _data(rest):
        yield event


def _data(line: bytes) -> bytes:
    """What a line of a stream carries; empty where it is a comment, another field, or the stream's end."""
    name, _, value = line.strip().removeprefix(_BYTE_ORDER_MARK).partition(b":")
    return value.strip() if name == b"data" and value.strip() != b"[DONE]" else b""


def _read(data: bytes, where: str) -> _Message:
    try:
        answer = _answer.decode(data.removeprefix(_BYTE_ORDER_MARK))
    except (msgspec.MsgspecError, RecursionError) as problem:
        raise _garbled(where) from problem
    if answer.error is not None:
        raise ConnectionFailed(f"{where}: the chat endpoint told of an error in its answer; its own log says more")
    choice = answer.choices[0] if answer.choices else _Choice()
    return choice.delta or choice.message or _Message()


def _garbled(where: str) -> RemoteProtocolError:
    return RemoteProtocolError(f"{where}: what came is no answer of a chat endpoint; is the address right?")

"""Stand-ins for what free speech needs: a recogniser that is the ear, a voice of recorded lines, a chat endpoint.

The chat endpoint answers as the hotel's front desk, in the words of recorded lines. It is as strict as the strictest
one there is: a body that the official types do not take, or a tool call whose output is not the very next message, is
refused with 400. What it is told to do wrong it does from the next request on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx
import numpy as np
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import CompletionCreateParams
from pydantic import TypeAdapter, ValidationError
from tests.sim.server.driving import ear, speech

from callwright.ids import Ms
from callwright.sim.server.errands import Piece
from callwright.sim.speech import PER_MS, RATE_HZ, Pcm, Word, normalise

KEY = "sk-stand-in-0123456789"
MODEL = "stand-in"
PIECE = 12
"""Characters of an answer in one event of a stream."""


@dataclass
class EarRecogniser:
    """A `Recogniser` that knows recorded lines, and takes its time."""

    takes_ms: Ms = 150

    async def words(self, audio: Pcm) -> str:
        await asyncio.sleep(self.takes_ms / 1000)
        return " ".join(word.text for word in ear().listen(audio, RATE_HZ))


@dataclass
class RecordedVoice:
    """A `Voice` that has recorded every sentence that the stand-in writes, and hums what else it is given."""

    takes_ms: Ms = 40
    said: list[str] = field(default_factory=list)

    async def speak(self, text: str) -> Piece:
        await asyncio.sleep(self.takes_ms / 1000)
        self.said.append(text)
        return _sentences().get(_key(text)) or _hummed(text)


def _key(text: str) -> str:
    return " ".join(map(normalise, text.split()))


@cache
def _sentences() -> Mapping[str, Piece]:
    """What is recorded of the agent, sentence by sentence."""
    found = {}
    for line in speech().values():
        first = 0
        for at, word in enumerate(line.words if line.kind == "agent" else (), 1):
            if word.text[-1] in ".?!":
                begin_ms = line.cut_at(first) // PER_MS
                words = [
                    Word(each.text, each.start_ms - begin_ms, each.end_ms - begin_ms) for each in line.words[first:at]
                ]
                piece = Piece(line.slice(first, at), tuple(words))
                found[_key(" ".join(each.text for each in words))] = piece
                first = at
    return found


def _hummed(text: str) -> Piece:
    words = [Word(word, 300 * at, 300 * at + 250) for at, word in enumerate(text.split())]
    hum = 4_000 * np.sin(np.arange(300 * len(words) * PER_MS) / 20)
    return Piece(hum.astype(np.int16), tuple(words))


ANSWERS = {
    "checking": "Check in is from three in the afternoon. Please bring a photo ID and the card that you booked with. "
    "We hold a deposit of one hundred dollars on that card, and you get it back when you leave.",
    "parking": "Parking here is valet only, at forty dollars a night.",
    "breakfast": "We serve breakfast from seven to ten in the Atrium.",
}
HOLDING = "One moment, I am looking that up for you."
FOUND = "I found it. Room two fourteen, two nights, checking in on Friday."
NOT_FOUND = "I am sorry, I can not find a booking under that name."
GOODBYE = "Thank you for calling the Harborview Inn. We look forward to seeing you. Goodbye."
AGAIN = "Sorry, could you say that again?"


@dataclass
class StandInChat:
    """The endpoint; ``handle`` is for `MemoryTransport`, ``serving`` puts it on a socket."""

    streams: bool = True
    thinks_ms: Ms = 200
    piece_ms: Ms = 20
    """Between two pieces of a streamed answer."""
    fault: str = ""
    """``500``, ``401``, ``garbage``, ``breaks`` (in the middle), ``silent``, ``error`` (in the stream), ``endless``."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    """The bodies that came."""
    keys: list[str | None] = field(default_factory=list)
    left: int = 0
    """How many clients were gone before their answer was whole."""
    was_left: asyncio.Event = field(default_factory=asyncio.Event)
    answer: Callable[[list[dict[str, Any]]], dict[str, Any]] | None = None
    """What it says instead: a message for these messages."""

    async def handle(self, request: httpx.Request) -> httpx.Response:
        """Answer a request that came by memory."""
        body = json.loads(request.content)
        self.keys.append(request.headers.get("authorization"))
        await self._think()
        if status := self._refusal(request.url.path, body):
            return httpx.Response(status, json={"error": {"message": f"no, and your key is {KEY}"}})
        kind = "text/event-stream" if self._is_streamed(body) else "application/json"
        return httpx.Response(200, headers={"content-type": kind}, stream=_Body(self._parts(body), self._leave))

    def _leave(self) -> None:
        self.left += 1
        self.was_left.set()

    async def _think(self) -> None:
        await asyncio.sleep(3_600 if self.fault == "silent" else self.thinks_ms / 1000)

    def _is_streamed(self, body: Mapping[str, Any]) -> bool:
        return bool(body.get("stream")) and self.streams

    def _refusal(self, path: str, body: dict[str, Any]) -> int:
        if self.fault.isdecimal():
            return int(self.fault)
        if path != "/v1/chat/completions":
            return 404
        self.asked.append(body)
        return 0 if is_official(body) else 400

    async def _parts(self, body: dict[str, Any]) -> AsyncIterator[bytes]:
        if self.fault == "garbage":
            yield b"<html>It works!</html>\n\n" if not self._is_streamed(body) else b"data: <html>It works!</html>\n\n"
            return
        message = (self.answer or _answer)(body["messages"])
        if not self._is_streamed(body):
            yield json.dumps(_whole(message)).encode()
            return
        yield b": thinking\n\n"
        for number, event in enumerate(_streamed(message)):
            await asyncio.sleep(self.piece_ms / 1000)
            if self.fault == "error" and number == 2:
                event = {"error": {"message": "out of memory"}}
            if self.fault == "breaks" and number == 8:
                raise httpx.RemoteProtocolError("peer closed connection without sending complete message body")
            yield b"data: " + json.dumps(event).encode() + b"\n\n"
        while self.fault == "endless":
            yield b": " + bytes(100_000) + b"\n"
        yield b"data: [DONE]\n\n"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Listen; gives the address up to /v1."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
        content = await reader.readexactly(int(fields["content-length"]))
        request = httpx.Request("POST", f"http://here{head.split()[1]}", content=content, headers=fields)
        response = await self.handle(request)
        kind = response.headers.get("content-type", "")
        writer.write(f"HTTP/1.1 {response.status_code} .\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n".encode())
        gone = asyncio.ensure_future(reader.read())
        try:
            async for part in response.aiter_raw():
                writer.write(part)
                await asyncio.sleep(0)
                if gone.done():
                    self._leave()
                    break
        finally:
            gone.cancel()
            writer.close()


class _Body(httpx.AsyncByteStream):
    def __init__(self, parts: AsyncIterator[bytes], leave: Callable[[], None]) -> None:
        self._parts = parts
        self._leave: Callable[[], None] | None = leave

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._parts:
            yield part
        self._leave = None

    async def aclose(self) -> None:
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


_PARAMS: TypeAdapter[Any] = TypeAdapter(CompletionCreateParams)


def is_official(body: dict[str, Any]) -> bool:
    """Whether the official types take this request, and every call's output is where endpoints want it."""
    try:
        _PARAMS.validate_python(body)
    except ValidationError:
        return False
    due: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in due:
                return False
            due.remove(message["tool_call_id"])
        elif due:
            return False
        due += [call["id"] for call in message.get("tool_calls") or ()]
    return not due


def _answer(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """What the front desk says next."""
    last = messages[-1]
    if last["role"] == "tool":
        return {
            "content": FOUND if "214" in last["content"] else "I am sorry, I can not find a booking under that name."
        }
    text = str(last["content"]).lower()
    if "okaf" in text:  # as a recogniser may spell it
        return _calls("look_up_booking", surname="Okafor", holding=HOLDING)
    if "goodbye" in text:
        return _calls("end_call", reason="the caller is done", goodbye=GOODBYE)
    said = next((answer for word, answer in ANSWERS.items() if word in text), AGAIN)
    return {"content": said}


def _calls(name: str, **arguments: str) -> dict[str, Any]:
    return {"content": None, "tool_calls": [{"name": name, "arguments": json.dumps(arguments)}]}


def _whole(message: dict[str, Any]) -> dict[str, Any]:
    calls = [
        {"id": f"call_{number}", "type": "function", "function": call}
        for number, call in enumerate(message.get("tool_calls", ()))
    ]
    told = {"role": "assistant", "content": message.get("content"), **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": told, "finish_reason": "tool_calls" if calls else "stop"}
    whole = {"id": "cmpl", "object": "chat.completion", "created": 0, "model": MODEL, "choices": [choice]}
    ChatCompletion.model_validate(whole)
    return whole


def _streamed(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of the same answer: content and arguments in pieces, a call's name with its first."""
    text = message.get("content") or ""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[at : at + PIECE]} for at in range(0, len(text), PIECE)]
    for index, call in enumerate(message.get("tool_calls", ())):
        head = {"index": index, "id": f"call_{index}", "type": "function", "function": {**call, "arguments": ""}}
        deltas.append({"tool_calls": [head]})
        arguments = call["arguments"]
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": arguments[at : at + PIECE]}}]}
            for at in range(0, len(arguments), PIECE)
        ]
    events = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    told = [{"id": "cmpl", "object": "chat.completion.chunk", "created": 0, "model": MODEL, **each} for each in events]
    for each in told:
        ChatCompletionChunk.model_validate(each)
    return [*told, {**told[-1], "choices": []}]

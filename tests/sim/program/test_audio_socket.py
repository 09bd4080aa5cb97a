"""The audio socket: what carriers do, without what differs between them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from callwright.audio.dtmf import KeyDetector
from callwright.core.plan import Ending
from callwright.ids import ItemId
from callwright.sim.caller import Anchor, ScriptedCaller, Step, Trigger
from callwright.sim.line import LineKind, LineSettings, SimulatedLine
from callwright.sim.program.audio_socket import FORMAT, MESSAGE_BYTES_MAX, AudioSocket
from callwright.sim.program.streamed import StreamedReplies

FRAME = FORMAT.frame_bytes
LOUD = np.full(FORMAT.rate_hz // 50, 9_000, np.int16).tobytes()


class Call:
    """A line at a socket, and one client of it."""

    def __init__(self, line: SimulatedLine, socket: AudioSocket, client: ClientConnection) -> None:
        self.line = line
        self.socket = socket
        self.client = client

    async def tell(self, **fields: object) -> None:
        await self.client.send(json.dumps(fields))

    async def told(self, kind: str) -> dict[str, Any]:
        """The next message of this type; audio and others before it are passed over."""
        async for message in self.client:
            if isinstance(message, str) and json.loads(message)["type"] == kind:
                return dict(json.loads(message))
        raise AssertionError(f"no {kind} came")


def call(client: Callable[[Call], Awaitable[None]], *, hangs_up_ms: int = 60_000) -> Call:
    """Let a client take a call, whose caller says nothing and hangs up after a while."""

    async def taken() -> Call:
        settings = LineSettings(LineKind.PHONE, FORMAT)
        caller = ScriptedCaller([Step(Trigger(Anchor.PICKUP, hangs_up_ms), None)], {}, FORMAT.rate_hz)
        line = SimulatedLine(settings, caller)
        async with AudioSocket(line, StreamedReplies(FORMAT.rate_hz)) as socket:
            async with connect(socket.url) as connection:
                one = Call(line, socket, connection)
                await client(one)
            await socket.ended
        return one

    return asyncio.run(taken())


def ending(client: Callable[[Call], Awaitable[None]], **options: int) -> Ending:
    return call(client, **options).socket.ended.result()


def test_a_call_begins_with_its_format_and_brings_20_ms_at_a_time() -> None:
    async def client(one: Call) -> None:
        start = json.loads(await one.client.recv())
        assert start == {"type": "start", "version": 1, "encoding": "pcm16", "rate": 24_000, "frame_ms": 20}
        assert [len(await one.client.recv()) for _ in range(3)] == [FRAME] * 3
        await one.tell(type="hang_up")
        assert await one.told("end") == {"type": "end", "by": "agent", "reason": "hung up"}

    assert ending(client) == Ending("agent", "hung up")


def test_the_callers_hanging_up_is_told() -> None:
    async def client(one: Call) -> None:
        assert await one.told("end") == {"type": "end", "by": "caller", "reason": "hung up"}

    assert ending(client, hangs_up_ms=60) == Ending("caller", "hung up")


def test_a_mark_comes_back_when_what_is_before_it_was_played_and_when_it_is_cleared() -> None:
    async def client(one: Call) -> None:
        await one.client.send(LOUD * 3)
        await one.tell(type="mark", name="played")
        assert (await one.told("mark"))["name"] == "played"
        await one.client.send(LOUD * 500)
        await one.tell(type="mark", name="cleared")
        await one.tell(type="clear")
        assert (await one.told("mark"))["name"] == "cleared"
        await one.tell(type="hang_up")

    played = int((call(client).line.recording.agent == 9_000).sum()) * FORMAT.sample_bytes // FRAME
    assert 3 <= played < 100


def test_keys_are_pressed_as_tones() -> None:
    async def client(one: Call) -> None:
        await one.tell(type="keys", keys="2")
        await one.tell(type="mark", name="pressed")
        await one.told("mark")
        await one.tell(type="hang_up")

    heard = KeyDetector(FORMAT.rate_hz).take(call(client).line.recording.agent)
    assert [key.key for key in heard] == ["2"]


def test_what_the_client_holds_to_have_been_heard_is_taken_after_the_end_as_well() -> None:
    async def client(one: Call) -> None:
        await one.tell(type="heard", item_id="i1", text="Hello there")
        await one.tell(type="hang_up")
        await one.told("end")
        await one.tell(type="heard", item_id="i1", text="Hello")

    assert call(client).socket.heard == {ItemId("i1"): "Hello"}


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (b"\x00\x01\x02", "whole samples of 2 bytes; got 3 bytes"),
        ("hello", "expected audio, or an object of type mark, clear, keys, heard, hang_up"),
        ('{"type": "flush"}', "expected audio, or an object of type mark, clear, keys, heard, hang_up"),
        ('{"type": "mark"}', "name"),
        ('{"type": "keys", "keys": "2x"}', '"X" is no key of a telephone'),
        ('{"type": "keys", "keys": "%s"}' % ("1😀" * 1_000), '"😀" is no key of a telephone'),
        ('{"type": "keys", "keys": "%s"}' % ("1" * 1_000_000), "600000 ms of audio ahead"),
        ('{"type": "%s"}' % ("😀" * 40), "expected audio, or an object of type"),
        ('{"type": "%s"}' % ("x" * 900_000), "expected audio, or an object of type"),
        ('{"type": "\\u001b[2J 4111 1111 1111 1111"}', "?[2J **** **** **** 1111"),
        (bytes(MESSAGE_BYTES_MAX + 2), "1048576 bytes"),
    ],
    ids=lambda value: str(value)[:40].encode("ascii", "replace").decode(),
)
def test_what_is_not_in_the_protocol_ends_the_call_and_says_what_is(message: bytes | str, told: str) -> None:
    async def client(one: Call) -> None:
        await one.client.send(message)
        with pytest.raises(ConnectionClosed):
            await one.told("never")

    end = ending(client)
    assert end.by == "fault"
    assert end.reason.startswith("the client broke the protocol of the audio socket: ")
    assert told in end.reason
    assert end.reason.isprintable()
    assert len(end.reason) < 400


def test_a_close_of_the_clients_own_is_no_broken_protocol_whatever_its_code() -> None:
    async def client(one: Call) -> None:
        await one.client.close(1009, "mine")

    assert ending(client) == Ending("fault", "the audio socket broke (code 1009)")


def test_text_that_is_none_is_named() -> None:
    async def client(one: Call) -> None:
        await one.client.send(b"\xff", text=True)
        with pytest.raises(ConnectionClosed):
            await one.told("never")

    assert "invalid start byte" in ending(client).reason


def test_ten_minutes_of_audio_ahead_of_the_caller_are_too_many() -> None:
    async def client(one: Call) -> None:
        with suppress(ConnectionClosed):
            for _ in range(60):
                await one.client.send(bytes(FORMAT.bytes_for_ms(10_100)))
        with pytest.raises(ConnectionClosed):
            await one.told("never")

    assert "600000 ms of audio ahead" in ending(client).reason


def test_a_client_that_does_not_read_is_dropped() -> None:
    """Marks come back at once where nothing is queued, so that as much waits for him as he likes."""

    async def client(one: Call) -> None:
        with suppress(ConnectionClosed):
            for _ in range(80):
                await one.tell(type="mark", name="x" * 900_000)

    end = ending(client)
    assert end.by == "fault"
    assert "bytes of the audio socket unread" in end.reason


def test_a_client_that_closes_has_hung_up_and_one_that_breaks_off_has_not() -> None:
    async def closes(one: Call) -> None:
        await one.told("start")

    async def breaks_off(one: Call) -> None:
        await one.told("start")
        one.client.transport.abort()

    assert ending(closes) == Ending("agent", "closed the audio socket")
    assert ending(breaks_off) == Ending("fault", "the audio socket broke (without a close)")


async def status_of(url: str) -> int:
    with pytest.raises(InvalidStatus) as refused:
        await connect(url)
    return refused.value.response.status_code


def test_it_is_for_one_client_at_one_path() -> None:
    async def client(one: Call) -> None:
        assert await status_of(one.socket.url) == 409
        assert await status_of(one.socket.url.replace("/audio/", "/other/")) == 404
        await one.tell(type="hang_up")

    assert ending(client).by == "agent"


def test_c151_c152_the_line_is_for_whoever_was_told_its_token_and_what_is_refused_takes_no_call() -> None:
    """Another on this machine cannot take the call; nor is it lost to what knocks and is no WebSocket."""

    async def taken() -> Ending:
        line = SimulatedLine(LineSettings(LineKind.PHONE, FORMAT), ScriptedCaller((), {}, FORMAT.rate_hz))
        async with AudioSocket(line, StreamedReplies(FORMAT.rate_hz)) as socket:
            root, token = socket.url.rsplit("/", 1)
            assert len(token) >= 20
            assert [await status_of(f"{root}{wrong}") for wrong in ("", "/", "/" + token[:-1], f"/{token}/")] == [
                *(404, 403, 403, 404)
            ]
            reader, writer = await asyncio.open_connection("127.0.0.1", int(root.split(":")[2].split("/")[0]))
            writer.write(f"GET /audio/{token} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert b" 426 " in await reader.readline()
            writer.close()
            assert not socket.connected.done()
            async with connect(socket.url) as connection:
                await connection.send('{"type":"hang_up"}')
                return await socket.ended

    assert asyncio.run(taken()) == Ending("agent", "hung up")

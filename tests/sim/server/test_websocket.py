"""The server's front door: who is let in, what is bounded, how it ends, and what it survives."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from tests.sim.server.driving import EXACT, Says, ear, speech
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from callwright.errors import UsageError
from callwright.sim.models import Clip, Reply
from callwright.sim.server import ServerSession
from callwright.sim.server import websocket as door
from callwright.sim.server.websocket import RealtimeServer
from callwright.testing.connections import EchoPeer

KEY = "sk-test"
BEARER = {"Authorization": f"Bearer {KEY}"}


def session() -> ServerSession:
    return ServerSession(Says((Reply((Clip("check-in-pool"),)),)), speech(), ear(), random.Random(1), EXACT)


def run(scene: Callable[[RealtimeServer], Awaitable[None]], server: Callable[[], RealtimeServer]) -> None:
    async def play() -> None:
        async with server() as open_server:
            await asyncio.wait_for(scene(open_server), 20)

    asyncio.run(play())


async def event(connection: ClientConnection) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(await connection.recv())
    return answer


async def until_closed(connection: ClientConnection) -> tuple[list[str], int | None, str | None]:
    """What came before the end, and the server's code and reason."""
    messages = [message async for message in _all(connection)]
    return messages, connection.close_code, connection.close_reason


async def _all(connection: ClientConnection) -> AsyncIterator[str]:
    with contextlib.suppress(ConnectionClosed):
        while True:
            yield str(await connection.recv())


async def first_error(connection: ClientConnection) -> str | None:
    """The message of the first error event; None if the connection ends before."""
    async for message in _all(connection):
        answer = json.loads(message)
        if answer["type"] == "error":
            return str(answer["error"]["message"])
    return None


async def no_session_left(server: RealtimeServer) -> None:
    for _ in range(500):
        if not server.sessions:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("a session is left open")


# --- who is let in


@pytest.mark.parametrize(
    ("path", "options", "status"),
    [
        ("/", {"additional_headers": BEARER}, 404),
        ("/v1/realtime", {"additional_headers": BEARER, "user_agent_header": None}, 403),
        ("/v1/realtime", {}, 401),
        ("/v1/realtime", {"additional_headers": {"Authorization": "Bearer sk-tesT"}}, 401),
        ("/v1/realtime", {"additional_headers": {"Authorization": KEY}}, 401),
    ],
)
def test_c151_the_handshake_is_refused_as_the_live_service_refuses_it(
    path: str, options: dict[str, Any], status: int
) -> None:
    """Before there is a session: it costs nothing."""

    made: list[ServerSession] = []

    def counted() -> ServerSession:
        made.append(session())
        return made[-1]

    async def scene(server: RealtimeServer) -> None:
        with pytest.raises(InvalidStatus) as refused:
            await connect(server.url.removesuffix("/v1/realtime") + path, **options)
        assert refused.value.response.status_code == status
        assert KEY.encode() not in refused.value.response.serialize()
        assert not server.sessions

    run(scene, lambda: RealtimeServer(counted, key=KEY))
    assert not made


def test_the_right_key_opens_a_session_with_or_without_a_query() -> None:
    async def scene(server: RealtimeServer) -> None:
        for query in ("", "?model=dialog-rsn-1"):
            async with connect(server.url + query, additional_headers=BEARER) as connection:
                assert (await event(connection))["type"] == "session.created"

    run(scene, lambda: RealtimeServer(session, key=KEY))


def test_a_session_over_the_limit_is_refused_with_429_until_one_is_closed() -> None:
    async def scene(server: RealtimeServer) -> None:
        async with connect(server.url), connect(server.url):
            answers = await asyncio.gather(*(connect(server.url) for _ in range(5)), return_exceptions=True)
            assert [answer.response.status_code for answer in answers] == [429] * 5  # type: ignore[union-attr]
        await no_session_left(server)
        async with connect(server.url):
            pass

    run(scene, lambda: RealtimeServer(session, sessions_max=2))


def test_a_port_that_is_taken_is_named() -> None:
    async def scene(server: RealtimeServer) -> None:
        port = int(server.url.split(":")[2].split("/")[0])
        with pytest.raises(UsageError, match=f"port {port}"):
            await RealtimeServer(session, port=port).__aenter__()

    run(scene, lambda: RealtimeServer(session))


# --- what is bounded


def test_c128_a_message_over_16_mib_ends_the_session_and_says_so() -> None:
    async def scene(server: RealtimeServer) -> None:
        connection = await connect(server.url, compression=None)
        await connection.send("x" * (16 * 1024 * 1024 + 1))
        _, code, reason = await until_closed(connection)
        assert code == 1009
        assert "16777216" in str(reason)
        await no_session_left(server)

    run(scene, lambda: RealtimeServer(session))


def test_a_client_that_does_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "UNREAD_BYTES_MAX", 100_000)

    async def scene(server: RealtimeServer) -> None:
        connection = await connect(server.url, max_queue=1, max_size=None)
        connection.transport.pause_reading()
        for _ in range(100):
            await connection.send("long 99000")
        await no_session_left(server)
        connection.transport.abort()
        await connection.wait_closed()

    run(scene, lambda: RealtimeServer(EchoPeer))


def test_no_compression_is_agreed_on() -> None:
    async def scene(server: RealtimeServer) -> None:
        async with connect(server.url, compression="deflate") as connection:
            assert connection.protocol.extensions == []

    run(scene, lambda: RealtimeServer(session))


# --- how it ends


async def _a_reply_begins(connection: ClientConnection) -> None:
    await connection.send('{"type": "response.create"}')
    while (await event(connection))["type"] != "response.output_audio.delta":
        pass


@pytest.mark.parametrize(("drain_ms", "status"), [(8000, "completed"), (0, None)])
def test_an_open_reply_is_finished_before_the_server_goes_away(drain_ms: int, status: str | None) -> None:
    async def play() -> None:
        async with RealtimeServer(session, drain_ms=drain_ms) as server:
            connection = await connect(server.url)
            await _a_reply_begins(connection)
        messages, code, _ = await until_closed(connection)
        assert code == 1001
        events = map(json.loads, messages)
        done = [each["response"]["status"] for each in events if each["type"] == "response.done"]
        assert done == ([] if status is None else [status])
        with pytest.raises(OSError, match="Connect call failed"):
            await connect(server.url)

    asyncio.run(play())


def test_the_sessions_own_end_is_told_with_its_code() -> None:
    async def scene(server: RealtimeServer) -> None:
        async with connect(server.url) as connection:
            await connection.send("close 4410 session_expired")
            assert await until_closed(connection) == (["hello"], 4410, "session_expired")

    run(scene, lambda: RealtimeServer(EchoPeer))


def test_a_session_that_fails_closes_with_1011_and_hurts_no_other(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(EchoPeer):
        def receive(self, data: bytes, now_ms: int) -> None:
            raise RuntimeError("a defect")

    peers = iter([Broken(), EchoPeer()])

    async def scene(server: RealtimeServer) -> None:
        async with connect(server.url) as broken, connect(server.url) as other:
            await broken.send("go")
            await broken.wait_closed()
            assert broken.close_code == 1011
            await other.send("still here")
            assert [await other.recv(), await other.recv()] == ["hello", "still here"]

    run(scene, lambda: RealtimeServer(lambda: next(peers)))
    assert "a session failed: RuntimeError at" in caplog.text
    assert "a defect" not in caplog.text  # it may quote what was said


def test_a_session_that_fails_by_itself_or_cannot_be_made_is_ended_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Late(EchoPeer):
        def next_deadline_ms(self) -> int | None:
            return 0

        def tick(self, now_ms: int) -> None:
            raise RuntimeError("a late defect")

    def none() -> EchoPeer:
        raise RuntimeError("nothing to serve")

    makers: Iterator[Callable[[], EchoPeer]] = iter([Late, none])

    async def scene(server: RealtimeServer) -> None:
        for _ in range(2):
            _, code, _ = await until_closed(await connect(server.url))
            assert code in (1006, 1011)
        await no_session_left(server)

    with caplog.at_level("DEBUG", "callwright"):
        run(scene, lambda: RealtimeServer(lambda: next(makers)()))
    assert "a late defect" in caplog.text
    assert "nothing to serve" in caplog.text


def test_one_line_for_each_session_tells_how_much_and_never_what(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def scene(server: RealtimeServer) -> None:
        async with connect(server.url, additional_headers=BEARER) as connection:
            await connection.send(
                '{"type":"session.update","session":{"type":"realtime","instructions":"secret words",'
                '"audio":{"input":{"format":{"type":"audio/pcmu"}}}}}'
            )
            while (await event(connection))["type"] != "session.updated":
                pass
            await connection.send('{"type":"input_audio_buffer.append","audio":"' + "/" * 4268 + '"}')
            await _a_reply_begins(connection)
        await no_session_left(server)

    run(scene, lambda: RealtimeServer(session, key=KEY))
    (line,) = [record.getMessage() for record in caplog.records if record.name == "callwright.access"]
    assert line.startswith("session=1 client=127.0.0.1:")
    assert "code=1000 in_ms=400 out_ms=" in line
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith("websockets.client")]
    assert not [said for said in ours if "secret words" in said or KEY in said]


# --- what it survives


def _truncated(whole: bytes, rng: random.Random) -> bytes:
    return whole[: rng.randrange(len(whole))]


def _nasty(rng: random.Random) -> list[bytes]:
    """Messages that no client should send."""
    update = b'{"type":"session.update","session":{"type":"realtime","instructions":"x","tools":[{"type":"function"}]}}'
    return [
        *(rng.randbytes(rng.randrange(2000)) for _ in range(40)),
        *(_truncated(update, rng) for _ in range(40)),
        b'{"type":"response.create","n":' + b"9" * 50_000 + b"}",
        b'{"type":"conversation.item.truncate","item_id":"a","content_index":0,"audio_end_ms":1e999}',
        b'{"type":"conversation.item.truncate","item_id":"a","content_index":-1,"audio_end_ms":' + b"9" * 400 + b"}",
        b'{"type":"session.update","session":' + b"[" * 100_000,
        b'{"type":"session.update","session":' + b'{"audio":' * 50_000 + b"1" + b"}" * 50_001,
        b'{"type":"input_audio_buffer.append","audio":"not base64!"}',
        b'{"type":"' + b"x" * 1_000_000 + b'"}',
        b"[]",
        b"null",
        b"\xff\xfe",
        b"",
    ]


def test_whatever_a_client_says_it_gets_an_error_event_or_a_close_and_the_server_lives() -> None:
    async def say(server: RealtimeServer, message: bytes) -> None:
        async with connect(server.url, compression=None, max_size=None) as connection:
            await connection.send(message, text=True)
            told = await first_error(connection)
            assert (told is None) is (connection.close_code is not None), message[:80]
            assert connection.close_code in (None, 1007, 1009), message[:80]
            assert told is None or 0 < len(told) < 1000, message[:80]

    async def scene(server: RealtimeServer) -> None:
        await asyncio.gather(*(say(server, message) for message in _nasty(random.Random(7))))
        await no_session_left(server)

    run(scene, lambda: RealtimeServer(session))


def test_bytes_that_are_no_websocket_leave_nothing_behind() -> None:
    upgrade = (
        b"GET /v1/realtime HTTP/1.1\r\nHost: x\r\nUser-Agent: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )

    async def knock(server: RealtimeServer, rng: random.Random) -> None:
        port = int(server.url.split(":")[2].split("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = rng.choice([b"", _truncated(upgrade, rng), upgrade, upgrade.replace(b"x", rng.randbytes(3))])
        writer.write(head + rng.randbytes(rng.randrange(1, 500)))
        if rng.random() < 0.5:
            writer.write_eof()
            await reader.read()
        writer.transport.abort()

    async def scene(server: RealtimeServer) -> None:
        rng = random.Random(11)
        await _settle(server)
        before = len(gc.get_objects())
        for _ in range(300):
            await knock(server, rng)
        await _settle(server)
        assert len(gc.get_objects()) - before < 3000
        async with connect(server.url) as connection:
            assert await connection.recv() == "hello"

    run(scene, lambda: RealtimeServer(EchoPeer, key=None))


async def _settle(server: RealtimeServer) -> None:
    """Let closed connections be forgotten."""
    await asyncio.sleep(0.3)
    await no_session_left(server)
    gc.collect()

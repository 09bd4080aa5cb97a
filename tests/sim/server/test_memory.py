"""A connection in memory: delays either way, order, and both ways of ending."""

import asyncio
import random
from dataclasses import dataclass, field

import pytest
from tests.sim.server.driving import EXACT, Says, ear, speech

from callwright.sim.server import MemoryConnector, ServerSession
from callwright.sim.vloop import run_virtual
from callwright.testing.scripted import ScriptedModel, after, close, emit, expect
from callwright.wire.client import ConversationItemRetrieve, ResponseCreate, SessionUpdate
from callwright.wire.codec import encode
from callwright.wire.objects import Session


@dataclass
class Sink:
    """Notes what arrives, and when."""

    messages: list[tuple[int, bytes]] = field(default_factory=list)
    closed: list[tuple[int, int, str]] = field(default_factory=list)

    def on_message(self, message: bytes | str) -> None:
        assert not self.closed
        self.messages.append((now_ms(), message if isinstance(message, bytes) else message.encode()))

    def on_closed(self, code: int, reason: str) -> None:
        assert not self.closed
        self.closed.append((now_ms(), code, reason))


def now_ms() -> int:
    return round(asyncio.get_running_loop().time() * 1000)


def session() -> ServerSession:
    return ServerSession(Says(), speech(), ear(), random.Random(1), EXACT)


UPDATE = encode(SessionUpdate(session=Session(instructions="Be kind.")))


def test_a_session_is_ready_234_ms_after_the_connection_and_a_reply_follows_a_request():
    async def call() -> Sink:
        sink = Sink()
        connection = await MemoryConnector(session).connect(sink)
        connection.send(UPDATE)
        await asyncio.sleep(1)
        connection.send(encode(ResponseCreate()))
        await asyncio.sleep(20)
        await connection.close()
        await connection.close()
        return sink

    sink = run_virtual(call())
    assert [at_ms for at_ms, data in sink.messages if b"session." in data] == [184, 234]
    assert sink.messages[2][0] == 1000
    assert b"response.done" in sink.messages[-1][1]
    assert sink.closed == [(21_000, 1000, "")]


def test_both_ways_take_their_time():
    async def call() -> Sink:
        sink = Sink()
        connection = await MemoryConnector(session, up_ms=30, down_ms=70).connect(sink)
        await asyncio.sleep(1)
        connection.send(encode(ConversationItemRetrieve(item_id="x")))
        await asyncio.sleep(1)
        return sink

    created, answer = run_virtual(call()).messages
    assert (created[0], answer[0]) == (184 + 70, 1000 + 100)


def test_a_close_of_the_server_comes_after_what_it_sent_before():
    async def call() -> Sink:
        sink = Sink()
        script = ScriptedModel(emit({"type": "error", "error": {}}), close(4408, "idle"))
        connection = await MemoryConnector(lambda: script, down_ms=40).connect(sink)
        await asyncio.sleep(1)
        connection.send(UPDATE)  # after the end: nothing
        await connection.close()
        script.finish()
        return sink

    sink = run_virtual(call())
    assert [at_ms for at_ms, _ in sink.messages] == [40]
    assert sink.closed == [(40, 4408, "idle")]


def test_what_a_client_sends_from_within_a_message_is_answered_in_order():
    """No message arrives while another is being handled."""

    @dataclass
    class Eager(Sink):
        connection: object = None
        depth: int = 0

        def on_message(self, message: bytes | str) -> None:
            self.depth += 1
            assert self.depth == 1
            super().on_message(message)
            if len(self.messages) < 5:
                self.connection.send(UPDATE)
            self.depth -= 1

    async def call() -> Eager:
        sink = Eager()
        greeting = emit({"type": "session.created"})
        steps = [step for _ in range(4) for step in (expect("session.update"), emit({"type": "session.updated"}))]
        script = ScriptedModel(after(10), greeting, *steps)
        sink.connection = await MemoryConnector(lambda: script).connect(sink)
        await asyncio.sleep(1)
        script.finish()
        return sink

    assert [at_ms for at_ms, _ in run_virtual(call()).messages] == [10] * 5


def test_every_session_that_was_made_can_be_looked_at():
    async def call() -> MemoryConnector:
        connector = MemoryConnector(session)
        for _ in range(2):
            await (await connector.connect(Sink())).close()
        return connector

    assert [each.closing for each in run_virtual(call()).sessions] == [(1000, "")] * 2


@pytest.mark.parametrize("up_ms", [0, 25])
def test_the_idle_limit_holds_on_a_connection(up_ms):
    async def call() -> Sink:
        sink = Sink()
        await MemoryConnector(session, up_ms=up_ms).connect(sink)
        await asyncio.sleep(400)
        return sink

    assert run_virtual(call()).closed == [(300_000, 4408, "nothing received for too long")]

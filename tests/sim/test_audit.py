"""Asking the server at the end whether it still has every tool call, by the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import as_file, files

import pytest

from callwright.core.ports import ModelConnection, ModelSink
from callwright.measure.figures import measure_call
from callwright.sim.agents import tools_of
from callwright.sim.audit import ANSWER_S, Audit
from callwright.sim.line import SimulatedLine
from callwright.sim.record import CallRecord
from callwright.sim.scenario import load_scenario
from callwright.sim.server import MemoryConnector, ServerSession
from callwright.sim.speech import Speech
from callwright.sim.vloop import run_virtual
from callwright.sim.world import OURS, Options, play, take_call
from callwright.wire.client import ConversationItemDelete, ConversationItemRetrieve
from callwright.wire.codec import decode_client, decode_server, encode
from callwright.wire.items import FunctionCallItem
from callwright.wire.objects import ErrorDetail
from callwright.wire.server import (
    ConversationItemRetrieved,
    ErrorEvent,
    ResponseFunctionCallArgumentsDone,
    ServerEvent,
)

with as_file(files("callwright.apps.refunds") / "scenarios" / "did-it-go-through.yaml") as path:
    CALL = load_scenario(path, tools_of)


def kept(record: CallRecord) -> tuple[float, ...]:
    return measure_call(record, Speech.load(CALL.speech)).values.get("tool_calls_kept", ())


@pytest.mark.parametrize("client", [OURS, "naive"])
def test_a_server_that_kept_every_tool_call_says_so_and_the_call_is_the_same(client: str) -> None:
    asked, usual = play(CALL, 1, client=client, options=Options(audit=True)), play(CALL, 1, client=client)
    assert asked.tool_calls_kept == (True,) * len(asked.tool_calls_kept or ())
    assert kept(asked) == (1.0,)
    assert (asked.trace, asked.history, asked.book) == (usual.trace, usual.history, usual.book)
    assert kept(usual) == ()


class Forgetting:
    """Connects as another does, and has the first tool call deleted once its output is there."""

    def __init__(self, connector: MemoryConnector) -> None:
        self._connector = connector
        self._sink: ModelSink
        self._connection: ModelConnection
        self._calls: list[str] = []

    async def connect(self, sink: ModelSink) -> ModelConnection:
        self._sink = sink
        self._connection = await self._connector.connect(self)
        return self._connection

    def on_message(self, message: bytes | str) -> None:
        event = decode_server(message)
        if isinstance(event, ResponseFunctionCallArgumentsDone):
            self._calls.append(event.item_id)
        elif len(self._calls) == 1 and b"function_call_output" in bytes(message):  # type: ignore[arg-type]
            self._calls.append("deleted")
            self._connection.send(encode(ConversationItemDelete(item_id=self._calls[0])))
        self._sink.on_message(message)

    def on_closed(self, code: int, reason: str) -> None:
        self._sink.on_closed(code, reason)


@asynccontextmanager
async def forgetting(next_session: Callable[[], ServerSession], _line: SimulatedLine) -> AsyncIterator[Forgetting]:
    yield Forgetting(MemoryConnector(next_session))


def test_a_tool_call_that_is_gone_from_history_is_found() -> None:
    record = run_virtual(take_call(CALL, 1, OURS, Options(audit=True), forgetting))
    assert record.tool_calls_kept == (False, True)
    assert kept(record) == (0.5,)


def test_a_server_that_answers_no_such_question_leaves_the_figure_out() -> None:
    record = play(CALL, 1, options=Options(audit=True, dialect="plain"))
    assert record.tool_calls_kept is None
    assert kept(record) == ()


def test_a_message_that_is_no_event_is_the_clients_alone() -> None:
    class Garbled:
        async def connect(self, sink: ModelSink) -> ModelConnection:
            asyncio.get_running_loop().call_soon(sink.on_message, b"{")
            return self

        def send(self, message: bytes) -> None: ...

        async def close(self) -> None: ...

    class Sink:
        def __init__(self) -> None:
            self.told: list[bytes | str] = []

        def on_message(self, message: bytes | str) -> None:
            self.told.append(message)

        def on_closed(self, code: int, reason: str) -> None: ...

    async def go() -> tuple[Sink, Audit]:
        audit, sink = Audit(Garbled()), Sink()
        connection = await audit.connect(sink)
        await asyncio.sleep(0.5)
        await connection.close()
        return sink, audit

    sink, audit = run_virtual(go())
    assert (sink.told, audit.kept) == ([b"{"], ())


class Sink:
    def on_message(self, message: bytes | str) -> None: ...

    def on_closed(self, code: int, reason: str) -> None: ...


class Peer:
    """A connection that lets each session make one tool call, and knows the items of its own session alone."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._sessions = 0
        self._sink: ModelSink

    async def connect(self, sink: ModelSink) -> ModelConnection:
        self._sessions += 1
        self._sink = sink
        for _ in range(2):  # which a server may tell twice
            self._say(
                ResponseFunctionCallArgumentsDone(
                    response_id="r", item_id=f"a{self._sessions}", output_index=0, call_id="c", arguments="{}"
                )
            )
        return self

    def send(self, message: bytes) -> None:
        event = decode_client(message)
        assert isinstance(event, ConversationItemRetrieve)
        assert event.event_id is not None
        self.asked.append(event.item_id)
        for event_id in ("audit_", "audit_7", "audit_x"):  # of which nobody knows
            self._say(ErrorEvent(error=ErrorDetail(code="item_retrieve_invalid_item_id", event_id=event_id)))
        self._say(ConversationItemRetrieved(item=FunctionCallItem(id=event.item_id, name="look_up")))

    async def close(self) -> None: ...

    def _say(self, event: ServerEvent) -> None:
        self._sink.on_message(encode(event))


def test_each_session_is_asked_for_its_own_tool_calls_once() -> None:
    """A later session has never heard of those of an earlier one, which are kept for all that."""

    async def go() -> Audit:
        audit = Audit(peer)
        for _ in range(2):
            await (await audit.connect(Sink())).close()
        return audit

    peer = Peer()
    audit = run_virtual(go())
    assert peer.asked == ["a1", "a2"]
    assert audit.kept == (True, True)


def test_answers_are_waited_for_no_longer_than_a_second() -> None:
    class Mute:
        def __init__(self) -> None:
            self.sent: list[bytes] = []
            self.closed_at: list[float] = []

        async def connect(self, sink: ModelSink) -> ModelConnection:
            done = ResponseFunctionCallArgumentsDone(
                response_id="r", item_id="a", output_index=0, call_id="c", arguments="{}"
            )
            asyncio.get_running_loop().call_soon(sink.on_message, encode(done))
            return self

        def send(self, message: bytes) -> None:
            self.sent.append(message)

        async def close(self) -> None:
            self.closed_at.append(asyncio.get_running_loop().time())

    async def go() -> tuple[float, Audit]:
        audit = Audit(mute := Mute())
        connection = await audit.connect(Sink())
        await asyncio.sleep(0.5)
        await connection.close()
        assert b"conversation.item.retrieve" in mute.sent[0]
        return mute.closed_at[0], audit

    closed_at, audit = run_virtual(go())
    assert closed_at == pytest.approx(0.5 + ANSWER_S)
    assert audit.kept is None

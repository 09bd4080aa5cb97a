"""From an agent's model to an open connection: address, key, transport."""

from __future__ import annotations

import asyncio
import socket
import time
import traceback
from email.utils import formatdate

import pytest

import callwright as cw
from callwright.audio.formats import PCM
from callwright.core.pickup import SESSION_PATIENCE_MS
from callwright.declare.agent import ModelChoice
from callwright.errors import ConnectionFailed, UsageError
from callwright.ids import ItemId, Ms
from callwright.runtime.connect import connect_to, connector
from callwright.runtime.endpoint import Endpoint, Inbox
from callwright.runtime.fast import PicowsConnector
from callwright.runtime.websocket import WebSocketConnection, WebSocketConnector
from callwright.sim.line import LineKind, LineSettings, SimulatedLine
from callwright.sim.server.websocket import RealtimeServer
from callwright.testing.connections import EchoPeer, Witness

KEY = "sk-marker-77"


class Nobody:
    """A caller who is never asked."""

    hung_up = False

    def step(self, now_ms: Ms, ear: PCM, item_id: ItemId | None) -> PCM:
        raise AssertionError("the line was opened")


def meet(choice: ModelChoice, key: str = KEY) -> Witness:
    """A witness of one connection to a local server, which takes only ``KEY``; ``{url}`` stands for its address."""

    async def play() -> Witness:
        witness = Witness()
        async with RealtimeServer(EchoPeer, key=KEY) as server:
            with pytest.MonkeyPatch.context() as environment:
                environment.setenv("POLY_API_KEY", key)
                environment.setenv("DIALOG_REALTIME_URL", server.url)
                witness.connection = await connect_to(choice).connect(witness)
            await witness.expect(lambda: witness.messages, "the server's greeting arrives")
            await witness.connection.close()
        return witness

    return asyncio.run(play())


def test_the_environment_names_key_and_address() -> None:
    assert meet(cw.polyai()).messages == [b"hello"]
    assert meet(cw.polyai(), f" {KEY}\n").messages == [b"hello"]


def test_the_agents_own_address_goes_before_the_environments() -> None:
    with pytest.raises(ConnectionFailed, match=r"ws://127\.0\.0\.1:1/v1/realtime: cannot connect"):
        meet(cw.polyai(url="ws://127.0.0.1:1/v1/realtime"))


def test_a_name_that_is_not_known_is_told_as_that_and_not_as_a_server_that_is_down() -> None:
    problem = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    told = str(Endpoint("wss://nowhere.test/v1/realtime").unreachable(problem))
    assert "no address is known for nowhere.test (Name or service not known); is the name right" in told


def test_a_connection_of_10_s_is_waited_for_and_a_silent_host_is_told_before_the_session_counts_as_late() -> None:
    """What a slow connection costs is the caller's oldest words, not the call."""
    assert 12_000 < Endpoint("wss://model.test/v1/realtime").open_timeout_ms < SESSION_PATIENCE_MS - 2_000


def test_a_refused_key_is_called_by_its_variable() -> None:
    with pytest.raises(ConnectionFailed, match="HTTP 401: POLY_API_KEY was refused") as refused:
        meet(cw.polyai(), "sk-marker-other")
    assert "sk-marker" not in str(refused.value)


@pytest.mark.parametrize("key", ["", "  "])
def test_a_missing_key_is_named_before_the_line_is_opened(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLY_API_KEY", key)
    agent = cw.Agent("desk", model=cw.polyai(), instructions="Be brief.")
    with pytest.raises(UsageError, match="POLY_API_KEY"):
        asyncio.run(cw.run(agent, SimulatedLine(LineSettings(LineKind.PHONE), Nobody())))


def test_c156_a_key_with_a_line_break_is_refused_without_being_told() -> None:
    with pytest.raises(UsageError) as refused:
        Endpoint("wss://model.example/v1/realtime", "sk-marker\r\nX-Evil: 1")
    assert "sk-marker" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://model.example/v1",
        "ws://",
        f"ws://model.example:port/?key={KEY}",
        f"ws://model.example:99999/?key={KEY}",
        f"ws://model.example:0/?key={KEY}",
        f"ws://[::1/?key={KEY}",
        f"ws://model..example/?key={KEY}",
        f"ws://{'m' * 64}.example/?key={KEY}",
        f"ws://model.example/v1#{KEY}",
        "model.example",
    ],
)
def test_c156_an_address_that_is_none_is_refused_without_its_query(url: str) -> None:
    """What is found out later would come from below, with the whole address in its words."""
    with pytest.raises(UsageError, match="ws:// or wss://") as refused:
        Endpoint(url)
    assert KEY not in "".join(traceback.format_exception(refused.value))


def test_c156_an_address_is_told_without_user_and_query() -> None:
    endpoint = Endpoint(f"wss://user:{KEY}@model.example:8443/v1/realtime?api_key={KEY}", KEY)
    assert endpoint.address == "wss://model.example:8443/v1/realtime"
    assert KEY not in f"{endpoint} {endpoint!r} {WebSocketConnector(endpoint)!r} {PicowsConnector(endpoint)!r}"


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [("ws://[::1]:8765/v1/realtime", "::1", 8765), ("wss://model.example/x", "model.example", 443)],
)
def test_host_and_port_come_from_the_address(url: str, host: str, port: int) -> None:
    endpoint = Endpoint(url)
    assert (endpoint.host, endpoint.port) == (host, port)


def test_tls_to_a_server_without_it_is_told() -> None:
    async def play(make: type[WebSocketConnector | PicowsConnector]) -> None:
        async with RealtimeServer(EchoPeer) as server:
            await make(Endpoint(server.url.replace("ws://", "wss://"), KEY)).connect(Witness())

    for make in (WebSocketConnector, PicowsConnector):
        with pytest.raises(ConnectionFailed, match="is TLS spoken there"):
            asyncio.run(play(make))


@pytest.mark.parametrize("make", [WebSocketConnector, PicowsConnector])
def test_c156_a_key_in_the_address_is_not_told_when_nobody_is_there(
    make: type[WebSocketConnector | PicowsConnector],
) -> None:
    """Some put it into the query or before the host; neither the error nor its traceback shows it."""
    with pytest.raises(ConnectionFailed, match="cannot connect") as failed:
        asyncio.run(make(Endpoint(f"ws://user:{KEY}@127.0.0.1:1/v1/realtime?api_key={KEY}")).connect(Witness()))
    assert KEY not in "".join(traceback.format_exception(failed.value))


def test_picows_is_taken_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint("ws://127.0.0.1:1/")
    assert isinstance(connector(endpoint), PicowsConnector)
    assert isinstance(connector(endpoint, transport="websockets"), WebSocketConnector)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert isinstance(connector(endpoint), WebSocketConnector)
    with pytest.raises(UsageError, match=r"callwright\[fast\]"):
        connector(endpoint, transport="picows")


def test_small_frames_leave_at_once() -> None:
    """TCP_NODELAY: a frame of 20 ms must not wait for the answer to the one before it."""

    async def play() -> int:
        async with RealtimeServer(EchoPeer) as server:
            connection = await WebSocketConnector(Endpoint(server.url)).connect(Witness())
            assert isinstance(connection, WebSocketConnection)
            raw: socket.socket = connection._transport.get_extra_info("socket")
            option = raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            await connection.close()
            return option

    assert asyncio.run(play())


def test_an_inbox_reports_nothing_before_it_is_open_and_nothing_after_the_end() -> None:
    witness = Witness()
    inbox = Inbox(witness, 10)
    inbox.part(b"early", is_last=True)
    inbox.end(4408, "idle")
    inbox.part(b"late", is_last=True)
    assert (witness.messages, witness.ends) == ([], [])
    inbox.open()
    inbox.part(b"later", is_last=True)
    inbox.end(1000, "")
    assert (witness.messages, witness.ends, witness.late) == ([b"early"], [(4408, "idle")], 0)


def test_a_key_that_the_server_says_again_is_heard_by_nobody() -> None:
    """As one may that refuses it; what is as short as a word stays in what the server says."""
    for key, heard in (("sk-0123456789abcdef", "***"), ("response", "response")):
        witness = Witness()
        inbox = Inbox(witness, 1_000, key)
        inbox.open()
        inbox.part(b'{"message": "wrong key: ' + key.encode()[:4], is_last=False)
        inbox.part(key.encode()[4:] + b'"}', is_last=True)
        inbox.end(4401, f"wrong key: {key}\x1b[2J")
        assert witness.messages == [f'{{"message": "wrong key: {heard}"}}'.encode()]
        assert witness.ends == [(4401, f"wrong key: {heard} [2J")]


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("120", 120.0),
        ("0", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        (None, None),
        ("", None),
        ("-5", None),
        ("soon", None),
        ("٣", None),
        ("9" * 5000, 999_999_999.0),
        ("Mon, 01 Jan 99999 00:00:00 GMT", None),
    ],
)
def test_when_to_come_again_is_told_in_seconds(told: str | None, seconds: float | None) -> None:
    assert Endpoint("ws://model.test/").refused(429, told).retry_after_s == seconds


def test_a_date_to_come_again_is_counted_from_now() -> None:
    told = formatdate(time.time() + 90, usegmt=True)
    assert Endpoint("ws://model.test/").refused(503, told).retry_after_s == pytest.approx(90, abs=30)

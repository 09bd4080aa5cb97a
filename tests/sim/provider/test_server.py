"""Rules of the provider behind a real socket: what is read, what is refused, and how a connection ends."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable

import pytest
from tests.sim.provider.driving import ONCE, body, dispatch

from callwright.errors import UsageError
from callwright.ids import Ms
from callwright.ledger.provider import Observed, Outcome
from callwright.providers.payments import Payments
from callwright.sim.provider import SHOP, Desk, Fault, ProviderSettings
from callwright.sim.provider.desk import Serving
from callwright.sim.provider.messages import Call
from callwright.sim.provider.server import BODY_BYTES_MAX, HEAD_BYTES_MAX, ProviderServer

REFUND = body()
HEAD = b"POST /refunds HTTP/1.1\r\nHost: payments\r\n"


def served(use: Callable[[ProviderServer], Awaitable[object]], **faults: Fault) -> object:
    named = {name.replace("_", "-"): fault for name, fault in faults.items()}
    settings = ProviderSettings(after_ms=1, settles_ms=50, lookup_ms=1, faults=named)

    async def main() -> object:
        async with asyncio.timeout(20), ProviderServer(Desk(settings, SHOP, 1)) as server:
            return await use(server)

    return asyncio.run(main())


def exchanged(*requests: bytes) -> bytes:
    """What comes back on one connection, until it is closed."""

    async def use(server: ProviderServer) -> bytes:
        host, port = server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"".join(requests))
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        return answer

    answer = served(use)
    assert isinstance(answer, bytes)
    return answer


def refund(headers: bytes = b"Idempotency-Key: K\r\n") -> bytes:
    return HEAD + headers + b"Content-Length: %d\r\n\r\n" % len(REFUND) + REFUND


def met(**faults: Fault) -> Observed:
    async def use(server: ProviderServer) -> Observed:
        async with Payments(server.url, ProviderSettings().traits, timeout_ms=200) as adapter:
            return await adapter.send(dispatch())

    seen = served(use, **faults)
    assert isinstance(seen, Observed)
    return seen


def test_one_connection_carries_many_requests():
    answers = exchanged(refund(), refund(), b"GET /book HTTP/1.1\r\n\r\n").split(b"HTTP/1.1 ")[1:]
    assert [answer.split(b" ")[0] for answer in answers] == [b"201", b"201", b"200"]
    assert b"Idempotency-Replayed: true" in answers[1]
    book = json.loads(answers[2].partition(b"\r\n\r\n")[2])
    assert [next(name for name in ("sent", "refund") if name in entry) for entry in book["entries"]][:3] == [
        "sent",
        "refund",
        "sent",
    ]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /book SPDY/1\r\n\r\n", 400),
        (b"GET /book HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (HEAD + b"Content-Length: -1\r\n\r\n", 400),
        (HEAD + b"Content-Length: x\r\n\r\n", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", 411),
        (HEAD + b"Content-Length: %d\r\n\r\n" % (BODY_BYTES_MAX + 1), 413),
        (HEAD + b"Content-Length: 1" + b"0" * 5_000 + b"\r\n\r\n", 413),
        (HEAD + b"X: " + b"x" * HEAD_BYTES_MAX + b"\r\n\r\n", 431),
        (refund(headers=b""), 400),
        (b"GET /refunds/re_1 HTTP/1.1\r\n\r\n", 404),
    ],
)
def test_what_cannot_be_served_is_refused(request_: bytes, status: int):
    assert exchanged(request_).startswith(b"HTTP/1.1 %d " % status)


def test_a_client_that_leaves_half_way_leaves_nothing():
    assert exchanged(refund()[:-5]) == b""


@pytest.mark.parametrize(
    ("fault", "reasons"),
    [("lost_request", ("timeout", "broken")), ("lost_reply", ("timeout", "broken")), ("refused", ("broken",))],
)
def test_a_fault_reaches_a_real_client(fault: str, reasons: tuple[str, ...]):
    seen = met(**{fault: ONCE})
    assert (seen.outcome, seen.reason in reasons) == (Outcome.UNKNOWN, True)


def test_without_faults_a_refund_is_accepted():
    assert met().outcome is Outcome.ACCEPTED


def test_a_port_that_is_taken_is_named():
    async def use(server: ProviderServer) -> None:
        port = int(server.url.rpartition(":")[2])
        with pytest.raises(UsageError, match=f"port {port}"):
            async with ProviderServer(Desk(ProviderSettings(), SHOP, 1), port=port):
                pass

    served(use)


def test_the_access_log_shows_no_key_and_no_content(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, "callwright.access"):
        exchanged(refund(b"Idempotency-Key: secret-key\r\n"), b"GET /refunds?key=secret-key HTTP/1.1\r\n\r\n")
    assert caplog.text.count("/refunds") == 2
    assert "secret-key" not in caplog.text
    assert "4242" not in caplog.text


class Watched(Desk):
    """A desk that says when its first request comes."""

    came: asyncio.Event

    def serve(self, call: Call, now_ms: Ms) -> Serving:
        self.came.set()
        return super().serve(call, now_ms)


def test_the_end_does_not_wait_for_a_client_that_is_kept_waiting():
    async def main() -> Observed:
        desk = Watched(ProviderSettings(faults={"late": ONCE}), SHOP, 1)
        desk.came = asyncio.Event()
        async with asyncio.timeout(20), ProviderServer(desk) as server:
            adapter = Payments(server.url, ProviderSettings().traits, timeout_ms=15_000)
            sending = asyncio.ensure_future(adapter.send(dispatch()))
            await desk.came.wait()
        seen = await sending
        await adapter.aclose()
        return seen

    assert asyncio.run(main()) == Observed(Outcome.UNKNOWN, reason="broken")

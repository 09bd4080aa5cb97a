"""Rules of the in-memory HTTP transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest

from callwright.errors import OutsideWorldError
from callwright.sim.http import MemoryTransport
from callwright.sim.vloop import VirtualLoop, run_virtual

Handler = Callable[[httpx.Request], Awaitable[httpx.Response]]


def now_ms() -> int:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.now_ms()


async def echo(request: httpx.Request) -> httpx.Response:
    return httpx.Response(201, json={"path": request.url.path, "sent": request.content.decode()}, headers={"x-id": "7"})


async def never(request: httpx.Request) -> httpx.Response:
    await asyncio.sleep(10**6)
    raise AssertionError


def client(handler: Handler, timeout: httpx.Timeout | float | None = 5.0, **ways_ms: int) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=MemoryTransport({"shop.test": handler}, **ways_ms), timeout=timeout)


def ends_at_ms(http: httpx.AsyncClient, error: type[Exception] | None) -> int:
    """When a request of ``http`` ends, with ``error`` or well."""

    async def main() -> int:
        async with http:
            if error is None:
                await http.get("https://shop.test/")
            else:
                with pytest.raises(error) as caught:
                    await http.get("https://shop.test/")
                assert not isinstance(caught.value, httpx.RequestError) or caught.value.request.url.host == "shop.test"
            return now_ms()

    return run_virtual(main())


def test_request_and_response_arrive_whole_after_their_ways():
    async def main() -> tuple[int, object, str, int]:
        async with client(echo, request_ms=30, reply_ms=12, connect_ms=8) as http:
            response = await http.post("https://shop.test/refunds", content=b"4417")
            return response.status_code, response.json(), response.headers["x-id"], now_ms()

    assert run_virtual(main()) == (201, {"path": "/refunds", "sent": "4417"}, "7", 50)


@pytest.mark.parametrize("limit_ms", [1, 250, 5000])
def test_a_handler_that_never_answers_hits_the_read_timeout_at_the_millisecond(limit_ms: int):
    assert ends_at_ms(client(never, limit_ms / 1000), httpx.ReadTimeout) == limit_ms


def test_a_connection_that_takes_too_long_hits_the_connect_timeout_at_the_millisecond():
    timeout = httpx.Timeout(5, connect=0.2)
    assert ends_at_ms(client(echo, timeout, connect_ms=300), httpx.ConnectTimeout) == 200


def test_connecting_does_not_count_against_reading():
    assert ends_at_ms(client(echo, 0.1, connect_ms=99, request_ms=49, reply_ms=50), None) == 198


@pytest.mark.parametrize(("limit_ms", "error"), [(99, httpx.ReadTimeout), (100, httpx.ReadTimeout), (101, None)])
def test_the_limit_itself_is_too_late(limit_ms: int, error: type[Exception] | None):
    assert ends_at_ms(client(echo, limit_ms / 1000, request_ms=50, reply_ms=50), error) == min(limit_ms, 100)


def test_without_a_timeout_the_client_waits():
    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(3600)
        return httpx.Response(204)

    assert ends_at_ms(client(slow, None), None) == 3_600_002


@pytest.mark.parametrize("error", [httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError, TimeoutError])
def test_what_a_handler_raises_reaches_the_client(error: type[Exception]):
    async def broken(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.01)
        raise error("broken")

    async def main() -> int:
        async with client(broken) as http:
            with pytest.raises(error, match="broken"):
                await http.get("https://shop.test/")
            return now_ms()

    assert run_virtual(main()) == 11


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_request_that_has_left_takes_effect_though_the_client_has_gone(cancelled: bool):
    """A timeout or a cancelled task is an unknown outcome, not a failure."""
    effects: list[int] = []

    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(2)
        effects.append(now_ms())
        return httpx.Response(200)

    async def main() -> None:
        async with client(slow, 1.0, request_ms=10) as http:
            asking = asyncio.create_task(http.post("https://shop.test/refunds"))
            if cancelled:
                await asyncio.sleep(0.005)
                asking.cancel()
            with pytest.raises((httpx.ReadTimeout, asyncio.CancelledError)):
                await asking
        await asyncio.sleep(5)

    run_virtual(main())
    assert effects == [2010]


def test_a_request_cancelled_before_the_connection_stands_has_no_effect():
    effects: list[str] = []

    async def note(request: httpx.Request) -> httpx.Response:
        effects.append(request.method)
        return httpx.Response(200)

    async def main() -> None:
        async with client(note, connect_ms=20) as http:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(http.post("https://shop.test/refunds"), 0.01)
        await asyncio.sleep(5)

    run_virtual(main())
    assert effects == []


def test_after_a_crash_a_finally_block_reaches_nobody():
    effects: list[str] = []

    async def note(request: httpx.Request) -> httpx.Response:
        effects.append(request.url.path)
        return httpx.Response(200)

    async def main(http: httpx.AsyncClient) -> None:
        try:
            await http.post("https://shop.test/begun")
            loop.abandon()
            await http.post("https://shop.test/after")
        finally:
            await http.post("https://shop.test/finally")

    loop = VirtualLoop()
    with pytest.raises(Exception, match="abandoned"):
        loop.run_until_complete(main(client(note)))
    loop.close()
    assert effects == ["/begun"]


def test_an_unknown_host_names_itself_and_what_to_add():
    async def main() -> None:
        async with client(echo) as http:
            await http.get("https://bank.test/cards")

    with pytest.raises(OutsideWorldError, match=r"GET https://bank.test/cards: .*'bank.test'.*hosts: shop.test.*add a"):
        run_virtual(main())


def test_the_read_timeout_holds_for_each_chunk_of_a_body():
    async def chunks() -> AsyncIterator[bytes]:
        for pause_ms in (90, 90, 200):
            await asyncio.sleep(pause_ms / 1000)
            yield b"x"

    async def dribble(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=chunks())

    async def main() -> tuple[bytes, int]:
        async with (
            client(dribble, 0.1, request_ms=0, reply_ms=0) as http,
            http.stream("GET", "https://shop.test/") as answer,
        ):
            body = answer.aiter_raw()
            got = await anext(body) + await anext(body)
            with pytest.raises(httpx.ReadTimeout):
                await anext(body)
            return got, now_ms()

    assert run_virtual(main()) == (b"xx", 280)


def test_requests_of_one_instant_arrive_in_order():
    arrived: list[str] = []

    async def note(request: httpx.Request) -> httpx.Response:
        arrived.append(request.url.path)
        return httpx.Response(200)

    async def main() -> None:
        async with client(note) as http:
            await asyncio.gather(*(http.get(f"https://shop.test/{n}") for n in range(20)))

    run_virtual(main())
    assert arrived == [f"/{n}" for n in range(20)]


def test_a_network_that_breaks_after_the_client_is_gone_is_nobody_s_error(caplog: pytest.LogCaptureFixture):
    async def breaks(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(10)
        raise httpx.ReadError("reset", request=request)

    async def main() -> None:
        async with client(breaks, timeout=1.0) as http:
            with pytest.raises(httpx.ReadTimeout):
                await http.get("https://shop.test/")
            await asyncio.sleep(20)

    run_virtual(main())
    assert "never retrieved" not in caplog.text

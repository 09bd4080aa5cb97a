"""The suite that any adapter over HTTP must pass: what it makes of answers, and of answers that never come.

The suite plays the network. It needs an adapter over a transport of its own, and a few bodies as the provider writes
them; it knows nothing else of that provider.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import httpx

from callwright.ledger.provider import Dispatch, Observed, Outcome, Provider

MakeAdapter = Callable[[httpx.AsyncBaseTransport], Provider]

_REASON: Final = re.compile(r"[a-z0-9_]{1,40}")
_BROKEN: Final = (
    (httpx.ConnectError, Outcome.NOT_SENT),
    (httpx.ConnectTimeout, Outcome.NOT_SENT),
    (httpx.PoolTimeout, Outcome.NOT_SENT),
    (httpx.ReadTimeout, Outcome.UNKNOWN),
    (httpx.WriteTimeout, Outcome.UNKNOWN),
    (httpx.ReadError, Outcome.UNKNOWN),
    (httpx.WriteError, Outcome.UNKNOWN),
    (httpx.RemoteProtocolError, Outcome.UNKNOWN),
)
_STATUSES: Final = (
    *((status, Outcome.NOT_APPLIED) for status in (400, 401, 402, 403, 404, 422)),
    *((status, Outcome.STILL_OPEN) for status in (409, 425, 429)),
    *((status, Outcome.UNKNOWN) for status in (301, 302, 307, 408, 418, 500, 502, 503, 504)),
)
_PATIENCE_S: Final = 5.0
_KEY_LENGTH_MIN: Final = 8
"""A shorter key could be found in a log by chance."""
_UNREADABLE: Final = (b"", b"null", b"[]", b"{}", b"<html>", b"\xff\xfe")


@dataclass(frozen=True, slots=True)
class ProviderSamples:
    """What a provider writes about the dispatch that the suite sends."""

    dispatch: Dispatch
    """Its key has eight characters at least."""
    answers: Mapping[Outcome, bytes]
    """Bodies of a successful answer to a send, by what they mean; at least ACCEPTED or APPLIED."""
    others: tuple[bytes, ...]
    """Bodies of a successful answer about something else: another amount, currency, card, reference."""


class _Network(httpx.AsyncBaseTransport):
    """Answers every request in the same way, and keeps them."""

    def __init__(self, answer: Callable[[httpx.Request], Awaitable[httpx.Response]]) -> None:
        self._answer = answer
        self.requests: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.requests.append(request)
        return await self._answer(request)


async def check_adapter(make: MakeAdapter, samples: ProviderSamples) -> None:
    """Check an adapter. Raises AssertionError that names what it makes of what.

    ``make`` builds one over the transport that it is given. It is called many times.
    """
    dispatch = samples.dispatch
    assert len(dispatch.key) >= _KEY_LENGTH_MIN, "samples: the key is too short to be looked for"
    assert samples.answers.keys() & {Outcome.ACCEPTED, Outcome.APPLIED}, "samples: no answer of success"
    for error, outcome in _BROKEN:
        what = error.__name__
        _expect(await make(_Network(_breaks(error))).send(dispatch), outcome, what)
        _expect(await make(_Network(_breaks(error))).look_up(dispatch), Outcome.UNKNOWN, f"{what}, looking up")
    for status, outcome in _STATUSES:
        _expect(await make(_answering(status, b"{}")).send(dispatch), outcome, f"{status} without a reason")
        _expect(await make(_answering(status, b"<html>")).send(dispatch), outcome, f"{status} with a page")
    for status in (500, 502, 503, 504, 429, 401, 403):
        _expect(await make(_answering(status, b"{}")).look_up(dispatch), Outcome.UNKNOWN, f"{status}, looking up")
    cut = [body[:length] for body in samples.answers.values() for length in (1, len(body) // 2, len(body) - 1)]
    for body in [*_UNREADABLE, *cut]:
        _expect(await make(_answering(200, body)).send(dispatch), Outcome.UNKNOWN, f"an answer cut to {body!r}")
    for outcome, body in samples.answers.items():
        seen = await make(_answering(200, body)).send(dispatch)
        _expect(seen, outcome, f"the sample of {outcome.name}")
        assert seen.reference, f"the sample of {outcome.name}: no reference"
    for body in samples.others:
        seen = await make(_answering(200, body)).send(dispatch)
        _expect(seen, Outcome.UNKNOWN, f"an answer about something else, {body!r}")
        assert seen.escalates, f"an answer about something else, {body!r}: nobody has to look"
    await _check_keys(make, samples)
    await _check_cancelled(make, dispatch)


async def _check_keys(make: MakeAdapter, samples: ProviderSamples) -> None:
    """The key goes out with every send, the same each time, once for each send; nothing of it is logged."""
    network = _answering(200, next(iter(samples.answers.values())))
    adapter = make(network)
    with _log() as lines:
        for _ in range(2):
            await adapter.send(samples.dispatch)
        await adapter.look_up(samples.dispatch)
    first, second = network.requests[:2]
    key = samples.dispatch.key
    carried = [key in (*request.headers.values(), *_texts(request)) for request in (first, second)]
    assert carried == [True, True], "a send: the dispatch's key is not sent"
    assert first.content == second.content, "two sends of one dispatch differ"
    assert not [line for line in lines if key in line], "the log shows a key"
    card = samples.dispatch.terms.card
    assert card is None or not [line for line in lines if card.token in line], "the log shows a card's token"


async def _check_cancelled(make: MakeAdapter, dispatch: Dispatch) -> None:
    """A send that is cancelled raises, and does not pretend to know."""
    asked = asyncio.Event()

    async def silence(_: httpx.Request) -> httpx.Response:
        asked.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody ends a silence")

    network = _Network(silence)
    sending = asyncio.ensure_future(make(network).send(dispatch))
    await asked.wait()
    sending.cancel()
    try:
        async with asyncio.timeout(_PATIENCE_S):
            [ended] = await asyncio.gather(sending, return_exceptions=True)
    except TimeoutError:
        raise AssertionError("a cancelled send goes on") from None
    assert isinstance(ended, asyncio.CancelledError), f"a cancelled send ended with {ended!r}"
    assert len(network.requests) == 1, "a cancelled send was repeated"


def _expect(seen: Observed, outcome: Outcome, what: str) -> None:
    assert seen.outcome is outcome, f"{what}: expected {outcome.name}, not {seen.outcome.name}"
    assert not seen.reason or _REASON.fullmatch(seen.reason), f"{what}: {seen.reason!r} is not a short code"


def _breaks(error: type[httpx.TransportError]) -> Callable[[httpx.Request], Awaitable[httpx.Response]]:
    async def answer(request: httpx.Request) -> httpx.Response:
        raise error("the suite breaks the connection here", request=request)

    return answer


def _answering(status: int, body: bytes) -> _Network:
    async def answer(_: httpx.Request) -> httpx.Response:
        headers = {"Location": "https://elsewhere.test/"} if 300 <= status < 400 else {}
        return httpx.Response(status, content=body, headers=headers)

    return _Network(answer)


def _texts(request: httpx.Request) -> Iterator[str]:
    """The values in a request's body, if it is a flat JSON object or a form."""
    yield from re.findall(r"[\w.:-]+", request.content.decode(errors="replace"))


@contextmanager
def _log() -> Iterator[list[str]]:
    """Everything that is logged meanwhile, down to DEBUG."""
    lines: list[str] = []

    class _Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    root, keep = logging.getLogger(), _Keep()
    level = root.level
    root.addHandler(keep)
    root.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        root.setLevel(level)
        root.removeHandler(keep)

"""Actions at a payment provider that speaks JSON over HTTP: it owns what each answer, and each missing one, means.

Each kind of action has its endpoint. Requests: ``POST /refunds`` under an ``Idempotency-Key``, ``GET /refunds`` and
``GET /refunds/ID``, and ``POST /refunds/ID/cancel``. What is made of a request that may have left:

```
connecting fails --> not sent          any other break, any timeout --> unknown
2xx              --> the effect's own status, if it is the one that was asked for; else unknown, for a person
4xx              --> by the table below; "already refunded", "already cancelled" are looked up
anything else    --> unknown
```

It decides nothing and repeats nothing. Keys travel in headers only, as HTTP clients log addresses; nothing is logged
here, and no text of the provider's is passed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import httpx
import msgspec

from callwright.errors import UsageError
from callwright.ledger.provider import Dispatch, Money, Observed, Outcome, Traits

if TYPE_CHECKING:
    from types import TracebackType

    from callwright.ids import Ms

KEY_HEADER: Final = "Idempotency-Key"
TIMEOUT_MS: Final[Ms] = 10_000
"""How long a connection, and then each part of an answer, is waited for."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one kind of action is asked for."""

    path: str
    pays: bool
    """Whether it names an amount, and where that goes."""


ENDPOINTS: Final[Mapping[str, Endpoint]] = {
    "refund": Endpoint("/refunds", pays=True),
    "cancellation": Endpoint("/cancellations", pays=False),
}
"""The kinds of action that can be asked for."""

NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
"""What is raised before the first byte of a request leaves."""

STATUSES: Final[Mapping[int, Outcome]] = {
    400: Outcome.NOT_APPLIED,
    401: Outcome.NOT_APPLIED,
    402: Outcome.NOT_APPLIED,
    403: Outcome.NOT_APPLIED,
    404: Outcome.NOT_APPLIED,
    409: Outcome.STILL_OPEN,
    422: Outcome.NOT_APPLIED,
    425: Outcome.STILL_OPEN,
    429: Outcome.STILL_OPEN,
}
"""What a refusal of a request means; any other status but success leaves it unknown."""

OUTCOMES: Final[Mapping[str, Outcome]] = {
    "pending": Outcome.ACCEPTED,
    "succeeded": Outcome.APPLIED,
    "failed": Outcome.NOT_APPLIED,
    "cancelled": Outcome.CANCELLED,
    "reversed": Outcome.REVERSED,
}
"""What the status of a refund or a cancellation means."""

ALREADY: Final = ("already_cancelled", "already_refunded")
"""Refusals that say that it was done: by this attempt, or by another one."""

CODES: Final = (
    *ALREADY,
    "declined",
    "destination_not_allowed",
    "key_of_other_parameters",
    "more_than_captured",
    "order_cancelled",
    "refunded",
    "shipped",
)
"""Reasons of the provider's that are passed on; any other is told by its HTTP status only."""


class _Metadata(msgspec.Struct):
    op: str = ""
    slot: str = ""


class _Effect(msgspec.Struct):
    id: str
    status: str
    version: int
    charge: str
    metadata: _Metadata
    amount: int | None = None
    currency: str = ""
    destination: str | None = None


class _Page(msgspec.Struct):
    data: list[_Effect]
    has_more: bool


class _Problem(msgspec.Struct):
    code: str


class _Failure(msgspec.Struct):
    error: _Problem


_Answer: TypeAlias = httpx.Response | Observed
"""What came back, or what is to be made of it that nothing did."""


def _checked(base_url: str) -> str:
    """An address that may be logged."""
    try:
        url = httpx.URL(base_url)
        usable = url.scheme in ("http", "https") and url.host and not (url.userinfo or url.query or url.fragment)
    except httpx.InvalidURL:
        usable = False
    if not usable:
        raise UsageError(
            "the address of a provider is http:// or https:// and a host, without user and query: HTTP clients log it;"
            " a key goes into api_key"
        )
    return base_url


class Payments:
    """An adapter for one account at such a provider.

    ``traits`` say what that provider promises. ``api_key`` goes out as a bearer token. ``timeout_ms`` bounds the wait
    for a connection and for each part of an answer. A ``client`` of your own is used as it is, and is yours to close;
    it must not follow redirects or repeat requests. Otherwise close the adapter by ``async with`` or `aclose`. Raises
    UsageError for an address that is none, or that could hold a key.
    """

    def __init__(
        self,
        base_url: str,
        traits: Traits,
        *,
        name: str = "payments",
        api_key: str | None = None,
        timeout_ms: Ms = TIMEOUT_MS,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self.name = name
        self.traits = traits
        self._base_url = _checked(base_url).rstrip("/")
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._timeout = httpx.Timeout(timeout_ms / 1000)
        self._client = client
        self._own: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Payments:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections that this adapter opened."""
        if self._own is not None:
            await self._own.aclose()
            self._own = None

    async def send(self, dispatch: Dispatch) -> Observed:
        """Ask for it, under the dispatch's key. What this provider does not do is refused, and nothing is sent."""
        terms, endpoint = dispatch.terms, ENDPOINTS.get(dispatch.kind)
        if endpoint is None or endpoint.pays is (terms.amount is None):
            return Observed(Outcome.NOT_APPLIED, reason="not_offered")
        asked: dict[str, object] = {
            "charge": terms.subject,
            "metadata": {"op": dispatch.op_id, "slot": dispatch.slot},
        }
        if terms.amount is not None:
            card = None if terms.card is None else terms.card.token
            asked |= {"amount": terms.amount.minor, "currency": terms.amount.currency, "destination": card}
        answer = await self._ask("POST", endpoint.path, dispatch, asked)
        if isinstance(answer, Observed):
            return answer
        code = _code(answer)
        if code in ALREADY:
            return await self._already(dispatch, code)
        if answer.is_success:
            return _seen(answer, dispatch)
        return Observed(STATUSES.get(answer.status_code, Outcome.UNKNOWN), reason=_reason(answer))

    async def look_up(self, dispatch: Dispatch) -> Observed:
        """Say what became of it: by the provider's id if that is known, else by the dispatch's key."""
        if dispatch.reference is None:
            return await self._by_key(dispatch)
        answer = await self._ask("GET", f"{_path(dispatch)}/{dispatch.reference}", dispatch)
        if isinstance(answer, Observed):
            return _unanswered(answer)
        if answer.is_success:
            return _seen(answer, dispatch)
        absent = answer.status_code == httpx.codes.NOT_FOUND
        return Observed(Outcome.ABSENT if absent else Outcome.UNKNOWN, reason=_reason(answer))

    async def cancel(self, dispatch: Dispatch) -> Observed:
        """Stop what was accepted. The dispatch must know the provider's id; else it is looked up only."""
        if dispatch.reference is None:
            return await self._by_key(dispatch)
        answer = await self._ask("POST", f"{_path(dispatch)}/{dispatch.reference}/cancel", dispatch)
        if isinstance(answer, Observed):
            return _unanswered(answer)
        if answer.is_success:
            return _seen(answer, dispatch)
        if answer.status_code == httpx.codes.CONFLICT:
            return await self.look_up(dispatch)
        return Observed(Outcome.UNKNOWN, reason=_reason(answer))

    async def _by_key(self, dispatch: Dispatch) -> Observed:
        answer = await self._ask("GET", _path(dispatch), dispatch)
        if isinstance(answer, Observed):
            return _unanswered(answer)
        if not answer.is_success:
            return Observed(Outcome.UNKNOWN, reason=_reason(answer))
        try:
            page = msgspec.json.decode(answer.content, type=_Page)
        except msgspec.DecodeError:
            return Observed(Outcome.UNKNOWN, reason="unreadable")
        if len(page.data) > 1:
            return Observed(Outcome.UNKNOWN, reason="several_effects", escalates=True)
        if page.data:
            return _classified(page.data[0], dispatch)
        return (
            Observed(Outcome.UNKNOWN, reason="short_page") if page.has_more else Observed(Outcome.ABSENT, reason="none")
        )

    async def _already(self, dispatch: Dispatch, code: str) -> Observed:
        """The provider says that it was done: by this attempt, or by something that a person has to look at."""
        found = await self._by_key(dispatch)
        if found.outcome in (Outcome.ABSENT, Outcome.UNKNOWN):
            return Observed(Outcome.UNKNOWN, reason=code, escalates=True)
        return found

    async def _ask(self, method: str, path: str, dispatch: Dispatch, asked: object = None) -> _Answer:
        """One request and its answer, or what a break on the way means."""
        client = self._client or self._opened()
        headers = {**self._headers, KEY_HEADER: dispatch.key}
        content = None
        if asked is not None:
            headers["Content-Type"] = "application/json"
            content = msgspec.json.encode(asked)
        url = self._base_url + path
        try:
            return await client.request(method, url, headers=headers, content=content, timeout=self._timeout)
        except NOT_SENT:
            return Observed(Outcome.NOT_SENT, reason="no_connection")
        except httpx.TimeoutException:
            return Observed(Outcome.UNKNOWN, reason="timeout")
        except httpx.RequestError:
            return Observed(Outcome.UNKNOWN, reason="broken")

    def _opened(self) -> httpx.AsyncClient:
        if self._own is None:
            self._own = httpx.AsyncClient()
        return self._own


def _unanswered(seen: Observed) -> Observed:
    """A look-up or cancel without an answer says nothing about the effect, sent or not."""
    return Observed(Outcome.UNKNOWN, reason=seen.reason)


def _path(dispatch: Dispatch) -> str:
    """Where effects of the dispatch's kind are found."""
    return ENDPOINTS[dispatch.kind].path


def _seen(answer: httpx.Response, dispatch: Dispatch) -> Observed:
    try:
        effect = msgspec.json.decode(answer.content, type=_Effect)
    except msgspec.DecodeError:
        return Observed(Outcome.UNKNOWN, reason="unreadable")
    return _classified(effect, dispatch)


def _classified(effect: _Effect, dispatch: Dispatch) -> Observed:
    """What an effect says of itself, if it is the one that was asked for."""
    outcome = OUTCOMES.get(effect.status)
    try:
        amount = None if effect.amount is None else Money(effect.amount, effect.currency)
    except ValueError:
        return Observed(Outcome.UNKNOWN, effect.id, reason="unreadable")
    difference = _difference(effect, amount, dispatch)
    if outcome is None or difference is not None:
        reason = difference or "other_status"
        return Observed(Outcome.UNKNOWN, effect.id, amount, effect.destination, effect.version, reason, escalates=True)
    return Observed(outcome, effect.id, amount, effect.destination, effect.version, effect.status)


def _difference(effect: _Effect, amount: Money | None, dispatch: Dispatch) -> str | None:
    """In what an effect is not the one that was asked for; None if it is."""
    terms = dispatch.terms
    if dispatch.reference not in (None, effect.id):
        return "other_reference"
    if effect.charge != terms.subject or effect.metadata.op != dispatch.op_id:
        return "other_operation"
    if amount != terms.amount:
        return "other_amount"
    if terms.card is not None and effect.destination != terms.card.token:
        return "other_destination"
    return None


def _code(answer: httpx.Response) -> str | None:
    """The provider's own code of a refusal; None for one without."""
    if answer.status_code not in STATUSES:
        return None
    try:
        return msgspec.json.decode(answer.content, type=_Failure).error.code
    except msgspec.DecodeError:
        return None


def _reason(answer: httpx.Response) -> str:
    code = _code(answer)
    return code if code in CODES else f"http_{answer.status_code}"

"""Refunds at a payment provider that speaks JSON over HTTP: it owns what each answer, and each missing one, means.

Requests: ``POST /refunds`` under an ``Idempotency-Key``, ``GET /refunds`` and ``GET /refunds/ID``, and
``POST /refunds/ID/cancel``. What is made of a request that may have left:

```
connecting fails --> not sent          any other break, any timeout --> unknown
2xx              --> the refund's own status, if it is the refund that was asked for; else unknown, for a person
4xx              --> by the table below; "already refunded" is looked up
anything else    --> unknown
```

It decides nothing and repeats nothing. Keys travel in headers only, as HTTP clients log addresses; nothing is logged
here, and no text of the provider's is passed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

import httpx
import msgspec

from callwright.ledger.provider import Dispatch, Money, Observed, Outcome, Traits

if TYPE_CHECKING:
    from types import TracebackType

    from callwright.ids import Ms

KEY_HEADER: Final = "Idempotency-Key"
TIMEOUT_MS: Final[Ms] = 10_000
"""How long a connection, and then each part of an answer, is waited for."""

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
"""What a refusal of a refund's request means; any other status but success leaves it unknown."""

REFUNDS: Final[Mapping[str, Outcome]] = {
    "pending": Outcome.ACCEPTED,
    "succeeded": Outcome.APPLIED,
    "failed": Outcome.NOT_APPLIED,
    "cancelled": Outcome.CANCELLED,
    "reversed": Outcome.REVERSED,
}
"""What the status of a refund means."""

CODES: Final = (
    "already_refunded",
    "declined",
    "destination_not_allowed",
    "key_of_other_parameters",
    "more_than_captured",
)
"""Reasons of the provider's that are passed on; any other is told by its HTTP status only."""


class _Metadata(msgspec.Struct):
    op: str = ""
    slot: str = ""


class _Refund(msgspec.Struct):
    id: str
    status: str
    version: int
    charge: str
    amount: int
    currency: str
    destination: str
    metadata: _Metadata


class _Page(msgspec.Struct):
    data: list[_Refund]
    has_more: bool


class _Problem(msgspec.Struct):
    code: str


class _Failure(msgspec.Struct):
    error: _Problem


_Answer: TypeAlias = httpx.Response | Observed
"""What came back, or what is to be made of it that nothing did."""


class Payments:
    """An adapter for one account at such a provider.

    ``traits`` say what that provider promises. ``api_key`` goes out as a bearer token. ``timeout_ms`` bounds the wait
    for a connection and for each part of an answer. A ``client`` of your own is used as it is, and is yours to close;
    it must not follow redirects or repeat requests. Otherwise close the adapter by ``async with`` or `aclose`.
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
        self._base_url = base_url.rstrip("/")
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
        """Ask for a refund, under the dispatch's key."""
        terms = dispatch.terms
        if dispatch.kind != "refund" or terms.amount is None:
            return Observed(Outcome.NOT_APPLIED, reason="not_a_refund")
        asked = {
            "charge": terms.subject,
            "amount": terms.amount.minor,
            "currency": terms.amount.currency,
            "destination": None if terms.card is None else terms.card.token,
            "metadata": {"op": dispatch.op_id, "slot": dispatch.slot},
        }
        answer = await self._ask("POST", "/refunds", dispatch, asked)
        if isinstance(answer, Observed):
            return answer
        if _code(answer) == "already_refunded":
            return await self._already(dispatch)
        if answer.is_success:
            return _refund(answer, dispatch)
        return Observed(STATUSES.get(answer.status_code, Outcome.UNKNOWN), reason=_reason(answer))

    async def look_up(self, dispatch: Dispatch) -> Observed:
        """Say what became of a refund: by the provider's id if that is known, else by the dispatch's key."""
        if dispatch.reference is None:
            return await self._by_key(dispatch)
        answer = await self._ask("GET", f"/refunds/{dispatch.reference}", dispatch)
        if isinstance(answer, Observed):
            return _unanswered(answer)
        if answer.is_success:
            return _refund(answer, dispatch)
        absent = answer.status_code == httpx.codes.NOT_FOUND
        return Observed(Outcome.ABSENT if absent else Outcome.UNKNOWN, reason=_reason(answer))

    async def cancel(self, dispatch: Dispatch) -> Observed:
        """Stop a refund that was accepted. The dispatch must know the provider's id; else it is looked up only."""
        if dispatch.reference is None:
            return await self._by_key(dispatch)
        answer = await self._ask("POST", f"/refunds/{dispatch.reference}/cancel", dispatch)
        if isinstance(answer, Observed):
            return _unanswered(answer)
        if answer.is_success:
            return _refund(answer, dispatch)
        if answer.status_code == httpx.codes.CONFLICT:
            return await self.look_up(dispatch)
        return Observed(Outcome.UNKNOWN, reason=_reason(answer))

    async def _by_key(self, dispatch: Dispatch) -> Observed:
        answer = await self._ask("GET", "/refunds", dispatch)
        if isinstance(answer, Observed):
            return _unanswered(answer)
        if not answer.is_success:
            return Observed(Outcome.UNKNOWN, reason=_reason(answer))
        try:
            page = msgspec.json.decode(answer.content, type=_Page)
        except msgspec.DecodeError:
            return Observed(Outcome.UNKNOWN, reason="unreadable")
        if len(page.data) > 1:
            return Observed(Outcome.UNKNOWN, reason="several_refunds", escalates=True)
        if page.data:
            return _classified(page.data[0], dispatch)
        return (
            Observed(Outcome.UNKNOWN, reason="short_page") if page.has_more else Observed(Outcome.ABSENT, reason="none")
        )

    async def _already(self, dispatch: Dispatch) -> Observed:
        """The provider says that it was done: by this attempt, or by something that a person has to look at."""
        found = await self._by_key(dispatch)
        if found.outcome in (Outcome.ABSENT, Outcome.UNKNOWN):
            return Observed(Outcome.UNKNOWN, reason="already_refunded", escalates=True)
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
    """A look-up or cancel without an answer says nothing about the refund, sent or not."""
    return Observed(Outcome.UNKNOWN, reason=seen.reason)


def _refund(answer: httpx.Response, dispatch: Dispatch) -> Observed:
    try:
        refund = msgspec.json.decode(answer.content, type=_Refund)
    except msgspec.DecodeError:
        return Observed(Outcome.UNKNOWN, reason="unreadable")
    return _classified(refund, dispatch)


def _classified(refund: _Refund, dispatch: Dispatch) -> Observed:
    """What a refund says of itself, if it is the one that was asked for."""
    outcome = REFUNDS.get(refund.status)
    try:
        amount = Money(refund.amount, refund.currency)
    except ValueError:
        return Observed(Outcome.UNKNOWN, refund.id, reason="unreadable")
    difference = _difference(refund, amount, dispatch)
    if outcome is None or difference is not None:
        reason = difference or "other_status"
        return Observed(Outcome.UNKNOWN, refund.id, amount, refund.destination, refund.version, reason, escalates=True)
    return Observed(outcome, refund.id, amount, refund.destination, refund.version, refund.status)


def _difference(refund: _Refund, amount: Money, dispatch: Dispatch) -> str | None:
    """In what a refund is not the one that was asked for; None if it is."""
    terms = dispatch.terms
    if dispatch.reference not in (None, refund.id):
        return "other_reference"
    if refund.charge != terms.subject or refund.metadata.op != dispatch.op_id:
        return "other_operation"
    if amount != terms.amount:
        return "other_amount"
    if terms.card is not None and refund.destination != terms.card.token:
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

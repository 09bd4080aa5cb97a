"""Checks an event against the types of the official ``openai`` package, for every test that makes one.

The official models tolerate what they do not know; here a field that they do not declare is a failure, unless it is
PolyAI's own (``poly_...``).
"""

from __future__ import annotations

import json
from typing import Any, get_args

from openai.types.realtime import (
    RealtimeClientEvent,
    RealtimeServerEvent,
    RealtimeSessionCreateRequest,
    RealtimeTranscriptionSessionCreateRequest,
)
from openai.types.realtime.response_item_reference import ResponseItemReference
from pydantic import BaseModel

from callwright.wire.codec import encode
from callwright.wire.items import WireStruct


def _by_type(union: Any) -> dict[str, type[BaseModel]]:
    """Return the models of an official union, by the wire type that each declares."""
    models = get_args(get_args(union)[0])
    return {get_args(model.model_fields["type"].annotation)[0]: model for model in models}


CLIENT_MODELS = _by_type(RealtimeClientEvent)
SERVER_MODELS = _by_type(RealtimeServerEvent)

_SERVER_ADDS = {"id", "object", "expires_at"}
"""Fields of a session that a server adds, which the official types declare elsewhere."""
_ALLOWED = {
    RealtimeSessionCreateRequest: _SERVER_ADDS,
    RealtimeTranscriptionSessionCreateRequest: _SERVER_ADDS,
}

Event = WireStruct | dict[str, Any] | bytes | str


def assert_official_client(event: Event) -> None:
    """Fail unless the official package would send this event; PolyAI's own events pass."""
    body = _body(event)
    if str(body.get("type")).startswith("poly."):
        return
    if body.get("type") == "response.create":
        body = _without_references(body)
    _assert_declared(CLIENT_MODELS, body)


def assert_official_server(event: Event) -> None:
    """Fail unless the official package reads this event in full."""
    _assert_declared(SERVER_MODELS, _body(event))


def _body(event: Event) -> dict[str, Any]:
    if isinstance(event, WireStruct):
        event = encode(event)  # type: ignore[arg-type]
    return event if isinstance(event, dict) else json.loads(event)


def _without_references(body: dict[str, Any]) -> dict[str, Any]:
    """Check and take out item references, which the official model of ``response.create`` leaves to another type."""
    response = body.get("response", {})
    items = response.get("input", [])
    for item in items:
        if item.get("type") == "item_reference":
            _assert_no_extras(ResponseItemReference.model_validate(item), "input")
    kept = [item for item in items if item.get("type") != "item_reference"]
    return body | {"response": response | {"input": kept}} if items else body


def _assert_declared(models: dict[str, type[BaseModel]], body: dict[str, Any]) -> None:
    kind = body.get("type")
    assert kind in models, f"the official package knows no event {kind!r} in this direction"
    _assert_no_extras(models[kind].model_validate(body), str(kind))


def _assert_no_extras(value: Any, path: str) -> None:
    if isinstance(value, BaseModel):
        allowed = _ALLOWED.get(type(value), set())
        extras = [name for name in value.model_extra or {} if name not in allowed and not name.startswith("poly_")]
        assert not extras, f"{path}: the official package declares no {', '.join(extras)}"
        for name in type(value).model_fields:
            _assert_no_extras(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, list):
        for index, element in enumerate(value):
            _assert_no_extras(element, f"{path}[{index}]")

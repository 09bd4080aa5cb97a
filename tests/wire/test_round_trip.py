"""Whatever is well typed survives the wire: every event with any values that its annotations allow."""

from __future__ import annotations

import functools
import typing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from callwright.wire.codec import CLIENT_EVENTS, SERVER_EVENTS, ClientDecoder, ServerDecoder, encode
from callwright.wire.items import UnknownItem, WireStruct
from callwright.wire.server import ConversationItemCreated

_WORD = st.text(alphabet='aé"\\\n\0😀', max_size=4)
_PLAIN: dict[typing.Any, st.SearchStrategy[typing.Any]] = {
    str: _WORD,
    bytes: st.binary(max_size=5),
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    object: _WORD | st.booleans() | st.none() | st.lists(st.integers(0, 9), max_size=2),
    type(None): st.none(),
    UnsetType: st.just(UNSET),
}


@functools.cache
def _values(annotation: typing.Any) -> st.SearchStrategy[typing.Any]:
    """Return what may stand where this annotation is."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if isinstance(annotation, type) and issubclass(annotation, WireStruct):
        return st.deferred(lambda: _structs(annotation))
    parts = typing.get_args(annotation)
    match typing.get_origin(annotation):
        case origin if origin is tuple:
            return st.lists(_values(parts[0]), max_size=2).map(tuple)
        case origin if origin is dict:
            return st.dictionaries(_WORD, _values(parts[1]), max_size=2)
        case origin if origin is typing.Literal:
            return st.sampled_from(parts)
    return st.one_of([_values(part) for part in parts if part is not UnknownItem])


def _structs(struct: type[WireStruct]) -> st.SearchStrategy[WireStruct]:
    return st.builds(struct, **{name: _values(kind) for name, kind in typing.get_type_hints(struct).items()})


_SERVER = [struct for struct in SERVER_EVENTS.values() if struct is not ConversationItemCreated]
_quick = settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow], deadline=None)


@pytest.mark.parametrize("struct", _SERVER, ids=lambda struct: struct.__name__)
@given(data=st.data())
@_quick
def test_any_server_event_survives(struct, data):
    _assert_survives(data.draw(_values(struct)), ServerDecoder())


@pytest.mark.parametrize("struct", CLIENT_EVENTS.values(), ids=lambda struct: struct.__name__)
@given(data=st.data())
@_quick
def test_any_client_event_survives(struct, data):
    _assert_survives(data.draw(_values(struct)), ClientDecoder())


def _assert_survives(event: WireStruct, decoder: ServerDecoder | ClientDecoder) -> None:
    assert decoder.decode(encode(event)) == event
    assert decoder.unknown_fields == {}
    assert encode(decoder.decode(encode(event))) == encode(event)

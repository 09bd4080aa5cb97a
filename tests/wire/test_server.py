"""Every server event: complete, official, and unchanged by a round trip."""

from __future__ import annotations

import pytest
from tests.wire.official import SERVER_MODELS, assert_official_server
from tests.wire.samples import SERVER

from callwright.wire import server
from callwright.wire.codec import SERVER_EVENTS, ServerDecoder, encode, wire_type


def test_every_event_of_the_official_package_has_a_struct_and_a_sample():
    assert len(SERVER_EVENTS) == 46
    assert sorted(SERVER_EVENTS) == sorted(SERVER_MODELS)
    assert {type(event) for event in SERVER} == set(SERVER_EVENTS.values())


def test_a_struct_is_named_after_its_wire_type():
    for kind, struct in SERVER_EVENTS.items():
        camel = "".join(word.capitalize() for word in kind.replace(".", "_").split("_"))
        assert struct.__name__ == ("ErrorEvent" if kind == "error" else camel)


@pytest.mark.parametrize("event", SERVER, ids=wire_type)
def test_full_event_is_official(event):
    assert_official_server(event)


@pytest.mark.parametrize("event", SERVER, ids=wire_type)
def test_round_trip_changes_nothing_and_passes_nothing_over(event):
    decoder = ServerDecoder()
    back = decoder.decode(encode(event))
    if isinstance(event, server.ConversationItemCreated):
        event = server.ConversationItemAdded(
            event_id=event.event_id, item=event.item, previous_item_id=event.previous_item_id
        )
    assert back == event
    assert decoder.unknown_types == decoder.unknown_fields == {}


def test_indexes_are_written_even_when_zero():
    """Official clients require content_index and output_index in every event that has them."""
    delta = server.ResponseOutputAudioDelta(response_id="r", item_id="i", delta=b"")
    assert encode(delta) == (
        b'{"type":"response.output_audio.delta","response_id":"r","item_id":"i",'
        b'"output_index":0,"content_index":0,"delta":""}'
    )

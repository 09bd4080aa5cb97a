"""Every client event: complete, official, unchanged by a round trip, and refused by a server when malformed."""

from __future__ import annotations

import pytest
from tests.wire.official import CLIENT_MODELS, assert_official_client
from tests.wire.samples import CLIENT

from callwright.errors import RemoteProtocolError
from callwright.wire import client
from callwright.wire.codec import CLIENT_EVENTS, ClientDecoder, decode_client, encode, wire_type
from callwright.wire.objects import Audio, AudioInput, Session

POLY = ["poly.output_audio.delta", "poly.output_audio.started", "poly.output_audio.stopped"]


def test_every_event_of_the_official_package_has_a_struct_and_a_sample():
    assert sorted(CLIENT_EVENTS) == sorted([*CLIENT_MODELS, *POLY])
    assert len(CLIENT_MODELS) == 11
    assert {type(event) for event in CLIENT} == set(CLIENT_EVENTS.values())


def test_a_struct_is_named_after_its_wire_type():
    for kind, struct in CLIENT_EVENTS.items():
        assert struct.__name__ == "".join(word.capitalize() for word in kind.replace(".", "_").split("_"))


@pytest.mark.parametrize("event", CLIENT, ids=wire_type)
def test_full_event_is_official(event):
    assert_official_client(event)


@pytest.mark.parametrize("event", CLIENT, ids=wire_type)
def test_round_trip_changes_nothing_and_passes_nothing_over(event):
    decoder = ClientDecoder()
    assert decoder.decode(encode(event)) == event
    assert decoder.unknown_types == decoder.unknown_fields == {}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ('"item_id":"i"', "content_index"),
        ('"item_id":"i","content_index":0', "audio_end_ms"),
        ('"content_index":0,"audio_end_ms":10', "item_id"),
        ('"item_id":"i","content_index":0,"audio_end_ms":10.5', "audio_end_ms"),
        ('"item_id":"i","content_index":0,"audio_end_ms":10.0', "audio_end_ms"),
        ('"item_id":"i","content_index":0,"audio_end_ms":"10"', "audio_end_ms"),
        ('"item_id":"i","content_index":null,"audio_end_ms":10', "content_index"),
    ],
)
def test_c010_malformed_truncate_is_refused_by_name(fields, named):
    """C010: a truncate with fields missing or a decimal position never passes for a good one."""
    with pytest.raises(RemoteProtocolError, match=rf"^conversation\.item\.truncate: .*{named}"):
        decode_client('{"type":"conversation.item.truncate",' + fields + "}")


def test_null_is_kept_apart_from_absent_where_it_means_something():
    """Turn detection is turned off by null and left alone by absence."""
    absent = Session(audio=Audio(input=AudioInput()))
    off = Session(audio=Audio(input=AudioInput(turn_detection=None)))
    assert b"turn_detection" not in encode(client.SessionUpdate(session=absent))
    assert b'"turn_detection":null' in encode(client.SessionUpdate(session=off))


def test_empty_is_kept_apart_from_absent():
    """Instructions and tools are cleared by empty ones."""
    text = encode(client.SessionUpdate(session=Session(instructions="", tools=())))
    assert text == b'{"type":"session.update","session":{"type":"realtime","instructions":"","tools":[]}}'


def test_events_are_frozen_and_keyword_only():
    event = client.ConversationItemDelete(item_id="i")
    with pytest.raises(AttributeError):
        event.item_id = "j"
    with pytest.raises(TypeError):
        client.ConversationItemDelete("i")

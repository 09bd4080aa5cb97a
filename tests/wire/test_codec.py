"""Tolerance and its limits: what is passed over is counted, what cannot be read is one kind of error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.samples import ASSISTANT, CLIENT, FRAME, SERVER

from callwright.errors import RemoteProtocolError
from callwright.wire import client, server
from callwright.wire.codec import (
    CLIENT_EVENTS,
    MAX_DEPTH,
    MAX_MESSAGE_BYTES,
    MAX_TALLY_NAMES,
    OTHERS,
    SERVER_EVENTS,
    ClientDecoder,
    ServerDecoder,
    decode_client,
    decode_server,
    encode,
    encode_append,
)
from callwright.wire.items import ContentPart, MessageItem, UnknownItem
from callwright.wire.objects import PCMU, Audio, AudioInput, Session, StatusDetails

# ---------------------------------------------------------------- tolerance


def test_unknown_event_type_is_counted_and_passed_over():
    decoder = ServerDecoder()
    text = '{"type":"response.output_video.delta","event_id":"e1","delta":[1,{"a":2}]}'
    assert decoder.decode(text) == server.Unknown(type="response.output_video.delta", event_id="e1")
    decoder.decode(text)
    assert decoder.unknown_types == {"response.output_video.delta": 2}


@pytest.mark.parametrize("event_id", ["", ',"event_id":null', ',"event_id":7'])
def test_unknown_event_needs_no_id(event_id):
    assert decode_server('{"type":"x"' + event_id + "}") == server.Unknown(type="x")


def test_unknown_fields_are_counted_by_path_at_every_depth():
    decoder = ServerDecoder()
    message = {
        "type": "response.done",
        "new": 1,
        "response": {
            "id": "r",
            "mood": "calm",
            "metadata": {"mine": "x"},
            "usage": {"total_tokens": 1, "watts": 2},
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "tone": "x"}]}],
        },
    }
    event = decoder.decode(json.dumps(message))
    assert isinstance(event, server.ResponseDone)
    assert event.response.metadata == {"mine": "x"}
    assert decoder.unknown_fields == {
        "response.done: new": 1,
        "response.done: response.mood": 1,
        "response.done: response.usage.watts": 1,
        "response.done: response.output.content.tone": 1,
    }


def test_unknown_fields_of_a_client_event_are_counted():
    """A server that refuses unsupported parameters finds them here."""
    decoder = ClientDecoder()
    decoder.decode('{"type":"session.update","session":{"type":"realtime","temperature":1}}')
    assert decoder.unknown_fields == {"session.update: session.temperature": 1}


def test_unknown_item_costs_the_item_and_not_the_event():
    decoder = ServerDecoder()
    message = {"type": "response.done", "response": {"id": "r", "output": [{"type": "reasoning", "id": "i"}]}}
    event = decoder.decode(json.dumps(message))
    assert isinstance(event, server.ResponseDone)
    assert event.response.output == (UnknownItem(id="i", kind="reasoning"),)
    assert decoder.unknown_types == {"item reasoning": 1}


def test_a_client_item_of_unknown_type_is_refused():
    with pytest.raises(RemoteProtocolError, match=r"conversation\.item\.create: .*reasoning"):
        decode_client('{"type":"conversation.item.create","item":{"type":"reasoning"}}')


def test_tallies_are_bounded():
    """A server that invents names can't make memory grow."""
    decoder = ServerDecoder()
    for number in range(MAX_TALLY_NAMES + 10):
        decoder.decode(f'{{"type":"new.{number}","event_id":"e"}}')
    decoder.decode('{"type":"' + "x" * 100_000 + '"}')
    assert len(decoder.unknown_types) == MAX_TALLY_NAMES + 1
    assert decoder.unknown_types[OTHERS] == 11
    assert max(map(len, decoder.unknown_types)) <= 200


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("response.audio.delta", server.ResponseOutputAudioDelta),
        ("response.audio.done", server.ResponseOutputAudioDone),
        ("response.audio_transcript.delta", server.ResponseOutputAudioTranscriptDelta),
        ("response.audio_transcript.done", server.ResponseOutputAudioTranscriptDone),
        ("response.text.delta", server.ResponseOutputTextDelta),
        ("response.text.done", server.ResponseOutputTextDone),
    ],
)
def test_older_event_names_become_the_present_events(old, new):
    decoder = ServerDecoder()
    wanted = next(event for event in SERVER if type(event) is new)
    message = json.loads(encode(wanted)) | {"type": old}
    assert decoder.decode(json.dumps(message)) == wanted
    assert decoder.unknown_types == {}


def test_conversation_item_created_reads_as_added():
    event = decode_server(
        '{"type":"conversation.item.created","item":{"type":"message","role":"user","content":[]},'
        '"previous_item_id":"root"}'
    )
    assert event == server.ConversationItemAdded(item=MessageItem(role="user"), previous_item_id="root")


@pytest.mark.parametrize(
    ("role", "old", "new"),
    [
        ("assistant", "text", "output_text"),
        ("assistant", "audio", "output_audio"),
        ("user", "text", "input_text"),
        ("user", "audio", "input_audio"),
        ("system", "text", "input_text"),
        ("assistant", "hologram", "hologram"),
    ],
)
def test_older_content_types_of_an_item_become_the_present_ones(role, old, new):
    item = {"type": "message", "role": role, "content": [{"type": old, "transcript": "a"}]}
    for message in (
        {"type": "conversation.item.done", "item": item},
        {"type": "response.done", "response": {"id": "r", "output": [item]}},
    ):
        event = decode_server(json.dumps(message))
        found = event.item if isinstance(event, server.ConversationItemDone) else event.response.output[0]
        assert found.content == (ContentPart(type=new, transcript="a"),)


def test_a_growing_part_keeps_its_own_spelling():
    """In response.content_part events, text and audio are the present spelling."""
    event = decode_server(
        '{"type":"response.content_part.added","response_id":"r","item_id":"i","part":{"type":"audio"}}'
    )
    assert event.part == ContentPart(type="audio")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("null", None),
        ('"turn_detected"', "turn_detected"),
        ('{"type":"cancelled","reason":"x"}', StatusDetails(type="cancelled", reason="x")),
    ],
)
def test_status_details_may_be_an_object_a_word_or_null(written, read):
    event = decode_server('{"type":"response.done","response":{"id":"r","status_details":' + written + "}}")
    assert event.response.status_details == read


def test_a_bare_stub_of_a_server_is_understood():
    """Left out by servers seen: event ids, indexes, the tool's name, the session's type, usage; null error ids."""
    decoder = ServerDecoder()
    read = [
        decoder.decode(text)
        for text in (
            '{"type":"session.created","session":{"model":"dialog-rsn-1"}}',
            '{"type":"response.output_audio.delta","response_id":"r","item_id":"i","delta":"AAA="}',
            '{"type":"response.function_call_arguments.done","response_id":"r","item_id":"i","call_id":"c"}',
            '{"type":"conversation.item.input_audio_transcription.completed","item_id":"i","transcript":"a"}',
            '{"type":"error","event_id":null,"error":{"message":"m","code":null,"param":null,"event_id":null}}',
        )
    ]
    assert read[0] == server.SessionCreated(session=Session(model="dialog-rsn-1"))
    assert read[1] == server.ResponseOutputAudioDelta(response_id="r", item_id="i", delta=b"\0\0")
    assert (read[2].name, read[2].arguments) == (None, "")
    assert (read[3].content_index, read[3].usage) == (0, None)
    assert (read[4].event_id, read[4].error.event_id) == (None, None)
    assert decoder.unknown_fields == {}


@pytest.mark.parametrize(
    ("written", "read"),
    [('{"type":"audio/pcmu"}', PCMU), ('"g711_ulaw"', "g711_ulaw"), ("null", None)],
)
def test_c116_the_format_in_force_can_be_read_however_it_is_spelled(written, read):
    """C116: a bridge compares the format in session.updated with the line's, so no spelling may hide it."""
    text = '{"type":"session.updated","session":{"type":"realtime","audio":{"input":{"format":' + written + "}}}}"
    assert decode_server(text).session.audio == Audio(input=AudioInput(format=read))


# ---------------------------------------------------------------- the hot paths


@given(st.binary(max_size=2000))
def test_fast_append_equals_the_general_encoder(frame):
    assert encode_append(frame) == encode(client.InputAudioBufferAppend(audio=frame))
    assert decode_client(encode_append(frame)) == client.InputAudioBufferAppend(audio=frame)


@given(st.permutations(["type", "event_id", "response_id", "item_id", "output_index", "content_index", "delta", "new"]))
def test_audio_is_the_same_whatever_the_order_of_its_fields(order):
    fields = json.loads(encode(next(event for event in SERVER if type(event) is server.ResponseOutputAudioDelta)))
    fields["new"] = "response.output_audio.delta"
    event = decode_server(json.dumps({name: fields[name] for name in order}))
    assert event == server.ResponseOutputAudioDelta(
        event_id="e", response_id="r", item_id="i", output_index=0, content_index=0, delta=FRAME
    )


def test_an_event_that_only_mentions_audio_is_not_taken_for_it():
    text = '{"event_id":"response.output_audio.delta","type":"input_audio_buffer.cleared"}'
    assert decode_server(text) == server.InputAudioBufferCleared(event_id="response.output_audio.delta")


def test_text_and_bytes_read_alike():
    for event in SERVER[4:]:
        assert decode_server(encode(event).decode()) == decode_server(encode(event))
    for sent in CLIENT:
        assert decode_client(encode(sent).decode()) == sent


# ---------------------------------------------------------------- limits


def _retrieved(size: int) -> bytes:
    """Return a retrieved item of exactly ``size`` bytes of JSON, nearly all of it audio."""
    empty = encode(server.ConversationItemRetrieved(item=ASSISTANT))
    spare = size - len(empty)
    part = ContentPart(type="output_audio", audio=b"\0" * (spare // 4 * 3 - 60))
    text = encode(server.ConversationItemRetrieved(item=MessageItem(role="assistant", content=(part,))))
    return text + b" " * (size - len(text))


@pytest.mark.parametrize("size", [900_000, 1_100_000, 3_500_000, MAX_MESSAGE_BYTES])
def test_c128_large_messages_are_read(size):
    """C128: above the 1 MiB at which sockets close by default."""
    event = decode_server(_retrieved(size))
    assert isinstance(event, server.ConversationItemRetrieved)


@pytest.mark.parametrize("size", [MAX_MESSAGE_BYTES + 1, 20_000_000])
def test_c128_a_message_beyond_the_limit_is_a_named_error(size):
    for decode in (decode_server, decode_client):
        with pytest.raises(RemoteProtocolError, match=rf"{size} bytes.*at most {MAX_MESSAGE_BYTES}"):
            decode(b" " * size)


def test_c128_text_is_measured_in_bytes():
    with pytest.raises(RemoteProtocolError, match="at most"):
        decode_server("é" * (MAX_MESSAGE_BYTES // 2 + 1))


DEEP = 200_000
BROKEN = {
    "nothing": "",
    "text": "hello",
    "array": "[]",
    "number": "1",
    "null": "null",
    "no type": "{}",
    "type not text": '{"type":7}',
    "type null": '{"type":null}',
    "truncated": '{"type":"response.done","response":{"id":"r"',
    "trailing": '{"type":"error"}}',
    "not UTF-8": b'{"type":"\xff\xfe"}',
    "half a surrogate": '{"type":"\ud800"}',
    "escaped half a surrogate": '{"type":"\\ud800"}',
    "deep arrays": "[" * DEEP,
    "deep objects": '{"a":' * DEEP,
    "deep in an unknown field": '{"type":"response.output_audio.delta","x":' + "[" * DEEP + "]" * DEEP + "}",
    "deep in an unknown event": '{"type":"x","x":' + "[" * DEEP + "]" * DEEP + "}",
    "long number": '{"type":"input_audio_buffer.speech_started","item_id":"i","audio_start_ms":' + "9" * 5000 + "}",
    "large exponent": '{"type":"input_audio_buffer.speech_started","item_id":"i","audio_start_ms":1e999}',
    "not base64": '{"type":"response.output_audio.delta","response_id":"r","item_id":"i","delta":"*"}',
    "audio as numbers": '{"type":"response.output_audio.delta","response_id":"r","item_id":"i","delta":[1]}',
    "no item": '{"type":"conversation.item.done","item":null}',
    "item without type": '{"type":"conversation.item.done","item":{"id":"i"}}',
    "item of no type": '{"type":"conversation.item.done","item":{"type":null}}',
    "session as text": '{"type":"session.updated","session":"x"}',
    "content as text": '{"type":"conversation.item.done","item":{"type":"message","role":"user","content":"a"}}',
    "content of numbers": '{"type":"conversation.item.done","item":{"type":"message","role":"user","content":[1]}}',
    "long role": '{"type":"conversation.item.done","item":{"type":"message","role":"' + "x" * 100_000 + '"}}',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_read_is_one_error_of_bounded_length(text):
    for decode in (decode_server, decode_client):
        with pytest.raises(RemoteProtocolError) as caught:
            decode(text)
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("beside", [0, 5 * MAX_DEPTH])
def test_nesting_is_bounded_by_a_figure_and_not_by_the_stack(beside):
    """Deeper than what is accepted is refused wherever it sits, also where it would only be passed over."""
    wide = "[" + ",".join(["{}"] * beside) + "]"

    def tool(depth: int) -> str:
        schema = "[" * depth + "]" * depth
        return '{"type":"session.update","session":{"tools":[{"wide":' + wide + ',"deep":' + schema + "}]}}"

    assert decode_client(tool(MAX_DEPTH - 4))
    for depth in (MAX_DEPTH - 3, 900, DEEP):
        with pytest.raises(RemoteProtocolError, match=rf"nested too deeply.*{MAX_DEPTH}"):
            decode_client(tool(depth))


def test_the_error_names_the_event_the_field_and_what_was_expected():
    with pytest.raises(RemoteProtocolError, match=r"^response\.done: Expected `str`, got `int` - at .*response\.id"):
        decode_server('{"type":"response.done","response":{"id":7}}')


def test_the_error_names_the_place_in_broken_json():
    with pytest.raises(RemoteProtocolError, match=r"20 bytes is not JSON: .*byte 17"):
        decode_server('{"type":"error", no}')


@pytest.mark.parametrize("audio", ['"*"', "7", "null", '"AAAA","event_id":7'])
def test_a_malformed_append_is_refused_by_name(audio):
    with pytest.raises(RemoteProtocolError, match=r"^input_audio_buffer\.append: .*(audio|event_id)"):
        decode_client('{"type":"input_audio_buffer.append","audio":' + audio + "}")


def test_an_unknown_client_event_is_refused():
    with pytest.raises(RemoteProtocolError, match=r"^session\.begin: no such client event"):
        decode_client('{"type":"session.begin"}')


@given(st.binary(max_size=300) | st.text(max_size=300))
def test_fuzz_random_input(data):
    _read_or_refuse(data)


@given(st.sampled_from([*SERVER, *CLIENT]), st.data())
def test_fuzz_damaged_events(event, data):
    text = bytearray(encode(event))
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    _read_or_refuse(bytes(text[: data.draw(st.integers(0, len(text)))]))
    _read_or_refuse(bytes(text))


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("message"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "id", "role", "content", "output", "item"]) | st.text(), inner)
    ),
    max_leaves=8,
)


@given(st.sampled_from([*SERVER_EVENTS, *CLIENT_EVENTS]), st.data())
def test_fuzz_fields_of_the_wrong_kind(kind, data):
    struct = SERVER_EVENTS.get(kind) or CLIENT_EVENTS[kind]
    names = st.sampled_from(struct.__struct_encode_fields__)
    _read_or_refuse(json.dumps({"type": kind} | data.draw(st.dictionaries(names, _json))))


def _read_or_refuse(data: bytes | str) -> None:
    for decode in (decode_server, decode_client):
        try:
            decode(data)
        except RemoteProtocolError as error:
            assert len(str(error)) < 400  # noqa: PT017


SPOKEN = '"type":"response.output_audio.delta","response_id":"r","item_id":"i"'


@pytest.mark.parametrize(
    ("text", "audio"),
    [
        (f'{{{SPOKEN},"delta":"AAAA"}}', bytes(3)),
        (f'{{"delta" : "AAAA",{SPOKEN}}}', bytes(3)),
        (f'{{{SPOKEN},"delta":"\\u0041AAA"}}', bytes(3)),
        (f'{{{SPOKEN},"delta":""}}', b""),
        (f'{{{SPOKEN},"new":{{"delta":"////"}},"delta":"AAAA"}}', bytes(3)),
        (f'{{{SPOKEN},"new":{{"delta":"////"}},"delta":""}}', b""),
        (f'{{{SPOKEN},"new":"\\"delta\\":\\"","delta":"AAAA"}}', bytes(3)),
    ],
)
def test_audio_is_found_wherever_it_stands_and_nothing_else_is_taken_for_it(text, audio):
    assert decode_server(text) == server.ResponseOutputAudioDelta(response_id="r", item_id="i", delta=audio)


@pytest.mark.parametrize(
    "delta", ["5", "null", '"AAA"', '"A"', '"AAAA', '["AAAA"]', '"AA A"', '"é"', "", '{"delta":"A"}']
)
@pytest.mark.parametrize("behind", ["", ',"new":"AAAA"'])
def test_what_is_no_audio_is_refused_as_any_wrong_field_is(delta, behind):
    with pytest.raises(RemoteProtocolError):
        decode_server(f'{{{SPOKEN},"delta":{delta}{behind}}}')

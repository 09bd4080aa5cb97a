"""Opening, configuring, limits, errors, and what holds whatever a client sends."""

import string
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.server.driving import EXACT, Client, Says, speech

from callwright.audio.formats import PCM16_24K, PCMU_8K
from callwright.errors import UsageError
from callwright.sim.models import Clip, Reply, ToolRequest
from callwright.sim.server import ServerSettings, list_settings
from callwright.sim.speech import PER_MS
from callwright.wire.codec import encode_append

# --- opening


def test_a_session_is_ready_234_ms_after_the_connection():
    client = Client(is_ready=False)
    client.wait(400)
    created = client.the("session.created")
    assert created.at_ms == 184
    detection = {"type": "server_vad", "create_response": True}
    assert created["session"]["audio"]["input"] == {
        "format": {"type": "audio/pcm", "rate": 24000},
        "turn_detection": detection,
    }
    client = Client(is_ready=False)
    client.advance(184)
    client.configure(instructions="Be kind.")
    client.advance(50)
    updated = client.the("session.updated")
    assert updated.at_ms == 234
    assert updated["session"]["instructions"] == "Be kind."
    assert updated["session"]["audio"]["input"] == {"format": {"type": "audio/pcmu"}, "turn_detection": detection}


def test_c046_readiness_is_a_setting():
    client = Client(is_ready=False, settings=replace(EXACT, ready_after_ms=(2830, 2830)))
    client.configure()
    client.advance(2829)
    assert not client.of("session.updated")
    client.advance(1)
    assert client.kinds() == ["session.created", "session.updated"]


def test_only_what_an_update_names_changes():
    tool = {"type": "function", "name": "wait", "parameters": {"type": "object", "properties": {}}}
    client = Client(is_ready=False)
    client.configure(instructions="One.", tools=[tool])
    client.send("session.update", session={"type": "realtime", "instructions": "Two."})
    client.send("session.update", session={"tools": []})  # the type may be left out
    client.wait(300)
    last = client.of("session.updated")[-1]["session"]
    assert (last["instructions"], last["tools"]) == ("Two.", [])
    assert last["audio"]["input"]["format"] == {"type": "audio/pcmu"}


@pytest.mark.parametrize(
    ("session", "field"),
    [
        (
            {"audio": {"input": {"turn_detection": {"type": "server_vad", "threshold": 0.7}}}},
            "turn_detection.threshold",
        ),
        (
            {"audio": {"input": {"turn_detection": {"type": "server_vad", "interrupt_response": True}}}},
            "turn_detection.interrupt_response",
        ),
        ({"audio": {"input": {"noise_reduction": {"type": "near_field"}}}}, "input.noise_reduction"),
        ({"audio": {"input": {"turn_detection": None}}}, "input.turn_detection"),
        ({"audio": {"output": {"voice": "marin"}}}, "output.voice"),
        ({"reasoning": {"effort": "low"}}, "reasoning"),
        ({"temperature": 0.5}, "session.temperature"),
        ({"audio": {"input": {"gain": 2}}}, "input.gain"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_c105_an_update_with_an_unsupported_field_applies_nothing(session, field):
    client = Client(is_ready=False)
    client.send("session.update", event_id="u", session={"type": "realtime", "instructions": "Lost.", **session})
    client.advance(300)
    assert (client.error()["code"], client.error()["event_id"]) == ("unsupported_parameter", "u")
    assert field in client.error()["param"]
    client.configure()
    client.wait(300)
    assert client.of("session.updated")[-1]["session"]["instructions"] == ""
    assert len(client.of("session.updated")) == 1


@pytest.mark.parametrize(
    "session",
    [
        {"audio": {"input": {"format": {"type": "audio/opus"}}}},
        {"audio": {"input": {"format": {"type": "audio/pcma"}}}},
        {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 11_025}}}},
        {"audio": {"input": {"turn_detection": {"type": "semantic_vad"}}}},
        {"output_modalities": ["text", "audio"]},
        {"tools": [{"type": "function"}]},
        {"type": "transcription"},
    ],
    ids=str,
)
def test_c116_an_update_with_a_wrong_value_applies_nothing(session):
    client = Client(is_ready=False)
    client.send("session.update", session={"instructions": "Lost.", **session})
    client.advance(300)
    assert client.error()["code"] == "invalid_value"
    client.wait(400)
    assert not client.of("session.updated")


def test_c117_a_later_update_keeps_the_format():
    client = Client()
    client.send("session.update", session={"instructions": "Handed over."})
    client.say("ask-parking")
    done = client.until("conversation.item.input_audio_transcription.completed")
    assert done["transcript"] == speech()["ask-parking"].text


# --- limits


def test_five_minutes_of_nothing_close_with_4408():
    client = Client()
    client.advance(299_000)
    client.frame(PCMU_8K.silence(20))
    client.advance(299_999)
    assert client.server.closing is None
    client.advance(1)
    assert client.server.closing == (4408, "nothing received for too long")
    assert client.server.next_deadline_ms() is None
    client.send("response.create")
    assert not client.of("response.created")


def test_c107_a_session_ends_after_an_hour_with_4410():
    client = Client(settings=replace(EXACT, longest_session_ms=60_000))
    client.wait(61_000)
    assert client.server.closing == (4410, "session_expired")
    assert client.error()["code"] == "session_expired"
    assert ServerSettings().longest_session_ms == 3_600_000


def test_a_client_that_leaves_ends_its_reply_with_what_was_streamed():
    client = Client()
    client.send("response.create")
    client.until("response.output_audio.delta")
    client.wait(1000)
    client.server.disconnect(client.now_ms)
    assert client.server.closing == (1000, "")
    (spoken,) = client.server.spoken
    assert spoken.streamed_ms < spoken.audio_ms
    assert client.server.history[0].is_cut


# --- the caller's buffer


def test_c130_a_commit_without_audio_is_an_error_and_no_more():
    client = Client()
    client.send("input_audio_buffer.commit", event_id="c")
    assert (client.error()["code"], client.error()["event_id"]) == ("input_audio_buffer_commit_empty", "c")
    client.say("ask-parking")
    assert client.until("response.done")


def test_a_commit_ends_the_turn_and_no_reply_follows():
    client = Client()
    client.say("ask-parking")
    client.send("input_audio_buffer.commit")
    committed = client.the("input_audio_buffer.committed")
    assert committed["item_id"] == client.the("input_audio_buffer.speech_started")["item_id"]
    client.wait(2000)
    assert not client.of("response.created")
    assert client.server.history[0].text == speech()["ask-parking"].text


def test_clear_throws_the_turn_away():
    client = Client()
    client.say("ask-parking")
    client.send("input_audio_buffer.clear")
    client.wait(2000)
    assert client.the("input_audio_buffer.cleared")
    assert client.server.history == ()
    assert not client.of("response.created", "input_audio_buffer.speech_stopped")


def test_what_is_cleared_before_it_is_told_is_never_told():
    """A turn that was decided and not told yet leaves nothing behind: the next request is answered at once."""
    client = Client(settings=replace(EXACT, start_told_ms=(400, 400)))
    client.play(speech()["ask-parking"].pcm[: 300 * PER_MS])
    client.send("input_audio_buffer.clear")
    client.wait(2000)
    assert not client.of("input_audio_buffer.speech_started")
    client.send("response.create")
    assert client.the("response.created")


def test_a_commit_comes_after_the_beginning_that_was_not_told_yet():
    client = Client(settings=replace(EXACT, start_told_ms=(400, 400)))
    client.play(speech()["ask-parking"].pcm[: 300 * PER_MS])
    client.send("input_audio_buffer.commit")
    client.wait(1000)
    told = [kind for kind in client.kinds() if kind.startswith("input_audio_buffer")]
    assert told == ["input_audio_buffer.speech_started", "input_audio_buffer.committed"]
    client.send("response.create")
    assert client.the("response.created")


# --- errors


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"type": 3}',
        b'{"event_id": "e"}',
        b'{"type": "response.make", "event_id": "e"}',
        b'{"type": "conversation.item.create", "event_id": "e"}',
        b'{"type": "input_audio_buffer.append", "event_id": "e"}',
        b'{"type":"input_audio_buffer.append","audio":"***"}',
        b"[" * 100_000,
    ],
    ids=lambda data: repr(data[:40]),
)
def test_what_cannot_be_read_is_an_error_and_the_session_goes_on(data):
    client = Client()
    client.send_raw(data)
    assert client.error()["code"] == "invalid_event"
    assert client.error().get("event_id") == ("e" if b'"e"' in data else None)
    client.say("ask-parking")
    assert client.until("response.created")


def test_c104_every_refusal_names_the_clients_event():
    client = Client()
    wrong = [
        ("session.update", {"session": {"reasoning": {}}}),
        ("conversation.item.create", {"item": {"type": "function_call_output", "call_id": "x", "output": ""}}),
        ("conversation.item.delete", {"item_id": "x"}),
        ("conversation.item.retrieve", {"item_id": "x"}),
        ("conversation.item.truncate", {"item_id": "x", "content_index": 0, "audio_end_ms": 0}),
        ("input_audio_buffer.commit", {}),
        ("output_audio_buffer.clear", {}),
        ("response.cancel", {}),
    ]
    for number, (kind, fields) in enumerate(wrong):
        client.send(kind, event_id=f"mine-{number}", **fields)
        assert client.error()["event_id"] == f"mine-{number}"
    assert len(client.of("error")) == len(wrong)


def test_the_speaker_cannot_be_cleared_over_a_websocket():
    client = Client()
    client.send("output_audio_buffer.clear")
    assert "WebSocket" in client.error()["message"]


def test_an_append_with_an_id_is_heard_like_any_other():
    client = Client()
    data = client.coded(speech()["ask-parking"].pcm)
    for at in range(0, len(data), 160):
        client.advance(20)
        frame = msgspec.json.decode(encode_append(data[at : at + 160]))
        client.send_raw(msgspec.json.encode({"event_id": "x", **frame}))
    transcript = client.until("conversation.item.input_audio_transcription.completed")["transcript"]
    assert transcript == speech()["ask-parking"].text


# --- settings


def test_every_setting_says_what_it_is_and_where_its_default_comes_from():
    listed = list(list_settings())
    assert ["dialect", *(each.name for each in listed)] == list(ServerSettings.__slots__)
    assert all(each.about.endswith(".") and each.source for each in listed)


@pytest.mark.parametrize("wrong", [{"answer_ms": (2, 1)}, {"answer_ms": (-1, 1)}, {"call_first_rate": 1.5}])
def test_a_setting_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        ServerSettings(**wrong)


# --- whatever a client does

NAMES = st.sampled_from(["item_1", "spoken", "call", "root", "", "resp_1"])
ANY = st.recursive(st.none() | st.booleans() | st.integers() | NAMES, lambda inner: st.lists(inner, max_size=2))
EVENTS = st.sampled_from(
    [
        ("response.create", {}),
        ("response.create", {"response": {"metadata": {"a": "b"}}}),
        ("response.cancel", {}),
        ("input_audio_buffer.commit", {}),
        ("input_audio_buffer.clear", {}),
        ("output_audio_buffer.clear", {}),
        ("conversation.item.retrieve", {"item_id": "spoken"}),
        ("conversation.item.truncate", {"item_id": "spoken", "content_index": 0, "audio_end_ms": 700}),
        ("conversation.item.delete", {"item_id": "spoken"}),
        ("conversation.item.create", {"item": {"type": "function_call_output", "call_id": "call", "output": "{}"}}),
        ("conversation.item.create", {"item": {"type": "message", "role": "system", "content": []}}),
        ("session.update", {"session": {"instructions": "x"}}),
    ]
)
ACTS = st.one_of(
    st.tuples(st.just("send"), EVENTS),
    st.tuples(st.just("send"), st.tuples(st.text(string.ascii_lowercase, max_size=5), st.just({}))),
    st.tuples(st.just("raw"), st.binary(max_size=20) | ANY.map(msgspec.json.encode)),
    st.tuples(st.just("say"), st.sampled_from(["thank-you", "mm-hmm", "go-on", "ask-wifi"])),
    st.tuples(st.just("burst"), st.sampled_from(["thank-you", "ask-wifi"])),
    st.tuples(st.just("wait"), st.integers(0, 2500)),
    st.tuples(st.just("advance"), st.integers(0, 2500)),
)
REPLIES = [
    Reply((Clip("holding-look-up"),), ToolRequest("look_up_booking", {"surname": "Smith"})),
    Reply((Clip("check-in-deposit"), Clip("pool"))),
    Reply(),
    Reply((), ToolRequest("look_up_booking", {"surname": "Smith"})),
    Reply((Clip("parking"),)),
]
EAGER = ServerSettings(cancelled_first_rate=0.5, transcript_last_rate=0.5, done_after_ms=(0, 600))


def perform(client: Client, act: str, what) -> None:
    match act:
        case "send":
            kind, fields = what
            spoken = [event["item_id"] for event in client.of("response.output_audio.delta")]
            calls = [event["call_id"] for event in client.of("response.function_call_arguments.done")]
            text = msgspec.json.encode({"type": kind, **fields}).decode()
            for name, known in (("spoken", spoken), ("call", calls)):
                text = text.replace(f'"{name}"', f'"{known[-1]}"') if known else text
            client.send_raw(text.encode())
        case "raw":
            client.send_raw(what)
        case "burst":
            client.burst(speech()[what].pcm)
        case _:
            getattr(client, act)(what)


@settings(max_examples=40)
@given(acts=st.lists(ACTS, max_size=12), seed=st.integers(0, 99), narrow=st.booleans())
def test_whatever_a_client_sends_responses_open_and_end_one_by_one(acts, seed, narrow):
    client = Client(Says(REPLIES), EAGER, seed=seed, audio_format=PCMU_8K if narrow else PCM16_24K)
    for act, what in acts:
        perform(client, act, what)
    client.wait(8000)
    client.server.disconnect(client.now_ms)
    client.collect()
    open_id = None
    for event in client.events:
        if event["type"] == "response.created":
            assert open_id is None
            open_id = event["response"]["id"]
        elif event["type"] == "response.done":
            assert event["response"]["id"] == open_id
            open_id = None
        elif "response_id" in event:
            assert event["response_id"] == open_id
    assert open_id is None
    times = [event.at_ms for event in client.events]
    assert times == sorted(times)
    turns = client.of("input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped")
    positions = [event.get("audio_start_ms", event.get("audio_end_ms")) for event in turns]
    assert all(0 <= at <= client.audio_ms + 600 for at in positions)
    ids = [item.item_id for item in client.server.history]
    assert len(ids) == len({*ids})

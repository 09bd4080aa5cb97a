"""What a provider does not take is never sent to it."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.wire.official import assert_official_client
from tests.wire.samples import CLIENT, SESSION, TOOL

from callwright.errors import LocalProtocolError
from callwright.wire import client
from callwright.wire.codec import encode, wire_type
from callwright.wire.objects import PCM16_16K, PCM16_24K, PCMA, PCMU, Audio, AudioInput, Session, TurnDetection
from callwright.wire.profiles import OPENAI, PLAIN, POLYAI, PROFILES, check, refused_fields, session_update


def test_polyai_session_is_exactly_what_the_provider_takes():
    """One field too many and the whole update is refused, instructions included."""
    update = session_update(POLYAI, instructions="Be brief.", tools=[TOOL], input_format=PCMU)
    assert json.loads(encode(update)) == {
        "type": "session.update",
        "session": {
            "type": "realtime",
            "instructions": "Be brief.",
            "tools": [TOOL],
            "audio": {
                "input": {
                    "format": {"type": "audio/pcmu"},
                    "turn_detection": {"type": "server_vad", "create_response": True},
                }
            },
        },
    }
    assert_official_client(update)


@pytest.mark.parametrize("profile", [POLYAI, OPENAI])
def test_c114_no_update_names_a_voice(profile):
    """A server refuses an update that does after the first audio; every session has its provider's own voice."""
    update = session_update(profile, instructions="Be brief.", tools=[TOOL], input_format=PCMU)
    assert b"voice" not in encode(update)


def test_text_replies_and_manual_turns_are_asked_for():
    update = session_update(
        POLYAI,
        instructions="",
        tools=(),
        input_format=PCM16_24K,
        output_modalities=("text",),
        turn_detection=TurnDetection(type="server_vad", create_response=False),
    )
    assert isinstance(update.session, Session)
    assert update.session.output_modalities == ("text",)
    assert b'"create_response":false' in encode(update)
    assert_official_client(update)


@pytest.mark.parametrize("wire_format", [PCM16_24K, PCM16_16K, PCMU])
def test_c117_every_update_names_the_input_format(wire_format):
    """C117: an update without the audio block puts the default format back, and the caller becomes noise."""
    update = session_update(POLYAI, instructions="", tools=[], input_format=wire_format)
    assert json.loads(encode(update))["session"]["audio"]["input"]["format"] == msgspec.to_builtins(wire_format)


def test_a_format_that_the_provider_does_not_take_is_refused_with_those_it_takes():
    with pytest.raises(LocalProtocolError, match=r"polyai takes no audio/pcma .* audio/pcm at 24000 Hz, .*audio/pcmu"):
        session_update(POLYAI, instructions="", tools=[], input_format=PCMA)


def test_turn_timing_is_refused_by_field():
    tuned = TurnDetection(type="server_vad", threshold=0.3, silence_duration_ms=200)
    with pytest.raises(LocalProtocolError, match=r"audio\.input\.turn_detection\.threshold, .*silence_duration_ms"):
        session_update(POLYAI, instructions="", tools=[], input_format=PCMU, turn_detection=tuned)


def test_refused_fields_are_found_in_any_session():
    assert refused_fields(POLYAI, Session(model="m", poly_input_rate=48_000, instructions="")) == []
    assert refused_fields(POLYAI, Session(audio=Audio(input=AudioInput(noise_reduction=None)))) == [
        "audio.input.noise_reduction"
    ]
    assert "audio.output.voice.id" in refused_fields(POLYAI, SESSION)


def test_clearing_the_servers_buffer_is_refused_over_a_websocket():
    with pytest.raises(LocalProtocolError, match=r"polyai does not take output_audio_buffer\.clear"):
        check(POLYAI, client.OutputAudioBufferClear())


@pytest.mark.parametrize(
    "event",
    [event for event in CLIENT if not isinstance(event, client.OutputAudioBufferClear | client.SessionUpdate)],
    ids=wire_type,
)
def test_every_other_event_passes(event):
    check(POLYAI, event)


# --- the other dialects


def test_openai_session_asks_for_interruption_and_for_the_callers_words():
    update = session_update(OPENAI, instructions="Be brief.", tools=[TOOL], input_format=PCMA)
    assert json.loads(encode(update))["session"]["audio"]["input"] == {
        "format": {"type": "audio/pcma"},
        "turn_detection": {"type": "server_vad", "create_response": True, "interrupt_response": True},
        "transcription": {"model": "gpt-transcribe"},
    }
    assert_official_client(update)


def test_turn_detection_can_be_turned_off_where_the_provider_lets_a_client_end_turns():
    update = session_update(OPENAI, instructions="", tools=[], input_format=PCM16_24K, turn_detection=None)
    assert json.loads(encode(update))["session"]["audio"]["input"]["turn_detection"] is None
    assert_official_client(update)
    with pytest.raises(LocalProtocolError, match=r"audio\.input\.turn_detection"):
        session_update(POLYAI, instructions="", tools=[], input_format=PCM16_24K, turn_detection=None)


def test_only_24_khz_and_g711_are_taken_by_openai():
    with pytest.raises(LocalProtocolError, match="openai takes no audio/pcm at 16000 Hz"):
        session_update(OPENAI, instructions="", tools=[], input_format=PCM16_16K)


def test_what_one_provider_adds_is_refused_by_the_others():
    for profile in (OPENAI, PLAIN):
        assert refused_fields(profile, Session(poly_input_rate=48_000)) == ["poly_input_rate"]
        with pytest.raises(LocalProtocolError, match=r"does not take poly\."):
            check(profile, client.PolyOutputAudioStarted(response_id="r"))
    tuned = TurnDetection(type="semantic_vad", eagerness="low")
    assert not refused_fields(OPENAI, Session(audio=Audio(input=AudioInput(turn_detection=tuned))))


@pytest.mark.parametrize(
    "event",
    [
        client.ConversationItemTruncate(item_id="a", content_index=0, audio_end_ms=1),
        client.ConversationItemRetrieve(item_id="a"),
    ],
    ids=wire_type,
)
def test_a_plain_server_is_never_asked_to_shorten_or_to_read_its_history(event):
    with pytest.raises(LocalProtocolError, match="plain does not take"):
        check(PLAIN, event)


def test_profiles_are_found_by_name():
    assert [profile.name for profile in PROFILES.values()] == list(PROFILES) == ["polyai", "openai", "plain"]
    assert all(profile.output_format in profile.input_formats for profile in PROFILES.values())

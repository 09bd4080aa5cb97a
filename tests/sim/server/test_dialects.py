"""What the local server does otherwise in the dialects `openai` and `plain`.

Every event of the server is checked against the official types as it comes.
"""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from tests.sim.server.driving import Client, Says, speech
from tests.sim.server.test_replies import HOLDING, TALK
from tests.sim.server.test_session import ACTS, REPLIES, perform
from tests.sim.server.test_turns import FIRST_AUDIO, LONG, STARTED, STOPPED, TRANSCRIBED, words_of

from callwright.audio.formats import PCMA_8K, PCMU_8K
from callwright.errors import UsageError
from callwright.sim.models import AgentSaid, CallerSaid, Clip, Reply, ToolRequest
from callwright.sim.server import DIALECTS, ServerSettings, list_differences
from callwright.sim.server.speaking import render

SHARED = {
    "answer_ms": (500, 500),
    "asked_answer_ms": (400, 400),
    "stop_told_ms": (95, 95),
    "start_told_ms": (180, 180),
    "barge_in_told_ms": (180, 180),
    "transcript_last_rate": 0,
    "transcript_after_ms": (300, 300),
}
OPENAI = ServerSettings.for_dialect("openai", {**SHARED, "done_after_ms": (50, 50)})
PLAIN = ServerSettings.for_dialect("plain", SHARED)
PCMU = {"format": {"type": "audio/pcmu"}}
CREATED, DONE, RETRIEVED = "response.created", "response.done", "conversation.item.retrieved"
POOL = Reply((Clip("pool"),))


def openai(*replies, settings=OPENAI, turn_detection=..., **audio_input) -> Client:
    """A client of the dialect `openai`, with its session set up as given."""
    client = Client(Says(replies or (LONG,)), settings, is_ready=False)
    detection = {} if turn_detection is ... else {"turn_detection": turn_detection}
    client.configure(audio={"input": {**PCMU, **detection, **audio_input}})
    client.wait(300)
    return client


def asked(*replies, **options) -> Client:
    """The same, with a reply that was asked for and has begun."""
    client = openai(*replies, **options)
    client.send("response.create")
    client.until(FIRST_AUDIO)
    return client


def audio_of(client: Client) -> bytes:
    return b"".join(msgspec.convert(event["delta"], bytes, strict=False) for event in client.of(FIRST_AUDIO))


# --- replies


def test_a_reply_leaves_faster_than_it_is_spoken():
    client = asked()
    done = client.until(DONE)
    assert audio_of(client) == render(LONG.clips, speech(), 200).audio
    taken_ms, audio_ms = done.at_ms - client.of(FIRST_AUDIO)[0].at_ms, render(LONG.clips, speech(), 200).audio_ms
    assert audio_ms / 11 < taken_ms - 50 < audio_ms / 9


def test_the_events_of_a_reply_come_in_the_documented_order_with_its_words_along():
    client = openai(POOL)
    client.events.clear()
    client.send("response.create")
    client.until(DONE)
    words = "response.output_audio_transcript.delta"
    assert [kind for kind in client.kinds() if kind != words] == [
        "response.created",
        "rate_limits.updated",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
    ]
    assert "".join(event["delta"] for event in client.of(words)) == speech()["pool"].text
    first = client.events.index(client.of(words)[0])
    assert client.events[first + 1]["type"] == FIRST_AUDIO


def test_a_message_and_a_tool_call_come_in_one_response_with_the_message_first():
    """The model says what another provider would take for a spoken argument, and then calls."""
    client = openai(HOLDING)
    client.say("look-up-okafor")
    done = client.until(DONE)["response"]
    assert [item["type"] for item in done["output"]] == ["message", "function_call"]
    assert client.of(FIRST_AUDIO)[-1].at_ms <= client.the("response.function_call_arguments.done").at_ms
    assert len(client.the("response.function_call_arguments.done")["call_id"]) <= 32
    pieces = client.the("response.function_call_arguments.delta")["delta"]
    assert pieces == client.the("response.function_call_arguments.done")["arguments"]
    assert client.server.spoken[0].tool == "look_up_booking"


@pytest.mark.parametrize("audio_format", [PCMU_8K, PCMA_8K], ids=["pcmu", "pcma"])
def test_replies_are_sent_in_the_format_that_was_asked_for(audio_format):
    client = openai(POOL)
    client.configure(audio={"output": {"format": audio_format.to_wire(), "voice": "marin", "speed": 1.2}})
    client.wait(100)
    told = client.of("session.updated")[-1]["session"]["audio"]
    assert (told["output"]["format"], told["input"]["format"]) == (audio_format.to_wire(), PCMU["format"])
    client.send("response.create")
    client.until(DONE)
    assert audio_of(client) == render(POOL.clips, speech(), 200, audio_format).audio
    assert len(audio_of(client)) == pytest.approx(speech()["pool"].ms * 8, abs=8)


def test_metadata_come_back():
    client = openai()
    client.send("response.create", response={"metadata": {"why": "test"}})
    assert client.the(CREATED)["response"]["metadata"] == {"why": "test"}
    assert client.until(DONE)["response"]["metadata"] == {"why": "test"}


def test_a_request_while_the_caller_speaks_is_answered_at_once():
    client = openai(POOL)
    client.play(speech()["ask-check-in"].pcm[:32_000])
    client.send("response.create")
    assert client.the(CREATED).at_ms == client.now_ms


def test_a_reply_to_other_input_is_made_from_that():
    client = openai(POOL)
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "the pool?"}]}
    client.send("conversation.item.create", item={"id": "before", **message})
    client.send("response.create", response={"input": [{"type": "item_reference", "id": "before"}, message]})
    client.until(DONE)
    assert [type(item) for item in client.model.saw[0]] == [CallerSaid, CallerSaid]
    client.send("response.create", response={"input": [{"type": "item_reference", "id": "nothing"}]})
    assert client.error()["param"] == "response.input[0]"


# --- interruption


def test_a_turn_begins_with_the_voice_whatever_its_kind():
    """No judgement over a reply: even a murmur cuts it."""
    client = asked(LONG, POOL)
    client.wait(1000)
    begun_ms = client.say("mm-hmm")
    client.wait(600)
    started = client.the(STARTED)
    assert started.at_ms - (begun_ms + speech()["mm-hmm"].words[0].start_ms) < 300
    assert started["audio_start_ms"] == pytest.approx(begun_ms + speech()["mm-hmm"].words[0].start_ms - 300, abs=80)


def test_c006_without_a_truncate_the_history_keeps_what_nobody_heard():
    client = asked(LONG, POOL)
    client.until(DONE)
    client.say(TALK)
    client.until(DONE)
    reply = next(item for item in client.server.history if isinstance(item, AgentSaid))
    assert (reply.text, reply.is_cut) == (render(LONG.clips, speech(), 200).text, False)


def test_c007_a_reply_is_truncated_though_it_was_done_long_before():
    client = asked()
    spoken = client.until(DONE)["response"]["output"][0]["id"]
    client.send("conversation.item.truncate", item_id=spoken, content_index=0, audio_end_ms=2000)
    assert client.the("conversation.item.truncated")["audio_end_ms"] == 2000
    said = next(item for item in client.server.history if isinstance(item, AgentSaid))
    assert said.is_cut
    assert render(LONG.clips, speech(), 200).text.startswith(said.text)


def test_a_truncate_deletes_the_text_and_keeps_the_audio():
    client = asked()
    spoken = client.until(DONE)["response"]["output"][0]["id"]
    client.send("conversation.item.retrieve", item_id=spoken)
    assert client.the(RETRIEVED)["item"]["content"][0]["transcript"]
    client.send("conversation.item.truncate", item_id=spoken, content_index=0, audio_end_ms=2000)
    client.send("conversation.item.retrieve", item_id=spoken)
    (part,) = client.of(RETRIEVED)[-1]["item"]["content"]
    assert "transcript" not in part
    assert msgspec.convert(part["audio"], bytes, strict=False) == audio_of(client)[: 2000 * 48]


def test_a_truncate_beyond_the_audio_is_refused_in_the_known_words():
    client = asked(POOL)
    spoken = client.until(DONE)["response"]["output"][0]["id"]
    length = render(POOL.clips, speech(), 200).audio_ms
    client.send("conversation.item.truncate", item_id=spoken, content_index=0, audio_end_ms=length + 1)
    assert client.error()["message"] == f"Audio content of {length}ms is already shorter than {length + 1}ms"


def test_a_reply_that_is_being_made_is_cut_as_the_voice_begins():
    client = asked(LONG, POOL, settings=replace(OPENAI, pace=1.0))
    client.wait(1000)
    client.say(TALK)
    assert client.of(DONE)[0]["response"]["status_details"]["reason"] == "turn_detected"
    assert client.until(DONE)["response"]["status"] == "completed"


def test_without_interrupt_response_the_reply_goes_on_and_the_turn_gets_none():
    detection = {"type": "server_vad", "interrupt_response": False}
    client = asked(LONG, settings=replace(OPENAI, pace=1.0), turn_detection=detection)
    client.say(TALK)
    client.until(STOPPED)
    assert client.error()["code"] == "conversation_already_has_active_response"
    assert client.until(DONE)["response"]["status"] == "completed"
    assert len(client.of(CREATED)) == 1


# --- turn detection


def test_the_silence_that_ends_a_turn_can_be_set():
    client = openai(POOL, turn_detection={"type": "server_vad", "silence_duration_ms": 900, "prefix_padding_ms": 100})
    told = client.the("session.updated")["session"]["audio"]["input"]["turn_detection"]
    assert (told["silence_duration_ms"], told["prefix_padding_ms"], told["threshold"]) == (900, 100, 0.5)
    first_word_ms, last_word_ms = words_of(TALK, client.say(TALK))
    assert client.until(STOPPED)["audio_end_ms"] == pytest.approx(last_word_ms + 900, abs=70)
    assert client.the(STARTED)["audio_start_ms"] == pytest.approx(first_word_ms - 100, abs=50)


def test_a_threshold_that_nothing_reaches_hears_nothing():
    client = openai(turn_detection={"type": "server_vad", "threshold": 1.0})
    client.say(TALK)
    client.wait(2000)
    assert not client.of(STARTED)


@pytest.mark.parametrize(
    ("eagerness", "wait_ms"), [("low", 8_000), ("auto", 4_000), ("medium", 4_000), ("high", 2_000)]
)
def test_semantic_detection_waits_for_the_end_of_an_unfinished_sentence(eagerness, wait_ms):
    client = openai(POOL, turn_detection={"type": "semantic_vad", "eagerness": eagerness})
    line = speech()["ask-check-in"]
    begun_ms = client.now_ms
    client.play(line.slice(0, 6))
    last_word_ms = begun_ms + line.words[5].end_ms
    assert client.until(STOPPED)["audio_end_ms"] == pytest.approx(last_word_ms + wait_ms, abs=200)


def test_semantic_detection_ends_a_finished_sentence_as_fast_as_ever():
    client = openai(POOL, turn_detection={"type": "semantic_vad"})
    _, last_word_ms = words_of(TALK, client.say(TALK))
    assert client.until(STOPPED)["audio_end_ms"] == pytest.approx(last_word_ms + 500, abs=70)


def test_without_detection_the_client_ends_turns_and_asks_for_replies():
    client = openai(POOL, turn_detection=None, transcription={"model": "any"})
    assert client.the("session.updated")["session"]["audio"]["input"]["turn_detection"] is None
    for line_id in (TALK, "ask-wifi"):
        client.say(line_id)
        client.wait(1000)
        assert not client.of(STARTED, CREATED)
        client.send("input_audio_buffer.commit")
        assert client.until(TRANSCRIBED)["transcript"] == speech()[line_id].text
    client.send("input_audio_buffer.commit")
    client.send("response.create")
    assert client.until(FIRST_AUDIO)


def test_c071_a_caller_who_says_nothing_is_asked_again_after_the_reply_has_played():
    detection = {"type": "server_vad", "idle_timeout_ms": 5_000}
    client = asked(POOL, turn_detection=detection)
    client.until(DONE)
    heard_ms = client.of(FIRST_AUDIO)[0].at_ms + render(POOL.clips, speech(), 200).audio_ms
    timed_out = client.until("input_audio_buffer.timeout_triggered")
    assert timed_out.at_ms == pytest.approx(heard_ms + 5_000, abs=100)
    assert timed_out["audio_end_ms"] - timed_out["audio_start_ms"] == 5_000
    assert client.of("input_audio_buffer.committed")[-1]["item_id"] == timed_out["item_id"]
    assert client.until(DONE)["response"]["status"] == "completed"


def test_a_caller_who_speaks_is_not_asked_again():
    client = asked(POOL, turn_detection={"type": "server_vad", "idle_timeout_ms": 5_000})
    client.until(DONE)
    client.wait(5_000)
    client.say("ask-check-in")
    client.until(DONE)
    assert not client.of("input_audio_buffer.timeout_triggered")


@pytest.mark.parametrize(
    ("detection", "field"),
    [
        ({"type": "server_vad", "threshold": 1.5}, "threshold"),
        ({"type": "server_vad", "idle_timeout_ms": 100}, "idle_timeout_ms"),
        ({"type": "semantic_vad", "eagerness": "very"}, "eagerness"),
        ({"type": "telepathy"}, "type"),
    ],
)
def test_a_detection_that_makes_no_sense_is_refused_by_field(detection, field):
    client = openai()
    client.configure(audio={"input": {"turn_detection": detection}})
    assert client.error()["param"] == f"session.audio.input.turn_detection.{field}"


# --- what a session may ask for


def test_the_caller_is_written_down_only_when_that_is_asked_for():
    client = openai(POOL)
    client.say(TALK)
    client.until(DONE)
    client.wait(2000)
    assert not client.of(TRANSCRIBED)
    client.configure(audio={"input": {"transcription": {"model": "gpt-transcribe"}}})
    client.say("ask-wifi")
    assert client.until(TRANSCRIBED)["transcript"] == speech()["ask-wifi"].text
    pieces = client.of("conversation.item.input_audio_transcription.delta")
    assert "".join(event["delta"] for event in pieces) == speech()["ask-wifi"].text


def test_what_changes_nothing_here_is_taken_and_told_back():
    client = openai()
    given = {"truncation": {"type": "retention_ratio", "retention_ratio": 0.8}, "max_output_tokens": 4096}
    client.configure(**given, audio={"input": {"noise_reduction": {"type": "near_field"}}})
    client.wait(100)
    told = client.of("session.updated")[-1]["session"]
    assert not client.of("error")
    assert {key: told[key] for key in given} == given
    assert told["audio"]["input"]["format"] == PCMU["format"]
    client.configure(poly_knowledge=[])
    assert client.error()["code"] == "unsupported_parameter"


# --- replies outside the history


@pytest.mark.parametrize("modality", ["audio", "text"])
def test_a_reply_outside_the_history_leaves_it_alone(modality):
    client = asked(LONG, Reply((Clip("pool"),), ToolRequest("look_up_booking", {"surname": "Smith"})))
    before = client.server.history
    client.events.clear()
    note = {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Sum up."}]}
    outside = {"conversation": "none", "input": [note], "metadata": {"topic": "sum"}, "output_modalities": [modality]}
    client.send("response.create", response=outside)
    created = client.the(CREATED)["response"]
    assert (created["metadata"], created.get("conversation_id")) == ({"topic": "sum"}, None)
    client.until(DONE)
    client.wait(3000)
    done = next(event["response"] for event in client.of(DONE) if event["response"]["id"] == created["id"])
    message, call = done["output"]
    assert (message["content"][0].get("transcript") or message["content"][0]["text"]) == speech()["pool"].text
    assert (done["output_modalities"], call["name"]) == ([modality], "look_up_booking")
    assert [item.item_id for item in client.server.history] == [item.item_id for item in before]
    added = [event["item"]["id"] for event in client.of("conversation.item.added", "conversation.item.done")]
    assert message["id"] not in added
    assert len(client.of(DONE)) == 2, "the reply in the conversation went on beside it"


def test_a_reply_outside_the_history_can_be_cancelled_by_name():
    client = openai()
    client.send("response.create", response={"conversation": "none", "input": []})
    client.send("response.cancel", response_id=client.the(CREATED)["response"]["id"])
    assert client.the(DONE)["response"]["status"] == "cancelled"
    client.wait(2000)
    assert len(client.of(DONE)) == 1
    assert client.model.saw == [()]


# --- plain


def test_a_plain_server_ignores_a_truncate_and_reads_nothing_back():
    client = Client(Says([LONG]), PLAIN)
    client.send("response.create")
    client.until(FIRST_AUDIO)
    client.wait(1000)
    (spoken,) = client.server.spoken
    client.send("conversation.item.truncate", item_id=spoken.item_id, content_index=0, audio_end_ms=100)
    assert not client.of("conversation.item.truncated", "error")
    client.send("conversation.item.retrieve", item_id=spoken.item_id)
    assert client.error()["code"] == "invalid_event"
    assert not client.of("conversation.item.added", "response.output_item.added")


# --- whatever a client does


def heard_by(detection, **more):
    return "session.update", {
        "session": {"type": "realtime", "audio": {"input": {"turn_detection": detection, **more}}}
    }


MORE = st.sampled_from(
    [
        heard_by(None),
        heard_by({"type": "semantic_vad", "eagerness": "high"}),
        heard_by({"type": "server_vad", "interrupt_response": False}),
        heard_by({"type": "server_vad", "idle_timeout_ms": 5_000, "silence_duration_ms": 200}),
        heard_by({"type": "server_vad", "create_response": False}, format={"type": "audio/pcmu"}),
        heard_by({"type": "server_vad", "threshold": -1}),
        ("session.update", {"session": {"type": "realtime", "audio": {"output": {"format": {"type": "audio/pcma"}}}}}),
        ("response.create", {"response": {"conversation": "none", "metadata": {"a": "b"}}}),
        ("response.create", {"response": {"conversation": "none", "input": [], "output_modalities": ["text"]}}),
        ("response.create", {"response": {"input": [{"type": "item_reference", "id": "spoken"}]}}),
    ]
)


@examples(max_examples=35)
@given(
    acts=st.lists(ACTS | st.tuples(st.just("send"), MORE), max_size=14),
    seed=st.integers(0, 99),
    settings=st.sampled_from([OPENAI, PLAIN, replace(OPENAI, pace=1.0)]),
)
def test_whatever_a_client_sends_one_response_at_a_time_writes_to_the_history(acts, seed, settings):
    client = Client(Says(REPLIES), settings, seed=seed)
    for act, what in acts:
        perform(client, act, what)
    client.wait(4000)
    client.server.disconnect(client.now_ms)
    client.collect()
    opened = []
    for event in client.events:
        response = event.get("response", {})
        if event["type"] == CREATED and "conversation_id" in response:
            assert not opened
            opened.append(response["id"])
        elif event["type"] == DONE and "conversation_id" in response:
            assert opened.pop() == response["id"]
    assert not opened
    ids = [item.item_id for item in client.server.history]
    assert len(ids) == len({*ids})


# --- settings


def test_a_dialect_differs_in_what_it_says():
    own = ServerSettings()
    for name in DIALECTS:
        assert all(info.source for info in list_differences(name))
        differing = {info.name: info.default for info in list_differences(name)}
        assert ServerSettings.for_dialect(name) == replace(own, dialect=name, **differing)
        assert all(value != getattr(own, setting) for setting, value in differing.items())


def test_what_does_not_exist_is_refused():
    with pytest.raises(UsageError, match="no dialect 'welsh'; dialects: polyai, openai, plain"):
        ServerSettings.for_dialect("welsh")
    with pytest.raises(UsageError, match="no setting 'dialect'"):
        ServerSettings.for_dialect("openai", {"dialect": "polyai"})
    with pytest.raises(UsageError, match="pace"):
        ServerSettings.for_dialect("openai", {"pace": 0})

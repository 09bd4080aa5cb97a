"""What leaves the server of a reply, when, and what becomes of it when the caller talks over it."""

from dataclasses import replace

import msgspec
import pytest
from tests.sim.server.driving import EXACT, Client, Says, speech
from tests.sim.server.test_turns import FIRST_AUDIO, LONG, STARTED, over_a_reply

from callwright.audio.formats import PCM16_24K
from callwright.sim.models import AgentSaid, Clip, Reply, ToolRequest, ToolRequested
from callwright.sim.server.speaking import render

ITEM_EVENTS = (
    "conversation.item.added",
    "conversation.item.done",
    "response.output_item.added",
    "response.output_item.done",
    "response.content_part.added",
    "response.content_part.done",
)
HOLDING = Reply((Clip("holding-look-up"),), ToolRequest("look_up_booking", {"surname": "Okafor", "holding": "One"}))
TALK = "ask-breakfast"


def delta_ms(delta) -> int:
    return PCM16_24K.ms_of(len(msgspec.convert(delta["delta"], bytes, strict=False)))


# --- pacing


def test_a_reply_leaves_in_200_ms_chunks_at_speaking_pace_a_little_ahead():
    """Measured: 100 to 500 ms ahead of playback; 1.35 to 1.59 s sent after 1 s; 5147 ms in 4.77 s."""
    client = Client(Says([LONG]))
    client.send("response.create")
    client.until("response.done", limit_ms=30_000)
    deltas = client.of(FIRST_AUDIO)
    begun_ms = deltas[0].at_ms
    sent_ms = 0
    for delta in deltas:
        ahead_before_ms = sent_ms - (delta.at_ms - begun_ms)
        sent_ms += delta_ms(delta)
        ahead_ms = sent_ms - (delta.at_ms - begun_ms)
        assert ahead_ms <= 500
        assert ahead_before_ms >= 100 or delta.at_ms == begun_ms
    assert {delta_ms(delta) for delta in deltas[:-1]} == {200}
    assert sum(delta_ms(d) for d in deltas if d.at_ms - begun_ms <= 1000) in range(1350, 1591)
    assert sent_ms == PCM16_24K.ms_of(len(render(LONG.clips, speech(), 200).audio))


def test_done_comes_436_ms_after_the_last_chunk():
    client = Client()
    client.send("response.create")
    done = client.until("response.done")
    assert done.at_ms - client.of(FIRST_AUDIO)[-1].at_ms == 436
    assert done["response"]["status"] == "completed"


@pytest.mark.parametrize("lead_ms", [100, 300, 500])
def test_the_lead_is_a_setting(lead_ms):
    client = Client(settings=replace(EXACT, lead_ms=lead_ms))
    client.send("response.create")
    client.until("response.done")
    last = client.of(FIRST_AUDIO)[-1]
    before_ms = 200 * (len(client.of(FIRST_AUDIO)) - 1)
    assert before_ms - (last.at_ms - client.of(FIRST_AUDIO)[0].at_ms) == lead_ms - 100


@pytest.mark.parametrize("stall_ms", [100, 500, 2_000])
@pytest.mark.parametrize("at_ms", [1_000, 1_100])
def test_a_stall_holds_what_would_leave_in_it_and_lets_it_go_at_once(at_ms, stall_ms):
    """Nothing is lost and nothing overtakes; what was not due in the stall leaves when it would have left anyway."""
    usual, stalled = (
        Client(Says([LONG])),
        Client(Says([LONG]), replace(EXACT, stall_at_ms=at_ms, stall_ms=(stall_ms, stall_ms))),
    )
    for client in (usual, stalled):
        client.send("response.create")
        client.until("response.done", limit_ms=40_000)
    due, left = usual.of(FIRST_AUDIO), stalled.of(FIRST_AUDIO)
    assert [each["delta"] for each in due] == [each["delta"] for each in left]
    before = -(-at_ms // 200)
    begins_ms = due[before].at_ms
    assert [each.at_ms for each in left] == [
        begins_ms + stall_ms if begins_ms <= each.at_ms < begins_ms + stall_ms else each.at_ms for each in due
    ]
    assert left[before - 1].at_ms < begins_ms
    assert stalled.the("response.done").at_ms == left[-1].at_ms + 436


def test_a_stall_in_the_last_chunk_holds_the_end_of_the_reply():
    settings = replace(EXACT, stall_at_ms=2_400, stall_ms=(3_000, 3_000))
    client = Client(Says([Reply((Clip("pool"),))]), replace(settings, stall_at_ms=speech()["pool"].ms // 200 * 200))
    client.send("response.create")
    done = client.until("response.done")
    *others, last = client.of(FIRST_AUDIO)
    assert last.at_ms - others[-1].at_ms == 3_000 + 200
    assert done.at_ms == last.at_ms + 436


def test_a_reply_shorter_than_the_stall_is_far_in_leaves_as_always():
    plain, client = Client(), Client(settings=replace(EXACT, stall_at_ms=60_000))
    for each in (plain, client):
        each.send("response.create")
        each.until("response.done")
    assert [(event.at_ms, event["type"]) for event in client.events] == [(e.at_ms, e["type"]) for e in plain.events]


def test_what_follows_a_stall_is_audible_for_as_long_as_it_lasts():
    """The caller talks over the end of a reply that came late: it is still cut, and not taken for over."""
    settings = replace(EXACT, stall_at_ms=1_000, stall_ms=(3_000, 3_000))
    client = Client(Says([Reply((Clip("check-in-time"),)), Reply((Clip("pool"),))]), settings)
    client.send("response.create")
    client.until("response.output_audio.done")
    client.say("thank-you")
    client.until("response.done")
    assert len(client.server.confirmations) == 1


def test_the_events_of_a_reply_come_in_the_protocols_order():
    client = Client()
    client.events.clear()
    client.send("response.create")
    client.until("response.done")
    assert client.kinds() == [
        "response.created",
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
    assert client.of("response.output_audio_transcript.done")[0]["transcript"] == "{} {}".format(
        speech()["check-in-time"].text, speech()["check-in-bring"].text
    )


def test_item_events_can_be_left_out():
    client = Client(settings=replace(EXACT, item_events=False))
    client.say(TALK)
    client.until("response.done")
    assert not client.of(*ITEM_EVENTS)
    client.send("conversation.item.create", item={"type": "message", "role": "system", "content": []})
    assert client.the("conversation.item.added")  # the answer to a client's own item is always told


def test_every_event_has_its_own_id():
    client = Client()
    client.say(TALK)
    client.until("response.done")
    ids = [event["event_id"] for event in client.events]
    assert ids == [f"event_{n}" for n in range(1, len(ids) + 1)]


def test_the_same_seed_gives_the_same_bytes():
    def events(seed):
        client = Client(seed=seed, settings=replace(EXACT, answer_ms=(430, 640)))
        client.say(TALK)
        client.until("response.done")
        return [(event.at_ms, dict(event)) for event in client.events]

    assert events(7) == events(7)
    assert events(7) != events(8)


def test_an_empty_reply_is_a_response_without_output():
    client = Client(Says([Reply()]))
    client.say(TALK)
    done = client.until("response.done")["response"]
    assert (done["status"], done["output"]) == ("completed", [])
    assert len(client.server.history) == 1


def test_word_times_of_a_reply_fall_on_its_audio():
    """Part of a line, then another: word times follow the samples."""
    made = render((Clip("check-in-bring", 2, 5), Clip("pool")), speech(), 200)
    assert made.text == "a photo ID You will find the pool on floor two."
    assert all(a.end_ms <= b.start_ms for a, b in zip(made.words, made.words[1:], strict=False))
    assert 0 <= made.words[0].start_ms < made.words[-1].end_ms <= made.audio_ms
    whole = render((Clip("check-in-time"), Clip("pool")), speech(), 200)
    line = speech()["check-in-time"]
    assert whole.words[len(line.words)].start_ms == line.ms + 200 + speech()["pool"].words[0].start_ms


# --- tools


@pytest.mark.parametrize(("rate", "shift_ms"), [(0, 46), (1, -120)])
def test_the_call_and_its_spoken_line_come_in_either_order(rate, shift_ms):
    """Measured: the audio 46 ms before the call, or the call 120 ms before the audio."""
    client = Client(Says([HOLDING]), replace(EXACT, call_first_rate=rate))
    client.say("look-up-okafor")
    done = client.until("response.done")["response"]
    call = client.the("response.function_call_arguments.done")
    assert call.at_ms - client.of(FIRST_AUDIO)[0].at_ms == shift_ms
    assert call["response_id"] == done["id"] == client.of(FIRST_AUDIO)[0]["response_id"]
    assert msgspec.json.decode(call["arguments"]) == {"surname": "Okafor", "holding": "One"}
    assert {item["type"] for item in done["output"]} == {"message", "function_call"}
    assert client.the("response.done").at_ms - client.of(FIRST_AUDIO)[-1].at_ms == 436


def test_a_call_id_has_37_characters():
    client = Client(Says([HOLDING]))
    client.say("look-up-okafor")
    assert len(client.until("response.function_call_arguments.done")["call_id"]) == 37


def test_a_call_without_a_line_is_done_at_once():
    client = Client(Says([Reply((), HOLDING.tool)]))
    client.say("look-up-okafor")
    call = client.until("response.function_call_arguments.done")
    assert client.the("response.done").at_ms == call.at_ms


def test_a_cut_of_the_line_leaves_the_call_in_history():
    """Measured in 10 of 10 runs; the call can be retrieved."""
    client = Client(Says([HOLDING, LONG]))
    client.say("look-up-okafor")
    call = client.until("response.function_call_arguments.done")
    client.say(TALK)
    assert client.of("response.done")[0]["response"]["status"] == "cancelled"
    kept = [item for item in client.server.history if isinstance(item, ToolRequested)]
    assert [item.tool_call_id for item in kept] == [call["call_id"]]
    client.send("conversation.item.retrieve", item_id=call["item_id"])
    retrieved = client.the("conversation.item.retrieved")["item"]
    assert (retrieved["type"], retrieved["call_id"]) == ("function_call", call["call_id"])


# --- interruption


@pytest.mark.parametrize("rate", [0, 1])
def test_a_reply_that_is_talked_over_ends_cancelled_in_either_order(rate):
    client = over_a_reply(replace(EXACT, cancelled_first_rate=rate))
    client.events.clear()
    client.say(TALK)
    told = [kind for kind in client.kinds() if kind not in ITEM_EVENTS][:4]
    ending = ["response.output_audio.done", "response.output_audio_transcript.done", "response.done"]
    assert told == ([*ending, STARTED] if rate else [STARTED, *ending])
    done = client.the("response.done")["response"]
    assert done["status"] == "cancelled"
    assert done["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
    assert done["output"][0]["status"] == "incomplete"


def test_the_transcript_of_a_cut_reply_is_all_that_was_written():
    client = over_a_reply()
    client.say(TALK)
    assert client.of("response.output_audio_transcript.done")[0]["transcript"] == render(LONG.clips, speech(), 0).text


def test_the_server_keeps_of_a_cut_reply_what_it_had_streamed():
    client = over_a_reply()
    client.say(TALK)
    (spoken,) = client.server.spoken
    assert spoken.streamed_ms == 200 * len(client.of(FIRST_AUDIO))
    words = [word for word in spoken.words if word.start_ms + word.end_ms <= 2 * spoken.streamed_ms]
    said = next(item for item in client.server.history if isinstance(item, AgentSaid))
    assert said.is_cut
    assert said.text == " ".join(word.text for word in words) + "-"
    assert client.text(spoken.item_id) == said.text


def test_c014_nothing_of_a_cut_reply_comes_after_its_end():
    client = over_a_reply()
    client.say(TALK)
    client.until(FIRST_AUDIO)
    _, following = (event["response"]["id"] for event in client.of("response.created"))
    done_at = client.events.index(client.of("response.done")[0])
    assert {event["response_id"] for event in client.events[done_at:] if event["type"] == FIRST_AUDIO} == {following}


def test_the_turn_that_cut_a_reply_is_answered_without_being_asked():
    client = over_a_reply()
    client.say(TALK)
    client.until("response.created")
    assert client.model.saw[-1][-1].text == speech()[TALK].text
    assert isinstance(client.model.saw[-1][-2], AgentSaid)


def test_c005_a_reply_can_be_cut_before_its_first_audio():
    client = Client(settings=replace(EXACT, asked_answer_ms=(3000, 3000)))
    client.send("response.create")
    client.say(TALK)
    done = client.of("response.done")[0]["response"]
    assert (done["status"], done["output"]) == ("cancelled", [])
    assert not client.server.spoken


# --- asking for replies


def test_c098_a_second_reply_is_refused_while_one_is_open():
    client = over_a_reply()
    client.send("response.create", event_id="again")
    assert client.error()["code"] == "conversation_already_has_active_response"
    assert client.error()["event_id"] == "again"
    assert client.the("response.created")["response"]["id"] in client.error()["message"]


def test_a_request_while_the_caller_speaks_is_held_and_answered_with_the_turn():
    """Measured in 5 of 5 runs: one reply serves both."""
    client = Client(Says([Reply((Clip("pool"),))]))
    line = speech()["ask-check-in"].pcm
    client.play(line[:32_000])
    client.send("response.create")
    client.play(line[32_000:])
    assert not client.of("response.created", "error")
    client.until("response.done")
    client.wait(3000)
    assert len(client.of("response.created")) == 1
    assert client.model.saw[0][-1].text == speech()["ask-check-in"].text


def test_a_request_that_crosses_the_servers_own_reply_is_refused():
    client = Client()
    client.say(TALK)
    client.until("response.created")
    client.send("response.create", event_id="late")
    assert client.error()["event_id"] == "late"
    assert len(client.of("response.created")) == 1


def test_metadata_is_not_echoed():
    client = Client()
    client.send("response.create", response={"metadata": {"why": "test"}})
    assert "metadata" not in client.the("response.created")["response"]
    assert client.the("response.created").at_ms == client.now_ms


def test_without_create_response_a_turn_waits_to_be_answered():
    client = Client(is_ready=False)
    detection = {"type": "server_vad", "create_response": False}
    client.configure(audio={"input": {"format": {"type": "audio/pcmu"}, "turn_detection": detection}})
    client.wait(300)
    client.say(TALK)
    client.until("conversation.item.input_audio_transcription.completed")
    assert not client.of("response.created")
    client.send("response.create")
    assert client.until(FIRST_AUDIO)


def test_cancel_ends_the_open_response():
    client = over_a_reply()
    client.send("response.cancel")
    assert client.the("response.done")["response"]["status_details"]["reason"] == "client_cancelled"
    client.wait(1000)
    assert client.server.spoken[0].streamed_ms == 200 * len(client.of(FIRST_AUDIO))


def test_c016_a_cancel_that_comes_too_late_is_an_error_and_no_more():
    client = Client()
    client.send("response.cancel", event_id="stop")
    assert (client.error()["code"], client.error()["event_id"]) == ("response_cancel_not_active", "stop")
    client.send("response.create")
    client.send("response.cancel", response_id="resp_other")
    assert client.error()["code"] == "response_cancel_not_active"
    assert client.until("response.done")["response"]["status"] == "completed"


@pytest.mark.parametrize("asked", [{"conversation": "none"}, {"input": []}])
def test_replies_outside_the_history_are_not_supported(asked):
    client = Client()
    client.send("response.create", response=asked)
    assert client.error()["code"] == "unsupported_parameter"

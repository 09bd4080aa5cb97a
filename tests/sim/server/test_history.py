"""The conversation as clients see and change it: truncate, retrieve, create, delete."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.server.driving import EXACT, Client, Says, speech
from tests.sim.server.test_turns import FIRST_AUDIO, LONG, over_a_reply

from callwright.sim.models import AgentSaid, CallerSaid, Clip, Reply, SystemNote, ToolAnswered, ToolRequest
from callwright.sim.record import Truncation
from callwright.sim.server.history import History, Spoken, kept_words
from callwright.sim.server.speaking import render

POOL = Reply((Clip("pool"),))
CALL = Reply((), ToolRequest("look_up_booking", {"surname": "Okafor"}))


def after_a_reply(reply: Reply = POOL) -> tuple[Client, str]:
    """A client after a whole reply, and that reply's item."""
    client = Client(Says([reply]))
    client.send("response.create")
    client.until("response.done")
    return client, client.of(FIRST_AUDIO)[0]["item_id"]


def truncate(client: Client, item_id: str, end_ms: int, index: int = 0) -> None:
    client.send("conversation.item.truncate", event_id="cut", item_id=item_id, content_index=index, audio_end_ms=end_ms)


# --- truncate and retrieve


def test_a_truncate_keeps_the_words_before_it_and_marks_the_cut():
    """Every position, word by word: a word under the cut is kept when at least half of it lies before."""
    words = render(POOL.clips, speech(), 200).words
    for number, word in enumerate(words[:-1]):
        client, item_id = after_a_reply()
        half_ms = -(-(word.start_ms + word.end_ms) // 2)
        truncate(client, item_id, half_ms)
        assert client.text(item_id) == " ".join(w.text for w in words[: number + 1]) + "-"
        truncate(client, item_id, half_ms - 1)
        kept = " ".join(w.text for w in words[:number])
        assert client.text(item_id) == (f"{kept}-" if kept else "")


def test_a_cut_a_fraction_of_a_second_in_leaves_no_text():
    client, item_id = after_a_reply()
    truncate(client, item_id, 40)
    assert client.text(item_id) == ""
    assert client.server.history[0] == AgentSaid(item_id, "", is_cut=True)


def test_a_truncate_is_answered_and_recorded():
    client, item_id = after_a_reply()
    truncate(client, item_id, 800)
    answer = client.the("conversation.item.truncated")
    assert (answer["item_id"], answer["content_index"], answer["audio_end_ms"]) == (item_id, 0, 800)
    assert client.server.truncations == (Truncation(item_id, 800, client.now_ms, is_refused=False),)


def test_c001_a_truncate_past_the_audio_is_refused():
    client, item_id = after_a_reply()
    length_ms = client.server.spoken[0].audio_ms
    truncate(client, item_id, 55_960)
    assert client.error()["code"] == "invalid_value"
    assert client.error()["message"] == f"Audio content of {length_ms}ms is already shorter than 55960ms"
    assert client.error()["event_id"] == "cut"
    assert client.text(item_id) == speech()["pool"].text
    assert client.server.truncations[0].is_refused


def test_a_truncate_at_the_very_end_cuts_nothing():
    client, item_id = after_a_reply()
    truncate(client, item_id, client.server.spoken[0].audio_ms)
    assert client.text(item_id) == speech()["pool"].text


def test_a_truncate_only_ever_shortens():
    client, item_id = after_a_reply()
    truncate(client, item_id, 900)
    cut = client.text(item_id)
    truncate(client, item_id, 1500)
    assert client.error()["message"] == "Audio content of 900ms is already shorter than 1500ms"
    assert client.text(item_id) == cut


def test_a_truncate_after_the_servers_own_cut_goes_by_what_was_streamed():
    client = over_a_reply()
    client.say("ask-breakfast")
    (spoken,) = client.server.spoken
    truncate(client, spoken.item_id, spoken.streamed_ms + 1)
    assert client.error()["code"] == "invalid_value"
    truncate(client, spoken.item_id, 1500)
    assert client.text(spoken.item_id) == "Check in is from three in the-"


def test_a_truncate_of_a_reply_that_still_streams_changes_history_only():
    client = over_a_reply()
    item_id = client.of(FIRST_AUDIO)[0]["item_id"]
    truncate(client, item_id, 1500)
    done = client.until("response.done", limit_ms=30_000)["response"]
    assert done["status"] == "completed"
    assert client.server.spoken[0].streamed_ms == client.server.spoken[0].audio_ms
    assert client.text(item_id) == "Check in is from three in the-"


@pytest.mark.parametrize(
    ("item", "index", "end_ms", "code"),
    [
        ("item_nowhere", 0, 100, "item_truncate_invalid_item_id"),
        ("greeting", 0, 100, "unsupported_content_type"),
        ("spoken", 1, 100, "invalid_value"),
        ("spoken", 0, -1, "invalid_value"),
    ],
)
def test_c002_a_wrong_truncate_is_an_error_and_changes_nothing(item, index, end_ms, code):
    client, item_id = after_a_reply()
    greeting = {"id": "greeting", "type": "message", "role": "assistant"}
    client.send("conversation.item.create", item={**greeting, "content": [{"type": "output_text", "text": "Hello."}]})
    before = client.server.history
    truncate(client, item_id if item == "spoken" else item, end_ms, index)
    assert client.error()["code"] == code
    assert client.server.history == before
    client.say("ask-parking")
    assert client.until("response.done")["response"]["status"] == "completed"


def test_c010_a_truncate_with_a_decimal_or_without_fields_is_an_error():
    client, item_id = after_a_reply()
    truncate(client, item_id, 10.5)
    client.send("conversation.item.truncate", item_id=item_id)
    assert [event["error"]["code"] for event in client.of("error")] == ["invalid_event"] * 2


@given(cut_ms=st.integers(0, 6000))
def test_what_is_kept_is_a_beginning_of_the_words(cut_ms):
    words = render(LONG.clips, speech(), 200).words
    kept = kept_words(words, cut_ms)
    assert tuple(kept) == words[: len(kept)]
    assert all(word.end_ms <= cut_ms for word in kept[:-1])
    assert all(word.start_ms >= cut_ms for word in words[len(kept) + 1 :])


def test_history_is_cut_by_the_shortest_of_several_cuts():
    history = History(cut_suffix="-")
    spoken = Spoken("item_1", render(POOL.clips, speech(), 200), 0, 2000)
    history.speak(spoken)
    for end_ms in (900, 500, 700):
        history.cut("item_1", end_ms)
    assert spoken.kept_ms == 500


# --- items


def test_items_of_the_client_are_answered_and_seen_by_the_model():
    client = Client()
    note = {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Be brief."}]}
    typed = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Any parking?"}]}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]}
    for item in (said, note, typed):
        client.send("conversation.item.create", item=item)
    added = client.of("conversation.item.added")
    ids = [event["item"]["id"] for event in added]
    assert [event.get("previous_item_id") for event in added] == [None, *ids[:2]]
    assert client.kinds()[-2:] == ["conversation.item.added", "conversation.item.done"]
    expected = (AgentSaid(ids[0], "Hello."), SystemNote(ids[1], "Be brief."), CallerSaid(ids[2], "Any parking?"))
    assert client.server.history == expected
    assert client.text(ids[2]) == "Any parking?"
    client.send("response.create")
    assert client.model.saw == [expected]


def test_an_item_can_be_put_at_the_front_and_root_is_told_back():
    """The server tells "root", where a client said so, instead of null."""
    client = Client()
    for item_id, after in (("a", None), ("b", "root"), ("c", "b")):
        item = {"id": item_id, "type": "message", "role": "system", "content": []}
        client.send("conversation.item.create", item=item, previous_item_id=after)
    assert [item.item_id for item in client.server.history] == ["b", "c", "a"]
    assert [event.get("previous_item_id") for event in client.of("conversation.item.added")] == [None, "root", "b"]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "message", "role": "assistant", "content": [{"type": "output_audio", "transcript": "Hello."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": "AAAA"}]},
        {"type": "function_call", "name": "look_up_booking", "arguments": "no object", "call_id": "call_1"},
        {"type": "function_call", "name": "look_up_booking", "arguments": "{}"},
        {"type": "mcp_call", "server_label": "x", "name": "y", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": ""},
    ],
    ids=lambda item: f"{item['type']} {item.get('role', '')}",
)
def test_items_that_a_client_cannot_make_are_refused(item):
    client = Client()
    client.send("conversation.item.create", event_id="make", item=item)
    assert client.error()["event_id"] == "make"
    assert client.server.history == ()


def test_an_unknown_previous_item_and_a_taken_id_are_refused():
    client = Client()
    item = {"id": "a", "type": "message", "role": "system", "content": []}
    client.send("conversation.item.create", item=item, previous_item_id="nowhere")
    assert client.error()["param"] == "previous_item_id"
    client.send("conversation.item.create", item=item)
    client.send("conversation.item.create", item=item)
    assert client.error()["param"] == "item.id"
    assert len(client.server.history) == 1


def test_c093_a_tools_output_enters_history_and_no_speech_follows():
    client = Client(Says([CALL, POOL]))
    client.send("response.create")
    call = client.until("response.function_call_arguments.done")
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": '{"room": 214}'}
    client.send("conversation.item.create", item=output)
    client.wait(2000)
    assert len(client.of("response.created")) == 1
    answered = client.server.history[-1]
    assert isinstance(answered, ToolAnswered)
    assert (answered.tool_call_id, answered.output) == (call["call_id"], '{"room": 214}')
    client.send("response.create")
    assert client.until(FIRST_AUDIO)


def test_c077_a_second_output_of_a_call_is_refused():
    client = Client(Says([CALL, POOL]))
    client.send("response.create")
    call = client.until("response.function_call_arguments.done")
    for _ in range(2):
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "{}"}
        client.send("conversation.item.create", item=output)
    assert client.error()["code"] == "invalid_tool_call_id"
    assert sum(isinstance(item, ToolAnswered) for item in client.server.history) == 1


def test_delete_removes_an_item_from_what_the_model_sees():
    client, item_id = after_a_reply()
    client.send("conversation.item.delete", item_id=item_id)
    assert client.the("conversation.item.deleted")["item_id"] == item_id
    assert client.server.history == ()
    for kind in ("delete", "retrieve"):
        client.send(f"conversation.item.{kind}", event_id=kind, item_id=item_id)
        assert client.error()["code"] == f"item_{kind}_invalid_item_id"
        assert client.error()["event_id"] == kind


def test_deleting_a_reply_while_it_streams_leaves_the_stream_alone():
    client = over_a_reply(replace(EXACT, cancelled_first_rate=0))
    client.send("conversation.item.delete", item_id=client.of(FIRST_AUDIO)[0]["item_id"])
    client.say("ask-breakfast")
    assert client.of("response.done")[0]["response"]["status"] == "cancelled"
    assert not any(isinstance(item, AgentSaid) for item in client.server.history)


def test_a_callers_turn_can_be_retrieved():
    client = Client()
    client.say("ask-parking")
    item_id = client.until("input_audio_buffer.committed")["item_id"]
    assert client.text(item_id) == speech()["ask-parking"].text

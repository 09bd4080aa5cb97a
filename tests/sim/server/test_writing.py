"""Where a session asks for text the server writes, and believes what the client reports of its own voice."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from tests.sim.server.driving import EXACT, Client, Says, speech
from tests.sim.server.test_dialects import OPENAI, PLAIN
from tests.sim.server.test_replies import HOLDING, TALK
from tests.sim.server.test_turns import LONG, STARTED, TRANSCRIBED

from callwright.sim.models import AgentSaid, Reply, ToolRequested
from callwright.sim.server import ServerSettings

WRITTEN = replace(EXACT, text_done_ms=(40, 40))
SETTINGS = {"polyai": WRITTEN, "openai": OPENAI, "plain": PLAIN}
DELTA, TEXT, DONE = "response.output_text.delta", "response.output_text.done", "response.done"
CALL = "response.function_call_arguments.done"


def client_of(*replies: Reply, settings: ServerSettings = WRITTEN) -> Client:
    client = Client(Says(replies or (LONG,)), settings, is_ready=False)
    client.configure(output_modalities=["text"])
    client.wait(300)
    assert client.the("session.updated")["session"]["output_modalities"] == ["text"]
    return client


def written(*replies: Reply, settings: ServerSettings = WRITTEN) -> tuple[Client, dict[str, Any], str]:
    """A client to whom a reply was written: its response and text."""
    client = client_of(*replies, settings=settings)
    client.say("ask-wifi")
    response = client.until(DONE)["response"]
    return client, response, client.of(TEXT)[-1]["text"]


def report(client: Client, kind: str, response: dict[str, Any], **fields: Any) -> None:
    client.send(f"poly.output_audio.{kind}", event_id=kind, response_id=response["id"], **fields)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_reply_is_written_word_by_word_and_never_spoken(name: str) -> None:
    client, response, text = written(settings=SETTINGS[name])
    pieces = [event["delta"] for event in client.of(DELTA)]
    assert "".join(pieces) == text == " ".join(speech()[clip.line_id].text for clip in LONG.clips)
    assert len(pieces) == len(text.split())
    assert not [kind for kind in client.kinds(but="") if "audio" in kind and kind.startswith("response.")]
    assert response["output_modalities"] == ["text"]
    if name != "plain":
        assert client.text(response["output"][0]["id"]) == text


def test_the_first_text_comes_when_it_was_measured_and_the_rest_at_the_models_pace() -> None:
    client, _, _ = written()
    times = [event.at_ms for event in client.of(DELTA)]
    mark_ms = client.of("input_audio_buffer.speech_stopped")[-1].at_ms - 95
    assert times[0] - mark_ms == 390
    assert {later - at_ms for at_ms, later in pairwise(times)} == {20}
    assert client.the(DONE).at_ms - times[-1] == 40


def test_c137_the_callers_words_come_behind_the_text_and_before_the_end_of_the_response() -> None:
    client, _, _ = written()
    kinds = client.kinds()
    assert kinds.index(TEXT) < kinds.index(TRANSCRIBED) < kinds.index(DONE)


def test_a_call_stands_behind_an_empty_text_and_has_its_argument_alone() -> None:
    client, response, text = written(HOLDING)
    assert text == ""
    assert not client.of(DELTA)
    assert client.kinds().index(TEXT) < client.kinds().index(CALL)
    assert [item["type"] for item in response["output"]] == ["message", "function_call"]
    (_, said, called) = client.server.history
    assert isinstance(said, AgentSaid)
    assert isinstance(called, ToolRequested)
    assert client.server.spoken[0].item_id == said.item_id == response["output"][0]["id"]
    assert said.text  # the model knows what it wants said


def test_a_dialect_without_spoken_arguments_writes_the_line_before_the_call() -> None:
    _, response, text = written(HOLDING, settings=OPENAI)
    assert text
    assert [item["type"] for item in response["output"]] == ["message", "function_call"]


def test_one_response_may_be_written_in_a_session_that_speaks() -> None:
    client = Client(Says([LONG]), OPENAI)
    client.send("response.create", response={"output_modalities": ["text"]})
    assert client.until(DONE)["response"]["output_modalities"] == ["text"]
    client.send("response.create")
    client.until("response.output_audio.delta")


def test_what_is_neither_is_refused() -> None:
    client = client_of()
    client.configure(output_modalities=["text", "audio"])
    assert (client.error()["code"], client.error()["param"]) == ("invalid_value", "session.output_modalities")


# --- reports


@pytest.mark.parametrize(
    ("kinds", "wait_ms", "is_over_reply"),
    [
        ((), 0, False),
        (("started",), 2_000, True),
        (("started", "delta"), 2_000, True),
        (("started",), 4_000, False),
        (("started", "stopped"), 500, False),
    ],
)
def test_somebody_who_speaks_is_judged_as_over_a_reply_while_reports_say_that_it_is_audible(
    kinds: tuple[str, ...], wait_ms: int, is_over_reply: bool
) -> None:
    client, response, text = written()
    for kind in kinds:
        report(client, kind, response, **FIELDS[kind](text))
        client.wait(wait_ms)
    begun_ms = client.say(TALK)
    told_ms = client.of(STARTED)[-1].at_ms - begun_ms
    assert (700 < told_ms < 800) if is_over_reply else told_ms < 300  # by kind of sound, or by voice alone
    assert len(client.server.confirmations) == is_over_reply
    assert not client.of("error")


FIELDS: dict[str, Any] = {
    "started": lambda text: {},
    "delta": lambda text: {"audio_ms": 1_000, "delta": "one"},
    "stopped": lambda text: {"audio_ms": 9_000, "dropped_ms": 0, "spoken_text": text},
}


def test_history_keeps_what_was_heard_with_a_hyphen() -> None:
    client, response, text = written()
    heard = " ".join(text.split()[:5])
    item_id = response["output"][0]["id"]
    report(client, "started", response)
    report(client, "stopped", response, audio_ms=1_500, dropped_ms=3_000, spoken_text=heard)
    assert client.text(item_id) == f"{heard}-"
    assert client.server.history[-1] == AgentSaid(item_id, f"{heard}-", is_cut=True)
    (cut,) = client.server.truncations
    assert (cut.item_id, cut.audio_end_ms, cut.is_refused) == (item_id, 1_500, False)


def test_a_reply_that_was_heard_whole_stays_whole() -> None:
    client, response, text = written()
    report(client, "stopped", response, audio_ms=9_000, dropped_ms=0, spoken_text=text)
    assert client.text(response["output"][0]["id"]) == text
    assert not client.server.truncations


def test_a_reply_of_which_nothing_was_heard_is_empty() -> None:
    client, response, _ = written()
    report(client, "stopped", response, audio_ms=0, dropped_ms=4_000, spoken_text="")
    assert client.text(response["output"][0]["id"]) == ""


def test_a_report_only_ever_shortens() -> None:
    client, response, text = written()
    for heard in (" ".join(text.split()[:3]), text):
        report(client, "stopped", response, audio_ms=900, dropped_ms=1, spoken_text=heard)
    assert client.text(response["output"][0]["id"]) == f"{' '.join(text.split()[:3])}-"


def test_a_text_that_is_cut_while_it_is_written_ends_there() -> None:
    client = client_of()
    client.say("ask-wifi")
    client.until(DELTA)
    client.advance(100)
    client.send("response.cancel")
    response = client.the(DONE)["response"]
    assert response["status"] == "cancelled"
    text = client.the(TEXT)["text"]
    assert text == "".join(event["delta"] for event in client.of(DELTA))
    assert len(text.split()) < 10
    assert response["output"][0]["status"] == "incomplete"
    assert client.text(response["output"][0]["id"]) == f"{text}-"


def test_a_report_of_a_reply_that_was_not_written_is_refused_and_changes_nothing() -> None:
    client = Client(Says([LONG]))
    client.say("ask-wifi")
    response = client.until("response.created")["response"]
    report(client, "started", response)
    assert (client.error()["code"], client.error()["event_id"]) == ("invalid_value", "started")


@pytest.mark.parametrize("name", ["openai", "plain"])
def test_only_polyai_takes_reports(name: str) -> None:
    client, response, _ = written(settings=SETTINGS[name])
    report(client, "started", response)
    assert client.error()["event_id"] == "started"


def test_a_written_reply_has_no_audio_to_truncate() -> None:
    client, response, _ = written()
    item_id = response["output"][0]["id"]
    client.send("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=0)
    assert client.error()["code"] == "unsupported_content_type"


def test_what_is_put_in_the_place_of_a_reply_counts_as_that_reply_in_the_record() -> None:
    client, response, text = written(settings=OPENAI)
    item_id = response["output"][0]["id"]
    heard = f"{' '.join(text.split()[:4])}-"
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": heard}]}
    client.send("conversation.item.create", item=item, previous_item_id=item_id)
    client.send("conversation.item.delete", item_id=item_id)
    assert client.server.history[-1] == AgentSaid(item_id, heard)
    (cut,) = client.server.truncations
    assert cut.audio_end_ms == client.server.spoken[0].words[3].end_ms
    client.say(TALK)
    client.until(DONE)
    assert [item.text for item in client.model.saw[-1] if isinstance(item, AgentSaid)] == [heard]


def test_a_reply_that_is_taken_out_was_not_heard() -> None:
    client, response, _ = written(settings=OPENAI)
    client.send("conversation.item.delete", item_id=response["output"][0]["id"])
    assert [cut.audio_end_ms for cut in client.server.truncations] == [0]

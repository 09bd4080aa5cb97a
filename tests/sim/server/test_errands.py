"""A session without ears and model of its own: what it asks for, and what becomes of an answer that takes its time."""

from __future__ import annotations

import base64
import random
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.server.driving import EXACT, Client, Heard, ear, speech

from callwright.audio.formats import PCM16_24K
from callwright.ids import ItemId, Ms
from callwright.sim.models import AgentSaid, CallerSaid, ToolRequest
from callwright.sim.server import ServerSession, ServerSettings
from callwright.sim.server.errands import DropReply, Errand, Failed, HearWords, Made, MakeReply, Piece
from callwright.sim.server.speaking import Utterance
from callwright.sim.speech import PER_MS, Word

QUICK = replace(EXACT, done_after_ms=(436, 436))


class Open(Client):
    """Drives a session whose errands the test runs."""

    def __init__(self, settings: ServerSettings = QUICK) -> None:
        super().__init__(settings=settings, is_ready=False, audio_format=PCM16_24K)
        self.server = ServerSession(None, {}, ear(), random.Random(1), settings)
        self.server.connect(0)
        self.configure()
        self.wait(300)
        self.run: list[Errand] = []

    def errand(self, kind: type[Errand]) -> Errand:
        """The only new errand, which is of this kind."""
        (errand,) = new = self.server.errands()
        assert isinstance(errand, kind), new
        return errand

    def turn(self, line_id: str = "thank-you") -> HearWords:
        """A turn of the caller's, up to its end."""
        self.say(line_id)
        self.until("response.created")
        errand = self.errand(HearWords)
        assert isinstance(errand, HearWords)
        return errand

    def asked(self, text: str = "Thank you.") -> MakeReply:
        """A turn that has got its words."""
        self.server.take_words(self.turn().item_id, text, self.now_ms)
        self.collect()
        errand = self.errand(MakeReply)
        assert isinstance(errand, MakeReply)
        return errand

    def done(self) -> Heard:
        """The response's end, which may have come."""
        return self.of("response.done")[-1] if self.of("response.done") else self.until("response.done")

    def part(self, made: MakeReply, part: Piece | ToolRequest | Made | Failed) -> None:
        self.server.take_part(made.response_id, part, self.now_ms)
        self.collect()

    def streamed(self) -> bytes:
        return b"".join(self.decoded(event) for event in self.of("response.output_audio.delta"))

    @staticmethod
    def decoded(event: Heard) -> bytes:
        return base64.b64decode(event["delta"])


@cache
def piece(ms: Ms, text: str = "one two") -> Piece:
    """Noise of this length, each word of which takes the same time."""
    words = text.split()
    each = ms // len(words)
    pcm = np.random.default_rng(ms).integers(-9_000, 9_000, ms * PER_MS).astype(np.int16)
    return Piece(pcm, tuple(Word(word, n * each, (n + 1) * each) for n, word in enumerate(words)))


def said(client: Open) -> list[str]:
    return [item.text for item in client.server.history if isinstance(item, AgentSaid)]


def test_a_response_opens_when_the_turn_is_over_and_is_asked_for_once_its_words_are_known() -> None:
    client = Open()
    heard = client.turn()
    assert len(heard.audio) / PER_MS > speech()["thank-you"].ms
    assert client.server.errands() == []
    client.wait(500)
    client.server.take_words(heard.item_id, "Thank you.", client.now_ms)
    client.collect()
    assert client.the("conversation.item.input_audio_transcription.completed")["transcript"] == "Thank you."
    made = client.errand(MakeReply)
    assert isinstance(made, MakeReply)
    assert made.response_id == client.the("response.created")["response"]["id"]
    assert made.history == (CallerSaid(heard.item_id, "Thank you."),)
    assert not made.by_client
    assert client.server.errands() == []


def test_the_errand_has_the_session_as_it_was_configured_and_what_was_asked() -> None:
    client = Open()
    client.configure(instructions="Be brief.", tools=[{"type": "function", "name": "look_up"}])
    client.send("response.create", response={"instructions": "Say hello."})
    made = client.errand(MakeReply)
    assert isinstance(made, MakeReply)
    assert made.session.instructions == "Be brief."
    assert made.session.tools == ({"type": "function", "name": "look_up"},)
    assert made.asked.instructions == "Say hello."
    assert made.by_client


def test_a_request_waits_for_the_words_of_the_turn_before_it() -> None:
    client = Open()
    heard = client.turn()
    client.send("response.cancel")
    client.send("response.create")
    assert client.server.errands() == []
    client.server.take_words(heard.item_id, "Thank you.", client.now_ms)
    made = client.errand(MakeReply)
    assert isinstance(made, MakeReply)
    assert [item for item in made.history if isinstance(item, CallerSaid)] == [CallerSaid(heard.item_id, "Thank you.")]


def test_pieces_that_come_in_time_are_one_stream_and_one_text() -> None:
    client = Open()
    made = client.asked()
    began_ms = client.now_ms
    client.part(made, piece(900))
    client.wait(400)
    client.part(made, piece(710, "three four"))
    client.part(made, Made())
    done = client.done()
    chunks = client.of("response.output_audio.delta")
    assert chunks[0].at_ms == began_ms
    ends = [sum(len(client.decoded(each)) for each in chunks[: n + 1]) / 48 for n in range(len(chunks))]
    ahead = [end - (each.at_ms - began_ms) for end, each in zip(ends, chunks, strict=True)]
    assert all(100 <= each <= 500 for each in ahead[:-1])
    assert len(client.streamed()) == (900 + 710) * PCM16_24K.bytes_per_ms
    assert client.the("response.output_audio_transcript.done")["transcript"] == "one two three four"
    assert done["response"]["status"] == "completed"
    assert done.at_ms == chunks[-1].at_ms + 436
    assert said(client) == ["one two three four"]
    assert client.text(client.server.history[-1].item_id) == "one two three four"


def test_a_piece_that_comes_late_leaves_at_once_and_is_no_further_ahead_than_any() -> None:
    client = Open()
    made = client.asked()
    client.part(made, piece(400))
    client.wait(3_000)
    before, late_ms = len(client.of("response.output_audio.delta")), client.now_ms
    client.part(made, piece(2_000, "three four"))
    client.part(made, Made())
    client.done()
    late = client.of("response.output_audio.delta")[before:]
    assert late[0].at_ms == late_ms
    assert all((n + 1) * 200 - (each.at_ms - late_ms) <= 500 for n, each in enumerate(late))
    assert len(client.streamed()) == 2_400 * PCM16_24K.bytes_per_ms


def test_a_caller_who_goes_on_while_it_is_made_drops_it() -> None:
    client = Open()
    made = client.asked()
    client.say("ask-pool")
    assert client.of("response.done")[0]["response"]["status"] == "cancelled"
    assert DropReply(made.response_id) in client.server.errands()
    client.part(made, piece(500))
    client.part(made, Made())
    assert not client.streamed()
    assert said(client) == []


def test_of_a_reply_that_is_cut_while_it_grows_history_keeps_what_had_left() -> None:
    client = Open()
    made = client.asked()
    client.part(made, piece(4_000, "one two three four"))
    client.say("ask-pool")
    done = client.done()
    assert done["response"]["status"] == "cancelled"
    left_ms = len(client.streamed()) / PCM16_24K.bytes_per_ms
    client.part(made, piece(4_000, "five six seven eight"))
    whole = sum(1 for n in range(4) if n * 1_000 + 500 <= left_ms)
    assert said(client) == [" ".join(["one", "two", "three", "four"][:whole]) + "-"]
    assert len(client.streamed()) / PCM16_24K.bytes_per_ms == left_ms


def test_words_that_come_after_the_next_turn_began_are_in_history_and_one_reply_answers_both() -> None:
    client = Open()
    first = client.turn()
    second = client.turn("ask-pool") if client.server.errands() == [] else None
    assert second is not None
    client.server.take_words(second.item_id, "Where is the pool?", client.now_ms)
    assert client.server.errands() == []
    client.server.take_words(first.item_id, "Thank you.", client.now_ms)
    made = client.errand(MakeReply)
    assert isinstance(made, MakeReply)
    assert [item.text for item in made.history if isinstance(item, CallerSaid)] == ["Thank you.", "Where is the pool?"]


def test_words_of_a_turn_that_was_deleted_meanwhile_change_nothing() -> None:
    client = Open()
    heard = client.turn()
    client.send("conversation.item.delete", item_id=heard.item_id)
    client.server.take_words(heard.item_id, "Thank you.", client.now_ms)
    assert client.server.history == ()


@pytest.mark.parametrize(("dialect", "at_once"), [("polyai", True), ("plain", False)])
def test_a_call_goes_out_at_once_where_its_argument_is_spoken_and_else_behind_the_speech(
    dialect: str, at_once: bool
) -> None:
    client = Open(replace(ServerSettings.for_dialect(dialect), done_after_ms=(400, 400), stop_told_ms=(95, 95)))
    made = client.asked()
    client.part(made, ToolRequest("look_up", {"nights": 2, "holding": "One moment."}))
    client.part(made, piece(900))
    client.part(made, Made())
    assert bool(client.of("response.function_call_arguments.done")) is at_once
    done = client.done()
    call = client.the("response.function_call_arguments.done")
    assert call["arguments"] == '{"nights":2,"holding":"One moment."}'
    assert call.at_ms <= done.at_ms
    kinds = [item["type"] for item in done["response"]["output"]]
    assert kinds == (["function_call", "message"] if at_once else ["message", "function_call"])
    assert [each.tool for each in client.server.spoken] == ["look_up"]


def test_several_calls_of_one_reply_are_all_issued() -> None:
    client = Open()
    made = client.asked()
    for name in ("first", "second"):
        client.part(made, ToolRequest(name, {}))
    client.part(made, Made())
    done = client.done()
    assert [item["name"] for item in done["response"]["output"]] == ["first", "second"]


def test_a_reply_of_which_nothing_comes_has_failed_and_says_why() -> None:
    client = Open()
    made = client.asked()
    client.part(made, Failed("unreachable", "http://127.0.0.1:9: cannot connect"))
    done = client.done()
    assert done["response"]["status"] == "failed"
    assert done["response"]["status_details"]["error"]["code"] == "unreachable"
    assert client.asked("Hello?").history[-1] == CallerSaid(ItemId(client.server.history[-1].item_id), "Hello?")


def test_what_was_made_before_it_failed_is_given_out() -> None:
    client = Open()
    made = client.asked()
    client.part(made, piece(1_500))
    client.part(made, Failed("broken", "the answer broke off"))
    done = client.done()
    assert done["response"]["status"] == "failed"
    assert len(client.streamed()) == 1_500 * PCM16_24K.bytes_per_ms
    assert said(client) == ["one two"]


def test_a_reply_of_nothing_is_completed() -> None:
    client = Open()
    made = client.asked("")
    client.part(made, Made())
    assert client.the("response.done")["response"]["status"] == "completed"


@pytest.mark.parametrize("modality", ["audio", "text"])
def test_a_response_outside_the_history_comes_whole_once_it_is_made(modality: str) -> None:
    client = Open(replace(ServerSettings.for_dialect("openai"), stop_told_ms=(95, 95)))
    asked = {"conversation": "none", "output_modalities": [modality], "metadata": {"for": "me"}}
    for number, end in enumerate((Made(), Failed("broken", "it broke off"))):
        client.send("response.create", response=asked)
        made = client.errand(MakeReply)
        assert isinstance(made, MakeReply)
        client.part(made, piece(500))
        client.part(made, ToolRequest("look_up", {}))
        assert len(client.of("response.done")) == number
        client.part(made, end)
        done = client.of("response.done")[number]["response"]
        assert done["status"] == ("failed" if number else "completed")
        assert [item["type"] for item in done["output"]] == ["message", "function_call"]
    assert client.server.history == ()


def test_a_response_outside_the_history_can_be_cancelled_while_it_is_made() -> None:
    client = Open(ServerSettings.for_dialect("openai"))
    client.send("response.create", response={"conversation": "none"})
    made = client.errand(MakeReply)
    assert isinstance(made, MakeReply)
    client.send("response.cancel", response_id=made.response_id)
    assert client.errand(DropReply) == DropReply(made.response_id)
    client.part(made, piece(500))
    assert client.the("response.done")["response"]["status"] == "cancelled"


def test_a_reply_to_a_client_with_a_voice_of_its_own_is_written_as_it_is_made() -> None:
    client = Open()
    client.configure(output_modalities=["text"])
    made = client.asked()
    client.part(made, piece(900))
    assert [event["delta"] for event in client.of("response.output_text.delta")] == ["one", " two"]
    client.wait(400)
    client.part(made, piece(700, "three"))
    client.part(made, Made())
    done = client.done()
    assert not client.streamed()
    assert client.the("response.output_text.done")["text"] == "one two three"
    assert done["response"]["output"][0]["content"][0]["text"] == "one two three"
    assert said(client) == ["one two three"]


def test_a_spoken_argument_is_not_written_besides_its_call() -> None:
    client = Open()
    client.configure(output_modalities=["text"])
    made = client.asked()
    client.part(made, ToolRequest("look_up", {"holding": "One moment."}))
    client.part(made, piece(600, "One moment."))
    client.part(made, Made())
    assert client.done()["response"]["status"] == "completed"
    assert client.the("response.function_call_arguments.done")["arguments"] == '{"holding":"One moment."}'
    assert not client.of("response.output_text.delta")


def test_of_a_written_reply_that_is_cut_while_it_grows_history_keeps_what_the_client_says() -> None:
    client = Open()
    client.configure(output_modalities=["text"])
    made = client.asked()
    client.part(made, piece(4_000, "one two three four"))
    client.wait(200)
    client.send("poly.output_audio.started", response_id=made.response_id)
    client.say("ask-pool")
    assert client.done()["response"]["status"] == "cancelled"
    assert DropReply(made.response_id) in client.server.errands()
    stopped = {"audio_ms": 900, "dropped_ms": 3_100, "spoken_text": "one two"}
    client.send("poly.output_audio.stopped", response_id=made.response_id, **stopped)
    assert said(client) == ["one two-"]


def test_nothing_is_taken_by_a_session_that_is_over() -> None:
    client = Open()
    made = client.asked()
    client.server.disconnect(client.now_ms)
    client.part(made, piece(500))
    client.server.take_words(ItemId("gone"), "Hello.", client.now_ms)
    assert not client.streamed()


@given(st.lists(st.tuples(st.integers(0, 2_000), st.integers(1, 1_500)), min_size=1, max_size=5))
def test_every_piece_leaves_once_in_order_and_never_far_ahead_of_a_player(pieces: list[tuple[Ms, Ms]]) -> None:
    """Each comes so long after the one before it, and is so long; the player starts anew where it ran dry."""
    client = Open()
    client.send("response.create")
    made = client.errand(MakeReply)
    assert isinstance(made, MakeReply)
    for wait_ms, length_ms in pieces:
        client.advance(wait_ms)
        client.part(made, piece(length_ms))
    client.part(made, Made())
    client.advance(20_000)
    told = [piece(length_ms) for _, length_ms in pieces]
    sound = [Utterance.of(each.pcm, each.words, PCM16_24K).audio for each in told]
    assert client.streamed() == b"".join(sound)
    played_to_ms = 0.0
    for chunk in client.of("response.output_audio.delta"):
        played_to_ms = max(played_to_ms, chunk.at_ms) + len(client.decoded(chunk)) / PCM16_24K.bytes_per_ms
        assert played_to_ms - chunk.at_ms <= 500
    assert client.the("response.done").at_ms >= chunk.at_ms


_PARTS = st.one_of(
    st.builds(lambda ms: ("part", piece(ms)), st.integers(1, 1_500)),
    st.just(("part", ToolRequest("look_up", {"holding": "One moment."}))),
    st.just(("part", Made())),
    st.just(("part", Failed("broken", "it broke off"))),
)
_WHAT = st.one_of(
    _PARTS,
    st.sampled_from([("create", None), ("outside", None), ("cancel", None), ("delete", None), ("text", None)]),
    st.builds(lambda ms: ("truncate", ms), st.integers(0, 2_000)),
    st.builds(lambda ms: ("wait", ms), st.integers(0, 1_500)),
)


@pytest.mark.parametrize("dialect", ["polyai", "openai", "plain"])
@given(st.lists(_WHAT, max_size=20))
def test_whatever_comes_when_every_response_is_opened_and_ended_once(dialect: str, what: list[tuple[str, Any]]) -> None:
    client = Open(ServerSettings.for_dialect(dialect))
    wanted: dict[str, MakeReply] = {}
    for kind, with_it in what:
        match kind:
            case "part":
                for made in list(wanted.values()):
                    client.part(made, with_it)
            case "wait":
                client.advance(with_it)
            case "create":
                client.send("response.create")
            case "outside":
                client.send("response.create", response={"conversation": "none"})
            case "cancel":
                client.send("response.cancel")
            case "text":
                client.configure(output_modalities=["text"])
            case _:
                for item in client.server.history[-1:]:
                    more = {"content_index": 0, "audio_end_ms": with_it} if kind == "truncate" else {}
                    client.send(f"conversation.item.{kind}", item_id=item.item_id, **more)
        for errand in client.server.errands():
            if isinstance(errand, MakeReply):
                wanted[errand.response_id] = errand
            elif isinstance(errand, DropReply):
                del wanted[errand.response_id]
    for made in wanted.values():
        client.part(made, Made())
    client.advance(30_000)
    opened = [event["response"]["id"] for event in client.of("response.created")]
    assert sorted(opened) == sorted(event["response"]["id"] for event in client.of("response.done"))
    assert len(set(opened)) == len(opened)
    assert not [code for event in client.of("error") if (code := event["error"]["code"]) == "server_error"]

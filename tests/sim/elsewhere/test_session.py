"""What the wire shows of a server that is not ours: by messages made by hand, and beside our own server's book."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from callwright.audio.formats import AudioFormat, Encoding
from callwright.ids import ItemId, ToolCallId
from callwright.sim.elsewhere.session import JUST_CUT_MS, WireSession
from callwright.sim.models import AgentSaid, CallerSaid, HistoryItem, SystemNote, ToolAnswered, ToolRequested
from callwright.sim.record import Truncation
from callwright.wire import client, items, server
from callwright.wire.codec import decode_client, decode_server, encode
from callwright.wire.objects import ErrorDetail, Response
from callwright.wire.profiles import OPENAI, PLAIN, POLYAI, Profile

PIECE = (np.sin(np.arange(200 * 24) / 9) * 8_000).astype("<i2").tobytes()
"""200 ms of sound as a server sends it."""


LINE = AudioFormat(Encoding.PCM16, 8_000)


@dataclass
class Wire:
    """One connection by hand: what each side says on it, and when."""

    profile: Profile = POLYAI
    now_ms: int = 0
    is_over: bool = True
    pace: float = 48.0
    line_format: AudioFormat = LINE
    session: WireSession = field(init=False)
    aloud: dict[str, tuple[str, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self.aloud = {"look_up": ("holding",)}
        self.session = WireSession(self.profile, self)

    def told(self, *events: server.ServerEvent, after_ms: int = 0) -> Wire:
        self.now_ms += after_ms
        for event in events:
            self.session.heard(event)
        return self

    def sent(self, *events: client.ClientEvent, after_ms: int = 0) -> Wire:
        self.now_ms += after_ms
        for event in events:
            self.session.sent(encode(event))
        return self

    def reply(self, item_id: str, text: str, status: str = "completed", *, pieces: int = 5) -> Wire:
        """A whole response of one spoken item."""
        for _ in range(pieces):
            self.told(audio(item_id), after_ms=200)
        return self.told(written(item_id, text), done(item_id, status))

    @property
    def asked(self) -> list[client.ClientEvent]:
        return [decode_client(question) for question in self.session.questions]


def audio(item_id: str) -> server.ServerEvent:
    return server.ResponseOutputAudioDelta(response_id=f"response of {item_id}", item_id=item_id, delta=PIECE)


def written(item_id: str, text: str) -> server.ServerEvent:
    return server.ResponseOutputAudioTranscriptDone(
        response_id=f"response of {item_id}", item_id=item_id, transcript=text
    )


def done(item_id: str, status: str = "completed", *output: items.Item) -> server.ServerEvent:
    return server.ResponseDone(response=Response(id=f"response of {item_id}", status=status, output=output or None))


def called(item_id: str, response_of: str, name: str | None = "look_up") -> server.ServerEvent:
    return server.ResponseFunctionCallArgumentsDone(
        response_id=f"response of {response_of}", item_id=item_id, call_id="c1", name=name, arguments='{"n": 1}'
    )


def message(item_id: str, text: str | None, status: str | None = None) -> items.MessageItem:
    parts = () if text is None else (items.ContentPart(type="output_audio", transcript=text),)
    return items.MessageItem(id=item_id, role="assistant", status=status, content=parts)


def retrieved(item_id: str, text: str | None) -> server.ServerEvent:
    return server.ConversationItemRetrieved(item=message(item_id, text))


def refused(event_id: str) -> server.ServerEvent:
    return server.ErrorEvent(error=ErrorDetail(code="invalid_value", event_id=event_id))


def truncate(item_id: str, end_ms: int, event_id: str = "e1") -> client.ClientEvent:
    return client.ConversationItemTruncate(event_id=event_id, item_id=item_id, content_index=0, audio_end_ms=end_ms)


def text(session: WireSession) -> Sequence[str]:
    return [item.text for item in session.history if isinstance(item, AgentSaid)]


# --- replies


def test_a_reply_is_its_audio_its_whole_text_and_the_tool_of_its_response() -> None:
    wire = Wire(now_ms=1_000).told(audio("a")).told(called("t", "a"), after_ms=46).reply("a", "Hello there.", pieces=4)
    (spoken,) = wire.session.spoken
    assert (spoken.item_id, spoken.started_ms, spoken.tool) == ("a", 1_000, "look_up")
    assert (spoken.streamed_ms, spoken.audio_ms, [word.text for word in spoken.words]) == (
        1_000,
        1_000,
        ["Hello", "there."],
    )
    assert spoken.sound is not None
    assert (spoken.sound.is_whole, spoken.sound.samples.tobytes()) == (True, PIECE * 5)


@pytest.mark.parametrize("is_call_first", [True, False])
def test_a_tool_is_known_from_its_call_on_before_or_after_the_audio(is_call_first: bool) -> None:
    told = [called("t", "a"), audio("a")]
    wire = Wire().told(*(told if is_call_first else told[::-1]))
    assert [spoken.tool for spoken in wire.session.spoken] == ["look_up"]


def test_the_name_of_a_tool_may_have_come_with_the_beginning_of_its_item_only() -> None:
    begun = server.ResponseOutputItemAdded(
        response_id="response of a", item=items.FunctionCallItem(id="t", name="look_up")
    )
    assert Wire().told(audio("a"), begun, called("t", "a", None)).session.spoken[0].tool == "look_up"


def test_a_text_that_comes_in_pieces_only_is_put_together() -> None:
    wire = Wire().told(audio("a"))
    for piece in ("It is", " done."):
        wire.told(server.ResponseOutputAudioTranscriptDelta(response_id="response of a", item_id="a", delta=piece))
    assert [word.text for word in wire.session.spoken[0].words] == ["It", "is", "done."]


def test_a_text_that_comes_with_the_end_of_the_response_only_is_taken_from_there() -> None:
    wire = Wire().told(audio("a"), done("a", "completed", message("a", "It is done.")))
    assert text(wire.session) == ["It is done."]


def test_a_cancelled_reply_has_more_text_than_audio() -> None:
    (spoken,) = Wire().reply("a", "This is much longer than a second of it.", "cancelled").session.spoken
    assert spoken.streamed_ms == 1_000
    assert spoken.audio_ms > 1_500


def test_an_item_that_was_completed_is_whole_in_a_response_that_was_cancelled() -> None:
    wire = Wire().told(audio("a"), done("a", "cancelled", message("a", "Yes.", "completed")))
    assert wire.session.unknown == ()
    assert wire.session.spoken[0].audio_ms == 200


def test_a_reply_that_the_connection_ends_in_is_cut() -> None:
    wire = Wire().told(audio("a"))
    wire.session.closed()
    assert wire.session.unknown == ("a",)


# --- history


def test_history_has_what_was_said_called_and_answered_in_the_order_of_its_first_sight() -> None:
    wire = Wire().told(server.InputAudioBufferSpeechStarted(item_id="q", audio_start_ms=0))
    wire.told(server.InputAudioBufferSpeechStopped(item_id="q", audio_end_ms=900))
    wire.told(audio("a"), called("t", "a"))
    wire.told(server.ConversationItemInputAudioTranscriptionCompleted(item_id="q", transcript=" Where is it? "))
    wire.told(written("a", "One moment."), done("a"))
    wire.sent(client.ConversationItemCreate(item=items.FunctionCallOutputItem(call_id="c1", output="{}")))
    note = items.MessageItem(role="system", content=(items.ContentPart(type="input_text", text="It is so."),))
    wire.sent(client.ConversationItemCreate(item=note))
    expected: list[HistoryItem] = [
        CallerSaid(ItemId("q"), "Where is it?"),
        AgentSaid(ItemId("a"), "One moment."),
        ToolRequested(ItemId("t"), ToolCallId("c1"), "look_up", {"n": "1"}),
        ToolAnswered(ItemId("posted 1"), ToolCallId("c1"), "{}"),
        SystemNote(ItemId("posted 2"), "It is so."),
    ]
    assert list(wire.session.history) == expected
    assert wire.session.posted == {"posted 1", "posted 2"}


def test_the_server_s_own_order_and_names_go_before_those_of_first_sight() -> None:
    wire = Wire().sent(client.ConversationItemCreate(item=items.FunctionCallOutputItem(call_id="c1", output="{}")))
    wire.told(server.InputAudioBufferCommitted(item_id="q"))
    output = items.FunctionCallOutputItem(id="i9", call_id="c1", output="{}")
    wire.told(server.ConversationItemAdded(item=output, previous_item_id="q"))
    wire.told(server.ConversationItemAdded(item=message("first", "Hi."), previous_item_id="root"))
    assert [item.item_id for item in wire.session.history] == ["first", "q", "i9"]
    assert wire.session.posted == {"i9"}


def test_a_turn_whose_item_is_told_before_it_is_closed_has_no_words_yet() -> None:
    part = items.ContentPart(type="input_audio")
    wire = Wire(OPENAI).told(server.ConversationItemAdded(item=items.MessageItem(id="q", role="user", content=(part,))))
    assert wire.told(server.InputAudioBufferCommitted(item_id="q")).session.unknown == ("q",)


def test_the_same_note_twice_is_two_items_in_their_order() -> None:
    note = items.MessageItem(role="system", content=(items.ContentPart(type="input_text", text="It is so."),))
    wire = Wire()
    for name in ("n1", "n2"):
        wire.sent(client.ConversationItemCreate(item=note))
        told = items.MessageItem(id=name, role="system", content=note.content)
        wire.told(server.ConversationItemAdded(item=told, previous_item_id="n1" if name == "n2" else None))
    assert [item.item_id for item in wire.session.history] == ["n1", "n2"]


def test_an_item_that_is_refused_or_deleted_is_in_no_history() -> None:
    note = items.MessageItem(role="system", content=(items.ContentPart(type="input_text", text="No."),))
    wire = Wire().sent(client.ConversationItemCreate(event_id="e7", item=note)).told(refused("e7"))
    wire.told(server.InputAudioBufferCommitted(item_id="q"), server.ConversationItemDeleted(item_id="q"))
    assert (wire.session.history, wire.session.posted) == ((), frozenset())


def test_what_is_no_event_says_nothing() -> None:
    wire = Wire().reply("a", "Yes.")
    wire.session.heard(decode_server('{"type": "server.of.tomorrow"}'))
    wire.session.sent(b"[]")
    assert text(wire.session) == ["Yes."]


# --- cuts


def test_of_a_reply_that_its_server_cut_history_is_what_it_says_when_it_is_asked() -> None:
    wire = Wire().reply("a", "One two three four five six.", "cancelled")
    assert (text(wire.session), wire.session.unknown) == ([""], ("a",))
    wire.told(retrieved("a", "One two-"))
    assert wire.session.history == (AgentSaid(ItemId("a"), "One two-", is_cut=True),)
    assert wire.session.unknown == ()


def test_a_truncate_makes_unknown_what_was_known_and_one_that_is_refused_does_not() -> None:
    wire = Wire().reply("a", "One two three.").sent(truncate("a", 400), after_ms=30)
    assert wire.session.unknown == ("a",)
    wire.told(refused("e1"))
    assert (text(wire.session), wire.session.unknown) == (["One two three."], ())
    assert wire.session.truncations == [Truncation(ItemId("a"), 400, 1_030, is_refused=True)]


def test_a_truncate_at_the_end_of_a_reply_takes_nothing_away() -> None:
    wire = Wire().reply("a", "One two three.").sent(truncate("a", 1_000))
    assert text(wire.session) == ["One two three."]


def test_an_answer_from_before_a_truncate_says_nothing_of_what_that_left() -> None:
    wire = Wire().reply("a", "One two three.", "cancelled").told(retrieved("a", "One two-")).sent(truncate("a", 200))
    assert wire.session.unknown == ("a",)


def test_an_item_without_a_text_leaves_what_is_left_of_it_unknown() -> None:
    wire = Wire(OPENAI).reply("a", "One two three.").sent(truncate("a", 400)).told(retrieved("a", None))
    assert (text(wire.session), wire.session.unknown) == ([""], ("a",))


# --- a voice of the client's own


def writes(item_id: str, words: str) -> server.ServerEvent:
    return server.ResponseOutputTextDone(response_id=f"response of {item_id}", item_id=item_id, text=words)


def test_a_written_reply_sounds_as_its_client_says_it() -> None:
    wire = Wire().told(writes("a", "Yes."), done("a"))
    wire.session.spoken_by_client(ItemId("a"), bytes(2 * 8 * 300))
    wire.session.spoken_by_client(ItemId("b"), bytes(2 * 8 * 300))
    (spoken,) = wire.session.spoken
    assert (spoken.streamed_ms, spoken.audio_ms, [word.text for word in spoken.words]) == (300, 300, ["Yes."])


@pytest.mark.parametrize("is_call_first", [True, False])
def test_beside_a_call_its_spoken_argument_is_said_which_nobody_writes(is_call_first: bool) -> None:
    call = server.ResponseFunctionCallArgumentsDone(
        response_id="response of a", item_id="t", call_id="c1", name="look_up", arguments='{"holding": "One moment."}'
    )
    told = [call, writes("a", "")]
    wire = Wire().told(*(told if is_call_first else told[::-1]), done("a"))
    wire.session.spoken_by_client(ItemId("a"), bytes(2 * 8 * 300))
    (spoken,) = wire.session.spoken
    assert ([word.text for word in spoken.words], spoken.tool) == (["One", "moment."], "look_up")


def test_a_report_that_less_was_heard_is_a_cut_and_one_of_all_is_none() -> None:
    for heard, cuts in (("One two", [Truncation(ItemId("a"), 700, 0, is_refused=False)]), ("One two three.", [])):
        wire = Wire().told(writes("a", "One two three."), done("a"))
        stopped = client.PolyOutputAudioStopped(
            response_id="response of a", audio_ms=700, dropped_ms=0, spoken_text=heard
        )
        wire.sent(stopped)
        assert wire.session.truncations == cuts
        assert wire.session.unknown == tuple(cut.item_id for cut in cuts)


def test_a_written_reply_is_audible_while_its_client_says_so() -> None:
    wire = Wire().told(writes("a", "One two three."), done("a"), speaks())
    wire.sent(client.PolyOutputAudioStarted(response_id="response of a")).told(speaks(), after_ms=500)
    stopped = client.PolyOutputAudioStopped(response_id="response of a", audio_ms=9, dropped_ms=0, spoken_text="One")
    wire.sent(stopped, after_ms=500).told(speaks(), after_ms=JUST_CUT_MS)
    assert [each.at_ms for each in wire.session.confirmations] == [500]


def test_what_a_client_puts_in_the_place_of_a_written_reply_is_what_was_heard_of_it() -> None:
    wire = Wire(OPENAI).told(writes("a", "One two three."), done("a"))
    said = items.MessageItem(role="assistant", content=(items.ContentPart(type="output_text", text="One-"),))
    wire.sent(client.ConversationItemCreate(previous_item_id="a", item=said))
    wire.told(server.ConversationItemDeleted(item_id="a"))
    assert wire.session.history == (AgentSaid(ItemId("a"), "One-", is_cut=True),)
    sound = wire.session.spoken[0].sound
    assert sound is not None
    assert (sound.is_restated, sound.is_whole) == (True, False)


def test_a_written_reply_that_is_taken_back_altogether_is_in_no_history() -> None:
    wire = Wire(OPENAI).told(writes("a", "One two three."), done("a"), server.ConversationItemDeleted(item_id="a"))
    assert (wire.session.history, wire.session.unknown) == ((), ())


# --- the end


def test_at_the_end_the_server_is_asked_for_what_is_unknown_and_to_end_what_is_under_way() -> None:
    wire = Wire().reply("a", "One two three.", "cancelled").reply("b", "Four.").told(audio("c"))
    assert wire.session.is_under_way
    cancel, *asked = wire.asked
    assert isinstance(cancel, client.ResponseCancel)
    assert [each.item_id for each in asked if isinstance(each, client.ConversationItemRetrieve)] == ["a", "c"]
    wire.told(retrieved("a", "One-"), written("c", "Five six seven."), done("c", "cancelled"))
    assert not wire.session.is_answered
    (missing,) = (each.event_id for each in asked if getattr(each, "item_id", "") == "c")
    wire.told(refused(missing or ""))
    assert wire.session.is_answered
    assert wire.session.unknown == ("c",)


def test_while_the_caller_is_there_the_end_of_a_connection_is_hurried() -> None:
    assert Wire(is_over=False).session.is_hurried
    assert not Wire(is_over=True).session.is_hurried


def test_what_history_has_of_a_reply_that_is_under_way_is_not_what_it_will_have() -> None:
    wire = Wire().told(audio("a"), retrieved("a", "One two three."), written("a", "One two three."))
    wire.session.closed()
    assert (text(wire.session), wire.session.unknown) == ([""], ("a",))


def test_nothing_is_asked_that_the_provider_does_not_take() -> None:
    wire = Wire(PLAIN).reply("a", "One two three.", "cancelled")
    assert wire.session.questions == []
    assert wire.session.is_answered


# --- interruptions


def speaks(at_ms: int = 0) -> server.ServerEvent:
    return server.InputAudioBufferSpeechStarted(item_id="q", audio_start_ms=at_ms)


def interrupted(tell: Callable[[Wire], Wire]) -> int:
    return len(tell(Wire().told(audio("a"), audio("a"), audio("a"))).session.confirmations)


def test_the_caller_is_told_to_speak_over_a_reply_while_what_came_of_it_lasts() -> None:
    assert interrupted(lambda wire: wire.told(speaks(), after_ms=599)) == 1
    assert interrupted(lambda wire: wire.told(speaks(), after_ms=600)) == 0
    assert interrupted(lambda wire: wire.told(done("a", "cancelled"), after_ms=300).told(speaks(), after_ms=20)) == 1
    late = JUST_CUT_MS
    assert interrupted(lambda wire: wire.told(done("a", "cancelled"), after_ms=300).told(speaks(), after_ms=late)) == 0


def test_when_he_began_is_on_the_clock_of_the_audio_that_was_sent() -> None:
    wire = Wire(now_ms=2_000).sent(client.InputAudioBufferAppend(audio=bytes(48 * 1_500)))
    wire.told(audio("a")).told(speaks(1_200), after_ms=100)
    assert [(each.onset_ms, each.at_ms) for each in wire.session.confirmations] == [(1_800, 2_100)]


def test_the_records_of_two_sides_are_compared_by_everything_but_sound() -> None:
    spoken = Wire().reply("a", "Yes.").session.spoken[0]
    assert replace(spoken, sound=None) == spoken

"""What every server event means for the call, what every command is on the wire, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire import samples
from tests.wire.official import assert_official_client

from callwright.audio.formats import PCM16_16K, PCM16_24K, PCMA_8K, PCMU_8K, AudioFormat
from callwright.core import commands as do
from callwright.core import events as on
from callwright.errors import LocalProtocolError
from callwright.ids import EventId, ItemId, ResponseId, ToolCallId
from callwright.wire import client, items, objects, server
from callwright.wire.codec import decode_server, encode
from callwright.wire.objects import PartialError, StatusDetails
from callwright.wire.profiles import POLYAI
from callwright.wire.translate import Translator, said_to

R, A, U = ResponseId("resp_1"), ItemId("item_1"), ItemId("item_2")
MESSAGE = items.MessageItem(id=A, role="assistant")
CALL = items.FunctionCallItem(id=A, name="find_order", call_id="k")
PART: Mapping[str, str] = {"response_id": R, "item_id": A}


def translator(input_format: AudioFormat = PCMU_8K, cut_suffix: str = "-") -> Translator:
    return Translator(replace(POLYAI, cut_suffix=cut_suffix), input_format)


def heard(*events: server.ServerEvent) -> tuple[on.ModelEvent, ...]:
    """What a fresh translator makes of these, as they come out of the decoder."""
    by = translator()
    return tuple(meant for event in events for meant in by.heard_from(decode_server(encode(event))))


def added(item: items.Item, previous: str | None = None) -> server.ConversationItemAdded:
    return server.ConversationItemAdded(item=item, previous_item_id=previous)


MEANING: Mapping[str, tuple[server.ServerEvent, tuple[on.ModelEvent, ...]]] = {
    "created": (server.SessionCreated(session=objects.Session()), (on.ModelConnected(),)),
    "updated": (server.SessionUpdated(session=objects.Session()), (on.SessionReady(),)),
    "speech started": (
        server.InputAudioBufferSpeechStarted(item_id=U, audio_start_ms=1200),
        (on.SpeechStarted(U, 1200),),
    ),
    "speech stopped": (server.InputAudioBufferSpeechStopped(item_id=U, audio_end_ms=900), (on.SpeechStopped(U, 900),)),
    "committed": (server.InputAudioBufferCommitted(item_id=U, previous_item_id=A), (on.ItemPlaced(U, A),)),
    "committed at the root": (
        server.InputAudioBufferCommitted(item_id=U, previous_item_id="root"),
        (on.ItemPlaced(U, None),),
    ),
    "committed, place not told": (server.InputAudioBufferCommitted(item_id=U), ()),
    "item added": (added(MESSAGE, U), (on.ItemPlaced(A, U),)),
    "item added at the root": (added(MESSAGE, "root"), (on.ItemPlaced(A, None),)),
    "item added, place not told": (added(MESSAGE), ()),
    "call added": (added(CALL, U), (on.ItemPlaced(A, U),)),
    "item without id": (added(items.MessageItem(role="user"), U), ()),
    "transcribed": (
        server.ConversationItemInputAudioTranscriptionCompleted(item_id=U, transcript=" Hello there.\n"),
        (on.CallerTranscribed(U, "Hello there."),),
    ),
    "truncated": (server.ConversationItemTruncated(item_id=A, audio_end_ms=1500), (on.ItemTruncated(A, 1500),)),
    "response created": (
        server.ResponseCreated(response=objects.Response(id=R, status="in_progress")),
        (on.ResponseStarted(R),),
    ),
    "written, spoken": (
        server.ResponseOutputAudioTranscriptDone(**PART, transcript="From three."),
        (on.ReplyWritten(R, A, "From three."),),
    ),
    "written, as text": (server.ResponseOutputTextDone(**PART, text=""), (on.ReplyWritten(R, A, ""),)),
    "call": (
        server.ResponseFunctionCallArgumentsDone(**PART, call_id="k" * 37, name="find_order", arguments='{"a":1}'),
        (on.ToolCalled(R, A, ToolCallId("k" * 37), "find_order", '{"a":1}'),),
    ),
    "call without arguments": (
        server.ResponseFunctionCallArgumentsDone(**PART, call_id="k", name="wait"),
        (on.ToolCalled(R, A, ToolCallId("k"), "wait", ""),),
    ),
    "error": (
        server.ErrorEvent(
            error=objects.ErrorDetail(message="no", code="unsupported_parameter", param="session.x", event_id="cw_1")
        ),
        (on.RequestRefused("unsupported_parameter", "no", EventId("cw_1"), "session.x"),),
    ),
    "error without a code": (
        server.ErrorEvent(error=objects.ErrorDetail(message="no", type="server_error")),
        (on.RequestRefused("server_error", "no", None, None),),
    ),
    "error that says nothing": (
        server.ErrorEvent(error=objects.ErrorDetail(message="", event_id="")),
        (on.RequestRefused("error", "", None, None),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MEANING)
def test_a_server_event_means(case: str) -> None:
    event, meant = MEANING[case]
    assert heard(event) == meant


def test_every_sample_of_every_server_event_has_a_meaning_or_none_and_never_raises() -> None:
    meant = [told for event in samples.SERVER for told in translator().heard_from(event)]
    elsewhere = {on.AudioReceived, on.ConnectFailed, on.ModelClosed, on.SessionMismatched, on.SessionReady}
    assert set(map(type, meant)) | elsewhere == set(get_args(on.ModelEvent))
    assert not any(isinstance(told, on.AudioReceived) for told in meant)  # its bytes stay with the shell
    assert translator().heard_from(server.Unknown(type="response.sparkles")) == ()


@pytest.mark.parametrize("kind", ["ResponseOutputItemDone", "ConversationItemDone", "ResponseOutputItemAdded"])
def test_c078_a_call_means_something_in_one_event_only(kind: str) -> None:
    """The same call is also in item and response events; they only confirm it."""
    extra = {"previous_item_id": None} if kind == "ConversationItemDone" else {"response_id": R}
    event = getattr(server, kind)(item=CALL, **extra)
    assert heard(event) == ()
    (ended,) = heard(server.ResponseDone(response=objects.Response(id=R, status="completed", output=(CALL,))))
    assert isinstance(ended, on.ResponseEnded)


def test_a_call_without_a_name_has_the_name_of_its_item() -> None:
    """Some servers name the tool only when the item begins."""
    nameless = server.ResponseFunctionCallArgumentsDone(**PART, call_id="k")
    (called,) = heard(server.ResponseOutputItemAdded(response_id=R, item=CALL), nameless)
    assert isinstance(called, on.ToolCalled)
    assert called.name == "find_order"
    (unknown,) = heard(nameless)
    assert isinstance(unknown, on.ToolCalled)
    assert unknown.name == ""  # the core answers that there is no such tool


# --- how a response ended


@pytest.mark.parametrize(
    ("status", "meant"),
    [
        ("completed", on.ResponseStatus.COMPLETED),
        ("cancelled", on.ResponseStatus.CANCELLED),
        ("incomplete", on.ResponseStatus.INCOMPLETE),
        ("failed", on.ResponseStatus.FAILED),
        (None, on.ResponseStatus.COMPLETED),
        ("in_progress", on.ResponseStatus.INCOMPLETE),
        ("dreaming", on.ResponseStatus.INCOMPLETE),
    ],
)
def test_every_status_is_one_of_four(status: str | None, meant: on.ResponseStatus) -> None:
    """A status that is not known here is not taken for success."""
    event = server.ResponseDone(response=objects.Response(id=R, status=status))
    assert heard(event) == (on.ResponseEnded(R, meant, ""),)


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        (None, ""),
        ("turn_detected", "turn_detected"),
        (StatusDetails(type="cancelled", reason="turn_detected"), "turn_detected"),
        (StatusDetails(type="failed", reason="r", error=PartialError(code="rate_limit", message="slow")), "rate_limit"),
        (StatusDetails(type="failed", error=PartialError(message="slow down")), "slow down"),
        (StatusDetails(type="failed", error=PartialError(type="server_error")), "server_error"),
        (StatusDetails(type="failed", reason="content_filter", error=PartialError()), "content_filter"),
        (StatusDetails(), ""),
    ],
)
def test_the_reason_is_the_most_exact_word_given(details: StatusDetails | str | None, reason: str) -> None:
    response = objects.Response(id=R, status="failed", status_details=details)
    assert heard(server.ResponseDone(response=response)) == (on.ResponseEnded(R, on.ResponseStatus.FAILED, reason),)


# --- what history holds of a cut item


def part(kind: str = "output_audio", **content: Any) -> items.ContentPart:
    return items.ContentPart(type=kind, **content)


@pytest.mark.parametrize(
    ("parts", "text", "is_cut"),
    [
        ((part(transcript="Check-in is from three-"),), "Check-in is from three", True),
        ((part(transcript=" From three- \n"),), "From three", True),
        ((part(transcript="From three -"),), "From three", True),
        ((part(transcript="-"),), "", True),
        ((part(transcript="From three."),), "From three.", False),
        ((part(transcript="Check-in"),), "Check-in", False),
        ((part(transcript=""),), "", False),
        ((part(transcript="  "),), "", False),
        ((part("output_text", text="From three-"),), "From three", True),
        ((part("output_text", text=""), part(transcript="From three-")), "From three", True),
        ((part(transcript="From"), part(transcript="three-")), "From three", True),
        ((part(transcript="said", text="ignored"),), "said", False),
        ((part(audio=b"\x00\x00"),), None, False),
        ((), None, False),
    ],
)
def test_a_retrieved_item(parts: tuple[items.ContentPart, ...], text: str | None, is_cut: bool) -> None:
    """The server marks a cut with a hyphen at the very end, which is not part of the words."""
    item = items.MessageItem(id=A, role="assistant", content=parts)
    assert heard(server.ConversationItemRetrieved(item=item)) == (on.ItemRetrieved(A, text, is_cut),)


def test_where_a_provider_marks_no_cut_a_hyphen_is_a_hyphen() -> None:
    item = items.MessageItem(id=A, role="assistant", content=(part(transcript="From three-"),))
    event = server.ConversationItemRetrieved(item=item)
    assert translator(cut_suffix="").heard_from(event) == (on.ItemRetrieved(A, "From three-", is_cut=False),)


@pytest.mark.parametrize("item", [CALL, items.MessageItem(role="assistant"), items.UnknownItem(id=A, kind="dance")])
def test_a_retrieved_item_that_is_no_message_means_nothing(item: items.Item) -> None:
    assert translator().heard_from(server.ConversationItemRetrieved(item=item)) == ()


# --- formats

Spelling = objects.WireFormat | str | None


def updated(given: Spelling, told: Spelling = None) -> server.SessionUpdated:
    audio = objects.Audio(input=objects.AudioInput(format=given), output=objects.AudioOutput(format=told))
    return server.SessionUpdated(session=objects.Session(audio=audio))


def spelled(kind: str, rate: int | None = None) -> objects.WireFormat:
    return objects.WireFormat(type=kind, rate=rate)


@pytest.mark.parametrize(
    ("wanted", "spelling"),
    [
        (PCMU_8K, spelled("audio/pcmu")),
        (PCMU_8K, spelled("audio/pcmu", 8000)),
        (PCMU_8K, "g711_ulaw"),
        (PCMU_8K, "audio/PCMU"),
        (PCM16_24K, spelled("audio/pcm", 24_000)),
        (PCM16_24K, spelled("audio/pcm")),
        (PCM16_24K, "pcm16"),
        (PCM16_16K, spelled("audio/pcm", 16_000)),
        (PCM16_16K, "audio/l16;rate=16000"),
        (PCMA_8K, "g711_alaw"),
        (PCMU_8K, None),
    ],
)
def test_a_session_in_the_format_agreed_on_is_ready_however_it_is_spelled(
    wanted: AudioFormat, spelling: Spelling
) -> None:
    by = translator(wanted)
    for told in (spelled("audio/pcm", 24_000), "pcm16", None):
        assert by.heard_from(decode_server(encode(updated(spelling, told)))) == (on.SessionReady(),)


@pytest.mark.parametrize(
    "spelling",
    [
        spelled("audio/pcm", 24_000),
        "pcm16",
        spelled("audio/pcma"),
        "g711_alaw",
        "opus",
        "",
        spelled("audio/pcmu", 16_000),
        "audio/l16;rate=8000",
    ],
)
def test_c116_c117_another_format_of_the_caller_is_told_by_its_field(spelling: Spelling) -> None:
    """At the start as after any later update: the wrong format is noise."""
    (problem,) = translator(PCMU_8K).heard_from(decode_server(encode(updated(spelling))))
    assert isinstance(problem, on.SessionMismatched)
    assert (problem.field, problem.wanted) == ("audio.input.format", "{'type': 'audio/pcmu'}")


@pytest.mark.parametrize(("told", "is_ready"), [(None, True), ((), False), (("a",), False), (("b", "a", "c"), True)])
def test_c105_a_session_without_the_tools_that_were_declared_is_none(
    told: Sequence[str] | None, is_ready: bool
) -> None:
    """Unless the server does not tell of any."""
    tools = None if told is None else tuple({"type": "function", "name": name} for name in told)
    event = server.SessionUpdated(session=objects.Session(tools=tools))
    expected = on.SessionReady() if is_ready else on.SessionMismatched("tools", "a, b", ", ".join(told or ()) or "none")
    assert Translator(POLYAI, PCMU_8K, ["a", "b"]).heard_from(event) == (expected,)


@pytest.mark.parametrize("spelling", [spelled("audio/pcm", 16_000), "g711_ulaw", spelled("audio/pcmu")])
def test_c116_another_format_of_the_reply_is_told_by_its_field(spelling: Spelling) -> None:
    (problem,) = translator().heard_from(updated(spelled("audio/pcmu"), spelling))
    assert isinstance(problem, on.SessionMismatched)
    assert problem.field == "audio.output.format"


@pytest.mark.parametrize(
    "session",
    [
        objects.Session(),
        objects.Session(audio=objects.Audio()),
        objects.Session(audio=objects.Audio(input=objects.AudioInput())),
        objects.TranscriptionSession(),
    ],
)
def test_a_session_that_tells_no_format_is_taken_at_its_word(session: objects.AnySession) -> None:
    assert translator().heard_from(server.SessionUpdated(session=session)) == (on.SessionReady(),)


# --- what is said

E1 = EventId("cw_1")
SAID: Mapping[str, tuple[do.Request, client.ClientEvent]] = {
    "truncate": (
        do.TruncateItem(E1, A, 1340),
        client.ConversationItemTruncate(event_id=E1, item_id=A, content_index=0, audio_end_ms=1340),
    ),
    "retrieve": (do.RetrieveItem(E1, A), client.ConversationItemRetrieve(event_id=E1, item_id=A)),
    "cancel": (do.CancelResponse(E1, R), client.ResponseCancel(event_id=E1, response_id=R)),
    "drop": (do.DropItem(E1, A), client.ConversationItemDelete(event_id=E1, item_id=A)),
    "audible": (do.ReportAudible(E1, R), client.PolyOutputAudioStarted(event_id=E1, response_id=R)),
    "turn": (do.EndTurn(E1), client.InputAudioBufferCommit(event_id=E1)),
    "reply": (do.RequestReply(E1), client.ResponseCreate(event_id=E1)),
    "output": (
        do.PostToolOutput(E1, ToolCallId("k" * 37), '{"a": 1}'),
        client.ConversationItemCreate(
            event_id=E1, item=items.FunctionCallOutputItem(call_id="k" * 37, output='{"a": 1}')
        ),
    ),
    "facts": (
        do.PostFacts(E1, "The refund is done."),
        client.ConversationItemCreate(
            event_id=E1,
            item=items.MessageItem(
                role="system", content=(items.ContentPart(type="input_text", text="The refund is done."),)
            ),
        ),
    ),
}


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=64))
def test_a_call_id_goes_back_byte_for_byte_whatever_is_in_it_and_however_long(call_id: str) -> None:
    told = {"type": "response.function_call_arguments.done", **PART, "call_id": call_id, "name": "find_order"}
    (called,) = translator().heard_from(decode_server(msgspec.json.encode({**told, "arguments": "{}"})))
    assert isinstance(called, on.ToolCalled)
    answers = do.PostToolOutput(E1, called.tool_call_id, ""), do.CarryCall(E1, called.tool_call_id, "find_order", "{}")
    for answer in answers:
        said = msgspec.json.decode(encode(said_to(answer)))
        assert said["item"]["call_id"].encode() == call_id.encode()


COUNTED: Mapping[str, tuple[do.Request, client.ClientEvent]] = {
    "progress": (
        do.ReportProgress(E1, R, 500, ((A, 2),)),
        client.PolyOutputAudioDelta(event_id=E1, response_id=R, audio_ms=500, delta="one two"),
    ),
    "stopped": (
        do.ReportStopped(E1, R, 500, 40, ((A, 2),)),
        client.PolyOutputAudioStopped(event_id=E1, response_id=R, audio_ms=500, dropped_ms=40, spoken_text="one two"),
    ),
    "restate": (
        do.RestateItem(E1, A, 2),
        client.ConversationItemCreate(
            event_id=E1,
            item=items.MessageItem(role="assistant", content=(items.ContentPart(type="output_text", text="one two"),)),
            previous_item_id=A,
        ),
    ),
}


@pytest.mark.parametrize("case", COUNTED)
def test_words_that_a_command_counts_are_said_with_it(case: str) -> None:
    command, event = COUNTED[case]
    assert said_to(command, "one two") == event
    assert_official_client(event)


@pytest.mark.parametrize("case", SAID)
def test_a_command_says(case: str) -> None:
    command, event = SAID[case]
    assert said_to(command) == event
    assert_official_client(event)


def test_c010_a_truncate_carries_every_field_and_whole_milliseconds() -> None:
    sent = encode(said_to(do.TruncateItem(E1, A, 0)))
    assert sent == (
        b'{"type":"conversation.item.truncate","event_id":"cw_1","item_id":"item_1","content_index":0,"audio_end_ms":0}'
    )


def test_a_configuration_is_not_translated_here() -> None:
    with pytest.raises(LocalProtocolError, match="session_update"):
        said_to(do.ConfigureSession(E1))


def test_a_text_that_only_the_end_of_a_response_tells_is_taken_from_there():
    """A server may leave out the event of its own; whoever told the text before is not asked twice."""
    part = items.ContentPart(type="output_audio", transcript="So it is.")
    message = items.MessageItem(id="item_9", role="assistant", content=(part,))
    done = server.ResponseDone(response=objects.Response(id=R, status="completed", output=(message,)))
    told = server.ResponseOutputAudioTranscriptDone(response_id=R, item_id="item_9", transcript="So it is.")
    written = on.ReplyWritten(ResponseId(R), ItemId("item_9"), "So it is.")
    ended = on.ResponseEnded(ResponseId(R), on.ResponseStatus.COMPLETED)
    assert heard(done) == (written, ended)
    assert heard(told, done) == (written, ended)

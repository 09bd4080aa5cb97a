"""Between the wire's vocabulary and the core's.

A ``Translator`` turns server events into core events (none for those that the core has no use for), and ``said_to``
turns a core command into the client event that carries it. Reply audio is not handled here: its bytes stay with the
shell, which tells the core a length.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Literal

import msgspec

from callwright.audio.formats import AudioFormat, parse_format
from callwright.core import commands as do
from callwright.core import events as on
from callwright.errors import AudioFormatError, LocalProtocolError
from callwright.ids import EventId, ItemId, ResponseId, ToolCallId
from callwright.wire import client, items, objects, server
from callwright.wire.profiles import Profile
from callwright.wire.readable import readable

_FRONT = "root"
_SAID_BY: Final[Mapping[str, tuple[Literal["user", "assistant"], str]]] = {
    "caller": ("user", "input_text"),
    "agent": ("assistant", "output_text"),
}
"""The role and the kind of content of what was said before."""


class Translator:
    """Understands one connection of one provider."""

    def __init__(
        self, profile: Profile, input_format: AudioFormat, tools: Collection[str] = (), modality: str = "audio"
    ) -> None:
        """``input_format`` is what the caller's audio is sent in, ``tools`` are the names of what is declared.

        ``modality`` is how replies are to come: ``audio``, or ``text`` for a voice of our own.
        """
        self.modality = modality
        self.profile = profile
        self.tools = tools
        self.formats = {
            "audio.input.format": input_format,
            "audio.output.format": parse_format(msgspec.to_builtins(profile.output_format)),
        }
        self.tool_names: dict[str, str] = {}
        """Names of announced tool calls by item, for servers that leave them out later."""
        self.written: dict[str, None] = {}
        """Items of the open response whose texts have come."""
        self.beginnings: dict[str, tuple[str, list[str]]] = {}
        """Response and text so far of items whose whole texts have not come, from servers that tell them in pieces."""

    def heard_from(self, event: server.ServerEvent | server.Unknown) -> tuple[on.ModelEvent, ...]:
        """What a server event means for the call, in order; nothing for what the core has no use for."""
        translate = _SERVER.get(type(event))
        return translate(event, self) if translate else ()

    def unfinished(self) -> tuple[on.ModelEvent, ...]:
        """The connection ended: the texts that came in part."""
        begun, self.beginnings = self.beginnings, {}
        return tuple(
            on.ReplyWritten(ResponseId(response_id), ItemId(item_id), "".join(pieces))
            for item_id, (response_id, pieces) in begun.items()
        )


def said_to(command: do.Request, words: str = "") -> client.ClientEvent:
    """The client event for a command, ``ConfigureSession`` excepted: its content is the agent's declaration.

    ``words`` are those that a command counts, which are with whoever sends them.

    Raises LocalProtocolError for that one.
    """
    match command:
        case do.TruncateItem():
            return client.ConversationItemTruncate(
                event_id=command.event_id, item_id=command.item_id, content_index=0, audio_end_ms=command.audio_end_ms
            )
        case do.RetrieveItem():
            return client.ConversationItemRetrieve(event_id=command.event_id, item_id=command.item_id)
        case do.CancelResponse():
            return client.ResponseCancel(event_id=command.event_id, response_id=command.response_id)
        case do.EndTurn():
            return client.InputAudioBufferCommit(event_id=command.event_id)
        case do.RequestReply():
            return client.ResponseCreate(event_id=command.event_id)
        case do.PostToolOutput():
            topics = msgspec.json.decode(command.knowledge, type=dict[str, str]) if command.knowledge else {}
            output = items.FunctionCallOutputItem(
                call_id=command.tool_call_id, output=command.output, poly_knowledge=objects.topics_of(topics) or None
            )
            return client.ConversationItemCreate(event_id=command.event_id, item=output)
        case do.PostFacts():
            note = items.MessageItem(role="system", content=(items.ContentPart(type="input_text", text=command.text),))
            return client.ConversationItemCreate(event_id=command.event_id, item=note)
        case do.CarryMessage():
            role, kind = _SAID_BY[command.speaker]
            said = items.MessageItem(role=role, content=(items.ContentPart(type=kind, text=command.text),))
            return client.ConversationItemCreate(event_id=command.event_id, item=said)
        case do.CarryCall():
            call = items.FunctionCallItem(name=command.name, call_id=command.tool_call_id, arguments=command.arguments)
            return client.ConversationItemCreate(event_id=command.event_id, item=call)
        case do.RestateItem():
            part = items.ContentPart(type="output_text", text=words)
            heard = items.MessageItem(role="assistant", content=(part,))
            return client.ConversationItemCreate(
                event_id=command.event_id, item=heard, previous_item_id=command.item_id
            )
        case do.DropItem():
            return client.ConversationItemDelete(event_id=command.event_id, item_id=command.item_id)
        case do.ReportAudible():
            return client.PolyOutputAudioStarted(event_id=command.event_id, response_id=command.response_id)
        case do.ReportProgress(event_id, response_id, audio_ms):
            return client.PolyOutputAudioDelta(
                event_id=event_id, response_id=response_id, audio_ms=audio_ms, delta=words
            )
        case do.ReportStopped(event_id, response_id, audio_ms, dropped_ms):
            return client.PolyOutputAudioStopped(
                event_id=event_id,
                response_id=response_id,
                audio_ms=audio_ms,
                dropped_ms=dropped_ms,
                spoken_text=words,
            )
        case do.ConfigureSession():
            raise LocalProtocolError("a session is configured with profiles.session_update")


def _updated(event: server.SessionUpdated, by: Translator) -> tuple[on.ModelEvent, ...]:
    audio = getattr(event.session, "audio", None) or objects.Audio()
    told = {
        "audio.input.format": _heard_in(event.session, audio.input.format if audio.input else None),
        "audio.output.format": audio.output.format if audio.output else None,
    }
    for field, spelling in told.items():
        if spelling is not None and (problem := _mismatch(field, spelling, by.formats[field])):
            return (problem,)
    modalities = getattr(event.session, "output_modalities", None)
    if modalities is not None and by.modality not in modalities:
        return (on.SessionMismatched("output modality", by.modality, readable(", ".join(modalities)) or "none"),)
    tools = getattr(event.session, "tools", None)
    got = [str(tool.get("name")) for tool in tools or ()]
    if tools is not None and not all(name in got for name in by.tools):
        return (on.SessionMismatched("tools", ", ".join(by.tools), readable(", ".join(got)) or "none"),)
    return (on.SessionReady(),)


def _heard_in(session: objects.AnySession, told: objects.AnyFormat) -> objects.AnyFormat:
    """The format that the caller is heard in: a rate of his own goes before the format's."""
    rate_hz = getattr(session, "poly_input_rate", None)
    return told if rate_hz is None else objects.WireFormat(type="audio/pcm", rate=rate_hz)


def _mismatch(field: str, spelling: objects.WireFormat | str, wanted: AudioFormat) -> on.SessionMismatched | None:
    plain = spelling if isinstance(spelling, str) else msgspec.to_builtins(spelling)
    try:
        matches = parse_format(plain) == wanted
    except AudioFormatError:
        matches = False
    return None if matches else on.SessionMismatched(field, str(wanted.to_wire()), readable(str(plain)))


def _placed(item_id: str, previous: str | None) -> tuple[on.ItemPlaced, ...]:
    if previous is None:
        return ()
    return (on.ItemPlaced(ItemId(item_id), None if previous == _FRONT else ItemId(previous)),)


def _item_added(event: server.ConversationItemAdded, _by: Translator) -> tuple[on.ModelEvent, ...]:
    item = event.item
    if isinstance(item, items.UnknownItem) or item.id is None:
        return ()
    return _placed(item.id, event.previous_item_id)


def _committed(event: server.InputAudioBufferCommitted, _by: Translator) -> tuple[on.ModelEvent, ...]:
    return _placed(event.item_id, event.previous_item_id)


def _retrieved(event: server.ConversationItemRetrieved, by: Translator) -> tuple[on.ModelEvent, ...]:
    item = event.item
    if not isinstance(item, items.MessageItem) or item.id is None:
        return ()
    text, suffix = _text(item), by.profile.cut_suffix
    if text is None:
        return (on.ItemRetrieved(ItemId(item.id), None, is_cut=False),)
    is_cut = bool(suffix) and text.endswith(suffix)
    return (on.ItemRetrieved(ItemId(item.id), text.removesuffix(suffix).rstrip() if is_cut else text, is_cut),)


def _written(by: Translator, response_id: str, item_id: str, text: str) -> tuple[on.ModelEvent, ...]:
    by.written[item_id] = None
    by.beginnings.pop(item_id, None)
    return (on.ReplyWritten(ResponseId(response_id), ItemId(item_id), text),)


def _piece_written(
    event: server.ResponseOutputAudioTranscriptDelta | server.ResponseOutputTextDelta, by: Translator
) -> tuple[on.ModelEvent, ...]:
    by.beginnings.setdefault(event.item_id, (event.response_id, []))[1].append(event.delta)
    return ()


def _item_begun(event: server.ResponseOutputItemAdded, by: Translator) -> tuple[on.ModelEvent, ...]:
    if isinstance(event.item, items.FunctionCallItem) and event.item.id is not None:
        by.tool_names[event.item.id] = event.item.name
    return ()


def _tool_called(event: server.ResponseFunctionCallArgumentsDone, by: Translator) -> tuple[on.ModelEvent, ...]:
    name = event.name or by.tool_names.get(event.item_id, "")
    called = on.ToolCalled(
        ResponseId(event.response_id),
        ItemId(event.item_id),
        ToolCallId(event.call_id),
        name,
        event.arguments,
    )
    return (called,)


def _response_done(event: server.ResponseDone, by: Translator) -> tuple[on.ModelEvent, ...]:
    response = event.response
    try:
        status = on.ResponseStatus(response.status or "completed")
    except ValueError:
        status = on.ResponseStatus.INCOMPLETE
    late = [
        on.ReplyWritten(ResponseId(response.id), ItemId(item.id), text)
        for item in response.output or ()
        if isinstance(item, items.MessageItem)
        and item.id is not None
        and item.id not in by.written
        and (text := _text(item))
    ]
    by.written.clear()
    by.beginnings.clear()
    cited = [_topic(each) for each in response.poly_cited_topics or ()]
    ended = on.ResponseEnded(
        ResponseId(response.id),
        status,
        _reason(response),
        msgspec.json.encode(cited).decode() if cited else "",
        response.poly_out_of_domain,
    )
    return (*late, ended)


def _topic(cited: items.JsonValue) -> str:
    """The name of a topic, told as such or as what stands for the whole topic."""
    name = cited.get("name", cited) if isinstance(cited, dict) else cited
    return name if isinstance(name, str) else msgspec.json.encode(name).decode()


def _text(item: items.MessageItem) -> str | None:
    """What a message says; None where it holds no text at all."""
    texts = [part.transcript if part.transcript is not None else part.text for part in item.content]
    known = [text for text in texts if text is not None]
    return " ".join(known).strip() if known else None


def _reason(response: objects.Response) -> str:
    details = response.status_details
    if details is None or isinstance(details, str):
        return readable(details or "")
    error = details.error
    return readable((error.code or error.message or error.type or "" if error else "") or details.reason or "")


def _refused(event: server.ErrorEvent, _by: Translator) -> tuple[on.ModelEvent, ...]:
    error = event.error
    event_id = EventId(error.event_id) if error.event_id else None
    code, field = readable(error.code or error.type or "error"), readable(error.param) if error.param else None
    return (on.RequestRefused(code, readable(error.message), event_id, field),)


_SERVER: Final[Mapping[type, Callable[[Any, Translator], tuple[on.ModelEvent, ...]]]] = {
    server.SessionCreated: lambda event, by: (on.ModelConnected(),),
    server.SessionUpdated: _updated,
    server.ErrorEvent: _refused,
    server.InputAudioBufferSpeechStarted: lambda event, by: (
        on.SpeechStarted(ItemId(event.item_id), event.audio_start_ms),
    ),
    server.InputAudioBufferSpeechStopped: lambda event, by: (
        on.SpeechStopped(ItemId(event.item_id), event.audio_end_ms),
    ),
    server.InputAudioBufferCommitted: _committed,
    server.ConversationItemAdded: _item_added,
    server.ConversationItemInputAudioTranscriptionCompleted: lambda event, by: (
        on.CallerTranscribed(ItemId(event.item_id), event.transcript.strip()),
    ),
    server.ConversationItemRetrieved: _retrieved,
    server.ConversationItemTruncated: lambda event, by: (on.ItemTruncated(ItemId(event.item_id), event.audio_end_ms),),
    server.ResponseCreated: lambda event, by: (on.ResponseStarted(ResponseId(event.response.id)),),
    server.ResponseOutputAudioTranscriptDone: lambda event, by: _written(
        by, event.response_id, event.item_id, event.transcript
    ),
    server.ResponseOutputAudioTranscriptDelta: _piece_written,
    server.ResponseOutputTextDelta: _piece_written,
    server.ResponseOutputTextDone: lambda event, by: _written(by, event.response_id, event.item_id, event.text),
    server.ResponseOutputItemAdded: _item_begun,
    server.ResponseFunctionCallArgumentsDone: _tool_called,
    server.ResponseDone: _response_done,
}

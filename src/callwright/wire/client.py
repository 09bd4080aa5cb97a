"""Events that a client sends to a realtime server: the protocol's eleven and PolyAI's three playback reports.

A struct's tag is the event's wire type. Required fields have no default, so a server can tell a malformed event by
decoding it.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, UnsetType

from callwright.wire.items import Item, WireStruct
from callwright.wire.objects import AnySession, ResponseParams


class _ClientEvent(WireStruct, tag_field="type"):
    """Every client event may carry an id; an ``error`` names it."""

    event_id: str | None = None


class SessionUpdate(_ClientEvent, tag="session.update"):
    """Change what is present in ``session``; answered by ``session.updated``, or ``error`` and nothing has changed."""

    session: AnySession


class InputAudioBufferAppend(_ClientEvent, tag="input_audio_buffer.append"):
    """The caller's audio in the session's input format; never answered."""

    audio: bytes


class InputAudioBufferCommit(_ClientEvent, tag="input_audio_buffer.commit"):
    """End the caller's turn by hand: needed without turn detection, or where the server does not end it."""


class InputAudioBufferClear(_ClientEvent, tag="input_audio_buffer.clear"):
    """Throw away the caller's audio since the last turn."""


class ConversationItemCreate(_ClientEvent, tag="conversation.item.create"):
    """Add an item to the history; no reply follows from it."""

    item: Item
    previous_item_id: str | UnsetType | None = UNSET
    """The item before it; ``root`` for the front, absent or ``null`` for the end."""


class ConversationItemRetrieve(_ClientEvent, tag="conversation.item.retrieve"):
    """Ask for the server's version of an item."""

    item_id: str


class ConversationItemTruncate(_ClientEvent, tag="conversation.item.truncate"):
    """Tell the server how much of an assistant's item was heard: ``audio_end_ms`` from the start of that item."""

    item_id: str
    content_index: int
    audio_end_ms: int


class ConversationItemDelete(_ClientEvent, tag="conversation.item.delete"):
    """Remove an item from the history."""

    item_id: str


class ResponseCreate(_ClientEvent, tag="response.create"):
    """Ask for a reply; refused while another response is open."""

    response: ResponseParams | None = None


class ResponseCancel(_ClientEvent, tag="response.cancel"):
    """Stop the response named, or the one that is open."""

    response_id: str | None = None


class OutputAudioBufferClear(_ClientEvent, tag="output_audio_buffer.clear"):
    """Drop reply audio that the server has buffered; WebRTC and SIP only."""


class PolyOutputAudioStarted(_ClientEvent, tag="poly.output_audio.started"):
    """PolyAI: the first audio of a text reply, voiced by the client, has reached the caller."""

    response_id: str


class PolyOutputAudioDelta(_ClientEvent, tag="poly.output_audio.delta"):
    """PolyAI: how much of a text reply has been voiced; ``delta`` is the text since the last report."""

    response_id: str
    audio_ms: int
    delta: str


class PolyOutputAudioStopped(_ClientEvent, tag="poly.output_audio.stopped"):
    """PolyAI: the client's voice ended or was interrupted; ``dropped_ms`` of it were never heard."""

    response_id: str
    audio_ms: int
    dropped_ms: int
    spoken_text: str


ClientEvent: TypeAlias = (
    SessionUpdate
    | InputAudioBufferAppend
    | InputAudioBufferCommit
    | InputAudioBufferClear
    | ConversationItemCreate
    | ConversationItemRetrieve
    | ConversationItemTruncate
    | ConversationItemDelete
    | ResponseCreate
    | ResponseCancel
    | OutputAudioBufferClear
    | PolyOutputAudioStarted
    | PolyOutputAudioDelta
    | PolyOutputAudioStopped
)

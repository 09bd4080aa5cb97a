"""Events that a realtime server sends: all 46 of the protocol, and ``Unknown`` for what is newer.

A struct's tag is the event's wire type. ``event_id`` may be absent. Indexes that a server leaves out are 0, and are
always written.
Audio positions are ms on the clock of the caller's audio since the session began.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import field

from callwright.wire.items import ContentPart, Item, Json, JsonValue, WireStruct
from callwright.wire.objects import (
    AnySession,
    Conversation,
    ErrorDetail,
    PartialError,
    RateLimit,
    Response,
    TranscriptionUsage,
)


class Unknown(WireStruct):
    """An event of a type that is not known here; the rest of it is dropped."""

    type: str
    event_id: str | None = None


class _ServerEvent(WireStruct, tag_field="type"):
    """Every server event normally carries an id."""

    event_id: str | None = None


class _SessionEvent(_ServerEvent):
    session: AnySession


class SessionCreated(_SessionEvent, tag="session.created"):
    """The first event of a connection: the server's defaults."""


class SessionUpdated(_SessionEvent, tag="session.updated"):
    """A ``session.update`` was applied; the whole effective configuration."""


class ErrorEvent(_ServerEvent, tag="error"):
    """Something was refused or failed; the session normally stays open."""

    error: ErrorDetail


class ConversationCreated(_ServerEvent, tag="conversation.created"):
    """The default conversation exists."""

    conversation: Conversation


class _PlacedItem(_ServerEvent):
    item: Item
    previous_item_id: str | None = None
    """The item before it; some servers write ``root`` for the first."""


class ConversationItemAdded(_PlacedItem, tag="conversation.item.added"):
    """An item entered the history; the model's own are still empty."""


class ConversationItemDone(_PlacedItem, tag="conversation.item.done"):
    """An item is final: all of its content but the audio."""


class ConversationItemCreated(_PlacedItem, tag="conversation.item.created"):
    """The older name of ``conversation.item.added``; decoded as that."""


class ConversationItemRetrieved(_ServerEvent, tag="conversation.item.retrieved"):
    """The server's version of an item, audio included; after a cut, its text is what was left."""

    item: Item


class ConversationItemTruncated(_ServerEvent, tag="conversation.item.truncated"):
    """An assistant's item was cut; ``audio_end_ms`` counts from the start of that item. Some servers never answer."""

    item_id: str
    content_index: int = field(default_factory=int)
    audio_end_ms: int


class ConversationItemDeleted(_ServerEvent, tag="conversation.item.deleted"):
    """An item was removed."""

    item_id: str


class _CallerItem(_ServerEvent):
    """About the item of the caller's turn."""

    item_id: str


class _CallerPart(_CallerItem):
    content_index: int = field(default_factory=int)


class ConversationItemInputAudioTranscriptionDelta(
    _CallerPart, tag="conversation.item.input_audio_transcription.delta"
):
    """More of what the caller said."""

    delta: str | None = None
    logprobs: tuple[Json, ...] | None = None


class ConversationItemInputAudioTranscriptionCompleted(
    _CallerPart, tag="conversation.item.input_audio_transcription.completed"
):
    """All that the caller said in a turn; comes before or after the reply to it."""

    transcript: str
    usage: TranscriptionUsage | None = None
    languages: tuple[JsonValue, ...] | None = None
    logprobs: tuple[Json, ...] | None = None


class ConversationItemInputAudioTranscriptionFailed(
    _CallerPart, tag="conversation.item.input_audio_transcription.failed"
):
    """A turn of the caller could not be written down."""

    error: PartialError


class ConversationItemInputAudioTranscriptionSegment(
    _CallerPart, tag="conversation.item.input_audio_transcription.segment"
):
    """What one speaker said; ``start`` and ``end`` in seconds."""

    id: str
    text: str
    speaker: str
    start: float
    end: float


class InputAudioBufferCommitted(_CallerItem, tag="input_audio_buffer.committed"):
    """A turn of the caller was closed and becomes ``item_id``."""

    previous_item_id: str | None = None


class InputAudioBufferCleared(_ServerEvent, tag="input_audio_buffer.cleared"):
    """The caller's audio since the last turn was thrown away."""


class InputAudioBufferSpeechStarted(_CallerItem, tag="input_audio_buffer.speech_started"):
    """The caller began to speak; ``item_id`` is the item that the turn will become."""

    audio_start_ms: int


class InputAudioBufferSpeechStopped(_CallerItem, tag="input_audio_buffer.speech_stopped"):
    """The caller's turn ended; ``audio_end_ms`` includes the silence that was waited for."""

    audio_end_ms: int


class InputAudioBufferTimeoutTriggered(_CallerItem, tag="input_audio_buffer.timeout_triggered"):
    """The caller was silent for the idle timeout; a reply follows."""

    audio_start_ms: int
    audio_end_ms: int


class InputAudioBufferDtmfEventReceived(_ServerEvent, tag="input_audio_buffer.dtmf_event_received"):
    """A key was pressed (SIP only); ``received_at`` in Unix seconds."""

    event: str
    received_at: int


class ResponseCreated(_ServerEvent, tag="response.created"):
    """A response has begun."""

    response: Response


class ResponseDone(_ServerEvent, tag="response.done"):
    """A response has ended, in whatever way; always sent."""

    response: Response


class _OutputItem(_ServerEvent):
    response_id: str
    output_index: int = field(default_factory=int)
    item: Item


class ResponseOutputItemAdded(_OutputItem, tag="response.output_item.added"):
    """A response begins another item."""


class ResponseOutputItemDone(_OutputItem, tag="response.output_item.done"):
    """An item of a response has ended, by itself or cut."""


class _Output(_ServerEvent):
    """About one item of a response."""

    response_id: str
    item_id: str
    output_index: int = field(default_factory=int)


class _OutputPart(_Output):
    """About one content part of an item."""

    content_index: int = field(default_factory=int)


class ResponseContentPartAdded(_OutputPart, tag="response.content_part.added"):
    """An item begins another content part."""

    part: ContentPart


class ResponseContentPartDone(_OutputPart, tag="response.content_part.done"):
    """A content part has ended."""

    part: ContentPart


class ResponseOutputTextDelta(_OutputPart, tag="response.output_text.delta"):
    """More of a written reply."""

    delta: str


class ResponseOutputTextDone(_OutputPart, tag="response.output_text.done"):
    """The whole written reply."""

    text: str


class ResponseOutputAudioDelta(_OutputPart, tag="response.output_audio.delta"):
    """More of a spoken reply: ``delta`` is raw audio in the session's output format."""

    delta: bytes


class ResponseOutputAudioDone(_OutputPart, tag="response.output_audio.done"):
    """No more audio will come for this part."""


class ResponseOutputAudioTranscriptDelta(_OutputPart, tag="response.output_audio_transcript.delta"):
    """More words of a spoken reply, as written."""

    delta: str


class ResponseOutputAudioTranscriptDone(_OutputPart, tag="response.output_audio_transcript.done"):
    """The words of a spoken reply as written; of a cut one too, never what was heard of it."""

    transcript: str


class ResponseFunctionCallArgumentsDelta(_Output, tag="response.function_call_arguments.delta"):
    """More of a tool call's arguments."""

    call_id: str
    delta: str


class ResponseFunctionCallArgumentsDone(_Output, tag="response.function_call_arguments.done"):
    """A tool call is complete; where ``name`` is absent, the item's ``response.output_item.added`` had it."""

    call_id: str
    name: str | None = None
    arguments: str = field(default_factory=str)


class RateLimitsUpdated(_ServerEvent, tag="rate_limits.updated"):
    """What is left of the account's limits."""

    rate_limits: tuple[RateLimit, ...]


class _BufferEvent(_ServerEvent):
    response_id: str


class OutputAudioBufferStarted(_BufferEvent, tag="output_audio_buffer.started"):
    """The server began to play a reply; WebRTC and SIP only."""


class OutputAudioBufferStopped(_BufferEvent, tag="output_audio_buffer.stopped"):
    """The server has played all of a reply; WebRTC and SIP only."""


class OutputAudioBufferCleared(_BufferEvent, tag="output_audio_buffer.cleared"):
    """The server dropped the rest of a reply; WebRTC and SIP only."""


class _McpList(_ServerEvent):
    item_id: str


class McpListToolsInProgress(_McpList, tag="mcp_list_tools.in_progress"):
    """A remote tool server is being asked for its tools."""


class McpListToolsCompleted(_McpList, tag="mcp_list_tools.completed"):
    """A remote tool server's tools are known."""


class McpListToolsFailed(_McpList, tag="mcp_list_tools.failed"):
    """A remote tool server did not tell its tools."""


class ResponseMcpCallArgumentsDelta(_Output, tag="response.mcp_call_arguments.delta"):
    """More of the arguments for a remote tool."""

    delta: str
    obfuscation: str | None = None


class ResponseMcpCallArgumentsDone(_Output, tag="response.mcp_call_arguments.done"):
    """The whole arguments for a remote tool."""

    arguments: str


class _McpCall(_McpList):
    output_index: int = field(default_factory=int)


class ResponseMcpCallInProgress(_McpCall, tag="response.mcp_call.in_progress"):
    """A remote tool was called."""


class ResponseMcpCallCompleted(_McpCall, tag="response.mcp_call.completed"):
    """A remote tool answered."""


class ResponseMcpCallFailed(_McpCall, tag="response.mcp_call.failed"):
    """A remote tool failed."""


ServerEvent: TypeAlias = (
    SessionCreated
    | SessionUpdated
    | ErrorEvent
    | ConversationCreated
    | ConversationItemAdded
    | ConversationItemDone
    | ConversationItemCreated
    | ConversationItemRetrieved
    | ConversationItemTruncated
    | ConversationItemDeleted
    | ConversationItemInputAudioTranscriptionDelta
    | ConversationItemInputAudioTranscriptionCompleted
    | ConversationItemInputAudioTranscriptionFailed
    | ConversationItemInputAudioTranscriptionSegment
    | InputAudioBufferCommitted
    | InputAudioBufferCleared
    | InputAudioBufferSpeechStarted
    | InputAudioBufferSpeechStopped
    | InputAudioBufferTimeoutTriggered
    | InputAudioBufferDtmfEventReceived
    | ResponseCreated
    | ResponseDone
    | ResponseOutputItemAdded
    | ResponseOutputItemDone
    | ResponseContentPartAdded
    | ResponseContentPartDone
    | ResponseOutputTextDelta
    | ResponseOutputTextDone
    | ResponseOutputAudioDelta
    | ResponseOutputAudioDone
    | ResponseOutputAudioTranscriptDelta
    | ResponseOutputAudioTranscriptDone
    | ResponseFunctionCallArgumentsDelta
    | ResponseFunctionCallArgumentsDone
    | RateLimitsUpdated
    | OutputAudioBufferStarted
    | OutputAudioBufferStopped
    | OutputAudioBufferCleared
    | McpListToolsInProgress
    | McpListToolsCompleted
    | McpListToolsFailed
    | ResponseMcpCallArgumentsDelta
    | ResponseMcpCallArgumentsDone
    | ResponseMcpCallInProgress
    | ResponseMcpCallCompleted
    | ResponseMcpCallFailed
)

"""One event of every type with every field filled, as a strict server or client would write it."""

from __future__ import annotations

from callwright.wire import client, items, objects, server

FRAME = bytes(range(256)) * 3 + b"\x01\x02"

USER = items.MessageItem(
    id="item_1",
    object="realtime.item",
    status="completed",
    role="user",
    content=(
        items.ContentPart(type="input_text", text="hello"),
        items.ContentPart(type="input_audio", audio=FRAME, transcript="hello"),
        items.ContentPart(type="input_image", image_url="data:image/png;base64,AAAA", detail="low"),
    ),
)
ASSISTANT = items.MessageItem(
    id="item_2",
    object="realtime.item",
    status="incomplete",
    role="assistant",
    content=(
        items.ContentPart(type="output_audio", audio=FRAME, transcript="Check-in is from three-"),
        items.ContentPart(type="output_text", text=""),
    ),
)
SYSTEM = items.MessageItem(
    id="item_3",
    object="realtime.item",
    role="system",
    content=(items.ContentPart(type="input_text", text="facts"),),
)
CALL = items.FunctionCallItem(
    id="item_4", object="realtime.item", status="in_progress", name="find_order", arguments="{}", call_id="c" * 37
)
OUTPUT = items.FunctionCallOutputItem(
    id="item_5",
    object="realtime.item",
    status="completed",
    call_id="c" * 37,
    output="",
    poly_knowledge=({"name": "a", "content": "b"},),
)
MCP_ITEMS = (
    items.McpListToolsItem(id="m1", server_label="s", tools=({"name": "t", "input_schema": {"type": "object"}},)),
    items.McpCallItem(
        id="m2",
        server_label="s",
        name="t",
        arguments="{}",
        output="done",
        error={"type": "protocol_error", "code": 1, "message": "no"},
        approval_request_id="m3",
    ),
    items.McpApprovalRequestItem(id="m3", server_label="s", name="t", arguments="{}"),
    items.McpApprovalResponseItem(id="m4", approval_request_id="m3", approve=False, reason="no"),
)
ITEMS: tuple[items.Item, ...] = (USER, ASSISTANT, SYSTEM, CALL, OUTPUT, *MCP_ITEMS)

TOOL: items.Json = {
    "type": "function",
    "name": "find_order",
    "description": "Find an order.",
    "parameters": {
        "type": "object",
        "properties": {"holding": {"type": "string", "poly_spoken": True}},
        "required": ["holding"],
    },
}
SESSION = objects.Session(
    id="sess_1",
    object="realtime.session",
    expires_at=1_795_000_000,
    model="dialog-rsn-1",
    instructions="Be brief.",
    tools=(TOOL,),
    tool_choice={"type": "function", "name": "find_order"},
    output_modalities=("audio",),
    max_output_tokens="inf",
    parallel_tool_calls=False,
    prompt={"id": "p", "version": "1", "variables": {"a": "b"}},
    reasoning={"effort": "low"},
    audio=objects.Audio(
        input=objects.AudioInput(
            format=objects.PCM16_24K,
            turn_detection=objects.TurnDetection(
                type="server_vad",
                create_response=True,
                interrupt_response=True,
                threshold=0.5,
                prefix_padding_ms=300,
                silence_duration_ms=500,
                idle_timeout_ms=6000,
            ),
            transcription={"model": "gpt-transcribe", "language": "en"},
            noise_reduction=None,
        ),
        output=objects.AudioOutput(format=objects.PCMA, voice={"id": "v"}, speed=1.25),
    ),
    include=("item.input_audio_transcription.logprobs",),
    tracing="auto",
    truncation={"type": "retention_ratio", "retention_ratio": 0.8, "token_limits": {"post_instructions": 9000}},
    poly_input_rate=48_000,
    poly_knowledge=({"name": "a", "content": "b"},),
    poly_response_language="pt-BR",
)
TRANSCRIPTION = objects.TranscriptionSession(
    id="sess_2",
    object="realtime.transcription_session",
    expires_at=1,
    audio=objects.Audio(input=objects.AudioInput(format=objects.PCMU, turn_detection=None, transcription=None)),
    include=("item.input_audio_transcription.logprobs",),
)

RESPONSE = objects.Response(
    id="resp_1",
    object="realtime.response",
    status="cancelled",
    status_details=objects.StatusDetails(
        type="cancelled",
        reason="turn_detected",
        error=objects.PartialError(type="server_error", code="x", message="y"),
    ),
    output=(ASSISTANT, CALL),
    conversation_id="conv_1",
    output_modalities=("audio",),
    max_output_tokens=4096,
    audio=objects.Audio(output=objects.AudioOutput(format=objects.PCM16_24K, voice="marin")),
    usage=objects.Usage(
        total_tokens=10,
        input_tokens=6,
        output_tokens=4,
        input_token_details=objects.TokenDetails(
            text_tokens=1,
            audio_tokens=2,
            image_tokens=0,
            cached_tokens=3,
            cached_tokens_details=objects.TokenCounts(text_tokens=1, audio_tokens=2, image_tokens=0),
        ),
        output_token_details=objects.TokenDetails(text_tokens=1, audio_tokens=3),
    ),
    metadata={"topic": "x"},
    poly_cited_topics=("a",),
    poly_out_of_domain=False,
)
LOGPROBS: tuple[items.Json, ...] = ({"token": "a", "bytes": [97], "logprob": -0.5},)
TOKENS = objects.TranscriptionUsage(
    type="tokens",
    total_tokens=3,
    input_tokens=2,
    output_tokens=1,
    input_token_details=objects.TokenDetails(text_tokens=0, audio_tokens=2),
)
DURATION = objects.TranscriptionUsage(type="duration", seconds=1.5)

CLIENT: tuple[client.ClientEvent, ...] = (
    client.SessionUpdate(event_id="e", session=SESSION),
    client.SessionUpdate(session=TRANSCRIPTION),
    client.InputAudioBufferAppend(event_id="e", audio=FRAME),
    client.InputAudioBufferAppend(audio=b""),
    client.InputAudioBufferCommit(event_id="e"),
    client.InputAudioBufferClear(event_id="e"),
    *(client.ConversationItemCreate(event_id="e", item=item, previous_item_id="root") for item in ITEMS),
    client.ConversationItemCreate(item=SYSTEM, previous_item_id=None),
    client.ConversationItemRetrieve(event_id="e", item_id="i"),
    client.ConversationItemTruncate(event_id="e", item_id="i", content_index=0, audio_end_ms=0),
    client.ConversationItemDelete(event_id="e", item_id="i"),
    client.ResponseCreate(),
    client.ResponseCreate(
        event_id="e",
        response=objects.ResponseParams(
            instructions="",
            tools=(),
            tool_choice="none",
            output_modalities=("text",),
            max_output_tokens=1,
            parallel_tool_calls=True,
            prompt=None,
            reasoning={"effort": "low"},
            conversation="none",
            input=(USER, items.ItemReference(id="item_9")),
            audio=objects.Audio(output=objects.AudioOutput(format=objects.PCMU, voice="marin")),
            metadata={"a": "b"},
        ),
    ),
    client.ResponseCancel(event_id="e", response_id="r"),
    client.OutputAudioBufferClear(event_id="e"),
    client.PolyOutputAudioStarted(event_id="e", response_id="r"),
    client.PolyOutputAudioDelta(event_id="e", response_id="r", audio_ms=0, delta=""),
    client.PolyOutputAudioStopped(event_id="e", response_id="r", audio_ms=0, dropped_ms=0, spoken_text=""),
)

_PART = {"event_id": "e", "response_id": "r", "item_id": "i"}
_CALLER = {"event_id": "e", "item_id": "i"}

SERVER: tuple[server.ServerEvent, ...] = (
    server.SessionCreated(event_id="e", session=SESSION),
    server.SessionUpdated(event_id="e", session=TRANSCRIPTION),
    server.ErrorEvent(
        event_id="e",
        error=objects.ErrorDetail(message="", type="invalid_request_error", code="c", param="p", event_id="x"),
    ),
    server.ConversationCreated(
        event_id="e", conversation=objects.Conversation(id="conv_1", object="realtime.conversation")
    ),
    *(server.ConversationItemAdded(event_id="e", item=item, previous_item_id="root") for item in ITEMS),
    server.ConversationItemAdded(event_id="e", item=items.MessageItem(id="i", role="assistant")),
    server.ConversationItemDone(event_id="e", item=USER, previous_item_id="i"),
    server.ConversationItemCreated(event_id="e", item=USER, previous_item_id="i"),
    server.ConversationItemRetrieved(event_id="e", item=ASSISTANT),
    server.ConversationItemTruncated(event_id="e", item_id="i", audio_end_ms=0),
    server.ConversationItemDeleted(event_id="e", item_id="i"),
    server.ConversationItemInputAudioTranscriptionDelta(**_CALLER, delta="a", logprobs=LOGPROBS),
    server.ConversationItemInputAudioTranscriptionCompleted(
        **_CALLER, transcript="", usage=TOKENS, languages=({"code": "en"},), logprobs=LOGPROBS
    ),
    server.ConversationItemInputAudioTranscriptionCompleted(**_CALLER, transcript="a", usage=DURATION),
    server.ConversationItemInputAudioTranscriptionFailed(
        **_CALLER, error=objects.PartialError(type="t", code="c", message="m", param="p")
    ),
    server.ConversationItemInputAudioTranscriptionSegment(
        **_CALLER, id="seg", text="a", speaker="A", start=0.0, end=1.5
    ),
    server.InputAudioBufferCommitted(**_CALLER, previous_item_id="j"),
    server.InputAudioBufferCleared(event_id="e"),
    server.InputAudioBufferSpeechStarted(**_CALLER, audio_start_ms=0),
    server.InputAudioBufferSpeechStopped(**_CALLER, audio_end_ms=0),
    server.InputAudioBufferTimeoutTriggered(**_CALLER, audio_start_ms=0, audio_end_ms=0),
    server.InputAudioBufferDtmfEventReceived(event="#", received_at=1_795_000_000),
    server.ResponseCreated(event_id="e", response=objects.Response(id="resp_1", status="in_progress")),
    server.ResponseDone(event_id="e", response=RESPONSE),
    server.ResponseOutputItemAdded(event_id="e", response_id="r", item=CALL),
    server.ResponseOutputItemDone(event_id="e", response_id="r", item=ASSISTANT, output_index=1),
    server.ResponseContentPartAdded(**_PART, part=items.ContentPart(type="audio", transcript="")),
    server.ResponseContentPartDone(**_PART, part=items.ContentPart(type="text", text="a"), content_index=1),
    server.ResponseOutputTextDelta(**_PART, delta="a"),
    server.ResponseOutputTextDone(**_PART, text=""),
    server.ResponseOutputAudioDelta(**_PART, delta=FRAME),
    server.ResponseOutputAudioDone(**_PART),
    server.ResponseOutputAudioTranscriptDelta(**_PART, delta="a"),
    server.ResponseOutputAudioTranscriptDone(**_PART, transcript=""),
    server.ResponseFunctionCallArgumentsDelta(**_PART, call_id="c", delta="{"),
    server.ResponseFunctionCallArgumentsDone(**_PART, call_id="c", name="find_order"),
    server.RateLimitsUpdated(
        event_id="e",
        rate_limits=(objects.RateLimit(name="tokens", limit=100, remaining=99, reset_seconds=0.5),),
    ),
    server.OutputAudioBufferStarted(event_id="e", response_id="r"),
    server.OutputAudioBufferStopped(event_id="e", response_id="r"),
    server.OutputAudioBufferCleared(event_id="e", response_id="r"),
    server.McpListToolsInProgress(**_CALLER),
    server.McpListToolsCompleted(**_CALLER),
    server.McpListToolsFailed(**_CALLER),
    server.ResponseMcpCallArgumentsDelta(**_PART, delta="{", obfuscation="xx"),
    server.ResponseMcpCallArgumentsDone(**_PART, arguments="{}"),
    server.ResponseMcpCallInProgress(**_CALLER),
    server.ResponseMcpCallCompleted(**_CALLER),
    server.ResponseMcpCallFailed(**_CALLER),
)

"""The objects that events carry: session, response, usage, errors and what they are made of.

``UNSET`` stands where an explicit ``null`` means something else than an absent field, as in ``turn_detection``, which
``null`` turns off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import UNSET, UnsetType, field

from callwright.wire.items import Item, ItemReference, Json, JsonValue, WireStruct


class WireFormat(WireStruct):
    """An audio format as the session object spells it; ``rate`` in Hz, absent for G.711."""

    type: str
    """``audio/pcm`` (16-bit little-endian mono), ``audio/pcmu`` or ``audio/pcma``."""
    rate: int | None = None


PCM16_24K = WireFormat(type="audio/pcm", rate=24_000)
PCM16_16K = WireFormat(type="audio/pcm", rate=16_000)
PCMU = WireFormat(type="audio/pcmu")
PCMA = WireFormat(type="audio/pcma")

AnyFormat: TypeAlias = WireFormat | str | None
"""Older servers write a format as one word, such as ``pcm16`` or ``g711_ulaw``."""

SPOKEN_KEY: Final = "poly_spoken"
"""What marks a string argument of a tool that is said aloud while the tool runs."""


def topics_of(contents: Mapping[str, str]) -> tuple[Json, ...]:
    """Topics that a model may answer from, as the protocol spells them."""
    return tuple({"name": name, "content": content} for name, content in contents.items())


class TurnDetection(WireStruct):
    """How the server finds the ends of the caller's turns; times in ms."""

    type: str
    """``server_vad`` or ``semantic_vad``."""
    create_response: bool | None = None
    interrupt_response: bool | None = None
    threshold: float | None = None
    prefix_padding_ms: int | None = None
    silence_duration_ms: int | None = None
    idle_timeout_ms: int | None = None
    eagerness: str | None = None


class AudioInput(WireStruct):
    """The caller's side of a session's audio."""

    format: AnyFormat = None
    turn_detection: TurnDetection | UnsetType | None = UNSET
    transcription: Json | UnsetType | None = UNSET
    noise_reduction: Json | UnsetType | None = UNSET


class AudioOutput(WireStruct):
    """The agent's side of a session's audio."""

    format: AnyFormat = None
    voice: str | Json | None = None
    speed: float | None = None


class Audio(WireStruct):
    """Both sides of a session's audio, or the ``output`` of one response."""

    input: AudioInput | None = None
    output: AudioOutput | None = None


class _Instructed(WireStruct):
    """What can be set for the whole session and again for one response."""

    instructions: str | None = None
    tools: tuple[Json, ...] | None = None
    tool_choice: str | Json | None = None
    output_modalities: tuple[str, ...] | None = None
    max_output_tokens: int | Literal["inf"] | None = None
    parallel_tool_calls: bool | None = None
    prompt: Json | UnsetType | None = UNSET
    reasoning: Json | None = None


class Session(_Instructed, tag_field="type", tag="realtime"):
    """A realtime session: what a client asks for, and the whole effective configuration in the server's answer."""

    id: str | None = None
    object: str | None = None
    expires_at: int | None = None
    """Unix seconds."""
    model: str | None = None
    audio: Audio | None = None
    include: tuple[str, ...] | None = None
    tracing: str | Json | UnsetType | None = UNSET
    truncation: str | Json | None = None
    poly_input_rate: int | None = None
    """PolyAI: a sample rate of the caller's audio outside the standard ones, in Hz."""
    poly_knowledge: tuple[Json, ...] | None = None
    """PolyAI: topics ``{name, content}`` that the model may answer from."""
    poly_response_language: str | None = None
    """PolyAI: a language tag such as ``pt-BR``, or plain words."""


class TranscriptionSession(WireStruct, tag_field="type", tag="transcription"):
    """A session that only writes down what it hears."""

    id: str | None = None
    object: str | None = None
    expires_at: int | None = None
    audio: Audio | None = None
    include: tuple[str, ...] | None = None


AnySession: TypeAlias = Session | TranscriptionSession


class ResponseParams(_Instructed):
    """What one ``response.create`` asks for; overrides the session for that response."""

    conversation: str | None = None
    """``auto``, or ``none`` for a response outside the history."""
    input: tuple[Item | ItemReference, ...] | None = None
    """The context instead of the history; an empty tuple means no context."""
    audio: Audio | None = None
    metadata: dict[str, str] | None = None


class ErrorDetail(WireStruct):
    """What went wrong; ``event_id`` names the client event at fault, where there is one."""

    message: str = field(default_factory=str)
    type: str = field(default_factory=str)
    code: str | None = None
    param: str | None = None
    event_id: str | None = None


class PartialError(WireStruct):
    """An error inside another object, every part of it optional."""

    type: str | None = None
    code: str | None = None
    message: str | None = None
    param: str | None = None


class StatusDetails(WireStruct):
    """Why a response ended as it did; ``reason`` is for instance ``turn_detected`` or ``client_cancelled``."""

    type: str | None = None
    reason: str | None = None
    error: PartialError | None = None


class TokenCounts(WireStruct):
    """Token counts by kind."""

    text_tokens: int | None = None
    audio_tokens: int | None = None
    image_tokens: int | None = None


class TokenDetails(TokenCounts):
    """Token counts by kind, and how many of them were cached."""

    cached_tokens: int | None = None
    cached_tokens_details: TokenCounts | None = None


class Usage(WireStruct):
    """The tokens of one response."""

    total_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_token_details: TokenDetails | None = None
    output_token_details: TokenDetails | None = None


class TranscriptionUsage(WireStruct):
    """The price of one transcript: ``type`` is ``tokens`` or ``duration`` (then ``seconds``)."""

    type: str
    seconds: float | None = None
    total_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_token_details: TokenDetails | None = None


class Response(WireStruct):
    """One response of the model, in the making or ended."""

    id: str
    object: str | None = None
    status: str | None = None
    """``in_progress``, ``completed``, ``cancelled``, ``incomplete`` or ``failed``."""
    status_details: StatusDetails | str | None = None
    output: tuple[Item, ...] | None = None
    conversation_id: str | None = None
    output_modalities: tuple[str, ...] | None = None
    max_output_tokens: int | Literal["inf"] | None = None
    audio: Audio | None = None
    usage: Usage | None = None
    metadata: dict[str, str] | None = None
    poly_cited_topics: tuple[JsonValue, ...] | None = None
    """PolyAI: the topics of ``poly_knowledge`` that the reply used."""
    poly_out_of_domain: bool | None = None
    """PolyAI: the reply was not covered by ``poly_knowledge``."""


class Conversation(WireStruct):
    """The default conversation of a session."""

    id: str | None = None
    object: str | None = None


class RateLimit(WireStruct):
    """One limit of the account; ``reset_seconds`` until it is full again."""

    name: str | None = None
    limit: int | None = None
    remaining: int | None = None
    reset_seconds: float | None = None

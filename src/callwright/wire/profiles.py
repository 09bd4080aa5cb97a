"""What each provider of the realtime protocol can do, and the session that it is asked for.

A refused ``session.update`` applies nothing, instructions included, so a field that the provider does not take must not
be sent; and an event that it lacks is refused here, before a caller has to wait for the error.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import msgspec
from msgspec import UNSET, UnsetType

from callwright.errors import LocalProtocolError
from callwright.ids import Ms
from callwright.wire.client import ClientEvent, ConversationItemCreate, SessionUpdate
from callwright.wire.codec import CLIENT_EVENTS, wire_type
from callwright.wire.items import FunctionCallOutputItem
from callwright.wire.objects import (
    PCM16_16K,
    PCM16_24K,
    PCMA,
    PCMU,
    AnySession,
    Audio,
    AudioInput,
    Session,
    TurnDetection,
    WireFormat,
    topics_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from callwright.ids import Ms
    from callwright.wire.items import Json

SERVER_VAD: Final = TurnDetection(type="server_vad", create_response=True)
"""The server finds the ends of turns and answers each of them."""
INTERRUPTING_VAD: Final = TurnDetection(type="server_vad", create_response=True, interrupt_response=True)
"""The same, and a beginning cuts the reply that is being made."""


_SPOKEN: Final = "poly_response_language"
_KNOWLEDGE: Final = "poly_knowledge"
_RATE: Final = "poly_input_rate"


class Feature(Enum):
    """Something that a provider does beyond the events that it takes."""

    SPOKEN_ARGUMENTS = "a string argument marked poly_spoken is spoken while its tool runs"
    OUT_OF_BAND = "a response with conversation none leaves the history alone"
    METADATA = "the metadata of a request come back in its response"
    MERGED_REQUESTS = "a request for a reply while the caller speaks is held: one reply answers it and the turn"


@dataclass(frozen=True, slots=True)
class Profile:
    """One provider's dialect."""

    name: str
    default_url: str
    url_env: str
    """Environment variable that overrides ``default_url``."""
    key_env: str
    """Environment variable with the key, sent as ``Authorization: Bearer``."""
    client_events: frozenset[str]
    """Wire types of the client events that it takes."""
    session_fields: frozenset[str]
    """Dotted paths of the session fields that it takes; everything below a path is taken with it."""
    input_formats: tuple[WireFormat, ...]
    output_format: WireFormat
    features: frozenset[Feature]
    cut_suffix: str
    """What ends the text of a retrieved item that was cut; empty where a cut item keeps no text."""
    call_id_max: int
    """Longest id of a tool call, in characters; it goes back byte for byte."""
    longest_session_ms: Ms | None = None
    """How long a session lasts before the server ends it; None where no limit is known."""
    longest_turn_ms: Ms | None = None
    """How much audio of one open turn the server keeps; None where no limit is known."""
    model: str = ""
    """The model that the address names as ``?model=``; empty where it need not be named."""
    turn_detection: TurnDetection | None = SERVER_VAD
    """What is asked for unless a session says otherwise; None: the client ends every turn by hand."""
    minute_micro_usd: int | None = None
    """What a connected minute costs, in millionths of a US dollar, without tokens; None where time costs nothing."""
    transcription: Json | None = None
    """How the caller's words are asked for; None where they come unasked."""
    language: str = ""
    """What the caller speaks, as a tag such as ``en``; empty where that is left to the provider."""
    needs_key: bool = True
    """Whether nobody is let in without a key; where it is not known, none is sent unless it is set."""

    @property
    def takes_knowledge(self) -> bool:
        """Whether its model answers from topics that it is given."""
        return _KNOWLEDGE in self.session_fields

    @property
    def tells_cuts(self) -> bool:
        """Whether a retrieved item tells the words that a cut left of it."""
        return bool(self.cut_suffix)

    def micro_usd(self, connected_ms: Ms) -> int | None:
        """What a connection of this length costs, in millionths of a US dollar; None where no price is known."""
        return None if self.minute_micro_usd is None else connected_ms * self.minute_micro_usd // 60_000

    def address(self, url: str | None = None) -> str:
        """Where to connect: ``url``, or the provider's own, with the model in its query unless that names one."""
        address = url or self.default_url
        if not self.model or "model=" in address.partition("?")[2]:
            return address
        return f"{address}{'&' if '?' in address else '?'}{urlencode({'model': self.model})}"


POLYAI: Final = Profile(
    name="polyai",
    default_url="wss://api.studio.poly.ai/v1/realtime",
    url_env="DIALOG_REALTIME_URL",
    key_env="POLY_API_KEY",
    client_events=frozenset(CLIENT_EVENTS) - {"output_audio_buffer.clear"},
    session_fields=frozenset(
        {
            "type",
            "model",
            "instructions",
            "tools",
            "output_modalities",
            "audio.input.format",
            "audio.input.turn_detection.type",
            "audio.input.turn_detection.create_response",
            _RATE,
            _KNOWLEDGE,
            _SPOKEN,
        }
    ),
    input_formats=(PCM16_24K, PCM16_16K, PCMU),
    output_format=PCM16_24K,
    features=frozenset({Feature.SPOKEN_ARGUMENTS, Feature.MERGED_REQUESTS}),
    cut_suffix="-",
    call_id_max=37,
    minute_micro_usd=20_000,
    longest_session_ms=60 * 60_000,
    longest_turn_ms=300_000,
)
"""PolyAI's Dialog-RSN-1 on its hosted service, as published, prices too, and measured up to November 2026."""

OPENAI: Final = Profile(
    name="openai",
    default_url="wss://api.openai.com/v1/realtime",
    url_env="OPENAI_REALTIME_URL",
    key_env="OPENAI_API_KEY",
    client_events=frozenset(kind for kind in CLIENT_EVENTS if not kind.startswith("poly."))
    - {"output_audio_buffer.clear"},
    session_fields=frozenset(
        {
            "type",
            "model",
            "instructions",
            "tools",
            "tool_choice",
            "parallel_tool_calls",
            "output_modalities",
            "max_output_tokens",
            "prompt",
            "reasoning",
            "include",
            "tracing",
            "truncation",
            "audio.input.format",
            "audio.input.turn_detection",
            "audio.input.transcription",
            "audio.input.noise_reduction",
            "audio.output",
        }
    ),
    input_formats=(PCM16_24K, PCMU, PCMA),
    output_format=PCM16_24K,
    features=frozenset({Feature.OUT_OF_BAND, Feature.METADATA}),
    cut_suffix="",
    call_id_max=32,
    longest_session_ms=60 * 60_000,
    model="gpt-realtime-2",
    turn_detection=INTERRUPTING_VAD,
    transcription={"model": "gpt-transcribe"},
)
"""The OpenAI Realtime API, generally available version, as documented up to November 2026."""

PLAIN: Final = Profile(
    name="plain",
    default_url="ws://127.0.0.1:8765/v1/realtime",
    url_env="REALTIME_URL",
    key_env="REALTIME_API_KEY",
    client_events=frozenset(
        {
            "session.update",
            "input_audio_buffer.append",
            "input_audio_buffer.commit",
            "input_audio_buffer.clear",
            "conversation.item.create",
            "response.create",
            "response.cancel",
        }
    ),
    session_fields=frozenset(
        {
            "type",
            "instructions",
            "tools",
            "output_modalities",
            "audio.input.format",
            "audio.input.turn_detection.type",
            "audio.input.turn_detection.create_response",
        }
    ),
    input_formats=(PCM16_24K, PCMU),
    output_format=PCM16_24K,
    features=frozenset(),
    cut_suffix="",
    call_id_max=32,
    needs_key=False,
)
"""What any server that speaks the protocol can be trusted with: its history can be neither shortened nor read."""

PROFILES: Final = {profile.name: profile for profile in (POLYAI, OPENAI, PLAIN)}
"""All dialects, by name."""


def session_update(
    profile: Profile,
    *,
    instructions: str,
    tools: Sequence[Mapping[str, object]],
    input_format: WireFormat,
    output_modalities: tuple[str, ...] = ("audio",),
    turn_detection: TurnDetection | UnsetType | None = UNSET,
    knowledge: Mapping[str, str] = MappingProxyType({}),
) -> SessionUpdate:
    """Return the update that opens or changes a session; it always names the input format, so that none is reset.

    ``tools`` are objects ``{"type": "function", "name": ..., "description": ..., "parameters": JSON schema}``. Spoken
    replies are every provider's default, so ``output_modalities`` is sent only when it asks for something else. Without
    ``turn_detection`` it is the profile's own; None turns it off. ``knowledge`` holds topics, contents by name. Where a
    provider takes a rate of linear audio that it has no format for, that is told beside the format.

    Raises ``LocalProtocolError`` when the provider does not take the input format or a field of the session.
    """
    rate_hz = input_format.rate if _has_own_rate(profile, input_format) else None
    if rate_hz is not None:
        input_format = WireFormat(type=input_format.type)
    elif input_format not in profile.input_formats:
        known = ", ".join(_spelled(each) for each in profile.input_formats)
        raise LocalProtocolError(f"{profile.name} takes no {_spelled(input_format)} from the caller; it takes {known}")
    hint = {"language": profile.language} if profile.language else {}
    heard = AudioInput(
        format=input_format,
        turn_detection=profile.turn_detection if turn_detection is UNSET else turn_detection,
        transcription=UNSET if profile.transcription is None else {**profile.transcription, **hint},
    )
    update = SessionUpdate(
        session=Session(
            instructions=instructions,
            tools=tuple(dict(tool) for tool in tools),
            output_modalities=None if output_modalities == ("audio",) else output_modalities,
            audio=Audio(input=heard),
            poly_response_language=(profile.language or None) if _SPOKEN in profile.session_fields else None,
            poly_knowledge=topics_of(knowledge) or None,
            poly_input_rate=rate_hz,
        )
    )
    check(profile, update)
    return update


def check(profile: Profile, event: ClientEvent) -> None:
    """Raise ``LocalProtocolError`` when the provider does not take this event, or a field of the session in it."""
    kind = wire_type(event)
    if kind not in profile.client_events:
        raise LocalProtocolError(f"{profile.name} does not take {kind}; it was not sent")
    if isinstance(event, SessionUpdate) and (refused := refused_fields(profile, event.session)):
        fields = ", ".join(refused)
        raise LocalProtocolError(f"{profile.name} would refuse the whole {kind} for session fields: {fields}")
    item = event.item if isinstance(event, ConversationItemCreate) else None
    if isinstance(item, FunctionCallOutputItem) and item.poly_knowledge and not profile.takes_knowledge:
        raise LocalProtocolError(f"{profile.name} takes no topics with a tool's output; it was not sent")


def _has_own_rate(profile: Profile, wire_format: WireFormat) -> bool:
    return (
        _RATE in profile.session_fields
        and wire_format.type == PCM16_24K.type
        and wire_format.rate is not None
        and wire_format not in profile.input_formats
    )


def refused_fields(profile: Profile, session: AnySession) -> list[str]:
    """Return the dotted paths of the fields present in ``session`` that the provider does not take."""
    return list(_refused(msgspec.to_builtins(session), profile.session_fields, ""))


def _refused(value: Any, accepted: frozenset[str], path: str) -> Iterator[str]:
    if path in accepted:
        return
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _refused(inner, accepted, f"{path}.{name}" if path else name)
    else:
        yield path


def _spelled(wire_format: WireFormat) -> str:
    return wire_format.type if wire_format.rate is None else f"{wire_format.type} at {wire_format.rate} Hz"

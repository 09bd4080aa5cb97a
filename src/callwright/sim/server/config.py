"""The session's configuration: what a ``session.update`` may say, and what it comes to.

An update is taken whole or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from callwright.audio.formats import PCM16_24K, AudioFormat, parse_format
from callwright.errors import AudioFormatError
from callwright.sim.server.history import Refusal
from callwright.wire.items import Json
from callwright.wire.objects import (
    Audio,
    AudioInput,
    AudioOutput,
    Session,
    TurnDetection,
    WireFormat,
)
from callwright.wire.profiles import POLYAI, refused_fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from callwright.wire.objects import AnyFormat, AnySession

_DETECTOR = "server_vad"


def _wire(audio_format: AudioFormat) -> WireFormat:
    return msgspec.convert(audio_format.to_wire(), WireFormat)


@dataclass(frozen=True, slots=True)
class Config:
    """The effective configuration; the defaults hold until the first update."""

    instructions: str = ""
    tools: tuple[Json, ...] = ()
    input_format: AudioFormat = PCM16_24K
    create_response: bool = True

    def updated(self, session: AnySession, strange: Iterable[str]) -> Config | Refusal:
        """The configuration after an update; ``strange`` are its fields that the protocol does not know."""
        if not isinstance(session, Session):
            return Refusal("invalid_value", "Sessions of type 'transcription' are not supported.", "session.type")
        unsupported = [*strange, *refused_fields(POLYAI, session)]
        if unsupported:
            field = f"session.{unsupported[0]}"
            return Refusal("unsupported_parameter", f"Unsupported parameter: '{field}'.", field)
        if session.output_modalities not in (None, ("audio",)):
            return Refusal(
                "invalid_value", "This server speaks: the only modality is audio.", "session.output_modalities"
            )
        heard = (session.audio and session.audio.input) or AudioInput()
        detection = heard.turn_detection or TurnDetection(type=_DETECTOR)
        if detection.type != _DETECTOR:
            field = "session.audio.input.turn_detection.type"
            return Refusal("invalid_value", f"Invalid value: '{detection.type}'. It must be '{_DETECTOR}'.", field)
        input_format = self._format(heard.format)
        tools = self.tools if session.tools is None else session.tools
        if isinstance(input_format, Refusal):
            return input_format
        if (wrong := _wrong_tool(tools)) is not None:
            return wrong
        return replace(
            self,
            instructions=self.instructions if session.instructions is None else session.instructions,
            tools=tools,
            input_format=input_format,
            create_response=self.create_response if detection.create_response is None else detection.create_response,
        )

    def _format(self, wanted: AnyFormat) -> AudioFormat | Refusal:
        if wanted is None:
            return self.input_format
        field = "session.audio.input.format"
        try:
            audio_format = parse_format(msgspec.to_builtins(wanted))
        except AudioFormatError as error:
            return Refusal("invalid_value", str(error), field)
        if _wire(audio_format) not in POLYAI.input_formats:
            return Refusal("invalid_value", f"Audio format {audio_format.to_wire()} is not supported.", field)
        return audio_format

    def told(self, session_id: str) -> Session:
        """The whole configuration as ``session.created`` and ``session.updated`` tell it."""
        return Session(
            id=session_id,
            object="realtime.session",
            model="dialog-rsn-1",
            instructions=self.instructions,
            output_modalities=("audio",),
            tools=self.tools,
            audio=Audio(
                input=AudioInput(
                    format=_wire(self.input_format),
                    turn_detection=TurnDetection(type=_DETECTOR, create_response=self.create_response),
                ),
                output=AudioOutput(format=POLYAI.output_format),
            ),
        )


def _wrong_tool(tools: tuple[Json, ...]) -> Refusal | None:
    for number, tool in enumerate(tools):
        if tool.get("type") != "function" or not isinstance(tool.get("name"), str):
            return Refusal("invalid_value", "A tool must be a function with a name.", f"session.tools[{number}]")
    return None

"""The session's configuration: what a ``session.update`` may say, and what it comes to.

An update is taken whole or not at all. What it leaves out stays as it was; turn detection that is ``null`` is off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET

from callwright.audio.formats import PCM16_24K, AudioFormat, parse_format
from callwright.errors import AudioFormatError
from callwright.sim.server.dialects import Dialect
from callwright.sim.server.history import Refusal
from callwright.sim.server.settings import ServerSettings
from callwright.sim.server.telling import Modality
from callwright.wire.items import Json, WireStruct
from callwright.wire.objects import (
    AnyFormat,
    Audio,
    AudioInput,
    AudioOutput,
    Session,
    TurnDetection,
    WireFormat,
)
from callwright.wire.profiles import refused_fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from callwright.wire.objects import AnySession

_Struct = TypeVar("_Struct", bound=WireStruct)

_INPUT = "session.audio.input"
_TUNES = {
    "threshold": "voice_threshold",
    "prefix_padding_ms": "padding_ms",
    "silence_duration_ms": "turn_end_ms",
    "idle_timeout_ms": "idle_ms",
}
"""The setting that each field of a turn detection sets for its session."""
_BOUNDS = {
    "threshold": (0, 1),
    "prefix_padding_ms": (0, 10_000),
    "silence_duration_ms": (0, 60_000),
    "idle_timeout_ms": (5_000, 30_000),
}
"""Documented for threshold and idle timeout; the others are wide enough for anybody."""
SLOWEST_HZ, FASTEST_HZ = 8_000, 96_000
"""Rates of the caller's own that are read here."""
_EAGER_MS = {"low": 8_000, "medium": 4_000, "auto": 4_000, "high": 2_000}
"""How long a turn that sounds unfinished is waited for, by eagerness; documented for the API."""


def _wire(audio_format: AudioFormat) -> WireFormat:
    return msgspec.convert(audio_format.to_wire(), WireFormat)


@dataclass(frozen=True, slots=True)
class Config:
    """The effective configuration; the defaults hold until the first update."""

    server: ServerSettings
    settings: ServerSettings
    """What the session's turn detection has made of the server's."""
    session: Session

    @property
    def dialect(self) -> Dialect:
        """The dialect of the session."""
        return self.server.speaks

    @staticmethod
    def default(settings: ServerSettings) -> Config:
        """What holds before the first update."""
        dialect = settings.speaks
        heard = AudioInput(
            format=_wire(PCM16_24K), turn_detection=_detection(dialect, settings, TurnDetection(type="server_vad"))
        )
        session = Session(
            object="realtime.session",
            model=dialect.model,
            instructions="",
            output_modalities=("audio",),
            tools=(),
            audio=Audio(input=heard, output=AudioOutput(format=_wire(PCM16_24K))),
        )
        return Config(settings, settings, session)

    @property
    def input_format(self) -> AudioFormat:
        """The caller's audio; a rate of his own goes before the format's."""
        rate_hz = self.session.poly_input_rate
        return _format_of(self._input.format if rate_hz is None else WireFormat(type="audio/pcm", rate=rate_hz))

    @property
    def output_format(self) -> AudioFormat:
        """The replies' audio."""
        assert self.session.audio is not None
        assert self.session.audio.output is not None
        return _format_of(self.session.audio.output.format)

    @property
    def modality(self) -> Modality:
        """What replies are."""
        return "text" if self.session.output_modalities == ("text",) else "audio"

    @property
    def detection(self) -> TurnDetection | None:
        """How turns are found; None: by hand."""
        detection = self._input.turn_detection
        return detection if isinstance(detection, TurnDetection) else None

    @property
    def transcribes(self) -> bool:
        """Whether the client is told what the caller said."""
        return self.dialect.profile.transcription is None or isinstance(self._input.transcription, dict)

    @property
    def _input(self) -> AudioInput:
        assert self.session.audio is not None
        assert self.session.audio.input is not None
        return self.session.audio.input

    def updated(self, session: AnySession, strange: Iterable[str]) -> Config | Refusal:
        """The configuration after an update; ``strange`` are its fields that the protocol does not know."""
        if not isinstance(session, Session):
            return Refusal("invalid_value", "Sessions of type 'transcription' are not supported.", "session.type")
        unsupported = [*strange, *refused_fields(self.dialect.profile, session)]
        if unsupported:
            field = f"session.{unsupported[0]}"
            return Refusal("unsupported_parameter", f"Unsupported parameter: '{field}'.", field)
        if session.output_modalities not in (None, ("audio",), ("text",)):
            message = "Invalid modalities. Supported combinations are: ['audio'] and ['text']."
            return Refusal("invalid_value", message, "session.output_modalities")
        audio = session.audio or Audio()
        heard, spoken = audio.input or AudioInput(), audio.output or AudioOutput()
        refusal = (
            self._wrong_detection(heard.turn_detection or None)
            or self._wrong_format(heard.format, f"{_INPUT}.format")
            or self._wrong_format(spoken.format, "session.audio.output.format")
            or _wrong_rate(session.poly_input_rate)
            or _wrong_tool(session.tools or ())
        )
        if refusal:
            return refusal
        merged = _merged(self.session, msgspec.structs.replace(session, model=None))
        if heard.format is not None:
            merged = msgspec.structs.replace(merged, poly_input_rate=session.poly_input_rate)
        return self._with_detection(merged, heard.turn_detection or None)

    def _with_detection(self, session: Session, asked: TurnDetection | None) -> Config:
        if asked is None:
            return replace(self, session=session)
        now = self.detection if self.detection and self.detection.type == asked.type else None
        detection = _merged(now or _detection(self.dialect, self.server, asked), asked)
        tuned: dict[str, Any] = {
            setting: value
            for field, setting in _TUNES.items()
            if (value := getattr(detection, field)) is not None and self.dialect.is_tunable
        }
        settings = replace(self.server, **tuned, unfinished_ms=_EAGER_MS.get(detection.eagerness or "", 0))
        heard = AudioInput(turn_detection=detection)
        told = Session(audio=Audio(input=heard))
        return replace(self, session=_merged(session, told), settings=settings)

    def _wrong_detection(self, asked: TurnDetection | None) -> Refusal | None:
        if asked is None:
            return None
        field = f"{_INPUT}.turn_detection"
        if asked.type not in self.dialect.detectors:
            allowed = " or ".join(f"'{each}'" for each in self.dialect.detectors)
            return Refusal("invalid_value", f"Invalid value: '{asked.type}'. It must be {allowed}.", f"{field}.type")
        if asked.eagerness not in (None, *_EAGER_MS):
            message = f"Invalid value: '{asked.eagerness}'. It must be one of {', '.join(_EAGER_MS)}."
            return Refusal("invalid_value", message, f"{field}.eagerness")
        for name, (low, high) in _BOUNDS.items():
            value = getattr(asked, name)
            if value is not None and not low <= value <= high:
                return Refusal(
                    "invalid_value", f"Invalid value: {value}. It must be {low} to {high}.", f"{field}.{name}"
                )
        return None

    def _wrong_format(self, wanted: AnyFormat, field: str) -> Refusal | None:
        if wanted is None:
            return None
        try:
            audio_format = _format_of(wanted)
        except AudioFormatError as error:
            return Refusal("invalid_value", str(error), field)
        if _wire(audio_format) not in self.dialect.profile.input_formats:
            return Refusal("invalid_value", f"Audio format {audio_format.to_wire()} is not supported.", field)
        return None

    def told(self, session_id: str) -> Session:
        """The whole configuration as ``session.created`` and ``session.updated`` tell it."""
        return msgspec.structs.replace(self.session, id=session_id)


def _detection(dialect: Dialect, settings: ServerSettings, asked: TurnDetection) -> TurnDetection:
    """What holds where a session asks for a detector and says no more."""
    if not dialect.is_tunable:
        return TurnDetection(type=asked.type, create_response=True)
    if asked.type == "semantic_vad":
        return TurnDetection(type=asked.type, create_response=True, interrupt_response=True, eagerness="auto")
    return TurnDetection(
        type=asked.type,
        create_response=True,
        interrupt_response=True,
        threshold=settings.voice_threshold,
        prefix_padding_ms=settings.padding_ms,
        silence_duration_ms=settings.turn_end_ms,
        idle_timeout_ms=settings.idle_ms or None,
    )


def _format_of(spelling: AnyFormat) -> AudioFormat:
    return parse_format(msgspec.to_builtins(spelling))


def _merged(old: _Struct, new: _Struct) -> _Struct:
    """``old`` with what ``new`` says; a turn detection is taken whole, and a format is spelled as the protocol does."""
    changes: dict[str, Any] = {}
    for name in new.__struct_fields__:
        value, before = getattr(new, name), getattr(old, name)
        if value is UNSET or (value is None and name not in _NULLABLE):
            continue
        if name == "format":
            value = _wire(_format_of(value))
        elif isinstance(value, Audio | AudioInput | AudioOutput) and before is not None:
            value = _merged(before, value)
        changes[name] = value
    return msgspec.structs.replace(old, **changes)


_NULLABLE = ("turn_detection", "transcription", "noise_reduction", "tracing", "prompt")
"""Fields that ``null`` turns off; in any other it says nothing."""


def _wrong_rate(rate_hz: int | None) -> Refusal | None:
    if rate_hz is None or (SLOWEST_HZ <= rate_hz <= FASTEST_HZ and rate_hz % 1000 == 0):
        return None
    message = f"Invalid value: {rate_hz}. It must be whole kHz from {SLOWEST_HZ} to {FASTEST_HZ}."
    return Refusal("invalid_value", message, "session.poly_input_rate")


def _wrong_tool(tools: tuple[Json, ...]) -> Refusal | None:
    for number, tool in enumerate(tools):
        if tool.get("type") != "function" or not isinstance(tool.get("name"), str):
            return Refusal("invalid_value", "A tool must be a function with a name.", f"session.tools[{number}]")
    return None

"""What the bytes of a stream of audio mean: encoding, rate, and the arithmetic between bytes, samples and milliseconds.

Every API and carrier spells its formats differently. One parser reads them all; a spelling that it does not know is
an error at start, never a guess, because a wrong guess is noise on the phone and lengths that are off by a factor.
All audio is mono.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from callwright.errors import AudioFormatError
from callwright.ids import Ms, Samples

PCM: TypeAlias = NDArray[np.int16]
"""Linear samples, mono."""

FRAME_MS: Ms = 20
"""The length of a frame on every line."""


class Encoding(Enum):
    """How one sample is written; the value is the media type of the realtime API."""

    PCM16 = "audio/pcm"
    """Linear, signed, 16 bits, little-endian."""
    PCMU = "audio/pcmu"
    """G.711 μ-law, 8 bits."""
    PCMA = "audio/pcma"
    """G.711 A-law, 8 bits."""


_SAMPLE_BYTES = {Encoding.PCM16: 2, Encoding.PCMU: 1, Encoding.PCMA: 1}
_SILENCE = {Encoding.PCM16: b"\x00", Encoding.PCMU: b"\xff", Encoding.PCMA: b"\xd5"}
_G711_HZ = 8_000

_REALTIME_HZ = 24_000  # what the realtime APIs mean when they name no rate
_CARRIER_HZ = 8_000  # what carriers mean
_SPELLINGS: dict[str, tuple[Encoding, int]] = {
    "pcm16": (Encoding.PCM16, _REALTIME_HZ),
    "pcm": (Encoding.PCM16, _REALTIME_HZ),
    "l16": (Encoding.PCM16, _CARRIER_HZ),
    "x-l16": (Encoding.PCM16, _CARRIER_HZ),
    "pcmu": (Encoding.PCMU, _G711_HZ),
    "ulaw": (Encoding.PCMU, _G711_HZ),
    "x-mulaw": (Encoding.PCMU, _G711_HZ),
    "g711_ulaw": (Encoding.PCMU, _G711_HZ),
    "pcma": (Encoding.PCMA, _G711_HZ),
    "alaw": (Encoding.PCMA, _G711_HZ),
    "x-alaw": (Encoding.PCMA, _G711_HZ),
    "g711_alaw": (Encoding.PCMA, _G711_HZ),
}
_NAME_KEYS = ("type", "encoding", "contentType", "content-type")
_RATE_KEYS = ("rate", "sampleRate", "sample_rate")


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """An encoding at a rate, mono.

    Raises `AudioFormatError` for G.711 at another rate than 8 kHz, and for a rate that has no whole number of samples
    in a millisecond.
    """

    encoding: Encoding
    rate_hz: int

    def __post_init__(self) -> None:
        if self.rate_hz <= 0 or self.rate_hz % 1000:
            raise AudioFormatError(f"{self.rate_hz} Hz: the rate must be a multiple of 1000 Hz")
        if self.encoding is not Encoding.PCM16 and self.rate_hz != _G711_HZ:
            raise AudioFormatError(f"{self.encoding.value} at {self.rate_hz} Hz: G.711 has {_G711_HZ} Hz")

    @property
    def sample_bytes(self) -> int:
        """Bytes of one sample."""
        return _SAMPLE_BYTES[self.encoding]

    @property
    def bytes_per_ms(self) -> int:
        """Bytes of one millisecond."""
        return self.rate_hz // 1000 * self.sample_bytes

    @property
    def frame_bytes(self) -> int:
        """Bytes of one frame of 20 ms."""
        return self.bytes_for_ms(FRAME_MS)

    def bytes_for_ms(self, ms: Ms) -> int:
        """Bytes that play for ``ms`` milliseconds."""
        return ms * self.bytes_per_ms

    def ms_of(self, nbytes: int) -> Ms:
        """Whole milliseconds that ``nbytes`` bytes play."""
        return nbytes // self.bytes_per_ms

    def samples_of(self, nbytes: int) -> Samples:
        """Whole samples in ``nbytes`` bytes."""
        return nbytes // self.sample_bytes

    def silence(self, ms: Ms) -> bytes:
        """Silence of ``ms`` milliseconds. Zero bytes are silence in PCM16 only: in μ-law they are full scale."""
        return _SILENCE[self.encoding] * self.bytes_for_ms(ms)

    def to_wire(self) -> dict[str, str | int]:
        """The format object of the realtime API. PCM16 declares its rate, because servers differ in the default."""
        if self.encoding is Encoding.PCM16:
            return {"type": self.encoding.value, "rate": self.rate_hz}
        return {"type": self.encoding.value}


PCM16_24K = AudioFormat(Encoding.PCM16, 24_000)
PCM16_16K = AudioFormat(Encoding.PCM16, 16_000)
PCM16_8K = AudioFormat(Encoding.PCM16, 8_000)
PCMU_8K = AudioFormat(Encoding.PCMU, 8_000)
PCMA_8K = AudioFormat(Encoding.PCMA, 8_000)


def parse_format(spelling: str | Mapping[str, object]) -> AudioFormat:
    """Read a format in any spelling of a realtime API or carrier.

    A string is a name (``pcm16``, ``g711_ulaw``, ``PCMU``) or a media type with or without parameters
    (``audio/l16;rate=16000``). A mapping holds such a string under ``type``, ``encoding`` or ``contentType``, and may
    hold ``rate``, ``sampleRate`` or ``sample_rate``, and ``channels``. Without a rate, the names of the realtime APIs
    (``pcm16``, ``audio/pcm``) mean 24 kHz and those of the carriers 8 kHz.

    Raises `AudioFormatError` when the spelling is unknown (the message lists what is known), when two rates contradict
    each other, or when the audio is not mono.
    """
    fields = {"type": spelling} if isinstance(spelling, str) else spelling
    names = [str(fields[key]) for key in _NAME_KEYS if key in fields]
    media_type, *parameters = names[0].lower().split(";") if len(names) == 1 else [""]
    known = _SPELLINGS.get(media_type.strip().removeprefix("audio/"))
    if known is None:
        raise _unknown(spelling)
    encoding, default_hz = known
    said = [*fields.items(), *(parameter.strip().partition("=")[::2] for parameter in parameters)]
    rates_hz = [_whole(rate, spelling) for key, rate in said if key in _RATE_KEYS and rate is not None] or [default_hz]
    if any(hz != rates_hz[0] for hz in rates_hz):
        raise AudioFormatError(f"audio format {spelling!r} names two rates: {rates_hz}")
    if any(_whole(count, spelling) != 1 for key, count in said if key == "channels"):
        raise AudioFormatError(f"audio format {spelling!r} is not mono")
    return AudioFormat(encoding, rates_hz[0])


def _whole(value: object, spelling: object) -> int:
    """A rate or a count of channels: some senders write their numbers as strings."""
    text = str(value)
    if not (text.isascii() and text.isdigit()):
        raise AudioFormatError(f"audio format {spelling!r}: {value!r} is not a whole number")
    return int(text)


def _unknown(spelling: object) -> AudioFormatError:
    known = ", ".join(_SPELLINGS)
    return AudioFormatError(
        f"unknown audio format {spelling!r}; known, with or without 'audio/' before it and ';rate=HZ' after it: {known}"
    )

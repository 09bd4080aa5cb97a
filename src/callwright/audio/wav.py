"""WAV files of one channel or several, in any encoding."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np

from callwright.audio.encodings import ENCODE
from callwright.audio.formats import PCM, Encoding

_TAGS: Mapping[Encoding, int] = {Encoding.PCM16: 1, Encoding.PCMU: 7, Encoding.PCMA: 6}
"""How the format of the samples is named in a file."""


def wav_file(rate_hz: int, *channels: PCM, encoding: Encoding = Encoding.PCM16) -> bytes:
    """A whole WAV file; ``channels`` are int16 and equally long, the first is the left one."""
    data = ENCODE[encoding](np.stack(channels, axis=1).ravel())
    count = len(channels)
    sample_bytes = 2 if encoding is Encoding.PCM16 else 1
    layout = struct.pack(
        "<HHIIHH",
        _TAGS[encoding],
        count,
        rate_hz,
        rate_hz * count * sample_bytes,
        count * sample_bytes,
        8 * sample_bytes,
    )
    chunks = [(b"fmt ", layout)]
    if encoding is not Encoding.PCM16:
        chunks = [(b"fmt ", layout + b"\0\0"), (b"fact", struct.pack("<I", len(channels[0])))]
    body = b"".join(_chunk(name, content) for name, content in [*chunks, (b"data", data)])
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WAVE" + body


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)

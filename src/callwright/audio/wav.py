"""WAV files of one channel or several, in any encoding."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np

from callwright.audio.encodings import ENCODE
from callwright.audio.formats import PCM, Encoding

_TAGS: Mapping[Encoding, int] = {Encoding.PCM16: 1, Encoding.PCMU: 7, Encoding.PCMA: 6}
"""How the format of the samples is named in a file."""
_MOST_BYTES = 2**32 - 256


def wav_file(rate_hz: int, *channels: PCM, encoding: Encoding = Encoding.PCM16) -> bytes:
    """A whole WAV file; ``channels`` are int16 and equally long, the first is the left one."""
    data = ENCODE[encoding](np.stack(channels, axis=1).ravel())
    return wav_header(rate_hz, len(channels), len(data), encoding) + data + b"\0" * (len(data) % 2)


def wav_header(rate_hz: int, count: int, data_bytes: int, encoding: Encoding = Encoding.PCM16) -> bytes:
    """What stands before the samples of ``count`` channels; as long for any number of bytes.

    Of more bytes than such a file can tell, it tells as many as it can.
    """
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
        chunks = [(b"fmt ", layout + b"\0\0"), (b"fact", struct.pack("<I", data_bytes // count // sample_bytes))]
    head = b"".join(name + struct.pack("<I", len(content)) + content for name, content in chunks)
    told = min(data_bytes, _MOST_BYTES)
    size = struct.pack("<I", 4 + len(head) + 8 + told + told % 2)
    return b"RIFF" + size + b"WAVE" + head + b"data" + struct.pack("<I", told)

"""Samples to bytes and back, for every encoding: one table each way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from callwright.audio.formats import PCM, Encoding
from callwright.audio.g711 import pcma_decode, pcma_encode, pcmu_decode, pcmu_encode

_LITTLE_ENDIAN: Final = np.dtype("<i2")

ENCODE: Final[Mapping[Encoding, Callable[[PCM], bytes]]] = {
    Encoding.PCM16: lambda samples: samples.astype(_LITTLE_ENDIAN, copy=False).tobytes(),
    Encoding.PCMU: pcmu_encode,
    Encoding.PCMA: pcma_encode,
}
"""int16 mono samples to bytes."""
DECODE: Final[Mapping[Encoding, Callable[[bytes], PCM]]] = {
    Encoding.PCM16: lambda data: np.frombuffer(data, _LITTLE_ENDIAN),
    Encoding.PCMU: pcmu_decode,
    Encoding.PCMA: pcma_decode,
}
"""Bytes, whole samples of them, to int16 mono."""

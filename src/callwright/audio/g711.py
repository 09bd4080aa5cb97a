"""G.711 μ-law and A-law (ITU-T G.711), by table look-up.

The tables are computed from the standard's segments when first used, in whole numbers. Samples are rounded toward minus
infinity to the 14 bits of μ-law and the 13 bits of A-law before they are coded, as the usual C code does, so the codes
equal those of other telephone software bit for bit.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from callwright.audio.formats import PCM

Codes: TypeAlias = NDArray[np.uint8]

_MU_BIAS = 33  # in 14-bit steps: puts the segment ends of μ-law on powers of two
_MU_MAX = 8158  # the last magnitude before the highest code would leave its segment


def pcmu_encode(samples: PCM) -> bytes:
    """μ-law codes of int16 samples (mono, 8 kHz), one byte each."""
    return _pcmu_codes()[samples.view(np.uint16)].tobytes()


def pcmu_decode(data: bytes) -> PCM:
    """Samples (int16, mono, 8 kHz) of μ-law codes. Both 0xFF and 0x7F are zero."""
    return _pcmu_samples()[np.frombuffer(data, np.uint8)]


def pcma_encode(samples: PCM) -> bytes:
    """A-law codes of int16 samples (mono, 8 kHz), one byte each."""
    return _pcma_codes()[samples.view(np.uint16)].tobytes()


def pcma_decode(data: bytes) -> PCM:
    """Samples (int16, mono, 8 kHz) of A-law codes. No code is exactly zero: silence, 0xD5, is 8."""
    return _pcma_samples()[np.frombuffer(data, np.uint8)]


def _all_samples() -> NDArray[np.int32]:
    """Every int16 value, at the index that its bits have as an unsigned number."""
    return np.arange(65536, dtype=np.uint16).view(np.int16).astype(np.int32)


def _segment(magnitude: NDArray[np.int32], first_end: int) -> NDArray[np.int32]:
    """Segment, 0 to 7, of each magnitude: the first lies below ``first_end``, each next ends at twice the last."""
    ends = first_end << np.arange(7)
    return np.searchsorted(ends, magnitude, side="right").astype(np.int32)


@cache
def _pcmu_codes() -> Codes:
    value = _all_samples() >> 2
    magnitude = np.minimum(np.abs(value), _MU_MAX) + _MU_BIAS
    segment = _segment(magnitude, 64)
    code = segment << 4 | magnitude >> segment + 1 & 0x0F
    return np.asarray(code ^ np.where(value < 0, 0x7F, 0xFF), np.uint8)


@cache
def _pcmu_samples() -> PCM:
    code = np.arange(256) ^ 0xFF
    magnitude = ((code & 0x0F) << 3) + (_MU_BIAS << 2) << (code >> 4 & 7)
    magnitude -= _MU_BIAS << 2
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.int16)


@cache
def _pcma_codes() -> Codes:
    value = _all_samples() >> 3
    magnitude = np.where(value < 0, -1 - value, value)
    segment = _segment(magnitude, 32)
    code = segment << 4 | magnitude >> np.maximum(segment, 1) & 0x0F
    return np.asarray(code ^ np.where(value < 0, 0x55, 0xD5), np.uint8)


@cache
def _pcma_samples() -> PCM:
    code = np.arange(256) ^ 0xD5
    segment = code >> 4 & 7
    magnitude = (code & 0x0F) * 16 + 8 + np.where(segment, 256, 0) << np.maximum(segment - 1, 0)
    return np.asarray(np.where(code & 0x80, -magnitude, magnitude), np.int16)

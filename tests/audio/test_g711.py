"""G.711 equals the standard's tables, for every code and every sample."""

from __future__ import annotations

import sys
import warnings
from bisect import bisect_right

import numpy as np
import pytest

from callwright.audio.g711 import pcma_decode, pcma_encode, pcmu_decode, pcmu_encode

EVERY_SAMPLE = np.arange(-32768, 32768, dtype=np.int32).astype(np.int16)
EVERY_CODE = bytes(range(256))

# The decision values of the standard: where each of the 128 intervals of one polarity begins, in 14 and 13 bits.
MU_DECISIONS = [max(0, (16 + step << segment + 1) - 33) for segment in range(8) for step in range(16)]
A_DECISIONS = [2 * step for step in range(32)] + [16 + step << segment for segment in range(2, 8) for step in range(16)]


def mu_code(sample: int) -> int:
    value = sample >> 2
    number = bisect_right(MU_DECISIONS, abs(value)) - 1
    return (127 - number) if value < 0 else (255 - number)


def a_code(sample: int) -> int:
    value = sample >> 3
    number = bisect_right(A_DECISIONS, value if value >= 0 else -1 - value) - 1
    return (number if value < 0 else 128 + number) ^ 0x55


def middle_of(decisions: list[int], number: int, unit: int, last: int) -> int:
    """An interval decodes to its middle; the last one ends at the overload point."""
    end = decisions[number + 1] if number < 127 else last
    return (decisions[number] + end) * unit // 2


def mu_sample(code: int) -> int:
    number = 255 - code if code & 0x80 else 127 - code
    magnitude = middle_of(MU_DECISIONS, number, 4, 8159) if number else 0
    return magnitude if code & 0x80 else -magnitude


def a_sample(code: int) -> int:
    number = (code ^ 0x55) & 0x7F
    magnitude = middle_of(A_DECISIONS, number, 8, 4096)
    return magnitude if code & 0x80 else -magnitude


def test_pcmu_codes_follow_the_decision_values_for_every_sample() -> None:
    assert pcmu_encode(EVERY_SAMPLE) == bytes(mu_code(sample) for sample in EVERY_SAMPLE.tolist())


def test_pcma_codes_follow_the_decision_values_for_every_sample() -> None:
    assert pcma_encode(EVERY_SAMPLE) == bytes(a_code(sample) for sample in EVERY_SAMPLE.tolist())


def test_pcmu_decodes_every_code_to_the_middle_of_its_interval() -> None:
    assert pcmu_decode(EVERY_CODE).tolist() == [mu_sample(code) for code in EVERY_CODE]


def test_pcma_decodes_every_code_to_the_middle_of_its_interval() -> None:
    assert pcma_decode(EVERY_CODE).tolist() == [a_sample(code) for code in EVERY_CODE]


def test_a_code_survives_the_way_through_samples() -> None:
    """Except negative zero of μ-law, which becomes zero."""
    assert pcmu_encode(pcmu_decode(EVERY_CODE)) == EVERY_CODE.replace(b"\x7f", b"\xff")
    assert pcma_encode(pcma_decode(EVERY_CODE)) == EVERY_CODE


def test_landmarks_of_the_standard() -> None:
    assert pcmu_decode(b"\xff\x7f\x00\x80").tolist() == [0, 0, -32124, 32124]
    assert pcma_decode(b"\xd5\x55\x2a\xaa").tolist() == [8, -8, -32256, 32256]


def test_samples_that_are_not_contiguous_are_coded_alike() -> None:
    assert pcmu_encode(EVERY_SAMPLE[::2]) == pcmu_encode(EVERY_SAMPLE)[::2]
    assert pcma_encode(EVERY_SAMPLE[::-1]) == pcma_encode(EVERY_SAMPLE)[::-1]


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="audioop left the standard library in 3.13")
def test_codes_and_samples_equal_audioop() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import audioop
    linear = EVERY_SAMPLE.tobytes()
    assert pcmu_encode(EVERY_SAMPLE) == audioop.lin2ulaw(linear, 2)
    assert pcma_encode(EVERY_SAMPLE) == audioop.lin2alaw(linear, 2)
    assert pcmu_decode(EVERY_CODE).tobytes() == audioop.ulaw2lin(EVERY_CODE, 2)
    assert pcma_decode(EVERY_CODE).tobytes() == audioop.alaw2lin(EVERY_CODE, 2)

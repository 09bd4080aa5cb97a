"""WebRTC's canceller behind the same interface; without the extra ``aec`` there is nothing to test."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("livekit.rtc", reason="the extra `aec` is not installed")

from callwright.audio.echo import EchoReport
from callwright.lines.aec3 import Aec3Canceller

RATE_HZ = 16_000


def test_it_removes_an_echo() -> None:
    """A sound of 3 s comes back 40 ms late, at 30 %."""
    far = np.random.default_rng(1).normal(0, 3_000, 3 * RATE_HZ).astype(np.int16)
    near = np.concatenate((np.zeros(RATE_HZ * 40 // 1000), far * 0.3))[: len(far)].astype(np.int16)
    canceller = Aec3Canceller(RATE_HZ)
    out = canceller.process(near, far)
    late = slice(2 * RATE_HZ, None)
    assert np.mean(out[late].astype(float) ** 2) < np.mean(near[late].astype(float) ** 2) / 100
    assert canceller.report.erle_db is not None
    assert canceller.report == EchoReport(erle_db=canceller.report.erle_db)


def test_every_frame_in_gives_a_frame_out_at_once() -> None:
    frame = np.full(RATE_HZ // 50, 1_000, np.int16)
    canceller = Aec3Canceller(RATE_HZ)
    assert [len(canceller.process(frame, frame)) for _ in range(3)] == [len(frame)] * 3

"""A session over the phone: the caller's μ-law goes up byte for byte, the model's 24 kHz comes down as it sounds."""

from __future__ import annotations

import numpy as np
import pytest
from tests.runtime.calls import ANYTHING, OPENING, Taken, after, emit, ended, humming, started, take, written

import callwright as cw
from callwright.audio.g711 import pcmu_encode
from callwright.wire import server

HZ = 440
PEAK = 8_000
RATE_HZ = 8_000


def call_over_phone(model: cw.ModelChoice) -> Taken:
    """A caller who hums, and a reply of two seconds: a tone in the realtime APIs' own format."""
    time = np.arange(2 * 24_000) / 24_000
    tone = np.rint(PEAK * np.sin(2 * np.pi * HZ * time)).astype("<i2").tobytes()
    pieces = [tone[at : at + 9_600] for at in range(0, len(tone), 9_600)]
    deltas = [emit(server.ResponseOutputAudioDelta(response_id="r1", item_id="a", delta=piece)) for piece in pieces]
    agent = cw.Agent("desk", model=model, instructions="Be brief.")
    steps = (*OPENING, started(), *deltas, written("Hm."), after(500), ended())
    return take(*steps, agent=agent, ignoring=ANYTHING, make_line=humming)


@pytest.mark.parametrize(
    "model", [cw.polyai(), cw.openai(), cw.plain(url="ws://127.0.0.1:1")], ids=lambda model: model.provider
)
def test_c116_pcmu_up_and_24_khz_down_are_what_each_side_hears(model: cw.ModelChoice) -> None:
    """The reply's tone stays 440 Hz at its level; nothing is asked of its format, which is 24 kHz everywhere."""
    taken = call_over_phone(model)
    (update,) = taken.model.of("session.update")
    assert update["session"]["audio"]["input"]["format"] == {"type": "audio/pcmu"}
    assert "output" not in update["session"]["audio"]
    said = taken.line.recording.caller
    assert bytes(taken.model.audio) == pcmu_encode(said[: len(taken.model.audio)])
    assert len(taken.model.audio) >= len(said) - RATE_HZ // 50
    (span,) = taken.line.ear
    assert span.to_ms - span.from_ms == 2_000
    steady = taken.line.recording.agent[(span.at_ms + 500) * 8 :][:RATE_HZ]
    spectrum = np.abs(np.fft.rfft(steady)) * 2 / RATE_HZ
    assert int(spectrum.argmax()) == HZ
    assert spectrum[HZ] == pytest.approx(PEAK, rel=0.01)
    rest = np.sqrt(np.mean((steady.astype(float)) ** 2) - spectrum[HZ] ** 2 / 2)
    assert 20 * np.log10(rest / (PEAK / 2**0.5)) < -34

"""What the ear makes of a loudspeaker's echo, with a canceller and without."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pytest

from callwright.audio.echo import Canceller, NoCanceller
from callwright.audio.echo_kalman import KalmanCanceller
from callwright.audio.formats import PCM
from callwright.audio.resample import resample
from callwright.sim.ear import Ear
from callwright.sim.room.responses import load_response
from callwright.sim.speech import RATE_HZ, Speech

HZ = 8_000
BANK = Speech.load(files("callwright.apps") / "hotel" / "speech")
CALLER = "ask-parking"
SAID = [word.text for word in BANK[CALLER].words]


def placed(lines: dict[str, float]) -> np.ndarray:
    """Recorded lines, each from its second on, in 12 s."""
    out = np.zeros(12 * HZ)
    for line, at_s in lines.items():
        samples = resample(BANK[line].pcm, RATE_HZ, HZ)
        out[int(at_s * HZ) :][: len(samples)] += samples
    return out


def pcm(samples: np.ndarray) -> PCM:
    return np.rint(samples).clip(-32768, 32767).astype(np.int16)


def heard(gain: float, canceller: Canceller, delay_ms: int = 40) -> tuple[list[str], int]:
    """The caller's words that are heard while the agent speaks on, and how many of the agent's are."""
    far = placed({"greeting": 0.2, "check-in-deposit": 5.4})
    echo = np.convolve(far, load_response("living-room", HZ).loudspeaker)[: len(far)] * gain
    near = np.concatenate((np.zeros(HZ * delay_ms // 1000), echo))[: len(far)] + placed({CALLER: 6.2})
    words = Ear(BANK.values()).listen(canceller.process(pcm(near), pcm(far)), HZ)
    return [word.text for word in words if word.line_id == CALLER], sum(word.kind == "agent" for word in words)


@pytest.mark.parametrize("gain", [0.05, 0.5])
def test_c034_the_agents_own_words_do_not_come_back_and_every_word_over_them_does(gain: float) -> None:
    assert heard(gain, KalmanCanceller(HZ)) == (SAID, 0)


@pytest.mark.parametrize("gain", [0.15, 0.3])
def test_c033_nor_do_they_200_ms_late(gain: float) -> None:
    assert heard(gain, KalmanCanceller(HZ), delay_ms=200) == (SAID, 0)


def test_c034_without_a_canceller_they_do_come_back() -> None:
    said, own = heard(0.3, NoCanceller())
    assert own > 10
    assert said == SAID


def test_without_an_echo_the_canceller_costs_no_word() -> None:
    assert heard(0.0, KalmanCanceller(HZ)) == (SAID, 0)

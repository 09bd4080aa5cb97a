"""CPU seconds of whole simulated calls, by phase, beside their budgets: the best of five runs each.

The length of a call differs with the seed, so `check-in` is also told per minute of call.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from callwright.apps import hotel
from callwright.audio.formats import PCM
from callwright.audio.mix import mix
from callwright.core.ports import Connector
from callwright.ids import ItemId
from callwright.measure.figures import measure_call
from callwright.sim.agents import tools_of
from callwright.sim.line import Caller, SimulatedLine
from callwright.sim.scenario import Scenario, load_scenario
from callwright.sim.server import MemoryConnector, ServerSession
from callwright.sim.speech import Speech
from callwright.sim.vloop import run_virtual
from callwright.sim.world import Options, Reach, take_call

RUNS = 5
CHECK_IN = Path(hotel.__file__).parent / "scenarios" / "check-in.yaml"
SILENT = Path(__file__).parent / "silent.yaml"
NOISE_DBFS = -30
"""10 dB under the recorded lines."""


@cache
def pink_noise(rate_hz: int) -> PCM:
    """Ten seconds of noise whose power falls with frequency, int16 mono."""
    white = np.fft.rfft(np.random.default_rng(1).standard_normal(10 * rate_hz))
    pink = np.fft.irfft(white / np.sqrt(np.maximum(1, np.arange(len(white)))))
    scaled: PCM = np.rint(pink / pink.std() * 32768 * 10 ** (NOISE_DBFS / 20)).astype(np.int16)
    return scaled


class NoisyCaller:
    """A caller in a noisy place: no frame of his is silent."""

    def __init__(self, caller: Caller, rate_hz: int) -> None:
        self.hung_up = False
        self._caller = caller
        self._per_ms = rate_hz // 1000
        self._noise = pink_noise(rate_hz)

    def step(self, now_ms: int, ear: PCM, item_id: ItemId | None) -> PCM:
        """His 20 ms, over the noise."""
        frame = self._caller.step(now_ms, ear, item_id)
        self.hung_up = self._caller.hung_up
        at = now_ms * self._per_ms % len(self._noise)
        return mix(frame, self._noise[at : at + len(frame)])


@asynccontextmanager
async def quiet(session: ServerSession, _line: SimulatedLine) -> AsyncIterator[Connector]:
    """The session in memory; the line as it is."""
    yield MemoryConnector(lambda: session)


@asynccontextmanager
async def noisy(session: ServerSession, line: SimulatedLine) -> AsyncIterator[Connector]:
    """The session in memory, and noise around the caller."""
    line._caller = NoisyCaller(line._caller, line.input_format.rate_hz)
    yield MemoryConnector(lambda: session)


@dataclass(frozen=True)
class Case:
    """A call, what is changed of it, and the CPU seconds it may take: per minute, or in all."""

    name: str
    path: Path
    budget_s: float
    lag_ms: int | None = None
    client: str = "callwright"
    per_minute: bool = True
    reach: Reach = quiet


CASES = (
    Case("check-in", CHECK_IN, 0.5),
    Case("check-in, hidden lag 1.5 s", CHECK_IN, 0.5, lag_ms=1500),
    Case("check-in, naive client", CHECK_IN, 0.5, client="naive"),
    Case("12 silent minutes", SILENT, 2.0, per_minute=False),
    Case("check-in, noise 10 dB under", CHECK_IN, 1.5, reach=noisy),
)


def timed(case: Case, scenario: Scenario, seed: int) -> tuple[float, float, float]:
    """CPU seconds of playing and of measuring one call, and its length in seconds."""
    speech = Speech.load(scenario.speech)
    start = time.process_time()
    record = run_virtual(take_call(scenario, seed, case.client, Options(lag_ms=case.lag_ms), case.reach))
    played = time.process_time()
    measure_call(record, speech)
    measured = time.process_time()
    return played - start, measured - played, len(record.recording.agent) / record.recording.rate_hz


def main() -> None:
    """Print one line per case."""
    print(f"{'call':28} {'length':>8} {'play':>8} {'measure':>8} {'budget':>20}")
    for case in CASES:
        scenario = load_scenario(case.path, tools_of)
        timed(case, scenario, 1)  # reads the recorded lines and prepares the ear
        play_s, measure_s, length_s = min(timed(case, scenario, 1) for _ in range(RUNS))
        figure = play_s * 60 / length_s if case.per_minute else play_s
        unit = "s a minute" if case.per_minute else "s"
        budget = f"{figure:.2f} of {case.budget_s} {unit}"
        print(f"{case.name:28} {length_s:6.1f} s {play_s:6.2f} s {measure_s:6.2f} s {budget:>20}")


if __name__ == "__main__":
    main()

"""CPU seconds of whole simulated calls, by phase, beside their budgets: the best of five runs each.

The length of a call differs with the seed, so `check-in` is also told per minute of call.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from callwright.apps import hotel
from callwright.measure.figures import measure_call
from callwright.sim.scenario import Scenario, load_scenario
from callwright.sim.speech import Speech
from callwright.sim.world import Options, play, tools_of

RUNS = 5
CHECK_IN = Path(hotel.__file__).parent / "scenarios" / "check-in.yaml"
SILENT = Path(__file__).parent / "silent.yaml"


@dataclass(frozen=True)
class Case:
    """A call, what is changed of it, and the CPU seconds it may take: per minute, or in all."""

    name: str
    path: Path
    budget_s: float
    lag_ms: int | None = None
    client: str = "callwright"
    per_minute: bool = True


CASES = (
    Case("check-in", CHECK_IN, 0.5),
    Case("check-in, hidden lag 1.5 s", CHECK_IN, 0.5, lag_ms=1500),
    Case("check-in, naive client", CHECK_IN, 0.5, client="naive"),
    Case("12 silent minutes", SILENT, 2.0, per_minute=False),
)


def timed(case: Case, scenario: Scenario, seed: int) -> tuple[float, float, float]:
    """CPU seconds of playing and of measuring one call, and its length in seconds."""
    speech = Speech.load(scenario.speech)
    start = time.process_time()
    record = play(scenario, seed, client=case.client, options=Options(lag_ms=case.lag_ms))
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

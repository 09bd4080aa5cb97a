"""Play the scenarios that act with baseline and with Callwright's client, on the same seeds, and say what came of it.

    python scripts/compare_baselines.py                       every one of them, seeds 1 to 20
    python scripts/compare_baselines.py --runs 5 wrong-card   that one, seeds 1 to 5

Prints a Markdown table: in how many runs of each client an effect was made twice, is missing, was not told, or
something was heard that was not so. Exits with 1 if a baseline does not fail as its scenario says in every run, or
Callwright's client fails in one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from callwright.cli.options import Setup
from callwright.cli.playing import ROOTS, Plan, make_plan, play_one
from callwright.measure.batch import RunResult
from callwright.measure.outcome import MISDONE
from callwright.sim.scenario import find_scenarios, load_scenario


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what is asked for. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", help="their names; all that act and have a baseline if none is given")
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="seeds 1 to N of each")
    asked = parser.parse_args(arguments)
    print(f"| scenario | client | {' | '.join(map(_told, MISDONE))} | as expected |")
    print("|---" * (len(MISDONE) + 3) + "|")
    all_held = True
    for name in asked.scenarios or acting():
        for setup in (Setup(before=True), Setup()):
            plan = make_plan(name, setup)
            runs = [play_one(plan, seed).run for seed in range(1, asked.runs + 1)]
            held = sum(map(plan.held, runs))
            all_held = all_held and held == len(runs)
            print(row(plan, runs, held), flush=True)
    return int(not all_held)


def acting() -> list[str]:
    """The scenarios with a provider and a baseline, by name."""
    found = {name: load_scenario(path) for name, path in find_scenarios(ROOTS).items()}
    return [name for name, scenario in found.items() if scenario.before and scenario.behind.provider]


def row(plan: Plan, runs: Sequence[RunResult], held: int) -> str:
    """One client's runs of a scenario: in how many of them each figure is above 0."""
    counts = [sum(any(run.figures.values.get(name, ())) for run in runs) for name in MISDONE]
    cells = [f"`{plan.scenario.name}`", f"`{plan.client}`", *map(str, counts), f"{held} of {len(runs)}"]
    return f"| {' | '.join(cells)} |"


def _told(name: str) -> str:
    return f"`{name}`"


if __name__ == "__main__":
    sys.exit(main())

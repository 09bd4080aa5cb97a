"""Play scenarios that act, or call somebody, with baseline and with Callwright's client, on the same seeds.

    python scripts/compare_baselines.py                       every one of them, seeds 1 to 20
    python scripts/compare_baselines.py --runs 5 wrong-card   that one, seeds 1 to 5

Prints a Markdown table of either kind: in how many runs of each client an effect was made twice, is missing, was not
told, or something was heard that was not so; or the agent spoke to nobody, or over its own keys. Exits with 1 if a
baseline does not fail as its scenario says in every run, or Callwright's client fails in one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from callwright.cli.options import Setup
from callwright.cli.plan import ROOTS, Plan, make_plan
from callwright.cli.playing import play_one
from callwright.measure.batch import RunResult
from callwright.measure.outcome import MISDONE
from callwright.sim.scenario import find_scenarios

ON_HOLD: Final = ("spoke_on_hold", "menu_talked_over", "keys_not_alone")
"""The figures of which each is 0 where an agent that calls somebody speaks to persons only."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what is asked for. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", help="their names; all of these kinds with a baseline if none is given")
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="seeds 1 to N of each")
    asked = parser.parse_args(arguments)
    plans = [make_plan(name, Setup()) for name in asked.scenarios or find_scenarios(ROOTS)]
    wanted = [each.scenario for each in plans if asked.scenarios or each.scenario.before]
    acting = [str(each.path) for each in wanted if each.behind.provider]
    calling = [str(each.path) for each in wanted if each.callee]
    all_held = [compared(MISDONE, acting, asked.runs), compared(ON_HOLD, calling, asked.runs)]
    return int(not all(all_held))


def compared(figures: Sequence[str], scenarios: Sequence[str], runs: int) -> bool:
    """Play these scenarios, and print their table; whether all came out as it should. None has no table."""
    head = ["scenario", "client", *(f"`{name}`" for name in figures), "as expected"]
    all_held = True
    for name in scenarios:
        if name == scenarios[0]:
            print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|")
        for setup in (Setup(before=True), Setup()):
            plan = make_plan(name, setup)
            played = [play_one(plan, seed).run for seed in range(1, runs + 1)]
            held = sum(map(plan.held, played))
            all_held = all_held and held == len(played)
            print(row(plan, figures, played, held), flush=True)
    return all_held


def row(plan: Plan, figures: Sequence[str], runs: Sequence[RunResult], held: int) -> str:
    """One client's runs of a scenario: in how many of them each figure is above 0."""
    counts = [sum(any(run.figures.values.get(name, ())) for run in runs) for name in figures]
    cells = [f"`{plan.scenario.name}`", f"`{plan.client}`", *map(str, counts), f"{held} of {len(runs)}"]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())

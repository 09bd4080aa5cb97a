"""Play whole calls and give their traces to the core again: it asks for the same commands.

    python scripts/replay_calls.py                       100 calls: every scenario with seed 1, then with seed 2, ...
    python scripts/replay_calls.py --runs 5 wrong-card   that scenario, seeds 1 to 5

Prints how many calls were the same, and the first difference of any other. Exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence

from callwright.cli.options import Setup
from callwright.cli.plan import ROOTS, make_plan
from callwright.runtime.replay import Outcome, replay
from callwright.sim.scenario import find_scenarios
from callwright.sim.world import play


def main(arguments: Sequence[str] | None = None) -> int:
    """Play and replay what is asked for. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="all of them if none is given")
    parser.add_argument("--runs", type=int, default=100, metavar="N", help="how many calls, 100 by default")
    asked = parser.parse_args(arguments)
    plans = [make_plan(name, Setup()) for name in asked.scenarios or find_scenarios(ROOTS)]
    events = commands = same = 0
    for seed, plan in itertools.islice(((seed, plan) for seed in itertools.count(1) for plan in plans), asked.runs):
        trace = play(plan.scenario, seed, client=plan.client, options=plan.setup.options).trace
        replayed = replay(trace, f"{plan.scenario.name}, seed {seed}")
        events, commands = events + replayed.events, commands + replayed.commands
        same += replayed.outcome is Outcome.IDENTICAL
        if replayed.outcome is not Outcome.IDENTICAL:
            print(replayed)
    print(f"{same} of {asked.runs} calls identical ({len(plans)} scenarios; {events} events, {commands} commands)")
    return int(same < asked.runs)


if __name__ == "__main__":
    sys.exit(main())

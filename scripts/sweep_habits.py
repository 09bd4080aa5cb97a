"""Play whole calls with a model that has a bad habit half of the time, and see that it is once, and told, all the same.

    python scripts/sweep_habits.py                        every habit, seeds 1 to 20
    python scripts/sweep_habits.py --runs 5 repeats_call  that one, seeds 1 to 5

Prints a Markdown table with one row for each habit. Exits with 1 if one shows in fewer than a quarter of the runs, or
if in any run an effect was made twice, an outcome was lost, a false claim was left as it was, record and book do not
agree, or the call did not try what it was meant to. An outcome that the model would not say, asked for three times, is
untold and not lost: it is on the list of what is owed outside the call.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from callwright.cli.options import Setup
from callwright.cli.playing import Plan, make_plan, play_one
from callwright.measure.figures import CallFigures

RATE: Final = 0.5
PROCESSING: Final = "still-processing"
"""What the model says while there is no outcome; not a behavior with a rate, but what it does of itself."""


class Played(NamedTuple):
    """A scenario that gives a habit its occasion, and with which ``--provider`` and ``--dialect``."""

    scenario: str
    provider: str | None = None
    dialect: str | None = None


HABITS: Final[Mapping[str, Played]] = {
    PROCESSING: Played("did-it-go-through"),
    "ignores_passive_note": Played("missed-confirmation", dialect="openai"),
    "repeats_call": Played("did-it-go-through"),
    "changes_card": Played("wrong-card"),
    "claims_too_early": Played("did-it-go-through", "pending,settles_ms=9000"),
    "refuses_to_say": Played("did-it-go-through"),
    "names_wrong_card": Played("did-it-go-through"),
}
COUNTED: Final = ("duplicate_effects", "untold_at_hangup", "outcomes_lost", "false_claims_heard", "corrections_heard")


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what is asked for. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("habits", nargs="*", metavar="HABIT", help=f"all of {', '.join(HABITS)} if none is given")
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="seeds 1 to N of each")
    asked = parser.parse_args(arguments)
    print(f"| habit | scenario | runs | shown in | {' | '.join(f'`{name}`' for name in COUNTED)} | broken |")
    print("|---" * (len(COUNTED) + 5) + "|")
    all_held = True
    for habit in asked.habits or HABITS:
        runs = [play_one(plan_of(habit), seed).run.figures for seed in range(1, asked.runs + 1)]
        shown = sum(habit in (*figures.shown, *figures.lines_heard) for figures in runs)
        broken = [seed for seed, figures in enumerate(runs, 1) if not holds(figures)]
        all_held = all_held and not broken and 4 * shown >= len(runs)
        counts = [str(sum(sum(figures.values.get(name, ())) for figures in runs)) for name in COUNTED]
        cells = [f"`{habit}`", f"`{HABITS[habit].scenario}`", str(len(runs)), str(shown), *counts]
        print(f"| {' | '.join(cells)} | {', '.join(f'seed {seed}' for seed in broken) or 'none'} |", flush=True)
    return int(not all_held)


def plan_of(habit: str) -> Plan:
    """The habit's scenario, with the habit in it."""
    played = HABITS[habit]
    plan = make_plan(played.scenario, Setup(provider=played.provider, dialect=played.dialect))
    rates = {} if habit == PROCESSING else {habit: RATE}
    return replace(plan, scenario=replace(plan.scenario, rates=rates))


def holds(figures: CallFigures) -> bool:
    """Whether it was done once, and what became of it was heard last, or is on the list of what is owed."""
    duplicates, untold, lost, false, corrected = (sum(figures.values.get(name, ())) for name in COUNTED)
    is_left_false = false > corrected and not untold
    return not (figures.void or figures.violations or duplicates or lost or is_left_false)


if __name__ == "__main__":
    sys.exit(main())

"""Play whole calls with a model that has a bad habit half of the time, and see that it is once, and told, all the same.

    python scripts/sweep_habits.py                        every habit, seeds 1 to 20
    python scripts/sweep_habits.py --runs 5 repeats_call  that one, seeds 1 to 5

Prints Markdown tables with one row for each habit: with actions, and in a call that the agent makes. Exits with 1 if a
habit shows in fewer than a quarter of the runs, or if a run is broken.

With actions that is a run in which an effect was made twice, an outcome was lost, a false claim was left as it was,
record and book do not agree, or the call did not try what it was meant to. An outcome that the model would not say,
asked for three times, is untold and not lost: it is on the list of what is owed outside the call. A call that the agent
makes has to bring what the person said, and hold to what its scenario expects, but for what the habit itself breaks.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from callwright.cli.options import Setup
from callwright.cli.plan import Plan, make_plan
from callwright.cli.playing import Played, play_one

RATE: Final = 0.5
PROCESSING: Final = "still-processing"
"""What the model says while there is no outcome; not a behavior with a rate, but what it does of itself."""


class Occasion(NamedTuple):
    """A scenario that gives a habit its occasion, and with which ``--provider`` and ``--dialect``."""

    scenario: str
    provider: str | None = None
    dialect: str | None = None
    breaks: tuple[str, ...] = ()
    """What of the scenario's expectations the habit itself breaks, in a call that the agent makes."""


ACTING: Final[Mapping[str, Occasion]] = {
    PROCESSING: Occasion("did-it-go-through"),
    "ignores_passive_note": Occasion("missed-confirmation", dialect="openai"),
    "repeats_call": Occasion("did-it-go-through"),
    "changes_card": Occasion("wrong-card"),
    "claims_too_early": Occasion("did-it-go-through", "pending,settles_ms=9000"),
    "refuses_to_say": Occasion("did-it-go-through"),
    "names_wrong_card": Occasion("did-it-go-through"),
}
CALLING: Final[Mapping[str, Occasion]] = {
    "ignores_menu": Occasion("hold", breaks=("keys_pressed",)),
    "picks_wrong_key": Occasion("hold", breaks=("keys_pressed",)),
    "presses_again": Occasion("hold", breaks=("keys_pressed",)),
    "talks_to_announcements": Occasion("hold", breaks=("spoke_on_hold", "introduced_after_ms")),
}
HABITS: Final = {**ACTING, **CALLING}
COUNTED: Final = ("duplicate_effects", "untold_at_hangup", "outcomes_lost", "false_claims_heard", "corrections_heard")
COUNTED_CALLING: Final = ("keys_pressed", "keys_not_alone", "keys_only_claimed", "spoke_on_hold", "menu_talked_over")
ANSWER: Final = "sam-answer"
"""What the person says when he has had a look."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what is asked for. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("habits", nargs="*", metavar="HABIT", help=f"all of {', '.join(HABITS)} if none is given")
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="seeds 1 to N of each")
    asked = parser.parse_args(arguments)
    habits = asked.habits or [*HABITS]
    held = [
        sweep([habit for habit in habits if habit in group], asked.runs, counted, holds)
        for group, counted, holds in TABLES
    ]
    return int(not all(held))


def sweep(habits: Sequence[str], runs: int, counted: Sequence[str], holds: Callable[[Played], bool]) -> bool:
    """Play and print these habits; whether each has shown, and every run held."""
    if not habits:
        return True
    print(f"| habit | scenario | runs | shown in | {' | '.join(f'`{name}`' for name in counted)} | broken |")
    print("|---" * (len(counted) + 5) + "|")
    all_held = True
    for habit in habits:
        calls = [play_one(plan_of(habit), seed) for seed in range(1, runs + 1)]
        figures = [call.run.figures for call in calls]
        shown = sum(habit in (*each.shown, *each.lines_heard) for each in figures)
        broken = [call.run.seed for call in calls if not holds(call)]
        all_held = all_held and not broken and 4 * shown >= runs
        counts = [f"{sum(sum(each.values.get(name, ())) for each in figures):g}" for name in counted]
        cells = [f"`{habit}`", f"`{HABITS[habit].scenario}`", str(runs), str(shown), *counts]
        print(f"| {' | '.join(cells)} | {', '.join(f'seed {seed}' for seed in broken) or 'none'} |", flush=True)
    print()
    return all_held


def plan_of(habit: str) -> Plan:
    """The habit's scenario, with the habit in it."""
    played = HABITS[habit]
    plan = make_plan(played.scenario, Setup(provider=played.provider, dialect=played.dialect))
    rates = {} if habit == PROCESSING else {habit: RATE}
    return replace(plan, scenario=replace(plan.scenario, rates=rates))


def is_once_and_told(call: Played) -> bool:
    """Whether it was done once, and what became of it was heard last, or is on the list of what is owed."""
    figures = call.run.figures
    duplicates, untold, lost, false, corrected = (sum(figures.values.get(name, ())) for name in COUNTED)
    is_left_false = false > corrected and not untold
    return not (figures.void or figures.violations or duplicates or lost or is_left_false)


def is_brought_home(call: Played) -> bool:
    """Whether the call has the person's answer, and held to all that the habit leaves whole."""
    (habit,) = call.plan.scenario.rates
    failed = [failure.name for failure in call.run.verdict.failed if failure.name not in HABITS[habit].breaks]
    return not failed and call.record.result == call.plan.scenario.lines[ANSWER].text


TABLES: Final = (
    (ACTING, COUNTED, is_once_and_told),
    (CALLING, COUNTED_CALLING, is_brought_home),
)
"""The habits of each table, its columns, and when a run holds."""


if __name__ == "__main__":
    sys.exit(main())

"""``callwright measure``: figures over many calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from callwright.cli import options, show
from callwright.cli.jobs import Batch, Task, cores
from callwright.cli.playing import Plan, make_plan, progress
from callwright.errors import UsageError
from callwright.measure.batch import RunResult


class _Jobs(click.IntRange):
    """How many processes: a number, or ``auto`` for one on each core."""

    name = "jobs"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return cores() if value == "auto" else super().convert(value, param, ctx)


@click.command("measure")
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...")
@click.option(
    "--runs", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Runs of each: seeds S to S+N-1."
)
@click.option(
    "--jobs", type=_Jobs(1), default=1, show_default=True, metavar="J", help="Processes that play at once; or auto."
)
@options.seed
@options.playing
@options.out(None)
@options.json_lines
@options.quiet
@click.pass_context
def command(
    ctx: click.Context,
    /,
    scenarios: tuple[str, ...],
    runs: int,
    jobs: int,
    seed: int,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    **setup: Any,
) -> None:
    """Play many calls of each SCENARIO and show figures over all of them.

    A run that did not end as it should is told on standard error, with the command that plays it again. Ctrl-C ends
    the batch, and the figures of the runs that were finished are shown.
    """
    plans = [make_plan(scenario, options.Setup(**setup)) for scenario in scenarios]
    if out:
        _check_apart(plans, out)
    report = _print_json if as_json else show.batch
    seeds = range(seed, seed + runs)
    left = [(plan, range(number * runs, (number + 1) * runs)) for number, plan in enumerate(plans)]
    told: list[bool] = []
    with Batch([Task(plan, each, out) for plan in plans for each in seeds], jobs) as batch:

        def tell(plan: Plan, runs: list[RunResult]) -> None:
            if told and not as_json:
                click.echo()
            report(plan, runs)
            told.append(all(map(plan.held, runs)) and not plan.unshown(runs))

        try:
            while left:
                _play(*left[0], batch, quiet=quiet)
                plan, numbers = left.pop(0)
                tell(plan, batch.finished(numbers))
        except KeyboardInterrupt:
            cut = [f"{len(batch.finished(numbers))} of {runs} runs of {plan.scenario.name}" for plan, numbers in left]
            raise KeyboardInterrupt(f"after {', '.join(cut)}") from None
        finally:
            for plan, numbers in left:
                if finished := batch.finished(numbers):
                    tell(plan, finished)
    ctx.exit(0 if all(told) else 1)


def _play(plan: Plan, numbers: Sequence[int], batch: Batch, *, quiet: bool) -> None:
    """Wait for a scenario's runs, one after the other, and tell of each that did not end as it should."""
    with progress(plan.scenario.name, len(numbers), quiet=quiet) as advance:
        for number in numbers:
            run = batch.run(number)
            if not plan.held(run) and not quiet:
                click.echo(show.remark(plan, run), err=True)
            advance()


def _check_apart(plans: Sequence[Plan], out: Path) -> None:
    """Raise UsageError for scenarios whose calls would have the same directory."""
    taken: dict[str, Path] = {}
    for plan in plans:
        name, path = plan.scenario.name, plan.scenario.path
        if name in taken:
            raise UsageError(
                f"{taken[name]} and {path} would both write to {out / name}-...: measure each with its own --out"
            )
        taken[name] = path


def _print_json(plan: Plan, runs: list[RunResult]) -> None:
    click.echo(json.dumps(plan.summary(runs)))

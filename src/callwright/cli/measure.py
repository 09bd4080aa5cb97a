"""``callwright measure``: figures over many calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from callwright.cli import options, show
from callwright.cli.playing import Plan, make_plan, play_one, progress, save
from callwright.errors import UsageError
from callwright.measure.batch import RunResult


@click.command("measure")
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...")
@click.option(
    "--runs", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Runs of each: seeds S to S+N-1."
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
    all_held = True
    for plan in plans:
        finished: list[RunResult] = []
        try:
            with progress(plan.scenario.name, runs, quiet=quiet) as advance:
                for each in range(seed, seed + runs):
                    played = play_one(plan, each)
                    if out:
                        save(played, out)
                    finished.append(played.run)
                    if not plan.held(played.run) and not quiet:
                        click.echo(show.remark(plan, played.run), err=True)
                    advance()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"after {len(finished)} of {runs} runs of {plan.scenario.name}") from None
        finally:
            if finished:
                if plan is not plans[0] and not as_json:
                    click.echo()
                report(plan, finished)
        all_held = all_held and all(map(plan.held, finished)) and not plan.unshown(finished)
    ctx.exit(0 if all_held else 1)


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

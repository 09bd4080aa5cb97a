"""``callwright call``: one call, shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from callwright.cli import options, show
from callwright.cli.estimate import ask_about
from callwright.cli.patience import told_on_stderr
from callwright.cli.plan import make_plan
from callwright.cli.playing import (
    finished,
    play_one,
    play_waiting,
    progress,
    save,
)
from callwright.cli.report import write_calls, write_export


@click.command("call")
@click.argument("scenario")
@options.seed
@options.playing
@options.yes
@options.out("out")
@options.report("the call")
@options.export
@options.json_lines
@options.quiet
@click.pass_context
def command(
    ctx: click.Context,
    /,
    scenario: str,
    seed: int,
    is_agreed: bool,
    out: Path,
    report: Path | None,
    export: Path | None,
    as_json: bool,
    quiet: bool,
    **setup: Any,
) -> None:
    """Play one call of SCENARIO (a name, or the path of a YAML file) and show what was heard.

    Writes call.wav (caller left, agent as heard right), trace.jsonl and figures.json.
    """
    plan = make_plan(scenario, options.Setup(**setup))
    ask_about([(plan, 1)], seed, 1, is_agreed=is_agreed, quiet=quiet)
    with progress(f"{plan.scenario.name}, seed {seed}", 1, quiet=quiet):
        if plan.live:
            (played,) = finished(play_waiting([plan], seed, 1, told_on_stderr(quiet=quiet)))
        else:
            played = play_one(plan, seed)
        directory = save(played, out)
        if report:
            write_calls([played], report)
        if export:
            write_export(played, export)
    if as_json:
        click.echo(json.dumps(played.summary()))
    else:
        show.call(played, directory)
    ctx.exit(0 if plan.held(played.run) else 1)

"""``callwright demo``: the same call twice, with a naive client and with ours."""

from __future__ import annotations

from pathlib import Path

import click

from callwright.cli import options, show
from callwright.cli.options import Pace
from callwright.cli.playing import make_plan, play_one, play_together, progress, save
from callwright.sim.world import OURS

LAG_MS = 1500
"""How far the phone bridge plays behind the stream, and tells nobody."""


@click.command("demo")
@click.argument("name", default="check-in")
@options.seed
@options.dialect
@options.real_time
@options.out("out/demo")
@options.quiet
@click.pass_context
def command(ctx: click.Context, name: str, seed: int, dialect: str | None, pace: Pace, out: Path, quiet: bool) -> None:
    """Play the scenario NAME (check-in, if none is given) twice over a phone bridge that plays 1.5 s behind the stream.

    First a naive client takes the call, then Callwright's; for both it is shown what the caller heard beside what the
    client and the server believe. In real time both take their calls at the same time.
    """
    setups = [options.Setup(client, lag_ms=LAG_MS, pace=pace, dialect=dialect) for client in ("naive", OURS)]
    plans = [make_plan(name, setup) for setup in setups]
    with progress(name, len(plans), quiet=quiet) as advance:
        calls = []
        for played in play_together(plans, seed) if pace is Pace.REAL else (play_one(plan, seed) for plan in plans):
            calls.append((played, save(played, out)))
            advance()
    show.demo(calls)
    ours, _ = calls[-1]
    ctx.exit(0 if ours.plan.held(ours.run) else 1)

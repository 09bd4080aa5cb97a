"""``callwright demo``: the same call twice, with a naive client and with ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from callwright.cli import options, show
from callwright.cli.options import Pace
from callwright.cli.playing import Played, make_plan, play_one, play_together, progress, save
from callwright.ids import Ms
from callwright.sim.world import OURS

LAG_MS: Ms = 1500
"""How far a phone bridge plays behind the stream, and tells nobody."""


@dataclass(frozen=True, slots=True)
class Demo:
    """What is played, and over which line."""

    scenarios: tuple[str, ...]
    lag_ms: Ms | None = None
    """Playback behind the stream; None as the scenario has it."""


DEMOS: Mapping[str, Demo] = {
    "check-in": Demo(("check-in",), LAG_MS),
    "pickup": Demo(("pickup", "talk-over")),
}
"""Demos by name; any other scenario is a demo of itself, over the phone bridge."""


@click.command("demo")
@click.argument("name", default="check-in")
@options.seed
@options.dialect
@options.real_time
@options.out("out/demo")
@options.quiet
@click.pass_context
def command(ctx: click.Context, name: str, seed: int, dialect: str | None, pace: Pace, out: Path, quiet: bool) -> None:
    """Play the demo NAME: check-in (if none is given), pickup, or any scenario.

    A naive client takes each call first, then Callwright's; for both it is shown what the caller heard beside what the
    client and the server believe. check-in and other scenarios run over a phone bridge that plays 1.5 s behind the
    stream; pickup shows both edges of a call, its first words and its goodbye. In real time both clients take their
    calls at the same time.
    """
    demo = DEMOS.get(name, Demo((name,), LAG_MS))
    setups = [options.Setup(client, lag_ms=demo.lag_ms, pace=pace, dialect=dialect) for client in ("naive", OURS)]
    calls = [[make_plan(scenario, setup) for setup in setups] for scenario in demo.scenarios]
    shown: list[list[tuple[Played, Path]]] = []
    with progress(name, sum(map(len, calls)), quiet=quiet) as advance:
        for plans in calls:
            shown.append([])
            for played in play_together(plans, seed) if pace is Pace.REAL else (play_one(plan, seed) for plan in plans):
                shown[-1].append((played, save(played, out)))
                advance()
    for number, pair in enumerate(shown):
        click.echo("\n" * bool(number), nl=False)
        show.demo(pair)
    ours = [pair[-1][0] for pair in shown]
    ctx.exit(0 if all(played.plan.held(played.run) for played in ours) else 1)

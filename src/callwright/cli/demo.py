"""``callwright demo``: the same call twice, with a naive client and with ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from callwright.cli import options, show
from callwright.cli.estimate import ask_about
from callwright.cli.options import Pace
from callwright.cli.patience import told_on_stderr
from callwright.cli.plan import ROOTS, Plan, make_plan
from callwright.cli.playing import (
    Played,
    finished,
    play_one,
    play_together,
    play_waiting,
    progress,
    save,
)
from callwright.cli.report import write_calls
from callwright.errors import UsageError
from callwright.ids import Ms
from callwright.sim.advice import did_you_mean
from callwright.sim.scenario import find_scenarios
from callwright.sim.world import OURS

LAG_MS: Ms = 1500
"""How far a phone bridge plays behind the stream, and tells nobody."""


@dataclass(frozen=True, slots=True)
class Demo:
    """What is played, over which line, and by whom before our client."""

    scenarios: tuple[str, ...]
    lag_ms: Ms | None = None
    """Playback behind the stream; None as the scenario has it."""
    before: str | None = "naive"
    """The baseline that takes each call first; None for the scenario's own."""


REFUNDS = "refunds"
DEMOS: Mapping[str, Demo] = {
    REFUNDS: Demo(("did-it-go-through", "wrong-card"), before=None),
    "check-in": Demo(("check-in",), LAG_MS),
    "pickup": Demo(("pickup", "talk-over")),
    "room": Demo(("speakers",)),
    "pharmacy": Demo(("hold",), before=None),
}
"""Demos by name; any other scenario is a demo of itself, over the phone bridge."""


@click.command("demo")
@click.argument("name", default=REFUNDS)
@options.seed
@options.server
@options.live_calls
@options.yes
@options.dialect
@options.hold
@options.max_hold
@options.real_time
@options.out("out/demo")
@options.report("all calls, one below the other,")
@options.quiet
@click.pass_context
def command(
    ctx: click.Context,
    name: str,
    seed: int,
    server: str | None,
    live_calls: int,
    is_agreed: bool,
    dialect: str | None,
    hold_s: int | None,
    max_hold_s: int | None,
    pace: Pace,
    out: Path,
    report: Path | None,
    quiet: bool,
) -> None:
    """Play the demo NAME: refunds (if none is given), check-in, pickup, room, pharmacy, or any scenario.

    A naive client takes each call first, then Callwright's; for both it is shown what the caller heard beside what the
    client and the server believe, and what was done beside what is on record. refunds asks for money back, and changes
    its mind; pickup shows both edges of a call, its first words and its goodbye; room has an agent on a loudspeaker
    that its microphone hears again, without a canceller and with ours; pharmacy rings a pharmacy and waits on hold, for
    --hold seconds, first with a client that talks to the queue; check-in and other scenarios run over a phone bridge
    that plays 1.5 s behind the stream. In real time, and on a live server (see --live-calls), both clients
    take their calls at the same time.
    """
    demo = _demo(name)
    ours = options.Setup(
        OURS,
        lag_ms=demo.lag_ms,
        pace=pace,
        dialect=dialect,
        hold_s=hold_s,
        max_hold_s=max_hold_s,
        server=server,
    )
    setups = [replace(ours, client=demo.before, before=demo.before is None, max_hold_s=None), ours]
    calls = [[make_plan(scenario, setup) for setup in setups] for scenario in demo.scenarios]
    ask_about([(plan, 1) for pair in calls for plan in pair], seed, live_calls, is_agreed=is_agreed, quiet=quiet)
    patience = told_on_stderr(quiet=quiet)

    def take(plans: Sequence[Plan]) -> Iterable[Played]:
        if server:
            return finished(play_waiting(plans, seed, live_calls, patience))
        return play_together(plans, seed) if pace is Pace.REAL else (play_one(plan, seed) for plan in plans)

    shown: list[list[tuple[Played, Path]]] = []
    try:
        with progress(name, sum(map(len, calls)), quiet=quiet) as advance:
            for plans in calls:
                shown.append([])
                for played in take(plans):
                    shown[-1].append((played, save(played, out)))
                    advance()
    finally:
        _show([pair for pair in shown if pair], report)
    last = [pair[-1][0] for pair in shown]
    ctx.exit(0 if all(played.plan.held(played.run) for played in last) else 1)


def _demo(name: str) -> Demo:
    """The demo of this name, or of the scenario that has this name or path. Raises UsageError where there is none."""
    found = find_scenarios(ROOTS)
    if name not in DEMOS and name not in found and Path(name).suffix != ".yaml":
        raise UsageError(
            f"there is no demo {name!r}: expected {', '.join(DEMOS)}, or a scenario, by its name (callwright scenarios "
            f"lists them) or the path of its .yaml file{did_you_mean(name, (*DEMOS, *found))}"
        )
    return DEMOS.get(name, Demo((name,), LAG_MS))


def _show(shown: Sequence[Sequence[tuple[Played, Path]]], report: Path | None) -> None:
    """Show the calls that were played, be it all of them or not."""
    if report and shown:
        write_calls([played for pair in shown for played, _ in pair], report)
    for number, pair in enumerate(shown):
        click.echo("\n" * bool(number), nl=False)
        show.demo(pair)

"""``callwright replay``: recorded calls, given to the core again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from callwright.runtime.replay import Outcome, replay

_EXIT = {Outcome.DIFFERENT: 1, Outcome.INCOMPLETE: 2, Outcome.IDENTICAL: 0}
"""What a call exits with, the one that decides first."""


@click.command("replay")
@click.argument(
    "traces",
    nargs=-1,
    required=True,
    metavar="TRACE...",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per trace, one a line.")
@click.pass_context
def command(ctx: click.Context, /, traces: tuple[Path, ...], as_json: bool) -> None:
    """Give the events of a recorded call (trace.jsonl) to the core again, and show the first difference.

    Exits with 0 if it asks for the same commands, 1 if not, and 2 if that cannot be told to the end.
    """
    outcomes = []
    for path in traces:
        replayed = replay(path.read_bytes(), str(path))
        outcomes.append(replayed.outcome)
        click.echo(json.dumps(asdict(replayed)) if as_json else str(replayed))
    if len(traces) > 1 and not as_json:
        click.echo(f"{outcomes.count(Outcome.IDENTICAL)} of {len(traces)} identical")
    ctx.exit(next(code for outcome, code in _EXIT.items() if outcome in outcomes))

"""``callwright compare``: two batches that were saved, seed by seed."""

from __future__ import annotations

import json
from pathlib import Path

import click

from callwright.cli import options, show_batch
from callwright.cli.against import matching, read_sides
from callwright.cli.printing import put
from callwright.errors import UsageError
from callwright.measure.compare import Side

_saved = click.Path(dir_okay=False, path_type=Path)


@click.command("compare")
@click.argument("this", type=_saved, metavar="THIS.json")
@click.argument("other", type=_saved, metavar="OTHER.json")
@options.json_lines
@click.pass_context
def command(ctx: click.Context, /, this: Path, other: Path, as_json: bool) -> None:
    """Compare the batches that two runs of `measure --json` wrote, without playing a call.

    Both files hold the same scenarios, played from the same inputs on the same seeds, and differ in one thing. A seed
    of which one call is void or censored is not compared, and the exit code is 1.
    """
    ones, others = read_sides(this), read_sides(other)
    if not ones:
        raise UsageError(f"{this}: expected batches that measure --json wrote; there is none")
    pairs = [(one, show_batch.Against.of(one, matching(other, others, one))) for one in ones]
    for side in others:
        matching(this, ones, side)
    for one, against in pairs:
        (_print_json if as_json else _show)(one, against)
    ctx.exit(1 if any(against.unpaired for _, against in pairs) else 0)


def _show(one: Side, against: show_batch.Against) -> None:
    put(show_batch.side_title(one))
    show_batch.show_against(against)


def _print_json(one: Side, against: show_batch.Against) -> None:
    told = {"scenario": one.scenario, "client": one.client, "server": one.server, "settings": one.settings}
    click.echo(json.dumps({**told, "against": show_batch.against_object(against)}))

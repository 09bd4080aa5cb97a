"""``callwright scenarios``: what can be played by name."""

from __future__ import annotations

from importlib import resources

import click

from callwright.cli import show
from callwright.cli.plan import ROOTS
from callwright.sim.scenario import find_scenarios, load_scenario


@click.command("scenarios")
@click.option("--schema", is_flag=True, help="Print the JSON schema of a scenario instead.")
def command(schema: bool) -> None:
    """List the scenarios that can be named, and what happens in each."""
    if schema:
        click.echo(resources.files("callwright.sim").joinpath("scenario.schema.json").read_text("utf-8"), nl=False)
    else:
        show.scenarios([load_scenario(path) for path in find_scenarios(ROOTS).values()])

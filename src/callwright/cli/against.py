"""What a batch is compared with: the same seeds played otherwise, or a batch that was saved."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import click
import msgspec
from click.core import ParameterSource

from callwright.cli import options
from callwright.cli.options import Setup
from callwright.errors import UsageError
from callwright.measure.compare import Side, differing_inputs, differing_settings

Against: TypeAlias = Setup | Path
"""The setup of the other side, or the file that it was saved to."""


@click.command("--against", add_help_option=False)
@options.playing
@click.pass_context
def _parsed(ctx: click.Context, /, **setup: object) -> dict[str, object]:
    """The fields of a setup that were typed."""
    return {name: setup[name] for name in setup if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}


def read_against(text: str, setup: Setup) -> Against:
    """What ``--against`` names, beside a setup: options that are laid over it, or a file.

    Raises UsageError for an option that is none, and for options that change nothing.
    """
    if not text.strip():
        raise UsageError("--against: expected options, or a file that measure --json wrote; got nothing")
    if not text.lstrip().startswith("-"):
        return Path(text)
    try:
        changes = _parsed.main(shlex.split(text), "callwright measure", standalone_mode=False)
    except click.ClickException as problem:
        raise UsageError(f"--against {text!r}: {problem.format_message()}") from problem
    except ValueError as problem:  # a quote that is not closed
        raise UsageError(f"--against {text!r}: {problem}") from problem
    if changes.keys() & {"client", "before", "program"}:  # whoever takes these calls, it is not who takes the others
        setup = replace(setup, client=None, before=False, program=None)
    other = replace(setup, **changes)
    if other == setup:
        raise UsageError(f"--against {text!r}: expected an option that differs from the others; got none")
    return other


def saved_side(path: Path, one: Side) -> Side:
    """The batch of the same scenario that ``callwright measure --json`` wrote to a file.

    Raises UsageError where there is none, or where it cannot be compared.
    """
    return matching(path, read_sides(path, ', or options, which begin with a dash ("--client naive")'), one)


def matching(path: Path, sides: Sequence[Side], one: Side) -> Side:
    """That of a file's batches which is compared with this one. Raises UsageError where none can be."""
    side = next((side for side in sides if side.scenario == one.scenario), None)
    if side is None:
        raise UsageError(f"{path}: expected a batch of {one.scenario}; there is none: leave that scenario out")
    if differs := differing_inputs(one, side):
        raise UsageError(
            f"{path}: {one.scenario} was played with other {', '.join(differs)}: play both with the same, or compare "
            "with --against OPTIONS, which does"
        )
    if len(differs := differing_settings(one, side)) > 1:
        raise UsageError(
            f"{path}: {one.scenario} differs in {', '.join(differs)}, so that nobody can tell which of them made a "
            "difference: change one at a time"
        )
    return side


def read_sides(path: Path, otherwise: str = "") -> list[Side]:
    """The batches that ``callwright measure --json`` wrote to a file; ``otherwise`` is what else would have done.

    Raises UsageError where it did not.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        told = "it is no text" if isinstance(problem, UnicodeDecodeError) else problem.strerror
        raise UsageError(
            f"{path}: expected a file that callwright measure SCENARIO --json > FILE wrote{otherwise}; this one cannot "
            f"be read ({told})"
        ) from problem
    sides = []
    for number, line in enumerate(lines, 1):
        try:
            sides.append(msgspec.json.decode(line, type=Side))
        except msgspec.MsgspecError as problem:
            raise UsageError(f"{path}:{number}: expected a line that measure --json wrote: {problem}") from problem
    return sides

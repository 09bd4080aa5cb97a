"""``callwright trace``: what is done with a trace before it is handed on."""

from __future__ import annotations

from pathlib import Path

import click

from callwright.errors import UsageError
from callwright.runtime.masked import mask_trace, without_words
from callwright.runtime.replay import Outcome, replay


@click.group("trace")
def command() -> None:
    """Prepare a trace for others."""


@command.command("mask", short_help="Give it other digits; it is replayed all the same.")
@click.argument("trace", metavar="TRACE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where it is written.  [default: standard output]",
)
@click.option("--hide", multiple=True, metavar="WORD", help="A name to make up, as it is spelled; may be repeated.")
@click.option("--no-words", is_flag=True, help="Put lengths in place of all words.")
@click.pass_context
def _mask(ctx: click.Context, trace: Path, out: Path | None, hide: tuple[str, ...], no_words: bool) -> None:
    """Give a trace other digits, so that it can be handed on, and still be replayed.

    Exits with 1 if the core decides otherwise on it; standard error says from which line on.
    """
    if no_words and hide:
        raise UsageError("--hide with --no-words: where no word is left there is none to hide; leave one of them out")
    content = trace.read_bytes()
    masked = without_words(content, str(trace)) if no_words else mask_trace(content, str(trace), hide)
    try:
        if out:
            out.write_bytes(masked)
        else:
            click.echo(masked, nl=False)
    except OSError as problem:
        raise UsageError(f"{out} cannot be written ({problem.strerror}): choose another --out") from problem
    replayed = replay(masked, str(out or trace))
    click.echo(str(replayed), err=True)
    ctx.exit(0 if replayed.outcome is Outcome.IDENTICAL else 1)

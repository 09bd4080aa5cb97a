"""The entry of the command line: which commands there are, and how each way of ending becomes an exit code.

Commands are imported when they are called, so that ``--help`` loads nothing but click.

0: what was expected held. 1: it did not. 2: wrong use or input. 130: interrupted.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from typing import Any

import click

from callwright.errors import CallwrightError, UsageError

COMMANDS = {
    "call": "Play one call and show what was heard.",
    "check": "Say what a live call needs, and what of it is missing.",
    "compare": "Compare two saved batches, seed by seed.",
    "demo": "Play calls with a naive client, then with Callwright's: begin here.",
    "ledger": "Look after a ledger's file.",
    "measure": "Play many calls and show figures over all of them.",
    "replay": "Give a recorded call to the core again, and show the first difference.",
    "scenarios": "List the scenarios that can be named.",
    "serve": "Run the local realtime server for any client.",
    "serve-provider": "Run the stand-in payment provider.",
    "talk": "Talk to an agent at this machine's microphone.",
    "trace": "Prepare a trace for others.",
}
"""What each command does, by its name; its code is ``command`` in the file of the same name, with underscores."""

INTERRUPTED = 130


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"callwright.cli.{cmd_name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, *args: Any, **extra: Any) -> Any:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy comes later; its threads slow small matrices down
        try:
            return super().main(*args, **extra)
        except OSError as problem:
            if problem.errno != errno.ENOSPC:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left in it cannot be written
            click.echo(f"callwright: the output cannot be written: {problem.strerror}", err=True)
            sys.exit(2)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except CallwrightError as problem:
            click.echo(f"callwright: {problem}", err=True)
            ctx.exit(2 if isinstance(problem, UsageError) else 1)
        except KeyboardInterrupt as stop:
            click.echo(" ".join(["callwright: interrupted", *map(str, stop.args)]), err=True)
            ctx.exit(INTERRUPTED)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="callwright")
def main() -> None:
    """Realtime voice agents that follow the ear: play, measure and serve their calls.

    Calls are simulated and offline, unless --server names a live one. `callwright demo` shows what it is about.
    """

"""``callwright measure``: figures over many calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from callwright.cli import options, show_batch
from callwright.cli.against import read_against, saved_side
from callwright.cli.estimate import ask_about
from callwright.cli.jobs import Batch, Task, Waiting, cores
from callwright.cli.junit import as_junit
from callwright.cli.patience import told_on_stderr
from callwright.cli.plan import Plan, make_plan
from callwright.cli.playing import progress
from callwright.cli.report import write_batches
from callwright.cli.show_batch import Against, Measured, as_markdown, as_object, remark
from callwright.errors import UsageError
from callwright.measure.batch import RunResult
from callwright.measure.compare import Side

_STDOUT = "<stdout>"


class _Jobs(click.IntRange):
    """How many processes: a number, or ``auto`` for one on each core."""

    name = "jobs"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return cores() if value == "auto" else super().convert(value, param, ctx)


class _Written(click.File):
    """A file that is opened before a call is played, with the directories that it needs."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            Path(value).parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            self.fail(f"{value} cannot be written ({problem.strerror}): choose another file", param, ctx)
        return super().convert(value, param, ctx)


_written = _Written("w", "utf-8", lazy=False)


@click.command("measure")
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...")
@click.option(
    "--runs", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Runs of each: seeds S to S+N-1."
)
@click.option(
    "--jobs", type=_Jobs(1), default=1, show_default=True, metavar="J", help="Processes that play at once; or auto."
)
@click.option(
    "--against",
    metavar="OPTIONS|FILE",
    help='Compare with the same seeds played otherwise ("--client naive"), or with what --json printed into a file.',
)
@click.option(
    "--allow-missing",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Runs of each scenario that may be void, censored or not scored; more of them fail.",
)
@options.seed
@options.playing
@options.live_calls
@options.yes
@options.out(None)
@options.report("the batches")
@options.export
@options.json_lines
@click.option("--markdown", type=_written, metavar="FILE", help="Write the figures as Markdown; - prints it.")
@click.option("--junit", type=_written, metavar="FILE", help="Write a JUnit case for each run.")
@options.quiet
@click.pass_context
def command(
    ctx: click.Context,
    /,
    scenarios: tuple[str, ...],
    runs: int,
    jobs: int,
    against: str | None,
    allow_missing: int,
    seed: int,
    live_calls: int,
    is_agreed: bool,
    out: Path | None,
    report: Path | None,
    export: Path | None,
    as_json: bool,
    markdown: IO[str] | None,
    junit: IO[str] | None,
    quiet: bool,
    **setup: Any,
) -> None:
    """Play many calls of each SCENARIO and show figures over all of them.

    A run that did not end as it should is told on standard error, with the command that plays it again. Ctrl-C ends
    the batch, and the figures of the runs that were finished are shown.
    """
    told = _Report(as_json, markdown, junit)
    seeds = range(seed, seed + runs)
    left = _parts(scenarios, seeds, options.Setup(**setup), against)
    for parent in filter(None, (out, export)):
        _check_apart([part.plan for part in left], parent)
    tasks = [Task(side.plan, each, out, export, bool(report)) for part in left for each in seeds for side in part.sides]
    counts = [(side.plan, runs) for part in left for side in part.sides]
    ask_about(counts, seed, live_calls, is_agreed=is_agreed, quiet=quiet)
    live = Waiting(live_calls, told_on_stderr(quiet=quiet).pause_s) if left[0].plan.live else None
    with Batch(tasks, jobs, live) as batch:
        try:
            while left:
                _play(left[0], batch, quiet=quiet)
                told.add(left.pop(0).measured(batch, allow_missing))
        except KeyboardInterrupt:
            cut = [f"{len(part.runs(batch))} of {runs} runs of {part.plan.scenario.name}" for part in left]
            raise KeyboardInterrupt(f"after {', '.join(cut)}") from None
        finally:
            for part in left:
                if part.runs(batch):
                    told.add(part.measured(batch, allow_missing))
            told.end([part.plan for part in left if not part.runs(batch)])
            if report and told.batches:
                write_batches(told.batches, report, out)
    ctx.exit(0 if all(each.is_as_wanted for each in told.batches) else 1)


@dataclass(frozen=True, slots=True)
class _Part:
    """Calls of one scenario by one client, and what they are compared with."""

    plan: Plan
    numbers: range
    """The numbers of their tasks, in order of seed."""
    other: _Part | Side | None = None

    @property
    def sides(self) -> list[_Part]:
        """All that is played for it."""
        return [self, self.other] if isinstance(self.other, _Part) else [self]

    def runs(self, batch: Batch) -> list[RunResult]:
        """Its runs that are finished."""
        return batch.finished(self.numbers)

    def measured(self, batch: Batch, may_miss: int) -> Measured:
        """What its finished runs come to; there is one at least, and so many seeds may be missing."""
        runs = self.runs(batch)
        summary = self.plan.summary(runs)
        other = self.other
        if isinstance(other, _Part):
            theirs = other.runs(batch)
            other = msgspec.convert(other.plan.summary(theirs), Side) if theirs else None
        against = Against.of(msgspec.convert(summary, Side), other) if other else None
        return Measured(self.plan, runs, len(self.numbers), summary, against, may_miss)


def _parts(scenarios: Sequence[str], seeds: range, setup: options.Setup, against: str | None) -> list[_Part]:
    """What is to be played, in order. Raises UsageError, before anything is."""
    named = None if against is None else read_against(against, setup)
    if isinstance(named, options.Setup) and (named.server is None) is not (setup.server is None):
        raise UsageError(
            "--against: one side is on a live server and the other is not: measure each with --json into a file, and "
            "callwright compare them"
        )
    sides = 2 if isinstance(named, options.Setup) else 1
    parts: list[_Part] = []
    for number, scenario in enumerate(scenarios):
        first, behind = (sides * len(seeds) * place for place in (number, number + 1))
        plan = make_plan(scenario, setup)
        other: _Part | Side | None = None
        if isinstance(named, options.Setup):
            other = _Part(make_plan(scenario, named), range(first + 1, behind, sides))
        elif named:
            other = saved_side(named, plan.side(seeds))
        parts.append(_Part(plan, range(first, behind, sides), other))
    return parts


def _play(part: _Part, batch: Batch, *, quiet: bool) -> None:
    """Wait for a part's runs, one after the other, and tell of each that did not end as it should.

    Of what it is compared with, only that is told which cannot be compared: it is not what is to be judged.
    """
    total = sum(len(side.numbers) for side in part.sides)
    with progress(part.plan.scenario.name, total, quiet=quiet) as advance:
        for numbers in zip(*(side.numbers for side in part.sides), strict=True):
            for side, number in zip(part.sides, numbers, strict=True):
                run = batch.run(number)
                is_wrong = run.figures.void if side is part.other else not side.plan.held(run)
                if is_wrong and not quiet:
                    click.echo(remark(side.plan, run), err=True)
                advance()


def _check_apart(plans: Sequence[Plan], parent: Path) -> None:
    """Raise UsageError for scenarios whose calls would have the same directory."""
    taken: dict[str, Path] = {}
    for plan in plans:
        name, path = plan.scenario.name, plan.scenario.path
        if name in taken:
            raise UsageError(
                f"{taken[name]} and {path} would both write to {parent / name}-...: measure each into its own directory"
            )
        taken[name] = path


class _Report:
    """Where the figures go: as a table or JSON to standard output, and to files as Markdown and JUnit."""

    def __init__(self, as_json: bool, markdown: IO[str] | None, junit: IO[str] | None) -> None:
        """Raise UsageError for two things that would go to standard output."""
        printed = {"--json": as_json, "--markdown -": _is_stdout(markdown), "--junit -": _is_stdout(junit)}
        names = [name for name, is_printed in printed.items() if is_printed]
        if len(names) > 1:
            raise UsageError(f"{' and '.join(names)} would both go to standard output: name a file for one of them")
        self.batches: list[Measured] = []
        self._print = _print_json if as_json else None if names else show_batch.show
        self._markdown = markdown
        self._junit = junit

    def add(self, batch: Measured) -> None:
        """Tell of one more scenario."""
        is_first = not self.batches
        self.batches.append(batch)
        if self._print is show_batch.show and not is_first:
            click.echo()
        if self._print:
            self._print(batch)
        if self._markdown:
            self._markdown.write("\n" * (not is_first) + as_markdown(batch))

    def end(self, unplayed: Sequence[Plan]) -> None:
        """Write what is written of all scenarios together, those among them of which no run was finished."""
        if self._junit:
            self._junit.write(as_junit(self.batches, unplayed))


def _is_stdout(file: IO[str] | None) -> bool:
    return file is not None and file.name == _STDOUT


def _print_json(batch: Measured) -> None:
    click.echo(json.dumps(as_object(batch)))

"""What people look at of many calls: figures, what held, what is missing, and what differs on another side.

The same parts go to a terminal and into Markdown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from rich.table import Table
from rich.text import Text

from callwright.cli.plan import Plan
from callwright.cli.printing import digits, heading, put, unwrapped
from callwright.measure.batch import RunResult, reservations, runs_shown
from callwright.measure.compare import Difference, Side, compared, unpaired
from callwright.measure.figures import METRICS
from callwright.measure.intervals import INTERVAL_RUNS
from callwright.measure.metric import Aim
from callwright.measure.void import is_censored

if TYPE_CHECKING:
    from callwright.measure.verdict import Failure


@dataclass(frozen=True, slots=True)
class Against:
    """The other side of a batch."""

    side: Side
    differences: Sequence[Difference]
    """This side less the other one."""
    unpaired: Sequence[int]
    """Seeds that are not compared: a call of theirs is void or censored."""

    @classmethod
    def of(cls, one: Side, other: Side) -> Self:
        """The other side beside the one."""
        return cls(other, compared(one, other), unpaired(one, other))

    @property
    def title(self) -> str:
        """Who took the other calls."""
        return side_title(self.side)

    @property
    def missing(self) -> str:
        """Which seeds are not compared; empty if all are."""
        if not self.unpaired:
            return ""
        return f"{seeds(self.unpaired)} not compared: a call of theirs is void or censored"


@dataclass(frozen=True, slots=True)
class Measured:
    """A batch of one scenario's calls."""

    plan: Plan
    runs: Sequence[RunResult]
    planned: int
    """How many runs there were to be."""
    summary: Mapping[str, Any]
    against: Against | None = None
    may_miss: int = 0
    """How many of its seeds may be missing without a failure."""

    @property
    def excused(self) -> list[int]:
        """The seeds that are missing, and may be: not more than so many, and never all of them."""
        missed = [run.seed for run in self.runs if run.is_missing and not self.plan.held(run)]
        missed += [seed for seed in (self.against.unpaired if self.against else ()) if seed not in missed]
        return missed if len(missed) <= self.may_miss and len(missed) < len(self.runs) else []

    @property
    def title(self) -> Text:
        """Who took the calls of what."""
        return heading(self.plan, seeds([run.seed for run in self.runs]))

    @property
    def missing(self) -> list[str]:
        """What is missing of the runs as a whole."""
        found = [self.plan.unshown(self.runs)]
        if self.against and any(seed not in self.excused for seed in self.against.unpaired):
            found.append(self.against.missing)
        if len(self.runs) < self.planned:
            found.append(f"{len(self.runs)} of {self.planned} runs were finished")
        return [each for each in found if each]

    @property
    def is_as_wanted(self) -> bool:
        """Whether every run ended as it should or may be missing, and nothing else is missing."""
        excused = self.excused
        return all(self.plan.held(run) or run.seed in excused for run in self.runs) and not self.missing


class Sheet(NamedTuple):
    """A table: texts in rows, the first of each a name."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def show(batch: Measured) -> None:
    """Print figures and expectations, and what differs from the other side."""
    put(batch.title, "", _table(figures(batch.summary)), "", *verdict(batch.plan, batch.runs), *tally(batch))
    if batch.against:
        show_against(batch.against)


def show_against(against: Against) -> None:
    """Print what differs from the other side."""
    lines = [Text.assemble((f"{label:8}", "dim"), told) for label, told in said(against)]
    put("", f"against  {against.title}", "", _table(differences(against)), "", *lines)


def as_object(batch: Measured) -> dict[str, Any]:
    """The same as an object of JSON; what it is compared with is in it only if there is such."""
    against = batch.against
    if against is None:
        return dict(batch.summary)
    return {**batch.summary, "against": against_object(against)}


def against_object(against: Against) -> dict[str, Any]:
    """The other side, and what differs from it, as an object of JSON."""
    side = against.side
    return {
        "client": side.client,
        "server": side.server,
        "settings": side.settings,
        "unpaired": list(against.unpaired),
        "differences": [{**asdict(found), "is_shown": found.is_shown} for found in against.differences],
    }


def as_markdown(batch: Measured) -> str:
    """The same as Markdown."""
    lines = [f"- {_escaped(line.plain)}" for line in (*verdict(batch.plan, batch.runs), *tally(batch))]
    parts = [f"### {_escaped(batch.title.plain)}", _markdown_table(figures(batch.summary)), "\n".join(lines)]
    if batch.against:
        parts += [f"#### against {_escaped(batch.against.title)}", _markdown_table(differences(batch.against))]
        parts += ["\n".join(f"- {label}: {_escaped(told)}" for label, told in said(batch.against))]
    return "\n\n".join(filter(None, parts)) + "\n"


def side_title(side: Side) -> str:
    """Who took the calls of one side, of what."""
    told = [f"{name} {value}" for name, value in side.settings.items()]
    return f"{side.client}  {', '.join([side.scenario, seeds([call.seed for call in side.by_seed]), *told])}"


def seeds(numbers: Sequence[int]) -> str:
    """Seeds as they are told: ``seed 4``, or ``seeds 1 to 4, 7``."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][-1] + 1:
            spans[-1][1:] = [number]
        else:
            spans.append([number])
    return f"seed{'s' * (len(numbers) > 1)} {', '.join(' to '.join(map(str, span)) for span in spans)}"


# --- figures


def figures(summary: Mapping[str, Any]) -> Sheet:
    """The figures of a batch: how many runs have one, where not all do, and the 95 % interval of its median."""
    rows = [
        (
            name,
            "" if each["runs"] == summary["runs"] else str(each["runs"]),
            str(each["n"]),
            digits(each["median"]),
            _interval(each["interval"]),
            *(digits(each[column]) for column in ("p90", "min", "max")),
        )
        for name, each in summary["metrics"].items()
    ]
    return Sheet(("metric", "runs", "n", "median", "95 %", "p90", "min", "max"), rows)


def _interval(ends: Sequence[float] | None) -> str:
    return " to ".join(map(digits, ends)) if ends else ""


def tally(batch: Measured) -> Iterator[Text]:
    """How many runs ended as they should; how many have no figures, or lack one that was expected, and which."""
    runs = batch.runs
    if len(runs) > 1:
        yield Text.assemble(("runs    ", "dim"), f"{batch.summary['held']} of {len(runs)} ended as they should")
    without = [(run.seed, is_censored(run.figures.void)) for run in runs if run.figures.void]
    kinds = {
        "void": [seed for seed, censored in without if not censored],
        "censored": [seed for seed, censored in without if censored],
        "not scored": [run.seed for run in runs if run.verdict.not_scored],
    }
    if told := [f"{len(missed)} {kind} ({seeds(missed)})" for kind, missed in kinds.items() if missed]:
        yield Text.assemble(("missing ", "red"), ", ".join(told), "; allowed" if batch.excused else "")


# --- the other side


def differences(against: Against) -> Sheet:
    """What differs in any pair: this side's median, the other's, and that of the differences, with 95 %."""
    rows = [
        (
            found.name,
            str(found.pairs),
            *map(digits, (found.one, found.other, found.median)),
            _interval(found.interval),
            *map(str, (found.better, found.worse, found.equal)),
        )
        for found in against.differences
        if found.equal < found.pairs
    ]
    return Sheet(("metric", "pairs", "this", "other", "diff", "95 %", "+", "-", "="), rows)


def said(against: Against) -> Iterator[tuple[str, str]]:
    """What the differences come to in words, each line with its label."""
    some = [found for found in against.differences if found.equal < found.pairs]
    yield (
        "legend",
        "diff is the median of this less other on the same seed; + pairs in which this is better, - worse, = equal; "
        "of figures that are better neither way (heard_ms): + lower, - higher",
    )
    for found in some:
        if found.is_shown:
            yield "differs", _claim(found)
    if unsure := [found.name for found in some if found.interval and not found.is_shown]:
        yield "unsure", f"no difference is claimed, 0 lies within the 95 %: {', '.join(unsure)}"
    if few := [found.name for found in some if not found.interval]:
        yield "too few", f"no difference is claimed of less than {INTERVAL_RUNS} pairs: {', '.join(few)}"
    if same := [found.name for found in against.differences if found.equal == found.pairs]:
        yield "same", f"equal on every seed: {', '.join(same)}"
    if against.missing:
        yield "missing", against.missing
    for found in against.differences:
        if found.lacking:
            yield "missing", f"{found.name}: {seeds(found.lacking)} left out, one side has none"


def _claim(found: Difference) -> str:
    metric = METRICS[found.name]
    low, high = sorted(map(abs, found.interval or ()))
    what = f"{digits(abs(found.median))} {metric.unit} {'lower' if found.median < 0 else 'higher'}"
    better, worse = ("lower", "higher") if metric.aim is Aim.NEITHER else ("better", "worse")
    counts = f"{better} in {found.better} of {found.pairs}, {worse} in {found.worse}"
    return f"{found.name} is {what} (95 %: {digits(low)} to {digits(high)}); {counts}"


# --- single runs


def remark(plan: Plan, run: RunResult) -> str:
    """Why a run did not end as it should, in one line with the command that plays it again."""
    if run.figures.void:
        return _void(plan, run)
    failed = (
        "; ".join(map(_failure, run.verdict.failed)) or f"nothing failed, but {', '.join(plan.must_fail or ())} must"
    )
    return f"FAILED {plan.scenario.name} seed {run.seed}: {failed}; replay: {plan.replay(run.seed)}"


def verdict(plan: Plan, runs: Sequence[RunResult]) -> Iterator[Text]:
    """Which expectations held in all runs, and which did not in how many, line by line."""
    failed: dict[str, list[tuple[RunResult, Failure]]] = {}
    for run in runs:
        for failure in () if run.figures.void else run.verdict.failed:
            failed.setdefault(failure.name, []).append((run, failure))
    held = dict.fromkeys(name for run in runs for name in run.verdict.passed if name not in failed)
    if held:
        yield Text.assemble(("held    ", "green"), ", ".join(held))
    for name, cases in failed.items():
        run, failure = cases[0]
        told = _failure(failure) + " (as it must)" * (name in (plan.must_fail or ()))
        if len(runs) > 1:
            told += f" in {len(cases)} of {len(runs)}; {plan.replay(run.seed)}"
        yield unwrapped(("failed  ", "red"), told)
    yield from left_open(runs)
    if plan.behaviors:
        shown = runs_shown(runs, plan.behaviors).items()
        told = ", ".join(f"{name} in {count} of {len(runs)}" for name, count in shown)
        yield Text.assemble(("showed  ", "dim"), told)
    for reason in [*(_void(plan, run) for run in runs if run.figures.void), *filter(None, [plan.unshown(runs)])]:
        yield unwrapped((reason, "bold red"))


def left_open(runs: Sequence[RunResult]) -> Iterator[Text]:
    """What is not judged, and what is estimated, because server or client is not ours."""
    for kind, told in reservations(runs):
        yield Text.assemble((f"{kind:8}", "dim"), told)


def _void(plan: Plan, run: RunResult) -> str:
    return f"{run.figures.void}; replay: {plan.replay(run.seed)}"


def _failure(failure: Failure) -> str:
    return f"{failure.name}: wanted {failure.wanted}, got {failure.got}"


# --- tables


def _table(sheet: Sheet) -> Table:
    """A table for a terminal."""
    head, *rows = _filled(sheet)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for number, column in enumerate(head):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _markdown_table(sheet: Sheet) -> str:
    head, *rows = _filled(sheet)
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) if head else ""


def _filled(sheet: Sheet) -> list[list[str]]:
    """Head and rows without the columns in which nothing stands."""
    used = [column for column in range(len(sheet.head)) if any(row[column] for row in sheet.rows)]
    return [[row[column] for column in used] for row in (sheet.head, *sheet.rows)]


def _escaped(text: str) -> str:
    """Text for a line of Markdown, with single blanks between its words."""
    return " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")

"""From plans to measured calls and their files."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from callwright.audio.wav import wav_file
from callwright.cli.options import Pace
from callwright.cli.patience import Patience, play_live, play_patiently
from callwright.cli.plan import Plan
from callwright.errors import UsageError
from callwright.measure.batch import RunResult
from callwright.measure.figures import figures_of
from callwright.measure.hearing import HeardCall, hear_call
from callwright.measure.hold import hold_summary
from callwright.measure.verdict import judge
from callwright.sim.record import CallRecord
from callwright.sim.world import play

CLIENT_LOG = "client.log"
"""What a client that is a program printed, among the files of its call."""


@dataclass(frozen=True, slots=True)
class Played:
    """A call that was played and measured."""

    plan: Plan
    heard: HeardCall
    run: RunResult
    output: bytes | None = None
    """What the client printed, where that is a program."""

    @property
    def record(self) -> CallRecord:
        """What is known of it."""
        return self.heard.record

    def summary(self) -> dict[str, Any]:
        """Its figures as a JSON object; of a call that the agent makes also how it waited."""
        hold = hold_summary(self.heard)
        return {**self.plan.summary([self.run]), **({"hold": hold} if hold else {})}


def play_one(plan: Plan, seed: int) -> Played:
    """Play and measure one call. Raises ConnectionFailed where a live server lets nobody in."""
    if plan.live:
        return _measured(plan, seed, play_live(plan, seed))
    if plan.setup.program is not None:
        from callwright.sim.program.call import play_program

        taken = play_program(plan.scenario, seed, plan.setup.program, plan.setup.options)
        return replace(_measured(plan, seed, taken.record), output=taken.output)
    if plan.setup.pace is Pace.REAL:
        return play_together([plan], seed)[0]
    return _measured(plan, seed, play(plan.scenario, seed, client=plan.client, options=plan.setup.options))


def play_together(plans: Sequence[Plan], seed: int) -> list[Played]:
    """Play and measure several clients' calls of one scenario in real time, all at once, as the last plan sets it."""
    from callwright.sim.live import play_side_by_side

    ours = plans[-1]
    records = play_side_by_side(ours.scenario, seed, [plan.client for plan in plans], ours.setup.options)
    return [_measured(plan, seed, record) for plan, record in zip(plans, records, strict=True)]


def play_waiting(
    plans: Sequence[Plan], seed: int, at_once: int, patience: Patience
) -> Iterator[Played | BaseException]:
    """Play several calls on live servers, so many at once, and wait where one has no room; then measure each.

    Yields in place of a call that failed what it raised.
    """
    records = play_patiently(plans, seed, at_once, patience)
    for plan, record in zip(plans, records, strict=True):
        yield record if isinstance(record, BaseException) else _measured(plan, seed, record)


def finished(outcomes: Iterable[Played | BaseException]) -> Iterator[Played]:
    """The calls that were played. Raises behind them what the first of the others raised."""
    problems: list[BaseException] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            problems.append(outcome)
        else:
            yield outcome
    for problem in problems:
        raise problem


def _measured(plan: Plan, seed: int, record: CallRecord) -> Played:
    heard = hear_call(record, plan.scenario.lines)
    figures = figures_of(heard)
    verdict = judge(figures, plan.scenario.expect)
    return Played(plan, heard, RunResult(seed, hashlib.sha256(record.trace).hexdigest(), figures, verdict))


def save(played: Played, parent: Path) -> Path:
    """Write a call's recording (caller left, agent as heard right), trace and figures. Returns their directory.

    Raises UsageError where nothing can be written.
    """
    record, sound = played.record, played.record.recording
    directory = played.plan.directory(parent, record.seed)
    figures = {**played.summary(), "replies": [asdict(reply) for reply in played.run.figures.replies]}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "call.wav").write_bytes(wav_file(sound.rate_hz, sound.caller, sound.agent))
        (directory / "trace.jsonl").write_bytes(record.trace)
        if played.output is not None:
            (directory / CLIENT_LOG).write_bytes(played.output)
        (directory / "figures.json").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    except OSError as problem:
        raise UsageError(f"{directory} cannot be written ({problem.strerror}): choose another --out") from problem
    return directory


@contextmanager
def progress(what: str, total: int, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """A bar on the terminal, if there is one, while ``total`` calls are played; call what it yields after each."""
    if quiet or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    # Drawn when something is done, not by a thread of its own: virtual time is sealed against threads.
    with Progress(console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task(what, total=total)
        bar.refresh()
        yield lambda: bar.update(task, advance=1, refresh=True)

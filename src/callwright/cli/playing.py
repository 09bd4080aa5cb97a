"""From a scenario's name to measured calls and their files."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import callwright.apps
from callwright.audio.wav import wav_file
from callwright.cli.inputs import inputs_of
from callwright.cli.live import Live, Patience, play_live, play_patiently
from callwright.cli.options import Pace, Setup
from callwright.errors import UsageError
from callwright.measure.batch import RunResult, summarise, unshown_reason, went_as_expected
from callwright.measure.compare import Call, Side
from callwright.measure.figures import METRICS, figures_of
from callwright.measure.hearing import HeardCall, hear_call
from callwright.measure.hold import hold_summary
from callwright.measure.verdict import judge
from callwright.sim.agents import tools_of
from callwright.sim.program.process import check_scenario
from callwright.sim.record import CallRecord
from callwright.sim.scenario import Scenario, find_scenarios, load_scenario, locate_scenario
from callwright.sim.world import CLIENTS, OURS, play

_NO_NAME = re.compile(r"://|[\s/?]+")
"""What does not belong into the name of a directory."""
ROOTS = tuple(Path(place) for place in callwright.apps.__path__)
"""Where scenarios are looked for by name."""


CLIENT_LOG = "client.log"
"""What a client that is a program printed, among the files of its call."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A scenario and how it is played."""

    scenario: Scenario
    setup: Setup
    client: str
    inputs: Mapping[str, str]
    """Hashes of what it is played from, as that was when it was read."""
    live: Live | None = None
    """The live server that its calls reach; None where the local one is played."""

    @property
    def must_fail(self) -> tuple[str, ...] | None:
        """What must fail; None where all must hold."""
        return self.setup.must_fail(self.scenario)

    def held(self, run: RunResult) -> bool:
        """Whether a run ended as it should."""
        return went_as_expected([run], self.must_fail or ())

    @property
    def behaviors(self) -> tuple[str, ...]:
        """What the scenario wants to see the local model do; a baseline may never let it come to that."""
        if self.client != OURS or self.live:
            return ()
        return tuple(name for name, rate in self.scenario.rates.items() if rate)

    def unshown(self, runs: Sequence[RunResult]) -> str | None:
        """Why these runs together did not try what they were meant to; None if they did."""
        return unshown_reason(self.scenario.name, runs, self.behaviors)

    def replay(self, seed: int) -> str:
        """The command that plays one of the calls again: by name only where the name finds the same file."""
        path = self.scenario.path
        named = find_scenarios(ROOTS).get(self.scenario.name)
        name = self.scenario.name if named and path.samefile(named) else shlex.quote(str(path))
        return " ".join([f"callwright call {name} --seed {seed}", *self.setup.taker(), *self.setup.settings()])

    def directory(self, parent: Path, seed: int) -> Path:
        """Where the files of one of the calls go: ``parent/SCENARIO-CLIENT-SETTINGS-SEED``, settings as typed."""
        settings = [_NO_NAME.sub("-", option.lstrip("-")) for option in self.setup.settings()]
        return parent / "-".join([self.scenario.name, self.client, *settings, str(seed)])

    @property
    def told(self) -> dict[str, object]:
        """What is out of the ordinary, by name: with a live server also where that is."""
        return {**self.setup.told(), **({"live": self.live.address} if self.live else {})}

    def summary(self, runs: Sequence[RunResult]) -> dict[str, Any]:
        """The figures of one run or more as a JSON object."""
        return summarise(
            self.scenario.name,
            self.client,
            self.setup.dialect_for(self.scenario),
            self.told,
            self.inputs,
            runs[0].seed,
            runs,
            self.must_fail,
            self.behaviors,
        )

    def side(self, seeds: Sequence[int]) -> Side:
        """What these runs are compared as, before they are played."""
        return Side(
            scenario=self.scenario.name,
            client=self.client,
            server=self.setup.dialect_for(self.scenario),
            settings=self.told,
            inputs=dict(self.inputs),
            by_seed=tuple(Call(seed, (), {}) for seed in seeds),
        )


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


def look_here() -> None:
    """Let modules that are named be found in the working directory, too."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def make_plan(name_or_path: str, setup: Setup) -> Plan:
    """Read the scenario of this name or path; what it names is found in the working directory, too.

    Raises UsageError and ScenarioError.
    """
    look_here()
    scenario = load_scenario(locate_scenario(name_or_path, ROOTS), tools_of, METRICS, CLIENTS)
    scenario = scenario.in_dialect(setup.dialect_for(scenario))
    setup.options.behind(scenario.behind)  # for their mistakes: they are told before a call
    setup.options.callee(scenario.callee)
    setup.options.max_hold_ms(scenario)
    client = setup.client_for(scenario)
    if setup.program is not None:
        check_scenario(scenario, setup.options)
    server = setup.server_for(scenario)
    live = Live.at(server) if server else None
    return Plan(scenario, setup, client, inputs_of(scenario), live)


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


def came_about(played: Played | BaseException) -> Played:
    """A call that was played. Raises what it raised."""
    if isinstance(played, BaseException):
        raise played
    return played


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

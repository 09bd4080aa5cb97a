"""From a scenario's name to a plan: the scenario and how it is played."""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import callwright.apps
from callwright.cli.inputs import inputs_of
from callwright.cli.live import Live
from callwright.cli.options import Setup
from callwright.measure.batch import RunResult, summarise, unshown_reason, went_as_expected
from callwright.measure.compare import Call, Side
from callwright.measure.figures import METRICS
from callwright.sim.agents import tools_of
from callwright.sim.live import check_options
from callwright.sim.program.process import check_scenario
from callwright.sim.scenario import Scenario, find_scenarios, load_scenario, locate_scenario
from callwright.sim.world import CLIENTS, OURS

_NO_NAME = re.compile(r"://|[\s/?]+")
"""What does not belong into the name of a directory."""
_SETTINGS_BYTES_MAX = 120
"""A name may have 255 bytes, of which some are the scenario's."""
ROOTS = tuple(Path(place) for place in callwright.apps.__path__)
"""Where scenarios are looked for by name."""


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
        """Where the files of one of the calls go: ``parent/SCENARIO-CLIENT-SETTINGS-SEED``, settings as typed.

        Where that would be too long for a file system, the settings are cut, and end in a hash of all of them.
        """
        settings = "-".join(_NO_NAME.sub("-", option.lstrip("-")) for option in self.setup.settings())
        if len(settings.encode()) > _SETTINGS_BYTES_MAX:
            kept = settings.encode()[: _SETTINGS_BYTES_MAX - 9].decode(errors="ignore")
            settings = f"{kept}-{hashlib.sha256(settings.encode()).hexdigest()[:8]}"
        return parent / "-".join(filter(None, [self.scenario.name, self.client, settings, str(seed)]))

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
    if server:
        check_options(setup.options)
    live = Live.at(server) if server else None
    return Plan(scenario, setup, client, inputs_of(scenario), live)

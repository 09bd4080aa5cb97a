"""The figures of many calls of one scenario, as one object with the same keys for every scenario.

Quantiles are of the nearest rank: every figure is one that was measured, and a whole number stays one. Void and
censored calls give no figures but `caller_fidelity`, and are named. Rates are left out below `RATE_RUNS` calls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING

from callwright.measure.figures import METRICS
from callwright.measure.intervals import median_interval
from callwright.measure.void import is_censored

if TYPE_CHECKING:
    from callwright.measure.figures import CallFigures
    from callwright.measure.verdict import Verdict

RATE_RUNS = 10
"""A share of fewer events than this says too little to be shown."""
_ALWAYS = "caller_fidelity"


class Reservation(StrEnum):
    """Why a server that is not ours leaves something open, in a word."""

    OMITTED = "omitted"
    """It was expected, and is not judged."""
    ABOUT = "about"
    """It is estimated."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """One call of a batch."""

    seed: int
    trace_sha256: str
    """Of the client's trace, hexadecimal."""
    figures: CallFigures
    verdict: Verdict

    @property
    def is_missing(self) -> bool:
        """Whether it cannot be judged: it is void or censored, or lacks all that it fails by."""
        failed = self.verdict.failed
        return bool(self.figures.void) or (bool(failed) and not any(failure.is_measured for failure in failed))


def summarise(
    scenario: str,
    client: str,
    server: str,
    settings: Mapping[str, object],
    inputs: Mapping[str, str],
    first_seed: int,
    runs: Sequence[RunResult],
    must_fail: Collection[str] | None = None,
    behaviors: Collection[str] = (),
) -> dict[str, object]:
    """Sum up runs, in order of seed. With ``must_fail`` a name in it that held in a run is a failure as well.

    ``inputs`` are hashes of what was played, by what it is.
    ``behaviors`` are those of the model's that the scenario wants to see: each is told with how many runs it showed in.
    """
    runs = sorted(runs, key=lambda run: run.seed)
    without = [{"seed": run.seed, "reason": run.figures.void} for run in runs if run.figures.void]
    censored = [each for each in without if is_censored(str(each["reason"]))]
    void = [each for each in without if each not in censored]
    if reason := unshown_reason(scenario, runs, behaviors):
        void.append({"seed": first_seed, "reason": reason})
    return {
        "scenario": scenario,
        "client": client,
        "server": server,
        "settings": dict(settings),
        "inputs": dict(inputs),
        "seed": first_seed,
        "runs": len(runs),
        "held": sum(went_as_expected([run], must_fail or ()) for run in runs),
        "trace_sha256": sha256("".join(run.trace_sha256 for run in runs).encode()).hexdigest(),
        "metrics": _metrics(runs),
        "expectations": _expectations(runs, must_fail or ()),
        "behaviors": runs_shown(runs, behaviors),
        "void": void,
        "censored": censored,
        "not_scored": [
            {"seed": run.seed, "names": list(run.verdict.not_scored)} for run in runs if run.verdict.not_scored
        ],
        "not_judged": _not_judged(runs),
        "estimated": _estimated(runs),
        "by_seed": [_one(run) for run in runs],
    }


def _not_judged(runs: Sequence[RunResult]) -> dict[str, str]:
    """What was expected and cannot be judged in some run, because server or client is not ours, with the reason."""
    return {name: why for run in runs for name, why in run.verdict.not_judged}


def _estimated(runs: Sequence[RunResult]) -> list[str]:
    """The figures that rest on where words are supposed to lie, in a run at least."""
    return [name for name in METRICS if any(name in run.figures.estimated for run in runs)]


def reservations(runs: Sequence[RunResult]) -> list[tuple[Reservation, str]]:
    """What is not as sure as with our own server: names with the reason, for every kind and reason one."""
    omitted: dict[str, list[str]] = {}
    for name, why in _not_judged(runs).items():
        omitted.setdefault(why, []).append(name)
    found = [(Reservation.OMITTED, f"{', '.join(names)}: {why}") for why, names in omitted.items()]
    if names := _estimated(runs):
        found.append((Reservation.ABOUT, f"{', '.join(names)}: where words lie in a reply is estimated"))
    return found


def _one(run: RunResult) -> dict[str, object]:
    """One call by itself: what is compared with the call that another client or setting had on the same seed."""
    return {
        "seed": run.seed,
        "trace_sha256": run.trace_sha256,
        "failed": [failure.name for failure in run.verdict.failed],
        "medians": {name: quantile(values, 50) for name, values in scored(run).items()},
    }


def scored(run: RunResult) -> Mapping[str, Sequence[float]]:
    """The figures of a call that count: of one that is void or censored only those that every call has."""
    values = run.figures.values
    return {name: values[name] for name in values if name == _ALWAYS} if run.figures.void else values


def runs_shown(runs: Sequence[RunResult], behaviors: Collection[str]) -> dict[str, int]:
    """In how many runs each of these behaviors of the model showed."""
    return {name: sum(name in run.figures.shown for run in runs) for name in behaviors}


def unshown_reason(scenario: str, runs: Sequence[RunResult], behaviors: Collection[str]) -> str | None:
    """Why a batch is void of which no run showed one of these behaviors; None for a single call, which is none.

    None, too, for a server that is not ours: its model shows what it will.
    """
    unshown = [name for name, count in runs_shown(runs, behaviors).items() if not count]
    if len(runs) < 2 or not unshown or any(run.figures.is_elsewhere for run in runs):
        return None
    seeds = f"seeds {runs[0].seed} to {runs[-1].seed}"
    return f"VOID {scenario} {seeds}: the model never showed {', '.join(unshown)}, which the scenario sets"


def went_as_expected(runs: Sequence[RunResult], must_fail: Collection[str] = ()) -> bool:
    """Whether every run failed in exactly these names; without any, whether all expectations held. Void never does.

    Names that cannot be judged in a run are left out of it.
    """
    return all(
        sorted(failure.name for failure in run.verdict.failed)
        == sorted(name for name in must_fail if name not in dict(run.verdict.not_judged))
        for run in runs
    )


def quantile(values: Sequence[float], percent: int) -> float:
    """The smallest of ``values`` (at least one) that is not below ``percent`` per cent of them."""
    return sorted(values)[max(0, -(-len(values) * percent // 100) - 1)]


def _metrics(runs: Sequence[RunResult]) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for name, metric in METRICS.items():
        measured = [run[name] for run in map(scored, runs) if name in run]
        values = [value for run in measured for value in run]
        if values and not (metric.is_rate and len(values) < RATE_RUNS):
            found[name] = {
                "runs": len(measured),
                "n": len(values),
                "median": quantile(values, 50),
                "interval": list(median_interval(measured) or ()) or None,
                "p90": quantile(values, 90),
                "min": min(values),
                "max": max(values),
            }
    return found


def _expectations(runs: Sequence[RunResult], must_fail: Collection[str]) -> dict[str, list[object]]:
    """Names that held in every run, and per other name the seeds that failed, what was wanted, and what each got."""
    failed: dict[str, list[tuple[int, str, str]]] = {}
    held: dict[str, None] = {}
    for run in runs:
        for failure in run.verdict.failed:
            failed.setdefault(failure.name, []).append((run.seed, failure.wanted, failure.got))
        for name in run.verdict.passed:
            held[name] = None
            if name in must_fail:
                failed.setdefault(f"{name} (must fail)", []).append((run.seed, "to fail", "held"))
    return {
        "passed": [name for name in held if name not in failed and name not in must_fail],
        "failed": [
            {
                "name": name,
                "seeds": [seed for seed, _, _ in each],
                "wanted": each[0][1],
                "got": [got for _, _, got in each],
            }
            for name, each in failed.items()
        ],
    }

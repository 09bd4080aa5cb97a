"""Whether a call held to what its scenario expects of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from callwright.measure.figures import METRICS
from callwright.measure.void import is_censored

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callwright.measure.figures import CallFigures

NOT_MEASURED = "not measured"
_VOID = ("void", "a call that tries what it is meant to")
_CENSORED = ("censored", "a call that comes to its end")


class Expected(Protocol):
    """What a scenario expects."""

    @property
    def max(self) -> Mapping[str, float]:
        """The most that each value of a metric may be."""

    @property
    def min(self) -> Mapping[str, float]:
        """The least that each value of a metric may be."""

    @property
    def heard(self) -> Sequence[str]:
        """Agent lines that must be heard whole."""

    @property
    def not_heard(self) -> Sequence[str]:
        """Agent lines of which nothing may be heard."""

    @property
    def ended(self) -> str | None:
        """Who must end the call; None if it does not matter."""

    @property
    def effects(self) -> Sequence[str] | None:
        """What the provider's book must hold in the end; None if it does not matter."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What did not hold.

    A metric, ``heard``, ``not_heard``, ``ended``, ``effects``, ``invariants``, ``void``, ``censored`` or ``judged``.
    """

    name: str
    wanted: str
    got: str
    is_measured: bool = True
    """Whether the call had what was expected of it; what it could not have is not scored, and no zero."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The names of the expectations that held, and the failures, in the scenario's order; one entry a name."""

    passed: tuple[str, ...]
    failed: tuple[Failure, ...]
    not_judged: tuple[tuple[str, str], ...] = ()
    """What was expected and cannot be judged, as server or client is not ours, and why; neither passed nor failed."""

    @property
    def not_scored(self) -> tuple[str, ...]:
        """The names of those that the call had nothing to be scored by."""
        return tuple(failure.name for failure in self.failed if not failure.is_measured)


def judge(figures: CallFigures, expect: Expected) -> Verdict:
    """Hold figures against expectations. A void or censored call fails as that, whatever it measured.

    One of which nothing that is expected can be judged is not scored: it showed nothing.
    """
    if figures.void:
        missing = _CENSORED if is_censored(figures.void) else _VOID
        return Verdict((), (Failure(*missing, figures.void),))
    failures: dict[str, Failure | None] = {}
    not_judged: dict[str, str] = {}
    for name, failure in _checked(figures, expect):
        if name in figures.unjudged:
            not_judged[name] = figures.unjudged[name]
        elif name in figures.unscored:
            wanted = failure.wanted if failure else "nothing"
            failures[name] = Failure(name, wanted, f"{NOT_MEASURED} ({figures.unscored[name]})", is_measured=False)
        else:
            failures[name] = failures.get(name) or failure
    if not_judged and not failures:
        failures["judged"] = Failure("judged", "something that can be judged", "nothing", is_measured=False)
    passed = tuple(name for name, failure in failures.items() if failure is None)
    return Verdict(passed, tuple(failure for failure in failures.values() if failure), tuple(not_judged.items()))


def _checked(figures: CallFigures, expect: Expected) -> Iterator[tuple[str, Failure | None]]:
    """Every expectation by name, with its failure if it did not hold."""
    for name, limit in expect.max.items():
        most = max(figures.values.get(name, ()), default=None)
        yield name, _failure(name, f"at most {limit:g}", most, most is not None and most <= limit)
    for name, limit in expect.min.items():
        least = min(figures.values.get(name, ()), default=None)
        yield name, _failure(name, f"at least {limit:g}", least, least is not None and least >= limit)
    if expect.heard:
        lost = [line_id for line_id in expect.heard if line_id not in figures.lines_heard]
        yield "heard", Failure("heard", ", ".join(expect.heard), f"not whole: {', '.join(lost)}") if lost else None
    if expect.not_heard:
        told = [line_id for line_id in expect.not_heard if line_id in figures.lines_touched]
        wanted = f"nothing of {', '.join(expect.not_heard)}"
        yield "not_heard", Failure("not_heard", wanted, f"heard: {', '.join(told)}") if told else None
    if expect.ended:
        held = figures.ended_by == expect.ended
        yield "ended", None if held else Failure("ended", f"by the {expect.ended}", f"by the {figures.ended_by}")
    if expect.effects is not None:
        held = sorted(figures.effects) == sorted(expect.effects)
        wanted, got = (", ".join(effects) or "nothing" for effects in (expect.effects, figures.effects))
        yield "effects", None if held else Failure("effects", wanted, got)
    if figures.violations:
        yield "invariants", Failure("invariants", "a record that agrees with the book", "; ".join(figures.violations))


def _failure(name: str, wanted: str, got: float | None, held: bool) -> Failure | None:
    if got is None:
        return Failure(name, wanted, _not_measured(name), is_measured=False)
    return None if held else Failure(name, wanted, f"{got:g}")


def _not_measured(name: str) -> str:
    why = METRICS[name].absent
    return f"{NOT_MEASURED} ({why})" if why else NOT_MEASURED

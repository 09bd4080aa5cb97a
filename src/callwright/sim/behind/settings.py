"""What is behind the agent of a scenario: the payment provider that it reaches, and what the caller did before.

```yaml
party: customer:81
deps: callwright.apps.refunds:Shop
provider: {answers: pending, after_ms: 150, settles_ms: 4000, cancel: until_settled, faults: [lost-reply]}
earlier: {gap_ms: 5000, caller: [{when: pickup + 400 ms, says: refund-4417}, ...], crash: {at: before fold}}
```
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from callwright.errors import UsageError
from callwright.sim.yamlfile import read_typed

if TYPE_CHECKING:
    from callwright.ids import Ms
    from callwright.sim.behind.dying import Crash
    from callwright.sim.caller import Step
    from callwright.sim.provider import Charge, ProviderSettings
    from callwright.sim.yamlfile import Field

_HABIT_KEYS = (
    "answers",
    "after_ms",
    "settles_ms",
    "cancel",
    "destinations",
    "idempotency",
    "lookup_ms",
    "lag_ms",
    "late_ms",
    "faults",
    "faults_until_ms",
    "timeout_ms",
)
PROVIDER_KEYS = ("charges", *_HABIT_KEYS)
TIMEOUT_MS: Ms = 10_000
"""How long the client of the provider waits for an answer where a scenario names no other time."""
CRASH_KEYS = ("at", "nth", "restart_after_ms")
RESTART_AFTER_MS: Ms = 1_000
"""How long a process stays dead where a scenario names no other time."""
LONGEST_MS: Ms = 30 * 86_400_000

_LISTS = ("faults", "late_ms")
_EFFECT = re.compile(r"[a-z_]+ \S+( \d+(\.\d+)? [A-Z]{3} \S+)?")


@dataclass(frozen=True, slots=True)
class Behind:
    """What a scenario says of the world behind its agent."""

    party: str | None = None
    """Who the caller is, as the app would establish it."""
    deps: str | None = None
    """``module:object`` of what makes the app's own part of each call; called with nothing."""
    provider: ProviderSettings | None = None
    charges: tuple[Charge, ...] = ()
    """What that provider has charged; the demo shop's orders if nothing."""
    timeout_ms: Ms = TIMEOUT_MS
    earlier: Earlier | None = None


@dataclass(frozen=True, slots=True)
class Earlier:
    """A call before the one that is measured, in the same world."""

    caller: tuple[Step, ...]
    gap_ms: Ms
    """From its end to the next one."""
    crash: Crash | None = None
    """Where the process dies in it."""
    party: str | None = None
    """Who calls, if it is somebody else."""


def with_read_provider(behind: Behind, field: Field) -> Behind:
    """The same world with the provider of a scenario. Raises ScenarioError."""
    from callwright.sim.provider import ProviderSettings  # only where needed: it brings an HTTP client

    parts = field.mapping(PROVIDER_KEYS)
    charges = _charges(parts.pop("charges")) if "charges" in parts else ()
    return replace(_with_settings(behind, ProviderSettings(), field, parts), charges=charges)


def with_provider(behind: Behind, typed: str) -> Behind:
    """The same world with another provider, typed as ``sync,KEY=VALUE,...``; what is not named stays as it is.

    Raises ScenarioError for what means nothing, and UsageError where there is no provider to be another one.
    """
    if behind.provider is None:
        raise UsageError("--provider changes a scenario's provider, and this scenario has none: leave it out")
    field = read_typed(typed, "--provider", "answers", _LISTS)
    return _with_settings(behind, behind.provider, field, field.mapping(_HABIT_KEYS))


def _with_settings(behind: Behind, settings: ProviderSettings, field: Field, parts: Mapping[str, Field]) -> Behind:
    """The same world with these settings, and with those of a mapping in their place."""
    given = {name: _reader(name)(part) for name, part in parts.items()}
    timeout_ms = given.pop("timeout_ms", behind.timeout_ms)
    try:
        return replace(behind, provider=replace(settings, **given), timeout_ms=timeout_ms)
    except UsageError as problem:
        raise field.error(str(problem)) from problem


def read_crash(field: Field, gap_ms: Ms) -> Crash:
    """Where a process dies in a call, and when the next one begins: before the call that follows after ``gap_ms``."""
    from callwright.sim.behind.dying import POINTS_IN_A_CALL, Crash

    parts = field.mapping(CRASH_KEYS, ("at",))
    restart_ms = parts["restart_after_ms"].whole(0, gap_ms) if "restart_after_ms" in parts else RESTART_AFTER_MS
    if restart_ms > gap_ms:
        raise field.error(f"expected restart_after_ms of at most {gap_ms}, when the next call comes")
    nth = parts["nth"].whole(1, 1_000) if "nth" in parts else 1
    return Crash(parts["at"].choice(POINTS_IN_A_CALL), nth, restart_ms)


def _reader(name: str) -> Callable[[Field], Any]:
    from callwright.ledger.provider import Idempotency
    from callwright.sim.provider import Answers, Cancel, Destinations

    kinds: Mapping[str, Any] = {
        "answers": Answers,
        "cancel": Cancel,
        "destinations": Destinations,
        "idempotency": Idempotency,
    }
    if name in kinds:
        return lambda field: kinds[name](field.choice([kind.value for kind in kinds[name]]))
    least = 1 if name == "timeout_ms" else 0
    return {"faults": _faults, "late_ms": _span}.get(name, lambda field: field.whole(least, LONGEST_MS))


def _charges(field: Field) -> tuple[Charge, ...]:
    from callwright.sim.provider import Charge

    charges: dict[str, Charge] = {}
    for entry in field.sequence(1):
        try:
            charge = Charge.parse(entry.text())
        except UsageError as problem:
            raise entry.error(str(problem)) from problem
        if charge.id in charges:
            raise entry.error(f"expected a charge of its own for each order; {charge.id} has one already")
        charges[charge.id] = charge
    return tuple(charges.values())


def _span(field: Field) -> tuple[Ms, Ms]:
    ends = [end.whole(0, LONGEST_MS) for end in field.sequence()]
    if len(ends) != 2 or ends[0] > ends[1]:
        raise field.expected("a list of two times, the least and the most")
    return ends[0], ends[1]


def _faults(field: Field) -> Mapping[str, object]:
    from callwright.sim.provider.settings import parse_fault

    faults = {}
    for entry in field.sequence():
        try:
            name, fault = parse_fault(entry.text())
        except UsageError as problem:
            raise entry.error(str(problem)) from problem
        faults[name] = fault
    return faults


def read_effect(field: Field) -> str:
    """An effect as it is expected in the provider's book: kind, subject, and amount and destination if it has them."""
    text = " ".join(field.text().split())
    if not _EFFECT.fullmatch(text):
        raise field.expected('an effect such as "refund order:4417 32.00 USD card:8812" or "cancellation order:5530"')
    return text

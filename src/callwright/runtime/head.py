"""What was fixed before a call, as the head of its trace has it: written there, and read again."""

from __future__ import annotations

from typing import Any, Final, get_type_hints

import msgspec

from callwright.core.plan import CallPlan, Can
from callwright.errors import UsageError

_KINDS: Final = get_type_hints(CallPlan)


def written_plan(plan: CallPlan) -> dict[str, Any]:
    """A plan as plain data: every choice by its name, what has no order sorted."""
    told = {name: getattr(plan, name) for name in _KINDS if name != "can"}
    verbs = [verb.name for verb in plan.can if verb.name]
    return {"can": [name.lower() for name in verbs], **msgspec.to_builtins(told, order="deterministic")}


def read_plan(told: object) -> CallPlan:
    """The plan that was written. Raises UsageError for what is none, or one of a later Callwright."""
    if not isinstance(told, dict):
        raise UsageError("expected the call's plan")
    if unknown := sorted(told.keys() - _KINDS.keys()):
        raise UsageError(f"plan.{unknown[0]} is not known here")
    read: dict[str, Any] = {}
    for name, value in told.items():
        try:
            read[name] = _can(value) if name == "can" else msgspec.convert(value, _KINDS[name])
        except (KeyError, TypeError, msgspec.ValidationError) as problem:
            raise UsageError(f"plan.{name}: {problem}") from problem
    try:
        return CallPlan(**read)
    except TypeError as problem:
        raise UsageError(f"plan: {problem}") from problem


def _can(names: list[str]) -> Can:
    verbs = Can(0)
    for name in names:
        verbs |= Can[name.upper()]
    return verbs

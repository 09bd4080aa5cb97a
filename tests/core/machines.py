"""What the tests of all machines share: the tables, and a copy of a machine's whole state to compare with."""

from __future__ import annotations

import copy
import importlib
import pkgutil
from typing import Any

from callwright import core, ledger
from callwright.core.table import Table


def _found() -> tuple[Table[Any, Any], ...]:
    """Every table that a module of the core or the ledger has, by name."""
    names = [f"{room.__name__}.{each.name}" for room in (core, ledger) for each in pkgutil.iter_modules(room.__path__)]
    values = [value for name in names for value in vars(importlib.import_module(name)).values()]
    tables = {value.name: value for value in values if isinstance(value, Table)}
    return tuple(tables[name] for name in sorted(tables))


TABLES = _found()


def snapshot(machine: object) -> dict[str, Any]:
    """All state of a machine, private attributes included."""
    return copy.deepcopy(vars(machine))


def written_rows(table: Table[Any, Any]) -> list[str]:
    """The rows as text: ``STATE CUE -> STATE``."""
    return [f"{state.name} {cue.name} -> {then.name}" for (state, cue), then in table.rows.items()]


def every_cue(table: Table[Any, Any]) -> list[Any]:
    return list(type(next(cue for _, cue in table.rows)))


def every_state(table: Table[Any, Any]) -> list[Any]:
    return list(type(table.start))

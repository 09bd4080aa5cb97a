"""What the tests of all machines share: the tables, and a copy of a machine's whole state to compare with."""

from __future__ import annotations

import copy
from typing import Any

from callwright.core.consent import CONSENT
from callwright.core.giveup import GIVE_UP
from callwright.core.goodbye import GOODBYE
from callwright.core.handover import HANDOVER
from callwright.core.heard import HEARING
from callwright.core.hold import HOLD
from callwright.core.keeping import KEEPING
from callwright.core.keys import KEYS
from callwright.core.lull import LULL
from callwright.core.notice import NOTICE
from callwright.core.opening import OPENING
from callwright.core.pickup import PICKUP
from callwright.core.playout import PLAYOUT
from callwright.core.table import Table
from callwright.core.told import TOLD
from callwright.core.toolcalls import TOOL_CALLS
from callwright.core.turns import TURNS
from callwright.ledger.operation import OPERATION

CALL = (
    PICKUP,
    HANDOVER,
    OPENING,
    TURNS,
    PLAYOUT,
    HEARING,
    TOOL_CALLS,
    GOODBYE,
    LULL,
    KEYS,
    HOLD,
    GIVE_UP,
    NOTICE,
    KEEPING,
    TOLD,
    CONSENT,
)
TABLES: tuple[Table[Any, Any], ...] = (*CALL, OPERATION)


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

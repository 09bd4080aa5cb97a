"""What is owed to a caller who is gone: an outcome that he did not hear goes to the outbox, until somebody tells it.

```
call      ends, not told ────────────────┐        rings again, hears it
told      deferred                       │        heard
outbox             untold │ confirmed ─ untold ─────── done
```

A call says how far each telling came (``note``). What becomes of the operation afterwards, with nobody on the line, is
owed as well (``changed``); so is what comes back long after it was heard. Of one operation only the latest is owed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from callwright.ledger.operation import State
from callwright.ledger.rows import Operation, Outbox, Told
from callwright.ledger.saying import OUTCOMES, FactChanged, fact_of

if TYPE_CHECKING:
    from callwright.ledger.page import Page

HEARD: Final = "heard"
DEFERRED: Final = "deferred"
"""The states of a telling that mean something here; all others are only kept."""
UNTOLD: Final = "untold"
"""The kind of such an outbox row; its reason is the sentence."""


def note(page: Page, op_id: str, milestone: str, version: int, state: str) -> None:
    """Keep how far the telling of one fact has come."""
    row = Told(op_id, milestone, version, state, page.now_ms)
    if page.tx.get(Told, op_id, milestone, version) is None:
        page.tx.insert(row)
    else:
        page.tx.update(row)
    operation = page.tx.get(Operation, op_id)
    if operation is None:
        return
    if state == HEARD and operation.fact_version == version:
        _settle(page, op_id)
    if state == DEFERRED and not is_told(page, fact_of(operation)):
        _owe(page, operation)


def changed(page: Page, operation: Operation) -> None:
    """Something else may be said of an operation: it is owed if the caller is gone without an answer."""
    told = page.tx.find(Told, op_id=operation.op_id)
    is_left = bool(told) and max(told, key=lambda row: (row.version, row.at_ms)).state == DEFERRED
    if is_left or (told and operation.state is State.REVERSED):
        _owe(page, operation)


def is_told(page: Page, fact: FactChanged) -> bool:
    """Whether a caller heard this very fact, or a person has seen to it that he knows."""
    told = page.tx.get(Told, fact.op_id, fact.milestone, fact.version)
    row = page.tx.get(Outbox, fact.op_id, fact.version)
    is_seen_to = row is not None and row.done_at_ms is not None
    return is_seen_to if told is None or told.state == DEFERRED else told.state == HEARD


def _owe(page: Page, operation: Operation) -> None:
    version = operation.fact_version
    if operation.milestone not in OUTCOMES or page.tx.get(Outbox, operation.op_id, version) is not None:
        return  # nothing to tell yet, or a person has it already
    _settle(page, operation.op_id)
    page.tx.insert(Outbox(operation.op_id, version, UNTOLD, fact_of(operation).sentence, None))


def _settle(page: Page, op_id: str) -> None:
    """Take off what was owed of an operation until now."""
    for row in page.tx.find(Outbox, op_id=op_id, kind=UNTOLD, done_at_ms=None):
        page.tx.update(replace(row, done_at_ms=page.now_ms))

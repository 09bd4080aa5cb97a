"""What is owed outside the calls: an outcome that its caller did not hear, and whatever a person has to see to.

```
call      ends, not told ────────────────┐        rings again, hears it
told      deferred                       │        heard
outbox             untold │ confirmed ─ untold ─────── done
```

A call says how far each telling came (``note``). What becomes of the operation afterwards, with nobody on the line, is
owed as well (``changed``); so is what comes back long after it was heard. Of one operation only the latest is owed.

A process that dies says nothing. So who waits on the line is a row from the wish on (``waits``), and stays one until he
heard how it ended or the call left it: what a dead process had to tell is owed as the next one starts (``leave_all``),
and what another's had to tell once it has been known for long (``leave_late``). Who hears it after all takes it off.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from callwright.ledger.operation import Actor, State
from callwright.ledger.rows import Operation, Outbox, Told, Waiting, read_terms
from callwright.ledger.saying import OUTCOMES, FactChanged, fact_of, what

if TYPE_CHECKING:
    from callwright.ledger.page import Page

HEARD: Final = "heard"
DEFERRED: Final = "deferred"
"""The states of a telling that mean something here; all others are only kept."""
UNTOLD: Final = "untold"
"""The kind of an outbox row for a caller; its reason is the sentence."""
PERSON: Final = "person"
"""The kind of one for a person who has to look; its reason is a short code."""
CONFLICT: Final = "conflict"
"""The kind of one for a person who has to call back: its reason is what was wanted after other terms were settled."""


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
    fact = fact_of(operation)
    if state == DEFERRED or (state == HEARD and fact.version == version and fact.is_settled):
        _hang_up(page, op_id)
    if state == HEARD and fact.version == version:
        _settle(page, op_id)
    if state == DEFERRED and not is_told(page, fact):
        _owe(page, operation)


def waits(page: Page, fact: FactChanged) -> None:
    """A caller waits on the line for what becomes of an operation, unless he was told before."""
    if is_told(page, fact):
        return
    row = Waiting(fact.op_id, page.now_ms, None)
    if page.tx.get(Waiting, fact.op_id) is None:
        page.tx.insert(row)
    else:
        page.tx.update(row)


def leave_all(page: Page) -> None:
    """Leave everything that callers waited for: the calls went with the process that had them."""
    for row in page.tx.find(Waiting, done_at_ms=None):
        _leave(page, page.operation(row.op_id))


def leave_late(page: Page) -> None:
    """Leave the outcomes that no call has told for long: a neighbour's process that had to is dead, or its call is."""
    for row in page.tx.find(Waiting, done_at_ms=None):
        if is_late(page, row):
            _leave(page, page.operation(row.op_id))


def is_late(page: Page, row: Waiting) -> bool:
    """Whether somebody waits on the line for an outcome that has been known for long."""
    operation = page.operation(row.op_id)
    told = page.tx.find(Told, op_id=row.op_id)
    latest_ms = max(row.since_ms, operation.changed_at_ms, *(each.at_ms for each in told))
    return operation.milestone in OUTCOMES and page.now_ms >= latest_ms + page.patience.tell_ms


def conflict(page: Page, operation: Operation, wanted: str, by: Actor) -> Operation:
    """Leave to a person what was wanted after other terms were settled, once for each wish."""
    reason = what(operation.kind, read_terms(wanted))
    if page.tx.find(Outbox, op_id=operation.op_id, kind=CONFLICT, reason=reason, done_at_ms=None):
        return operation
    written = page.note(operation, by, "other terms, too late")
    page.owe(operation.op_id, written.state_version, CONFLICT, reason)
    return written


def changed(page: Page, operation: Operation) -> None:
    """Something else may be said of an operation: it is owed if the caller is gone without an answer."""
    is_known = operation.state is State.REVERSED and page.tx.find(Told, op_id=operation.op_id)
    if is_known or is_left(page, operation.op_id):
        _owe(page, operation)


def is_left(page: Page, op_id: str) -> bool:
    """Whether a call has left it, and nobody has told anything of it since."""
    told = page.tx.find(Told, op_id=op_id)
    return bool(told) and max(told, key=lambda row: (row.version, row.at_ms)).state == DEFERRED


def is_told(page: Page, fact: FactChanged) -> bool:
    """Whether a caller heard this very fact, or a person has seen to it that he knows."""
    told = page.tx.get(Told, fact.op_id, fact.milestone, fact.version)
    rows = page.tx.find(Outbox, op_id=fact.op_id, version=fact.version)
    is_seen_to = bool(rows) and all(row.done_at_ms is not None for row in rows)
    return is_seen_to if told is None or told.state == DEFERRED else told.state == HEARD


def _owe(page: Page, operation: Operation) -> None:
    version = operation.fact_version
    rows = page.tx.find(Outbox, op_id=operation.op_id, version=version)
    if operation.milestone not in OUTCOMES or any(row.kind == UNTOLD for row in rows):
        return  # nothing to tell yet, or somebody has it already
    _settle(page, operation.op_id)
    if not rows:  # a person who looks at it tells it as well
        page.owe(operation.op_id, version, UNTOLD, fact_of(operation).sentence)


def _leave(page: Page, operation: Operation) -> None:
    note(page, operation.op_id, operation.milestone, operation.fact_version, DEFERRED)


def _hang_up(page: Page, op_id: str) -> None:
    """Nobody waits on the line any more."""
    for row in page.tx.find(Waiting, op_id=op_id, done_at_ms=None):
        page.tx.update(replace(row, done_at_ms=page.now_ms))


def _settle(page: Page, op_id: str) -> None:
    """Take off what was owed of an operation until now."""
    for row in page.tx.find(Outbox, op_id=op_id, kind=UNTOLD, done_at_ms=None):
        page.tx.update(replace(row, done_at_ms=page.now_ms))

"""What the ledger holds after a call, as one reads it beside the provider's own book."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from callwright.ledger.provider import Outcome
from callwright.ledger.rows import Evidence, read_terms
from callwright.sim.record import Recorded, effect_text

if TYPE_CHECKING:
    from callwright.ledger.rows import Attempt, Operation, Told
    from callwright.sim.behind.backend import Books

_PLAIN = (Outcome.ACCEPTED, Outcome.APPLIED, Outcome.CANCELLED)
"""What went as it was asked: a reason would be the provider's own word for the same."""


def recorded(books: Books) -> tuple[Recorded, ...]:
    """Each operation with its attempts and with what was told of it, oldest first."""
    evidence = [row for row in books.rows if isinstance(row, Evidence)]
    return tuple(
        Recorded(
            f"{operation.kind} {operation.subject} {operation.slot}",
            operation.state.value,
            tuple(_attempt(operation, row, evidence) for row in books.attempts if row.op_id == operation.op_id),
            tuple(_told(row, books.opened_ms) for row in books.told if row.op_id == operation.op_id),
        )
        for operation in books.operations
    )


def _attempt(operation: Operation, row: Attempt, evidence: Iterable[Evidence]) -> tuple[str, str]:
    terms = read_terms(row.terms_json)
    minor, currency = (terms.amount.minor, terms.amount.currency) if terms.amount else (None, "")
    what = effect_text(operation.kind, terms.subject, minor, currency, terms.card.token if terms.card else "")
    if row.outcome is None:
        return what, "no answer"
    if row.outcome in _PLAIN:
        return what, row.outcome.value
    seen = [each for each in evidence if (each.op_id, each.n, each.outcome) == (row.op_id, row.n, row.outcome)]
    reason = max(seen, key=lambda each: each.received_at_ms).reason if seen else ""
    return what, f"{row.outcome.value} ({reason})" if reason else row.outcome.value


def _told(row: Told, opened_ms: int) -> tuple[str, str, int]:
    return row.milestone, row.state, row.at_ms - opened_ms

"""What the ledger holds after a call, as one reads it beside the provider's own book."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callwright.ledger.rows import read_terms
from callwright.sim.record import Recorded, effect_text

if TYPE_CHECKING:
    from callwright.ledger.rows import Attempt, Operation, Told
    from callwright.sim.backend import Books


def recorded(books: Books) -> tuple[Recorded, ...]:
    """Each operation with its attempts and with what was told of it, oldest first."""
    return tuple(
        Recorded(
            f"{operation.kind} {operation.subject} {operation.slot}",
            operation.state.value,
            tuple(_attempt(operation, row) for row in books.attempts if row.op_id == operation.op_id),
            tuple(_told(row, books.opened_ms) for row in books.told if row.op_id == operation.op_id),
        )
        for operation in books.operations
    )


def _attempt(operation: Operation, row: Attempt) -> tuple[str, str]:
    terms = read_terms(row.terms_json)
    minor, currency = (terms.amount.minor, terms.amount.currency) if terms.amount else (None, "")
    what = effect_text(operation.kind, terms.subject, minor, currency, terms.card.token if terms.card else "")
    return what, row.outcome.value if row.outcome else "no answer"


def _told(row: Told, opened_ms: int) -> tuple[str, str, int]:
    return row.milestone, row.state, row.at_ms - opened_ms

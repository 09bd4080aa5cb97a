"""Rows to begin with, and terms that come from the demo."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from callwright.declare.actions import Authority, Card, Money, Terms
from callwright.ledger.operation import State
from callwright.ledger.rows import (
    Operation,
    operation_id,
    params_hash,
    write_terms,
)

VISA = Card("tok_visa", "Visa", "4242")
MASTERCARD = Card("tok_mc", "Mastercard", "8812")
SKILLET = Money(3200, "USD")
TERMS = Terms("order:4417", SKILLET, VISA)
OP_ID = operation_id("refund", "order:4417", "full")


def operation(**changes: Any) -> Operation:
    written = write_terms(TERMS)
    row = Operation(
        op_id=OP_ID, kind="refund", subject="order:4417", slot="full", party="customer:81", provider="payments",
        authority=Authority.AUTOMATIC, must_hear="amount,card", rev=1, terms_json=written,
        params_hash=params_hash("refund", "full", written), state=State.REQUESTED, state_version=1,
        milestone="requested", fact_version=1,
        amend_json=None, escalated="", changed_at_ms=0,
    )  # fmt: skip
    return replace(row, **changes)

"""Rows to begin with, and terms that come from the demo."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from callwright.declare.actions import Authority, Card, Money, Terms
from callwright.ledger.operation import Actor, State, Step
from callwright.ledger.provider import Outcome
from callwright.ledger.rows import (
    Attempt,
    Authorization,
    Event,
    Evidence,
    Operation,
    Outbox,
    Row,
    Told,
    Waiting,
    operation_id,
    params_hash,
    provider_key,
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


def attempt(**changes: Any) -> Attempt:
    n = changes.get("n", 1)
    written = write_terms(TERMS)
    row = Attempt(
        op_id=OP_ID, n=n, rev=1, provider_key=provider_key(changes.get("op_id", OP_ID), 1, n),
        params_hash=params_hash("refund", "full", written), terms_json=written, sends=1, opened_at_ms=0, sent_at_ms=0,
        asked_at_ms=0, outcome=None, reference=None,
    )  # fmt: skip
    return replace(row, **changes)


def one_of_each() -> list[Row]:
    return [
        operation(),
        attempt(outcome=Outcome.ACCEPTED, reference="re_1"),
        Evidence("e1", OP_ID, 1, Actor.ADAPTER, Outcome.ACCEPTED, "re_1", None, "", 5),
        Authorization(OP_ID, 1, 1, "hash", Actor.POLICY, 1000, None),
        Told(OP_ID, "confirmed", 3, "owed", 7),
        Waiting(OP_ID, 3, None),
        Outbox(OP_ID, 4, "person", "mismatch", None),
        Event(OP_ID, 1, Step.AUTHORIZE, None, State.REQUESTED, Actor.POLICY, "ask", 2),
        Event(OP_ID, 2, None, State.REQUESTED, State.REQUESTED, Actor.CALLER, "amend", 2),
    ]

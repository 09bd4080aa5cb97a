"""A page to write on without a loop: one store, one provider, and the time as an argument."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.ledger.rows import TERMS

from callwright.ledger import audit
from callwright.ledger.asking import Ask
from callwright.ledger.folding import fold
from callwright.ledger.operation import Actor
from callwright.ledger.page import Page, Patience
from callwright.ledger.provider import Idempotency, Observed, OnAmbiguous, Outcome, Traits
from callwright.ledger.rows import Operation
from callwright.ledger.sending import Act, Next, advance
from callwright.ledger.store import MemoryStore

TRAITS = Traits(
    Idempotency.REPLAY,
    OnAmbiguous.PROBE,
    window_ms=86_400_000,
    margin_ms=60_000,
    absence_wait_ms=30_000,
    request_max_ms=20_000,
    cancels=(Outcome.ACCEPTED,),
    destination_change=True,
)


class Desk:
    """Writes one page after another."""

    def __init__(self, **traits: Any) -> None:
        self.store = MemoryStore()
        self.traits = replace(TRAITS, **traits)
        self.now_ms = 0

    def do(self, write, *args, **options):
        with self.store.transaction() as tx:
            return write(Page(tx, self.now_ms, {"payments": self.traits}, Patience()), *args, **options)

    def next(self, op_id: str, at_ms: int | None = None) -> Next:
        """What is to be done at an instant; time goes on to it."""
        self.now_ms = self.now_ms if at_ms is None else at_ms
        return self.do(advance, op_id)

    def see(
        self,
        op_id: str,
        outcome: Outcome,
        source: Actor = Actor.ADAPTER,
        *,
        n: int = 1,
        state_version: int | None = None,
        **more: Any,
    ) -> Operation:
        operation = self.do(fold, op_id, n, Observed(outcome, **more), source, state_version=state_version)
        assert self.do(audit.problems) == ()
        return operation

    def sent(self, op_id: str) -> Next:
        upcoming = self.next(op_id)
        assert upcoming.act is Act.SEND
        return upcoming


def ask(**changes: Any) -> Ask:
    terms = replace(
        TERMS, **{name: changes.pop(name) for name in ("subject", "amount", "card", "cap") if name in changes}
    )
    return replace(Ask("refund", "full", "customer:81", "payments", terms), **changes)

"""Ways to get it wrong that are in use out there, each as a change of one policy for the length of a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from callwright.ledger import asking, folding, sending
from callwright.ledger.operation import Actor, State, Step
from callwright.ledger.page import Page
from callwright.ledger.provider import Observed, Outcome
from callwright.ledger.rows import Attempt, Operation, provider_key
from callwright.providers.payments import Payments
from callwright.sim import schedules
from callwright.sim.behind.dying import Life, MortalStore

Patch = pytest.MonkeyPatch


def errors_are_failures(patch: Patch) -> None:
    """A timeout, a reset and a 5xx count as "it did not go through"."""
    _reinterpret(patch, "send", {Outcome.UNKNOWN: Outcome.NOT_APPLIED})


def a_cancel_without_answer_took_hold(patch: Patch) -> None:
    _reinterpret(patch, "cancel", {Outcome.UNKNOWN: Outcome.CANCELLED})


def an_empty_look_up_is_proof(patch: Patch) -> None:
    _reinterpret(patch, "look_up", {Outcome.ABSENT: Outcome.NOT_APPLIED})


def _reinterpret(patch: Patch, verb: str, readings: dict[Outcome, Outcome]) -> None:
    real = getattr(Payments, verb)

    async def misread(self: Payments, dispatch: Any) -> Observed:
        seen: Observed = await real(self, dispatch)
        return replace(seen, outcome=readings.get(seen.outcome, seen.outcome))

    patch.setattr(Payments, verb, misread)


def a_new_key_after_an_empty_look_up(patch: Patch) -> None:
    def with_a_new_key(page: Page, operation: Operation, attempt: Attempt) -> sending.Next:
        page.tx.update(replace(attempt, outcome=Outcome.NOT_APPLIED))
        n = attempt.n + 1
        key = provider_key(operation.op_id, operation.rev, n)
        fresh = replace(attempt, n=n, provider_key=key, sent_at_ms=page.now_ms, opened_at_ms=page.now_ms, outcome=None)
        page.tx.insert(fresh)
        page.step(operation, Step.DISPATCH, Actor.DISPATCHER, "a new key")
        return sending._act(sending.Act.SEND, operation, fresh)

    patch.setattr(sending, "_repeat", with_a_new_key)


def one_key_for_all_revisions(patch: Patch) -> None:
    patch.setattr(sending, "provider_key", lambda op_id, rev, n: provider_key(op_id, 1, 1))


def what_was_under_way_is_sent_anew_after_a_restart(patch: Patch) -> None:
    """A lease that ran out counts as leave to run it again."""

    def rerun(page: Page) -> list[str]:
        for operation in page.tx.find(Operation, state=State.RUNNING):
            attempt = page.attempts(operation.op_id)[-1]
            page.tx.update(replace(attempt, outcome=Outcome.NOT_SENT))
            page.step(operation, Step.NOT_SENT, Actor.ADAPTER, "lease ran out")
        return _real_recover(page)

    patch.setattr(sending, "recover", rerun)


_real_recover = sending.recover


def keys_never_expire(patch: Patch) -> None:
    patch.setattr(sending, "_window_ends_ms", lambda attempt, traits: 1 << 62)


def a_doubt_is_closed_by_time(patch: Patch) -> None:
    def close(page: Page, operation: Operation, actor: Actor, reason: str) -> Operation:
        if operation.state is not State.UNKNOWN:
            return operation
        return page.step(operation, Step.REJECT, Actor.HUMAN, "swept")

    patch.setattr(Page, "escalate", close)


def a_refusal_of_a_repeat_is_believed(patch: Patch) -> None:
    patch.setattr(folding, "_weighed", lambda page, operation, attempt, observed, source: observed)


def a_change_is_sent_beside_the_first(patch: Patch) -> None:
    def beside(page: Page, operation: Operation, wanted: str, ask: asking.Ask) -> asking.Answer:
        attempt = page.attempts(operation.op_id)[-1]
        if attempt.is_unresolved:
            page.tx.update(replace(attempt, outcome=Outcome.NOT_APPLIED))
        for step in {State.RUNNING: (Step.ACCEPT, Step.CANCEL), State.UNKNOWN: (Step.ACCEPT, Step.CANCEL)}.get(
            operation.state, (Step.CANCEL,)
        ):
            operation = page.step(operation, step, Actor.HUMAN)
        return asking._revised(page, operation, wanted, ask)

    for state in (State.RUNNING, State.UNKNOWN, State.ACCEPTED):
        patch.setitem(asking._OTHER, state, beside)


def no_cap(patch: Patch) -> None:
    patch.setattr(Page, "fits_cap", lambda page, operation: True)


def nobody_takes_over(patch: Patch) -> None:
    patch.setattr(sending, "recover", lambda page: [])
    patch.setattr(sending, "left", lambda page, tended: [])


def commits_are_not_synced(patch: Patch) -> None:
    """The last commit before a death is gone, as with ``synchronous=NORMAL`` and the power."""

    class Unsynced(MortalStore):
        def __init__(self, store: Any, life: Life) -> None:
            super().__init__(store, life)
            die = life.died.set

            def lose() -> None:
                die()
                store._tables.update({table: dict(rows) for table, rows in self.before.items()})

            life.died.set = lose  # type: ignore[method-assign]
            self.before = {table: dict(rows) for table, rows in store._tables.items()}

        def transaction(self) -> Any:
            self.before = {table: dict(rows) for table, rows in self._store._tables.items()}  # type: ignore[attr-defined]
            return super().transaction()

    patch.setattr(schedules, "MortalStore", Unsynced)


def what_came_last_counts(patch: Patch) -> None:
    """Evidence is believed in the order of its arrival."""
    real = folding.join
    patch.setattr(folding, "join", lambda evidence: real(list(evidence)[-1:]))


MUTANTS: tuple[Callable[[Patch], None], ...] = (
    errors_are_failures,
    a_cancel_without_answer_took_hold,
    an_empty_look_up_is_proof,
    a_new_key_after_an_empty_look_up,
    one_key_for_all_revisions,
    what_was_under_way_is_sent_anew_after_a_restart,
    keys_never_expire,
    a_doubt_is_closed_by_time,
    a_refusal_of_a_repeat_is_believed,
    a_change_is_sent_beside_the_first,
    no_cap,
    nobody_takes_over,
    commits_are_not_synced,
)
"""Those that break something at the stand-in; ``what_came_last_counts`` does not: it shows nothing backwards."""

"""Any order of wishes, consents, observations, deaths and waiting leaves a record that agrees with itself."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.ledger.pages import Desk, ask
from tests.ledger.rows import MASTERCARD, VISA

from callwright.declare.actions import Authority, Money
from callwright.ledger import audit
from callwright.ledger.asking import Verdict, authorize, propose, withdraw
from callwright.ledger.folding import fold
from callwright.ledger.operation import SETTLED, Actor, State
from callwright.ledger.provider import Idempotency, Observed, OnAmbiguous, Outcome
from callwright.ledger.rows import Attempt, Operation
from callwright.ledger.sending import Act, Next, recover

SLOTS = ("line:1", "line:2")
CAP = Money(5000, "USD")

modes = st.sampled_from(list(Idempotency))
outcomes = st.sampled_from(list(Outcome))
slots = st.sampled_from(SLOTS)


class AnyOrder(RuleBasedStateMachine):
    """Two operations that share a cap; what an adapter says is anything at all."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk()
        self.sent: dict[str, list[int]] = {}
        self.doubted: dict[str, Operation] = {}

    @rule(mode=modes, quarantined=st.booleans())
    def provider_is(self, mode: Idempotency, quarantined: bool) -> None:
        if not self.sent:
            policy = OnAmbiguous.QUARANTINE if quarantined else OnAmbiguous.PROBE
            self.desk = Desk(idempotency=mode, on_ambiguous=policy)

    @rule(slot=slots, card=st.sampled_from([VISA, MASTERCARD]), authority=st.sampled_from(list(Authority)))
    def wish(self, slot: str, card, authority: Authority) -> None:
        answer = self.desk.do(propose, ask(slot=slot, card=card, authority=authority, cap=CAP))
        assert (answer.fact is None) == (answer.reason == "over_cap" and not self.exists(answer.op_id))

    @rule(slot=slots, by=st.sampled_from([Actor.CALLER, Actor.HUMAN]), is_stale=st.booleans())
    def consent(self, slot: str, by: Actor, is_stale: bool) -> None:
        for operation in self.operations(slot):
            rev = operation.rev - is_stale
            answer = self.desk.do(authorize, operation.op_id, rev, operation.params_hash, by)
            assert not is_stale or answer.verdict is Verdict.CONFLICT

    @rule(slot=slots)
    def never_mind(self, slot: str) -> None:
        for operation in self.operations(slot):
            self.desk.do(withdraw, operation.op_id, "customer:81", Actor.CALLER)

    @rule(slot=slots, outcome=outcomes, version=st.none() | st.integers(1, 4))
    def dispatcher_turns(self, slot: str, outcome: Outcome, version: int | None) -> None:
        for operation in self.operations(slot):
            upcoming = self.desk.next(operation.op_id)
            if upcoming.act in (Act.SEND, Act.LOOK_UP, Act.CANCEL):
                self.carry_out(upcoming, Observed(outcome, version=version))

    def carry_out(self, upcoming: Next, observed: Observed) -> None:
        dispatch = upcoming.dispatch
        if upcoming.act is Act.SEND:
            self.sent.setdefault(dispatch.key, []).append(self.desk.now_ms)
            if observed.outcome is Outcome.STILL_OPEN:
                return  # and the process dies before it can say so
        source = Actor.ADAPTER if upcoming.act is Act.SEND else Actor.RECONCILER
        self.desk.do(fold, dispatch.op_id, dispatch.n, observed, source)

    @rule(slot=slots, outcome=outcomes, version=st.none() | st.integers(1, 4))
    def message(self, slot: str, outcome: Outcome, version: int | None) -> None:
        for operation in self.operations(slot):
            for attempt in self.desk.do(lambda page, op_id=operation.op_id: page.attempts(op_id)):
                self.desk.do(fold, attempt.op_id, attempt.n, Observed(outcome, version=version), Actor.WEBHOOK)

    @rule()
    def process_starts(self) -> None:
        self.desk.do(recover)

    @rule(ms=st.sampled_from([1, 1_000, 40_000, 700_000, 90_000_000]))
    def time_passes(self, ms: int) -> None:
        self.desk.now_ms += ms

    def operations(self, slot: str) -> list[Operation]:
        return self.desk.do(lambda page: page.tx.find(Operation, slot=slot))

    def exists(self, op_id: str) -> bool:
        return bool(self.desk.do(lambda page: page.tx.get(Operation, op_id)))

    @invariant()
    def the_record_agrees_with_itself(self) -> None:
        over = "its subject is over its cap (I1)"  # evidence of what was called failed may come to that
        found = [problem for problem in self.desk.do(audit.problems) if over not in problem]
        assert found == []

    @invariant()
    def a_key_is_sent_inside_its_window_and_again_only_where_it_protects(self) -> None:
        traits = self.desk.traits
        for times in self.sent.values():
            assert times[-1] - times[0] < traits.window_ms - traits.margin_ms
            may_repeat = traits.idempotency.protects and traits.on_ambiguous is OnAmbiguous.PROBE
            assert len(times) == 1 or may_repeat

    @invariant()
    def an_attempt_in_doubt_is_its_operations_last(self) -> None:
        for operation in self.desk.do(lambda page: page.tx.find(Operation)):
            attempts: list[Attempt] = self.desk.do(lambda page, op_id=operation.op_id: page.attempts(op_id))
            assert not any(attempt.is_unresolved for attempt in attempts[:-1])
            if operation.state in (State.RUNNING, State.UNKNOWN):
                assert attempts[-1].is_unresolved
            if operation.state in SETTLED and attempts and operation.state is not State.CANCELLED:
                assert not attempts[-1].is_unresolved


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=40)

"""What is sent, sent again, looked up or left to a person is decided by the provider's promises and by nothing else."""

from __future__ import annotations

import pytest
from tests.ledger.pages import TRAITS, Desk, ask
from tests.ledger.rows import MASTERCARD

from callwright.ledger.asking import propose
from callwright.ledger.operation import Actor, State
from callwright.ledger.page import Patience
from callwright.ledger.provider import Idempotency, OnAmbiguous, Outcome, Traits
from callwright.ledger.rows import Attempt, Authorization
from callwright.ledger.sending import Act, left, look_up, recover

WINDOW_CLOSES = TRAITS.window_ms - TRAITS.margin_ms


def in_doubt(**traits) -> tuple[Desk, str]:
    desk = Desk(**traits)
    op_id = desk.do(propose, ask()).op_id
    desk.sent(op_id)
    desk.see(op_id, Outcome.UNKNOWN)
    return desk, op_id


def acts_until(desk: Desk, op_id: str, end_ms: int, seen: Outcome = Outcome.ABSENT) -> list[tuple[Act, int]]:
    """What is done at which instant, when every look-up sees the same, and nothing comes of any send."""
    done = []
    while desk.now_ms < end_ms:
        upcoming = desk.next(op_id)
        if upcoming.act is Act.REST:
            break
        if upcoming.act is Act.WAIT:
            desk.now_ms = max(upcoming.at_ms, desk.now_ms + 1)
            continue
        done.append((upcoming.act, desk.now_ms))
        desk.now_ms += 10
        is_send = upcoming.act is Act.SEND
        desk.see(op_id, Outcome.UNKNOWN if is_send else seen, Actor.ADAPTER if is_send else Actor.RECONCILER)
    return done


def sends(done: list[tuple[Act, int]]) -> list[int]:
    return [at_ms for act, at_ms in done if act is Act.SEND]


def escalated(desk: Desk, op_id: str) -> str:
    return desk.do(lambda page: page.operation(op_id)).escalated


def test_what_has_been_due_for_long_is_left_and_looking_writes_nothing():
    """Requested by a process that is gone: whoever looks finds it half a minute later, and finds it again."""
    desk = Desk()
    op_id = desk.do(propose, ask()).op_id
    desk.now_ms = 29_999
    assert desk.do(left, ()) == []
    desk.now_ms = 30_000
    assert desk.do(left, ()) == desk.do(left, ()) == [op_id]
    assert desk.do(left, (op_id,)) == []
    assert desk.do(lambda page: page.operation(op_id)).state is State.REQUESTED
    assert desk.do(lambda page: page.attempts(op_id)) == []


def test_i8_a_send_leaves_within_a_requests_life_and_a_repeat_inside_its_window_too():
    """What leaves later could finish, at a provider that resumes, what was seen to fail and was done anew since."""
    desk = Desk(idempotency=Idempotency.RESUME, absence_wait_ms=0)
    op_id = desk.do(propose, ask()).op_id
    assert desk.sent(op_id).at_ms == desk.traits.request_max_ms
    desk.see(op_id, Outcome.UNKNOWN)
    desk.now_ms = WINDOW_CLOSES - 5
    desk.see(op_id, Outcome.ABSENT, Actor.RECONCILER)
    assert desk.sent(op_id).at_ms == WINDOW_CLOSES


def test_a_sender_is_given_its_time_before_another_takes_over():
    desk = Desk()
    op_id = desk.do(propose, ask()).op_id
    desk.sent(op_id)
    silent_ms = 2 * desk.traits.request_max_ms + 500
    for now_ms, found in ((silent_ms + 29_999, []), (silent_ms + 30_000, [op_id])):
        desk.now_ms = now_ms
        assert desk.do(left, ()) == found


def test_i2_the_attempt_is_stored_with_the_decision_to_send():
    desk = Desk()
    op_id = desk.do(propose, ask()).op_id
    dispatch = desk.sent(op_id).dispatch
    (attempt,) = desk.do(lambda page: page.tx.find(Attempt))
    assert (attempt.provider_key, attempt.params_hash, attempt.sends) == (dispatch.key, dispatch.params_hash, 1)
    (leave,) = desk.do(lambda page: page.tx.find(Authorization))
    assert leave.consumed_n == 1
    assert desk.next(op_id).act is Act.WAIT  # and not a second send


def test_a_doubt_is_looked_up_before_anything_is_sent_again():
    desk, op_id = in_doubt()
    done = acts_until(desk, op_id, 60_000)
    assert done[0] == (Act.LOOK_UP, 0)
    assert sends(done)[0] >= TRAITS.absence_wait_ms
    assert len({attempt.provider_key for attempt in desk.do(lambda page: page.tx.find(Attempt))}) == 1


def test_an_empty_look_up_counts_only_long_enough_after_the_send():
    desk, op_id = in_doubt(absence_wait_ms=300_000)
    assert min(sends(acts_until(desk, op_id, 1_000_000))) >= 300_000


def test_i4_no_key_is_sent_after_its_window_less_the_margin():
    desk, op_id = in_doubt()
    desk.now_ms = WINDOW_CLOSES
    assert sends(acts_until(desk, op_id, WINDOW_CLOSES + 3_600_000)) == []
    assert escalated(desk, op_id) == "unknown"
    desk, op_id = in_doubt()
    desk.now_ms = WINDOW_CLOSES - 1_000
    assert sends(acts_until(desk, op_id, WINDOW_CLOSES + 3_600_000)) == [WINDOW_CLOSES - 990]


@pytest.mark.parametrize("mode", [Idempotency.SUCCESS_ONLY, Idempotency.NONE])
def test_a_key_that_does_not_protect_is_never_sent_again(mode):
    desk, op_id = in_doubt(idempotency=mode)
    assert sends(acts_until(desk, op_id, 3_600_000)) == []
    assert escalated(desk, op_id) == "unknown"


def test_quarantine_looks_up_and_never_sends_again():
    desk, op_id = in_doubt(on_ambiguous=OnAmbiguous.QUARANTINE)
    done = acts_until(desk, op_id, 3_600_000)
    assert sends(done) == []
    assert len(done) > 5
    assert escalated(desk, op_id) == "unknown"


def test_same_key_sends_again_without_a_look_up_a_bounded_number_of_times():
    desk, op_id = in_doubt(on_ambiguous=OnAmbiguous.SAME_KEY)
    done = acts_until(desk, op_id, 3_600_000)
    assert [act for act, _ in done[:3]] == [Act.SEND] * 3
    assert len(sends(done)) + 1 == Patience().sends_max
    assert escalated(desk, op_id) == "unknown"


def test_i22_a_doubt_that_nothing_settles_is_a_persons_in_time_and_is_looked_up_all_the_same():
    desk, op_id = in_doubt()
    done = acts_until(desk, op_id, 86_400_000, seen=Outcome.UNKNOWN)
    assert escalated(desk, op_id) == "unknown"
    assert sends(done) == []
    assert done[-1][1] > 40_000_000
    assert len(done) < 60


def test_i23_a_sender_that_is_silent_for_too_long_is_gone():
    desk = Desk()
    op_id = desk.do(propose, ask()).op_id
    desk.sent(op_id)
    waits = desk.next(op_id)
    assert waits.at_ms > 2 * TRAITS.request_max_ms
    assert desk.next(op_id, waits.at_ms).act is Act.LOOK_UP


def test_recovery_leaves_a_doubt_where_something_was_under_way_and_sends_nothing():
    desk = Desk()
    running = desk.do(propose, ask()).op_id
    desk.sent(running)
    requested = desk.do(propose, ask(slot="line:2")).op_id
    assert desk.do(recover) == [running, requested]
    assert desk.do(lambda page: page.operation(running)).state is State.UNKNOWN
    assert desk.next(running).act is Act.LOOK_UP
    assert desk.next(requested).act is Act.SEND


def test_i9_recovery_closes_no_doubt_however_old():
    desk, op_id = in_doubt()
    for _ in range(5):
        desk.now_ms += 30 * 86_400_000
        desk.do(recover)
        assert desk.next(op_id).act is Act.LOOK_UP
        assert desk.see(op_id, Outcome.ABSENT, Actor.RECONCILER).state is State.UNKNOWN


def test_f1_what_provably_did_not_leave_is_tried_again_with_another_key_and_then_failed():
    desk = Desk()
    op_id = desk.do(propose, ask()).op_id
    keys = []
    for n in range(1, Patience().tries_max + 1):
        upcoming = desk.next(op_id)
        if upcoming.act is Act.WAIT:
            upcoming = desk.next(op_id, upcoming.at_ms)
        keys.append(upcoming.dispatch.key)
        operation = desk.see(op_id, Outcome.NOT_SENT, n=n)
    assert operation.state is State.FAILED
    assert len(set(keys)) == Patience().tries_max


def test_a_change_of_something_accepted_is_a_cancel_first_and_a_send_once_that_took_hold():
    desk = Desk()
    op_id = desk.do(propose, ask()).op_id
    desk.sent(op_id)
    desk.see(op_id, Outcome.ACCEPTED, reference="re_1")
    desk.now_ms = 100
    desk.do(propose, ask(card=MASTERCARD))
    assert desk.next(op_id).act is Act.CANCEL
    desk.now_ms = 200
    desk.see(op_id, Outcome.UNKNOWN, Actor.RECONCILER)
    assert desk.next(op_id).act is Act.WAIT
    assert desk.next(op_id, 700).act is Act.CANCEL
    desk.see(op_id, Outcome.CANCELLED, Actor.RECONCILER, reference="re_1")
    upcoming = desk.sent(op_id)
    assert (upcoming.dispatch.rev, upcoming.dispatch.n, upcoming.dispatch.terms.card) == (2, 2, MASTERCARD)


def test_a_look_up_that_left_before_a_change_was_asked_for_does_not_put_off_its_cancel():
    """The provider may be about to settle: the answer to an older question takes nothing of the time that is left."""
    desk = Desk()
    op_id = desk.do(propose, ask()).op_id
    desk.sent(op_id)
    desk.see(op_id, Outcome.ACCEPTED, reference="re_1")
    earlier = desk.next(op_id, 500)
    assert earlier.act is Act.LOOK_UP
    desk.do(propose, ask(card=MASTERCARD))
    desk.now_ms = 550
    desk.see(op_id, Outcome.ACCEPTED, Actor.RECONCILER, state_version=earlier.state_version, reference="re_1")
    cancel = desk.next(op_id)
    assert cancel.act is Act.CANCEL
    desk.now_ms = 600
    desk.see(op_id, Outcome.UNKNOWN, Actor.RECONCILER, state_version=cancel.state_version)
    assert (desk.next(op_id).act, desk.next(op_id).at_ms) == (Act.WAIT, 1_100)


def test_f13_what_is_pending_for_days_is_a_persons():
    desk = Desk()
    op_id = desk.do(propose, ask()).op_id
    desk.sent(op_id)
    desk.see(op_id, Outcome.ACCEPTED)
    acts_until(desk, op_id, 4 * 86_400_000, seen=Outcome.ACCEPTED)
    assert escalated(desk, op_id) == "pending_too_long"


def test_what_is_confirmed_is_watched_for_days_and_then_rests():
    desk = Desk()
    op_id = desk.do(propose, ask()).op_id
    desk.sent(op_id)
    desk.see(op_id, Outcome.APPLIED)
    done = acts_until(desk, op_id, 10 * 86_400_000, seen=Outcome.APPLIED)
    assert 5 < len(done) < 30
    assert desk.next(op_id).act is Act.REST


def test_nothing_is_looked_up_that_was_never_sent():
    desk = Desk()
    assert desk.do(look_up, desk.do(propose, ask()).op_id).act is Act.REST


@pytest.mark.parametrize(
    "wrong",
    [
        {"margin_ms": 1_000},
        {"idempotency": Idempotency.NONE, "on_ambiguous": OnAmbiguous.SAME_KEY},
        {"window_ms": -1},
    ],
)
def test_promises_that_contradict_each_other_are_refused(wrong):
    given = {name: getattr(TRAITS, name) for name in Traits.__dataclass_fields__}
    with pytest.raises(ValueError, match=r"margin_ms|protect|negative"):
        Traits(**{**given, **wrong})

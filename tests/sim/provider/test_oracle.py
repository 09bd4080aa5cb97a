"""Rules of the oracle: it finds nothing in what is right, and names what is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sim.provider import clients
from tests.sim.provider.clients import Policy, careful, judged
from tests.sim.provider.driving import HOUR, MASTERCARD, ORDER, VISA

from callwright.ledger.provider import Idempotency, Money
from callwright.sim.provider import Fault, ProviderSettings
from callwright.sim.provider.book import Ask, Book, Charge, Cue
from callwright.sim.provider.oracle import (
    Attempt,
    Claim,
    Grant,
    Record,
    check,
    duplicate_effects,
    effects,
    effects_per_thing,
    live_effects,
    missing_effects,
    money,
)
from callwright.sim.provider.settings import FAULTS

USD = Money(3200, "USD")
SHOP = (Charge(ORDER, USD, (VISA, MASTERCARD)),)
TRAITS = ProviderSettings().traits
FULL = Ask(ORDER, USD, VISA, "op1")
GRANT = Grant(0, "op1", ORDER, "full", USD, VISA)
CONFIRMED = Claim("op1", ORDER, "full", "confirmed", USD, VISA, "re_1")
RECORD = Record((GRANT,), (Attempt("K", 5),), (CONFIRMED,))

FAULTY = ProviderSettings(faults={name: Fault(0.15) for name in FAULTS if name != "already-refunded"})
SEEDS = range(40)


def book(*steps: tuple[object, ...]) -> Book:
    """A book of these steps: ``(at_ms, "sent" or "open", key, ask)`` or ``(at_ms, refund id, cue)``."""
    filled = Book(SHOP)
    for step in steps:
        match step:
            case int(at_ms), "sent", str(key), Ask() as ask:
                filled.note_sent(key, ask, at_ms)
            case int(at_ms), "open", str(key), Ask() as ask:
                filled.open(ask, key, at_ms)
            case int(at_ms), str(refund_id), Cue() as cue:
                filled.change(refund_id, cue, at_ms)
            case _:
                raise AssertionError(step)
    filled.advance(1_000 * HOUR)
    return filled


GOOD = ((10, "sent", "K", FULL), (11, "open", "K", FULL), (4_010, "re_1", Cue.SETTLE))


def names(filled: Book, record: Record = RECORD, *, healed: bool = True) -> list[str]:
    return sorted({violation.invariant for violation in check(filled, record, TRAITS, healed=healed)})


def claiming(state: str, **changes: object) -> Record:
    return replace(RECORD, claims=(replace(CONFIRMED, state=state, **changes),))


def test_what_is_right_is_left_alone():
    assert names(book(*GOOD)) == []
    assert names(book(*GOOD[:2]), claiming("accepted")) == []
    assert names(book(*GOOD[:1]), claiming("failed", reference=None)) == []
    assert names(book(*GOOD[:2], (20, "re_1", Cue.FAIL)), claiming("failed")) == []
    assert names(book(*GOOD[:2], (20, "re_1", Cue.CANCEL)), claiming("cancelled")) == []
    assert names(book(*GOOD, (5_000, "re_1", Cue.REVERSE)), claiming("reversed")) == []
    assert names(book(*GOOD[:1]), claiming("unknown", reference=None, escalated=True)) == []
    assert names(book(), Record(grants=(GRANT,), claims=(replace(CONFIRMED, state="cancelled", reference=None),))) == []


def test_a_changed_card_is_right_when_the_first_refund_was_cancelled():
    to_mastercard = replace(FULL, card=MASTERCARD)
    filled = book(
        *GOOD[:2],
        (1_000, "re_1", Cue.CANCEL),
        (1_100, "sent", "L", to_mastercard),
        (1_101, "open", "L", to_mastercard),
        (5_000, "re_2", Cue.SETTLE),
    )
    record = Record(
        (GRANT, replace(GRANT, at_ms=1_050, card=MASTERCARD)),
        (Attempt("K", 5), Attempt("L", 1_060)),
        (replace(CONFIRMED, card=MASTERCARD, reference="re_2"),),
    )
    assert names(filled, record) == []
    assert [str(effect) for effect in live_effects(filled)] == ["refund order:4417 32.00 USD card:8812"]
    assert names(filled, replace(record, grants=(record.grants[0], replace(record.grants[1], at_ms=0)))) == []
    late = replace(record, grants=(GRANT, replace(GRANT, at_ms=1_050, card=MASTERCARD), replace(GRANT, at_ms=1_070)))
    assert names(filled, late) == ["I10"]


def test_a_second_refund_of_one_thing_is_a_duplicate_even_if_it_comes_back():
    twice = book(*GOOD, (6_000, "sent", "L", FULL), (6_001, "open", "L", FULL), (7_000, "re_2", Cue.CANCEL))
    record = replace(RECORD, attempts=(*RECORD.attempts, Attempt("L", 5)))
    assert names(twice, record) == ["I1", "I3"]
    assert duplicate_effects(twice) == 1
    again = book(*GOOD, (5_000, "re_1", Cue.REVERSE), (6_000, "sent", "L", FULL), (6_001, "open", "L", FULL))
    assert duplicate_effects(again) == 0


def test_partial_refunds_are_bounded_by_what_was_captured():
    parts = [Ask(ORDER, Money(2000, "USD"), VISA, f"op{n}", f"line:{n}") for n in (1, 2)]
    filled = book(*[(n, step, f"K{n}", part) for n, part in enumerate(parts) for step in ("sent", "open")])
    record = Record(
        tuple(replace(GRANT, op=part.op, slot=part.slot, amount=part.amount) for part in parts),
        (Attempt("K0", 0), Attempt("K1", 0)),
    )
    assert names(filled, record) == ["I1"]
    assert duplicate_effects(filled) == 0
    assert effects_per_thing(filled) == {("refund", ORDER, "line:1"): 1, ("refund", ORDER, "line:2"): 1}


def test_a_cancellation_gives_back_all_that_was_captured_so_a_refund_beside_it_is_too_much():
    cancellation = Ask(ORDER, None, None, "op2", kind="cancellation")
    steps = ((1, "sent", "C", cancellation), (2, "open", "C", cancellation))
    grant = Grant(0, "op2", ORDER, "full", None, None, kind="cancellation")
    record = replace(RECORD, grants=(grant, GRANT), attempts=(Attempt("C", 0), Attempt("K", 5)))
    assert names(book(*steps), replace(record, claims=())) == []
    assert [str(effect) for effect in effects(book(*steps))] == [f"cancellation {ORDER}"]
    assert names(book(*steps, *GOOD[:2], (4_010, "re_2", Cue.SETTLE)), replace(record, claims=())) == ["I1"]
    assert duplicate_effects(book(*steps, *GOOD[:2])) == 0


def test_what_was_sent_must_have_been_committed_and_authorised():
    assert names(book(*GOOD), replace(RECORD, attempts=())) == ["I2"]
    assert names(book(*GOOD), replace(RECORD, attempts=(Attempt("K", 11),))) == ["I2"]
    assert names(book(*GOOD), replace(RECORD, grants=())) == ["I7"]
    assert names(book(*GOOD), replace(RECORD, grants=(replace(GRANT, at_ms=11),))) == ["I7"]
    assert names(book(*GOOD), replace(RECORD, grants=(replace(GRANT, card=MASTERCARD),))) == ["I10", "I7"]


def test_an_older_key_must_not_land_after_a_newer_one_was_sent():
    late = book((10, "sent", "K", FULL), (20, "sent", "L", FULL), (30, "open", "K", FULL), (40, "re_1", Cue.SETTLE))
    assert names(late, replace(RECORD, attempts=(Attempt("K", 0), Attempt("L", 0)))) == ["I3"]


def test_a_key_has_one_meaning_and_a_window():
    other = replace(FULL, card=None)
    record = replace(RECORD, grants=(GRANT, replace(GRANT, card=None)))
    assert names(book(*GOOD, (5_000, "sent", "K", other)), record) == ["I4"]
    edge_ms = 10 + TRAITS.window_ms - TRAITS.margin_ms
    assert names(book(*GOOD, (edge_ms, "sent", "K", FULL))) == []
    assert names(book(*GOOD, (edge_ms + 1, "sent", "K", FULL))) == ["I4"]


@pytest.mark.parametrize(
    "claim",
    [
        {"reference": None},
        {"reference": "re_9"},
        {"amount": Money(100, "USD")},
        {"card": MASTERCARD},
        {"op": "op2"},
        {"slot": "line:1"},
        {"state": "reversed"},
        {"state": "cancelled"},
    ],
)
def test_what_the_record_says_was_done_must_be_in_the_book(claim: dict[str, object]):
    record = replace(RECORD, claims=(replace(CONFIRMED, **claim),))
    assert "I5" in names(book(*GOOD), record)


def test_accepted_is_not_confirmed():
    assert names(book(*GOOD[:2])) == ["I5"]


@pytest.mark.parametrize("state", ["failed", "cancelled", "requested", "proposed"])
def test_what_the_record_says_was_not_done_must_not_be_in_the_book(state: str):
    assert "I8" in names(book(*GOOD), claiming(state, reference=None), healed=False)


@pytest.mark.parametrize("state", ["unknown", "running", "requested"])
def test_in_the_end_nothing_is_open_that_is_nobody_s_task(state: str):
    assert "I22" in names(book(*GOOD[:1]), claiming(state, reference=None))
    assert names(book(*GOOD[:1]), claiming(state, reference=None), healed=False) == []


def test_what_is_missing_is_named():
    full, line = ("refund", ORDER, "full"), ("refund", ORDER, "line:1")
    assert missing_effects(book(*GOOD), [full, line]) == [line]
    assert missing_effects(book(*GOOD, (5_000, "re_1", Cue.REVERSE)), [full]) == [full]
    assert [effect.sent_ms for effect in effects(book(*GOOD))] == [10]


@pytest.mark.parametrize(
    ("amount", "written"),
    [
        (Money(5, "USD"), "0.05 USD"),
        (Money(3200, "USD"), "32.00 USD"),
        (Money(3200, "JPY"), "3200 JPY"),
        (Money(3200, "KWD"), "3.200 KWD"),
    ],
)
def test_money_is_written_with_its_currency_s_places(amount: Money, written: str):
    assert money(amount) == written


# --- The oracle can fail ------------------------------------------------------------------------------------------


def caught(policy: Policy, settings: ProviderSettings = FAULTY) -> set[str]:
    return {violation.invariant for seed in SEEDS for violation in judged(settings, policy, seed)[0]}


def test_a_careful_client_breaks_nothing_whatever_goes_wrong():
    fired = 0
    for mode in Idempotency:
        for seed in SEEDS:
            found, stand_in = judged(replace(FAULTY, idempotency=mode), careful, seed)
            assert not found, (mode, seed)
            fired += sum(stand_in.fired.values())
    assert fired > len(SEEDS)


@pytest.mark.parametrize(
    ("policy", "invariants"),
    [
        (clients.new_key_after_empty_look_up, {"I1", "I3"}),
        (clients.failed_on_5xx, {"I8"}),
        (clients.keyed_by_call, {"I1", "I3"}),
    ],
)
def test_a_careless_client_is_caught(policy: Policy, invariants: set[str]):
    assert caught(policy) >= invariants


@pytest.mark.parametrize("mode", [Idempotency.RESUME, Idempotency.CURRENT_STATE])
def test_a_repeat_that_is_refused_proves_nothing_about_a_send_that_is_late(mode: Idempotency):
    faults = {"late": Fault(times=1), "declined": Fault(times=1)}
    settings = ProviderSettings(idempotency=mode, late_ms=(60_000, 60_000), faults=faults)
    assert [violation.invariant for violation in judged(settings, clients.believes_a_repeat, 1)[0]] == ["I8"]
    assert not judged(settings, careful, 1)[0]


def test_without_faults_only_a_key_for_each_call_pays_twice():
    settings = ProviderSettings()
    assert not caught(clients.new_key_after_empty_look_up, settings)
    assert not caught(clients.failed_on_5xx, settings)
    assert "I1" in caught(clients.keyed_by_call, settings)

"""Rules of the provider's book: it is the truth, and nothing in it is ever changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.provider.driving import MASTERCARD, ORDER, VISA

from callwright.errors import IllegalTransition
from callwright.ledger.provider import Money
from callwright.sim.provider import SHOP
from callwright.sim.provider.book import REFUND, Ask, Book, Cue, Refund, Sent, Status

ASK = Ask(ORDER, Money(3200, "USD"), VISA, "op1")


def test_what_is_due_is_entered_with_its_own_instant():
    book = Book(SHOP)
    refund = book.open(ASK, "K", 10)
    book.schedule(refund.id, Cue.REVERSE, 9_000)
    book.schedule(refund.id, Cue.SETTLE, 4_010)
    book.advance(1_000_000)
    versions = [(each.at_ms, each.version, each.status) for each in book.entries if isinstance(each, Refund)]
    assert versions == [(10, 1, Status.PENDING), (4_010, 2, Status.SUCCEEDED), (9_000, 3, Status.REVERSED)]


def test_what_has_become_impossible_is_not_entered():
    book = Book(SHOP)
    refund = book.open(ASK, "K", 0)
    book.schedule(refund.id, Cue.SETTLE, 4_000)
    book.change(refund.id, Cue.CANCEL, 100)
    book.advance(5_000)
    assert book.current(refund.id).status is Status.CANCELLED


def test_what_is_due_comes_before_a_change_at_a_later_instant():
    book = Book(SHOP)
    refund = book.open(ASK, "K", 0)
    book.schedule(refund.id, Cue.SETTLE, 4_000)
    with pytest.raises(IllegalTransition):
        book.change(refund.id, Cue.CANCEL, 4_000)
    assert book.current(refund.id).status is Status.SUCCEEDED


def test_a_refund_without_a_card_goes_where_the_money_came_from():
    book = Book(SHOP)
    assert book.open(Ask(ORDER, Money(1, "USD"), None), "K", 0).card == VISA
    assert book.open(Ask(ORDER, Money(1, "USD"), MASTERCARD), "L", 0).card == MASTERCARD


def test_a_refund_is_told_as_it_was():
    book = Book(SHOP)
    refund = book.open(ASK, "K", 100)
    book.change(refund.id, Cue.SETTLE, 300)
    seen = [book.as_of(refund.id, at_ms) for at_ms in (99, 100, 299, 300)]
    assert [each and each.version for each in seen] == [None, 1, 1, 2]


def test_only_the_same_parameters_have_the_same_fingerprint():
    others = [
        Ask(ORDER, Money(3201, "USD"), VISA, "op1"),
        Ask(ORDER, Money(3200, "EUR"), VISA, "op1"),
        Ask(ORDER, Money(3200, "USD"), None, "op1"),
        Ask(ORDER, Money(3200, "USD"), VISA, "op2"),
        Ask(ORDER, Money(3200, "USD"), VISA, "op1", "line:1"),
        Ask("order:4418", Money(3200, "USD"), VISA, "op1"),
    ]
    assert len({each.fingerprint for each in [ASK, *others]}) == 7
    assert Ask(ORDER, Money(3200, "USD"), VISA, "op1").fingerprint == ASK.fingerprint


@given(st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 3), st.sampled_from([*Cue, None]), st.booleans())))
def test_entries_stand_in_the_order_of_time_and_are_the_fold_of_the_table(
    steps: list[tuple[int, int, Cue | None, bool]],
):
    book, now_ms, opened, before = Book(SHOP), 0, 0, ()
    for gap_ms, which, cue, at_once in steps:
        now_ms += gap_ms
        if cue is None or which >= opened:
            book.note_sent(f"K{opened}", ASK, now_ms)
            book.open(ASK, f"K{opened}", now_ms)
            opened += 1
        elif not at_once:
            book.schedule(f"re_{which + 1}", cue, now_ms + 1_500)
        else:
            book.advance(now_ms)
            entries = len(book.entries)
            try:
                book.change(f"re_{which + 1}", cue, now_ms)
            except IllegalTransition:
                assert len(book.entries) == entries
        assert tuple(book.entries[: len(before)]) == before
        before = tuple(book.entries)
    assert [entry.at_ms for entry in book.entries] == sorted(entry.at_ms for entry in book.entries)
    last: dict[str, Refund] = {}
    for entry in book.entries:
        if isinstance(entry, Sent):
            continue
        if entry.id in last:
            old = last[entry.id]
            assert entry.version == old.version + 1
            assert entry.status in [after for (state, _), after in REFUND.rows.items() if state is old.status]
        last[entry.id] = entry
    assert list(last.values()) == list(book.refunds())

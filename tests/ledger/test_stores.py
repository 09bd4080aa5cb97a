"""Every store keeps the same promises: all or nothing, one writer at a version, one unresolved attempt."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.ledger.rows import OP_ID, attempt, one_of_each, operation

from callwright.errors import LedgerError
from callwright.ledger.operation import State
from callwright.ledger.provider import Outcome
from callwright.ledger.rows import UNRESOLVED, Attempt, Event, Operation, Outbox, Told
from callwright.ledger.sqlite import SQLiteStore
from callwright.ledger.store import KEYS, MemoryStore, Stale, Store, Taken, key_of


class Broken(Exception):
    pass


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    made: Store = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "ledger.db")
    yield made
    made.close()


def test_every_row_comes_back_as_it_was_written(store):
    rows = one_of_each()
    assert {type(row) for row in rows} == set(KEYS)
    with store.transaction() as tx:
        for row in rows:
            tx.insert(row)
    with store.transaction() as tx:
        assert [tx.get(type(row), *key_of(row)) for row in rows] == rows
        assert tx.get(Attempt, OP_ID, 9) is None
    assert store.check() == []


def test_rows_are_found_by_their_columns_oldest_first(store):
    rows = [operation(op_id=f"op{n}", slot=f"line:{n}", state=state) for n, state in enumerate(State)]
    with store.transaction() as tx:
        for row in rows:
            tx.insert(row)
        assert tx.find(Operation) == rows
        assert tx.find(Operation, slot="line:2") == [rows[2]]
        assert tx.find(Operation, state=(State.UNKNOWN, State.PROPOSED)) == [rows[0], rows[6]]
        assert tx.find(Operation, state=State.PROPOSED, slot="line:3") == []
        assert tx.find(Operation, state=()) == []


def test_rows_are_found_by_what_they_lack(store):
    """What is still owed is what has no time of its settling."""
    rows = [Outbox(OP_ID, n, "person", "unknown", done_at_ms) for n, done_at_ms in enumerate((None, 5, None, 0))]
    with store.transaction() as tx:
        for row in rows:
            tx.insert(row)
        assert tx.find(Outbox, done_at_ms=None) == [rows[0], rows[2]]
        assert tx.find(Outbox, done_at_ms=(None, 5)) == rows[:3]


def test_an_exception_undoes_everything_and_reading_sees_what_was_written(store):
    with store.transaction() as tx:
        tx.insert(operation())
        tx.insert(attempt())

    def write_and_break(tx):
        tx.swap(operation(), operation(state=State.RUNNING, state_version=2))
        tx.update(attempt(sends=2))
        tx.insert(Told(OP_ID, "running", 2, "owed", 0))
        assert tx.get(Operation, OP_ID).state is State.RUNNING
        raise Broken

    with pytest.raises(Broken), store.transaction() as tx:
        write_and_break(tx)
    with store.transaction() as tx:
        assert tx.find(Operation) == [operation()]
        assert tx.find(Attempt) == [attempt()]
        assert tx.find(Told) == []


def test_of_two_that_read_the_same_version_one_writes(store):
    read = operation()
    with store.transaction() as tx:
        tx.insert(read)
    with store.transaction() as tx:
        tx.swap(read, replace(read, state=State.RUNNING, state_version=2))
    with pytest.raises(Stale), store.transaction() as tx:
        tx.swap(read, replace(read, state=State.CANCELLED, state_version=2))
    with store.transaction() as tx:
        assert tx.get(Operation, OP_ID).state is State.RUNNING


def test_there_is_one_operation_for_a_kind_subject_and_slot(store):
    with store.transaction() as tx:
        tx.insert(operation())
    with pytest.raises(Taken), store.transaction() as tx:
        tx.insert(operation())


@pytest.mark.parametrize("outcome", UNRESOLVED)
def test_i3_a_second_attempt_is_not_stored_while_one_is_unresolved(store, outcome):
    with store.transaction() as tx:
        tx.insert(operation())
        tx.insert(attempt(outcome=outcome))
    with pytest.raises(Taken), store.transaction() as tx:
        tx.insert(attempt(n=2))
    with store.transaction() as tx:
        tx.update(attempt(outcome=Outcome.NOT_APPLIED))
        tx.insert(attempt(n=2))
    with pytest.raises(Taken), store.transaction() as tx:
        tx.update(attempt(outcome=Outcome.UNKNOWN))


def test_events_and_evidence_only_grow(store):
    rows = one_of_each()
    with store.transaction() as tx:
        for row in rows:
            tx.insert(row)
    for row in (rows[2], rows[7]):
        with pytest.raises(LedgerError), store.transaction() as tx:
            tx.update(row)
    with pytest.raises(Taken), store.transaction() as tx:
        tx.insert(rows[7])


def test_an_operation_is_never_written_without_its_version(store):
    with store.transaction() as tx:
        tx.insert(operation())
    with pytest.raises(LedgerError), store.transaction() as tx:
        tx.update(operation(state=State.CONFIRMED))


def test_what_is_not_there_cannot_be_updated(store):
    with pytest.raises(LedgerError), store.transaction() as tx:
        tx.update(Told(OP_ID, "confirmed", 1, "heard", 0))


def test_of_many_threads_that_insert_one_operation_one_does(store):
    def insert(_: int) -> bool:
        try:
            with store.transaction() as tx:
                tx.insert(operation())
        except Taken:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(insert, range(8))) == 1


def test_two_processes_share_a_file_and_one_of_them_wins(tmp_path):
    first, second = SQLiteStore(tmp_path / "ledger.db"), SQLiteStore(tmp_path / "ledger.db")
    with first.transaction() as tx:
        tx.insert(operation())
    with second.transaction() as tx:
        read = tx.get(Operation, OP_ID)
        tx.swap(read, replace(read, state=State.RUNNING, state_version=2))
    with pytest.raises(Stale), first.transaction() as tx:
        tx.swap(operation(), operation(state=State.CANCELLED, state_version=2))
    first.close()
    second.close()


def test_a_file_of_another_schema_or_of_somebody_else_is_refused(tmp_path):
    SQLiteStore(tmp_path / "later.db").close()
    with sqlite3.connect(tmp_path / "later.db") as later:
        later.execute("PRAGMA user_version = 99")
    later.close()
    with pytest.raises(LedgerError, match="schema 99"):
        SQLiteStore(tmp_path / "later.db")
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE notes (text)")
    other.close()
    with pytest.raises(LedgerError, match="schema 0"):
        SQLiteStore(tmp_path / "other.db")
    (tmp_path / "text.db").write_text("no database, and long enough to be taken for one\n" * 100, encoding="utf-8")
    with pytest.raises(LedgerError, match="not a database"):
        SQLiteStore(tmp_path / "text.db")


def test_the_intent_is_on_the_disk_before_it_is_reported(tmp_path):
    store = SQLiteStore(tmp_path / "ledger.db")
    run = store._connection.execute
    assert run("PRAGMA synchronous").fetchone() == (2,)  # FULL
    mode = "wal" if sqlite3.sqlite_version_info >= (3, 51, 3) else "persist"
    assert run("PRAGMA journal_mode").fetchone() == (mode,)
    assert all("STRICT" in sql for (sql,) in run("SELECT sql FROM sqlite_schema WHERE type = 'table'"))
    store.close()


@pytest.mark.skipif(sqlite3.sqlite_version_info >= (3, 51, 3), reason="has a write-ahead log, and no such journal")
def test_f27_the_journal_of_a_commit_is_void_and_cannot_come_back_with_the_power(tmp_path):
    """A journal with its header undoes what was committed; one that was only unlinked may have it after the power."""
    store = SQLiteStore(tmp_path / "ledger.db")
    with store.transaction() as tx:
        tx.insert(operation())
        assert (tmp_path / "ledger.db-journal").exists()
    journal = (tmp_path / "ledger.db-journal").read_bytes()
    assert len(journal) > 512
    assert journal[:28] == bytes(28)
    store.close()
    (tmp_path / "ledger.db-journal").write_bytes(journal)
    again = SQLiteStore(tmp_path / "ledger.db")
    with again.transaction() as tx:
        assert tx.find(Operation) == [operation()]
    again.close()


def test_an_event_without_a_step_keeps_its_place(store):
    with store.transaction() as tx:
        for row in one_of_each()[-2:]:
            tx.insert(row)
        assert [event.seq for event in tx.find(Event, op_id=OP_ID)] == [1, 2]

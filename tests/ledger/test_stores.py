"""Every store keeps the same promises, and the suite that says so tells a store that breaks one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.rows import operation

from callwright.errors import LedgerError
from callwright.ledger import sqlite
from callwright.ledger.rows import Operation
from callwright.ledger.sqlite import SQLiteStore
from callwright.ledger.store import APPEND_ONLY, MemoryStore, Store, Transaction, key_of
from callwright.testing import check_store
from callwright.testing.stores import CHECKS


def files(folder: Path) -> Callable[[str], Store]:
    return lambda name: SQLiteStore(folder / f"{name}.db")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_store_in_memory_and_one_in_a_file_keep_every_promise(check, tmp_path):
    check(lambda name: MemoryStore())
    check(files(tmp_path))


class Broken:
    """A transaction that passes on to another's; who inherits from it breaks one thing."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


class SwapsBlindly(Broken):
    def swap(self, read, written):
        stored = self._tx.get(Operation, read.op_id)
        self._tx.swap(stored, written)


class TakesEverything(Broken):
    def insert(self, row):
        table = self._tx._tables[type(row)]
        table[len(table), repr(row)] = row


class FindsNoNothing(Broken):
    def find(self, table, **where):
        return [] if None in where.values() else self._tx.find(table, **where)


class WritesOverHistory(Broken):
    def update(self, row):
        if isinstance(row, APPEND_ONLY):
            self._tx._write(key_of(row), row)
        else:
            self._tx.update(row)


class BrokenStore(MemoryStore):
    def __init__(self, breaks: Callable[[Transaction], Broken]) -> None:
        super().__init__()
        self._breaks = breaks

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        with super().transaction() as tx:
            yield self._breaks(tx)


class KeepsHalf(MemoryStore):
    """Commits what was written before the exception."""

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        raised = None
        with super().transaction() as tx:
            try:
                yield tx
            except Exception as problem:
                raised = problem
        if raised:
            raise raised


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: BrokenStore(SwapsBlindly), "of two that read one version, both write: nothing is refused"),
        (lambda: BrokenStore(TakesEverything), "a row comes back as None"),
        (lambda: BrokenStore(FindsNoNothing), "None does not find what has no value"),
        (lambda: BrokenStore(WritesOverHistory), "Evidence is written over: nothing is refused"),
        (KeepsHalf, "an exception does not undo what was written before it"),
    ],
)
def test_a_store_that_breaks_a_promise_is_told_which(make, told):
    with pytest.raises(AssertionError, match=told):
        check_store(lambda name: make())


def test_a_file_that_forgets_which_attempts_are_unresolved_is_told_so(tmp_path, monkeypatch):
    schema = [each for each in sqlite._SCHEMA if "one_unresolved" not in each]
    monkeypatch.setattr(sqlite, "_SCHEMA", tuple(schema))
    with pytest.raises(AssertionError, match="a second attempt beside one that is None: nothing is refused"):
        check_store(files(tmp_path))


# A file's own


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


def test_a_file_that_is_damaged_is_told_so_and_nothing_is_raised(tmp_path):
    SQLiteStore(tmp_path / "ledger.db").close()
    content = bytearray((tmp_path / "ledger.db").read_bytes())
    content[4096:8192] = b"\xff" * 4096
    (tmp_path / "ledger.db").write_bytes(content)
    store = SQLiteStore(tmp_path / "ledger.db")
    assert store.check() != []
    with pytest.raises(LedgerError, match="malformed"), store.transaction() as tx:
        tx.find(Operation)
    store.close()


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

"""The ledger's store in one SQLite file.

Every commit is on the disk before it is reported (``synchronous=FULL``): the row that says "this may be sent" must not
be lost with the power. Before SQLite 3.51.3 the journal is the rollback journal, as the write-ahead log could lose a
checkpoint there; from then on it is the write-ahead log. A rollback journal is kept, and commits by zeros over its
header, which are synced (``PERSIST``). One that is deleted could be back after the power was lost, since its directory
is not synced, and would then undo what was committed. Tables are STRICT; the file carries the number of its schema.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import types
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from callwright.errors import LedgerError
from callwright.ledger.operation import State
from callwright.ledger.rows import UNRESOLVED, Attempt, Operation, Row
from callwright.ledger.store import APPEND_ONLY, KEYS, Stale, Taken, Transaction, columns_of, key_of

R = TypeVar("R", bound=Row)

SCHEMA_VERSION = 2
APPLICATION_ID = 0x43574C47  # "CWLG": whose file it is
BUSY_TIMEOUT_MS = 5_000
"""How long another process's transaction is waited for."""
SQLITE_MIN = (3, 37, 0)
"""The oldest SQLite that has STRICT tables."""
WAL_FROM = (3, 51, 3)
JOURNAL = "WAL" if sqlite3.sqlite_version_info >= WAL_FROM else "PERSIST"


class SQLiteStore:
    """A store in a file. Raises LedgerError if the file cannot be opened, or was written by another schema."""

    is_shared = True

    def __init__(self, path: str | Path) -> None:
        self._lock = threading.Lock()
        self._live_path = f"{path}-live"
        self._live: int | None = None
        """A file that is locked by whoever tends the ledger: the lock goes with its process."""
        try:
            self._connection = sqlite3.connect(
                path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(str(path))
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.Error as problem:
            raise LedgerError(f"{path}: {problem}; is it a ledger, and may it be written?") from problem

    def _prepare(self, path: str) -> None:
        run = self._connection.execute
        run(f"PRAGMA journal_mode={JOURNAL}")
        run("PRAGMA synchronous=FULL")
        run("BEGIN IMMEDIATE")
        version, owner = run("PRAGMA user_version").fetchone()[0], run("PRAGMA application_id").fetchone()[0]
        if (version, owner) == (0, 0) and run("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
            for statement in _SCHEMA:
                run(statement)
        elif (version, owner) != (SCHEMA_VERSION, APPLICATION_ID):
            run("ROLLBACK")
            raise LedgerError(f"{path}: schema {version} of application {owner:#x}; expected {SCHEMA_VERSION} of ours")
        run("COMMIT")

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Begin a transaction; it is committed as its block ends, and undone by an exception.

        Raises LedgerError for what SQLite refuses: a full or locked disk, a broken file.
        """
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield _SQLiteTransaction(self._connection)
                self._connection.execute("COMMIT")
            except sqlite3.Error as problem:
                raise LedgerError(f"the ledger's file: {problem}") from problem
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def is_first(self) -> bool:
        """Begin to tend what the file holds; true if no other process does. Raises LedgerError."""
        try:
            self._live = os.open(self._live_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._live, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            finally:
                fcntl.flock(self._live, fcntl.LOCK_SH)
        except OSError as problem:
            raise LedgerError(f"{self._live_path}: {problem.strerror}; may it be written?") from problem
        return True

    def check(self) -> list[str]:
        """What SQLite finds wrong with its file."""
        with self._lock:
            try:
                found = [str(row[0]) for row in self._connection.execute("PRAGMA integrity_check")]
            except sqlite3.Error as problem:
                found = [f"the ledger's file: {problem}"]
        return [line for line in found if line != "ok"]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()
            if self._live is not None:
                os.close(self._live)
                self._live = None


class _SQLiteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._run = connection.execute

    def get(self, table: type[R], *key: object) -> R | None:
        found = self.find(table, **dict(zip(KEYS[table], key, strict=True)))
        return found[0] if found else None

    def find(self, table: type[R], **where: object) -> list[R]:
        tests, values = [], []
        for name, value in where.items():
            choices = value if isinstance(value, tuple) else (value,)
            given = [_written(choice) for choice in choices if choice is not None]
            nothing = f" OR {name} IS NULL" if None in choices else ""  # IN finds no NULL, not even among NULLs
            tests.append(f"({name} IN ({', '.join('?' * len(given))}){nothing})")
            values += given
        condition = f" WHERE {' AND '.join(tests)}" if tests else ""
        rows = self._run(f"SELECT {', '.join(columns_of(table))} FROM {_name(table)}{condition} ORDER BY rowid", values)
        return [_read(table, row) for row in rows]

    def insert(self, row: Row) -> None:
        columns = columns_of(type(row))
        marks = ", ".join("?" * len(columns))
        try:
            self._run(f"INSERT INTO {_name(type(row))} ({', '.join(columns)}) VALUES ({marks})", _values(row))
        except sqlite3.IntegrityError as problem:
            raise Taken(f"{type(row).__name__} {key_of(row)}: {problem}") from problem

    def update(self, row: Row) -> None:
        if isinstance(row, (Operation, *APPEND_ONLY)):
            raise LedgerError(f"{type(row).__name__} {key_of(row)} cannot be updated")
        try:
            count = self._write(row, "", ())
        except sqlite3.IntegrityError as problem:
            raise Taken(f"{type(row).__name__} {key_of(row)}: {problem}") from problem
        if count != 1:
            raise LedgerError(f"{type(row).__name__} {key_of(row)} cannot be updated")

    def swap(self, read: Operation, written: Operation) -> None:
        if self._write(written, " AND state_version = ?", (read.state_version,)) != 1:
            raise Stale(f"operation {read.op_id} is no longer at version {read.state_version}")

    def _write(self, row: Row, condition: str, values: tuple[object, ...]) -> int:
        table = type(row)
        settings = ", ".join(f"{name} = ?" for name in columns_of(table))
        key = " AND ".join(f"{name} = ?" for name in KEYS[table])
        statement = f"UPDATE {_name(table)} SET {settings} WHERE {key}{condition}"
        return self._run(statement, (*_values(row), *map(_written, key_of(row)), *values)).rowcount


def _name(table: type[Any]) -> str:
    return table.__name__.lower()


def _values(row: Row) -> tuple[Any, ...]:
    return tuple(_written(getattr(row, name)) for name in columns_of(type(row)))


def _written(value: object) -> Any:
    return value.value if isinstance(value, Enum) else value


def _read(table: type[R], values: tuple[Any, ...]) -> R:
    make: Any = table
    pairs = zip(_enums(make), values, strict=True)
    row: R = make(*(value if kind is None or value is None else kind(value) for kind, value in pairs))
    return row


@lru_cache
def _enums(table: Any) -> tuple[type[Enum] | None, ...]:
    """For each column the enum that its values belong to, if it is one."""
    return tuple(_enum_in(_kinds(hint)) for hint in typing.get_type_hints(table).values())


def _kinds(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


def _enum_in(kinds: tuple[Any, ...]) -> type[Enum] | None:
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Enum)), None)


def _column(name: str, hint: Any) -> str:
    kinds = _kinds(hint)
    sort = "INTEGER" if int in kinds else "TEXT"
    return f"{name} {sort}{'' if types.NoneType in kinds else ' NOT NULL'}"


def _create(table: type[Row]) -> str:
    lines = [_column(name, hint) for name, hint in typing.get_type_hints(table).items()]
    lines.append(f"PRIMARY KEY ({', '.join(KEYS[table])})")
    return f"CREATE TABLE {_name(table)} ({', '.join([*lines, *_CHECKS.get(table, ())])}) STRICT"


def _listed(values: list[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


_CHECKS: dict[type[Row], tuple[str, ...]] = {
    Operation: ("UNIQUE (kind, subject, slot)", f"CHECK (state IN ({_listed([state.value for state in State])}))"),
    Attempt: ("UNIQUE (provider_key)", "CHECK (sends > 0)"),
}

_IN_DOUBT = _listed([outcome.value for outcome in UNRESOLVED if outcome])

_SCHEMA = (
    *(_create(table) for table in KEYS),
    f"CREATE UNIQUE INDEX one_unresolved ON attempt (op_id) WHERE outcome IS NULL OR outcome IN ({_IN_DOUBT})",
    "CREATE INDEX operation_party ON operation (party)",
    "CREATE INDEX evidence_op ON evidence (op_id)",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
    f"PRAGMA application_id = {APPLICATION_ID}",
)

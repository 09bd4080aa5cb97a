"""Where the ledger's rows are kept: what a store promises, and the store in memory.

A transaction is synchronous and all or nothing: when its block ends without an exception, its writes are there for
good; otherwise none of them is. Transactions of one store follow one another. A store runs off the event loop, in one
thread at a time.

Two promises carry the rest. An operation is written only over the version that was read (``swap``), so of two writers
one is told. And at most one attempt of an operation is unresolved, so a second dispatch cannot even be stored.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TypeVar

from callwright.errors import LedgerError
from callwright.ledger.rows import Attempt, Authorization, Event, Evidence, Operation, Outbox, Row, Told, Waiting

R = TypeVar("R", bound=Row)

KEYS: dict[type[Any], tuple[str, ...]] = {
    Operation: ("op_id",),
    Attempt: ("op_id", "n"),
    Evidence: ("evidence_id",),
    Authorization: ("op_id", "version"),
    Told: ("op_id", "milestone", "version"),
    Waiting: ("op_id",),
    Outbox: ("op_id", "version", "kind"),
    Event: ("op_id", "seq"),
}
"""Every table with its key."""

APPEND_ONLY: tuple[type[Row], ...] = (Evidence, Event)


class Stale(LedgerError):
    """Somebody else wrote the operation since it was read; nothing was written. Read it again."""


class Taken(LedgerError):
    """There is such a row, or an unresolved attempt, already; nothing was written."""


class Transaction(Protocol):
    """Reads and writes that happen together or not at all."""

    def get(self, table: type[R], *key: object) -> R | None:
        """The row of this key, or None."""
        ...

    def find(self, table: type[R], **where: object) -> list[R]:
        """The rows whose columns equal these values, oldest first; a tuple stands for any of its values."""
        ...

    def insert(self, row: Row) -> None:
        """Add a row. Raises Taken for a key that is there, or a second unresolved attempt of an operation."""
        ...

    def update(self, row: Row) -> None:
        """Replace the row of this key. Raises LedgerError if there is none, or if its table only grows."""
        ...

    def swap(self, read: Operation, written: Operation) -> None:
        """Replace an operation as it was read. Raises Stale if it has another version by now."""
        ...


class Store(Protocol):
    """Keeps rows; every store is held to the same promises by `callwright.testing.check_store`."""

    is_shared: bool
    """Whether other processes may have it open."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Begin a transaction; it is committed as its block ends, and undone by an exception."""
        ...

    def is_first(self) -> bool:
        """Begin to tend what it holds, until it is closed or its process dies; true if nobody else does.

        It is asked inside a transaction, once. A store that cannot tell says true.
        """
        ...

    def check(self) -> list[str]:
        """What is wrong with the store itself, for a person; empty if nothing is."""
        ...

    def close(self) -> None:
        """Let go of what the store holds."""
        ...


def key_of(row: Row) -> tuple[object, ...]:
    """The values of a row's key."""
    return tuple(getattr(row, name) for name in KEYS[type(row)])


Tables = dict[type[Any], dict[tuple[object, ...], Any]]


class MemoryStore:
    """A store for simulations and tests: nothing outlives the process, though simulated ones may share it."""

    def __init__(self, *, is_shared: bool = False) -> None:
        self.is_shared = is_shared
        self._tables: Tables = {table: {} for table in KEYS}
        self._lock = threading.Lock()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Begin a transaction; it is committed as its block ends, and undone by an exception."""
        with self._lock:
            transaction = _MemoryTransaction(self._tables)
            try:
                yield transaction
            except BaseException:
                transaction.undo()
                raise

    def is_first(self) -> bool:
        """Memory does not tell who shares it."""
        return True

    def check(self) -> list[str]:
        """Memory does not rot."""
        return []

    def close(self) -> None:
        """Keep the rows: another ledger may open the same store, as after a crash."""


class _MemoryTransaction:
    """Writes at once, and remembers how to undo it."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._undo: list[tuple[type[Row], tuple[object, ...], Row | None]] = []

    def undo(self) -> None:
        for table, key, before in reversed(self._undo):
            if before is None:
                del self._tables[table][key]
            else:
                self._tables[table][key] = before

    def get(self, table: type[R], *key: object) -> R | None:
        return self._tables[table].get(key)

    def find(self, table: type[R], **where: object) -> list[R]:
        tests = list(where.items())
        return [
            row
            for row in self._tables[table].values()
            if all(
                getattr(row, name) in value if isinstance(value, tuple) else getattr(row, name) == value
                for name, value in tests
            )
        ]

    def insert(self, row: Row) -> None:
        key = key_of(row)
        if key in self._tables[type(row)]:
            raise Taken(f"{type(row).__name__} {key} is there already")
        self._check_attempt(row)
        self._write(key, row)

    def update(self, row: Row) -> None:
        key = key_of(row)
        if isinstance(row, (Operation, *APPEND_ONLY)) or key not in self._tables[type(row)]:
            raise LedgerError(f"{type(row).__name__} {key} cannot be updated")
        self._check_attempt(row)
        self._write(key, row)

    def swap(self, read: Operation, written: Operation) -> None:
        stored = self.get(Operation, read.op_id)
        if stored is None or stored.state_version != read.state_version:
            raise Stale(f"operation {read.op_id} is no longer at version {read.state_version}")
        self._write((read.op_id,), written)

    def _check_attempt(self, row: Row) -> None:
        if isinstance(row, Attempt) and row.is_unresolved:
            others = [other for other in self.find(Attempt, op_id=row.op_id) if other.n != row.n]
            if any(other.is_unresolved for other in others):
                raise Taken(f"operation {row.op_id} has an unresolved attempt already")

    def _write(self, key: tuple[object, ...], row: Row) -> None:
        table = type(row)
        self._undo.append((table, key, self._tables[table].get(key)))
        self._tables[table][key] = row


class Rehearsal:
    """A transaction in which nothing is written, to see what would be. What is read is what was there."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.is_written = False
        """Whether anything would have been."""

    def get(self, table: type[R], *key: object) -> R | None:
        """The row of this key, or None."""
        return self._tx.get(table, *key)

    def find(self, table: type[R], **where: object) -> list[R]:
        """The rows whose columns equal these values."""
        return self._tx.find(table, **where)

    def insert(self, row: Row) -> None:
        """Note that a row would be added."""
        self.is_written = True

    def update(self, row: Row) -> None:
        """Note that a row would be replaced."""
        self.is_written = True

    def swap(self, read: Operation, written: Operation) -> None:
        """Note that an operation would be."""
        self.is_written = True


def columns_of(table: type[Any]) -> tuple[str, ...]:
    """The columns of a table: its row's fields."""
    return tuple(each.name for each in dataclasses.fields(table))

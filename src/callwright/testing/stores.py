"""The suite that any store of the ledger's must pass: all or nothing, one writer at a version, one unresolved attempt.

A store that keeps less lets something be done twice; the suite names the promise that it breaks. It knows nothing of
how rows are kept, and opens each store by a name: the same name again is another connection to the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from callwright.declare.actions import Authority, Card, Money, Terms
from callwright.errors import LedgerError
from callwright.ledger.operation import Actor, State, Step
from callwright.ledger.provider import Outcome
from callwright.ledger.rows import (
    UNRESOLVED,
    Attempt,
    Authorization,
    Event,
    Evidence,
    Operation,
    Outbox,
    Row,
    Told,
    Waiting,
    operation_id,
    params_hash,
    provider_key,
    write_terms,
)
from callwright.ledger.store import KEYS, Stale, Store, Taken, Transaction, key_of

OpenStore = Callable[[str], Store]

_TERMS: Final = Terms("order:4417", Money(3200, "USD"), Card("tok_visa", "Visa", "4242"))
_OP_ID: Final = operation_id("refund", "order:4417", "full")
_THREADS: Final = 4


def check_store(open_store: OpenStore) -> None:
    """Check a store. Raises AssertionError that names the promise it breaks.

    ``open_store`` opens the store of a name, and makes it if there is none; one that is not ``is_shared`` is opened
    once for each name. It is called several times, with names that are words.
    """
    for check in CHECKS:
        check(open_store)


def _rows_come_back(open_store: OpenStore) -> None:
    """Every row comes back as it was written, with its types, whatever its columns hold."""
    rows = _one_of_each()
    assert {type(row) for row in rows} == set(KEYS), "the suite lacks a table"
    with _opened(open_store, "rows") as store:
        _insert(store, *rows)
        with store.transaction() as tx:
            for row in rows:
                got = tx.get(type(row), *key_of(row))
                assert got == row, f"a row comes back as {got!r}, not as {row!r}"
            assert tx.get(Attempt, _OP_ID, 9) is None, "get: a row that is not there is not None"
        assert store.check() == [], "check: something is wrong with a store that was only written to"


def _rows_are_found(open_store: OpenStore) -> None:
    """Rows are found by their columns, oldest first: a tuple is any of its values, and None is no value."""
    rows = [_operation(op_id=f"op{n}", slot=f"line:{n}", state=state) for n, state in enumerate(State)]
    owed = [Outbox(_OP_ID, n, "person", "unknown", at_ms) for n, at_ms in enumerate((None, 5, None, 0))]
    with _opened(open_store, "found") as store:
        _insert(store, *rows, *owed)
        with store.transaction() as tx:
            assert tx.find(Operation) == rows, "find: not all rows, or not the oldest first"
            assert tx.find(Operation, slot="line:2") == [rows[2]], "find: not by the value of a column"
            wanted = (State.UNKNOWN, State.PROPOSED)
            either = [row for row in rows if row.state in wanted]
            assert tx.find(Operation, state=wanted) == either, "find: not by either value of a column"
            assert tx.find(Operation, state=()) == [], "find: something is any of no values"
            assert tx.find(Operation, state=State.PROPOSED, slot="line:3") == [], "find: not by both columns"
            assert tx.find(Outbox, done_at_ms=None) == [owed[0], owed[2]], "find: None does not find what has no value"
            assert tx.find(Outbox, done_at_ms=(None, 5)) == owed[:3], "find: not by None or a value"


def _all_or_nothing(open_store: OpenStore) -> None:
    """An exception undoes everything, and what was written is read within its own transaction."""

    def write_and_break(tx: Transaction) -> None:
        tx.swap(_operation(), _operation(state=State.RUNNING, state_version=2))
        tx.update(_attempt(sends=2))
        tx.insert(Told(_OP_ID, "running", 2, "asked", 0))
        seen = tx.get(Operation, _OP_ID)
        assert seen is not None and seen.state is State.RUNNING, "a transaction does not read what it wrote"  # noqa: PT018
        raise _BrokenOffError

    with _opened(open_store, "nothing") as store:
        _insert(store, _operation(), _attempt())
        try:
            with store.transaction() as tx:
                write_and_break(tx)
        except _BrokenOffError:
            pass
        else:
            raise AssertionError("a transaction swallows the exception that ended it")
        with store.transaction() as tx:
            kept = tx.find(Operation), tx.find(Attempt), tx.find(Told)
            assert kept == ([_operation()], [_attempt()], []), "an exception does not undo what was written before it"


def _one_writer_at_a_version(open_store: OpenStore) -> None:
    """I6: an operation is written only over the version that was read, by whatever connection."""
    read = _operation()
    running = replace(read, state=State.RUNNING, state_version=2)
    with _opened(open_store, "versions") as store:
        other = open_store("versions") if store.is_shared else store
        _insert(store, read)
        with other.transaction() as tx:
            assert tx.get(Operation, _OP_ID) == read, "another connection does not see what was committed"
            tx.swap(read, running)
        stopped = replace(read, state=State.CANCELLED, state_version=2)
        _expect(Stale, store, lambda tx: tx.swap(read, stopped), "of two that read one version, both write")
        _expect(LedgerError, store, _updates(stopped), "an operation is written without its version")
        with store.transaction() as tx:
            assert tx.get(Operation, _OP_ID) == running, "what was refused is written all the same"
        if other is not store:
            other.close()


def _one_unresolved_attempt(open_store: OpenStore) -> None:
    """I3: a second attempt is not stored while one is unresolved, nor made unresolved beside it."""
    for outcome in UNRESOLVED:
        with _opened(open_store, f"attempts{outcome.value if outcome else 'none'}") as store:
            _insert(store, _operation(), _attempt(outcome=outcome))
            _expect(Taken, store, _inserts(_attempt(n=2)), f"a second attempt beside one that is {outcome}")
            with store.transaction() as tx:
                tx.update(_attempt(outcome=Outcome.NOT_APPLIED))
                tx.insert(_attempt(n=2))
            doubted = _updates(_attempt(outcome=Outcome.UNKNOWN))
            _expect(Taken, store, doubted, "two unresolved attempts of one operation")


def _keys_are_taken_once(open_store: OpenStore) -> None:
    """There is one operation for a name, one row for each key, and nothing is updated that is not there."""
    rows = _one_of_each()
    with _opened(open_store, "keys") as store:
        _insert(store, *rows)
        for row in rows:
            _expect(Taken, store, _inserts(row), f"two rows of one key in {type(row).__name__}")
        late = Told(_OP_ID, "confirmed", 99, "heard", 0)
        _expect(LedgerError, store, _updates(late), "a row that is not there is updated")


def _history_only_grows(open_store: OpenStore) -> None:
    """I12: events and evidence are never written over."""
    rows = [row for row in _one_of_each() if isinstance(row, (Event, Evidence))]
    with _opened(open_store, "history") as store:
        _insert(store, *rows)
        for row in rows:
            _expect(LedgerError, store, _updates(row), f"{type(row).__name__} is written over")


def _threads_take_turns(open_store: OpenStore) -> None:
    """Of many threads that insert one operation one does."""

    def insert(store: Store) -> bool:
        try:
            _insert(store, _operation())
        except Taken:
            return False
        return True

    with _opened(open_store, "threads") as store, ThreadPoolExecutor(_THREADS) as threads:
        assert sum(threads.map(insert, [store] * (2 * _THREADS))) == 1, "of many threads not exactly one inserts a row"


def _kept_when_closed(open_store: OpenStore) -> None:
    """What was committed is there for whoever opens a shared store afterwards."""
    store = open_store("closed")
    _insert(store, _operation())
    is_shared = store.is_shared
    store.close()
    if is_shared:
        with _opened(open_store, "closed") as again, again.transaction() as tx:
            assert tx.find(Operation) == [_operation()], "what was committed is gone once the store was closed"


def _first_alone(open_store: OpenStore) -> None:
    """Whoever tends a store that nobody else has open is the first, also when the one before has closed it."""
    for _ in range(2):
        with _opened(open_store, "first") as store, store.transaction():
            assert store.is_first(), "nobody else tends it, and it does not say so"


CHECKS: Final[tuple[Callable[[OpenStore], None], ...]] = (
    _rows_come_back,
    _rows_are_found,
    _all_or_nothing,
    _one_writer_at_a_version,
    _one_unresolved_attempt,
    _keys_are_taken_once,
    _history_only_grows,
    _threads_take_turns,
    _kept_when_closed,
    _first_alone,
)
"""Every promise, each checked by itself."""


class _BrokenOffError(Exception):
    """What ends a transaction in the middle."""


@contextmanager
def _opened(open_store: OpenStore, name: str) -> Iterator[Store]:
    store = open_store(name)
    try:
        yield store
    finally:
        store.close()


def _insert(store: Store, *rows: Row) -> None:
    with store.transaction() as tx:
        for row in rows:
            tx.insert(row)


def _inserts(row: Row) -> Callable[[Transaction], None]:
    return lambda tx: tx.insert(row)


def _updates(row: Row) -> Callable[[Transaction], None]:
    return lambda tx: tx.update(row)


def _expect(error: type[LedgerError], store: Store, write: Callable[[Transaction], None], what: str) -> None:
    """A write is refused, with the error that says so."""
    try:
        with store.transaction() as tx:
            write(tx)
    except error:
        return
    except LedgerError as problem:
        raise AssertionError(f"{what}: expected {error.__name__}, not {type(problem).__name__}") from problem
    raise AssertionError(f"{what}: nothing is refused")


def _operation(**changes: Any) -> Operation:
    written = write_terms(_TERMS)
    row = Operation(
        op_id=_OP_ID, kind="refund", subject="order:4417", slot="full", party="customer:81", provider="payments",
        authority=Authority.AUTOMATIC, must_hear="amount,card", rev=1, terms_json=written,
        params_hash=params_hash("refund", "full", written), state=State.REQUESTED, state_version=1,
        milestone="requested", fact_version=1, amend_json=None, escalated="", changed_at_ms=0,
    )  # fmt: skip
    return replace(row, **changes)


def _attempt(**changes: Any) -> Attempt:
    n = changes.get("n", 1)
    written = write_terms(_TERMS)
    row = Attempt(
        op_id=_OP_ID, n=n, rev=1, provider_key=provider_key(_OP_ID, 1, n),
        params_hash=params_hash("refund", "full", written), terms_json=written, sends=1, opened_at_ms=0, sent_at_ms=0,
        asked_at_ms=0, outcome=None, reference=None,
    )  # fmt: skip
    return replace(row, **changes)


def _one_of_each() -> list[Row]:
    return [
        _operation(amend_json='{"card":["tok","Café","0042"]}'),
        _attempt(outcome=Outcome.ACCEPTED, reference="re_1"),
        Evidence("e1", _OP_ID, 1, Actor.ADAPTER, Outcome.ACCEPTED, "re_1", None, "", 1_796_000_000_000),
        Authorization(_OP_ID, 1, 1, "hash", Actor.POLICY, 1_000, None),
        Told(_OP_ID, "confirmed", 3, "heard", 7),
        Waiting(_OP_ID, 3, None),
        Outbox(_OP_ID, 4, "person", "mismatch", None),
        Event(_OP_ID, 1, Step.AUTHORIZE, None, State.REQUESTED, Actor.POLICY, "ask", 2),
        Event(_OP_ID, 2, None, State.REQUESTED, State.REQUESTED, Actor.CALLER, "amend", 2),
    ]

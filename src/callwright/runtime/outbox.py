"""The outbox as a file: a JSON line for each thing that is owed outside the calls, for whoever sends messages.

A row is written once, whatever dies in between: what the file holds already is read first, and a line that was cut
short counts as not written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from callwright.ledger.page import Page
from callwright.ledger.rows import Outbox
from callwright.ledger.saying import fact_of

_Key = tuple[str, int, str]


class OutboxFile:
    """Appends what is new in the outbox to a file. It belongs in the ledger's own thread: it blocks."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._written: dict[_Key, None] | None = None

    def write(self, page: Page) -> None:
        """Append the open rows that the file does not have yet. Raises OSError for a file that cannot be written."""
        if self._written is None:
            self._written = dict.fromkeys(self._there())
        new = [row for row in page.tx.find(Outbox, done_at_ms=None) if _key(row) not in self._written]
        if not new:
            return
        lines = b"".join(_line(page, row) + b"\n" for row in new)
        with self._path.open("ab") as file:
            file.write(b"\n" + lines if self._is_cut() else lines)
            file.flush()
            os.fsync(file.fileno())
        self._written.update(dict.fromkeys(map(_key, new)))

    def _there(self) -> Iterator[_Key]:
        lines = self._path.read_bytes().splitlines() if self._path.exists() else []
        for line in lines:
            try:
                row = msgspec.json.decode(line)
                yield row["op_id"], row["version"], row["kind"]
            except (msgspec.DecodeError, TypeError, KeyError):
                continue

    def _is_cut(self) -> bool:
        """Whether the last line has no end."""
        return self._path.exists() and self._path.read_bytes()[-1:] not in (b"", b"\n")


def _key(row: Outbox) -> _Key:
    return row.op_id, row.version, row.kind


def _line(page: Page, row: Outbox) -> bytes:
    operation = page.operation(row.op_id)
    return msgspec.json.encode(
        {
            "op_id": row.op_id,
            "version": row.version,
            "kind": row.kind,
            "reason": row.reason,
            "party": operation.party,
            "subject": operation.subject,
            "state": operation.milestone,
            "sentence": fact_of(operation).sentence,
            "at_ms": page.now_ms,
        }
    )

"""``callwright ledger``: what a ledger's file holds, for the person who has to look after it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeAlias

import click
from rich.console import Console
from rich.table import Table

from callwright.errors import LedgerError, UsageError
from callwright.ledger.operation import Actor, State
from callwright.ledger.owing import CONFLICT, PERSON, UNTOLD
from callwright.ledger.page import Page
from callwright.ledger.provider import Observed, Outcome, Provider
from callwright.ledger.rows import Attempt, Event, Evidence, Operation, Outbox, Told
from callwright.ledger.saying import FactChanged, fact_of
from callwright.ledger.sqlite import SQLiteStore
from callwright.runtime.dispatcher import Ledger
from callwright.sim.agents import imported

OPEN: Final = (State.RUNNING, State.ACCEPTED, State.UNKNOWN)
"""What a provider can be asked about."""
FOUND_OUT: Final = (Outcome.APPLIED, Outcome.NOT_APPLIED, Outcome.CANCELLED, Outcome.REVERSED)
"""What a person can find out about an operation."""
CLOSES: Final[Mapping[str, tuple[str, ...]]] = {
    **{outcome.value: (PERSON, CONFLICT) for outcome in FOUND_OUT},
    "seen_to": (PERSON, CONFLICT),
    "told": (UNTOLD,),
}
"""Which rows of the outbox each word of `settle` takes off."""
_KEPT_BACK: Final = ("provider_key", "params_hash", "terms_json")
"""Columns that nobody has to see: a key is a secret, and terms hold a card's token."""

_WAITS: Final[Mapping[str, str]] = {
    PERSON: "a person has to look",
    CONFLICT: "the caller wanted something else after it was settled",
    UNTOLD: "the caller has to be told",
}
_PROVIDER: Final = ("name", "traits", "send", "look_up", "cancel")
"""What a provider has."""
_SHORT_ID: Final = 8
"""So much of an id is shown where people read it."""
_IDS: Final = ("op_id", "evidence_id")
_INSTANT: Final = "at_ms"
"""How the columns of instants end; people read them as a date and a time."""

Row: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for on the command line."""

    names: tuple[str, ...]
    reference: str
    is_json: bool


@click.command("ledger")
@click.argument("verb", type=click.Choice(["list", "show", "problems", "reconcile", "settle"]))
@click.argument("names", nargs=-1, metavar="[OP] [WORD]")
@click.option(
    "--db",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="CALLWRIGHT_LEDGER",
    help="The ledger's file; also from CALLWRIGHT_LEDGER.",
)
@click.option("--provider", "providers", multiple=True, metavar="MODULE:NAME", help="A provider of the ledger's.")
@click.option("--reference", default="", metavar="ID", help="The provider's own id of what was found out (settle).")
@click.option("--json", "is_json", is_flag=True, help="One JSON object per line, and nothing else.")
def command(
    verb: str, names: tuple[str, ...], db: Path, providers: tuple[str, ...], reference: str, is_json: bool
) -> None:
    """Look after a ledger's file. OP is an operation's id, or the beginning of one.

    \b
    list                what was asked for, how far it is, and what is owed
    show OP             everything that is known of one operation
    problems            what does not agree in the record, with what callers
                        heard, and with each provider that is given; and what
                        waits for a person; exit 1 if there is anything
    reconcile [OP]      ask the provider about it, or about all that is open;
                        nothing is sent
    settle OP OUTCOME   take in what a person found out: applied, not_applied,
                        cancelled or reversed
    settle OP WORD      take it off the list: seen_to (a person has), or told
                        (its caller has been told)
    """
    asked = Asked(names, reference, is_json)
    adapters = [load_provider(each) for each in providers]
    with closing(Ledger(SQLiteStore(db), adapters)) as ledger:
        code = asyncio.run(VERBS[verb](ledger, asked))
    if code:
        raise click.exceptions.Exit(code)


async def _list(ledger: Ledger, asked: Asked) -> int:
    """All operations, the oldest first."""
    rows = await ledger.commit(lambda page: [_line(page, each) for each in page.tx.find(Operation)])
    _show(rows, asked, "operations")
    return 0


async def _one(ledger: Ledger, asked: Asked) -> int:
    """One operation with all its rows."""
    name = _only(asked, "show OP")

    def read(page: Page) -> dict[str, list[Row]]:
        operation = _find(page, name)
        tables: tuple[type[Any], ...] = (Event, Attempt, Evidence, Told, Outbox)
        rows = {table.__name__.lower(): page.tx.find(table, op_id=operation.op_id) for table in tables}
        return {"operation": [_line(page, operation)], **{name: [_plain(row) for row in rows[name]] for name in rows}}

    found = await ledger.commit(read)
    if asked.is_json:
        click.echo(json.dumps(found))
        return 0
    for table, rows in found.items():
        _show(rows, asked, table)
    return 0


async def _problems(ledger: Ledger, asked: Asked) -> int:
    """What does not agree, and what waits for a person; a provider that is given is asked."""
    found = [*await ledger.problems(ask_providers=bool(ledger.providers)), *await ledger.commit(_waiting)]
    for problem in found:
        click.echo(json.dumps({"problem": problem}) if asked.is_json else problem)
    if not found and not asked.is_json:
        click.echo("the record agrees with itself, and nothing waits for a person")
    return 1 if found else 0


def _waiting(page: Page) -> list[str]:
    """Each open row of the outbox, as a line."""
    lines = []
    for row in page.tx.find(Outbox, done_at_ms=None):
        operation = page.operation(row.op_id)
        name = f"{operation.kind} {operation.subject} {operation.slot} ({row.op_id[:_SHORT_ID]})"
        lines.append(f"{name}: {_WAITS[row.kind]}: {row.reason}")
    return lines


async def _reconcile(ledger: Ledger, asked: Asked) -> int:
    """Ask the provider what became of it."""

    def wanted(page: Page) -> list[str]:
        if asked.names:
            return [_find(page, name).op_id for name in asked.names]
        return [operation.op_id for operation in page.tx.find(Operation, state=OPEN)]

    facts = [await ledger.reconcile(op_id) for op_id in await ledger.commit(wanted)]
    _show([_said(fact) for fact in facts], asked, "asked about")
    return 0


async def _settle(ledger: Ledger, asked: Asked) -> int:
    """Take in what a person found out or did, and take off the outbox what that sees to."""
    try:
        name, word = asked.names
        closed = CLOSES[word]
    except (ValueError, KeyError):
        raise UsageError(f"expected: callwright ledger settle OP WORD, with {', '.join(CLOSES)}") from None
    op_id = await ledger.commit(lambda page: _find(page, name).op_id)
    found = next((outcome for outcome in FOUND_OUT if outcome.value == word), None)
    fact = await _found_out(ledger, op_id, Observed(found, asked.reference or None)) if found else None
    for row in await ledger.outbox():
        if row.op_id == op_id and row.kind in closed:
            fact = await ledger.done(row.op_id, row.version, row.kind)
    if fact is None:
        raise UsageError(
            f"nothing of that operation waits to be {word.replace('_', ' ')}; see `callwright ledger list`"
        )
    _show([_said(fact)], asked, "settled")
    return 0


async def _found_out(ledger: Ledger, op_id: str, observed: Observed) -> FactChanged:
    """Take in what a person found out of the latest attempt. Raises LedgerError if there is none."""

    def attempts(page: Page) -> list[Attempt]:
        return page.attempts(op_id)

    tried = await ledger.commit(attempts)
    if not tried:
        raise LedgerError("nothing was ever sent of that operation, so nothing can have come of it")
    return await ledger.observe(tried[-1].provider_key, observed, Actor.HUMAN)


VERBS: Final[Mapping[str, Callable[[Ledger, Asked], Coroutine[Any, Any, int]]]] = {
    "list": _list,
    "show": _one,
    "problems": _problems,
    "reconcile": _reconcile,
    "settle": _settle,
}


def load_provider(entry: str) -> Provider:
    """The provider that ``module:name`` names. Raises UsageError."""
    module, _, name = entry.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    expected = f"--provider {entry}: expected MODULE:NAME of a provider"
    if not module or not name:
        raise UsageError(expected)
    try:
        provider: Provider | None = getattr(imported(module), name, None)
    except UsageError as problem:
        raise UsageError(f"{expected}; {problem}") from problem
    absent = [part for part in _PROVIDER if not hasattr(provider, part)]
    if provider is None or absent:
        raise UsageError(f"{expected}; what is there has no {', '.join(absent)}")
    return provider


def _only(asked: Asked, usage: str) -> str:
    if len(asked.names) != 1:
        raise UsageError(f"expected: callwright ledger {usage}")
    return asked.names[0]


def _find(page: Page, name: str) -> Operation:
    """The operation whose id begins so. Raises UsageError if there is none, or more than one."""
    found = [operation for operation in page.tx.find(Operation) if name and operation.op_id.startswith(name)]
    if len(found) != 1:
        raise UsageError(f"{len(found) or 'no'} operations begin with {name!r}; `callwright ledger list` names them")
    return found[0]


def _line(page: Page, operation: Operation) -> Row:
    owed = page.tx.find(Outbox, op_id=operation.op_id, done_at_ms=None)
    return {
        "op_id": operation.op_id,
        "kind": operation.kind,
        "subject": operation.subject,
        "slot": operation.slot,
        "party": operation.party,
        "state": operation.state.value,
        "owed": ", ".join(row.kind for row in owed),
        "sentence": fact_of(operation).sentence,
    }


def _said(fact: FactChanged) -> Row:
    return {"op_id": fact.op_id, "state": fact.milestone, "sentence": fact.sentence}


def _plain(row: Any) -> Row:
    """A row of a table, without what nobody has to see."""
    values = {name: value for name, value in asdict(row).items() if name not in (*_KEPT_BACK, "op_id")}
    return {name: value.value if isinstance(value, Enum) else value for name, value in values.items()}


def _show(rows: Sequence[Row], asked: Asked, title: str) -> None:
    """Rows as a table, with ids cut to what names them and instants as times, or as JSON lines."""
    if asked.is_json:
        for row in rows:
            click.echo(json.dumps(row))
        return
    if not rows:
        click.echo(f"{title}: none")
        return
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in rows[0]:
        is_instant = name.endswith(_INSTANT)
        table.add_column(name.replace(_INSTANT, "at (UTC)"), overflow="fold", no_wrap=is_instant)
    for row in rows:
        table.add_row(*(_cell(name, value) for name, value in row.items()))
    Console(highlight=False, emoji=False, markup=False, soft_wrap=False).print(table)


def _cell(name: str, value: object) -> str:
    if isinstance(value, int) and name.endswith(_INSTANT):
        return f"{datetime.fromtimestamp(value / 1000, UTC):%Y-%m-%d %H:%M:%S}"
    text = "" if value is None else str(value)
    return text[:_SHORT_ID] if name in _IDS else text

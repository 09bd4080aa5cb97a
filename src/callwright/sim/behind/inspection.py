"""What became of a run, held together: the provider's book, the ledger's rows, and all that was kept of its calls.

| | is compared |
|---|---|
| I1 - I10, I22 | the provider's book with the record: see ``callwright.sim.provider.oracle`` |
| I3, I5, I6, I7, I12 | the record with itself: see ``callwright.ledger.audit`` |
| I13 | all that was kept with what card numbers look like, in figures or in words |

Nothing here knows what was planned in the run, so it holds of every run.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from callwright.claims.cards import is_card_number, without_spoken_cards
from callwright.ledger.rows import Attempt, Authorization, Operation, Row, read_terms
from callwright.ledger.saying import fact_of
from callwright.sim.models import SystemNote, ToolAnswered

if TYPE_CHECKING:
    from callwright.core.transcript import Turn
    from callwright.ledger.provider import Traits
    from callwright.sim.behind.backend import Books
    from callwright.sim.models import HistoryItem
    from callwright.sim.provider import oracle

_DIGITS: Final = re.compile(r"\d+")
_RUN: Final = re.compile(r"\d(?:[ .\-]?\d){12,}")
_NAME: Final = re.compile(r"\b(?:[a-z]+_[0-9a-f]{8,}|[0-9a-z]{32,})\b")
"""An item's id, or a hash: its digits are chance."""


def broken_invariants(books: Books, traits: Traits, *, is_over: bool) -> tuple[str, ...]:
    """What does not agree between provider and record, each as ``I5: what``; ``is_over`` if nothing is under way."""
    from callwright.sim.provider import oracle  # only where needed: it brings an HTTP client

    record = oracle.Record(
        grants=tuple(_grants(books)),
        attempts=tuple(oracle.Attempt(each.provider_key, each.opened_at_ms) for each in books.attempts),
        claims=tuple(claim_of(each, books.attempts) for each in books.operations),
    )
    found = oracle.check(books.book, record, traits, healed=is_over)
    return (*(f"{each.invariant}: {each.what}" for each in found), *(f"record: {what}" for what in books.problems))


def claim_of(operation: Operation, attempts: Iterable[Attempt]) -> oracle.Claim:
    """What the record says of an operation, with the provider's reference of its latest attempt for these terms."""
    from callwright.sim.provider import oracle

    terms = operation.terms
    own = [each for each in attempts if (each.op_id, each.params_hash) == (operation.op_id, operation.params_hash)]
    return oracle.Claim(
        operation.op_id,
        operation.subject,
        operation.slot,
        operation.state.value,
        terms.amount,
        terms.card.token if terms.card else None,
        own[-1].reference if own else None,
        bool(operation.escalated),
        operation.kind,
    )


def _grants(books: Books) -> Iterator[oracle.Grant]:
    """What leave was given for, and when: the terms are those of the attempts that were made on it."""
    from callwright.sim.provider import oracle

    operations = {each.op_id: each for each in books.operations}
    given_ms = {(each.op_id, each.seq): each.at_ms for each in books.events}
    for leave in books.authorizations:
        operation = operations[leave.op_id]
        terms = read_terms(_terms_json(leave, operation, books.attempts))
        yield oracle.Grant(
            given_ms[leave.op_id, leave.version],
            operation.op_id,
            operation.subject,
            operation.slot,
            terms.amount,
            terms.card.token if terms.card else None,
            operation.kind,
        )


def _terms_json(leave: Authorization, operation: Operation, attempts: Iterable[Attempt]) -> str:
    of_leave = (leave.op_id, leave.rev, leave.params_hash)
    return next(
        (each.terms_json for each in attempts if (each.op_id, each.rev, each.params_hash) == of_leave),
        operation.terms_json,
    )


# --- card numbers


def kept_texts(
    books: Books | None, trace: bytes, turns: Sequence[Turn], history: Sequence[HistoryItem]
) -> dict[str, list[str]]:
    """All words that were kept, or told to the model, by the place where they are."""
    return {
        **(_columns(books.rows) if books else {}),
        "the record's sentences": [fact_of(each).sentence for each in books.operations] if books else [],
        "the trace": list(_without_names(list(map(json.loads, trace.splitlines())))),
        "the transcript as heard": [" ".join(turn.heard for turn in turns)],
        "the transcript as written": [" ".join(turn.written for turn in turns)],
        "the tools' outputs": [item.output for item in history if isinstance(item, ToolAnswered)],
        "the notes": [item.text for item in history if isinstance(item, SystemNote)],
    }


def card_numbers(places: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The places where a card number is kept, as ``I13: where``; the number itself is not told."""
    return tuple(f"I13: a card number is in {place}" for place, texts in places.items() if any(map(_has_card, texts)))


def _has_card(text: str) -> bool:
    text = _NAME.sub("", text)
    return any(_is_card(run[0]) for run in _RUN.finditer(text)) or without_spoken_cards([text]) != [text]


def _is_card(run: str) -> bool:
    """Whether some of the groups of digits in a row are a card number."""
    groups = _DIGITS.findall(run)
    spans = ((first, last) for last in range(1, len(groups) + 1) for first in range(last))
    return any(is_card_number("".join(groups[first:last])) for first, last in spans)


def _columns(rows: Iterable[Row]) -> dict[str, list[str]]:
    """The texts of the ledger's tables by column."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for column in dataclasses.fields(row):
            value = getattr(row, column.name)
            if type(value) is str:
                found.setdefault(f"the ledger's {type(row).__name__.lower()}.{column.name}", []).append(value)
    return found


def _without_names(rows: list[object]) -> Iterator[str]:
    """The texts of a trace, but for the names of its items, responses and calls: a server makes them up of anything."""
    names = sorted({name for name in _names(rows) if _has_card(name)}, key=len, reverse=True)
    for text in _strings(rows):
        for name in names:
            text = text.replace(name, "")
        yield text


def _names(value: object) -> Iterator[str]:
    """What stands in fields whose own name ends in ``_id``, or that tell behind which item another one stands."""
    if isinstance(value, list):
        for each in value:
            yield from _names(each)
    elif isinstance(value, dict):
        for field, each in value.items():
            if isinstance(each, str) and (field.endswith("_id") or field == "after"):
                yield each
            else:
                yield from _names(each)


def _strings(value: object) -> Iterator[str]:
    """The texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)

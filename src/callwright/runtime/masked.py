"""A trace without the numbers and names of its call, which the core decides on as before.

```
"Refund order 4417 to my Visa, thirty-two dollars, Mr Okafor."     {"amount_minor": 3200, "last4": "4242"}
"Refund order 7713 to my Visa, sixty-five dollars, Mr Aaaaaa."     {"amount_minor": 6500, "last4": "7575"}
```

Each digit from 2 to 9 becomes another one, the same everywhere: in figures, in words and in the facts of the record, so
that what was told, and what was told wrongly, is so still. 0 and 1 stay, or "ten" and "a hundred" would be lost. Which
digit becomes which follows from the trace itself. This hides a number from a reader; whoever knows one of a call's
numbers can work out others. Card numbers are masked for good before anything is written.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from callwright.claims.cards import without_cards
from callwright.core.session import CallPlan, Session
from callwright.runtime.head import read_plan
from callwright.runtime.kept import WORDS, notices_of, withheld
from callwright.runtime.replay import Row, as_written, event_of, led_to, read_trace, steps
from callwright.runtime.trace import without_figures

_DIGITS: Final = "23456789"
_ONES: Final = ("two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS: Final = ("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMBER: Final = re.compile(rf"\b(?:{'|'.join((*_ONES, *_TEENS, *_TENS))})\b", re.IGNORECASE)
_ESCAPED: Final = re.compile(r"(\\u[0-9a-fA-F]{4})")
_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_LETTER: Final = re.compile(r"[^\W\d_]")
_CONTENTS: Final = ("on", "do", "note")
_NOTICES: Final = ("ai_notice", "recording_notice")
_COUNTS: Final = {"ReportProgress": "heard", "ReportStopped": "heard", "RestateItem": "words"}
"""What commands count of the words, which are estimated by their lengths where nobody told of them."""


def mask_trace(trace: bytes, name: str = "trace", hide: Sequence[str] = ()) -> bytes:
    """A trace with other digits, and without the words to ``hide``. Raises UsageError for what is no trace of ours."""
    _, rows = read_trace(trace, name)
    mask = _Mask(trace, hide)
    head = _head(trace)
    plan = head[2]["plan"]
    plan.update({field: mask.text(plan[field]) for field in _NOTICES if field in plan})
    for row in rows:
        if row.kind in _CONTENTS:
            for field in WORDS.get(row.name, ()):
                value = row.content.get(field)
                row.content[field] = mask.facts(value) if field == "facts" else mask.text(value)
    _say_again(read_plan(plan), rows, name)
    return _lines(head, rows)


def without_words(trace: bytes, name: str = "trace") -> bytes:
    """A trace with lengths in place of words, as of a call of which none may be kept. Raises UsageError."""
    plan, rows = read_trace(trace, name)
    for row in rows:
        if row.kind in _CONTENTS:
            withheld(row.name, row.content, notices_of(plan))
    return _lines(_head(trace), rows)


def _say_again(plan: CallPlan, rows: Sequence[Row], name: str) -> None:
    """Let the commands have the words that the core finds for the masked events: it puts numbers of its own in, too.

    Where it asks for something else, what was recorded stays, and a replay shows it.
    """
    session = Session(plan)
    for step in steps(rows, name):
        event = event_of(step.event, name, plan)
        commands = led_to(session, event, step.event.at_ms) if event else None
        if not isinstance(commands, list):
            return
        for row, command in zip(step.commands, commands, strict=False):
            if row.name == type(command).__name__:
                words = as_written(without_figures(command))
                counted = [_COUNTS[row.name]] if row.name in _COUNTS else []
                row.content.update({field: words[field] for field in (*_said(row), *counted)})


def _said(row: Row) -> list[str]:
    """The fields of a command that hold words, and not their length."""
    return [field for field in WORDS.get(row.name, ()) if isinstance(row.content.get(field), str)]


class _Mask:
    """What becomes of the texts of one trace."""

    def __init__(self, trace: bytes, hide: Sequence[str]) -> None:
        digits = _others(trace)
        self._digits = str.maketrans(_DIGITS, digits)
        self._numbers = {
            words[at]: words[_DIGITS.index(other)]
            for words in (_ONES, _TEENS, _TENS)
            for at, other in enumerate(digits)
        }
        self._letters = {word.lower(): chr(ord("a") + number % 26) for number, word in enumerate(hide)}
        names = "|".join(re.escape(word) for word in sorted(hide, key=len, reverse=True))
        self._hidden = re.compile(rf"\b(?:{names})\b", re.IGNORECASE) if hide else None

    def text(self, text: Any) -> Any:
        """A text, masked; what is no text, as a length in its place, stays."""
        if not isinstance(text, str):
            return text
        if self._hidden:
            text = self._hidden.sub(lambda found: _with_letter(found[0], self._letters[found[0].lower()]), text)
        text = _EMAIL.sub(lambda found: _with_letter(found[0], "x"), text)
        text = _NUMBER.sub(lambda found: _in_case(found[0], self._numbers[found[0].lower()]), text)
        parts = _ESCAPED.split(text)
        return without_cards("".join(part if at % 2 else part.translate(self._digits) for at, part in enumerate(parts)))

    def facts(self, facts: Any) -> Any:
        """What is on record of an operation, masked alike."""
        if "kind" not in facts:
            return facts
        amount = facts["amount_minor"]
        return {
            **facts,
            "amount_minor": None if amount is None else int(str(amount).translate(self._digits)),
            "last4": self.text(facts["last4"]),
            "subject": self.text(facts["subject"]),
            "texts": [[field, self.text(value)] for field, value in facts["texts"]],
        }


def _others(trace: bytes) -> str:
    """What the digits from 2 to 9 become: one cycle through all of them, so that none stays what it is."""
    digits = list(_DIGITS)
    for at, byte in zip(range(len(digits) - 1, 0, -1), hashlib.sha256(trace).digest(), strict=False):
        digits[at], digits[byte % at] = digits[byte % at], digits[at]
    return "".join(digits)


def _with_letter(word: str, letter: str) -> str:
    """A word with this letter in place of each of its own, large where that was."""
    return _LETTER.sub(lambda found: letter.upper() if found[0].isupper() else letter, word)


def _in_case(word: str, other: str) -> str:
    """Another word, large or small as the word is."""
    return other.upper() if word.isupper() else other.capitalize() if word[0].isupper() else other


def _head(trace: bytes) -> list[Any]:
    head: list[Any] = msgspec.json.decode(trace.splitlines()[0])
    head[2]["masked"] = True
    return head


def _lines(head: object, rows: Sequence[Row]) -> bytes:
    told = ([row.at_ms, row.kind, *([row.name] if row.name else []), row.content] for row in rows)
    return b"".join(msgspec.json.encode(row) + b"\n" for row in (head, *told))

"""The troubleshooting page and what is raised stay in step: no message without advice, no advice for none."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

from callwright import errors
from callwright.runtime.endpoint import _REFUSALS, Endpoint

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "how-to" / "troubleshooting.md"
RAISED = (
    "ConnectionFailed",
    "LineFailed",
    "LedgerError",
    "AudioFormatError",
    "LocalProtocolError",
    "RemoteProtocolError",
    "DeadlockError",
    "OutsideWorldError",
    "ScriptError",
)
"""Errors whose messages have a row each; what else is raised has too many, and says itself what to do."""
SECTIONS = {**{name: name for name in RAISED}, "Ending": "How a call ended"}
"""Which section of the page has the messages of what."""
PROSE = re.compile(r"[a-z]{3,}")
WITHIN = {"no connection": "core/renewal.py", "connection closed: …": "core/renewal.py"}
"""Words that are put together where they are used, with the file that has them."""


def page() -> str:
    return PAGE.read_text("utf-8")


@cache
def section(title: str) -> tuple[str, ...]:
    """The words that a section of the page has rows for."""
    text = re.split(rf"^#+ {re.escape(title)}$", page(), flags=re.MULTILINE)[1]
    rows = re.findall(r"^\| `([^`]+)` \|", re.split(r"^#+ ", text, flags=re.MULTILINE)[0], flags=re.MULTILINE)
    return tuple(rows)


def written(node: ast.expr) -> str:
    """The words of a message as they stand in the code, with … for what is put in."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.FormattedValue():
            return "…"
    return "".join(written(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))


@cache
def messages() -> tuple[tuple[str, str, str], ...]:
    """Every message with words of its own that the code makes: what of, where, and how it reads."""
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text("utf-8")
        if not any(f"{name}(" in text for name in SECTIONS):
            continue
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(func=ast.Name(id=name), args=[*_, message]) if name in SECTIONS:
                    if PROSE.search(words := written(message)):
                        found.append((name, f"{path.relative_to(ROOT)}:{node.lineno}", words))
    statuses = (*_REFUSALS, 302, 418, 503)
    told = [str(Endpoint("ws://model.test/").refused(status)) for status in statuses]
    return (*found, *(("ConnectionFailed", "runtime/endpoint.py", words) for words in told))


def of(name: str) -> list[str]:
    return [words for kind, _, words in messages() if kind == name]


def test_every_message_has_advice() -> None:
    """A message that is put together elsewhere has no words of its own, and is looked for where it is put together."""
    lacking = [
        (name, place, words)
        for name, place, words in messages()
        if not any(row in words for row in section(SECTIONS[name]))
    ]
    assert not lacking


@pytest.mark.parametrize("name", SECTIONS)
def test_no_advice_is_for_a_message_that_is_not_made(name: str) -> None:
    stale = [row for row in section(SECTIONS[name]) if not any(row in words for words in of(name))]
    for row in list(stale):
        if row in WITHIN and row.rstrip("…") in (ROOT / "src" / "callwright" / WITHIN[row]).read_text("utf-8"):
            stale.remove(row)
    assert not stale


def test_every_error_is_named() -> None:
    classes = [name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)]
    assert not [name for name in classes if f"`{name}`" not in page() and name not in SECTIONS]


def test_the_checks_can_fail() -> None:
    assert written(ast.parse('f"{a}: no {b!r}" " way"', mode="eval").body) == "…: no … way"
    assert len(of("ConnectionFailed")) > len(_REFUSALS)
    assert len(section("LedgerError")) > 5
    assert "HTTP 401" in section("ConnectionFailed")

"""The documentation is part of the product: what is public is written down, and what is written down works."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from functools import lru_cache
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
PUBLIC_MODULES = ("callwright", "callwright.testing")

FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def broken_links(page: Path, text: str) -> list[str]:
    """Links of a page's text that lead to no file below the root, or to no heading of it. The web is not asked."""
    return [link for link in LINK.findall(FENCE.sub("", text)) if "://" not in link and not leads_somewhere(page, link)]


def leads_somewhere(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    if not target.is_relative_to(ROOT) or not target.exists():
        return False
    return not anchor or anchor in anchors(target)


def anchors(page: Path) -> list[str]:
    headings = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return [re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings]


def uncompilable(text: str) -> list[str]:
    """The ``python`` fences of a page's text that are not Python; ``await`` may stand at the top."""
    wrong = []
    for language, code in FENCE.findall(text):
        if language == "python":
            try:
                compile(code, "fence", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            except SyntaxError as error:
                wrong.append(f"{error.msg}, line {error.lineno} of\n{code}")
    return wrong


def mentions(text: str, name: str) -> bool:
    """A name counts as written down in code style, alone or with its module before it."""
    return re.search(rf"(?:`|\bcw\.|\bcallwright\.|\btesting\.){re.escape(name)}\b", text) is not None


@lru_cache
def reference() -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in sorted((DOCS / "reference").rglob("*.md")))


def public_names() -> list[tuple[str, str]]:
    return [
        (module, name)
        for module in PUBLIC_MODULES
        for name in getattr(importlib.import_module(module), "__all__", ())
        if not name.startswith("__")
    ]


def commands() -> dict[str, list[str]]:
    """Each visible command with its long options."""
    group = importlib.import_module("callwright.cli.main").main
    context = group.make_context("callwright", [], resilient_parsing=True)
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: long_options(command) for name, command in found.items() if not command.hidden}


def long_options(command: click.Command) -> list[str]:
    parts = [command, *(command.commands.values() if isinstance(command, click.Group) else ())]
    params = [param for part in parts for param in part.params]
    shown = [option for option in params if isinstance(option, click.Option) and not option.hidden]
    return [name for option in shown for name in (*option.opts, *option.secondary_opts) if name.startswith("--")]


def test_every_public_name_is_in_the_reference() -> None:
    assert not [f"{module}.{name}" for module, name in public_names() if not mentions(reference(), name)]


def test_every_command_and_option_is_in_the_reference() -> None:
    assert not [name for name in commands() if not mentions(reference(), f"callwright {name}")]
    options = {option for listed in commands().values() for option in listed}
    assert not [option for option in sorted(options) if not mentions(reference(), option)]


def test_the_reference_names_no_command_or_option_that_is_not_there() -> None:
    page = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    options = {option for listed in commands().values() for option in listed} | {"--help"}
    assert not sorted(set(re.findall(r"`callwright ([a-z]+)", page)) - set(commands()))
    assert not sorted(set(re.findall(r"`(--[a-z-]+)", page)) - options)


def test_completion_shows_every_public_name_and_no_other() -> None:
    """What an interpreter offers behind ``callwright.`` is what ``__all__`` says."""
    package = importlib.import_module("callwright")
    assert dir(package) == sorted(package.__all__)


def test_every_public_name_has_a_docstring() -> None:
    """A constant counts as described by its type; a class or function says for itself what it is."""
    undescribed = []
    for module, name in public_names():
        value = getattr(importlib.import_module(module), name)
        if callable(value) and not (value.__doc__ or "").strip():
            undescribed.append(f"{module}.{name}")
    assert not undescribed


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert not broken_links(page, page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_python_fence_compiles(page: Path) -> None:
    assert not uncompilable(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=relative)
def test_every_page_is_reached_from_the_index(page: Path) -> None:
    index = DOCS / "index.md"
    linked = [
        (index.parent / link.partition("#")[0]).resolve() for link in LINK.findall(index.read_text(encoding="utf-8"))
    ]
    assert page == index or page in linked


def test_the_readme_names_the_two_commands_to_begin_with() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme


def test_the_checks_can_fail() -> None:
    page = DOCS / "index.md"
    assert broken_links(page, "[a](nowhere.md) [b](glossary.md#no-such-heading) [c](../../outside.md)")
    assert uncompilable("```python\ndef (\n```\n")
    assert not uncompilable("```python\nawait f()\n```\n```text\ndef (\n```\n")
    assert not mentions("to run it", "run")
    assert mentions("use `cw.run` for it", "run")
    assert mentions("`callwright call NAME`", "callwright call")

"""Reading a YAML file so that every mistake in it is told with file, line and column.

A `Field` is one value of a file together with its place and its name. Whoever reads a file asks its fields for what
he expects; a field that holds something else raises `ScenarioError`:

    refunds.yaml:4:9: line.kind: expected one of phone, speaker; got "phnoe"; did you mean "phone"?
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from callwright.errors import ScenarioError
from callwright.sim.advice import did_you_mean, one_of

Scalar: TypeAlias = str | int | float | bool | None

_MAX_BYTES = 1 << 20
_MAX_DEPTH = 32
"""How deep lists and mappings may stand in one another."""


@dataclass(frozen=True, slots=True)
class Field:
    """A value in a YAML file: where it is, what it is called, what it holds."""

    file: str
    name: str
    """Keys from the top down to this value, with dots between; empty for the file itself."""
    node: yaml.Node

    @property
    def place(self) -> str:
        """``file:line:column``, counted from 1."""
        return _place(self.file, self.node.start_mark)

    def error(self, problem: str) -> ScenarioError:
        """The error to raise about this value."""
        return ScenarioError(f"{self.place}: {self.name}: {problem}" if self.name else f"{self.place}: {problem}")

    def expected(self, what: str) -> ScenarioError:
        """The error for a value that is something else than ``what``."""
        return self.error(f"expected {what}; got {self._shown()}")

    def expected_unquoted(self, what: str) -> ScenarioError:
        """The error for a value that is something else than ``what``, which is written without quotes."""
        is_quoted = isinstance(self.node, yaml.ScalarNode) and self.node.style in ("'", '"') and _is_plain(self.node)
        return self.error(f"expected {what}; got {self._shown()}{', a text: drop the quotes' if is_quoted else ''}")

    def mapping(self, allowed: Collection[str] | None = None, required: Iterable[str] = ()) -> dict[str, Field]:
        """The values of a mapping by key, in order; ``allowed`` of None takes any key."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.expected("a mapping")
        fields: dict[str, Field] = {}
        for key_node, value in self.node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else ""
            at_key = Field(self.file, self.name, key_node)
            if allowed is not None and key not in allowed:
                near = did_you_mean(key, allowed)
                raise at_key.error(f"expected {one_of(allowed, key)}; got {at_key._shown()}{near}")
            if key in fields:
                raise at_key.error(f"expected every key once; got a second {at_key._shown()}")
            fields[key] = Field(self.file, f"{self.name}.{key}" if self.name else key, value)
        for key in required:
            if key not in fields:
                raise self.error(f"expected a key {key!r}, which is missing here")
        return fields

    @property
    def is_sequence(self) -> bool:
        """Whether this is a list."""
        return isinstance(self.node, yaml.SequenceNode)

    def sequence(self, least: int = 0) -> list[Field]:
        """The values of a list of at least so many, in order; they are named by their number, from 1."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.expected("a list")
        if len(self.node.value) < least:
            raise self.error(f"expected a list of at least {least}; got {len(self.node.value) or 'none'}")
        return [Field(self.file, f"{self.name} {n}", node) for n, node in enumerate(self.node.value, 1)]

    def scalar(self) -> Scalar:
        """A text, number, truth value or null, as YAML reads it."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.expected("a single value")
        value = _scalar(self.node)
        if not isinstance(value, (str, int, float, bool, type(None))):
            raise self.expected("a text, number or truth value (quote it if it is a text)")
        return value

    def data(self) -> Scalar | list[object]:
        """A single value, or a list of them."""
        if isinstance(self.node, yaml.SequenceNode):
            return [field.data() for field in self.sequence()]
        return self.scalar()

    def text(self) -> str:
        """A text that is not empty."""
        value = self.scalar()
        if not isinstance(value, str) or not value.strip():
            raise self.expected("a text")
        return value

    def whole(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``."""
        value = self.scalar()
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.expected_unquoted(f"a whole number from {low} to {high}")
        return value

    def number(self) -> float:
        """A number."""
        value = self.scalar()
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not isfinite(value):
            raise self.expected_unquoted("a number")
        return value

    def share(self) -> float:
        """A number from 0 to 1, also written as a fraction (``5/7``)."""
        try:
            value = float(Fraction(str(self.scalar())))
        except (ValueError, ZeroDivisionError):
            value = -1.0
        if not 0.0 <= value <= 1.0:
            raise self.expected("a number from 0 to 1 or a fraction such as 5/7")
        return value

    def flag(self) -> bool:
        """True or false."""
        value = self.scalar()
        if not isinstance(value, bool):
            raise self.expected_unquoted("true or false")
        return value

    def choice(self, options: Collection[str]) -> str:
        """One of ``options``."""
        value = self.scalar()
        if not isinstance(value, str) or value not in options:
            near = did_you_mean(str(value), options)
            raise self.error(f"expected {one_of(options, str(value))}; got {self._shown()}{near}")
        return value

    def _shown(self) -> str:
        if isinstance(self.node, yaml.ScalarNode):
            return f'"{self.node.value}"'
        if not isinstance(self.node, yaml.SequenceNode):
            return "a mapping"
        if len(self.node.value) > 3 or not all(isinstance(node, yaml.ScalarNode) for node in self.node.value):
            return "a list"
        return f"[{', '.join(node.value for node in self.node.value)}]"


class _Loader(yaml.SafeLoader):
    """Refuses what is nested too deep or contains itself, where it stands."""

    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self._open: list[str | None] = []
        """The anchors of the values that are being read, from the outermost in."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """The next value. Raises MarkedYAMLError."""
        peek: Callable[[], Any] = self.peek_event
        event = peek()
        mark: Any = event.start_mark
        if isinstance(event, yaml.AliasEvent) and event.anchor in self._open:
            raise yaml.MarkedYAMLError(problem="a value cannot contain itself", problem_mark=mark)
        if len(self._open) >= _MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem=f"at most {_MAX_DEPTH} levels", problem_mark=mark)
        self._open.append(getattr(event, "anchor", None))
        node = super().compose_node(parent, index)
        self._open.pop()
        return node


def read_yaml(path: Path) -> Field:
    """The one document of a YAML file.

    Raises ScenarioError when the file can't be read, is over 1 MiB, nested too deep, or not YAML.
    """
    name = str(path)
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise ScenarioError(f"{name}: expected a file that can be read; got: {problem.strerror}") from problem
    if len(data) > _MAX_BYTES:
        raise ScenarioError(f"{name}:1:1: expected at most {_MAX_BYTES} bytes; got {len(data)}")
    try:
        node = _composed(data)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        place = _place(name, mark) if mark else f"{name}:1:1"
        raise ScenarioError(f"{place}: expected YAML; {problem.problem}") from problem
    except yaml.YAMLError as problem:
        raise ScenarioError(f"{name}:1:1: expected YAML in UTF-8; {problem}") from problem
    if node is None:
        raise ScenarioError(f"{name}:1:1: expected a mapping; got an empty file")
    return Field(name, "", node)


@lru_cache(64)  # one call reads its rules more than once, many calls read the same files
def _composed(data: bytes) -> yaml.Node | None:
    node: yaml.Node | None = yaml.compose(data, Loader=_Loader)
    return node


def read_typed(text: str, source: str, first: str, lists: Collection[str] = ()) -> Field:
    """The mapping that is typed as ``KEY=VALUE,KEY=VALUE``; the values of ``lists`` have a plus between theirs.

    A value without a key is that of ``first``. ``source`` is named in mistakes, with the place in the text.
    """
    pairs, at = [], 0
    for part in text.split(","):
        key, is_named, value = part.partition("=")
        key, value = (key, value) if is_named else (first, key)
        mark = yaml.Mark(source, at, 0, at, None, 0)
        at += len(part) + 1
        nodes = [_scalar_node(each, mark) for each in value.split("+")]
        pairs.append((_scalar_node(key, mark), yaml.SequenceNode("", nodes, mark) if key in lists else nodes[0]))
    return Field(source, "", yaml.MappingNode("", pairs, yaml.Mark(source, 0, 0, 0, None, 0)))


def _scalar_node(text: str, mark: yaml.Mark) -> yaml.ScalarNode:
    return yaml.ScalarNode(f"tag:yaml.org,2002:{'int' if text.isdecimal() else 'str'}", text, mark)


def _place(file: str, mark: yaml.Mark) -> str:
    return f"{file}:{mark.line + 1}:{mark.column + 1}"


def _is_plain(node: yaml.ScalarNode) -> bool:
    """Whether this text would be a number or truth value without its quotes."""
    return bool(re.fullmatch(r"[-+]?\d+(\.\d+)?|true|false", node.value))


def _scalar(node: yaml.ScalarNode) -> object:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node)
    except ValueError:
        return node.value  # such as 2026-99-99, which only looks like a date
    except (yaml.YAMLError, LookupError, AttributeError):
        return node  # its tag is unknown, or does not fit
    finally:
        loader.dispose()

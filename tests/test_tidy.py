"""House rules that no linter knows, kept over the whole tree.

A rule reads one parsed file and yields what it finds. Each rule carries snippets that it must refuse and one that it
must let pass, so a check that has stopped working fails here as well.
"""

from __future__ import annotations

import ast
import gc
import io
import re
import tokenize
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SRC = "src/callwright"
EVERYWHERE = ("bench", "scripts", "src", "tests")
PURE = tuple(f"{SRC}/{room}" for room in ("audio", "claims", "core", "measure", "wire"))

FUNCTION_LINES = 70
FILE_LINES = 600
MACHINE_LINES = 400
CLASS_ATTRIBUTES = 15
CLASS_BOOLEANS = 2

Finding = tuple[int, str]
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file: its path below the root, its text and, when asked for, its tree."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """It is kept, and so are all others: the garbage collector would look through them again and again."""
        gc.disable()
        try:
            return ast.parse(self.text)
        finally:
            gc.freeze()
            gc.enable()

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    def comments(self, pattern: str) -> Iterator[tuple[int, re.Match[str]]]:
        """Where a comment holds the pattern. Few files hold it anywhere, and only those are read token by token."""
        if re.search(pattern, self.text):
            for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
                if token.type == tokenize.COMMENT and (found := re.search(pattern, token.string)):
                    yield token.start[0], found

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()


# --- Budgets ------------------------------------------------------------------------------------------------------


def long_functions(source: Source) -> Iterator[Finding]:
    for node in source.nodes:
        if isinstance(node, Function):
            length = node.end_lineno - node.lineno + 1 - docstring_lines(node)
            if length > FUNCTION_LINES:
                yield node.lineno, f"{node.name} has {length} lines without its docstring, {FUNCTION_LINES} are allowed"


def docstring_lines(node: Function) -> int:
    if ast.get_docstring(node, clean=False) is None:
        return 0
    return node.body[0].end_lineno - node.body[0].lineno + 1


def long_files(source: Source) -> Iterator[Finding]:
    limit = MACHINE_LINES if source.path.startswith(f"{SRC}/core/") else FILE_LINES
    if len(source.lines) > limit:
        yield limit, f"the file has {len(source.lines)} lines, {limit} are allowed"


def wide_classes(source: Source) -> Iterator[Finding]:
    """State is what a class assigns on ``self`` and, unless it is frozen, what it declares as a dataclass."""
    for cls in classes(source):
        names = {target.attr for target, _ in self_assignments(cls)}
        if is_mutable_dataclass(cls):
            names |= {name for name, _ in fields(cls)}
        if len(names) > CLASS_ATTRIBUTES:
            yield cls.lineno, f"{cls.name} has {len(names)} attributes, {CLASS_ATTRIBUTES} are allowed"


def many_booleans(source: Source) -> Iterator[Finding]:
    for cls in classes(source):
        names = {name for name, annotation in fields(cls) if says_bool(annotation)}
        names |= {target.attr for target, is_bool in self_assignments(cls) if is_bool}
        if len(names) > CLASS_BOOLEANS:
            listed = ", ".join(sorted(names))
            yield cls.lineno, f"{cls.name} has {len(names)} booleans ({listed}): a third becomes an enum"


def classes(source: Source) -> Iterator[ast.ClassDef]:
    return (node for node in source.nodes if isinstance(node, ast.ClassDef))


def own_nodes(cls: ast.ClassDef) -> Iterator[ast.AST]:
    """Everything below a class, without the classes inside it."""
    waiting: list[ast.AST] = list(cls.body)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.ClassDef):
            yield node
            waiting.extend(ast.iter_child_nodes(node))


@cache
def self_assignments(cls: ast.ClassDef) -> list[tuple[ast.Attribute, bool]]:
    """Each assignment to an attribute of ``self``, and whether what is assigned is seen to be a boolean."""
    nodes = list(own_nodes(cls))
    flags = {
        argument.arg
        for node in nodes
        if isinstance(node, Function)
        for argument in node.args.args + node.args.kwonlyargs
        if argument.annotation is not None and says_bool(argument.annotation)
    }
    boolean: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, ast.Assign) and is_boolean(node.value, flags):
            boolean.update(node.targets)
        elif isinstance(node, ast.AnnAssign) and says_bool(node.annotation):
            boolean.add(node.target)
    return [
        (node, node in boolean)
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_name(node.value, "self")
    ]


def is_boolean(value: ast.expr, flags: Iterable[str]) -> bool:
    match value:
        case ast.Constant(value=bool()) | ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Name(id=name):
            return name in flags
    return False


def says_bool(annotation: ast.expr) -> bool:
    match annotation:
        case ast.Name(id="bool") | ast.Constant(value="bool"):
            return True
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return says_bool(left) or says_bool(right)
    return False


def fields(cls: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    for node in cls.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.annotation


def is_mutable_dataclass(cls: ast.ClassDef) -> bool:
    for decorator in cls.decorator_list:
        if (dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)).endswith("dataclass"):
            keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
            return not any(word.arg == "frozen" and is_true(word.value) for word in keywords)
    return False


def is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def dotted(node: ast.expr) -> str:
    """``a.b.c`` of an attribute chain that begins with a name; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}" if dotted(node.value) else ""
    return node.id if isinstance(node, ast.Name) else ""


# --- Determinism --------------------------------------------------------------------------------------------------


def set_iteration(source: Source) -> Iterator[Finding]:
    """The order of a set follows addresses and hash seeds. Sorting one is fine, so is asking what is in it."""
    known = set_names(source)
    for node in source.nodes:
        match node:
            case ast.For(iter=walked) | ast.comprehension(iter=walked):
                pass
            case ast.Call(func=ast.Name(id="list" | "tuple" | "iter" | "enumerate" | "zip"), args=[walked, *_]):
                pass
            case _:
                continue
        if is_set(walked, known):
            yield walked.lineno, f"walks through a set: {ast.unparse(walked)}"


def set_names(source: Source) -> frozenset[str]:
    """Names and attributes that this file assigns a set to, or annotates as one."""
    names = set()
    for node in source.nodes:
        match node:
            case ast.Assign(targets=[target], value=value) if is_set(value, ()):
                names.add(ast.unparse(target))
            case ast.AnnAssign(target=target, annotation=annotation) if says_set(annotation):
                names.add(ast.unparse(target))
            case ast.arg(arg=name, annotation=ast.expr() as annotation) if says_set(annotation):
                names.add(name)
    return frozenset(names)


def is_set(node: ast.expr, known: Iterable[str]) -> bool:
    match node:
        case ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.BinOp(op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), left=left, right=right):
            return is_set(left, known) or is_set(right, known)
        case ast.Name() | ast.Attribute():
            return ast.unparse(node) in known
    return False


def says_set(annotation: ast.expr) -> bool:
    return re.match(r"(\w+\.)?(set|frozenset|AbstractSet|MutableSet|Set)\b", ast.unparse(annotation)) is not None


def shared_chance(source: Source) -> Iterator[Finding]:
    """Randomness comes from a generator that was handed in; a module's own is shared by everything."""
    allowed = ("random.Random", "np.random.Generator", "numpy.random.Generator")
    for node in source.nodes:
        if isinstance(node, ast.Attribute):
            name = dotted(node)
            if re.fullmatch(r"(random|np\.random|numpy\.random)\.\w+", name) and name not in allowed:
                yield node.lineno, f"{name}: use a generator that is handed in"
        elif isinstance(node, ast.ImportFrom) and node.module in ("random", "numpy.random"):
            for alias in node.names:
                if alias.name not in ("Random", "Generator"):
                    yield node.lineno, f"{node.module}.{alias.name}: use a generator that is handed in"


def wall_clock(source: Source) -> Iterator[Finding]:
    for node in calls(source):
        if re.search(r"\b(datetime|date)\.(now|utcnow|today)$", dotted(node.func)):
            yield node.lineno, f"{dotted(node.func)}: time is an argument here"


def address_order(source: Source) -> Iterator[Finding]:
    """Both gather their tasks in sets, so the order of what they wake follows addresses."""
    banned = ("TaskGroup", "wait")
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and dotted(node) in [f"asyncio.{name}" for name in banned]:
            yield node.lineno, f"{dotted(node)}: its order follows addresses"
        elif isinstance(node, ast.ImportFrom) and node.module == "asyncio":
            for alias in node.names:
                if alias.name in banned:
                    yield node.lineno, f"asyncio.{alias.name}: its order follows addresses"


def calls(source: Source) -> Iterator[ast.Call]:
    return (node for node in source.nodes if isinstance(node, ast.Call))


# --- Honesty ------------------------------------------------------------------------------------------------------


def blocking_sleep(source: Source) -> Iterator[Finding]:
    for node in source.nodes:
        if isinstance(node, ast.Call) and dotted(node.func) == "time.sleep":
            yield node.lineno, "time.sleep: wait for what is meant, not for a while"
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            for alias in node.names:
                if alias.name == "sleep":
                    yield node.lineno, "time.sleep: wait for what is meant, not for a while"


def real_sleep(source: Source) -> Iterator[Finding]:
    """``asyncio.sleep`` costs nothing in virtual time; a file that does not run in it may only yield."""
    virtual = re.search(r"^\s*from callwright\.(sim|testing)\b", source.text, re.MULTILINE)
    for node in calls(source):
        if dotted(node.func) == "asyncio.sleep" and not virtual and not yields_only(node):
            yield node.lineno, "asyncio.sleep on the wall clock"


def yields_only(node: ast.Call) -> bool:
    return [getattr(argument, "value", None) for argument in node.args] == [0]


def mocks(source: Source) -> Iterator[Finding]:
    for node in source.nodes:
        match node:
            case ast.Import(names=aliases):
                found = [alias.name for alias in aliases]
            case ast.ImportFrom(module=str() as module, names=aliases):
                found = [f"{module}.{alias.name}" for alias in aliases]
            case ast.arg(arg="mocker"):
                found = ["mock"]
            case _:
                continue
        for name in found:
            if re.match(r"(unittest\.)?mock\b", name):
                yield node.lineno, f"{name}: use the test kit's real doubles"


def swallowed_errors(source: Source) -> Iterator[Finding]:
    for node in source.nodes:
        if isinstance(node, ast.ExceptHandler) and catches_all(node.type) and all(map(does_nothing, node.body)):
            yield node.lineno, "catches everything and does nothing"


def catches_all(caught: ast.expr | None) -> bool:
    return caught is None or dotted(caught) in ("Exception", "BaseException")


def does_nothing(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Continue() | ast.Expr(value=ast.Constant()):
            return True
    return False


def unfinished(source: Source) -> Iterator[Finding]:
    for line, marker in source.comments(r"\b(TODO|FIXME|XXX|HACK)\b"):
        yield line, f"{marker[0]}: finish it, or file it where it is seen"


def bare_suppression(source: Source) -> Iterator[Finding]:
    for line, _ in source.comments(r"#\s*(type:\s*ignore(?!\[)|noqa(?!:))"):
        yield line, "a suppression without the code of what it suppresses"


def undescribed(source: Source) -> Iterator[Finding]:
    if not ast.get_docstring(source.tree):
        yield 1, "the module does not say what it owns"


# --- The rules ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """A check, the folders that it holds in, snippets that it refuses and one that it lets pass."""

    check: Callable[[Source], Iterator[Finding]]
    where: tuple[str, ...]
    refused: tuple[str, ...]
    passed: str
    but_not: tuple[str, ...] = ()

    def holds_in(self, path: str) -> bool:
        return inside(path, self.where) and not inside(path, self.but_not)


def inside(path: str, folders: tuple[str, ...]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)


def body(lines: int) -> str:
    return "    x = 1\n" * lines


def assignments(count: int, value: str = "0") -> str:
    return "class C:\n    def __init__(self):\n" + "".join(f"        self.a{n} = {value}\n" for n in range(count))


def annotated(count: int, kind: str) -> str:
    return "class C:\n" + "".join(f"    a{n}: {kind}\n" for n in range(count))


RULES = [
    Rule(long_functions, EVERYWHERE, (f"def f():\n{body(70)}",), f'def f():\n    """D.\n\n    D.\n    """\n{body(69)}'),
    Rule(long_files, EVERYWHERE, ("x = 1\n" * 601,), "x = 1\n" * 600),
    Rule(
        wide_classes,
        ("src",),
        (assignments(16), f"@dataclass(slots=True)\n{annotated(16, 'int')}"),
        f"{assignments(15)}\n@dataclass(frozen=True)\n{annotated(16, 'int')}",
    ),
    Rule(
        many_booleans,
        ("src",),
        (
            assignments(3, "False"),
            annotated(3, "bool"),
            annotated(3, "bool | None"),
            "class C:\n    def __init__(self, *, a: bool, b: int):\n"
            "        self.x = a\n        self.y = not b\n        self.z: bool = f()\n",
        ),
        f"{assignments(2, 'False')}\n{annotated(2, 'bool')}",
        but_not=(f"{SRC}/wire",),  # the fields of the wire are the provider's
    ),
    Rule(
        set_iteration,
        ("src",),
        (
            "for x in {1, 2}: pass",
            "[x for x in set(y)]",
            "seen: set[int] = set()\nlist(seen)",
            "class C:\n    def f(self):\n        self.a = set()\n        for x in self.a: pass",
            "def f(a: frozenset[str]):\n    return tuple(a)",
            "for x in a - {1}: pass",
        ),
        "seen = {1, 2}\nfor x in sorted(seen): pass\nfor x in [1, 2]: x in seen",
    ),
    Rule(
        shared_chance,
        ("src",),
        ("import random\nrandom.random()", "from random import choice", "import numpy as np\nnp.random.default_rng()"),
        "from random import Random\ndef f(rng: Random): return rng.random()",
    ),
    Rule(wall_clock, PURE, ("datetime.now()", "datetime.date.today()"), "def f(now_ms): return now_ms"),
    Rule(
        address_order,
        (f"{SRC}/runtime", f"{SRC}/sim"),
        ("asyncio.TaskGroup()", "asyncio.wait(x)", "from asyncio import TaskGroup"),
        "asyncio.wait_for(x, 1)",
    ),
    Rule(blocking_sleep, ("src", "tests"), ("time.sleep(1)", "from time import sleep"), "asyncio.sleep(0)"),
    Rule(
        real_sleep,
        ("tests",),
        ("asyncio.sleep(0.1)",),
        "from callwright.sim.vloop import run_virtual\nasyncio.sleep(5)",
    ),
    Rule(
        mocks,
        ("tests",),
        (
            "import unittest.mock",
            "from unittest import mock",
            "from unittest.mock import MagicMock",
            "def f(mocker): ...",
        ),
        "from callwright.testing import Mockingbird",
    ),
    Rule(
        swallowed_errors,
        EVERYWHERE,
        ("try:\n    f()\nexcept Exception:\n    pass", "for x in y:\n    try: f()\n    except: continue"),
        "try:\n    f()\nexcept ValueError:\n    pass",
    ),
    Rule(unfinished, EVERYWHERE, ("x = 1  # TODO later",), "x = '# TODO later'"),
    Rule(
        bare_suppression,
        EVERYWHERE,
        ("x = 1  # type: ignore", "x = 1  # noqa"),
        "x = 1  # type: ignore[misc]  # noqa: E501",
    ),
    Rule(undescribed, ("src",), ("x = 1",), '"""What it owns."""'),
]


@cache
def sources() -> list[Source]:
    paths = sorted(path for folder in EVERYWHERE for path in (ROOT / folder).rglob("*.py"))
    return [Source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def rule_name(rule: Rule) -> str:
    return rule.check.__name__


@pytest.mark.parametrize("rule", RULES, ids=rule_name)
def test_the_tree_has_no(rule: Rule) -> None:
    kept = [source for source in sources() if rule.holds_in(source.path)]
    found = [f"{source.path}:{line}: {what}" for source in kept for line, what in rule.check(source)]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("rule", RULES, ids=rule_name)
def test_the_check_refuses_and_passes(rule: Rule) -> None:
    for snippet in rule.refused:
        assert list(rule.check(Source("snippet.py", snippet))), snippet
    assert not list(rule.check(Source("snippet.py", rule.passed)))


def test_a_machine_has_a_smaller_file_budget() -> None:
    assert list(long_files(Source(f"{SRC}/core/turns.py", "x = 1\n" * 401)))


def test_a_rule_holds_in_its_folders_only() -> None:
    by_name = {rule_name(rule): rule for rule in RULES}
    assert by_name["address_order"].holds_in(f"{SRC}/sim/vloop.py")
    assert not by_name["address_order"].holds_in(f"{SRC}/simple/vloop.py")
    assert not by_name["many_booleans"].holds_in(f"{SRC}/wire/server.py")


# --- The lock -----------------------------------------------------------------------------------------------------


def test_the_lock_names_no_address_and_hashes_everything() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index" not in text
    entries = [entry for entry in text.replace("\\\n", " ").splitlines() if not entry.startswith("#")]
    assert entries
    assert not [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry]


def test_the_lock_covers_every_declared_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = project["project"]["dependencies"] + [
        name for group in project["dependency-groups"].values() for name in group if isinstance(name, str)
    ]  # the others are groups that a group includes
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8").lower()
    locked = re.findall(r"^([\w.-]+)==", text, re.MULTILINE)
    names = [re.match(r"[\w.-]+", entry)[0].lower().replace("_", "-") for entry in declared]
    assert not [name for name in names if name not in locked]

"""A tool is what its signature says, and whatever cannot be one is refused with its place and what to do."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from textwrap import indent
from typing import Annotated, Any, Literal, Optional

import jsonschema
import msgspec
import pytest

import callwright as cw
from callwright.declare.tools import Tool

FUTURE = "from __future__ import annotations"
HEAD = """
import enum
from typing import Annotated, Any, Literal, Optional
import callwright as cw
desk = cw.Agent("desk", model=cw.polyai(), instructions="Be brief.")
class Colour(enum.Enum):
    RED = "red"
"""
PLACE = "desk.py:9: "
"""Where the function of every snippet below stands: behind the head, at its decorator."""


def declare(function: str, first_line: str = "") -> Mapping[str, Tool]:
    """The tools of a module that declares this one; the first line of the module is given."""
    namespace: dict[str, Any] = {"__name__": "desk"}
    source = f"{first_line}{HEAD}\n{function}\n"
    exec(compile(source, "desk.py", "exec", dont_inherit=True), namespace)
    tools: Mapping[str, Tool] = namespace["desk"].tools
    return tools


def tool(arguments: str, *, head: str = "async def", doc: str = '"""Look."""', call: str = "") -> str:
    return f"@desk.tool{call}\n{head} look({arguments}) -> str:\n    {doc}\n    return ''"


CTX = "ctx: cw.Context[None]"
PLAIN = "is none of str, int, float, bool, Literal[...], list[...] and X | None of these"

REFUSED: Mapping[str, tuple[str, str]] = {
    "spoken with a default": (
        tool(f"{CTX}, say: cw.Spoken = cw.Spoken('hm')"),
        "'say' of tool look: a spoken argument",
    ),
    "optional spoken": (tool(f"{CTX}, say: cw.Spoken | None"), "a spoken argument is a plain callwright.Spoken"),
    "typing.Optional spoken": (tool(f"{CTX}, say: Optional[cw.Spoken]"), "a spoken argument is a plain"),
    "spoken list": (tool(f"{CTX}, say: list[cw.Spoken]"), "a spoken argument is a plain callwright.Spoken"),
    "spoken or number": (tool(f"{CTX}, say: cw.Spoken | int"), "which is a string"),
    "described, then optional": (tool(f"{CTX}, say: Annotated[cw.Spoken, 'x'] | None"), "a spoken argument is a plain"),
    "no annotation": (tool(f"{CTX}, order"), "'order' of tool look: has no annotation; write its type, for example"),
    "no context": (tool("order: str"), "the first parameter of tool look must be annotated callwright.Context[...]"),
    "no parameter": (tool(""), "the first parameter of tool look must be annotated callwright.Context[...]"),
    "context by keyword": (tool(f"*, {CTX}"), "the first parameter of tool look must be annotated"),
    "many contexts": (tool("*ctx: cw.Context[None]"), "the first parameter of tool look must be annotated"),
    "*args": (tool(f"{CTX}, *orders: str"), "must be an ordinary named argument, not variadic positional"),
    "**kwargs": (tool(f"{CTX}, **orders: str"), "must be an ordinary named argument, not variadic keyword"),
    "positional only": (tool("ctx: cw.Context[None], order: str, /"), "must be an ordinary named argument"),
    "sync": (tool(CTX, head="def"), "tool look must be an async function"),
    "no docstring": (tool(CTX, doc="pass"), "tool look has no docstring; the model is told what it does by it"),
    "empty docstring": (tool(CTX, doc='""'), "tool look has no docstring"),
    "no time": (tool(CTX, call="(timeout_ms=0)"), "tool look: timeout_ms is 0, which must be positive"),
    "negative time": (tool(CTX, call="(timeout_ms=-1)"), "timeout_ms is -1"),
    "hang-up without a goodbye": (tool(CTX, call="(after=cw.AfterOutput.HANG_UP)"), "needs one spoken argument"),
    "hang-up with two goodbyes": (
        tool(f"{CTX}, a: cw.Spoken, b: cw.Spoken", call="(after=cw.AfterOutput.HANG_UP)"),
        "needs one spoken argument, the goodbye",
    ),
    "object": (tool(f"{CTX}, x: object"), PLAIN),
    "any": (tool(f"{CTX}, x: Any"), PLAIN),
    "enum": (tool(f"{CTX}, x: Colour"), PLAIN),
    "list of enums": (tool(f"{CTX}, x: list[Colour]"), PLAIN),
    "bare list": (tool(f"{CTX}, x: list"), PLAIN),
    "dict": (tool(f"{CTX}, x: dict[str, str]"), PLAIN),
    "bytes": (tool(f"{CTX}, x: bytes"), PLAIN),
    "unwritable default": (tool(f"{CTX}, x: int = object()"), "cannot be written as JSON"),
    "filled list as default": (tool(f"{CTX}, x: list[str] = ['a']"), "cannot be written as JSON"),
    "mangled name": (tool(f"{CTX}, __x: str"), "cannot be written as JSON"),
    "no such name": (tool(f'{CTX}, x: "Nowhere"'), "cannot be read: name 'Nowhere' is not defined; import or define"),
    "no expression": (tool(f'{CTX}, x: "a b"'), "the annotations of tool look cannot be read"),
    "partial": (
        "import functools\nasync def f(ctx): ...\n\n\ndesk.tool(functools.partial(f))",
        "must be an async function",
    ),
}


@pytest.mark.parametrize("first_line", ["", FUTURE], ids=["annotations", "postponed"])
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_a_tool_is_refused_with_file_and_line(case: str, first_line: str) -> None:
    function, problem = REFUSED[case]
    with pytest.raises(cw.DeclarationError) as refused:
        declare(function, first_line)
    assert problem in str(refused.value)
    if case != "partial":  # an object without code has no line
        assert str(refused.value).startswith(PLACE)


def test_a_second_tool_of_one_name_is_refused_with_both_places() -> None:
    with pytest.raises(
        cw.DeclarationError, match=r"^desk\.py:13: .* has a tool look already, at desk\.py:9; rename one"
    ):
        declare(f"{tool(CTX)}\n{tool(CTX)}")


@pytest.mark.parametrize(("name", "instructions"), [("", "Be brief."), (" ", "Be brief."), ("desk", " \n")])
def test_an_agent_without_name_or_instructions_is_refused_where_it_is_written(name: str, instructions: str) -> None:
    line = sys._getframe().f_lineno + 2
    with pytest.raises(cw.DeclarationError) as refused:
        cw.Agent(name, model=cw.polyai(), instructions=instructions)
    assert str(refused.value).startswith(f"{__file__}:{line}: agent {name!r} needs")


def test_a_refused_tool_leaves_the_agent_as_it_was() -> None:
    agent = cw.Agent("desk", model=cw.polyai(), instructions="Be brief.")

    async def nameless(ctx: cw.Context[None]) -> str:
        return ""

    with pytest.raises(cw.DeclarationError):
        agent.tool(nameless)
    assert not agent.tools


# --- what a tool is told as

ALL_KINDS = tool(
    f"""{CTX}, text: str, number: int, amount: float, flag: bool,
    described: Annotated[str, "what it is"], one_of: Literal["a", "b"], many: list[int],
    maybe: str | None, old_maybe: Optional[int], either: int | str, within: list[Annotated[str, "each"]],
    holding: Annotated[cw.Spoken, "what to say"], plain: cw.Spoken,
    with_default: int = 3, none_default: Annotated[str, "left out"] | None = None, no_tags: list[str] = []""",
    doc='"""Look for it.\n\n    With care.\n    """',
)
SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "number": {"type": "integer"},
        "amount": {"type": "number"},
        "flag": {"type": "boolean"},
        "described": {"type": "string", "description": "what it is"},
        "one_of": {"enum": ["a", "b"]},
        "many": {"type": "array", "items": {"type": "integer"}},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "old_maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "within": {"type": "array", "items": {"type": "string", "description": "each"}},
        "holding": {"type": "string", "description": "what to say", "poly_spoken": True},
        "plain": {"type": "string", "poly_spoken": True},
        "with_default": {"type": "integer", "default": 3},
        "none_default": {"anyOf": [{"type": "string", "description": "left out"}, {"type": "null"}], "default": None},
        "no_tags": {"type": "array", "items": {"type": "string"}, "default": []},
    },
    "required": [
        *("text", "number", "amount", "flag", "described", "one_of", "many", "maybe", "old_maybe", "either", "within"),
        *("holding", "plain"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("first_line", ["", FUTURE], ids=["annotations", "postponed"])
def test_the_schema_says_what_the_signature_says(first_line: str) -> None:
    """Spoken arguments are always required: models leave out what is not."""
    told = declare(ALL_KINDS, first_line)["look"].schema(spoken=True)
    assert told == {
        "type": "function",
        "name": "look",
        "description": "Look for it.\n\nWith care.",
        "parameters": SCHEMA,
    }
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert "$ref" not in json.dumps(told)


def test_spoken_is_marked_only_for_a_provider_that_speaks_arguments() -> None:
    """A provider that does not know the mark would refuse the whole session; the arguments stay required."""
    declared = declare(ALL_KINDS)["look"]
    told = json.dumps(declared.schema(spoken=False))
    assert "poly_spoken" not in told
    assert declared.schema(spoken=False)["parameters"]["required"] == SCHEMA["required"]  # type: ignore[index]
    assert "poly_spoken" in json.dumps(declared.schema(spoken=True))  # the first telling has changed nothing


def test_a_tool_without_arguments_is_told_as_an_empty_object() -> None:
    parameters = declare(tool(CTX))["look"].schema(spoken=True)["parameters"]
    assert parameters == {"type": "object", "properties": {}, "required": []}


def test_the_arguments_are_decoded_as_declared() -> None:
    arguments = declare(ALL_KINDS)["look"].arguments
    given = {
        "text": "t", "number": 1, "amount": 2, "flag": True, "described": "d", "one_of": "b", "many": [1, 2],
        "maybe": None, "old_maybe": 5, "either": "x", "within": ["w"], "holding": "one moment", "plain": "p",
    }  # fmt: skip
    decoded = msgspec.structs.asdict(msgspec.json.decode(json.dumps(given), type=arguments))
    assert decoded == {**given, "with_default": 3, "none_default": None, "no_tags": []}
    with pytest.raises(msgspec.ValidationError, match="holding"):
        msgspec.json.decode(json.dumps({**given, "holding": None}), type=arguments)


# --- where types may be defined


def test_types_of_the_function_around_it_can_be_used_where_annotations_are_evaluated() -> None:
    inner = indent(f"Room = Literal['a', 'b']\n{tool(f'{CTX}, room: Room')}", "    ")
    function = f"def make():\n{inner}\nmake()"
    assert declare(function)["look"].parameters["properties"] == {"room": {"enum": ["a", "b"]}}
    with pytest.raises(cw.DeclarationError, match="'Room' is not defined; import or define"):
        declare(function, FUTURE)


def test_this_module_postpones_its_annotations_and_declares_a_tool() -> None:
    agent = cw.Agent("desk", model=cw.polyai(), instructions="Be brief.")

    @agent.tool(after=cw.AfterOutput.SILENCE, timeout_ms=500)
    async def wait(ctx: cw.Context[int], why: Annotated[str, "the reason"], kind: Literal["a"] = "a") -> cw.Facts:
        """Wait."""
        return {"ctx": ctx.deps, "why": why}

    @agent.tool
    async def look(ctx: cw.Context[int], room: Optional[str] = None) -> str:  # noqa: UP045 - the old spelling counts
        """Look."""
        return room or ""

    assert (agent.tools["wait"].after, agent.tools["wait"].timeout_ms) == (cw.AfterOutput.SILENCE, 500)
    assert (agent.tools["look"].after, agent.tools["look"].timeout_ms) == (cw.AfterOutput.REPLY, 30_000)
    assert agent.tools["look"].function is look  # the decorator gives the function back
    assert list(agent.tools) == ["wait", "look"]

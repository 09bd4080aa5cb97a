"""A tool from a function: its JSON schema for the model, and its arguments from the model's JSON.

The signature is the declaration. The first parameter is the call's ``Context``; every other one is an argument for
the model to fill, of a type that JSON can carry (str, int, float, bool, ``Literal``, lists of these, ``X | None``),
with ``Annotated[type, "description"]`` where the name does not say it all, and ``Annotated[str, Digits(8)]`` for a
number that is dictated. A ``Spoken`` argument is said aloud to the caller while the tool runs: it is a plain string
without a default, since models skip what is optional.

Whatever cannot be declared is a DeclarationError that begins with file and line.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, NewType, Protocol, TypeVar, Union

from callwright.core.toolcalls import AfterOutput
from callwright.declare.actions import Action, Terms
from callwright.declare.digits import Digits, checked
from callwright.errors import DeclarationError, Refuse, UsageError
from callwright.ids import Ms, ToolCallId
from callwright.wire.objects import SPOKEN_KEY

if TYPE_CHECKING:
    import msgspec

Deps = TypeVar("Deps")

Spoken = NewType("Spoken", str)
"""An argument that the agent says aloud while the tool runs, for example "one moment, I am looking that up"."""

Facts = Mapping[str, object]
"""What a tool tells the model: JSON-like values by name."""


@dataclass(frozen=True, slots=True)
class Grounded:
    """What a tool tells the model, with topics that it may answer from."""

    facts: Facts | str
    knowledge: Mapping[str, str]
    """Contents by name."""

    def __post_init__(self) -> None:
        is_named = isinstance(self.knowledge, Mapping)
        if not is_named or not all(isinstance(text, str) for topic in self.knowledge.items() for text in topic):
            raise UsageError("the knowledge beside a tool's facts is topics, contents by name, each a text")


ToolFunction = Callable[..., Awaitable[Facts | str | Grounded]]
ActionFunction = Callable[..., Awaitable[Terms | Refuse]]

DEFAULT_TIMEOUT_MS: Ms = 30_000


class RecordView(Protocol):
    """What a tool may read of the ledger: the caller's own operations, as they may be told."""

    async def operations(self) -> tuple[Facts, ...]:
        """See `Context.operations`."""
        ...

    async def facts(self, kind: str, subject: str, slot: str) -> Facts:
        """See `Context.facts`."""
        ...

    async def look_up(self, kind: str, subject: str, slot: str) -> Facts:
        """See `Context.look_up`."""
        ...

    async def withdraw(self, kind: str, subject: str, slot: str) -> Facts:
        """See `Context.withdraw`."""
        ...


class KeypadView(Protocol):
    """The keypad of the call's telephone."""

    async def press(self, keys: str, tool_call_id: ToolCallId, /) -> Facts:
        """See `Context.press_keys`; the tool call is the one that asks for them."""
        ...


@dataclass(frozen=True, slots=True)
class Context(Generic[Deps]):
    """What a tool knows of the call that it runs in."""

    deps: Deps
    """Whatever the app handed to ``run``: its stores and clients."""
    party: str | None
    """Who the caller is, as established by the app; never taken from the model."""
    tool_call_id: ToolCallId
    """The model's id of this tool call, for logs; never a key for what the tool does."""
    record: RecordView | None = field(default=None, repr=False, compare=False)
    """The way to the ledger; None in a call without one."""

    keypad: KeypadView | None = field(default=None, repr=False, compare=False)
    """The keypad of the line; None where a tool is run without a call."""

    async def press_keys(self, keys: str) -> Facts:
        """Press keys of the telephone, for a menu: 0 to 9, *, # and A to D, as text, since leading zeros count.

        They go out when the agent is silent, alone; returns when the line has them: ``{"pressed": "2"}``. Nobody has
        to speak about that, so declare the tool with ``after=AfterOutput.SILENCE``.

        Raises Refuse, whose reason the model is told, for another character or a line that cannot press keys, and
        UsageError where a tool is run without a call.
        """
        if self.keypad is None:
            raise UsageError("there is no line to press keys on: this tool is run without a call")
        return await self.keypad.press(keys, self.tool_call_id)

    async def operations(self) -> tuple[Facts, ...]:
        """What may be said now of each of the caller's operations, oldest first. Raises UsageError without a ledger."""
        return await self._record().operations()

    async def facts(self, kind: str, subject: str, slot: str = "full") -> Facts:
        """What may be said now of one operation of the caller's, from the record alone: its state, and a sentence.

        One that he never asked for, or that is somebody else's, has the state ``none``. Raises UsageError in a call
        without a ledger, and LedgerError if the record cannot be read.
        """
        return await self._record().facts(kind, subject, slot)

    async def look_up(self, kind: str, subject: str, slot: str = "full") -> Facts:
        """As `facts`; where the outcome is unknown the provider is asked first, once. Nothing is ever sent by it."""
        return await self._record().look_up(kind, subject, slot)

    async def withdraw(self, kind: str, subject: str, slot: str = "full") -> Facts:
        """Stop an operation of the caller's: at once if nothing was sent yet, else where its provider still can.

        Otherwise nothing changes. The facts say which it was, and how far the operation is.

        Raises UsageError in a call without a ledger, and LedgerError if the record cannot be written.
        """
        return await self._record().withdraw(kind, subject, slot)

    def _record(self) -> RecordView:
        if self.record is None:
            raise UsageError("this call has no ledger; give run(..., ledger=...) one")
        return self.record


@dataclass(frozen=True, slots=True)
class Tool:
    """A declared tool."""

    name: str
    description: str
    function: ToolFunction | ActionFunction
    parameters: Mapping[str, object]
    """JSON schema of the arguments."""
    arguments: type[msgspec.Struct]
    """Struct that decodes and checks them."""
    after: AfterOutput
    timeout_ms: Ms
    """How long its function may take."""
    action: Action | None = None
    """What its function plans; None for a tool that only reads."""
    numbers: Mapping[str, Digits] = field(default_factory=dict)
    """The arguments that are numbers of a known length."""
    is_grounded: bool = False
    """Whether its output may come with topics that the model may answer from."""

    def read(self, arguments: str) -> dict[str, Any]:
        """The model's JSON as arguments by name.

        Raises msgspec.MsgspecError, UnicodeError or RecursionError where it is not what was declared, and UsageError,
        worded for the model, where a number has not the digits that it needs.
        """
        import msgspec

        given = msgspec.json.decode(arguments or "{}", type=self.arguments)
        return checked(msgspec.structs.asdict(given), self.numbers)

    @property
    def spoken(self) -> tuple[str, ...]:
        """The arguments that are said aloud."""
        properties: dict[str, dict[str, object]] = typing.cast("Any", self.parameters["properties"])
        return tuple(name for name, described in properties.items() if SPOKEN_KEY in described)

    def schema(self, *, spoken: bool, own_voice: bool = False) -> dict[str, object]:
        """The tool as the model is told of it; ``spoken`` says whether its provider speaks spoken arguments.

        Where it does not, and no voice of the agent's own (``own_voice``) says them, their descriptions ask the model
        to say them itself, in the response that holds the call.
        """
        properties: dict[str, dict[str, object]] = dict(typing.cast("Any", self.parameters["properties"]))
        if not spoken:
            said = _plainly if own_voice else _said_by_model
            properties = {name: said(described) for name, described in properties.items()}
        parameters = {**self.parameters, "properties": properties}
        return {"type": "function", "name": self.name, "description": self.description, "parameters": parameters}


_SAY_FIRST = "Say exactly this aloud to the caller first, then call the tool in the same response."
_PLAIN = (str, int, float, bool, types.NoneType)
_UNIONS = (Union, types.UnionType)
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _said_by_model(described: dict[str, object]) -> dict[str, object]:
    """A described argument for a provider that speaks none of them."""
    if SPOKEN_KEY not in described:
        return described
    plain = _plainly(described)
    what = str(described.get("description", "")).rstrip(".")
    return {**plain, "description": f"{what}. {_SAY_FIRST}" if what else _SAY_FIRST}


def _plainly(described: dict[str, object]) -> dict[str, object]:
    """A described argument without the mark of a spoken one."""
    return {key: value for key, value in described.items() if key != SPOKEN_KEY}


def declare_tool(
    function: ToolFunction | ActionFunction, *, after: AfterOutput, timeout_ms: Ms, action: Action | None = None
) -> Tool:
    """Read a tool, or an action, off a function. Raises DeclarationError."""
    place = place_of(function)
    name = getattr(function, "__name__", "")
    is_async: bool = inspect.iscoroutinefunction(function)
    if not name or not is_async:
        raise DeclarationError(f"{place}: tool {name} must be an async function")
    if not inspect.getdoc(function):
        raise DeclarationError(f"{place}: tool {name} has no docstring; the model is told what it does by it")
    if timeout_ms <= 0:
        raise DeclarationError(f"{place}: tool {name}: timeout_ms is {timeout_ms}, which must be positive")
    hints = _hints(function, place)
    parameters = list(inspect.signature(function).parameters.values())
    first = hints.get(parameters[0].name) if parameters else None
    if (typing.get_origin(first) or first) is not Context or parameters[0].kind not in _BY_POSITION:
        raise DeclarationError(f"{place}: the first parameter of tool {name} must be annotated callwright.Context[...]")
    arguments = parameters[1:]
    for parameter in arguments:
        _check(parameter, hints, f"{place}: argument {parameter.name!r} of tool {name}")
    spoken = [parameter.name for parameter in arguments if _bare(hints[parameter.name]) is Spoken]
    _check_what_it_returns(hints.get("return"), action, f"{place}: tool {name}")
    if action is not None and len(spoken) != 1:
        raise DeclarationError(
            f"{place}: action {name} needs one spoken argument, what the caller hears while it is under way, "
            "for example holding: callwright.Spoken"
        )
    if after is AfterOutput.HANG_UP and len(spoken) != 1:
        raise DeclarationError(
            f"{place}: tool {name} ends the call, so it needs one spoken argument, the goodbye, "
            "for example goodbye: callwright.Spoken"
        )
    struct, schema = _arguments(name, arguments, hints, place)
    numbers = {parameter.name: digits for parameter in arguments if (digits := _digits(hints[parameter.name]))}
    about = inspect.getdoc(function) or ""
    is_grounded = Grounded in _parts(hints.get("return"))
    return Tool(name, about, function, schema, struct, after, timeout_ms, action, numbers, is_grounded)


def place_of(function: ToolFunction | ActionFunction) -> str:
    """Where a function is written, as ``file:line``."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)


def _check_what_it_returns(hint: Any, action: Action | None, what: str) -> None:
    """A tool that reads returns facts, one that acts returns the terms of what is to be done."""
    parts = _parts(hint)
    if action is None and Terms in parts:
        raise DeclarationError(f"{what} plans an action, as it returns callwright.Terms; declare it with action(...)")
    if action is not None and (Terms not in parts or any(part not in (Terms, Refuse) for part in parts)):
        raise DeclarationError(f"{what} is declared as an action, so it must be annotated to return callwright.Terms")


def _parts(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in _UNIONS else (hint,)


def _hints(function: ToolFunction | ActionFunction, place: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as problem:
        raise DeclarationError(
            f"{place}: the annotations of tool {function.__name__} cannot be read: {problem}; import or define what "
            "they name at the top of the module, where it is there at run time"
        ) from problem


def _digits(hint: Any) -> Digits | None:
    """How many digits an argument has, where that is declared."""
    return next((extra for extra in _extras(hint) if isinstance(extra, Digits)), None)


def _extras(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint)[1:] if typing.get_origin(hint) is Annotated else ()


def _bare(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


def _mentions_spoken(hint: Any) -> bool:
    return hint is Spoken or any(_mentions_spoken(inner) for inner in typing.get_args(hint))


def _check(parameter: inspect.Parameter, hints: Mapping[str, Any], what: str) -> None:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise DeclarationError(f"{what}: must be an ordinary named argument, not {parameter.kind.description}")
    if parameter.name not in hints:
        raise DeclarationError(f"{what}: has no annotation; write its type, for example {parameter.name}: str")
    hint = hints[parameter.name]
    if _digits(hint) and _bare(hint) not in (str, str | None):
        raise DeclarationError(f"{what}: a number with Digits is a str, whose zeros in front count")
    if not _mentions_spoken(hint):
        return
    if _bare(hint) is not Spoken:
        raise DeclarationError(f"{what}: a spoken argument is a plain callwright.Spoken, which is a string")
    if parameter.default is not parameter.empty:
        raise DeclarationError(f"{what}: a spoken argument has no default; models leave out what is not required")


def _arguments(
    name: str, parameters: list[inspect.Parameter], hints: Mapping[str, Any], place: str
) -> tuple[type[msgspec.Struct], Mapping[str, object]]:
    import msgspec

    try:
        fields: list[Any] = [
            (parameter.name, _kind(hints[parameter.name]), *_default(parameter)) for parameter in parameters
        ]
        struct = msgspec.defstruct(name, fields, kw_only=True)
        schema = msgspec.json.schema(struct)["$defs"][name]
    except (TypeError, ValueError, KeyError, RuntimeError) as problem:
        raise DeclarationError(
            f"{place}: the arguments of tool {name} cannot be written as JSON: {problem}"
        ) from problem
    properties = schema["properties"]
    for parameter in parameters:
        if _bare(hints[parameter.name]) is Spoken:
            properties[parameter.name][SPOKEN_KEY] = True
    return struct, {"type": "object", "properties": properties, "required": schema.get("required", [])}


def _default(parameter: inspect.Parameter) -> tuple[Any, ...]:
    return () if parameter.default is parameter.empty else (parameter.default,)


def _kind(hint: Any) -> Any:
    """An annotation as msgspec reads it. Raises TypeError for a type that is not a tool argument's."""
    import msgspec

    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Spoken:
        return str
    if hint in _PLAIN or origin is Literal:
        return hint
    if origin is list:
        return list[_kind(inner[0])]  # type: ignore[misc]
    if origin in _UNIONS:
        return Union[tuple(_kind(each) for each in inner)]  # noqa: UP007 - how many they are is not known here
    if origin is Annotated:
        said = [str(extra) for extra in inner[1:] if isinstance(extra, str | Digits)]
        return Annotated[_kind(inner[0]), msgspec.Meta(description=", ".join(said) or None)]
    raise TypeError(f"{hint} is none of str, int, float, bool, Literal[...], list[...] and X | None of these")

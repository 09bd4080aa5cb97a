"""An agent: a name, a model, instructions, and the tools that its functions declare."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, overload

from callwright.core.toolcalls import AfterOutput
from callwright.declare.tools import DEFAULT_TIMEOUT_MS, Tool, ToolFunction, declare_tool, place_of
from callwright.errors import DeclarationError
from callwright.ids import Ms

if TYPE_CHECKING:
    from callwright.wire.profiles import Profile

Function = TypeVar("Function", bound=ToolFunction)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which realtime model an agent speaks with, and where."""

    provider: str
    url: str | None = None
    """Address of the realtime endpoint; None for the provider's own."""

    @property
    def profile(self) -> Profile:
        """What this provider's dialect can do."""
        from callwright.wire.profiles import POLYAI

        return {"polyai": POLYAI}[self.provider]


def polyai(*, url: str | None = None) -> ModelChoice:
    """PolyAI's Dialog-RSN-1; ``url`` overrides its address. The key is read from ``POLY_API_KEY`` as a call begins."""
    return ModelChoice("polyai", url)


@dataclass(slots=True)
class Agent:
    """An agent that can take calls."""

    name: str
    model: ModelChoice
    instructions: str
    tools: dict[str, Tool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.instructions.strip():
            declared = sys._getframe(2)  # past the generated __init__
            place = f"{declared.f_code.co_filename}:{declared.f_lineno}"
            raise DeclarationError(f"{place}: agent {self.name!r} needs a name and instructions")

    @overload
    def tool(self, function: Function, /) -> Function: ...

    @overload
    def tool(self, /, *, after: AfterOutput = ..., timeout_ms: Ms = ...) -> Callable[[Function], Function]: ...

    def tool(
        self,
        function: Function | None = None,
        /,
        *,
        after: AfterOutput = AfterOutput.REPLY,
        timeout_ms: Ms = DEFAULT_TIMEOUT_MS,
    ) -> Function | Callable[[Function], Function]:
        """Declare a read-only tool: it may run again, or its result may wait unsaid, without harm.

        Used plain or with settings: ``after`` says whether the agent speaks about the output, ``timeout_ms`` how long
        it may take. Raises DeclarationError with file and line for what cannot be declared.
        """

        def declare(function: Function) -> Function:
            tool = declare_tool(function, after=after, timeout_ms=timeout_ms)
            if tool.name in self.tools:
                first = place_of(self.tools[tool.name].function)
                raise DeclarationError(
                    f"{place_of(function)}: agent {self.name} has a tool {tool.name} already, at {first}; rename one"
                )
            self.tools[tool.name] = tool
            return function

        return declare(function) if function else declare

"""An agent: a name, a model, instructions, and the tools that its functions declare."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, overload

from callwright.claims.lexicon import Lexicon
from callwright.core.keeping import STOP_RECORDING
from callwright.core.toolcalls import AfterOutput
from callwright.declare.actions import AUTOMATIC, Authority, Named, Terms, declare_action
from callwright.declare.notices import Declared, Recording, check_notices, stop_tool, with_notices
from callwright.declare.tools import (
    DEFAULT_TIMEOUT_MS,
    ActionFunction,
    Tool,
    ToolFunction,
    declare_tool,
    place_of,
)
from callwright.declare.voice import Voice, check_declared
from callwright.errors import DeclarationError
from callwright.ids import Ms

if TYPE_CHECKING:
    from callwright.wire.profiles import Profile

Function = TypeVar("Function", bound=ToolFunction)
Planning = TypeVar("Planning", bound=ActionFunction)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which realtime model an agent speaks with, and where."""

    provider: str
    url: str | None = None
    """Address of the realtime endpoint; None for the provider's own."""
    model: str | None = None
    """Name of the model where the provider has several; None for the profile's own."""
    turn_detection: Mapping[str, object] | None = None
    """How the provider finds the caller's turns, in its own words; None for the profile's own."""
    language: str | None = None
    """What the caller speaks, as an ISO 639 tag such as ``en``; None leaves it to the provider."""
    knowledge: Mapping[str, str] = field(default_factory=dict)
    """Topics that the model may answer from, contents by name; only where its provider takes some."""

    @property
    def profile(self) -> Profile:
        """What this provider's dialect can do, with what was chosen here.

        Raises DeclarationError for a provider or a turn detection that does not exist, and for knowledge that is not
        texts by name, or that the provider does not take.
        """
        import msgspec

        from callwright.wire.objects import TurnDetection
        from callwright.wire.profiles import PROFILES

        if self.provider not in PROFILES:
            raise DeclarationError(f"there is no provider {self.provider!r}; providers: {', '.join(PROFILES)}")
        profile = PROFILES[self.provider]
        try:
            detection = msgspec.convert(self.turn_detection, TurnDetection | None)
        except msgspec.ValidationError as problem:
            raise DeclarationError(f"turn_detection {dict(self.turn_detection or {})}: {problem}") from problem
        language: object = self.language
        if language is not None and not (isinstance(language, str) and language.strip()):
            raise DeclarationError(f"language is a text such as 'en', or None; got {language!r}")
        is_named = isinstance(self.knowledge, Mapping)
        texts: Iterable[object] = chain.from_iterable(self.knowledge.items()) if is_named else ()
        if not is_named or not all(isinstance(text, str) and text.strip() for text in texts):
            raise DeclarationError("knowledge is topics, contents by name, each a text that is not empty")
        if self.knowledge and not profile.takes_knowledge:
            raise DeclarationError(f"{self.provider} takes no knowledge; put it into the instructions")
        return replace(
            profile,
            model=self.model or profile.model,
            turn_detection=detection or profile.turn_detection,
            language=self.language or "",
        )


def polyai(
    *, url: str | None = None, language: str | None = None, knowledge: Mapping[str, str] | None = None
) -> ModelChoice:
    """PolyAI's Dialog-RSN-1; ``url`` overrides its address. The key is read from ``POLY_API_KEY`` as a call begins.

    ``language`` is what it is to speak, such as ``pt-BR``, or in plain words; English if it is not said. ``knowledge``
    holds topics that it may answer from, contents by name; the turns of a call say which of them a reply rests on.
    """
    return ModelChoice("polyai", url, language=language, knowledge=_topics(knowledge))


def _topics(knowledge: object) -> Any:
    """A copy of topics; what is none is refused where the agent is declared, which has a place."""
    if knowledge is None:
        return {}
    return dict(knowledge) if isinstance(knowledge, Mapping) else knowledge


def openai(
    *,
    model: str | None = None,
    url: str | None = None,
    turn_detection: Mapping[str, object] | None = None,
    language: str | None = None,
) -> ModelChoice:
    """A model of the OpenAI Realtime API; the key is read from ``OPENAI_API_KEY`` as a call begins.

    ``model`` names another than gpt-realtime-2, ``url`` overrides the address. ``turn_detection`` is the API's own
    object, for example ``{"type": "semantic_vad", "eagerness": "low", "create_response": True}``. ``language`` is what
    callers speak, such as ``en``: without it a short "yes" may be written down in any language.
    """
    return ModelChoice("openai", url, model, turn_detection, language)


def plain(*, url: str | None = None) -> ModelChoice:
    """Any other server that speaks the protocol, at ``url``; the key is read from ``REALTIME_API_KEY``, if it is set.

    Such a server's history can be neither shortened nor read, so after an interruption it holds what was written.
    """
    return ModelChoice("plain", url)


@dataclass(slots=True)
class Agent:
    """An agent that can take calls."""

    name: str
    model: ModelChoice
    instructions: str
    tools: dict[str, Tool] = field(default_factory=dict)
    ai_notice: str | None = None
    """The words by which the caller has to hear, in the first reply, that he talks to a machine."""
    recording: Declared = None
    """Whether words of a call with a person may be kept."""
    recording_notice: str | None = None
    """The words by which he has to hear that they are."""
    opens_after_ms: Ms | None = None
    """How long a line is quiet before it begins by itself; None: it answers, and never begins. For calls it makes."""
    voice: Voice | None = None
    """What says its replies; None: the model's provider speaks."""

    def __post_init__(self) -> None:
        declared = sys._getframe(2)  # past the generated __init__
        what = f"{declared.f_code.co_filename}:{declared.f_lineno}: agent {self.name!r}"
        texts: tuple[object, ...] = self.name, self.instructions
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise DeclarationError(f"{what} needs a name and instructions, each a text that is not empty")
        if not isinstance(self.model, ModelChoice):
            raise DeclarationError(f"{what} needs a model such as callwright.polyai(); got {self.model!r}")
        try:
            self.model.profile  # noqa: B018 - it is only asked whether there is one
        except DeclarationError as problem:
            raise DeclarationError(f"{what}: {problem}") from problem
        if self.opens_after_ms is not None and self.opens_after_ms <= 0:
            raise DeclarationError(f"{what}: opens_after_ms is a time above 0, or None; got {self.opens_after_ms}")
        check_declared(what, self.voice)
        check_notices(what, self.ai_notice, self.recording, self.recording_notice)
        if self.recording == Recording.CONSENTED:
            self.tools.setdefault(STOP_RECORDING, stop_tool())

    @property
    def briefing(self) -> str:
        """What its model is told: the instructions, and what has to be said first."""
        asks = self.recording == Recording.CONSENTED
        return with_notices(self.instructions, self.ai_notice, self.recording_notice, asks=asks)

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
            self._add(declare_tool(function, after=after, timeout_ms=timeout_ms))
            return function

        return declare(function) if function else declare

    def action(
        self,
        bare: ActionFunction | None = None,
        /,
        *,
        kind: str = "",
        provider: Named | str = "",
        slot: str | Callable[[Terms], str] = "full",
        must_hear: tuple[str, ...] = (),
        details: tuple[str, ...] = (),
        authority: Authority = AUTOMATIC,
        lexicon: Lexicon | None = None,
        timeout_ms: Ms = DEFAULT_TIMEOUT_MS,
    ) -> Callable[[Planning], Planning]:
        """Declare an action: its function plans what is to be done, and the ledger has ``provider`` do it, once.

        ``kind``, the terms' subject and ``slot`` name the operation; a ``slot`` that is a function is asked with the
        planned terms. ``provider`` is a provider, or the name of one of the ledger's. ``must_hear`` are the terms that
        the caller has to hear of the outcome: ``amount``, ``card``, ``subject``, or a name among ``details``.
        ``lexicon`` brings the words of a kind that has none yet. ``timeout_ms`` bounds the planning.

        Raises DeclarationError with file and line for what cannot be declared, such as an action (``bare``) that says
        neither kind nor provider.
        """
        if bare is not None:
            name = getattr(bare, "__name__", "")
            raise DeclarationError(f"{place_of(bare)}: action {name} needs @agent.action(kind=..., provider=...)")

        def declare(function: Planning) -> Planning:
            what = f"{place_of(function)}: action {getattr(function, '__name__', '')}"
            action = declare_action(
                what,
                kind=kind,
                slot=slot,
                provider=provider,
                must_hear=must_hear,
                details=details,
                authority=authority,
                lexicon=lexicon,
            )
            self._add(declare_tool(function, after=AfterOutput.REPLY, timeout_ms=timeout_ms, action=action))
            return function

        return declare

    def _add(self, tool: Tool) -> None:
        if tool.name in self.tools:
            first = place_of(self.tools[tool.name].function)
            raise DeclarationError(
                f"{place_of(tool.function)}: agent {self.name} has a tool {tool.name} already, at {first}; rename one"
            )
        if tool.is_grounded and not self.model.profile.takes_knowledge:
            raise DeclarationError(
                f"{place_of(tool.function)}: tool {tool.name} returns callwright.Grounded, and {self.model.provider} "
                "takes no knowledge; return it among the facts"
            )
        self.tools[tool.name] = tool

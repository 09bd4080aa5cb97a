"""A rules file, read: what a simulated model knows, as data, and every mistake in the file with its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast, get_type_hints

from callwright.declare.tools import Spoken
from callwright.sim.models import Clip, ToolRequest
from callwright.sim.rules.arguments import Key, Source, read_sources
from callwright.sim.rules.phrases import Phrase, fits_any, read_phrases
from callwright.sim.speech import Side, Speech, normalise

if TYPE_CHECKING:
    from callwright.declare.tools import Tool as DeclaredTool
    from callwright.sim.yamlfile import Field

_ANY_MODELS = ("recaps", "starts_over_on_own_voice")
_WITH_FACTS = (
    "ignores_passive_note",
    "repeats_call",
    "changes_card",
    "claims_too_early",
    "refuses_to_say",
    "names_wrong_card",
)
_WITH_KEYS = ("ignores_menu", "picks_wrong_key", "presses_again", "talks_to_announcements")
BEHAVIORS = (*_ANY_MODELS, "believes_it_hung_up", "forgets_notice", *_WITH_FACTS, *_WITH_KEYS)
"""What a rules file gives a rate for; a scenario may give another one."""

_SENTENCE_ENDS = (".", "!", "?")


@dataclass(frozen=True, slots=True)
class Saying:
    """Lines that are said one after the other."""

    lines: tuple[tuple[str, int], ...]
    """Id and count of words of each line."""
    words: tuple[str, ...]
    """The words of all lines, as they are compared."""
    sentences: tuple[int, ...]
    """Numbers of the words that begin a sentence, in order; the first is 0."""
    text: str
    """What is said, as it is written."""

    @property
    def clips(self) -> tuple[Clip, ...]:
        """The whole of it."""
        return self.rest(0)

    def rest(self, word: int) -> tuple[Clip, ...]:
        """From this word to its end."""
        clips = []
        for line_id, length in self.lines:
            if word < length:
                clips.append(Clip(line_id, max(word, 0)))
            word -= length
        return tuple(clips)

    def sentence_start(self, word: int) -> int:
        """The word that begins the sentence in which ``word`` is."""
        return max(start for start in self.sentences if start <= word)


@dataclass(frozen=True, slots=True)
class Fact:
    """How something that the record says is told."""

    reads: tuple[tuple[str, ...], ...]
    """Words in a row by which an output or a system message says it."""
    says: Saying
    early: Saying | None
    """What a model says that claims too early; None where that is not this fact's."""
    wrong: Saying | None
    """What a model says that names the wrong card."""

    def fits(self, text: str) -> bool:
        """Whether a text says it."""
        words = tuple(re.findall(r"\w+", text.lower()))
        return any(row == words[at : at + len(row)] for row in self.reads for at in range(len(words) - len(row) + 1))

    @property
    def sayings(self) -> Iterator[Saying]:
        """All that may be said of it."""
        return (saying for saying in (self.says, self.early, self.wrong) if saying)


@dataclass(frozen=True, slots=True)
class Tool:
    """How a tool is asked for, and how its output is told."""

    holding: tuple[Clip, ...]
    """What is said with the call."""
    spoken: Mapping[str, str]
    """The argument that has what is said as its text; at most one."""
    arguments: Mapping[str, Source]
    """Where each of the other arguments comes from."""
    answers: tuple[tuple[tuple[Phrase, ...], Saying], ...]
    """What is said to an output with one of the phrases; no phrase fits every output."""
    goes_on: tuple[Phrase, ...]
    """Of a tool that hangs up: the phrases by which its output says that the call goes on; none of another tool."""

    @property
    def key(self) -> tuple[str, Key] | None:
        """The argument that is the key of a menu, and how it is chosen; None where the tool presses none."""
        return next(((name, source) for name, source in self.arguments.items() if isinstance(source, Key)), None)

    def request(self, name: str, said: str, before: Sequence[str] = ()) -> ToolRequest | None:
        """The call that these words ask for, after the turns ``before``, the latest first; None without an argument."""
        found = {argument: source.find(said, before) for argument, source in self.arguments.items()}
        arguments = {argument: value for argument, value in found.items() if value is not None}
        return ToolRequest(name, {**arguments, **self.spoken}) if len(arguments) == len(found) else None

    def has_ended(self, output: str) -> bool:
        """Whether this output lets the model believe that it has hung up."""
        return bool(self.goes_on) and not self.goes_on_by(output)

    def goes_on_by(self, text: str) -> bool:
        """Whether an output or a note says that this was to hang up, and the call goes on."""
        return fits_any(self.goes_on, text)

    def answer(self, output: str) -> Saying | None:
        """What is said to this output."""
        return next((says for when, says in self.answers if not when or fits_any(when, output)), None)


@dataclass(frozen=True, slots=True)
class Topic:
    """What to do when the caller says one of some phrases: exactly one of says, calls and does is set."""

    when: tuple[Phrase, ...] = ()
    noted: tuple[Phrase, ...] = ()
    """The same of a system note."""
    after: str | None = None
    """The topic that has to have been answered before, by its name."""
    says: Saying | None = None
    calls: str | None = None
    tool: Tool | None = None
    """The tool that is called, with what this topic has of its own."""
    does: Literal["go_on", "tell"] | None = None

    @property
    def is_rest(self) -> bool:
        """Whether it is for what no other fits."""
        return not self.when and not self.noted


@dataclass(frozen=True, slots=True)
class Rules:
    """A rules file, read."""

    topics: Mapping[str, Topic]
    tools: Mapping[str, Tool]
    facts: tuple[Fact, ...]
    """How what the record says is told; of several that fit, the first."""
    opening: Saying
    not_understood: Saying
    nothing_to_go_on: Saying
    under_way: Saying
    """What is said where the caller asks how it stands, nothing is known, and a tool call has no output yet."""
    going_on: Saying
    notice: Saying | None
    """That it is a machine."""
    rates: Mapping[str, float]
    """How often each of `BEHAVIORS` shows, 0 to 1."""

    def topic(self, said: Sequence[str], has_answered: Callable[[str], bool]) -> Topic | None:
        """The topic with the longest phrase that fits these words; of equals the first in the file.

        ``has_answered`` tells whether the topic of this name was answered before.
        """
        topics = (topic for topic in self.topics.values() if topic.after is None or has_answered(topic.after))
        fitting = [(len(p.words), topic) for topic in topics for p in topic.when if p.fits(said)]
        return max(fitting, key=lambda fit: fit[0])[1] if fitting else None

    def noted(self, note: str) -> Topic | None:
        """The first topic that is for this system note."""
        return next((topic for topic in self.topics.values() if fits_any(topic.noted, note)), None)

    @property
    def otherwise(self) -> Topic | None:
        """The topic for what no other fits."""
        return next((topic for topic in self.topics.values() if topic.is_rest), None)

    def sayings(self) -> Iterator[Saying]:
        """What can be cut and gone on with: the answers to the caller and the tellings of outputs."""
        for topic in self.topics.values():
            if topic.says:
                yield topic.says
        for tool in self.tools.values():
            for _, says in tool.answers:
                yield says
        for fact in self.facts:
            yield from fact.sayings

    def fact(self, text: str) -> Fact | None:
        """What an output or a system message says of the record."""
        return next((fact for fact in self.facts if fact.fits(text)), None)


# --- reading the file ----------------------------------------------------------------------------------------------


def read_rules(
    file: Field, speech: Speech, rates: Mapping[str, float], declared: Mapping[str, DeclaredTool] | None
) -> Rules:
    """Read a rules file; ``rates`` go before its own, and ``declared`` are the agent's tools. Raises ScenarioError."""
    needed_keys = ("opening", "not_understood", "nothing_to_go_on", "going_on", "behaviors", "topics")
    parts = file.mapping((*needed_keys, "tools", "notice", "facts", "under_way"), required=needed_keys)
    fields = parts["tools"].mapping(declared) if "tools" in parts else {}
    tools = {name: _tool(field, speech, declared[name] if declared else None) for name, field in fields.items()}
    of_some = {"believes_it_hung_up": any(tool.goes_on for tool in tools.values()), "forgets_notice": "notice" in parts}
    of_some |= dict.fromkeys(_WITH_FACTS, "facts" in parts)
    of_some |= dict.fromkeys(_WITH_KEYS, any(tool.key for tool in tools.values()))
    needed = (*_ANY_MODELS, *(name for name, is_needed in of_some.items() if is_needed))
    behaviors = parts["behaviors"].mapping(BEHAVIORS, required=needed)
    return Rules(
        topics=_topics(parts["topics"], speech, tools),
        tools=tools,
        facts=tuple(_fact(field, speech) for field in parts["facts"].sequence(1)) if "facts" in parts else (),
        opening=_saying(parts["opening"].sequence(), speech),
        not_understood=_saying(parts["not_understood"].sequence(), speech),
        nothing_to_go_on=_saying(parts["nothing_to_go_on"].sequence(), speech),
        under_way=_saying(parts.get("under_way", parts["nothing_to_go_on"]).sequence(), speech),
        going_on=_saying([parts["going_on"]], speech),
        notice=_saying(parts["notice"].sequence(1), speech) if "notice" in parts else None,
        rates=dict.fromkeys(BEHAVIORS, 0.0) | {name: _rate(field) for name, field in behaviors.items()} | dict(rates),
    )


def _rate(field: Field) -> float:
    parts = field.mapping(("rate", "source"), required=("rate", "source"))
    parts["source"].text()
    return parts["rate"].share()


def _topics(field: Field, speech: Speech, tools: Mapping[str, Tool]) -> dict[str, Topic]:
    fields = field.mapping()
    topics = {name: _topic(each, speech, tools, fields) for name, each in fields.items()}
    rest = [name for name, topic in topics.items() if topic.is_rest]
    if len(rest) > 1:
        raise fields[rest[1]].error(f"expected when or noted: {rest[0]} is for what no other topic fits already")
    return topics


def _topic(field: Field, speech: Speech, tools: Mapping[str, Tool], topics: Mapping[str, Field]) -> Topic:
    parts = field.mapping(("when", "noted", "after", "says", "calls", "speaks", "arguments", "does"))
    if sum(key in parts for key in ("says", "calls", "does")) != 1:
        raise field.error("expected exactly one of says, calls, does")
    for key in ("speaks", "arguments"):
        if key in parts and "calls" not in parts:
            raise parts[key].error("expected it beside calls")
    if "after" in parts and "when" not in parts:
        raise parts["after"].error("expected it beside when")
    calls = parts["calls"].choice(tools) if "calls" in parts else None
    return Topic(
        when=read_phrases(parts["when"]) if "when" in parts else (),
        noted=read_phrases(parts["noted"]) if "noted" in parts else (),
        after=parts["after"].choice(topics) if "after" in parts else None,
        says=_saying(parts["says"].sequence(1), speech) if "says" in parts else None,
        calls=calls,
        tool=_own(tools[calls], parts, speech) if calls else None,
        does=cast("Any", parts["does"].choice(("go_on", "tell"))) if "does" in parts else None,
    )


def _own(tool: Tool, parts: Mapping[str, Field], speech: Speech) -> Tool:
    """The tool as a topic calls it, with arguments of its own."""
    if "speaks" in parts:
        if not tool.spoken:
            raise parts["speaks"].error("expected a tool that speaks")
        lines = parts["speaks"].mapping(tool.spoken, required=tuple(tool.spoken))
        said = _saying([line for each in lines.values() for line in each.sequence(1)], speech)
        tool = replace(tool, holding=said.clips, spoken=dict.fromkeys(tool.spoken, said.text))
    if "arguments" in parts:
        own = read_sources(parts["arguments"].mapping(tool.arguments))
        tool = replace(tool, arguments={**tool.arguments, **own})
    return tool


def _fact(field: Field, speech: Speech) -> Fact:
    parts = field.mapping(("reads", "says", "early", "wrong"), required=("reads", "says"))
    said = {key: _saying(parts[key].sequence(1), speech) for key in ("says", "early", "wrong") if key in parts}
    reads = tuple(tuple(re.findall(r"\w+", text.text().lower())) for text in parts["reads"].sequence(1))
    return Fact(reads, said["says"], said.get("early"), said.get("wrong"))


def _tool(field: Field, speech: Speech, declared: DeclaredTool | None) -> Tool:
    parts = field.mapping(("speaks", "arguments", "answers", "hangs_up"), required=("answers",))
    spoken, others = (spoken_arguments(declared), _other_arguments(declared)) if declared else (None, None)
    speaks = parts["speaks"].mapping(spoken) if "speaks" in parts else {}
    if len(speaks) > 1:
        raise parts["speaks"].error("expected one argument: a call speaks one")
    lines = [line for argument in speaks.values() for line in argument.sequence(1)]
    arguments = parts["arguments"].mapping(others) if "arguments" in parts else {}
    if declared:
        _check_call(field, {**arguments, **speaks}, declared)
    hangs_up = parts["hangs_up"].mapping(("unless",), required=("unless",)) if "hangs_up" in parts else {}
    answers = [answer.mapping(("when", "says"), required=("says",)) for answer in parts["answers"].sequence()]
    return Tool(
        holding=_saying(lines, speech).clips,
        spoken=dict.fromkeys(speaks, " ".join(speech[line.text()].text for line in lines)),
        arguments=read_sources(arguments),
        answers=tuple(
            (read_phrases(answer["when"]) if "when" in answer else (), _saying(answer["says"].sequence(1), speech))
            for answer in answers
        ),
        goes_on=read_phrases(hangs_up["unless"]) if hangs_up else (),
    )


def _check_call(field: Field, given: Mapping[str, Field], declared: DeclaredTool) -> None:
    """Raise for a call with these arguments that the agent's tool would refuse."""
    parameters = cast("Mapping[str, Any]", declared.parameters)
    for name, argument in given.items():
        schema = parameters["properties"][name]
        kinds = [kind.get("type", "string") for kind in schema.get("anyOf", [schema])]
        if "string" not in kinds:
            raise argument.error(f"expected an argument that can be a text, as what a caller says is; it is {kinds[0]}")
    for name in parameters["required"]:
        if name not in given:
            raise field.error(f"expected the argument {name!r}, which the tool requires, under arguments or speaks")


def spoken_arguments(tool: DeclaredTool) -> list[str]:
    """The arguments that are said aloud while the tool runs."""
    return [name for name, hint in get_type_hints(tool.function).items() if hint is Spoken]


def _other_arguments(tool: DeclaredTool) -> list[str]:
    spoken = spoken_arguments(tool)
    return [name for name in cast("Mapping[str, Any]", tool.parameters)["properties"] if name not in spoken]


def line_of(field: Field, speech: Speech, side: Side) -> str:
    """The id of a recorded line of this side. Raises ScenarioError."""
    ids = speech.lines_of(side)
    if (line_id := field.scalar()) in speech and line_id not in ids:
        raise field.expected(f"a line of the {side}")
    return field.choice(ids)


def _saying(lines: Sequence[Field], speech: Speech) -> Saying:
    counts: list[tuple[str, int]] = []
    words: list[str] = []
    said: list[str] = []
    sentences: list[int] = []
    for line in lines:
        line_id = line_of(line, speech, "agent")
        texts = [word.text for word in speech[line_id].words]
        sentences.append(len(words))
        sentences += [len(words) + n for n, text in enumerate(texts[:-1], 1) if text.endswith(_SENTENCE_ENDS)]
        words += [normalise(text) for text in texts]
        said += texts
        counts.append((line_id, len(texts)))
    return Saying(tuple(counts), tuple(words), tuple(sentences), " ".join(said))

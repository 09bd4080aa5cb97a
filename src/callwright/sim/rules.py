"""A model that answers by rules: one engine, and one data file per agent.

It sees the conversation's history and nothing else. What the caller said last picks a topic by its words; the topic
says recorded lines, calls a tool, or goes on with a reply that was cut. Where a reply was cut is read from the text in
history, so a history that is right is continued at the right word, and one that is wrong is continued at the wrong one:

    history     Check in is from three in the afternoon. Please bring a-
    goes on     Sure, as I was saying. photo ID and the card ...          from the next word
    or recaps   Sure, as I was saying. Please bring a photo ID ...        from the start of the cut sentence

The notice that an agent must give, that it is a machine, opens every reply until history holds it whole.

What live models were seen to do now and then is in the file as a behavior with its rate and the source of the figure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Literal, cast, get_type_hints

from callwright.declare.tools import Spoken
from callwright.errors import ScenarioError
from callwright.sim.advice import did_you_mean
from callwright.sim.models import (
    AgentSaid,
    CallerSaid,
    Clip,
    HistoryItem,
    Reply,
    ToolAnswered,
    ToolRequest,
    ToolRequested,
)
from callwright.sim.speech import Side, Speech, normalise
from callwright.sim.yamlfile import Field, read_yaml

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from callwright.declare.tools import Tool as DeclaredTool

BEHAVIORS = ("recaps", "starts_over_on_own_voice", "believes_it_hung_up", "forgets_notice")
"""What a rules file gives a rate for; a scenario may give another one."""
_ANY_MODELS = BEHAVIORS[:2]  # the others are of models with a tool that hangs up, or with a notice

_ECHO_WORDS_MIN = 3  # fewer words in a row are anybody's
_SENTENCE_ENDS = (".", "!", "?")


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that must all occur, in any order; one that ends in ``*`` stands for every word that begins so."""

    words: tuple[str, ...]

    def fits(self, said: Sequence[str]) -> bool:
        """Whether every word of the phrase occurs in ``said``."""
        return all(any(_matches(word, heard) for heard in said) for word in self.words)


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
class Topic:
    """What to do when the caller says one of some phrases: exactly one of the three is set."""

    when: tuple[Phrase, ...]
    says: Saying | None = None
    calls: str | None = None
    does: Literal["go_on"] | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """How a tool is asked for, and how its output is told."""

    holding: tuple[Clip, ...]
    """What is said with the call."""
    spoken: Mapping[str, str]
    """The argument that has what is said as its text; at most one."""
    constant: Mapping[str, str]
    """The arguments that are the same in every call."""
    arguments: Mapping[str, tuple[str, ...]]
    """The words behind which the caller says each of the other arguments."""
    answers: tuple[tuple[tuple[Phrase, ...], Saying], ...]
    """What is said to an output with one of the phrases; no phrase fits every output."""
    goes_on: tuple[Phrase, ...]
    """Of a tool that hangs up: the phrases by which its output says that the call goes on; none of another tool."""

    def request(self, name: str, said: str) -> ToolRequest | None:
        """The call that these words of the caller ask for; None when one of its arguments was not said.

        An argument is the first name or number (no small first letter) behind one of its cues.
        """
        arguments = {}
        for argument, cues in self.arguments.items():
            behind = (word for cue, word in pairwise(said.split()) if normalise(cue) in cues and not word[0].islower())
            value = next(behind, None)
            if value is None:
                return None
            arguments[argument] = value.strip(".,;:!?")
        return ToolRequest(name, {**arguments, **self.constant, **self.spoken})

    def has_ended(self, output: str) -> bool:
        """Whether this output lets the model believe that it has hung up."""
        return bool(self.goes_on) and not _fits_any(self.goes_on, output)

    def answer(self, output: str) -> Saying | None:
        """What is said to this output."""
        return next((says for when, says in self.answers if not when or _fits_any(when, output)), None)


@dataclass(frozen=True, slots=True)
class Rules:
    """A rules file, read."""

    topics: Mapping[str, Topic]
    tools: Mapping[str, Tool]
    opening: Saying
    not_understood: Saying
    nothing_to_go_on: Saying
    going_on: Saying
    notice: Saying | None
    """That it is a machine."""
    rates: Mapping[str, float]
    """How often each of `BEHAVIORS` shows, 0 to 1."""

    def topic(self, said: Sequence[str]) -> Topic | None:
        """The topic with the longest phrase that fits these words; of equals the first in the file."""
        fitting = [(len(p.words), topic) for topic in self.topics.values() for p in topic.when if p.fits(said)]
        return max(fitting, key=lambda fit: fit[0])[1] if fitting else None

    def sayings(self) -> Iterator[Saying]:
        """What can be cut and gone on with: the answers to the caller and the tellings of outputs."""
        for topic in self.topics.values():
            if topic.says:
                yield topic.says
        for tool in self.tools.values():
            for _, says in tool.answers:
                yield says


@dataclass(frozen=True, slots=True)
class _Position:
    """How far a saying has got: its words before ``word`` are in history."""

    saying: Saying
    word: int


class RulesModel:
    """A `Model` that answers by the rules of one file; it keeps nothing between two replies."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    @staticmethod
    def load(
        path: Path,
        speech: Speech,
        rates: Mapping[str, float] | None = None,
        *,
        tools: Mapping[str, DeclaredTool] | None = None,
    ) -> RulesModel:
        """The model of a rules file whose lines are in ``speech``; ``rates`` (0 to 1) go before those of the file.

        With ``tools``, those of the agent, every call in the file is one that its tool takes. Raises ScenarioError
        with file, line and column, or for a rate of a behavior that does not exist.
        """
        for name in rates or {}:
            if name not in BEHAVIORS:
                raise ScenarioError(
                    f"{path}: no behavior {name!r} ({', '.join(BEHAVIORS)}){did_you_mean(name, BEHAVIORS)}"
                )
        return RulesModel(_read_rules(read_yaml(path), speech, rates or {}, tools))

    def reply(self, history: Sequence[HistoryItem], rng: random.Random) -> Reply:
        """The next reply: to the caller's turn if it has none yet, otherwise to a tool's output that was not told."""
        reply = self._reply(history, rng)
        notice = self._rules.notice
        if notice is None or not reply.clips or _has_said(notice, history) or self._shows("forgets_notice", rng):
            return reply
        return self._introduced(notice, reply)

    def _shows(self, behavior: str, rng: random.Random) -> bool:
        """Whether a behavior shows now."""
        rate = self._rules.rates[behavior]
        return rate > 0 and rng.random() < rate

    def _introduced(self, notice: Saying, reply: Reply) -> Reply:
        """The reply with the notice before it, as a part of what a tool call speaks, too."""
        tool = reply.tool
        if tool is not None:
            spoken = {name: f"{notice.text} {text}" for name, text in self._rules.tools[tool.name].spoken.items()}
            tool = replace(tool, arguments={**tool.arguments, **spoken})
        return Reply(notice.clips + reply.clips, tool)

    def _reply(self, history: Sequence[HistoryItem], rng: random.Random) -> Reply:
        turn = _open_turn(history)
        if turn is not None:
            return self._answer(turn, history, rng)
        if untold := self._untold(history):
            return Reply(untold.clips)
        has_begun = any(isinstance(item, (CallerSaid, AgentSaid)) for item in history)
        return Reply((self._rules.nothing_to_go_on if has_begun else self._rules.opening).clips)

    def _answer(self, turn: CallerSaid, history: Sequence[HistoryItem], rng: random.Random) -> Reply:
        rules = self._rules
        said = _words(turn.text)
        if (echoed := self._echoed(said, history)) and rng.random() < rules.rates["starts_over_on_own_voice"]:
            return Reply(echoed.clips)
        topic = rules.topic(said)
        if topic is None:
            return Reply(rules.not_understood.clips)
        if topic.does == "go_on":
            return Reply(self._going_on(history, rng))
        if topic.calls:
            tool = rules.tools[topic.calls]
            if self._hung_up(topic.calls, history) and self._shows("believes_it_hung_up", rng):
                return Reply(tool.holding)
            request = tool.request(topic.calls, turn.text)
            return Reply(tool.holding, request) if request else Reply(rules.not_understood.clips)
        assert topic.says
        return Reply(topic.says.clips)

    def _hung_up(self, name: str, history: Sequence[HistoryItem]) -> bool:
        """Whether an output of this tool in history lets the model believe that it has hung up."""
        calls = [item.tool_call_id for item in history if isinstance(item, ToolRequested) and item.name == name]
        outputs = [item.output for item in history if isinstance(item, ToolAnswered) and item.tool_call_id in calls]
        return any(map(self._rules.tools[name].has_ended, outputs))

    def _going_on(self, history: Sequence[HistoryItem], rng: random.Random) -> tuple[Clip, ...]:
        unfinished = self._unfinished(history)
        if not unfinished:
            return (self._untold(history) or self._rules.nothing_to_go_on).clips
        saying, word = unfinished[-1].saying, unfinished[-1].word
        if word == 0:
            return saying.clips
        start = saying.sentence_start(word)
        if 0 < start < word and rng.random() < self._rules.rates["recaps"]:
            word = start
        return self._rules.going_on.clips + saying.rest(word)

    def _unfinished(self, history: Sequence[HistoryItem]) -> list[_Position]:
        """The replies that were cut and not finished since, the latest last, each as far as history has it."""
        known: list[_Position] = []
        for at, item in enumerate(history):
            if isinstance(item, AgentSaid) and (reached := self._reached(item, history[:at], known)):
                known = [position for position in known if position.saying is not reached.saying]
                if reached.word < len(reached.saying.words):
                    known.append(reached)
        return known

    def _reached(self, item: AgentSaid, before: Sequence[HistoryItem], known: Sequence[_Position]) -> _Position | None:
        """What a reply in history is a part of, and how far that has got; None for one that nobody would go on with."""
        spoken = _without(self._rules.going_on.words, self._said_by(item))
        due = self._due(before, known)
        if not spoken:
            return due[0] if due and item.is_cut else None
        resumed = (start for position in reversed(known) for start in _starts(position))
        for saying, start in ((p.saying, p.word) for p in chain(due, self._places(0), resumed, self._places())):
            end = _end_of(spoken, saying.words, start)
            if end is not None:
                had = max((position.word for position in known if position.saying is saying), default=0)
                return _Position(saying, max(had, end) if start else end)
        return None

    def _said_by(self, item: AgentSaid) -> list[str]:
        """The words of a reply, less the notice before it."""
        notice = self._rules.notice
        return _without(notice.words, _words(item.text)) if notice else _words(item.text)

    def _places(self, last_word: int | None = None) -> Iterator[_Position]:
        """Where a reply can begin: at every word of every saying, or at those up to ``last_word``."""
        for saying in self._rules.sayings():
            for word in range(len(saying.words) if last_word is None else last_word + 1):
                yield _Position(saying, word)

    def _due(self, before: Sequence[HistoryItem], known: Sequence[_Position]) -> list[_Position]:
        """Where a reply to this history was to begin, as far as its turn or tool output tells."""
        turn = _open_turn(before)
        if turn is None:
            untold = self._untold(before)
            return [_Position(untold, 0)] if untold else []
        topic = self._rules.topic(_words(turn.text))
        if topic and topic.does == "go_on" and known:
            return _starts(known[-1])
        return [_Position(topic.says, 0)] if topic and topic.says else []

    def _echoed(self, said: Sequence[str], history: Sequence[HistoryItem]) -> Saying | None:
        """The agent's last reply, if these words are mostly its own, in its own order."""
        last = next((at for at in range(len(history) - 1, -1, -1) if isinstance(history[at], AgentSaid)), None)
        if last is None or len(said) < _ECHO_WORDS_MIN:
            return None
        item = history[last]
        assert isinstance(item, AgentSaid)
        reached = self._reached(item, history[:last], self._unfinished(history[:last]))
        if reached is None:
            return None
        own = [*pairwise(_words(item.text)), *pairwise(reached.saying.words)]
        pairs = list(pairwise(said))
        return reached.saying if 2 * sum(pair in own for pair in pairs) > len(pairs) else None

    def _untold(self, history: Sequence[HistoryItem]) -> Saying | None:
        """What is to be said to the latest output that no reply has told anything of."""
        names = {item.tool_call_id: item.name for item in history if isinstance(item, ToolRequested)}
        for at in range(len(history) - 1, -1, -1):
            item = history[at]
            if not isinstance(item, ToolAnswered):
                continue
            tool = self._rules.tools.get(names.get(item.tool_call_id, ""))
            saying = tool.answer(item.output) if tool else None
            if saying and not any(self._tells(later, saying) for later in history[at:]):
                return saying
        return None

    def _tells(self, item: HistoryItem, saying: Saying) -> bool:
        return (
            isinstance(item, AgentSaid) and bool(words := self._said_by(item)) and bool(_end_of(words, saying.words, 0))
        )


def _has_said(notice: Saying, history: Sequence[HistoryItem]) -> bool:
    """Whether a reply in history begins with the whole notice."""
    replies = (_words(item.text) for item in history if isinstance(item, AgentSaid))
    return any(tuple(words[: len(notice.words)]) == notice.words for words in replies)


def _open_turn(history: Sequence[HistoryItem]) -> CallerSaid | None:
    """The caller's last turn, if the agent has neither said nor called anything since."""
    for item in reversed(history):
        if isinstance(item, (AgentSaid, ToolRequested)):
            return None
        if isinstance(item, CallerSaid):
            return item
    return None


def _starts(position: _Position) -> list[_Position]:
    """Where a cut saying may be taken up: at the next word, or at the start of the cut sentence."""
    return [position, _Position(position.saying, position.saying.sentence_start(position.word))]


def _fits_any(phrases: Sequence[Phrase], output: str) -> bool:
    """Whether one of the phrases fits the words of a tool's output."""
    words = re.findall(r"\w+", output.lower())
    return any(phrase.fits(words) for phrase in phrases)


def _words(text: str) -> list[str]:
    return [word for word in map(normalise, text.split()) if word]


def _matches(pattern: str, word: str) -> bool:
    return word.startswith(pattern[:-1]) if pattern.endswith("*") else word == pattern


def _without(opening: Sequence[str], spoken: list[str]) -> list[str]:
    """``spoken`` less the opening, or less as much of the opening as was spoken before the cut."""
    shared = min(len(opening), len(spoken))
    return spoken[shared:] if list(opening[:shared]) == spoken[:shared] else spoken


def _end_of(spoken: Sequence[str], words: Sequence[str], start: int) -> int | None:
    """The word of ``words`` that follows ``spoken``, said from ``start``; None where that is not what was spoken.

    A word that was cut in the middle has not been said.
    """
    end = start + len(spoken)
    if end > len(words):
        return None
    if list(words[start : end - 1]) != list(spoken[:-1]):
        return None
    if words[end - 1] == spoken[-1]:
        return end
    is_begun = len(spoken) > 1 and words[end - 1].startswith(spoken[-1])
    return end - 1 if is_begun else None


# --- reading the file ----------------------------------------------------------------------------------------------


def _read_rules(
    file: Field, speech: Speech, rates: Mapping[str, float], declared: Mapping[str, DeclaredTool] | None
) -> Rules:
    keys = ("opening", "not_understood", "nothing_to_go_on", "going_on", "behaviors", "topics", "tools", "notice")
    parts = file.mapping(keys, required=keys[:-2])
    fields = parts["tools"].mapping(declared) if "tools" in parts else {}
    tools = {name: _tool(field, speech, declared[name] if declared else None) for name, field in fields.items()}
    of_some = {"believes_it_hung_up": any(tool.goes_on for tool in tools.values()), "forgets_notice": "notice" in parts}
    needed = (*_ANY_MODELS, *(name for name, is_needed in of_some.items() if is_needed))
    behaviors = parts["behaviors"].mapping(BEHAVIORS, required=needed)
    return Rules(
        topics={name: _topic(field, speech, tools) for name, field in parts["topics"].mapping().items()},
        tools=tools,
        opening=_saying(parts["opening"].sequence(), speech),
        not_understood=_saying(parts["not_understood"].sequence(), speech),
        nothing_to_go_on=_saying(parts["nothing_to_go_on"].sequence(), speech),
        going_on=_saying([parts["going_on"]], speech),
        notice=_saying(parts["notice"].sequence(1), speech) if "notice" in parts else None,
        rates=dict.fromkeys(BEHAVIORS, 0.0) | {name: _rate(field) for name, field in behaviors.items()} | dict(rates),
    )


def _rate(field: Field) -> float:
    parts = field.mapping(("rate", "source"), required=("rate", "source"))
    parts["source"].text()
    return parts["rate"].share()


def _topic(field: Field, speech: Speech, tools: Mapping[str, Tool]) -> Topic:
    parts = field.mapping(("when", "says", "calls", "does"), required=("when",))
    if len(parts) != 2:
        raise field.error("expected exactly one of says, calls, does beside when")
    return Topic(
        when=_phrases(parts["when"]),
        says=_saying(parts["says"].sequence(1), speech) if "says" in parts else None,
        calls=parts["calls"].choice(tools) if "calls" in parts else None,
        does="go_on" if "does" in parts and parts["does"].choice(("go_on",)) else None,
    )


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
    cues, constant = _sources(arguments)
    answers = [answer.mapping(("when", "says"), required=("says",)) for answer in parts["answers"].sequence()]
    return Tool(
        holding=_saying(lines, speech).clips,
        spoken=dict.fromkeys(speaks, " ".join(speech[line.text()].text for line in lines)),
        constant=constant,
        arguments=cues,
        answers=tuple(
            (_phrases(answer["when"]) if "when" in answer else (), _saying(answer["says"].sequence(1), speech))
            for answer in answers
        ),
        goes_on=_phrases(hangs_up["unless"]) if hangs_up else (),
    )


def _sources(arguments: Mapping[str, Field]) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Where the arguments of a call come from: the words before what the caller says, and what is always the same."""
    cues: dict[str, tuple[str, ...]] = {}
    constant: dict[str, str] = {}
    for name, argument in arguments.items():
        source = argument.mapping(("after", "is"))
        if len(source) != 1:
            raise argument.error("expected exactly one of after, is")
        if "is" in source:
            constant[name] = source["is"].text()
        else:
            cues[name] = tuple(normalise(word.text()) for word in source["after"].sequence(1))
    return cues, constant


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


def _phrases(field: Field) -> tuple[Phrase, ...]:
    return tuple(
        Phrase(tuple(normalise(word) + "*" * word.endswith("*") for word in phrase.text().split()))
        for phrase in field.sequence(1)
    )


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

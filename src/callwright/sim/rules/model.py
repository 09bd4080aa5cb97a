"""A model that answers by rules: one engine, and one data file per agent.

It sees the conversation's history and nothing else. What the caller said last picks a topic by its words; the topic
says recorded lines, calls a tool, or goes on with a reply that was cut. Where a reply was cut is read from the text in
history, so a history that is right is continued at the right word, and one that is wrong is continued at the wrong one:

    history     Check in is from three in the afternoon. Please bring a-
    goes on     Sure, as I was saying. photo ID and the card ...          from the next word
    or recaps   Sure, as I was saying. Please bring a photo ID ...        from the start of the cut sentence

The notice that an agent must give, that it is a machine, opens every reply until history holds it whole.

A turn in which nothing is understood, behind a goodbye that was taken back, is answered by that goodbye.

What an app's record says comes into history as a tool's output or as a system message. The model passes on the latest
such fact when it is asked for a reply (behind the answer to a turn, if it was asked then), or when the caller asks
for it; a fact that stands there as a passive note it leaves unsaid.

What live models were seen to do now and then is in the file as a behavior with its rate and the source of the figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from callwright.errors import ScenarioError
from callwright.sim.advice import did_you_mean
from callwright.sim.models import (
    AgentSaid,
    CallerSaid,
    Clip,
    HistoryItem,
    Reply,
    SystemNote,
    ToolAnswered,
    ToolRequest,
    ToolRequested,
)
from callwright.sim.rules.rulebook import BEHAVIORS, Fact, Rules, Saying, Topic, read_rules
from callwright.sim.speech import Speech, normalise
from callwright.sim.yamlfile import read_yaml

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from callwright.declare.tools import Tool as DeclaredTool

_ECHO_WORDS_MIN = 3  # fewer words in a row are anybody's


@dataclass(frozen=True, slots=True)
class _Position:
    """How far a saying has got: its words before ``word`` are in history."""

    saying: Saying
    word: int


class RulesModel:
    """A `Model` that answers by the rules of one file; what it answers depends on nothing but history and chance."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.shown: dict[str, int] = {}
        """How often each behavior has shown, for whoever asks afterwards."""

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
        return RulesModel(read_rules(read_yaml(path), speech, rates or {}, tools))

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
        if rate <= 0 or rng.random() >= rate:
            return False
        self.shown[behavior] = self.shown.get(behavior, 0) + 1
        return True

    def _introduced(self, notice: Saying, reply: Reply) -> Reply:
        """The reply with the notice before it, as a part of what a tool call speaks, too."""
        tool = reply.tool
        if tool is not None:
            spoken = {name: f"{notice.text} {tool.arguments[name]}" for name in self._rules.tools[tool.name].spoken}
            tool = replace(tool, arguments={**tool.arguments, **spoken})
        return Reply(notice.clips + reply.clips, tool)

    def _reply(self, history: Sequence[HistoryItem], rng: random.Random) -> Reply:
        if left := self._left_open(history):
            tool = self._rules.tools[left.name]
            return Reply(tool.holding, ToolRequest(left.name, {**left.arguments, **tool.spoken}))
        turn = _open_turn(history)
        fact = self._untold_fact(history)
        if turn is not None:
            reply = self._answer(turn, history, rng)
            if not fact or reply.tool or any(reply.clips == saying.clips for saying in fact.sayings):
                return reply
            told = self._passed_on(fact, turn, rng)
            return reply if told == reply.clips else Reply(reply.clips + told)
        if noted := self._noted(history):
            return self._do(*noted, history, rng)
        if fact:
            return Reply(self._telling(fact, rng))
        if untold := self._untold(history):
            return Reply(untold.clips)
        has_begun = any(isinstance(item, (CallerSaid, AgentSaid)) for item in history)
        return Reply((self._rules.nothing_to_go_on if has_begun else self._rules.opening).clips)

    def _passed_on(self, fact: Fact, turn: CallerSaid, rng: random.Random) -> tuple[Clip, ...]:
        """What is said of a fact behind the answer to a turn."""
        if turn.has_request:
            return self._telling(fact, rng)
        return () if self._shows("ignores_passive_note", rng) else fact.says.clips

    def _answer(self, turn: CallerSaid, history: Sequence[HistoryItem], rng: random.Random) -> Reply:
        rules = self._rules
        said = _words(turn.text)
        if (echoed := self._echoed(said, history)) and self._shows("starts_over_on_own_voice", rng):
            return Reply(echoed.clips)
        topic = rules.topic(said, partial(self._has_answered, history))
        if topic is None and (noted := self._noted(history)):
            return self._do(*noted, history, rng)
        if topic and topic.tool and topic.tool.key and rules.otherwise and self._shows("ignores_menu", rng):
            topic = None
        if topic is None and rules.otherwise and self._shows("talks_to_announcements", rng):
            return Reply(rules.not_understood.clips)
        if topic is None and (pressed := self._pressed(history)) and self._shows("presses_again", rng):
            return Reply((), ToolRequest(pressed.name, pressed.arguments))
        topic = topic or rules.otherwise
        if topic is None and (left := self._taken_back(history)):
            return Reply(rules.tools[left.name].holding, ToolRequest(left.name, left.arguments))
        return self._do(topic, turn.text, history, rng) if topic else Reply(rules.not_understood.clips)

    def _do(self, topic: Topic, said: str, history: Sequence[HistoryItem], rng: random.Random) -> Reply:
        """What this topic has for the words that brought it up."""
        if topic.calls:
            return self._called(topic, said, history, rng)
        match topic.does:
            case "tell":
                return self._as_it_stands(history, rng)
            case "go_on":
                return Reply(self._going_on(history, rng))
        assert topic.says
        return Reply(topic.says.clips)

    def _as_it_stands(self, history: Sequence[HistoryItem], rng: random.Random) -> Reply:
        """How it stands with what was asked for."""
        asked_before = _latest_call(history)
        if asked_before and self._shows("repeats_call", rng):
            holding = self._rules.tools[asked_before.name].holding
            return Reply(holding, ToolRequest(asked_before.name, asked_before.arguments))
        fact = self._latest_fact(history)
        if fact is None and _is_open(asked_before, history):
            return Reply(self._rules.under_way.clips)
        return Reply(self._telling(fact, rng))

    def _called(self, topic: Topic, said: str, history: Sequence[HistoryItem], rng: random.Random) -> Reply:
        """The call of this topic, made of these words."""
        rules, tool = self._rules, topic.tool
        assert topic.calls
        assert tool
        if self._hung_up(topic.calls, history) and self._shows("believes_it_hung_up", rng):
            return Reply(tool.holding)
        earlier = [item.text for item in reversed(history) if isinstance(item, CallerSaid)]
        request = tool.request(topic.calls, said, earlier[1:] if _open_turn(history) else earlier)
        if request is None:
            rest = rules.otherwise if topic is not rules.otherwise else None
            return self._do(rest, said, history, rng) if rest else Reply(rules.not_understood.clips)
        is_change = rules.facts and _is_change(request, tool.arguments, history)
        if is_change and not self._shows("changes_card", rng):
            return Reply(self._telling(self._latest_fact(history), rng))
        if tool.key and not self._pressed(history):
            name, key = tool.key
            other = key.other(said)
            if other and self._shows("picks_wrong_key", rng):
                request = replace(request, arguments={**request.arguments, name: other})
        return Reply(tool.holding, request)

    def _has_answered(self, history: Sequence[HistoryItem], name: str) -> bool:
        """Whether history holds an answer of this topic."""
        topic = self._rules.topics[name]
        if topic.calls:
            return any(isinstance(item, ToolRequested) and item.name == topic.calls for item in history)
        return topic.says is not None and any(self._tells(item, topic.says) for item in history)

    def _noted(self, history: Sequence[HistoryItem]) -> tuple[Topic, str] | None:
        """What a system note asks for, to which nothing was said or done yet, and the note."""
        for item in reversed(history):
            if isinstance(item, (AgentSaid, ToolRequested)):
                return None
            if isinstance(item, SystemNote) and (topic := self._rules.noted(item.text)):
                return topic, item.text
        return None

    def _pressed(self, history: Sequence[HistoryItem]) -> ToolRequested | None:
        """The latest call that pressed a key."""
        calls = (item for item in reversed(history) if isinstance(item, ToolRequested))
        return next((call for call in calls if self._rules.tools[call.name].key), None)

    def _telling(self, fact: Fact | None, rng: random.Random) -> tuple[Clip, ...]:
        """What is said when a fact is to be told; None where there is none."""
        if fact is None or self._shows("refuses_to_say", rng):
            return self._rules.nothing_to_go_on.clips
        if fact.early and self._shows("claims_too_early", rng):
            return fact.early.clips
        if fact.wrong and self._shows("names_wrong_card", rng):
            return fact.wrong.clips
        return fact.says.clips

    def _facts(self, history: Sequence[HistoryItem]) -> Iterator[tuple[int, Fact]]:
        """What history says of the record, the latest first, with its place; a tool's own answers go before facts."""
        if not self._rules.facts:
            return
        names = {item.tool_call_id: item.name for item in history if isinstance(item, ToolRequested)}
        for at in range(len(history) - 1, -1, -1):
            match history[at]:
                case ToolAnswered(tool_call_id=call_id, output=output):
                    tool = self._rules.tools.get(names.get(call_id, ""))
                    answer = tool.answer(output) if tool else None
                    fact = Fact((), answer, None, None) if answer else self._rules.fact(output)
                case SystemNote(text=text):
                    fact = self._rules.fact(text)
                case _:
                    continue
            if fact:
                yield at, fact

    def _latest_fact(self, history: Sequence[HistoryItem]) -> Fact | None:
        return next((fact for _, fact in self._facts(history)), None)

    def _untold_fact(self, history: Sequence[HistoryItem]) -> Fact | None:
        """The latest fact, if no reply behind it has told all of it; one before it is out of date."""
        for at, fact in self._facts(history):
            replies = [self._said_by(item) for item in history[at:] if isinstance(item, AgentSaid)]
            is_told = any(_holds(words, saying.words) for words in replies for saying in fact.sayings)
            return None if is_told else fact
        return None

    def _hung_up(self, name: str, history: Sequence[HistoryItem]) -> bool:
        """Whether an output of this tool in history lets the model believe that it has hung up."""
        calls = [item.tool_call_id for item in history if isinstance(item, ToolRequested) and item.name == name]
        outputs = [item.output for item in history if isinstance(item, ToolAnswered) and item.tool_call_id in calls]
        return any(map(self._rules.tools[name].has_ended, outputs))

    def _left_open(self, history: Sequence[HistoryItem]) -> ToolRequested | None:
        """The call that was to hang up, if a note that the call is still open stands last, and nobody answered it."""
        for item in reversed(history):
            if isinstance(item, (CallerSaid, AgentSaid, ToolRequested)):
                return None
            if isinstance(item, SystemNote):
                calls = [each for each in history if isinstance(each, ToolRequested)]
                is_meant = [call for call in calls if self._rules.tools[call.name].goes_on_by(item.text)]
                return is_meant[-1] if is_meant else None
        return None

    def _taken_back(self, history: Sequence[HistoryItem]) -> ToolRequested | None:
        """The call that was to hang up, if its output says that the call goes on, and only the caller spoke since."""
        for item in reversed(history):
            if isinstance(item, ToolAnswered):
                calls = [each for each in history if isinstance(each, ToolRequested)]
                left = [call for call in calls if call.tool_call_id == item.tool_call_id]
                is_open = bool(left) and self._rules.tools[left[0].name].goes_on_by(item.output)
                return left[0] if is_open else None
            if not isinstance(item, CallerSaid):
                return None
        return None

    def _going_on(self, history: Sequence[HistoryItem], rng: random.Random) -> tuple[Clip, ...]:
        unfinished = self._unfinished(history)
        if not unfinished:
            return (self._untold(history) or self._rules.nothing_to_go_on).clips
        saying, word = unfinished[-1].saying, unfinished[-1].word
        if word == 0:
            return saying.clips
        start = saying.sentence_start(word)
        if 0 < start < word and self._shows("recaps", rng):
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
        topic = self._rules.topic(_words(turn.text), partial(self._has_answered, before))
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


def _latest_call(history: Sequence[HistoryItem]) -> ToolRequested | None:
    """The latest tool call."""
    return next((item for item in reversed(history) if isinstance(item, ToolRequested)), None)


def _is_open(call: ToolRequested | None, history: Sequence[HistoryItem]) -> bool:
    """Whether a tool call has no output yet."""
    outputs = [item.tool_call_id for item in history if isinstance(item, ToolAnswered)]
    return call is not None and call.tool_call_id not in outputs


def _is_change(request: ToolRequest, names: Iterable[str], history: Sequence[HistoryItem]) -> bool:
    """Whether the same tool was called last with another value of one of these arguments."""
    calls = [item for item in history if isinstance(item, ToolRequested) and item.name == request.name]
    return bool(calls) and any(calls[-1].arguments.get(name) != request.arguments[name] for name in names)


def _holds(spoken: Sequence[str], words: Sequence[str]) -> bool:
    """Whether all of ``words`` were spoken, one after the other."""
    ends = range(len(spoken) - len(words) + 1)
    return any(list(spoken[at : at + len(words)]) == list(words) for at in ends)


def _starts(position: _Position) -> list[_Position]:
    """Where a cut saying may be taken up: at the next word, or at the start of the cut sentence."""
    return [position, _Position(position.saying, position.saying.sentence_start(position.word))]


def _words(text: str) -> list[str]:
    return [word for word in map(normalise, text.split()) if word]


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

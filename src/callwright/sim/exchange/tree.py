"""A phone tree, read from its file: what answers a call, and where it leads.

A node is a list of parts, one after the other, and where the call goes when the last is over. A part is something that
sounds, or a wait: for a key, for an answer, for time to pass. A node that takes keys is said again when its parts are
over, so often as it has rounds, and a key leads out of it at any time.

```
menu    [line][line][awaits a key] [line][line][awaits a key] ── then     a key ── its node     another ── next round
queue   [half of the music][line][half of the music] ── then
person  [line][awaits an answer] [line][awaits an answer] [music] [line][awaits an answer] ── then
```

Reading is strict, as of scenarios; the same rules are published as a JSON schema, ``tree.schema.json``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from callwright.audio import progress
from callwright.audio.dtmf import KEYS
from callwright.ids import Ms
from callwright.sim.record import FarKind
from callwright.sim.room import room_lines
from callwright.sim.rules import line_of
from callwright.sim.speech import Speech
from callwright.sim.yamlfile import Field, read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable

HANG_UP = "hang_up"
"""Where a node leads that ends the call."""
MUSIC = "music"
"""The line that is played on hold where a tree names no other."""
RINGING, BUSY, BEEP = "ringing", "busy", "beep"
"""The tones, by the ids that their recordings have."""

WAITS_FOR_KEY_MS: Ms = 6_000
WAITS_FOR_ANSWER_MS: Ms = 10_000
ROUNDS = 3
RING_MS: Ms = progress.RINGING.on_ms + progress.RINGING.off_ms
BUSY_MS: Ms = 10_000
BEEP_MS: Ms = progress.BEEP.on_ms
RECORDS_MS: Ms = 60_000
PAUSE_MS: Ms = 1_000
"""Silence before and behind music."""

_LONGEST_MS: Ms = 6 * 3_600_000


class Awaits(Enum):
    """What a part of a node waits for, at most so long."""

    KEY = "key"
    ANSWER = "answer"
    """The agent has spoken, and has fallen silent."""
    NOTHING = "nothing"
    """Time passes."""


@dataclass(frozen=True, slots=True)
class Sound:
    """A recorded line, once and whole where ``lasts_ms`` is None, and otherwise over and over for so long."""

    kind: FarKind
    line_id: str
    lasts_ms: Ms | None = None


@dataclass(frozen=True, slots=True)
class HoldMusic:
    """One of so many equal parts of the time on hold."""

    line_id: str
    parts: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Silence, up to ``lasts_ms``. ``kind`` is what the book calls it, where that is worth an entry."""

    awaits: Awaits
    lasts_ms: Ms
    kind: FarKind | None = None


Part: TypeAlias = Sound | HoldMusic | Wait


@dataclass(frozen=True, slots=True)
class Node:
    """A place in the tree."""

    parts: tuple[Part, ...]
    then: str
    """The node that follows, or `HANG_UP`."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """The node that each key leads to."""
    rounds: int = 1
    """How often the parts are gone through before ``then``."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A phone tree."""

    answers: str
    """The node that answers a call."""
    nodes: Mapping[str, Node]

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines that can be heard of it, each once."""
        parts = (part for node in self.nodes.values() for part in node.parts)
        return tuple(dict.fromkeys(part.line_id for part in parts if not isinstance(part, Wait)))


def ringing(times: int, then: str) -> Node:
    """It rings so often before something answers."""
    return Node((Sound("ringing", RINGING, times * RING_MS),), then)


# --- reading the file ----------------------------------------------------------------------------------------------

KEYS_OF: Mapping[str, tuple[str, ...]] = {
    "": ("answers", "nodes"),
    "menu": ("kind", "says", "keys", "waits_ms", "rounds", "then"),
    "announcement": ("kind", "says", "then"),
    "queue": ("kind", "music", "says", "pause_ms", "then"),
    "person": ("kind", "music", "script", "pause_ms", "then"),
    "step": ("says", "waits_ms", "holds_ms"),
    "voicemail": ("kind", "says", "pause_ms", "beep_ms", "records_ms", "then"),
    "ringing": ("kind", "times", "then"),
    "busy": ("kind", "lasts_ms", "then"),
}
"""What the file, each kind of node and a step of a person's script may hold."""
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "": KEYS_OF[""],
    "menu": ("kind", "says", "keys", "then"),
    "announcement": ("kind", "says", "then"),
    "queue": ("kind", "says", "then"),
    "person": ("kind", "script"),
    "voicemail": ("kind", "says"),
    "ringing": ("kind", "times"),
    "busy": ("kind",),
}
"""What each must hold. A node without ``then`` hangs up."""


def read_tree(path: Path, speech: Speech) -> Tree:
    """Read a tree whose lines are in ``speech``. Raises ScenarioError with file, line and column."""
    parts = read_yaml(path).mapping(KEYS_OF[""], REQUIRED[""])
    fields = parts["nodes"].mapping()
    if not fields:
        raise parts["nodes"].error("expected at least one node, such as the menu that answers")
    if HANG_UP in fields:
        raise fields[HANG_UP].error(f"expected another name: {HANG_UP} is where a call ends")
    nodes = {name: _Reading(each, speech, fields).node() for name, each in fields.items()}
    for name, each in fields.items():
        if loop := _loop(name, nodes):
            raise each.error(f"expected to come to an end without a key; got {' -> '.join(loop)}")
    return Tree(parts["answers"].choice(fields), nodes)


def _loop(name: str, nodes: Mapping[str, Node]) -> list[str]:
    """The way from a node back to it by what follows alone; empty where there is none."""
    way, at = [name], nodes[name].then
    while at != HANG_UP and at not in way:
        way.append(at)
        at = nodes[at].then
    return [*way, at] if at == name else []


class _Reading:
    """One node of a file as it is read."""

    def __init__(self, field: Field, speech: Speech, nodes: Mapping[str, Field]) -> None:
        kind = field.mapping(required=("kind",))["kind"].choice(tuple(_KINDS))
        self._parts = field.mapping(KEYS_OF[kind], REQUIRED[kind])
        self._read = _KINDS[kind]
        self._speech = speech
        self._places = (*nodes, HANG_UP)

    def node(self) -> Node:
        """The node. Raises ScenarioError."""
        then = self._parts["then"].choice(self._places) if "then" in self._parts else HANG_UP
        return Node(
            parts=tuple(self._read(self)),
            then=then,
            keys=self._keys() if "keys" in self._parts else {},
            rounds=self._whole("rounds", ROUNDS, 1, 100) if "keys" in self._parts else 1,
        )

    def _keys(self) -> dict[str, str]:
        fields = self._parts["keys"].mapping(tuple(KEYS))
        if not fields:
            raise self._parts["keys"].error("expected at least one key, such as 1: opening-hours")
        return {key: place.choice(self._places) for key, place in fields.items()}

    def _whole(self, key: str, default: int, low: int = 0, high: int = _LONGEST_MS) -> int:
        return self._parts[key].whole(low, high) if key in self._parts else default

    def _lines(self) -> list[str]:
        """The lines that the node says."""
        return [line_of(line, self._speech, "caller") for line in self._parts["says"].sequence(1)]

    def _music(self) -> str:
        """The line that is played on hold."""
        if "music" not in self._parts:
            return MUSIC
        lines = {**room_lines(), **self._speech}
        return self._parts["music"].choice([name for name, line in lines.items() if line.kind == "music"])

    def menu(self) -> Iterable[Part]:
        """All is said, then it waits."""
        yield from (Sound("menu", line) for line in self._lines())
        yield Wait(Awaits.KEY, self._whole("waits_ms", WAITS_FOR_KEY_MS), "menu")

    def announcement(self) -> Iterable[Part]:
        """All is said."""
        yield from (Sound("announcement", line) for line in self._lines())

    def queue(self) -> Iterable[Part]:
        """Music, with a line between two parts of it."""
        lines, music = self._lines(), self._music()
        for line in lines:
            yield from self._between(HoldMusic(music, len(lines) + 1))
            yield Sound("announcement", line)
        yield from self._between(HoldMusic(music, len(lines) + 1))

    def person(self) -> Iterable[Part]:
        """What he says, each line with a wait for an answer, and music while he is away."""
        for step in self._parts["script"].sequence(1):
            parts = step.mapping(KEYS_OF["step"])
            if ("says" in parts) is ("holds_ms" in parts):
                raise step.error("expected exactly one of says, holds_ms")
            if "holds_ms" in parts:
                if "waits_ms" in parts:
                    raise parts["waits_ms"].error("expected a line (says) whose answer is waited for")
                yield from self._between(Sound("music", self._music(), parts["holds_ms"].whole(1, _LONGEST_MS)))
                continue
            yield Sound("person", line_of(parts["says"], self._speech, "caller"))
            waits_ms = parts["waits_ms"].whole(0, _LONGEST_MS) if "waits_ms" in parts else WAITS_FOR_ANSWER_MS
            yield Wait(Awaits.ANSWER, waits_ms)

    def _between(self, music: Part) -> Iterable[Part]:
        """Music between two pauses."""
        pauses = [Wait(Awaits.NOTHING, pause_ms)] if (pause_ms := self._whole("pause_ms", PAUSE_MS)) else []
        return (*pauses, music, *pauses)

    def voicemail(self) -> Iterable[Part]:
        """The greeting, line by line, the beep, and what is recorded."""
        for number, line in enumerate(self._lines()):
            if number and (pause_ms := self._whole("pause_ms", 0)):
                yield Wait(Awaits.NOTHING, pause_ms)
            yield Sound("announcement", line)
        yield Sound("beep", BEEP, self._whole("beep_ms", BEEP_MS))
        yield Wait(Awaits.NOTHING, self._whole("records_ms", RECORDS_MS), "recording")

    def ringing(self) -> Iterable[Part]:
        """It rings."""
        return ringing(self._parts["times"].whole(1, 100), HANG_UP).parts

    def busy(self) -> Iterable[Part]:
        """The line is engaged."""
        yield Sound("busy", BUSY, self._whole("lasts_ms", BUSY_MS, 1))


_KINDS: Mapping[str, Callable[[_Reading], Iterable[Part]]] = {
    "menu": _Reading.menu,
    "announcement": _Reading.announcement,
    "queue": _Reading.queue,
    "person": _Reading.person,
    "voicemail": _Reading.voicemail,
    "ringing": _Reading.ringing,
    "busy": _Reading.busy,
}

"""Scenarios: one YAML file says who is called over which line, what the caller does, and what must hold.

Reading is strict: a key, name or trigger that means nothing is an error with file, line and column. The same rules are
published as a JSON schema, ``scenario.schema.json``, for editors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from callwright.audio.formats import AudioFormat, parse_format
from callwright.errors import AudioFormatError, ScenarioError, UsageError
from callwright.sim.advice import did_you_mean, one_of
from callwright.sim.behind.settings import (
    CRASH_KEYS,
    PROVIDER_KEYS,
    Behind,
    Earlier,
    read_crash,
    read_effect,
    with_read_provider,
)
from callwright.sim.caller import REPLY_ENDS_AFTER_MS, Anchor, Step, Trigger
from callwright.sim.exchange.callee import KEYS as CALLEE_KEYS
from callwright.sim.exchange.callee import LONGEST_HOLD_S, Callee, read_callee
from callwright.sim.exchange.callee import REQUIRED as CALLEE_REQUIRED
from callwright.sim.exchange.sounds import tones
from callwright.sim.line import LineKind, LineSettings
from callwright.sim.network import NetworkSettings, Stall
from callwright.sim.room import LEVELS_DB, LONGEST_DELAY_MS, ROOMS, Aec, Noise, RoomSettings, room_lines, together
from callwright.sim.rules import BEHAVIORS, RulesModel, line_of, spoken_arguments
from callwright.sim.speech import Speech
from callwright.sim.yamlfile import Field, read_yaml
from callwright.wire.profiles import PROFILES

if TYPE_CHECKING:
    from callwright.declare.tools import Tool
    from callwright.ids import Ms
    from callwright.sim.speech import Recording

KEYS: Mapping[str, tuple[str, ...]] = {
    "": (
        "scenario",
        "about",
        "agent",
        "party",
        "deps",
        "line",
        "provider",
        "model",
        "connection",
        "server",
        "room",
        "caller",
        "callee",
        "max_hold_s",
        "earlier",
        "limit_ms",
        "expect",
        "before",
        "dialects",
    ),
    "line": (
        "kind",
        "format",
        "hidden_lag_ms",
        "fixed_lag_ms",
        "clear_returns_marks",
        "lose_marks",
        "close_at_ms",
    ),
    "model": ("rules", *BEHAVIORS),
    "connection": ("opens_after_ms", "stalls", "drops_at_ms", "refuses"),
    "stall": ("at_ms", "for_ms"),
    "room": ("name", "echo", "echo_delay_ms", "level_db", "noise", "aec"),
    "caller": ("when", "says", "does", "level_db"),
    "callee": CALLEE_KEYS,
    "provider": PROVIDER_KEYS,
    "earlier": ("caller", "party", "gap_ms", "crash"),
    "crash": CRASH_KEYS,
    "expect": ("max", "min", "heard", "not_heard", "ended", "effects"),
    "before": ("client", "must_fail"),
    "dialect": ("max", "min", "heard", "must_fail"),
}
"""What each part of a scenario may hold; "" is the file itself."""
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "": ("scenario", "about", "agent", "line", "model", "expect"),
    "line": ("kind",),
    "model": ("rules",),
    "stall": ("at_ms", "for_ms"),
    "caller": ("when",),
    "callee": CALLEE_REQUIRED,
    "earlier": ("caller",),
    "crash": ("at",),
    "before": ("client", "must_fail"),
}
"""What each part must hold."""

LIMIT_MS: Ms = 120_000
"""Length at which a call is ended when its scenario names no other."""
GAP_MS: Ms = 5_000
"""From the end of an earlier call to the next one, where its scenario names no other time."""

STAND_IN = "payments"
"""The name of the provider that a scenario opens, by which an action has to name it."""

_LONGEST_MS: Ms = 6 * 3_600_000
_AGENT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_TRIGGER = re.compile(
    r"(?:(?P<tool>\w+)\.holding|(?P<anchor>[\w.]+)) \+ (?P<offset>\d{1,8})(?:\.\.(?P<latest>\d{1,8}))? ms"
)
_ANCHORS = {anchor.value: anchor for anchor in Anchor if anchor is not Anchor.HOLDING}

ToolsOf: TypeAlias = "Callable[[str], Mapping[str, Tool]]"
"""The tools, by name, of the agent with this entry (``module:object``). Raises UsageError where it cannot be loaded."""


@dataclass(frozen=True, slots=True)
class Expectations:
    """What a run must hold to."""

    max: Mapping[str, float]
    """Metrics, by name, and the most that each may be."""
    min: Mapping[str, float]
    """Metrics, by name, and the least that each may be."""
    heard: tuple[str, ...]
    """Agent lines that the caller hears whole."""
    not_heard: tuple[str, ...]
    """Agent lines of which he hears no word."""
    ended: str | None
    """Who ends the call, ``agent`` or ``caller``; None if it does not matter."""
    effects: tuple[str, ...] | None = None
    """What the provider's book holds in the end; None if it does not matter."""


@dataclass(frozen=True, slots=True)
class Before:
    """What the scenario shows with a baseline."""

    client: str
    must_fail: tuple[str, ...]
    """What that client fails of the expectations: metrics, ``heard``, ``not_heard``, ``ended`` or ``effects``."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario, read."""

    name: str
    about: str
    path: Path
    agent: str
    """``module:object``."""
    line: LineSettings
    rules: Path
    """The model's rules file; the recorded lines are in ``speech`` beside it."""
    rates: Mapping[str, float]
    """Rates of the model's behaviors that go before those of its rules file."""
    connection: NetworkSettings
    """How the client's connection to the server opens, stalls and breaks."""
    server: Mapping[str, object]
    """Settings of the local server, by name; a range is a list."""
    caller: tuple[Step, ...]
    """What the caller does; nothing where it is the agent that calls."""
    limit_ms: Ms
    expect: Expectations
    before: Before | None
    dialects: Mapping[str, tuple[Expectations, Before | None]]
    """The two as they are in a dialect that differs, by its name."""
    behind: Behind = field(default_factory=Behind)
    """The world behind the agent."""
    room: RoomSettings = field(default_factory=RoomSettings)
    """The room at the caller's end."""
    callee: Callee | None = None
    """Who is called; None where it is the agent that is."""
    max_hold_s: int | None = None
    """How long our client waits on hold at most; None for as long as it takes."""

    def in_dialect(self, name: str) -> Scenario:
        """The scenario as it is expected to go in this dialect."""
        expect, before = self.dialects.get(name, (self.expect, self.before))
        return replace(self, expect=expect, before=before)

    @property
    def ends_ms(self) -> Ms:
        """When a call of it is ended: the limit is without the time on hold."""
        return self.limit_ms + (self.callee.hold_s * 1000 if self.callee else 0)

    @property
    def speech(self) -> Path:
        """The directory of the recorded lines."""
        return _speech_beside(self.rules)

    @property
    def lines(self) -> Mapping[str, Recording]:
        """All recorded lines that caller and agent can be heard to say, by id; those of rooms and tones among them."""
        return together(Speech.load(self.speech), room_lines(), tones())


def find_scenarios(roots: Iterable[Path]) -> dict[str, Path]:
    """The scenarios below these directories (``scenarios/*.yaml`` at any depth), by name, in order of root and path.

    Raises ScenarioError when a name occurs twice.
    """
    found: dict[str, Path] = {}
    for root in roots:
        for path in sorted(root.rglob("scenarios/*.yaml")):
            if path.stem in found:
                raise ScenarioError(f"{path}: a scenario {path.stem!r} is already in {found[path.stem]}; rename one")
            found[path.stem] = path
    return found


def locate_scenario(name_or_path: str, roots: Iterable[Path]) -> Path:
    """The file of a scenario given by name or by path. Raises ScenarioError where there is none."""
    path = Path(name_or_path)
    if path.suffix == ".yaml":
        return path
    found = find_scenarios(roots)
    if name_or_path not in found:
        near = did_you_mean(name_or_path, found)
        raise ScenarioError(
            f"expected a scenario's name or the path of its .yaml file; got {name_or_path!r};"
            f" callwright scenarios lists the names{near}"
        )
    return found[name_or_path]


def load_scenario(
    path: Path,
    tools_of: ToolsOf | None = None,
    metrics: Collection[str] | None = None,
    clients: Collection[str] | None = None,
) -> Scenario:
    """Read a scenario and the rules file that it names.

    With ``tools_of``, its agent is loaded, and what both files say of tools is checked; with ``metrics`` and
    ``clients``, the names of those are. Raises ScenarioError with file, line and column.
    """
    file = read_yaml(path)
    parts = _part(file, "")
    if parts["scenario"].text() != path.stem:
        raise parts["scenario"].expected(f'the name of the file, "{path.stem}"')
    if ("caller" in parts) is ("callee" in parts):
        raise file.error("expected exactly one of caller (who calls the agent), callee (whom the agent calls)")
    agent = parts["agent"].text()
    if not _AGENT.fullmatch(agent):
        raise parts["agent"].expected("module:object")
    model = _part(parts["model"], "model")
    rules = _located(model["rules"], path.parent, "a rules file")
    speech = _speech(model["rules"], rules)
    tools = _tools(parts["agent"], tools_of, has_provider="provider" in parts) if tools_of else None
    RulesModel.load(rules, speech, tools=tools)  # for its mistakes: they are told before a call, too
    expect = _expectations(parts["expect"], speech, metrics)
    before = _before(parts["before"], expect, clients) if "before" in parts else None
    others = parts["dialects"].mapping(PROFILES) if "dialects" in parts else {}
    return Scenario(
        name=path.stem,
        about=parts["about"].text(),
        path=path,
        agent=agent,
        line=_line(parts["line"]),
        rules=rules,
        rates={name: model[name].share() for name in BEHAVIORS if name in model},
        connection=_connection(parts["connection"]) if "connection" in parts else NetworkSettings(),
        server=_server(parts["server"]) if "server" in parts else {},
        caller=_steps(parts["caller"], speech, agent, tools) if "caller" in parts else (),
        behind=_behind(parts, lambda steps: _steps(steps, speech, agent, tools)),
        limit_ms=parts["limit_ms"].whole(1000, _LONGEST_MS) if "limit_ms" in parts else LIMIT_MS,
        expect=expect,
        before=before,
        dialects={name: _differing(other, expect, before, speech, metrics) for name, other in others.items()},
        room=_room(parts["room"]) if "room" in parts else RoomSettings(),
        callee=_callee(parts["callee"], path.parent, speech) if "callee" in parts else None,
        max_hold_s=_max_hold_s(parts),
    )


def _behind(parts: Mapping[str, Field], steps: Callable[[Field], tuple[Step, ...]]) -> Behind:
    """The world behind the agent."""
    deps = parts["deps"].text() if "deps" in parts else None
    if deps is not None and not _AGENT.fullmatch(deps):
        raise parts["deps"].expected("module:object")
    earlier = None
    if "earlier" in parts:
        told = _part(parts["earlier"], "earlier")
        gap_ms = told["gap_ms"].whole(0, _LONGEST_MS) if "gap_ms" in told else GAP_MS
        crash = read_crash(told["crash"], gap_ms) if "crash" in told else None
        party = told["party"].text() if "party" in told else None
        earlier = Earlier(steps(told["caller"]), gap_ms, crash, party)
    behind = Behind(parts["party"].text() if "party" in parts else None, deps, earlier=earlier)
    return with_read_provider(behind, parts["provider"]) if "provider" in parts else behind


def _part(field: Field, name: str) -> dict[str, Field]:
    return field.mapping(KEYS[name], REQUIRED.get(name, ()))


def _callee(field: Field, directory: Path, speech: Speech) -> Callee:
    return read_callee(field, lambda tree: _located(tree, directory, "a tree file"), speech)


def _max_hold_s(parts: Mapping[str, Field]) -> int | None:
    if "max_hold_s" not in parts:
        return None
    if "callee" not in parts:
        raise parts["max_hold_s"].error("expected callee, who could put the agent on hold: leave out max_hold_s")
    return parts["max_hold_s"].whole(1, LONGEST_HOLD_S)


def _located(field: Field, directory: Path, what: str) -> Path:
    """The file that a field names: beside the scenario, or one directory up."""
    above = directory.resolve().parent if directory.name in ("", "..") else directory.parent
    places = (directory, above)
    for place in places:
        if (place / field.text()).is_file():
            return place / field.text()
    near = did_you_mean(field.text(), [found.name for place in places for found in place.glob("*.yaml")])
    raise field.error(
        f"expected {what} in the scenario's directory ({directory.resolve()}) or its parent ({above.resolve()}); "
        f'got "{field.text()}"{near}'
    )


def _tools(field: Field, tools_of: ToolsOf, *, has_provider: bool) -> Mapping[str, Tool]:
    try:
        tools = tools_of(field.text())
    except UsageError as problem:
        raise field.error(str(problem)) from problem
    for name, action in ((name, tool.action) for name, tool in tools.items() if tool.action is not None):
        if not has_provider:
            raise field.error(f"its action {name} needs the key provider, such as provider: {{answers: pending}}")
        if action.provider != STAND_IN:
            said = f"its action {name} names the provider {action.provider!r}; a scenario has a stand-in alone"
            raise field.error(f'{said}: declare it with provider="{STAND_IN}" to play it')
    return tools


def _speech_beside(rules: Path) -> Path:
    return rules.parent / "speech"


def _speech(field: Field, rules: Path) -> Speech:
    try:
        return Speech.load(_speech_beside(rules))
    except UsageError as problem:
        raise field.error(str(problem)) from problem


def _server(field: Field) -> dict[str, object]:
    from callwright.sim.server.settings import SETTINGS, misfit  # only where needed: it brings the whole server

    settings = field.mapping(SETTINGS)
    for name, setting in settings.items():
        if what := misfit(name, setting.data()):
            raise setting.expected_unquoted(what)
    return {name: setting.data() for name, setting in settings.items()}


def _connection(field: Field) -> NetworkSettings:
    parts = _part(field, "connection")
    opens_after_ms = parts["opens_after_ms"].whole(0, _LONGEST_MS) if "opens_after_ms" in parts else 0
    stalls = (_part(stall, "stall") for stall in parts["stalls"].sequence()) if "stalls" in parts else ()
    spans = (Stall(span["at_ms"].whole(0, _LONGEST_MS), span["for_ms"].whole(1, _LONGEST_MS)) for span in stalls)
    drops = parts["drops_at_ms"].sequence() if "drops_at_ms" in parts else ()
    refuses = parts["refuses"].sequence() if "refuses" in parts else ()
    return NetworkSettings(
        opens_after_ms,
        tuple(spans),
        tuple(drop.whole(1, _LONGEST_MS) for drop in drops),
        tuple(status.whole(300, 599) for status in refuses),
    )


def _line(field: Field) -> LineSettings:
    settings = {key: _LINE_READERS[key](part) for key, part in _part(field, "line").items()}
    try:
        return LineSettings(**settings)
    except UsageError as problem:
        raise field.error(str(problem)) from problem


def _room(field: Field) -> RoomSettings:
    settings = {key: _ROOM_READERS[key](part) for key, part in _part(field, "room").items()}
    try:
        return RoomSettings(**settings)
    except UsageError as problem:
        raise field.error(str(problem)) from problem


def _noise(field: Field) -> Noise:
    try:
        return Noise.parse(field.text())
    except UsageError as problem:
        raise field.error(str(problem)) from problem


def _aec(field: Field) -> Aec:
    """In YAML, ``on`` and ``off`` are truth values."""
    if isinstance(value := field.scalar(), bool):
        return Aec.ON if value else Aec.OFF
    return Aec(field.choice([aec.value for aec in Aec]))


_ROOM_READERS: Mapping[str, Callable[[Field], Any]] = {
    "name": lambda field: field.choice(ROOMS),
    "echo": lambda field: field.share(),
    "echo_delay_ms": lambda field: field.whole(0, LONGEST_DELAY_MS),
    "level_db": lambda field: field.whole(*LEVELS_DB),
    "noise": _noise,
    "aec": _aec,
}


def _format(field: Field) -> AudioFormat:
    try:
        return parse_format(field.text())
    except AudioFormatError as problem:
        raise field.error(str(problem)) from problem


_LINE_READERS: Mapping[str, Callable[[Field], Any]] = {
    "kind": lambda field: LineKind(field.choice([kind.value for kind in LineKind])),
    "format": _format,
    "hidden_lag_ms": lambda field: field.whole(0, 60_000),
    "fixed_lag_ms": lambda field: field.whole(0, 60_000),
    "clear_returns_marks": lambda field: field.flag(),
    "lose_marks": lambda field: tuple(number.whole(1, 1_000_000) for number in field.sequence()),
    "close_at_ms": lambda field: field.whole(0, _LONGEST_MS),
}


def _steps(field: Field, speech: Speech, agent: str, tools: Mapping[str, Tool] | None) -> tuple[Step, ...]:
    steps: list[Step] = []
    for entry in field.sequence():
        if steps and steps[-1].line_id is None:
            raise entry.error("expected nothing after hang_up")
        parts = _part(entry, "caller")
        if ("says" in parts) is ("does" in parts):
            raise entry.error("expected exactly one of says, does beside when")
        if "level_db" in parts and "says" not in parts:
            raise parts["level_db"].error("expected a line (says) that is louder or softer")
        level_db = parts["level_db"].whole(*LEVELS_DB) if "level_db" in parts else 0
        trigger, later_ms = _trigger(parts["when"], agent, tools)
        if trigger.anchor is Anchor.PREVIOUS_END and not steps:
            raise _trigger_error(parts["when"], str(trigger), "expected a line of the caller before it")
        if "does" in parts:
            parts["does"].choice(("hang_up",))
        line_id, *others = _said(parts["says"], speech) if "says" in parts else (None,)
        steps.append(Step(trigger, line_id, later_ms, tuple(filter(None, others)), level_db))
    return tuple(steps)


def _said(field: Field, speech: Speech) -> list[str]:
    """The line, or the lines of which one is drawn."""
    lines = field.sequence(2) if field.is_sequence else [field]
    return [text if (text := str(line.scalar())) in room_lines() else line_of(line, speech, "caller") for line in lines]


def _trigger(field: Field, agent: str, tools: Mapping[str, Tool] | None) -> tuple[Trigger, Ms]:
    """A trigger, and by how much it may be later."""
    text = " ".join(field.text().split())
    parsed = _TRIGGER.fullmatch(text)
    names = (*_ANCHORS, "<tool>.holding")
    if parsed is None:
        raise _trigger_error(field, text, f"expected {one_of(names)}, and then + N ms or + N..N ms")
    tool, anchor, offset_ms = parsed["tool"], parsed["anchor"], int(parsed["offset"])
    later_ms = int(parsed["latest"]) - offset_ms if parsed["latest"] else 0
    is_anywhere = parsed["latest"] is not None
    if is_anywhere and later_ms <= 0:
        raise _trigger_error(field, text, "expected the latest instant to be later than the first")
    if tool is not None:
        if tools is not None and (problem := _holds_not(tool, agent, tools)):
            raise _trigger_error(field, f"{tool}.holding", problem)
        return Trigger(Anchor.HOLDING, offset_ms, tool, is_anywhere), later_ms
    if anchor not in _ANCHORS:
        raise _trigger_error(field, anchor, f"expected {one_of(names)}{did_you_mean(anchor, _ANCHORS)}")
    if _ANCHORS[anchor] is Anchor.REPLY_END and offset_ms < REPLY_ENDS_AFTER_MS:
        problem = f"expected at least {REPLY_ENDS_AFTER_MS} ms: only after so much silence is a reply over"
        raise _trigger_error(field, text, problem)
    return Trigger(_ANCHORS[anchor], offset_ms, is_anywhere=is_anywhere), later_ms


def _holds_not(tool: str, agent: str, tools: Mapping[str, Tool]) -> str | None:
    """Why nothing is said while this tool runs; None where something is."""
    if tool not in tools:
        name = agent.partition(":")[0].rpartition(".")[2]
        return f"agent {name} has no such tool ({', '.join(tools)}){did_you_mean(tool, tools)}"
    if not spoken_arguments(tools[tool]):
        return "the tool has no holding line; declare one of its arguments as callwright.Spoken"
    return None


def _trigger_error(field: Field, trigger: str, problem: str) -> ScenarioError:
    return ScenarioError(f'{field.place}: trigger "{trigger}": {problem}')


def _expectations(field: Field, speech: Speech, metrics: Collection[str] | None) -> Expectations:
    parts = _part(field, "expect")
    return Expectations(
        _limits(parts, "max", metrics),
        _limits(parts, "min", metrics),
        _agent_lines(parts, "heard", speech),
        _agent_lines(parts, "not_heard", speech),
        parts["ended"].choice(("agent", "caller")) if "ended" in parts else None,
        tuple(read_effect(effect) for effect in parts["effects"].sequence()) if "effects" in parts else None,
    )


def _agent_lines(parts: Mapping[str, Field], key: str, speech: Speech) -> tuple[str, ...]:
    return tuple(line_of(line, speech, "agent") for line in parts[key].sequence()) if key in parts else ()


def _limits(parts: Mapping[str, Field], key: str, metrics: Collection[str] | None) -> dict[str, float]:
    limits = parts[key].mapping(metrics) if key in parts else {}
    return {name: limit.number() for name, limit in limits.items()}


def _before(field: Field, expect: Expectations, clients: Collection[str] | None) -> Before:
    parts = _part(field, "before")
    client = parts["client"].text() if clients is None else parts["client"].choice(clients)
    return Before(client, _must_fail(parts["must_fail"], expect))


def _must_fail(field: Field, expect: Expectations) -> tuple[str, ...]:
    named = [
        *dict.fromkeys((*expect.max, *expect.min)),
        *(key for key in ("heard", "not_heard", "ended") if getattr(expect, key)),
        *(["effects"] if expect.effects is not None else []),
    ]
    return tuple(entry.choice(named) for entry in field.sequence())


def _differing(
    field: Field, expect: Expectations, before: Before | None, speech: Speech, metrics: Collection[str] | None
) -> tuple[Expectations, Before | None]:
    """Expectations and baseline where a dialect differs: limits go before the others, lines and failures instead."""
    parts = _part(field, "dialect")
    expect = replace(
        expect,
        max={**expect.max, **_limits(parts, "max", metrics)},
        min={**expect.min, **_limits(parts, "min", metrics)},
        heard=_agent_lines(parts, "heard", speech) if "heard" in parts else expect.heard,
    )
    if "must_fail" in parts:
        if before is None:
            raise parts["must_fail"].error("expected a baseline (before) whose failures differ")
        before = replace(before, must_fail=_must_fail(parts["must_fail"], expect))
    return expect, before

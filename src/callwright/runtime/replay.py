"""A recorded call again: its events go into the core at their instants, and what the core asks for is compared.

```
trace    on A   do a1, do a2      on B   do b1            on C   do c1
core     A ───▶ a1,    a2   same  B ───▶ b1         same  C ───▶ c2    different: c1 was recorded, c2 is asked for
```

The core knows neither clock nor chance, so it does the same again unless it was changed. A timer that fired is an event
of the trace; where the core wants one at another instant, that is a difference, too.

Words that were not kept, or are masked, are made up in their length, but for the declared notices. What they decide may
come out differently, so that a difference behind them shows nothing: the replay stops there, and is incomplete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum, auto
from itertools import zip_longest
from typing import Any, Final, NamedTuple, get_args

import msgspec

from callwright.claims.masking import MASK
from callwright.core.commands import Command
from callwright.core.events import Event, TimerFired
from callwright.core.session import CallPlan, Session
from callwright.errors import UsageError
from callwright.ids import Ms
from callwright.runtime.head import read_plan
from callwright.runtime.kept import WORDS, length_of, made_up, notices_of, withheld
from callwright.runtime.trace import TRACE_VERSION, without_figures

LATE_MS: Final[Ms] = 250
"""A timer of a busy machine may fire so late."""
AROUND: Final = 3
"""So many rows are shown on either side of a difference."""
COLUMNS: Final = 116
_QUOTED: Final = 60

_EVENTS: Final[Mapping[str, type]] = {kind.__name__: kind for kind in get_args(Event)}
_COMMANDS: Final[Mapping[str, type]] = {kind.__name__: kind for kind in get_args(Command)}
_READ: Final = ("CallerTranscribed", "ReplyWritten", "ItemRetrieved", "FactChanged")
"""The events whose words the core understands; all others it hands on."""


class Outcome(StrEnum):
    """What came of a replay."""

    IDENTICAL = auto()
    """Every event led to the commands that were recorded."""
    DIFFERENT = auto()
    INCOMPLETE = auto()
    """It went as recorded up to a difference that words which are missing may have made."""


class Row(NamedTuple):
    """A row of a trace: ``name`` and ``content`` of an event or a command."""

    line: int
    at_ms: Ms
    kind: str
    name: str
    content: Any


class Step(NamedTuple):
    """An event, and what it led to."""

    event: Row
    commands: Sequence[Row]
    raised: str
    """The type of what broke the commands off; empty if nothing did."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the core does not do what was recorded."""

    line: int
    """The row that differs; where one is missing, the last row before it."""
    at_ms: Ms
    event_line: int
    """The row of the event that was handled."""
    what: str
    around: tuple[tuple[int, str], ...]
    """The rows around the line, by line."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a replay."""

    name: str
    outcome: Outcome
    events: int
    """So many events led to what was recorded."""
    commands: int
    """So many commands were the same."""
    lasted_ms: Ms
    lacking: tuple[int, ...]
    """The events, by line, whose words are not all there."""
    difference: Difference | None

    def __str__(self) -> str:
        """The outcome in words, with the rows around a difference."""
        counted = f"{self.events} events, {self.commands} commands"
        found = self.difference
        if found is None:
            return f"{self.name}: identical: {counted}, {self.lasted_ms / 1000:.1f} s{_lacking(self.lacking)}"
        before = found.event_line - 1
        if self.outcome is Outcome.DIFFERENT:
            head = f"{self.name}:{found.line}: different at {found.at_ms / 1000:.3f} s: {found.what}"
            told = f"the event is in line {found.event_line}; what came before it was the same: {counted}"
        else:
            head = f"{self.name}:{found.line}: incomplete from {found.at_ms / 1000:.3f} s on: {found.what}"
            told = (
                f"that may come of words that were not kept{_lacking(self.lacking)}; what came before was the same: "
                f"{counted}\nreplay that part: head -n {before} {self.name}"
            )
        rows = (f"{'>' if line == found.line else ' '} {line:6}  {text[:COLUMNS]}" for line, text in found.around)
        return "\n".join([head, told, "", *rows])


def replay(trace: bytes, name: str = "trace") -> Replayed:
    """Give the core a recorded call's events again, up to the first difference. ``name`` is that of the file.

    Raises UsageError, with the line, for what is no trace of this version, and for a baseline's, which has no core.
    """
    plan, rows = read_trace(trace, name)
    session = Session(plan)
    events = commands = 0
    lacking: list[int] = []
    found: tuple[int, str] | None = None
    step: Step | None = None
    wanted = _Wanted()
    for step in steps(rows, name):
        event = event_of(step.event, name, plan)
        if _lacks_words(step.event):
            lacking.append(step.event.line)
        if event is None:
            found = step.event.line, "what may be said of an operation was not kept"
        else:
            found = wanted.untimely(session, step) or _compared(step, led_to(session, event, step.event.at_ms))
        if found:
            break
        events += 1
        commands += len(step.commands)
    difference = None
    if found and step:
        around = tuple(enumerate(trace.decode().splitlines(), 1))[max(0, found[0] - 1 - AROUND) : found[0] + AROUND]
        difference = Difference(found[0], step.event.at_ms, step.event.line, found[1], around)
    outcome = Outcome.IDENTICAL if not found else Outcome.INCOMPLETE if lacking else Outcome.DIFFERENT
    return Replayed(name, outcome, events, commands, rows[-1].at_ms if rows else 0, tuple(lacking), difference)


# --- reading


def read_trace(trace: bytes, name: str) -> tuple[CallPlan, list[Row]]:
    """The plan of a call, and its rows. Raises UsageError with the line."""
    plan: CallPlan | None = None
    rows: list[Row] = []
    for line, text in enumerate(trace.splitlines(), 1):
        row = _row(text, line, name)
        if plan is None:
            plan = _plan(row, name)
            continue
        if rows and row.at_ms < rows[-1].at_ms:
            raise UsageError(f"{name}:{line}: expected an instant that is not before {rows[-1].at_ms} ms")
        rows.append(row)
    if plan is None:
        raise UsageError(f"{name}: expected a trace; there is no row in it")
    return plan, rows


def _row(text: bytes, line: int, name: str) -> Row:
    try:
        told = msgspec.json.decode(text)
    except msgspec.DecodeError:
        told = None
    match told:
        case [int(at_ms), str(kind), str(what), dict(content)]:
            return Row(line, at_ms, kind, what, content)
        case [int(at_ms), str(kind), content, *_]:
            return Row(line, at_ms, kind, "", content)
    raise UsageError(f"{name}:{line}: expected a row of a trace, [t_ms, kind, ...] as JSON")


def _plan(row: Row, name: str) -> CallPlan:
    place = f"{name}:{row.line}"
    if row.kind != "trace" or not isinstance(row.content, dict):
        raise UsageError(f'{place}: expected the head of a trace, [0,"trace",{{...}}]; this is no trace.jsonl')
    version = row.content.get("version")
    if version != TRACE_VERSION:
        raise UsageError(
            f"{place}: a trace of version {version}; here version {TRACE_VERSION} is replayed. Replay it with the "
            "release of Callwright that wrote it, or record the call again"
        )
    if client := row.content.get("client"):
        raise UsageError(f"{place}: the trace of the client {client}, which has no core to replay")
    try:
        return read_plan(row.content.get("plan"))
    except UsageError as problem:
        raise UsageError(f"{place}: {problem}; was it written by another release of Callwright?") from None


def steps(rows: Sequence[Row], name: str) -> Iterator[Step]:
    """Each event with what it led to; what the core knows nothing of is left out."""
    event: Row | None = None
    commands: list[Row] = []
    raised = ""
    for row in rows:
        match row.kind:
            case "on":
                if event:
                    yield Step(event, commands, raised)
                event, commands, raised = row, [], ""
            case "do" if event is None:
                raise UsageError(f"{name}:{row.line}: expected an event before the first command")
            case "do":
                commands.append(row)
            case "raised":
                raised = str(row.content)
    if event:
        yield Step(event, commands, raised)


def event_of(row: Row, name: str, plan: CallPlan) -> Event | None:
    """The event that was recorded, with words made up for those that are missing; None where that cannot be done."""
    kind = _EVENTS.get(row.name)
    if kind is None:
        raise UsageError(f"{name}:{row.line}: the event {row.name} is not known here")
    content = dict(row.content)
    for field in WORDS.get(row.name, ()):
        length = length_of(content.get(field))
        if length is not None and field == "facts":
            return None
        if length is not None:
            content[field] = made_up(content[field], notices_of(plan))
    try:
        event: Event = msgspec.convert(content, kind)
    except msgspec.ValidationError as problem:
        raise UsageError(f"{name}:{row.line}: {row.name}: {problem}") from problem
    return event


def _lacks_words(row: Row) -> bool:
    """Whether words that the core understands are missing, all or some."""
    if row.name not in _READ:
        return False
    values = [row.content.get(field) for field in WORDS[row.name]]
    return any(length_of(value) or (isinstance(value, str) and MASK in value) for value in values)


# --- comparing


def led_to(session: Session, event: Event, now_ms: Ms) -> list[Command] | Exception:
    """What the core asks for, or what it raises."""
    try:
        session.handle(event, now_ms)
    except Exception as problem:  # whatever it is: it is compared with what was recorded
        return problem
    return session.commands()


class _Wanted:
    """When the core wants its timer. One that fires is told behind a report of the line's at the same instant."""

    def __init__(self) -> None:
        self._at_ms: Ms = -1
        self._earliest_ms: Ms | None = None
        """The earliest that was wanted in this instant."""

    def untimely(self, session: Session, step: Step) -> tuple[int, str] | None:
        """Where it is wanted at another instant than it fired at."""
        deadline_ms, now_ms = session.next_deadline_ms(), step.event.at_ms
        if deadline_ms is not None and now_ms > max(deadline_ms, self._at_ms) + LATE_MS:
            return step.event.line, f"a timer is wanted at {deadline_ms} ms; none had fired by {now_ms} ms"
        before_ms = self._earliest_ms if self._at_ms == now_ms else None
        wanted_ms = min((each for each in (before_ms, deadline_ms) if each is not None), default=None)
        self._at_ms, self._earliest_ms = now_ms, wanted_ms
        if step.event.name == TimerFired.__name__ and (wanted_ms is None or wanted_ms > now_ms):
            wanted = "no timer is wanted" if wanted_ms is None else f"the timer is wanted at {wanted_ms} ms"
            return step.event.line, f"a timer was recorded; {wanted}"
        return None


def _compared(step: Step, led_to: list[Command] | Exception) -> tuple[int, str] | None:
    """The first row of a step that is not what the core does, and how that differs."""
    last = (step.commands[-1] if step.commands else step.event).line
    if isinstance(led_to, Exception):
        name = type(led_to).__name__
        if not step.commands and step.raised == name:
            return None
        return last, f"{step.event.name} led to {_names(step)}; it raises {name}: {led_to}"
    for row, command in zip_longest(step.commands, led_to):
        if row is None:
            return None if step.raised else (last, f"nothing more was recorded; {type(command).__name__} is asked for")
        if command is None:
            return row.line, f"{row.name} was recorded; nothing more is asked for"
        if row.name != type(command).__name__:
            return row.line, f"{row.name} was recorded; {type(command).__name__} is asked for"
        if what := _field_that_differs(row, command):
            return row.line, what
    return None


def _names(step: Step) -> str:
    return ", ".join(row.name for row in step.commands) or step.raised or "nothing"


def _field_that_differs(row: Row, command: Command) -> str:
    """The first field of a command that is not what was recorded, with both values; empty if there is none."""
    given = as_written(without_figures(command))
    missing = {each.name: each.default for each in fields(_COMMANDS[row.name]) if each.default is not MISSING}
    recorded = {**as_written(missing), **row.content}
    if any(length_of(recorded.get(name)) is not None for name in WORDS.get(row.name, ())):
        given = withheld(row.name, given)
    for name, value in recorded.items():
        if given.get(name) != value:
            was, now = _apart(msgspec.json.encode(value).decode(), msgspec.json.encode(given.get(name)).decode())
            return f"{row.name}.{name}: {was} was recorded, now {now}"
    return ""


def as_written(value: object) -> dict[str, Any]:
    """What is read again of a value that was written into a trace."""
    read: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return read


def _apart(one: str, other: str) -> tuple[str, str]:
    """Two values around the place where they part."""
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, same - _QUOTED // 2)
    return _clipped(one, start), _clipped(other, start)


def _clipped(text: str, start: int) -> str:
    end = start + _QUOTED
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"


def _lacking(lines: Sequence[int]) -> str:
    if not lines:
        return ""
    shown = ", ".join(map(str, lines[:AROUND]))
    return f" (words are missing in line {shown}{', ...' if len(lines) > AROUND else ''})"

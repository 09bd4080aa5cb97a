"""Play what was measured on the live service, and put our figures beside those that were published.

    python scripts/reproduce_figures.py                          every row, seeds 1 to 20 of each call
    python scripts/reproduce_figures.py --rows yield stall       these rows
    python scripts/reproduce_figures.py --jobs 2 --write         and put them into docs/reference/figures.md

Prints Markdown tables. A figure that was not played keeps what the page has of it, so that rows which need the extra
``aec`` are played only where that is installed. Exits with 1 if what was played does not come out as it should, but for
the rows of which it is known, and said with its reason, that they do not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple, Protocol

from callwright.cli.against import read_against
from callwright.cli.jobs import Batch, Task, cores
from callwright.cli.options import Setup
from callwright.cli.plan import make_plan
from callwright.ids import Ms
from callwright.measure.batch import RunResult, scored
from callwright.measure.figures import METRICS

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs/reference/figures.md"
BEGIN, END = "<!-- generated: begin -->\n", "<!-- generated: end -->"
COMMAND: Final = "callwright measure"
HEAD: Final = ("row", "what", "published", "taken as", "here", "so?", "command")
NOTHING: Final = "\N{EN DASH}"
UNPLAYED: Final = ("not played yet", NOTHING)
SECONDS_FROM: Final[Ms] = 100


class Found(NamedTuple):
    """What came out, as it is shown, and whether that counts as the same, or as met."""

    shown: str
    is_so: bool


class Statistic(Protocol):
    """What of many calls is one figure, and within which range it counts."""

    def __str__(self) -> str: ...

    def find(self, runs: Sequence[RunResult], others: Sequence[RunResult]) -> Found:
        """The figure of ``runs``; ``others`` are the same seeds played otherwise, where it compares."""
        ...


@dataclass(frozen=True, slots=True)
class Calls:
    """In how many calls a figure has a value of ``least`` or more: a share of them from ``low`` to ``high``."""

    metric: str
    low: float = 1
    high: float = 1
    least: float = 1

    def __str__(self) -> str:
        share = {(0, 0): "no call", (1, 1): "every call"}.get(
            (self.low, self.high), f"{self.low:.0%} to {self.high:.0%} of calls"
        )
        return f"{share} with `{self.metric}` from {self.least:g}"

    def find(self, runs: Sequence[RunResult], others: Sequence[RunResult]) -> Found:
        """So many of all calls."""
        count = sum(any(value >= self.least for value in scored(run).get(self.metric, ())) for run in runs)
        return Found(f"{count} of {len(runs)}", self.low <= count / len(runs) <= self.high)


@dataclass(frozen=True, slots=True)
class Median:
    """The median of a figure's values, from ``low`` to ``high`` in its unit."""

    metric: str
    low: float
    high: float

    def __str__(self) -> str:
        return f"median `{self.metric}`, {between(self.metric, self.low, self.high)}"

    def find(self, runs: Sequence[RunResult], others: Sequence[RunResult]) -> Found:
        """The median, and in brackets the least and the most."""
        values = values_of(runs, self.metric)
        if not values:
            return Found("none", False)
        middle = median(values)
        shown = f"{told(self.metric, middle)} ({between(self.metric, min(values), max(values))}, n = {len(values)})"
        return Found(shown, self.low <= middle <= self.high)


@dataclass(frozen=True, slots=True)
class Every:
    """All values of a figure, each from ``low`` to ``high`` in its unit."""

    metric: str
    low: float
    high: float

    def __str__(self) -> str:
        return f"every `{self.metric}`, {between(self.metric, self.low, self.high)}"

    def find(self, runs: Sequence[RunResult], others: Sequence[RunResult]) -> Found:
        """The least and the most."""
        values = values_of(runs, self.metric)
        if not values:
            return Found("none", False)
        shown = f"{between(self.metric, min(values), max(values))} (n = {len(values)})"
        return Found(shown, self.low <= min(values) and max(values) <= self.high)


@dataclass(frozen=True, slots=True)
class Change:
    """By how much a figure's values differ at most from those of the same seed with other options."""

    metric: str
    against: str
    high: float

    def __str__(self) -> str:
        return f"`{self.metric}`, at most {told(self.metric, self.high)} from its own with `{self.against}`"

    def find(self, runs: Sequence[RunResult], others: Sequence[RunResult]) -> Found:
        """The largest difference, and over how many values."""
        sides = [[scored(run).get(self.metric, ()) for run in each] for each in (runs, others)]
        pairs = list(zip(*sides, strict=True))
        if not all(len(one) == len(two) and one for one, two in pairs):
            return Found("not in every pair", False)
        changes = [abs(one - two) for both in pairs for one, two in zip(*both, strict=True)]
        return Found(f"{told(self.metric, max(changes))} at most (n = {len(changes)})", max(changes) <= self.high)


@dataclass(frozen=True, slots=True)
class AsExpected:
    """The calls that held all that their scenario expects: every one."""

    def __str__(self) -> str:
        return "every call as its scenario expects"

    def find(self, runs: Sequence[RunResult], others: Sequence[RunResult]) -> Found:
        """So many of all calls."""
        count = sum(not run.verdict.failed and not run.figures.void for run in runs)
        return Found(f"{count} of {len(runs)}", count == len(runs))


def values_of(runs: Sequence[RunResult], metric: str) -> list[float]:
    """All values that a figure has in these calls."""
    return [value for run in runs for value in scored(run).get(metric, ())]


def between(metric: str, low: float, high: float) -> str:
    """A range as it is told; of one value that alone."""
    unit = f" {unit_of(metric, high)}"
    first, last = (told(metric, value, high).removesuffix(unit) for value in (low, high))
    return f"{first}{unit}" if first == last else f"{first} to {last}{unit}"


def told(metric: str, value: float, like: float | None = None) -> str:
    """A value with its unit, that of ``like`` if it stands beside one; lengths from 0.1 s on are in seconds."""
    unit = unit_of(metric, value if like is None else like)
    return f"{value / 1000:.2f} s" if unit == "s" and METRICS[metric].unit == "ms" else f"{value:g} {unit}"


def unit_of(metric: str, value: float) -> str:
    """The unit in which this value is told."""
    unit = METRICS[metric].unit
    return "s" if unit == "ms" and value >= SECONDS_FROM else unit


@dataclass(frozen=True, slots=True)
class Line:
    """One figure: what was published, and how ours comes about."""

    what: str
    published: str
    """As it was measured on the live service, unless it says otherwise; ``NOTHING`` where nothing was."""
    command: str
    """What is played, behind ``callwright measure``."""
    statistic: Statistic
    because: str = ""
    """Why it is known not to come out so; empty where it should."""

    @property
    def against(self) -> str | None:
        """The command of the calls that it is compared with."""
        return f"{self.command} {self.statistic.against}" if isinstance(self.statistic, Change) else None

    @property
    def is_playable(self) -> bool:
        """Whether what it needs is installed."""
        return "aec3" not in self.command or find_spec("livekit") is not None

    def cells(self, name: str) -> tuple[str, ...]:
        """What of it is not measured: the row's name, what, published, how it is taken, and the command."""
        command = f"{COMMAND} {self.command}" + (f' --against "{self.statistic.against}"' if self.against else "")
        return name, self.what, self.published, str(self.statistic), f"`{command}`"


SPEAKERS: Final = "scripts/scenarios/loudspeaker.yaml"
STALL: Final = "scripts/scenarios/stall.yaml"
ECHOES: Final = (("5 %", "0.05"), ("15 %", "0.15"), ("30 %", "0.3"), ("50 %", "0.5"))


def _own_voice(told: str, echo: str) -> Iterator[Line]:
    """What a naive client without a canceller makes of its own voice."""
    command = f"speakers --client naive --room dry --echo {echo}"
    published = "every reply cut after about 1 s, 15 of 15 at 50, 15 and 5 %"
    yield Line(f"echo {told}, no canceller: cut by its own voice", published, command, Calls("echo_self_interrupts"))
    yield Line(f"echo {told}, no canceller: heard of a reply", "about 1 s", command, Median("heard_ms", 700, 1_500))


def _cancelled(told: str, echo: str) -> Iterator[Line]:
    """What ours makes of it, with its canceller, which it chooses by itself."""
    command = f"{SPEAKERS} --echo {echo}"
    published = "3 of 3 clean" if echo == "0.3" else NOTHING
    yield Line(f"echo {told}, ours: as without an echo", published, command, AsExpected())
    yield Line(f"echo {told}, ours: cut by its own voice", published, command, Calls("echo_self_interrupts", 0, 0))
    yield Line(f"echo {told}, ours: a word of the caller's lost", NOTHING, command, Calls("caller_words_missing", 0, 0))
    yield Line(
        f"echo {told}, ours: stops as without an echo", NOTHING, command, Change("yield_latency_ms", "--echo 0", 100)
    )


HOTEL: Final[Mapping[str, Sequence[Line]]] = {
    "yield": [
        Line(
            "a reply stops after the caller starts",
            "0.74 to 0.80 s, as the server confirms it",
            "check-in",
            Median("yield_latency_ms", 740, 830),
        ),
    ],
    "recap": [
        Line("the next reply begins the cut sentence again", "5 of 7", "check-in", Calls("answer_restates", 0.5, 0.9)),
        Line("it begins again from the start", "0 of about 20", "check-in", Calls("starts_over", 0, 0)),
    ],
    "pickup": [
        Line("naive: first words lost", "1 word in 10 of 10", "pickup --client naive", Calls("pickup_lost_words")),
        Line("session ready", "0.23 to 2.83 s", "pickup --client naive", Every("session_ready_ms", 230, 2_850)),
        Line("ours: first words lost", "0 of 10", "pickup", Calls("pickup_lost_words", 0, 0)),
        Line("ours: held audio in a burst, a word lost", "0 of 30", "pickup", Calls("caller_words_missing", 0, 0)),
        Line(
            "µ-law before `session.update` is lost",
            "5 of 5",
            "pickup --client sends-early-audio",
            Calls("pickup_lost_words"),
        ),
    ],
    "lag": [
        Line(
            "1.5 s behind, no truncate: history beyond what was heard",
            "about 2 s",
            "check-in --lag-ms 1500 --no-truncate",
            Median("heard_error_ms", 1_500, 2_500),
        ),
        Line("1.5 s behind, ours", "0", "check-in --lag-ms 1500", Every("heard_error_ms", 0, 20)),
    ],
    "goodbye": [
        Line("naive: goodbye played", "median 1.0 s", "pickup --client naive", Median("goodbye_played_ms", 900, 1_100)),
        Line("naive: goodbye whole", "0 of 10", "pickup --client naive", Calls("goodbye_played", 0, 0)),
        Line("ours: goodbye whole", "10 of 10", "pickup", Calls("goodbye_played")),
        Line("ours: goodbye played", "3.6 to 5.1 s", "pickup", Every("goodbye_played_ms", 3_600, 5_100)),
    ],
    "stall": [
        Line(
            "0.5 s of stall, hung up when empty: goodbye whole",
            "cut (offline)",
            f"{STALL} --before",
            Calls("goodbye_played", 0, 0),
        ),
        Line("0.5 s of stall, ours: goodbye whole", "whole (offline)", STALL, Calls("goodbye_played")),
    ],
    "kept": [
        Line("a tool call is kept though its line was cut", "10 of 10", "booking --audit", Calls("tool_calls_kept")),
    ],
}

ROOMS: Final[Mapping[str, Sequence[Line]]] = {
    "own-voice": [line for told, echo in ECHOES for line in _own_voice(told, echo)],
    "begins-again": [
        Line("echo 30 %, naive: a reply begins again", "yes", "speakers --before", Calls("starts_over")),
        Line("echo 30 %, ours: a reply begins again", "0 of 3", "speakers", Calls("starts_over", 0, 0)),
    ],
    "cancelled": [line for told, echo in ECHOES for line in _cancelled(told, echo)],
    "harm": [
        Line(
            "no echo, AEC3 on: the reply stops",
            "4 of 6 after 2.2 to 6.3 s, 2 of 6 never",
            "check-in --client naive --aec aec3",
            Median("yield_latency_ms", 2_200, 6_300),
            "late, but never so late",
        ),
        Line(
            "no echo, AEC3 on: words of the caller lost",
            "first words lost",
            "check-in --client naive --aec aec3",
            Calls("caller_words_missing"),
        ),
        Line(
            "no echo, ours on: a word lost",
            NOTHING,
            f"{SPEAKERS} --room dry --echo 0 --aec on",
            Calls("caller_words_missing", 0, 0),
        ),
        Line(
            "no echo, ours on: stops as with none",
            NOTHING,
            f"{SPEAKERS} --room dry --echo 0 --aec on",
            Change("yield_latency_ms", "--aec off", 100),
        ),
        Line(
            "no echo, ours as it chooses: as with none",
            "canceller off there",
            f"{SPEAKERS} --room dry --echo 0",
            Change("yield_latency_ms", "--aec off", 0),
        ),
    ],
}

REFUNDS: Final[Mapping[str, Sequence[Line]]] = {
    "did-it": [
        Line(
            "`did-it-go-through`, reply suppressed: never told",
            "10 of 10; 5 of 5",
            "did-it-go-through --before",
            Calls("untold_at_hangup"),
        ),
        Line(
            "the same, a passive note: ignored",
            "10 of 10",
            "did-it-go-through --client posts-a-note",
            Calls("untold_at_hangup"),
        ),
        Line("the same, ours: never told", "0 of 5", "did-it-go-through", Calls("untold_at_hangup", 0, 0)),
        Line("the model calls again", "0 of 10", "did-it-go-through", Calls("asks_per_operation", 0, 0, least=2)),
    ],
    "gap": [
        Line("`mm-hmm-gap`, reply suppressed: never told", "5 of 5", "mm-hmm-gap --before", Calls("untold_at_hangup")),
        Line("the same, ours: never told", "0 of 5", "mm-hmm-gap", Calls("untold_at_hangup", 0, 0)),
    ],
    "missed": [
        Line(
            "`missed-confirmation`, naive: never told",
            "5 of 5",
            "missed-confirmation --before",
            Calls("untold_at_hangup"),
        ),
        Line("the same, ours: never told", "0 of 5", "missed-confirmation", Calls("untold_at_hangup", 0, 0)),
    ],
    "wrong-card": [
        Line(
            "`wrong-card`, keyed by call: two refunds",
            "yes (offline)",
            "wrong-card --client by-call-id",
            Calls("duplicate_effects"),
        ),
        Line("the same, ours: two refunds", "0 of 5", "wrong-card", Calls("duplicate_effects", 0, 0)),
        Line("the same, ours: to the right card, once, and heard", "5 of 5", "wrong-card", AsExpected()),
        Line("the model calls again", "5 of 5", "wrong-card", Calls("asks_per_operation", least=2)),
    ],
}

MURMURS: Final[Mapping[str, Sequence[Line]]] = {
    "murmur": [
        Line(
            "a murmur over the agent, naive: stopped", "0 of 20", "mm-hmm --client by-order", Calls("replies_cut", 0, 0)
        ),
        Line("over the holding line, ours: stopped", "0 of 20", "mm-hmm", Calls("replies_cut", 0, 0)),
        Line("over the confirmation, ours: stopped", "0 of 20", "mm-hmm-confirmation", Calls("replies_cut", 0, 0)),
        Line("in the gap: taken as a turn", "5 of 5", "mm-hmm-gap", Calls("noise_as_caller")),
    ],
    "news": [
        Line("a news reader, naive: stopped", "0 of 10", "tv --client by-order", Calls("replies_cut", 0, 0)),
        Line("a news reader, naive: taken as a turn", "10 of 10", "tv --client by-order", Calls("noise_as_caller")),
        Line("a news reader, ours: stopped", "0 of 10", "tv", Calls("replies_cut", 0, 0)),
        Line("a news reader, ours: taken as a turn", "10 of 10", "tv", Calls("noise_as_caller")),
        Line("a news reader, ours: once, and heard", NOTHING, "tv", AsExpected()),
    ],
}

HOLD: Final[Mapping[str, Sequence[Line]]] = {
    "40-s": [
        Line("on hold, ours", "40 s", "hold", Median("seconds_on_hold", 35, 45)),
        Line("on hold, ours: spoke", "nothing", "hold", Calls("spoke_on_hold", 0, 0)),
        Line("the same, a reply asked for to every output: spoke", NOTHING, "hold --before", Calls("spoke_on_hold")),
        Line("ours: answered Sam", "after 0.93 s", "hold", Median("answered_after_ms", 800, 1_200)),
        Line("the key, behind the menu", "about 1 s after it", "hold", Median("key_after_ms", 800, 1_400)),
        Line("the key: heard once, alone", NOTHING, "hold", Every("keys_pressed", 1, 1)),
        Line("ours: all that is expected", NOTHING, "hold", AsExpected()),
    ],
    "710-s": [
        Line("on hold, ours", "710 s", "hold --hold 700", Median("seconds_on_hold", 700, 720)),
        Line("on hold, ours: spoke", "nothing", "hold --hold 700", Calls("spoke_on_hold", 0, 0)),
        Line("ours: answered Sam", "after 1.14 s", "hold --hold 700", Median("answered_after_ms", 800, 1_200)),
    ],
    "music-turn": [
        Line("`[music]` taken for a turn", "in 1 of 5 calls", "hold", Calls("music_turns", 0.05, 0.4)),
        Line("the same, ours: spoke", "nothing", "music-turn", Calls("spoke_on_hold", 0, 0)),
    ],
    "disclosed": [
        Line("the person heard that it is a machine", NOTHING, "hold", Calls("ai_notice_heard")),
        Line("so long behind his greeting", NOTHING, "hold", Every("introduced_after_ms", 0, 3_000)),
    ],
}

PARTS: Final[Mapping[str, Mapping[str, Sequence[Line]]]] = {
    "The hotel": HOTEL,
    "Rooms": ROOMS,
    "Refunds": REFUNDS,
    "Murmurs and a news reader": MURMURS,
    "On hold": HOLD,
}
"""All rows, by the heading that they stand under and by name."""


Cells = tuple[str, ...]
Stored = Mapping[Cells, Cells]
"""What was measured of each line, by its other cells."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what is asked for. Returns the exit code."""
    names = [name for rows in PARTS.values() for name in rows]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", nargs="+", choices=names, default=names, metavar="NAME", help=f"of {', '.join(names)}"
    )
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="calls of each (20)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="the first one's seed (1)")
    parser.add_argument("--jobs", type=int, default=cores(), metavar="J", help="how many play at once (all cores)")
    parser.add_argument("--write", action="store_true", help=f"put what comes out into {PAGE.relative_to(ROOT)}")
    asked = parser.parse_args(arguments)
    lines = [(name, line) for rows in PARTS.values() for name in rows if name in asked.rows for line in rows[name]]
    measured = measure(lines, range(asked.seed, asked.seed + asked.runs), asked.jobs)
    for name, line in lines:
        if not line.is_playable:
            print(f"{name}: {line.what}: needs the extra aec: pip install 'callwright[aec]'", file=sys.stderr)
    print(tables({**stored(), **measured}, asked.rows))
    if asked.write:
        PAGE.write_text(page({**stored(), **measured}), "utf-8")
    return int(any(not line.because and measured.get(line.cells(name), ("", "yes"))[1] == "no" for name, line in lines))


def measure(lines: Sequence[tuple[str, Line]], seeds: Sequence[int], jobs: int) -> Stored:
    """Play what these lines need, each call once, and take their figures."""
    playable = [(name, line) for name, line in lines if line.is_playable]
    needed = dict.fromkeys(command for _, line in playable for command in (line.command, line.against) if command)
    tasks = [Task(plan, seed) for plan in (make_plan(*parsed(command)) for command in needed) for seed in seeds]
    first = {command: number * len(seeds) for number, command in enumerate(needed)}
    found: dict[Cells, Cells] = {}
    with Batch(tasks, jobs) as batch:
        for name, line in playable:
            runs, others = (
                [batch.run(first[command] + number) for number in range(len(seeds))] if command else []
                for command in (line.command, line.against)
            )
            found[line.cells(name)] = as_cells(line, line.statistic.find(runs, others), runs)
            print(f"{name}: {line.what}: {', '.join(found[line.cells(name)])}", file=sys.stderr)
    return found


def as_cells(line: Line, found: Found, runs: Sequence[RunResult]) -> Cells:
    """What was measured, and whether it is so; calls that did not try what they were meant to are told."""
    void = sum(bool(run.figures.void) for run in runs)
    shown = found.shown + f", {void} void" * bool(void)
    if found.is_so and not void:
        return shown, "yes"
    return shown, f"no: {line.because}" if line.because else "no"


def parsed(command: str) -> tuple[str, Setup]:
    """The scenario of a command, and how it is played."""
    scenario, _, options = command.partition(" ")
    return scenario, read_against(options, Setup()) if options else Setup()


def stored() -> Stored:
    """What the page has of each line; of one that has changed in anything, nothing."""
    rows = [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in PAGE.read_text("utf-8").splitlines()]
    found = {(*row[:4], row[6]): (row[4], row[5]) for row in rows if len(row) == len(HEAD)}
    known = [line.cells(name) for rows in PARTS.values() for name, lines in rows.items() for line in lines]
    return {cells: found[cells] for cells in known if found.get(cells, UNPLAYED) != UNPLAYED}


def page(measured: Stored) -> str:
    """The page with these figures."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return before + BEGIN + tables(measured) + END + rest.partition(END)[2]


def tables(measured: Stored, names: Sequence[str] | None = None) -> str:
    """All rows, or those of these names, under their headings."""
    parts = []
    for heading, rows in PARTS.items():
        lines = [line.cells(name) for name in rows if names is None or name in names for line in rows[name]]
        body = [(*cells[:4], *measured.get(cells, UNPLAYED), cells[4]) for cells in lines]
        shown = [HEAD, ("---",) * len(HEAD), *body]
        if body:
            parts.append(f"## {heading}\n\n" + "".join(f"| {' | '.join(cells)} |\n" for cells in shown))
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())

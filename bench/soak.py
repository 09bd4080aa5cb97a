"""Whether a process that takes calls day and night grows: 24 hours of simulated calls back to back, in virtual time.

Run ``python bench/soak.py [HOURS]``; at least 8 hours are needed to judge by. The calls are those of every scenario
that ships, in each round with another seed and another fate (``FATES``), each of them measured and replayed. After
every hour of calls a row tells what the process holds (``census.py``). Exits with 1 if anything has grown. Ctrl-C ends
it, and what was finished is judged. ``--lines`` prints which lines of code hold what has grown, and takes three times
as long for it. ``sockets.py`` does the same to connections.
"""

from __future__ import annotations

import itertools
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.census import Census, head, told

from callwright.cli.plan import ROOTS
from callwright.errors import ConnectionFailed
from callwright.ids import Ms
from callwright.measure.figures import figures_of
from callwright.measure.hearing import hear_call
from callwright.runtime.replay import replay
from callwright.sim.scenario import Scenario, find_scenarios, load_scenario
from callwright.sim.world import OURS, Options, play

HOUR_MS: Final[Ms] = 3_600_000
SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class Call:
    """A call, and how it is played."""

    scenario: Scenario
    client: str = OURS
    options: Options = field(default_factory=Options)

    def take(self, seed: int) -> Ms:
        """Play it and do with its record what users do; how long it was."""
        try:
            record = play(self.scenario, seed, client=self.client, options=self.options)
        except ConnectionFailed:
            return 0
        figures_of(hear_call(record, self.scenario.lines))
        if self.client == OURS:
            replay(record.trace, record.scenario)
        return record.ended_ms


def _over(scenario: Scenario, **connection: Any) -> Call:
    return Call(replace(scenario, connection=replace(scenario.connection, **connection)))


def _served(scenario: Scenario, **server: Any) -> Call:
    return Call(scenario, options=Options(server=server))


FATES: Final[dict[str, Callable[[Scenario], Call]]] = {
    "as it is": Call,
    "breaks at 9 s and at 20 s": lambda scenario: _over(scenario, drops_at_ms=(9_000, 20_000)),
    "its session ends after 25 s, unannounced": lambda scenario: _served(scenario, longest_session_ms=25_000),
    "is refused": lambda scenario: _over(scenario, refuses=(401,)),
    "as it is, again": Call,
    "is refused twice, and then taken": lambda scenario: _over(scenario, refuses=(503, 429)),
    "is handed over before 60 s": lambda scenario: _served(scenario, longest_session_ms=60_000),
    "is cut off after 7 s": lambda scenario: Call(replace(scenario, limit_ms=7_000)),
    "is taken by the naive client": lambda scenario: Call(scenario, "naive"),
    "hears nothing for 3 s": lambda scenario: _over(scenario, stalls=((8_000, 3_000),)),
}
"""What becomes of a call."""


def calls() -> Iterator[tuple[Call, int]]:
    """Calls without end, each with its seed."""
    scenarios = [load_scenario(path) for path in find_scenarios(ROOTS).values()]
    fates = list(FATES.values())
    for seed in itertools.count(1):
        for number, scenario in enumerate(scenarios):
            yield fates[(seed + number) % len(fates)](scenario), seed


def soak(hours: float) -> list[Census]:
    """Play calls for so long; what the process held after each hour."""
    rows: list[Census] = []
    began_s, count, took_ms = time.process_time(), 0, 0
    snapshots: list[tracemalloc.Snapshot] = []
    print(head("hour"), flush=True)
    with until_interrupted():
        for call, seed in calls():
            took_ms += call.take(seed)
            count += 1
            if took_ms >= (len(rows) + 1) * HOUR_MS:
                rows.append(Census.taken())
                print(rows[-1].row(str(len(rows))), flush=True)
                if tracemalloc.is_tracing():
                    snapshots.append(tracemalloc.take_snapshot())
            if took_ms >= hours * HOUR_MS:
                break
    print(f"{count} calls, {took_ms / HOUR_MS:.1f} hours of them, {time.process_time() - began_s:.0f} s of CPU")
    for line in snapshots[-1].compare_to(snapshots[0], "lineno")[:SHOWN] if snapshots else ():
        print(f"  {line.size_diff / 1024:8.0f} KiB  {line.traceback}")
    return rows


@contextmanager
def until_interrupted() -> Iterator[None]:
    """Let Ctrl-C end what is inside, and no more than that."""
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Print the table and the verdict."""
    given = [each for each in arguments if not each.startswith("--")]
    if "--lines" in arguments:
        tracemalloc.start()
    return int(not told("calls", soak(float(given[0]) if given else 24)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A process that plays call after call holds as much after them as before; ``bench/soak.py`` plays a day of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import IOBase
from pathlib import Path

from bench.census import JUDGED, MAY_GROW, NAMES, WARM_UP, Census, grown
from bench.soak import FATES, Call

from callwright.cli.plan import ROOTS
from callwright.ids import Ms
from callwright.sim.scenario import find_scenarios, load_scenario
from callwright.sim.vloop import VirtualLoop

CUT_MS: Ms = 5_000
COUNTED = [name for name in NAMES if name not in MAY_GROW]
Taker = Callable[[Call, int], object]


def calls() -> Iterator[Call]:
    """Calls of every app, which the line cuts off: as they are, refused, and followed by another session."""
    files = find_scenarios(ROOTS)
    for name in ("pickup", "cancel-shipped", "busy"):
        scenario = replace(load_scenario(files[name]), limit_ms=CUT_MS)
        breaks = replace(scenario, connection=replace(scenario.connection, drops_at_ms=(2_000,)))
        yield from (Call(scenario), FATES["is refused"](scenario), Call(breaks))


def after(rounds: int, take: Taker) -> list[Census]:
    """What the process holds after each round of calls, the first of which fills the caches."""
    rows = []
    for seed in range(rounds):
        for call in calls():
            take(call, seed)
        rows.append(Census.taken())
    return rows


def left_behind(take: Taker) -> list[str]:
    """What there is more of after the third round than after the second."""
    _, before, behind = after(3, take)
    bounds = {**dict.fromkeys(COUNTED, 0), "objects": 50, "blocks": 500}
    return [name for name, bound in bounds.items() if getattr(behind, name) - getattr(before, name) > bound]


def test_c131_a_round_of_calls_leaves_nothing_behind_however_they_end() -> None:
    assert left_behind(Call.take) == []


def test_what_a_call_would_leave_behind_is_seen() -> None:
    kept: list[object] = []

    def keeps_a_task(_call: Call, _seed: int) -> None:
        loop = VirtualLoop()
        kept.append(loop.create_task(asyncio.sleep(1)))

    def keeps_a_file(_call: Call, _seed: int) -> None:
        kept.append(Path(__file__).open("rb"))  # noqa: SIM115 - that is the leak

    def keeps_words(_call: Call, seed: int) -> None:
        kept.extend(str(seed * 100 + number) for number in range(100))

    assert left_behind(keeps_a_task) == ["tasks", "loops", "objects"]
    assert "descriptors" in left_behind(keeps_a_file)
    assert left_behind(keeps_words) == ["blocks"]
    for each in kept:
        if isinstance(each, asyncio.Task):
            each.get_loop().close()
        elif isinstance(each, IOBase):
            each.close()


def test_a_day_is_judged_by_its_end_and_its_beginning() -> None:
    """What fills in the warm-up, and what swings, is no growth."""
    row = Census(*range(10, 10 + len(NAMES)))
    flat = [row] * (WARM_UP + 2 * JUDGED)
    assert grown(flat) == []
    assert grown([replace(row, tasks=0)] * WARM_UP + flat[WARM_UP:]) == []
    assert grown([*flat[:-1], replace(row, resident_kib=10**9)]) == []
    more = replace(row, tasks=row.tasks + 1, resident_kib=row.resident_kib + MAY_GROW["resident_kib"] + 1)
    assert grown([*flat[:-2], more, more]) == [
        "tasks have grown from 10 to 11",
        "resident_kib have grown from 17 to 16402",
    ]
    (too_few,) = grown(flat[1:])
    assert too_few == "7 rows are too few to judge by: 2 are the warm-up, 6 are compared"

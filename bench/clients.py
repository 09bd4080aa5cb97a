"""The client's process of ``bench/calls.py``: many calls of one client, whose cost is this process's and no other's.

``python bench/clients.py CLIENT WHAT URL CORE ...`` prints one JSON object. Clients: ``fast`` (ours on picows and
uvloop), ``plain`` (ours on websockets and asyncio), ``naive`` (websockets, json and base64).
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from books import Books

WARM_S = 1.5
TRANSPORTS: dict[str, Any] = {"fast": "picows", "plain": "websockets"}


async def load(calls: int, seconds: float, make: Callable[[Books], Any]) -> dict[str, Any]:
    """Many calls at once: CPU, lateness, pauses, memory, stops."""
    books = Books()
    tasks = []
    for _ in range(calls):
        tasks.append(asyncio.create_task(make(books).run()))
        await asyncio.sleep(0.003)
    watching = asyncio.create_task(books.watch())
    await asyncio.sleep(WARM_S)
    if any(task.done() for task in tasks):
        raise SystemExit(f"a call ended: {next(task for task in tasks if task.done())}")
    gc.collect()
    gc.freeze()  # what stands now stands until the process ends: no collection walks it again
    await asyncio.sleep(0.2)  # the collection itself is no pause of a running call
    books.is_open, books.empty = True, 0
    books.stops.clear()
    cpu_s, start_s = time.process_time(), time.monotonic()
    await asyncio.sleep(seconds)
    cpu_s, wall_s = time.process_time() - cpu_s, time.monotonic() - start_s
    books.is_open = False
    rss_kib = resident_kib()
    ended = sum(task.done() for task in tasks)
    watching.cancel()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, watching, return_exceptions=True)
    stops = [stop for stop in books.stops if stop.silent_s is not None and stop.sent_s]
    return {
        "cpu_s": cpu_s,
        "carried_minutes": len(books.late_us) / 3_000,
        "due_minutes": calls * wall_s / 60,
        "empty": books.empty / (calls * wall_s * 50),
        "late_us": quantiles(books.late_us),
        "pause_ms": quantiles(books.pauses_ms),
        "rss_kib": rss_kib,
        "ended": ended,
        "stops": len(stops),
        "stop_ms": quantiles([1e3 * (stop.silent_s - stop.sent_s) for stop in stops if stop.silent_s]),
        "software_ms": quantiles([1e3 * (stop.cleared_s - stop.sent_s) for stop in stops]),
        "after_stop": sum(stop.late for stop in stops),
    }


def resident_kib() -> int:
    """Memory of this process; the most that it ever took where the system does not tell."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize() // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def quantiles(values: Any) -> list[float]:
    """Median, 99th percentile and largest."""
    ordered = sorted(values) or [0]
    return [ordered[int(part * (len(ordered) - 1))] for part in (0.5, 0.99, 1)]


def measurement(client: str, what: str, url: str, numbers: list[float]) -> Awaitable[Any]:
    """What is to be run; nothing of ours is imported where another client is measured."""
    if client == "naive":
        from naive import NaiveCall, naive_down, naive_up

        ways = {"up": naive_up, "down": naive_down}

        def make(books: Books) -> Any:
            return NaiveCall(f"{url}/{what}", books)
    else:
        from ours import OurCall, our_down, our_up

        transport = TRANSPORTS[client]
        ways = {"up": partial(our_up, transport), "down": partial(our_down, transport)}

        def make(books: Books) -> Any:
            return OurCall(f"{url}/{what}", books, transport, tap=what == "talk-over")

    if what in ways:
        return ways[what](url + {"up": "/", "down": "/chunks"}[what], int(numbers[0]))
    return load(int(numbers[0]), numbers[1], make)


def main() -> None:
    """Run one client."""
    client, what, url, core, *numbers = sys.argv[1:]
    if int(core) >= 0:
        os.sched_setaffinity(0, {int(core)})
    factory: Any = None
    if client == "fast":
        import uvloop

        factory = uvloop.new_event_loop
    job = measurement(client, what, url, [float(number) for number in numbers])
    with asyncio.Runner(loop_factory=factory) as runner:
        print(json.dumps(runner.run(job)))


if __name__ == "__main__":
    main()

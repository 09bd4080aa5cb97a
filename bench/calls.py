"""What many calls in one process cost, beside a client as one writes it in an hour, over sockets of this machine.

Run ``python bench/calls.py``, or with ``--quick``. The peer has a process and a core of its own, and each client a
process per measurement, so that its CPU time is told alone. The clients take turns, and of all rounds the best figure
counts: other programs may share the machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from startup import cpu_seconds

HERE = Path(__file__).parent
CLIENTS = ("fast", "plain", "naive")
Figures = dict[str, Any]

START = (
    "import callwright as cw, callwright.runtime.call, callwright.runtime.websocket, callwright.lines.player; cw.Agent"
)


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    rounds: int = 2
    path_rounds: int = 7
    sizes: tuple[int, ...] = (5, 20, 50, 200)
    seconds: float = 6
    stop_seconds: float = 12
    frames: int = 10_000
    chunks: int = 5_000


QUICK = Plan(rounds=1, path_rounds=2, sizes=(5, 50), seconds=3, stop_seconds=5, frames=5_000, chunks=2_000)


@dataclass
class Bench:
    """The peer's address, and what was measured."""

    url: str
    plan: Plan
    cores: tuple[int, int]
    rounds: dict[tuple[str, str, int], list[Figures]] = field(default_factory=dict)
    """By client, what, and number of calls."""

    def measure(self, client: str, what: str, *numbers: float) -> Any:
        """Run one client's process."""
        command = [sys.executable, str(HERE / "clients.py"), client, what, self.url, str(self.cores[0])]
        done = subprocess.run([*command, *map(str, numbers)], check=True, stdout=subprocess.PIPE)
        return json.loads(done.stdout)

    def turns(self, what: str, calls: int, seconds: float) -> None:
        """Let the clients take turns."""
        for _ in range(self.plan.rounds):
            for client in CLIENTS:
                self.rounds.setdefault((client, what, calls), []).append(self.measure(client, what, calls, seconds))

    def best(self, client: str, what: str, calls: int, figure: Callable[[Figures], Any]) -> Any:
        """The least of a figure over all rounds."""
        return min(figure(measured) for measured in self.rounds[client, what, calls])


@contextmanager
def peer(core: int) -> Iterator[str]:
    """The address of a load peer in a process of its own."""
    command = [sys.executable, str(HERE / "peer.py"), str(core)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"ws://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def cpu(measured: Figures) -> float:
    """CPU seconds per minute of a call that was carried."""
    return float(measured["cpu_s"] / measured["carried_minutes"])


def paths(bench: Bench) -> None:
    """The two frequent ways, unpaced."""
    print(f"{'CPU time, unpaced':34}" + "".join(f"{client:>10}" for client in CLIENTS) + f"{'budget':>10}")
    for what, title, count, budget in (
        ("up", "20 ms frame, line to socket", bench.plan.frames, 13),
        ("down", "200 ms chunk, socket to line", bench.plan.chunks, 35),
    ):
        figures: dict[str, list[float]] = {client: [] for client in CLIENTS}
        for _ in range(bench.plan.path_rounds):
            for client in CLIENTS:
                figures[client].append(bench.measure(client, what, count))
        cells = "".join(f"{min(figures[client]) / count * 1e6:7.1f} us" for client in CLIENTS)
        print(f"{title:34}{cells}{budget:7} us")


def loads(bench: Bench) -> None:
    """Many calls at speaking pace."""
    print(f"\n{'calls at speaking pace':24}{'CPU s a minute':>16}{'of naive':>10}{'carried':>9}", end="")
    print(f"{'a frame is late by p50, p99, max ms':>38}{'pause p99, max ms':>20}")
    for calls in bench.plan.sizes:
        bench.turns("speak", calls, bench.plan.seconds)
        naive = bench.best("naive", "speak", calls, cpu)
        for client in CLIENTS:
            spent = bench.best(client, "speak", calls, cpu)
            carried = -bench.best(client, "speak", calls, lambda each: -each["carried_minutes"] / each["due_minutes"])
            late = sorted(bench.rounds[client, "speak", calls], key=lambda each: each["late_us"][1])[0]["late_us"]
            pause = bench.best(client, "speak", calls, lambda each: each["pause_ms"][1:])
            print(f"{calls:5} {client:18}{spent:16.3f}{spent / naive:10.2f}{min(carried, 1):9.0%}", end="")
            print("".join(f"{us / 1e3:12.1f}" for us in late) + "  " + "".join(f"{ms:10.1f}" for ms in pause))


def memory(bench: Bench) -> None:
    """What a further call takes."""
    few, many = bench.plan.sizes[-2:]
    print(f"\nmemory of a further call, {few} to {many}", end="")
    for client in CLIENTS:
        taken = [bench.best(client, "speak", calls, lambda each: each["rss_kib"]) for calls in (few, many)]
        print(f"   {client} {(taken[1] - taken[0]) / (many - few):.0f} KiB", end="")
    print("   (budget 60 KiB)")


def stops(bench: Bench, calls: int = 20) -> None:
    """The caller talks over the reply."""
    bench.turns("talk-over", calls, bench.plan.stop_seconds)
    print(f"\n{calls} calls, talked over     {'stops':>6}{'to silence p50, p99, max ms':>36}", end="")
    print(f"{'to the clearing p50, p99, max ms':>36}{'handed on after it':>20}")
    for client in CLIENTS:
        rounds = bench.rounds[client, "talk-over", calls]
        silence = min((each["stop_ms"] for each in rounds), key=lambda quantiles: quantiles[1])
        software = min((each["software_ms"] for each in rounds), key=lambda quantiles: quantiles[1])
        print(f"{client:25}{sum(each['stops'] for each in rounds):8}", end="")
        print("".join(f"{ms:12.2f}" for ms in silence + software) + f"{sum(each['after_stop'] for each in rounds):20}")


def start(bench: Bench) -> None:
    """How long until a process can take calls."""
    empty, ours = (min(cpu_seconds([sys.executable, "-c", code]) for _ in range(5)) for code in ("pass", START))
    print(f"\nstart: {ours:.2f} s CPU until calls can be taken, an empty interpreter {empty:.2f} s")


def main() -> None:
    """Print all tables."""
    plan = QUICK if "--quick" in sys.argv[1:] else Plan()
    cores = (0, 1) if hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) > 1 else (-1, -1)
    with peer(cores[1]) as url:
        bench = Bench(url, plan, cores)
        for part in (paths, loads, memory, stops, start):
            part(bench)
            sys.stdout.flush()


if __name__ == "__main__":
    main()

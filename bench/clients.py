"""The client's process of ``bench/calls.py``: many calls of one client, whose cost is this process's and no other's.

``python bench/clients.py CLIENT WHAT URL ...`` prints one JSON object. Clients: ``fast`` (ours on picows and uvloop),
``plain`` (ours on websockets and asyncio), ``naive`` (websockets, json and base64, as one would write it in an hour).
"""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import os
import resource
import sys
import time
from array import array
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import websockets

FRAME = bytes(range(240)) * 4
"""20 ms of the caller: PCM16 at 24 kHz."""
SILENCE = bytes(960)
WARM_S = 1.5
BEAT_S = 0.005
"""How often the loop's pauses are looked for."""


class Books:
    """What one process notes down while it runs."""

    def __init__(self) -> None:
        self.late_us = array("L")
        """From the instant at which a caller's frame was due to its write on the socket."""
        self.empty = 0
        """Pulls that found too little reply audio."""
        self.stops: list[Stop] = []
        self.pauses_ms = array("d")
        self.is_open = False
        self.ready = 0

    def sent(self, due_s: float) -> None:
        """A frame was written that was due at this instant of the loop's time, which is the machine's monotonic one."""
        if self.is_open:
            self.late_us.append(max(0, int((time.monotonic() - due_s) * 1e6)))

    async def watch(self) -> None:
        """Note how long the loop was away: no longer than it was late, and than the CPU time that this process took."""
        loop = asyncio.get_running_loop()
        while True:
            due_s, cpu_s = loop.time() + BEAT_S, time.process_time()
            await asyncio.sleep(BEAT_S)
            if self.is_open:
                self.pauses_ms.append(1e3 * min(loop.time() - due_s, time.process_time() - cpu_s))


class Stop:
    """One stop of a reply that the caller talked over."""

    def __init__(self, sent_s: float, item: object = None) -> None:
        self.sent_s = sent_s
        self.item = item
        self.cleared_s = time.monotonic()
        self.silent_s: float | None = None
        self.late = 0
        """Pieces that were handed on or taken afterwards."""


# ---------------------------------------------------------------------------------------------------------- naive


class NaiveCall:
    """A client as one writes it in an hour: a task that reads, one that sends, one that plays."""

    def __init__(self, url: str, books: Books) -> None:
        self.url = url
        self.books = books
        self.buffer = bytearray()
        self.stop: Stop | None = None

    async def run(self) -> None:
        """Talk until cancelled."""
        async with websockets.connect(self.url) as ws:
            await ws.send(json.dumps({"type": "session.update", "session": {"instructions": "Be brief."}}))
            jobs: list[asyncio.Task[None]] = []
            try:
                async for text in ws:
                    event = json.loads(text)
                    if event["type"] == "response.output_audio.delta":
                        self.buffer += base64.b64decode(event["delta"])
                    elif event["type"] == "input_audio_buffer.speech_started":
                        self.buffer.clear()
                        self.stop = Stop(event["audio_start_ms"] / 1e6)
                        self.books.stops.append(self.stop)
                    elif event["type"] == "session.updated":
                        self.books.ready += 1
                        jobs = [asyncio.create_task(self.send(ws)), asyncio.create_task(self.play())]
            finally:
                for job in jobs:
                    job.cancel()

    async def send(self, ws: websockets.ClientConnection) -> None:
        """Send the caller's frames."""
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        while True:
            audio = base64.b64encode(FRAME).decode()
            await ws.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
            self.books.sent(due_s)
            due_s += 0.02
            await asyncio.sleep(max(0, due_s - loop.time()))

    async def play(self) -> None:
        """Play the reply."""
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        while True:
            frame = self.buffer[:960]
            del self.buffer[:960]
            if len(frame) < 960:
                self.books.empty += 1
            if self.stop is not None and self.stop.silent_s is None:
                if frame:
                    self.stop.late += 1
                else:
                    self.stop.silent_s = time.monotonic()
            due_s += 0.02
            await asyncio.sleep(max(0, due_s - loop.time()))


async def naive_up(url: str, count: int) -> float:
    """CPU seconds of sending frames, one after the other."""
    async with websockets.connect(url) as ws:
        await ws.recv()
        cpu_s = time.process_time()
        for _ in range(count):
            audio = base64.b64encode(FRAME).decode()
            await ws.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
            await asyncio.sleep(0)
        return time.process_time() - cpu_s


async def naive_down(url: str, count: int) -> float:
    """CPU seconds of taking chunks, one after the other."""
    buffer = bytearray()
    async with websockets.connect(url) as ws:
        await ws.send(json.dumps({"type": "session.update", "session": {}}))
        cpu_s = 0.0
        async for text in ws:
            event = json.loads(text)
            if event["type"] == "response.output_audio.delta":
                if not cpu_s:
                    cpu_s = time.process_time()
                buffer += base64.b64decode(event["delta"])
                if len(buffer) > count * 9_600:
                    break
        return time.process_time() - cpu_s


# ----------------------------------------------------------------------------------------------------------- ours


def ours(transport: Any) -> tuple[Any, type, Callable[[str], Any]]:
    """Our client: its agent, its line, and what makes a connector."""
    import callwright as cw
    from callwright.audio.formats import PCM16_24K
    from callwright.core.ports import PlayedReports
    from callwright.lines.clock import line_clock
    from callwright.lines.player import Player
    from callwright.runtime.connect import connector
    from callwright.runtime.endpoint import Endpoint

    class NullLine:
        """The least line: a frame up and a frame down on every beat of the shared clock, or by hand."""

        input_format = output_format = PCM16_24K
        reports = PlayedReports.PULLED
        latency_ms = 0

        def __init__(self, books: Books, *, by_hand: bool = False) -> None:
            self.books = books
            self.by_hand = by_hand
            self.player: Player
            self.awaited = 0
            self.counted = asyncio.Event()
            self.stop: Stop | None = None
            self.last_item: object = None
            self.opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self.talked_over_s = 0.0

        async def open(self, sink: Any) -> None:
            self.sink = sink
            self.player = Player(PCM16_24K, sink.on_played)
            self.loop = asyncio.get_running_loop()
            if not self.by_hand:
                line_clock().join(self.beat)
            self.opened.set_result(sink)

        def beat(self, due_s: float) -> None:
            self.sink.on_frame(FRAME)
            self.books.sent(due_s)
            frame = self.player.take()
            if frame == SILENCE:
                self.books.empty += 1
            stop = self.stop
            if stop is not None and stop.silent_s is None:
                if frame == SILENCE:
                    stop.silent_s = time.monotonic()
                else:
                    stop.late += 1

        def play(self, item_id: str, generation: int, audio: bytes) -> None:
            if self.stop is not None and item_id == self.stop.item:
                self.stop.late += 1
            self.last_item = item_id
            if not self.by_hand:
                self.player.put(item_id, generation, audio)
            elif self.awaited:
                self.awaited -= 1
                if not self.awaited:
                    self.counted.set()

        async def count(self, pieces: int) -> None:
            """Wait until so many more were handed over."""
            self.counted.clear()
            self.awaited = pieces
            await self.counted.wait()

        def mark(self, mark_id: object) -> None:
            raise NotImplementedError

        def clear(self) -> None:
            self.player.clear()
            self.stop = Stop(self.talked_over_s, self.last_item)
            self.books.stops.append(self.stop)

        async def hang_up(self) -> None:
            line_clock().leave(self.beat)

    def make_connector(url: str) -> Any:
        return connector(Endpoint(url, "key"), transport=transport)

    return cw.Agent("desk", model=cw.polyai(), instructions="Be brief."), NullLine, make_connector


class Tap:
    """A connector that tells a line when the server sent ``speech_started``; only for the measuring of stops."""

    def __init__(self, inner: Any, line: Any) -> None:
        self.inner = inner
        self.line = line

    async def connect(self, sink: Any) -> Any:
        """Connect, and look at each message before the call does."""
        line = self.line

        class Sink:
            on_closed = sink.on_closed

            def on_message(self, message: bytes) -> None:
                if b"speech_started" in message[:80]:
                    line.talked_over_s = json.loads(message)["audio_start_ms"] / 1e6
                sink.on_message(message)

        return await self.inner.connect(Sink())


class OurCall:
    """One call of ours."""

    def __init__(self, url: str, books: Books, parts: tuple[Any, type, Callable[[str], Any]], *, tap: bool) -> None:
        self.agent, line_class, make_connector = parts
        self.line = line_class(books)
        self.connector: Any = make_connector(url)
        self.books = books
        if tap:
            self.connector = Tap(self.connector, self.line)

    async def run(self) -> None:
        """Talk until cancelled."""
        import callwright as cw

        self.books.ready += 1
        await cw.run(self.agent, self.line, connector=self.connector)


async def our_up(parts: tuple[Any, type, Callable[[str], Any]], url: str, count: int) -> float:
    """CPU seconds of a line's frames, one per turn of the loop."""
    call, line = await _our_call(parts, url)
    cpu_s = time.process_time()
    for _ in range(count):
        line.sink.on_frame(FRAME)
        await asyncio.sleep(0)
    cpu_s = time.process_time() - cpu_s
    call.cancel()
    return cpu_s


async def our_down(parts: tuple[Any, type, Callable[[str], Any]], url: str, count: int) -> float:
    """CPU seconds of chunks on their way from the socket to the line."""
    call, line = await _our_call(parts, url)
    await line.count(1)
    cpu_s = time.process_time()
    await line.count(count)
    cpu_s = time.process_time() - cpu_s
    call.cancel()
    return cpu_s


async def _our_call(parts: tuple[Any, type, Callable[[str], Any]], url: str) -> tuple[asyncio.Task[Any], Any]:
    import callwright as cw

    agent, line_class, make_connector = parts
    line = line_class(Books(), by_hand=True)
    call = asyncio.create_task(cw.run(agent, line, connector=make_connector(url)))
    await line.opened
    await asyncio.sleep(0.3)  # the session is ready long before
    return call, line


# ----------------------------------------------------------------------------------------------- what is measured


async def load(url: str, calls: int, seconds: float, make: Callable[[Books], Any]) -> dict[str, Any]:
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


def main() -> None:
    """Run one client."""
    client, what, url, core, *numbers = sys.argv[1:]
    if int(core) >= 0:
        os.sched_setaffinity(0, {int(core)})
    uses_uvloop = client == "fast"
    if uses_uvloop:
        import uvloop

        factory: Any = uvloop.new_event_loop
    else:
        factory = None
    parts = None if client == "naive" else ours({"fast": "picows", "plain": "websockets"}[client])
    job: Awaitable[Any]
    if what == "up":
        job = our_up(parts, f"{url}/", int(numbers[0])) if parts else naive_up(f"{url}/", int(numbers[0]))
    elif what == "down":
        url = f"{url}/chunks"
        job = our_down(parts, url, int(numbers[0])) if parts else naive_down(url, int(numbers[0]))
    else:
        tap, url = what == "talk-over", f"{url}/{what}"
        make = (lambda books: OurCall(url, books, parts, tap=tap)) if parts else (lambda books: NaiveCall(url, books))
        job = load(url, int(numbers[0]), float(numbers[1]), make)
    with asyncio.Runner(loop_factory=factory) as runner:
        print(json.dumps(runner.run(job)))


if __name__ == "__main__":
    main()

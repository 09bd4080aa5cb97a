"""Our client on a line of nothing, for ``bench/clients.py``."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from books import FRAME, SILENCE, Books, Stop

import callwright as cw
from callwright.audio.formats import PCM16_24K
from callwright.core.ports import Connector, PlayedReports
from callwright.lines.clock import line_clock
from callwright.lines.player import Player
from callwright.runtime.connect import Transport, connector
from callwright.runtime.endpoint import Endpoint

DESK = cw.Agent("desk", model=cw.polyai(), instructions="Be brief.")


class NullLine:
    """The least line: a frame up and a frame down on every beat of the shared clock, or by hand."""

    input_format = output_format = PCM16_24K
    reports = PlayedReports.PULLED
    latency_ms = 0
    reaches_person = False

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
        """Join the clock."""
        self.sink = sink
        self.player = Player(PCM16_24K, sink.on_played)
        if not self.by_hand:
            line_clock().join(self.beat)
        self.opened.set_result(sink)

    def beat(self, due_s: float) -> None:
        """A frame each way."""
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
        """Queue audio, or count it."""
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
        """Never asked of a line with pulled reports."""
        raise NotImplementedError

    def clear(self) -> None:
        """Drop what waits, and note the stop."""
        self.player.clear()
        self.stop = Stop(self.talked_over_s, self.last_item)
        self.books.stops.append(self.stop)

    async def hang_up(self) -> None:
        """Leave the clock."""
        line_clock().leave(self.beat)


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

    def __init__(self, url: str, books: Books, transport: Transport, *, tap: bool) -> None:
        self.line = NullLine(books)
        self.connector: Connector = connector(Endpoint(url, "key"), transport=transport)
        self.books = books
        if tap:
            self.connector = Tap(self.connector, self.line)

    async def run(self) -> None:
        """Talk until cancelled."""
        self.books.ready += 1
        await cw.run(DESK, self.line, connector=self.connector)


async def our_up(transport: Transport, url: str, count: int) -> float:
    """CPU seconds of a line's frames, one per turn of the loop."""
    call, line = await _our_call(transport, url)
    cpu_s = time.process_time()
    for _ in range(count):
        line.sink.on_frame(FRAME)
        await asyncio.sleep(0)
    cpu_s = time.process_time() - cpu_s
    call.cancel()
    return cpu_s


async def our_down(transport: Transport, url: str, count: int) -> float:
    """CPU seconds of chunks on their way from the socket to the line."""
    call, line = await _our_call(transport, url)
    await line.count(1)
    cpu_s = time.process_time()
    await line.count(count)
    cpu_s = time.process_time() - cpu_s
    call.cancel()
    return cpu_s


async def _our_call(transport: Transport, url: str) -> tuple[asyncio.Task[Any], NullLine]:
    import callwright as cw

    line = NullLine(Books(), by_hand=True)
    reach = connector(Endpoint(url, "key"), transport=transport)
    call = asyncio.create_task(cw.run(DESK, line, connector=reach))
    await line.opened
    await asyncio.sleep(0.3)  # the session is ready long before
    return call, line

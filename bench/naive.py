"""A client as one writes it in an hour: ``websockets``, ``json`` and ``base64``."""

from __future__ import annotations

import asyncio
import base64
import json
import time

import websockets
from books import FRAME, Books, Stop


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

"""An agent of ours as a program of its own at an audio socket: ``python socket_agent.py MODULE:NAME``."""

from __future__ import annotations

import asyncio
import json
import os
import sys

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

import callwright as cw
from callwright.audio.formats import PCM16_24K
from callwright.core.ports import LineSink, PlayedReports
from callwright.core.transcript import Speaker
from callwright.ids import ItemId, MarkId
from callwright.sim.agents import load_agent


class SocketLine:
    """The client's side of an audio socket as a `Line`."""

    input_format = output_format = PCM16_24K
    reports = PlayedReports.MARKS
    latency_ms = 0
    reaches_person = False

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._waiting: asyncio.Queue[bytes | str] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self, sink: LineSink) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._listen(sink)), loop.create_task(self._send())]

    def play(self, item_id: ItemId, generation: int, audio: bytes) -> None:
        self._waiting.put_nowait(audio)

    def mark(self, mark_id: MarkId) -> None:
        self.tell(type="mark", name=mark_id)

    def clear(self) -> None:
        self.tell(type="clear")

    async def hang_up(self) -> None:
        self.tell(type="hang_up")

    def tell(self, **fields: object) -> None:
        self._waiting.put_nowait(json.dumps(fields))

    async def close(self) -> None:
        await self._waiting.join()
        await self._socket.close()

    async def _listen(self, sink: LineSink) -> None:
        async for message in self._socket:
            if isinstance(message, bytes):
                sink.on_frame(message)
                continue
            match json.loads(message):
                case {"type": "mark", "name": str(name)}:
                    sink.on_mark(MarkId(name))
                case {"type": "end", "by": str(by), "reason": str(reason)}:
                    sink.on_closed(by, reason)

    async def _send(self) -> None:
        try:
            while True:
                await self._socket.send(await self._waiting.get())
                self._waiting.task_done()
        except ConnectionClosed:
            pass


async def main(entry: str) -> None:
    async with connect(os.environ["CALLWRIGHT_AUDIO_URL"], compression=None) as socket:
        line = SocketLine(socket)
        call = await cw.run(load_agent(entry), line)
        for turn in call.turns:
            if turn.speaker is Speaker.AGENT:
                line.tell(type="heard", item_id=turn.item_id, text=turn.heard)
        await line.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

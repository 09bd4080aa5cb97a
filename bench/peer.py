"""A realtime server that costs next to nothing: it speaks at speaking pace and takes whatever it is sent.

``python bench/peer.py [CORE]`` runs in a process of its own and prints its port. Messages are encoded beforehand, and
one timer serves all connections. What it does depends on the path:

- ``/speak`` replies of 5 s without end: audio (24 kHz PCM16) and some text every 200 ms, the first two at once;
- ``/talk-over`` the same, and the caller talks over the reply once a second;
- ``/chunks`` ten audio deltas every millisecond, whatever their length, as long as they are read;
- ``/`` nothing but an answer to the configuration.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import itertools
import json
import logging
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import uvloop
from picows import WSFrame, WSListener, WSMsgType, WSTransport, WSUpgradeRequest, ws_create_server

CHUNK_MS = 200
SLOTS = 40
"""Groups of connections that are served 5 ms apart."""
REPLY_CHUNKS = 25
TALK_OVER_CHUNKS = 5
APPEND_BYTES = range(1_300, 1_400)
"""20 ms of PCM16 at 24 kHz in base64, and what is around it; nothing else that a client sends is as long."""
LATE_CHUNKS = 2
"""Audio of a cancelled response that is still under way."""
AUDIO = base64.b64encode(random.Random(1).randbytes(CHUNK_MS * 48))
TEXT = "Check-in is from three; "

_numbers = itertools.count(1)


def message(kind: str, **fields: object) -> bytes:
    """One event as the services send it."""
    return json.dumps({"type": kind, "event_id": "event_0123456789abcdef", **fields}).encode()


class Reply:
    """The messages of one reply."""

    def __init__(self) -> None:
        number = next(_numbers)
        self.ids = {"response_id": f"resp_{number:016x}", "item_id": f"item_{number:016x}"}
        part = {**self.ids, "output_index": 0, "content_index": 0}
        item = {"id": self.ids["item_id"], "type": "message", "role": "assistant", "content": []}
        self.response = {"object": "realtime.response", "id": self.ids["response_id"], "output": []}
        self.begin = [
            message("response.created", response={**self.response, "status": "in_progress"}),
            message("response.output_item.added", response_id=self.ids["response_id"], output_index=0, item=item),
            message("conversation.item.added", previous_item_id=None, item=item),
        ]
        head, tail = message("response.output_audio.delta", **part, delta="|").split(b"|")
        self.delta = head + AUDIO + tail
        self.text = message("response.output_audio_transcript.delta", **part, delta=TEXT)
        transcript = TEXT * REPLY_CHUNKS
        self.end = [
            message("response.output_audio.done", **part),
            message("response.output_audio_transcript.done", **part, transcript=transcript),
            message("response.done", response={**self.response, "status": "completed"}),
        ]

    def cancelled(self) -> list[bytes]:
        """The end of a reply that the caller talked over, and of what he said."""
        return [
            message("response.done", response={**self.response, "status": "cancelled"}),
            message("input_audio_buffer.speech_stopped", item_id=f"caller of {self.ids['item_id']}", audio_end_ms=0),
        ]

    def talked_over(self) -> bytes:
        """The event that stops the reply; it tells the instant in µs of the machine's monotonic clock."""
        now_us = time.monotonic_ns() // 1000
        return message(
            "input_audio_buffer.speech_started", item_id=f"caller of {self.ids['item_id']}", audio_start_ms=now_us
        )


Messages: TypeAlias = Iterator[Sequence[bytes | Callable[[], bytes]]]


def speak() -> Messages:
    """What is sent every 200 ms."""
    while True:
        reply = Reply()
        yield [*reply.begin, reply.delta, reply.text, reply.delta]
        for _ in range(REPLY_CHUNKS - 2):
            yield [reply.delta, reply.text]
        yield reply.end


def talk_over() -> Messages:
    """The same; what is made only as it is sent comes at any moment of a frame."""
    while True:
        reply = Reply()
        yield [*reply.begin, reply.delta, reply.text, reply.delta]
        for _ in range(TALK_OVER_CHUNKS - 3):
            yield [reply.delta, reply.text]
        yield [reply.talked_over]
        yield [reply.delta] * LATE_CHUNKS + reply.cancelled()


SPEAKERS: dict[str, Callable[[], Messages]] = {"/speak": speak, "/talk-over": talk_over}


class Connection(WSListener):
    """One client."""

    def __init__(self, peer: Peer, path: str) -> None:
        self.peer = peer
        self.path = path
        self.script = SPEAKERS[path]() if path in SPEAKERS else None
        self.chunk = Reply()

    def on_ws_connected(self, transport: WSTransport) -> None:
        """Begin as the services do."""
        self.transport = transport
        self.send(message("session.created", session={"type": "realtime"}))

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        """Take a message; appends, told by their length, cost nothing."""
        if frame.payload_size in APPEND_BYTES:
            return
        if frame.msg_type == WSMsgType.CLOSE:
            transport.send_close(frame.get_close_code(), b"")
            transport.disconnect()
            return
        event = json.loads(frame.get_payload_as_bytes())
        if event["type"] == "session.update":
            self.send(message("session.updated", session={"type": "realtime"}))
            if self.path != "/":
                self.peer.begin(self)
        elif event["type"] == "conversation.item.retrieve":
            content = [{"type": "output_audio", "transcript": "Check-in is-"}]
            item = {"id": event["item_id"], "type": "message", "role": "assistant", "content": content}
            self.send(message("conversation.item.retrieved", item=item))

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        """The client is gone."""
        self.peer.end(self)

    def send(self, data: bytes) -> None:
        """Send one text message."""
        self.transport.send(WSMsgType.TEXT, data)

    def step(self) -> None:
        """Send what is due."""
        if self.script is None:
            for _ in range(10):
                if self.transport.underlying_transport.get_write_buffer_size() < 1_000_000:
                    self.send(self.chunk.delta)
            return
        for data in next(self.script):
            if callable(data):
                self.peer.loop.call_later(random.random() * 0.02, lambda make=data: self.send(make()))
            else:
                self.send(data)


class Peer:
    """All connections, and the one timer."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.slots: list[dict[Connection, None]] = [{} for _ in range(SLOTS)]
        self.floods: dict[Connection, None] = {}
        self.due_s = self.loop.time()
        self.count = 0
        self.tick()

    def begin(self, connection: Connection) -> None:
        """Serve this one: at another phase every time, so that stops fall anywhere between two frames."""
        if connection.script is None:
            self.floods[connection] = None
        else:
            min(self.slots, key=len)[connection] = None

    def end(self, connection: Connection) -> None:
        """Serve it no more."""
        for slot in (self.floods, *self.slots):
            slot.pop(connection, None)

    def tick(self) -> None:
        """One millisecond with floods, else five."""
        self.count += 1
        for connection in list(self.floods):
            connection.step()
        if self.count % 5 == 0:
            for connection in list(self.slots[self.count // 5 % SLOTS]):
                connection.step()
        self.due_s += 0.001
        self.loop.call_at(self.due_s, self.tick)


async def main() -> None:
    """Serve until killed."""
    peer = Peer()
    quiet = logging.getLogger("peer")
    quiet.setLevel(logging.CRITICAL)

    def accept(request: WSUpgradeRequest) -> WSListener:
        return Connection(peer, request.path.decode().partition("?")[0])

    server = await ws_create_server(accept, "127.0.0.1", 0, logger_name=quiet)
    print(server.sockets[0].getsockname()[1], flush=True)
    gc.freeze()
    await server.serve_forever()


if __name__ == "__main__":
    core = int(sys.argv[1]) if len(sys.argv) > 1 else -1
    if core >= 0:
        os.sched_setaffinity(0, {core})
    uvloop.run(main())

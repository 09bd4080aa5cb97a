"""A connector that sends the caller's frames of one instant as one message. Changes nothing that is said or heard.

Frames arrive several at a time here. The server's clock counts samples, so it goes on by as much as if they had come
one by one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from callwright.sim.quick.told import SILENCE
from callwright.wire.codec import encode_append

if TYPE_CHECKING:
    from callwright.core.ports import Connector, ModelConnection, ModelSink

assert len(SILENCE) % 3 == 0
_HEAD, _TAIL = encode_append(b"")[:-2], encode_append(b"")[-2:]


class Gathering:
    """Reaches the model through another connector. Implements ``callwright.core.ports.Connector``."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector

    async def connect(self, sink: ModelSink) -> ModelConnection:
        """Connect. Raises ConnectionFailed as the other connector does."""
        return _Connection(await self._connector.connect(sink))


class _Connection:
    def __init__(self, connection: ModelConnection) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._gathered: list[bytes] = []
        """The audio that was not sent on, as it is written in messages."""

    def send(self, message: bytes) -> None:
        """Send one message, in order."""
        if message.startswith(_HEAD):
            if not self._gathered:
                self._loop.call_soon(self._send_gathered)
            self._gathered.append(message[len(_HEAD) : -len(_TAIL)])
            return
        self._send_gathered()
        self._connection.send(message)

    async def close(self) -> None:
        """End the connection; idempotent."""
        self._gathered.clear()
        await self._connection.close()

    def _send_gathered(self) -> None:
        if self._gathered:
            audio = b"".join(self._gathered)  # a frame is so many times three bytes, so nothing is in between
            self._gathered.clear()
            self._connection.send(_HEAD + audio + _TAIL)

"""Asks the server at the end of a connection whether it still has every tool call that it made.

```
client   ...  close
server   called(a)  called(b)  |  retrieve a -> the item; retrieve b -> not found  |  closed
```

The questions are the connection's last messages, in the protocol's own words; the client does not see the answers.
"""

from __future__ import annotations

import asyncio

from callwright.core.ports import Connector, ModelConnection, ModelSink
from callwright.errors import RemoteProtocolError
from callwright.wire.client import ConversationItemRetrieve
from callwright.wire.codec import decode_server, encode
from callwright.wire.items import FunctionCallItem
from callwright.wire.server import ConversationItemRetrieved, ErrorEvent, ResponseFunctionCallArgumentsDone

ANSWER_S = 1.0
"""How long the answers are waited for at most."""
_MARK = "audit_"
_GONE = "item_retrieve_invalid_item_id"


class Audit:
    """Another connector's connections, each asked for its tool calls before it is closed."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self.asked: list[str] = []
        """The items of the tool calls that the server made, in order."""
        self._kept: dict[str, bool] = {}

    @property
    def kept(self) -> tuple[bool, ...] | None:
        """Of each tool call, whether it is still in history; None if the server did not say it of all."""
        return tuple(self._kept[item] for item in self.asked) if len(self._kept) == len(self.asked) else None

    async def connect(self, sink: ModelSink) -> ModelConnection:
        """Connect as the other does. Raises ConnectionFailed."""
        listener = _Listener(self, sink)
        return _Audited(await self._connector.connect(listener), listener)

    def question(self, item: str) -> bytes:
        """What asks for an item."""
        return encode(ConversationItemRetrieve(event_id=f"{_MARK}{self.asked.index(item)}", item_id=item))

    def heard(self, message: bytes | str) -> None:
        """Take a message of the server; what is no event says nothing."""
        try:
            event = decode_server(message)
        except RemoteProtocolError:
            return
        match event:
            case ResponseFunctionCallArgumentsDone():
                self.asked.append(event.item_id)
            case ConversationItemRetrieved(item=FunctionCallItem(id=str(item))) if item in self.asked:
                self._kept[item] = True
            case ErrorEvent() if (event.error.event_id or "").startswith(_MARK) and event.error.code == _GONE:
                assert event.error.event_id is not None
                self._kept[self.asked[int(event.error.event_id.removeprefix(_MARK))]] = False


class _Listener:
    """Hands on what arrives, up to the questions; from then on it only listens for answers."""

    def __init__(self, audit: Audit, sink: ModelSink) -> None:
        self.audit = audit
        self.over = asyncio.Event()
        """Set when all is answered, or the connection has ended."""
        self._sink = sink
        self._is_asking = False

    def ask(self, connection: ModelConnection) -> None:
        """Send the questions."""
        self._is_asking = True
        for item in self.audit.asked:
            connection.send(self.audit.question(item))

    def on_message(self, message: bytes | str) -> None:
        """Take a message of the server."""
        self.audit.heard(message)
        if not self._is_asking:
            self._sink.on_message(message)
        elif self.audit.kept is not None:
            self.over.set()

    def on_closed(self, code: int, reason: str) -> None:
        """Take the end of the connection."""
        self.over.set()
        self._sink.on_closed(code, reason)


class _Audited:
    def __init__(self, connection: ModelConnection, listener: _Listener) -> None:
        self.send = connection.send
        self._connection = connection
        self._listener = listener

    async def close(self) -> None:
        """Ask, and end the connection."""
        if self._listener.audit.asked and not self._listener.over.is_set():
            self._listener.ask(self._connection)
            try:
                async with asyncio.timeout(ANSWER_S):
                    await self._listener.over.wait()
            except TimeoutError:
                pass
        await self._connection.close()

"""Asks the server at the end of a connection: what it still has of its tool calls, or of what it said.

```
client   ...  close
server   called(a)  called(b)  |  retrieve a -> the item; retrieve b -> not found  |  closed
```

The questions are the connection's last messages, in the protocol's own words; the client does not see the answers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Protocol

from callwright.core.ports import Connector, ModelConnection, ModelSink
from callwright.errors import RemoteProtocolError
from callwright.wire.client import ConversationItemRetrieve
from callwright.wire.codec import decode_server, encode
from callwright.wire.items import FunctionCallItem
from callwright.wire.server import (
    ConversationItemRetrieved,
    ErrorEvent,
    ResponseFunctionCallArgumentsDone,
    ServerEvent,
    Unknown,
)

ANSWER_S = 1.0
"""How long the answers are waited for at most."""
HURRIED_S = 0.3
"""How long where the call goes on without this connection, and waits for the next one."""
UNDER_WAY_S = 0.6
"""How long a response that is under way may take to its end: one was seen to come 0.44 s after its last audio."""
_MARK = "audit_"
_GONE = "item_retrieve_invalid_item_id"


class Asker(Protocol):
    """Who listens to a connection, and asks before it is closed."""

    @property
    def is_under_way(self) -> bool:
        """Whether something is worth waiting for that the server has begun."""

    @property
    def is_hurried(self) -> bool:
        """Whether the call goes on without this connection."""

    @property
    def questions(self) -> list[bytes]:
        """What is to be asked now, as messages."""

    @property
    def is_answered(self) -> bool:
        """Whether nothing that was asked is open."""

    def heard(self, event: ServerEvent | Unknown) -> None:
        """Take what the server told."""


async def connect_asking(connector: Connector, sink: ModelSink, asker: Asker) -> ModelConnection:
    """A connection on which ``asker`` has the last word. Raises ConnectionFailed as the connector does."""
    listener = _Listener(asker, sink)
    return _Asked(await connector.connect(listener), listener)


class Audit:
    """Another connector's connections, each asked before it is closed for the tool calls that were made on it."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._sessions: list[_Calls] = []

    @property
    def kept(self) -> tuple[bool, ...] | None:
        """Of each tool call, whether its session still had it at its end; None if a server did not say it of all."""
        told = [was_kept for session in self._sessions for was_kept in session.kept.values()]
        known = tuple(each for each in told if each is not None)
        return known if len(known) == len(told) else None

    async def connect(self, sink: ModelSink) -> ModelConnection:
        """Connect as the other does. Raises ConnectionFailed."""
        self._sessions.append(_Calls())
        return await connect_asking(self._connector, sink, self._sessions[-1])


class _Calls:
    """The tool calls of one session."""

    def __init__(self) -> None:
        self.kept: dict[str, bool | None] = {}
        """By the item of each, whether it is still in history; None while that is not told."""
        self._asked: dict[str, str] = {}
        """The items that were asked for, by the event that did."""

    @property
    def is_under_way(self) -> bool:
        """No: what was called was called."""
        return False

    @property
    def is_hurried(self) -> bool:
        """No: an audit is an audit."""
        return False

    @property
    def questions(self) -> list[bytes]:
        """One for each tool call."""
        self._asked = {f"{_MARK}{number}": item_id for number, item_id in enumerate(self.kept)}
        return [
            encode(ConversationItemRetrieve(event_id=event_id, item_id=item_id))
            for event_id, item_id in self._asked.items()
        ]

    @property
    def is_answered(self) -> bool:
        """Whether the server said it of all."""
        return None not in self.kept.values()

    def heard(self, event: ServerEvent | Unknown) -> None:
        """Take what the server told."""
        match event:
            case ResponseFunctionCallArgumentsDone():
                self.kept.setdefault(event.item_id, None)
            case ConversationItemRetrieved(item=FunctionCallItem(id=str(item_id))) if item_id in self.kept:
                self.kept[item_id] = True
            case ErrorEvent() if event.error.code == _GONE and event.error.event_id in self._asked:
                self.kept[self._asked[event.error.event_id]] = False


class _Listener:
    """Hands on what arrives until the connection is to be closed; from then on it only listens for answers."""

    def __init__(self, asker: Asker, sink: ModelSink) -> None:
        self.is_closed = False
        self._asker = asker
        self._sink = sink
        self._is_closing = False
        self._news = asyncio.Event()

    async def come_to_an_end(self, connection: ModelConnection) -> None:
        """Wait for what is under way, send the questions and wait for the answers."""
        if self._is_closing:
            return
        self._is_closing = True
        is_hurried = self._asker.is_hurried
        if not is_hurried:
            await self._until(lambda: not self._asker.is_under_way, UNDER_WAY_S)
        questions = [] if self.is_closed else self._asker.questions
        for question in questions:
            connection.send(question)
        await self._until(lambda: not questions or self._asker.is_answered, HURRIED_S if is_hurried else ANSWER_S)

    async def _until(self, is_so: Callable[[], bool], seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not is_so() and not self.is_closed:
                    self._news.clear()
                    await self._news.wait()

    def on_message(self, message: bytes | str) -> None:
        """Take a message of the server; one that is no event says nothing to who asks."""
        try:
            event = decode_server(message)
        except RemoteProtocolError:
            pass  # the client under test makes of it what it makes of it
        else:
            self._asker.heard(event)
        self._news.set()
        if not self._is_closing:
            self._sink.on_message(message)

    def on_closed(self, code: int, reason: str) -> None:
        """Take the end of the connection."""
        self.is_closed = True
        self._news.set()
        self._sink.on_closed(code, reason)


class _Asked:
    def __init__(self, connection: ModelConnection, listener: _Listener) -> None:
        self.send = connection.send
        self._connection = connection
        self._listener = listener

    async def close(self) -> None:
        """Ask, and end the connection."""
        await self._listener.come_to_an_end(self._connection)
        await self._connection.close()

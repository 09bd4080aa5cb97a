"""The server's side of a call where the server is not ours: what the wire shows of it, read on each connection.

```
client  <── tap <── server      every message both ways, on the call's clock
             │
             └── replies: ids, audio, whole text, tool      truncates, refused ones among them
                 turns of the caller, tools and outputs     interruptions that were told
close   ──> tap ──> retrieve what was cut ── its text ── closed
```

What crosses no wire is not known, and said to be so: what the model's ear got, and what history holds of a reply that
was cut, or of a turn of the caller's, and that the server gives no text of. When words lie in a reply is estimated
(``placing``). A tool may become known later than its reply's first audio, as the two have no fixed order: until then
the reply calls none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
import numpy as np

from callwright.audio.encodings import DECODE
from callwright.audio.formats import parse_format
from callwright.errors import AudioFormatError, RemoteProtocolError
from callwright.ids import ItemId, Ms, ToolCallId
from callwright.sim.audit import connect_asking
from callwright.sim.models import AgentSaid, CallerSaid, HistoryItem, SystemNote, ToolAnswered, ToolRequested
from callwright.sim.placing import pace_of, place_words, whole_ms
from callwright.sim.record import Confirmation, SpokenItem, Streamed, Truncation
from callwright.sim.sessions import ServerBook
from callwright.wire import client, items, server
from callwright.wire.codec import decode_client, decode_server, encode, wire_type

if TYPE_CHECKING:
    from callwright.core.ports import Connector, ModelConnection, ModelSink
    from callwright.sim.line import SimulatedLine
    from callwright.wire.objects import AnySession, Response
    from callwright.wire.profiles import Profile

JUST_CUT_MS: Final[Ms] = 250
"""A reply that was cancelled so shortly before the caller is told to speak was cut by him: the order is not fixed."""
_MARK: Final = "elsewhere_"
_FRONT: Final = "root"


@dataclass(slots=True)
class _Reply:
    """A spoken reply as it came."""

    item_id: ItemId
    response_id: str
    started_ms: Ms
    audio: bytearray
    pieces: str = ""
    """Its text so far, of a server that tells it in pieces."""
    text: str | None = None
    """Its whole text; None while that has not come."""
    is_over: bool = False
    is_cut: bool = False
    """The server ended it early."""
    kept: str | None = None
    """The text that history has of it since it was cut last, as the server told when it was asked."""

    @property
    def written(self) -> str:
        return self.pieces if self.text is None else self.text


class _History:
    """The conversation's items, in the order that the server tells, or else in that of their first sight."""

    def __init__(self) -> None:
        self.items: dict[str, HistoryItem] = {}
        self.posted: dict[str, str | None] = {}
        """The client's items, by the event that brought each."""
        self.wordless: dict[ItemId, None] = {}
        """The caller's turns whose words were not told."""
        self._order: list[str] = []
        self._unnamed: dict[str, None] = {}
        """The client's items whose names the server did not tell yet."""

    def __iter__(self) -> Iterator[HistoryItem]:
        return (self.items[item_id] for item_id in self._order)

    def put(self, item: HistoryItem, after: str | None = None) -> None:
        """Enter an item, or change it; without ``after`` it stands where it stood, or at the end."""
        self.items[item.item_id] = item
        if item.item_id in self._order:
            if after is None or after == item.item_id:
                return
            self._order.remove(item.item_id)
        known = after is not None and after in self._order
        at = 0 if after == _FRONT else self._order.index(after) + 1 if known and after else len(self._order)
        self._order.insert(at, item.item_id)

    def drop(self, item_id: str) -> None:
        """Take an item out."""
        if item_id in self.items:
            del self.items[item_id]
            self._order.remove(item_id)
            self.wordless.pop(ItemId(item_id), None)
            self._unnamed.pop(item_id, None)

    def turn(self, item_id: str, text: str | None = None, after: str | None = None) -> None:
        """The caller's turn is told, or its words are."""
        name = ItemId(item_id)
        if text is not None:
            self.wordless.pop(name, None)
            self.put(CallerSaid(name, text), after)
        elif item_id in self.items:
            self.put(self.items[item_id], after)
        else:
            self.wordless[name] = None
            self.put(CallerSaid(name, ""), after)

    def post(self, event: client.ConversationItemCreate) -> None:
        """The client puts an item in: it stands there unless that is refused."""
        item = _posted(event.item, event.item.id or f"posted {len(self.posted) + 1}")
        if item is not None:
            self.posted[item.item_id] = event.event_id
            if event.item.id is None:
                self._unnamed[item.item_id] = None
            after = None if isinstance(event.previous_item_id, msgspec.UnsetType) else event.previous_item_id
            self.put(item, after)

    def refused(self, event_id: str) -> None:
        """The server refused what this event asked for."""
        for item_id in [item_id for item_id, brought in self.posted.items() if brought == event_id]:
            del self.posted[item_id]
            self.drop(item_id)

    def added(self, told: items.Item, after: str | None) -> None:
        """The server tells that an item stands behind another one."""
        if told.id is None:
            return
        if told.id not in self.items:
            self._rename(told)
        item = self.items.get(told.id) or _posted(told, told.id)
        if isinstance(told, items.FunctionCallItem) and told.id not in self.items:
            return  # it is still empty
        if item is not None:
            self.put(item, after)

    def _rename(self, told: items.Item) -> None:
        """A client's item has its name from the server."""
        assert told.id is not None
        named = _posted(told, told.id)
        for item_id in self._unnamed:
            item = self.items[item_id]
            if named is not None and replace(item, item_id=named.item_id) == named:
                del self._unnamed[item_id]
                self.items[told.id] = named
                self._order[self._order.index(item_id)] = told.id
                del self.items[item_id]
                self.posted[told.id] = self.posted.pop(item_id)
                return


class Call(Protocol):
    """The call that a session is of."""

    @property
    def now_ms(self) -> Ms:
        """Its clock."""

    @property
    def is_over(self) -> bool:
        """Whether its line has ended."""

    @property
    def pace(self) -> float:
        """What its words are placed by where no audio tells."""


class WireSession:
    """One connection's session by its messages; ``call`` is the call that it is of.

    Implements ``callwright.sim.sessions.OneSession``, and asks at its end (``callwright.sim.audit.Asker``).
    """

    def __init__(self, profile: Profile, call: Call) -> None:
        self.truncations: list[Truncation] = []
        self.confirmations: list[Confirmation] = []
        self.replies: dict[str, _Reply] = {}
        self.tools: dict[str, str] = {}
        """The tool that was called, by response, and by the item of its call."""
        self._takes = profile.client_events
        self._call = call
        self._format = self._input = parse_format(msgspec.to_builtins(profile.output_format))
        self._sent_ms = 0.0
        self._audible_until_ms: Ms = 0
        self._cut_ms: Ms = -JUST_CUT_MS
        self._history = _History()
        self._truncates: dict[str, int] = {}
        """The number of each truncate, by the event that brought it."""
        self._asked: dict[str, bool] = {}
        """The items that were asked for at the end, and whether that was answered."""

    # --- what is known

    @property
    def posted(self) -> frozenset[ItemId]:
        """The items that the client put into the conversation."""
        return frozenset(map(ItemId, self._history.posted))

    @property
    def history(self) -> tuple[HistoryItem, ...]:
        """The conversation as far as it is told; a reply of which nobody tells what is left has no text."""
        return tuple(
            self._said(self.replies[item.item_id]) if item.item_id in self.replies else item for item in self._history
        )

    @property
    def unknown(self) -> tuple[ItemId, ...]:
        """The replies that were cut and the caller's turns of which the server does not tell what history has."""
        cut = (each.item_id for each in self.replies.values() if each.kept is None and self._is_cut(each))
        return (*cut, *self._history.wordless)

    @property
    def sounds(self) -> Iterator[tuple[str, Streamed]]:
        """Text and audio of every reply."""
        return ((reply.written, self._sound(reply)) for reply in self.replies.values())

    @property
    def spoken(self) -> tuple[SpokenItem, ...]:
        """Every reply as it came, its words where they may be supposed."""
        pace = self._call.pace
        return tuple(self._spoken(reply, pace) for reply in self.replies.values())

    def _spoken(self, reply: _Reply, pace: float) -> SpokenItem:
        sound = self._sound(reply)
        words = place_words(reply.written, sound, pace)
        return SpokenItem(
            item_id=reply.item_id,
            started_ms=reply.started_ms,
            words=words,
            clips=(),
            audio_ms=whole_ms(words, sound),
            streamed_ms=self._streamed_ms(reply),
            tool=self.tools.get(reply.response_id),
            sound=sound,
        )

    def _sound(self, reply: _Reply) -> Streamed:
        whole = len(reply.audio) // self._format.sample_bytes * self._format.sample_bytes
        samples = np.array(DECODE[self._format.encoding](bytes(reply.audio[:whole])), np.int16)
        return Streamed(self._format.rate_hz, samples, is_whole=reply.is_over and not reply.is_cut)

    def _streamed_ms(self, reply: _Reply) -> Ms:
        return self._format.ms_of(len(reply.audio))

    def _is_cut(self, reply: _Reply) -> bool:
        """Whether history holds less of a reply than was written: the server ended it, or did what a client asked."""
        end_ms = self._streamed_ms(reply)
        asked = [each for each in self.truncations if each.item_id == reply.item_id and not each.is_refused]
        return reply.is_cut or any(each.audio_end_ms < end_ms for each in asked)

    def _said(self, reply: _Reply) -> AgentSaid:
        if self._is_cut(reply):
            return AgentSaid(reply.item_id, reply.kept or "", is_cut=True)
        return AgentSaid(reply.item_id, reply.written)

    # --- asking at the end

    @property
    def is_under_way(self) -> bool:
        """Whether a reply has begun and is not over."""
        return any(not reply.is_over for reply in self.replies.values())

    @property
    def is_hurried(self) -> bool:
        """Whether the caller is still there, and the client about to go on with another session."""
        return not self._call.is_over

    @property
    def questions(self) -> list[bytes]:
        """An end of the reply that is under way, which tells its text; and all that is not known of history."""
        asked: list[client.ClientEvent] = []
        if self._ends_replies:
            asked.append(client.ResponseCancel(event_id=f"{_MARK}end"))
        if self._can(client.ConversationItemRetrieve):
            open_ones = (reply.item_id for reply in self.replies.values() if not reply.is_over)
            self._asked = dict.fromkeys((*self.unknown, *open_ones), False)
            asked += [client.ConversationItemRetrieve(event_id=f"{_MARK}{each}", item_id=each) for each in self._asked]
        return [encode(event) for event in asked]

    @property
    def is_answered(self) -> bool:
        """Whether nothing is under way, and the server has said something of each."""
        return all(self._asked.values()) and not self._ends_replies

    @property
    def _ends_replies(self) -> bool:
        return self._can(client.ResponseCancel) and self.is_under_way

    def _can(self, event: type[client.ClientEvent]) -> bool:
        return wire_type(event) in self._takes

    def closed(self) -> None:
        """Nothing more comes: an open reply ends here."""
        for reply in self.replies.values():
            if not reply.is_over:
                reply.is_over = reply.is_cut = True

    # --- what the client sends

    def sent(self, message: bytes) -> None:
        """Take a message of the client; what is no event says nothing."""
        try:
            event = decode_client(message)
        except RemoteProtocolError:
            return
        match event:
            case client.InputAudioBufferAppend():
                self._sent_ms += len(event.audio) / self._input.bytes_per_ms
            case client.SessionUpdate():
                self._configured(event.session)
            case client.ConversationItemCreate():
                self._history.post(event)
            case client.ConversationItemTruncate():
                self._truncated(event)
            case _:
                pass

    def _configured(self, session: AnySession) -> None:
        told = session.audio.input.format if session.audio and session.audio.input else None
        if told is not None:
            try:
                self._input = parse_format(told if isinstance(told, str) else msgspec.to_builtins(told))
            except AudioFormatError:
                return  # the server will say what it thinks of that

    def _truncated(self, event: client.ConversationItemTruncate) -> None:
        if event.event_id:
            self._truncates[event.event_id] = len(self.truncations)
        cut = Truncation(ItemId(event.item_id), event.audio_end_ms, self._call.now_ms, is_refused=False)
        self.truncations.append(cut)
        if event.item_id in self.replies:
            self.replies[event.item_id].kept = None

    # --- what the server sends

    def heard(self, message: bytes | str) -> None:
        """Take a message of the server; what is no event says nothing."""
        try:
            event = decode_server(message)
        except RemoteProtocolError:
            return
        match event:
            case server.ResponseOutputAudioDelta():
                self._audio(event)
            case server.ResponseOutputAudioTranscriptDelta() if event.item_id in self.replies:
                self.replies[event.item_id].pieces += event.delta
            case server.ResponseOutputAudioTranscriptDone():
                self._written(event.item_id, event.transcript)
            case server.ResponseOutputTextDone():
                self._written(event.item_id, event.text)
            case server.ResponseOutputItemAdded(item=items.FunctionCallItem(id=str(item_id), name=name)):
                self.tools[item_id] = name
            case server.ResponseFunctionCallArgumentsDone():
                self._called(event)
            case server.ResponseDone():
                self._done(event.response)
            case server.ErrorEvent():
                self._refused(event.error.event_id or "")
            case _:
                self._conversation(event)

    def _conversation(self, event: server.ServerEvent | server.Unknown) -> None:
        """What the server tells of the caller's turns, and of its history."""
        match event:
            case server.InputAudioBufferSpeechStarted():
                self._speaks(event.audio_start_ms)
            case server.InputAudioBufferSpeechStopped():
                self._history.turn(event.item_id)
            case server.InputAudioBufferCommitted():
                self._history.turn(event.item_id, after=event.previous_item_id)
            case server.ConversationItemInputAudioTranscriptionCompleted():
                self._history.turn(event.item_id, event.transcript.strip())
            case server.ConversationItemAdded():
                self._history.added(event.item, event.previous_item_id)
            case server.ConversationItemDeleted():
                self._history.drop(event.item_id)
            case server.ConversationItemRetrieved(item=items.MessageItem(id=str(item_id)) as item):
                self._retrieved(item_id, item)
            case _:
                pass

    def _audio(self, event: server.ResponseOutputAudioDelta) -> None:
        now_ms = self._call.now_ms
        reply = self.replies.get(event.item_id)
        if reply is None:
            reply = _Reply(ItemId(event.item_id), event.response_id, now_ms, bytearray())
            self.replies[event.item_id] = reply
            self._history.put(AgentSaid(reply.item_id, ""))
        before_ms = self._streamed_ms(reply)
        reply.audio += event.delta
        played_ms = max(now_ms, self._audible_until_ms) if before_ms else now_ms
        self._audible_until_ms = played_ms + self._streamed_ms(reply) - before_ms

    def _written(self, item_id: str, text: str) -> None:
        if item_id in self.replies:
            self.replies[item_id].text = text
        else:
            self._history.put(AgentSaid(ItemId(item_id), text))

    def _called(self, event: server.ResponseFunctionCallArgumentsDone) -> None:
        name = event.name or self.tools.get(event.item_id, "")
        self.tools.setdefault(event.response_id, name)
        call_id = ToolCallId(event.call_id)
        self._history.put(ToolRequested(ItemId(event.item_id), call_id, name, _arguments(event.arguments)))

    def _done(self, response: Response) -> None:
        """A response has ended: what of it did not come to its own end was cut."""
        ended = {item.id: item.status for item in response.output or ()}
        for reply in self.replies.values():
            if reply.response_id == response.id and not reply.is_over:
                reply.is_over = True
                reply.is_cut = (ended.get(reply.item_id) or response.status or "completed") != "completed"
        for item in response.output or ():
            late = _text(item) if isinstance(item, items.MessageItem) and item.id in self.replies else None
            if late and item.id and not self.replies[item.id].written:
                self.replies[item.id].text = late
        now_ms = self._call.now_ms
        if response.status not in (None, "completed") and now_ms < self._audible_until_ms:
            self._cut_ms = self._audible_until_ms = now_ms

    def _speaks(self, audio_start_ms: Ms) -> None:
        """The caller is told to speak: over a reply, if one is heard by what came of it."""
        now_ms = self._call.now_ms
        if now_ms < self._audible_until_ms or now_ms - self._cut_ms < JUST_CUT_MS:
            self.confirmations.append(Confirmation(round(now_ms - self._sent_ms) + audio_start_ms, now_ms))

    def _retrieved(self, item_id: str, item: items.MessageItem) -> None:
        if item_id in self._asked:
            self._asked[item_id] = True
        text = _text(item)
        reply = self.replies.get(item_id)
        if reply is not None and reply.is_over:
            reply.kept = text
        elif text and item_id in self._history.wordless:
            self._history.turn(item_id, text)

    def _refused(self, event_id: str) -> None:
        if event_id.startswith(_MARK):
            self._asked[event_id.removeprefix(_MARK)] = True
        elif event_id in self._truncates:
            number = self._truncates[event_id]
            self.truncations[number] = replace(self.truncations[number], is_refused=True)
        elif event_id:
            self._history.refused(event_id)


class Elsewhere(ServerBook[WireSession]):
    """The server of one call that another ``connector`` reaches, and that speaks this dialect.

    Implements ``callwright.sim.world.ServerSide``.
    """

    longest_session_ms = None
    shown = ()

    def __init__(self, connector: Connector, profile: Profile) -> None:
        super().__init__()
        self._connector = connector
        self._profile = profile
        self._line: SimulatedLine
        self._connections: list[_Tapped] = []

    @property
    def book(self) -> Elsewhere:
        """What is known of it."""
        return self

    @asynccontextmanager
    async def reach(self, line: SimulatedLine) -> AsyncIterator[Connector]:
        """Connections on this line's clock; none is left open behind."""
        self._line = line
        try:
            yield self
        finally:
            for connection in self._connections:
                await connection.close()

    async def connect(self, sink: ModelSink) -> ModelConnection:
        """Connect as the other connector does. Raises ConnectionFailed."""
        session = WireSession(self._profile, self)
        connection = _Tapped(await connect_asking(self._connector, sink, session), session)
        self._all.append(session)
        self._connections.append(connection)
        return connection

    def tool_of(self, item_id: ItemId) -> str | None:
        """The tool that the reply with this item called, as far as that has come over the wire."""
        for session in self._all:
            if item_id in session.replies:
                return session.tools.get(session.replies[item_id].response_id)
        return None

    @property
    def first_audio(self) -> None:
        """Nobody tells what the server read."""
        return None

    @property
    def unknown(self) -> tuple[ItemId, ...]:
        """The replies and the caller's turns of which nobody tells what history holds."""
        return tuple(item_id for session in self._all for item_id in session.unknown)

    @property
    def now_ms(self) -> Ms:
        """The clock of its line."""
        return self._line.now_ms

    @property
    def is_over(self) -> bool:
        """Whether the line has ended."""
        return self._line.ended_ms is not None

    @property
    def pace(self) -> float:
        """How long a letter takes in its whole replies."""
        return pace_of(sound for session in self._all for sound in session.sounds)


class _Tapped:
    """A connection whose messages are read both ways."""

    def __init__(self, connection: ModelConnection, session: WireSession) -> None:
        self._connection = connection
        self._session = session

    def send(self, message: bytes) -> None:
        """Send a message."""
        self._session.sent(message)
        self._connection.send(message)

    async def close(self) -> None:
        """Ask what is still unknown, and end the connection; idempotent."""
        await self._connection.close()
        self._session.closed()


def _posted(item: items.Item, item_id: str) -> HistoryItem | None:
    """What an item that is whole means to the model; None for what is no part of the conversation here."""
    name = ItemId(item_id)
    match item:
        case items.MessageItem(role="system"):
            return SystemNote(name, _text(item) or "")
        case items.MessageItem(role="user"):
            return CallerSaid(name, _text(item) or "")
        case items.MessageItem(role="assistant"):
            return AgentSaid(name, _text(item) or "")
        case items.FunctionCallItem():
            return ToolRequested(name, ToolCallId(item.call_id or ""), item.name, _arguments(item.arguments))
        case items.FunctionCallOutputItem():
            return ToolAnswered(name, ToolCallId(item.call_id), item.output)
    return None


def _text(item: items.MessageItem) -> str | None:
    """What a message says; None where it holds no text at all."""
    texts = [part.transcript if part.transcript is not None else part.text for part in item.content]
    known = [text for text in texts if text is not None]
    return " ".join(known).strip() if known else None


def _arguments(text: str) -> dict[str, str]:
    """A call's arguments as texts; none where they are no JSON object."""
    try:
        told = msgspec.json.decode(text or "{}", type=dict[str, object])
    except msgspec.MsgspecError:
        return {}
    return {name: value if isinstance(value, str) else str(value) for name, value in told.items()}

"""One connection's session on a server that is not ours, by what the wire shows of it.

A tool may become known later than its reply's first audio, as the two have no fixed order: until then the reply calls
none. When words lie in a reply is estimated (``placing``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
import numpy as np

from callwright.audio.encodings import DECODE
from callwright.audio.formats import AudioFormat, parse_format
from callwright.errors import AudioFormatError, RemoteProtocolError
from callwright.ids import ItemId, Ms, ToolCallId
from callwright.sim.elsewhere.history import WireHistory, arguments_of, text_of
from callwright.sim.elsewhere.placing import place_words, whole_ms
from callwright.sim.models import AgentSaid, HistoryItem, ToolRequested
from callwright.sim.record import Confirmation, SpokenItem, Streamed, Truncation
from callwright.wire import client, items, server
from callwright.wire.codec import decode_client, encode, wire_type

if TYPE_CHECKING:
    from callwright.wire.objects import AnySession, Response
    from callwright.wire.profiles import Profile

JUST_CUT_MS: Final[Ms] = 250
"""A reply that was cancelled so shortly before the caller is told to speak was cut by him: the order is not fixed."""
REPORT_LASTS_MS: Final[Ms] = 3_000
"""So long behind a report of the client's own voice a written reply is believed to be audible."""
_MARK: Final = "elsewhere_"


class Fate(Enum):
    """What became of a reply on the wire."""

    UNDER_WAY = auto()
    WHOLE = auto()
    CUT = auto()
    """The server ended it early, or its client did not say all of it."""
    RESTATED = auto()
    """The client put what was heard of it in its place, or took it back."""


@dataclass(slots=True)
class _Reply:
    """A reply as it came: spoken, or written for the client to speak."""

    item_id: ItemId
    response_id: str
    started_ms: Ms
    audio: bytearray
    format: AudioFormat
    is_written: bool = False
    """The client has a voice of its own: the audio is what the line was handed of it."""
    pieces: str = ""
    """Its text so far, of a server that tells it in pieces."""
    text: str | None = None
    """Its whole text; None while that has not come."""
    fate: Fate = Fate.UNDER_WAY
    kept: str | None = None
    """The text that history has of it since it was cut last, as the server told when it was asked."""

    @property
    def written(self) -> str:
        return self.pieces if self.text is None else self.text

    @property
    def streamed_ms(self) -> Ms:
        return self.format.ms_of(len(self.audio))

    @property
    def sound(self) -> Streamed:
        whole = len(self.audio) // self.format.sample_bytes * self.format.sample_bytes
        samples = np.array(DECODE[self.format.encoding](bytes(self.audio[:whole])), np.int16)
        return Streamed(self.format.rate_hz, samples, self.fate is Fate.WHOLE, self.fate is Fate.RESTATED)

    @property
    def is_over(self) -> bool:
        return self.fate is not Fate.UNDER_WAY

    @property
    def is_cut(self) -> bool:
        return self.fate in (Fate.CUT, Fate.RESTATED)


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

    @property
    def line_format(self) -> AudioFormat:
        """What its line is handed audio in."""

    @property
    def aloud(self) -> Mapping[str, Sequence[str]]:
        """The spoken arguments of the agent's tools, by tool."""


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
        self._history = WireHistory()
        self._beside: dict[str, str] = {}
        """What a call wants said, by response."""
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
        return ((self._text(reply), reply.sound) for reply in self.replies.values())

    @property
    def spoken(self) -> tuple[SpokenItem, ...]:
        """Every reply as it came, its words where they may be supposed."""
        pace = self._call.pace
        return tuple(self._spoken(reply, pace) for reply in self.replies.values())

    def _spoken(self, reply: _Reply, pace: float) -> SpokenItem:
        sound = reply.sound
        words = place_words(self._text(reply), sound, pace)
        return SpokenItem(
            item_id=reply.item_id,
            started_ms=reply.started_ms,
            words=words,
            clips=(),
            audio_ms=whole_ms(words, sound),
            streamed_ms=reply.streamed_ms,
            tool=self.tools.get(reply.response_id),
            sound=sound,
        )

    def _text(self, reply: _Reply) -> str:
        """Its whole text; of what a client says beside a call, and nobody writes, the call's spoken argument."""
        return reply.written or (self._beside.get(reply.response_id, "") if reply.is_written else "")

    def _is_cut(self, reply: _Reply) -> bool:
        """Whether history holds less of a reply than was written: the server ended it, or did what a client asked."""
        end_ms = reply.streamed_ms
        asked = [each for each in self.truncations if each.item_id == reply.item_id and not each.is_refused]
        return reply.is_cut or any(each.audio_end_ms < end_ms for each in asked)

    def _said(self, reply: _Reply) -> AgentSaid:
        if self._is_cut(reply):
            return AgentSaid(reply.item_id, reply.kept or "", is_cut=True)
        return AgentSaid(reply.item_id, self._text(reply))

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
                reply.fate = Fate.CUT

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
            case client.PolyOutputAudioStarted() | client.PolyOutputAudioDelta():
                self._audible_until_ms = self._call.now_ms + REPORT_LASTS_MS
            case client.PolyOutputAudioStopped():
                self._stopped(event)
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

    def _stopped(self, event: client.PolyOutputAudioStopped) -> None:
        """The client's own voice is silent, and it tells what was heard of the reply."""
        now_ms = self._call.now_ms
        for reply in [each for each in self.replies.values() if each.response_id == event.response_id]:
            if len(event.spoken_text.split()) < len(self._text(reply).split()):
                reply.fate = Fate.CUT
                self.truncations.append(Truncation(reply.item_id, event.audio_ms, now_ms, is_refused=False))
                self._cut_ms = now_ms
        self._audible_until_ms = now_ms

    def spoken_by_client(self, item_id: ItemId, audio: bytes) -> None:
        """The line was handed audio: of a written reply it is the client's own voice."""
        reply = self.replies.get(item_id)
        if reply is not None and reply.is_written:
            reply.audio += audio

    # --- what the server sends

    def heard(self, event: server.ServerEvent | server.Unknown) -> None:
        """Take what the server told."""
        match event:
            case server.ResponseOutputAudioDelta():
                self._audio(event)
            case server.ResponseOutputAudioTranscriptDelta() if event.item_id in self.replies:
                self.replies[event.item_id].pieces += event.delta
            case server.ResponseOutputAudioTranscriptDone():
                self._written(event.item_id, event.transcript)
            case server.ResponseOutputTextDelta():
                self._writes(event.item_id, event.response_id, event.delta)
            case server.ResponseOutputTextDone():
                self._writes(event.item_id, event.response_id, "")
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
                self._deleted(event.item_id)
            case server.ConversationItemRetrieved(item=items.MessageItem(id=str(item_id)) as item):
                self._retrieved(item_id, item)
            case _:
                pass

    def _audio(self, event: server.ResponseOutputAudioDelta) -> None:
        now_ms = self._call.now_ms
        reply = self._begun(event.item_id, event.response_id, self._format)
        before_ms = reply.streamed_ms
        reply.audio += event.delta
        played_ms = max(now_ms, self._audible_until_ms) if before_ms else now_ms
        self._audible_until_ms = played_ms + reply.streamed_ms - before_ms

    def _writes(self, item_id: str, response_id: str, text: str) -> None:
        reply = self._begun(item_id, response_id, self._call.line_format)
        reply.is_written = True
        reply.pieces += text

    def _begun(self, item_id: str, response_id: str, audio_format: AudioFormat) -> _Reply:
        if item_id not in self.replies:
            reply = _Reply(ItemId(item_id), response_id, self._call.now_ms, bytearray(), audio_format)
            self.replies[item_id] = reply
            self._history.put(AgentSaid(reply.item_id, ""))
        return self.replies[item_id]

    def _written(self, item_id: str, text: str) -> None:
        if item_id in self.replies:
            self.replies[item_id].text = text

    def _called(self, event: server.ResponseFunctionCallArgumentsDone) -> None:
        name = event.name or self.tools.get(event.item_id, "")
        if name:
            self.tools.setdefault(event.response_id, name)
        call_id = ToolCallId(event.call_id)
        arguments = arguments_of(event.arguments)
        self._history.put(ToolRequested(ItemId(event.item_id), call_id, name, arguments))
        beside = " ".join(arguments[each] for each in self._call.aloud.get(name, ()) if each in arguments)
        self._beside[event.response_id] = beside

    def _done(self, response: Response) -> None:
        """A response has ended: what of it did not come to its own end was cut."""
        ended = {item.id: item.status for item in response.output or ()}
        for reply in self.replies.values():
            if reply.response_id == response.id and not reply.is_over:
                became = ended.get(reply.item_id) or response.status or "completed"
                reply.fate = Fate.WHOLE if became == "completed" else Fate.CUT
        for item in response.output or ():
            late = text_of(item) if isinstance(item, items.MessageItem) and item.id in self.replies else None
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

    def _deleted(self, item_id: str) -> None:
        """An item is gone; of a written reply, what the client put behind it takes its place."""
        reply = self.replies.get(item_id)
        gone = item_id
        if reply is not None and reply.is_written:
            said = self._history.behind(item_id)
            reply.kept, reply.fate = said.text if said else "", Fate.RESTATED
            gone = said.item_id if said else item_id
        self._history.drop(gone)

    def _retrieved(self, item_id: str, item: items.MessageItem) -> None:
        if item_id in self._asked:
            self._asked[item_id] = True
        text = text_of(item)
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

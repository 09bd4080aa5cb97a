"""The server events that a session sends, in the protocol's order. Owns their ids; decides nothing.

Item and content part events can be left out: the live service was not seen to send them, and a client must not need
them. Everything else is always told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from callwright.ids import ItemId
from callwright.wire.codec import encode
from callwright.wire.items import ContentPart, FunctionCallItem, Item, MessageItem
from callwright.wire.objects import ErrorDetail, PartialError, RateLimit, Response, StatusDetails
from callwright.wire.server import (
    ConversationItemAdded,
    ConversationItemDone,
    ErrorEvent,
    InputAudioBufferCommitted,
    RateLimitsUpdated,
    ResponseContentPartAdded,
    ResponseContentPartDone,
    ResponseCreated,
    ResponseDone,
    ResponseFunctionCallArgumentsDelta,
    ResponseFunctionCallArgumentsDone,
    ResponseOutputAudioDelta,
    ResponseOutputAudioDone,
    ResponseOutputAudioTranscriptDelta,
    ResponseOutputAudioTranscriptDone,
    ResponseOutputItemAdded,
    ResponseOutputItemDone,
    ResponseOutputTextDelta,
    ResponseOutputTextDone,
    ServerEvent,
)

if TYPE_CHECKING:
    from callwright.sim.server.errands import Failed
    from callwright.sim.server.history import Refusal


class Names:
    """Ids by counting, with a tag of the session's, so that they differ between sessions and not between runs."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self.counts: dict[str, int] = {}
        """How many there are of each kind."""

    def next(self, kind: str, length: int = 21) -> str:
        """The next id that begins with ``kind``, of so many characters."""
        count = self.counts[kind] = self.counts.get(kind, 0) + 1
        head = f"{kind}_{self._tag}"
        return f"{head}{count:0{length - len(head)}d}"


_LIMITS = (
    RateLimit(name="requests", limit=1_000, remaining=999, reset_seconds=0.06),
    RateLimit(name="tokens", limit=50_000, remaining=45_000, reset_seconds=6.0),
)


Modality = Literal["audio", "text"]


class Heading(NamedTuple):
    """What every telling of one response repeats."""

    response_id: str
    modality: Modality = "audio"
    metadata: dict[str, str] | None = None
    is_outside: bool = False
    """The response leaves the history alone."""


class Output(NamedTuple):
    """One item of a response, as its events address it."""

    response: Heading
    item_id: ItemId
    output_index: int

    @property
    def place(self) -> dict[str, Any]:
        """What the events of its content have in common."""
        return {
            "response_id": self.response.response_id,
            "item_id": self.item_id,
            "output_index": self.output_index,
        }


class Teller:
    """Encodes events and holds them until they are fetched; the first that is told is the session's own."""

    def __init__(self, conversation_id: str, *, with_items: bool) -> None:
        self._conversation_id = conversation_id
        self._with_items = with_items
        self._outgoing: list[bytes] = []
        self._is_open = False
        self._count = 0

    def drain(self) -> list[bytes]:
        """What was told since the last time, in order; nothing before the session is open."""
        if not self._is_open:
            return []
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def open(self, first: ServerEvent | None = None) -> None:
        """The session is told to its client, or ends before it was; what it has said to him already comes behind."""
        early, self._outgoing = self._outgoing, []
        self._is_open = True
        if first is not None:
            self.tell(first)
        self._outgoing += early

    def tell(self, event: ServerEvent) -> None:
        """Send an event."""
        self._count += 1
        self._outgoing.append(encode(msgspec.structs.replace(event, event_id=f"event_{self._count}")))

    def _tell_item(self, event: ServerEvent) -> None:
        if self._with_items:
            self.tell(event)

    def refused(self, refusal: Refusal, event_id: str | None) -> None:
        """A client event was refused; ``event_id`` is the client's own."""
        detail = ErrorDetail(
            type="invalid_request_error",
            code=refusal.code,
            message=refusal.message,
            param=refusal.param,
            event_id=event_id,
        )
        self.tell(ErrorEvent(error=detail))

    def posted(self, item: Item, previous: str | None) -> None:
        """A client's item entered history."""
        self.tell(ConversationItemAdded(item=item, previous_item_id=previous))
        self.tell(ConversationItemDone(item=item, previous_item_id=previous))

    def committed(self, item_id: ItemId, previous: str | None) -> None:
        """A turn of the caller entered history; its words are not known yet."""
        self.tell(InputAudioBufferCommitted(item_id=item_id, previous_item_id=previous))
        item = _message(item_id, "completed", ContentPart(type="input_audio"), role="user")
        self._tell_item(ConversationItemAdded(item=item, previous_item_id=previous))
        self._tell_item(ConversationItemDone(item=item, previous_item_id=previous))

    def response_created(self, heading: Heading) -> None:
        """A response is open."""
        self.tell(ResponseCreated(response=self._response(heading, "in_progress", (), None)))

    def limits(self) -> None:
        """What is left of the account's rate limits; nothing is ever held to them."""
        self.tell(RateLimitsUpdated(rate_limits=_LIMITS))

    def response_done(
        self,
        heading: Heading,
        status: str,
        output: tuple[Item, ...],
        reason: str | None,
        failed: Failed | None = None,
    ) -> None:
        """A response has ended."""
        details = StatusDetails(type=status, reason=reason) if reason else None
        if failed is not None:
            error = PartialError(type="server_error", code=failed.code, message=failed.message)
            details = StatusDetails(type=status, error=error)
        self.tell(ResponseDone(response=self._response(heading, status, output, details)))

    def _response(self, heading: Heading, status: str, output: tuple[Item, ...], why: StatusDetails | None) -> Response:
        return Response(
            id=heading.response_id,
            object="realtime.response",
            status=status,
            status_details=why,
            output=output,
            conversation_id=None if heading.is_outside else self._conversation_id,
            output_modalities=(heading.modality,),
            metadata=heading.metadata,
        )

    def speech_began(self, output: Output, previous: str | None) -> None:
        """A spoken item enters history, still empty."""
        item = _message(output.item_id, "in_progress", role="assistant")
        self._item_began(output, item, previous)
        part = ContentPart(type="audio", transcript="")
        self._tell_item(ResponseContentPartAdded(**output.place, part=part))

    def audio(self, output: Output, delta: bytes) -> None:
        """A piece of speech."""
        self.tell(ResponseOutputAudioDelta(**output.place, delta=delta))

    def words(self, output: Output, delta: str) -> None:
        """Words of the speech that follows."""
        self.tell(ResponseOutputAudioTranscriptDelta(**output.place, delta=delta))

    def written(self, output: Output, text: str, previous: str | None) -> MessageItem:
        """A whole item that is written instead of spoken."""
        self.text_began(output, previous)
        self.text(output, text)
        return self.text_ended(output, text, "completed", previous)

    def text_began(self, output: Output, previous: str | None) -> None:
        """A written item enters history, still empty."""
        self._item_began(output, _message(output.item_id, "in_progress", role="assistant"), previous)
        self._tell_item(ResponseContentPartAdded(**output.place, part=ContentPart(type="text", text="")))

    def text(self, output: Output, delta: str) -> None:
        """A piece of text."""
        self.tell(ResponseOutputTextDelta(**output.place, delta=delta))

    def text_ended(self, output: Output, text: str, status: str, previous: str | None) -> MessageItem:
        """A written item has ended, cut or whole; ``text`` is all that was written of it."""
        self.tell(ResponseOutputTextDone(**output.place, text=text))
        self._tell_item(ResponseContentPartDone(**output.place, part=ContentPart(type="text", text=text)))
        part = ContentPart(type="output_text", text=text)
        item = _message(output.item_id, status, part, role="assistant")
        self._item_ended(output, item, previous)
        return item

    def speech_ended(self, output: Output, text: str, status: str, previous: str | None) -> MessageItem:
        """A spoken item has ended, cut or whole; ``text`` is all that was written, whatever was heard of it."""
        self.tell(ResponseOutputAudioDone(**output.place))
        self.tell(ResponseOutputAudioTranscriptDone(**output.place, transcript=text))
        self._tell_item(ResponseContentPartDone(**output.place, part=ContentPart(type="audio", transcript=text)))
        written = ContentPart(type="output_audio", transcript=text)
        item = _message(output.item_id, status, written, role="assistant")
        self._item_ended(output, item, previous)
        return item

    def called(self, output: Output, call: FunctionCallItem, previous: str | None, *, in_pieces: bool) -> None:
        """A tool call was issued; it is whole at once, though its arguments may be told ``in_pieces`` (of one)."""
        empty = msgspec.structs.replace(call, status="in_progress", arguments="")
        self._item_began(output, empty, previous)
        if in_pieces:
            self.tell(
                ResponseFunctionCallArgumentsDelta(**output.place, call_id=call.call_id or "", delta=call.arguments)
            )
        self.tell(
            ResponseFunctionCallArgumentsDone(
                **output.place, call_id=call.call_id or "", name=call.name, arguments=call.arguments
            )
        )
        self._item_ended(output, call, previous)

    def _item_began(self, output: Output, item: Item, previous: str | None) -> None:
        at = output.output_index
        self._tell_item(ResponseOutputItemAdded(response_id=output.response.response_id, output_index=at, item=item))
        if not output.response.is_outside:
            self._tell_item(ConversationItemAdded(item=item, previous_item_id=previous))

    def _item_ended(self, output: Output, item: Item, previous: str | None) -> None:
        at = output.output_index
        self._tell_item(ResponseOutputItemDone(response_id=output.response.response_id, output_index=at, item=item))
        if not output.response.is_outside:
            self._tell_item(ConversationItemDone(item=item, previous_item_id=previous))


def _message(item_id: str, status: str, *parts: ContentPart, role: Literal["user", "assistant"]) -> MessageItem:
    return MessageItem(id=item_id, object="realtime.item", status=status, role=role, content=parts)

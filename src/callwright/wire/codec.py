"""Realtime events to and from JSON text.

Outgoing text is what the protocol asks for and nothing else. Incoming text is read with tolerance: an event, item or
field of a kind that is not known here is counted and passed over, and older spellings become the present ones. Whatever
cannot be understood is a ``RemoteProtocolError`` of bounded length; no input raises anything else.

The messages that come many times a second have a way of their own: ``encode_append`` glues base64 between two
constants, and the pieces of a reply are read straight into their structs; what is unknown in those is not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

import msgspec
import pybase64

from callwright.errors import RemoteProtocolError
from callwright.wire.client import ClientEvent, InputAudioBufferAppend
from callwright.wire.items import Item, WireStruct
from callwright.wire.server import (
    ResponseFunctionCallArgumentsDelta,
    ResponseOutputAudioDelta,
    ResponseOutputAudioTranscriptDelta,
    ResponseOutputTextDelta,
    ServerEvent,
    Unknown,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""The largest message accepted. Retrieved items with audio of 3.5 MB have been seen; sockets often default to 1 MiB."""
MAX_DEPTH: Final = 100
"""How deep objects and arrays may be nested; the protocol's own go no deeper than 10, a tool's schema some more."""
MAX_TALLY_NAMES: Final = 256
"""How many different names a tally holds; the rest are counted under ``OTHERS``."""
OTHERS: Final = "(others)"

_MAX_NAME = 200
"""Longest piece of a message that is kept in a tally or an error, in characters."""
_HEAD_BYTES = 256
"""How far into a message the type of a frequent event is looked for."""
_SPOKEN = b'"response.output_audio.delta"'
_DELTA_KEY = b'"delta":'


def wire_type(event: WireStruct | type[WireStruct]) -> str:
    """Return the ``type`` under which an event, or class of events, travels."""
    return str(event.__struct_config__.tag)


_Kinds = dict[str, type[WireStruct]]
SERVER_EVENTS: Final[_Kinds] = {wire_type(kind): kind for kind in get_args(ServerEvent)}
CLIENT_EVENTS: Final[_Kinds] = {wire_type(kind): kind for kind in get_args(ClientEvent)}
_ITEM_TYPES = frozenset(wire_type(kind) for kind in get_args(Item)) - {"unknown"}

_OLD_TYPES = {
    "conversation.item.created": "conversation.item.added",
    "response.audio.delta": "response.output_audio.delta",
    "response.audio.done": "response.output_audio.done",
    "response.audio_transcript.delta": "response.output_audio_transcript.delta",
    "response.audio_transcript.done": "response.output_audio_transcript.done",
    "response.text.delta": "response.output_text.delta",
    "response.text.done": "response.output_text.done",
}
_OLD_PARTS = {
    ("assistant", "text"): "output_text",
    ("assistant", "audio"): "output_audio",
    ("user", "text"): "input_text",
    ("user", "audio"): "input_audio",
    ("system", "text"): "input_text",
}


# ---------------------------------------------------------------- out

_encoder = msgspec.json.Encoder()
_APPEND_HEAD = b'{"type":"input_audio_buffer.append","audio":"'
_APPEND_TAIL = b'"}'


def encode(event: ClientEvent | ServerEvent) -> bytes:
    """Return the event as JSON in UTF-8; what is unset is left out."""
    return _encoder.encode(event)


def encode_append(frame: bytes) -> bytes:
    """Return what ``encode`` gives for an ``input_audio_buffer.append`` of one frame, at a fraction of the price.

    ``frame`` is raw audio in the session's input format, usually 20 ms.
    """
    return _APPEND_HEAD + pybase64.b64encode(frame) + _APPEND_TAIL


# ---------------------------------------------------------------- in


class _Tally:
    """Counts, over the life of one connection, what was passed over because it is not known here."""

    def __init__(self) -> None:
        self.unknown_types: dict[str, int] = {}
        """Event types, and ``item TYPE`` for items."""
        self.unknown_fields: dict[str, int] = {}
        """``EVENT TYPE: path.to.field``."""

    def _count_fields(self, kind: str, raw: dict[str, Any], event: WireStruct) -> None:
        for path in _unknown_fields(raw, event):
            _count(self.unknown_fields, f"{kind}: {path}")


class ServerDecoder(_Tally):
    """Reads what a server sends on one connection."""

    def decode(self, data: bytes | str) -> ServerEvent | Unknown:
        """Return the event in one text message.

        Raises ``RemoteProtocolError`` for a message that is too large, not a JSON object with a ``type``, or a known
        event whose fields are missing or of the wrong kind.
        """
        body = _bounded(data)
        delta: ServerEvent | None = None
        if body.find(_SPOKEN, 0, _HEAD_BYTES) >= 0:
            delta = _spoken(body)
        elif body.find(b'.delta"', 0, _HEAD_BYTES) >= 0:
            delta = _straight(_delta_decoder, body)
        if delta is not None:
            return delta
        kind, raw = _parse(body)
        struct = SERVER_EVENTS.get(kind)
        if struct is None:
            _count(self.unknown_types, kind)
            event_id = raw.get("event_id")
            return Unknown(type=kind, event_id=event_id if isinstance(event_id, str) else None)
        for item in _items(raw):
            self._admit(item)
        event: ServerEvent = _convert(kind, raw, struct)
        self._count_fields(kind, raw, event)
        return event

    def _admit(self, item: dict[str, Any]) -> None:
        """Turn an item of an unknown type into one that says so."""
        kind = item.get("type")
        if isinstance(kind, str) and kind not in _ITEM_TYPES:
            _count(self.unknown_types, f"item {kind}")
            item.update(type="unknown", kind=kind)


class ClientDecoder(_Tally):
    """Reads what a client sends on one connection: the server's side, which forgives nothing but unknown fields."""

    def decode(self, data: bytes | str) -> ClientEvent:
        """Return the event in one text message.

        Raises ``RemoteProtocolError`` as ``ServerDecoder.decode`` does, and for an unknown type of event or item.
        """
        body = _bounded(data)
        if body.startswith(_APPEND_HEAD):
            append = _straight(_append_decoder, body)
            if append is not None:
                return append
        kind, raw = _parse(body)
        struct = CLIENT_EVENTS.get(kind)
        if struct is None:
            raise RemoteProtocolError(f"{kind:.{_MAX_NAME}}: no such client event")
        event: ClientEvent = _convert(kind, raw, struct)
        self._count_fields(kind, raw, event)
        return event


def decode_server(data: bytes | str) -> ServerEvent | Unknown:
    """Return the server event in one message, without counting; errors as in ``ServerDecoder.decode``."""
    return ServerDecoder().decode(data)


def decode_client(data: bytes | str) -> ClientEvent:
    """Return the client event in one message, without counting; errors as in ``ClientDecoder.decode``."""
    return ClientDecoder().decode(data)


class _Spoken(ResponseOutputAudioTranscriptDelta, tag="response.output_audio.delta"):
    """A piece of a spoken reply whose audio was taken out."""


_spoken_decoder = msgspec.json.Decoder(_Spoken)
_delta_decoder = msgspec.json.Decoder(
    ResponseOutputAudioTranscriptDelta | ResponseOutputTextDelta | ResponseFunctionCallArgumentsDelta
)
_append_decoder = msgspec.json.Decoder(InputAudioBufferAppend)
_Event = TypeVar("_Event")


def _straight(decoder: msgspec.json.Decoder[_Event], body: bytes) -> _Event | None:
    """Return the event, or ``None`` when the longer way has to find out what the message is."""
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _spoken(body: bytes) -> ResponseOutputAudioDelta | None:
    """Return a piece of a spoken reply, or ``None`` as ``_straight`` does.

    Its base64 ends at the next quote, which is found faster than a parser walks there; the rest is parsed without it.
    """
    start = body.find(b'"', body.find(_DELTA_KEY) + len(_DELTA_KEY)) + 1
    end = body.find(b'"', start)
    rest = body[:start] + body[end:]
    spoken = _straight(_spoken_decoder, rest) if rest.count(_DELTA_KEY) == 1 else None
    if spoken is None or spoken.delta:
        return None
    try:
        audio = pybase64.b64decode(body[start:end], validate=True)
    except ValueError:
        return None
    return ResponseOutputAudioDelta(
        event_id=spoken.event_id,
        response_id=spoken.response_id,
        item_id=spoken.item_id,
        output_index=spoken.output_index,
        content_index=spoken.content_index,
        delta=audio,
    )


def _bounded(data: bytes | str) -> bytes:
    """Return the message as bytes, or raise when it is too large or not text."""
    if len(data) <= MAX_MESSAGE_BYTES:
        try:
            body = data.encode() if isinstance(data, str) else data
        except UnicodeEncodeError as error:
            raise RemoteProtocolError(f"message is not text: character {error.start} has no UTF-8 form") from error
        if len(body) <= MAX_MESSAGE_BYTES:
            return body
    raise RemoteProtocolError(f"message of {len(data)} bytes or more; at most {MAX_MESSAGE_BYTES} are accepted")


def _parse(body: bytes) -> tuple[str, dict[str, Any]]:
    """Return an event's present type and its content in present spelling."""
    try:
        raw = msgspec.json.decode(body)
    except RecursionError as error:
        raise _too_deep(body) from error
    except msgspec.MsgspecError as error:
        raise RemoteProtocolError(f"message of {len(body)} bytes is not JSON: {error}") from error
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _depth(raw) > MAX_DEPTH:
        raise _too_deep(body)
    if not isinstance(raw, dict):
        raise RemoteProtocolError(f"message is not a JSON object but {type(raw).__name__}")
    kind = raw.get("type")
    if not isinstance(kind, str):
        raise RemoteProtocolError("event has no type, which must be a string")
    kind = raw["type"] = _OLD_TYPES.get(kind, kind)
    session = raw.get("session")
    if isinstance(session, dict):
        session.setdefault("type", "realtime")
    for item in _items(raw):
        _modernise(item)
    return kind, raw


def _depth(value: Any) -> int:
    """Return how deep the objects and arrays in ``value`` are nested, layer by layer."""
    depth, layer = 0, [value]
    while layer := [each for each in layer if isinstance(each, dict | list)]:
        depth += 1
        layer = [inner for each in layer for inner in (each.values() if isinstance(each, dict) else each)]
    return depth


def _too_deep(body: bytes) -> RemoteProtocolError:
    return RemoteProtocolError(
        f"message of {len(body)} bytes is nested too deeply; at most {MAX_DEPTH} levels are accepted"
    )


def _items(raw: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the conversation items in an event, wherever they sit."""
    response = raw.get("response")
    places = [raw.get("item")]
    for name in ("output", "input"):
        within = response.get(name) if isinstance(response, dict) else None
        places += within if isinstance(within, list) else []
    yield from (item for item in places if isinstance(item, dict))


def _modernise(item: dict[str, Any]) -> None:
    """Give an item's content parts their present types."""
    content = item.get("content")
    for part in content if isinstance(content, list) else []:
        if isinstance(part, dict):
            kind = part.get("type")
            part["type"] = _OLD_PARTS.get((str(item.get("role")), str(kind)), kind)


def _convert(kind: str, raw: dict[str, Any], struct: type[WireStruct]) -> Any:
    try:
        return msgspec.convert(raw, struct)
    except msgspec.ValidationError as error:
        raise RemoteProtocolError(f"{kind}: {error!s:.{_MAX_NAME}}") from error


def _unknown_fields(raw: Any, value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of fields that are in the message and not in the struct made of it."""
    if isinstance(value, WireStruct):
        config = value.__struct_config__
        for name, inner in raw.items():
            if name in value.__struct_encode_fields__:
                yield from _unknown_fields(inner, getattr(value, name), f"{path}{name}.")
            elif name != config.tag_field:
                yield f"{path}{name}"
    elif isinstance(value, tuple):
        for inner, element in zip(raw, value, strict=True):
            yield from _unknown_fields(inner, element, path)


def _count(tally: dict[str, int], name: str) -> None:
    name = name[:_MAX_NAME]
    if name not in tally and len(tally) >= MAX_TALLY_NAMES:
        name = OTHERS
    tally[name] = tally.get(name, 0) + 1

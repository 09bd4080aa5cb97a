"""Conversation items: the messages, tool calls and tool outputs that make up the model's history.

Structs carry the wire's own field names. Absent and ``null`` both read as ``None`` and are not written, except where
a field says otherwise. Words that a newer server may add to (statuses, content types) are ``str``: an unknown one must
not cost the event.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, dataclass_transform

from msgspec import Struct, StructMeta, field

JsonValue: TypeAlias = object
Json: TypeAlias = dict[str, JsonValue]
"""A JSON object that is carried, not read: a tool's schema, for instance."""


class _WireMeta(StructMeta):
    """Makes every struct below keyword-only without saying so each time; ``frozen`` is inherited anyway."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> _WireMeta:
        return super().__new__(mcls, name, bases, namespace, kw_only=True, **config)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class WireStruct(Struct, metaclass=_WireMeta, frozen=True, omit_defaults=True, gc=False):
    """Base of everything on the wire.

    A field that equals its ``default`` is not written; one with a ``default_factory`` is always written. JSON has no
    cycles, so the garbage collector need not track these objects.
    """


def no_content() -> tuple[ContentPart, ...]:
    """Return an empty content; unlike the factory ``tuple``, it is always written."""
    return ()


class ContentPart(WireStruct):
    """One part of a message, or of a response while it grows.

    ``type`` is one of ``input_text``, ``input_audio``, ``input_image``, ``output_text``, ``output_audio`` in an item;
    ``text`` or ``audio`` in ``response.content_part.*``. ``audio`` is raw audio in the session's format for its side.
    """

    type: str
    text: str | None = None
    transcript: str | None = None
    audio: bytes | None = None
    image_url: str | None = None
    detail: str | None = None


class _Item(WireStruct, tag_field="type"):
    """What every item may carry; a client may choose the ``id``."""

    id: str | None = None
    object: str | None = None
    status: str | None = None
    """``completed``, ``incomplete`` or ``in_progress``."""


class MessageItem(_Item, tag="message"):
    """Something said or written by one side, or an instruction (``system``)."""

    role: Literal["system", "user", "assistant"]
    content: tuple[ContentPart, ...] = field(default_factory=no_content)


class FunctionCallItem(_Item, tag="function_call"):
    """The model's call of a tool; ``arguments`` is JSON text and may still be empty."""

    name: str
    arguments: str = field(default_factory=str)
    call_id: str | None = None


class FunctionCallOutputItem(_Item, tag="function_call_output"):
    """A tool's answer; ``call_id`` goes back byte for byte."""

    call_id: str
    output: str
    poly_knowledge: tuple[Json, ...] | None = None
    """PolyAI: topics ``{name, content}`` that the model may answer from."""


class McpListToolsItem(_Item, tag="mcp_list_tools"):
    """The tools that a remote tool server offers."""

    server_label: str
    tools: tuple[Json, ...]


class McpCallItem(_Item, tag="mcp_call"):
    """A call of a remote tool, made by the realtime server."""

    server_label: str
    name: str
    arguments: str
    output: str | None = None
    error: Json | None = None
    approval_request_id: str | None = None


class McpApprovalRequestItem(_Item, tag="mcp_approval_request"):
    """The server asks whether a remote tool may be called."""

    server_label: str
    name: str
    arguments: str


class McpApprovalResponseItem(_Item, tag="mcp_approval_response"):
    """The client's answer to an approval request."""

    approval_request_id: str
    approve: bool
    reason: str | None = None


class ItemReference(WireStruct, tag_field="type", tag="item_reference"):
    """Points at an item in history; allowed only in the ``input`` of ``response.create``."""

    id: str


class UnknownItem(_Item, tag="unknown"):
    """Stands for an item of a type that is not known here; only ever read, never sent."""

    kind: str
    """The type as the server wrote it."""


Item: TypeAlias = (
    MessageItem
    | FunctionCallItem
    | FunctionCallOutputItem
    | McpListToolsItem
    | McpCallItem
    | McpApprovalRequestItem
    | McpApprovalResponseItem
    | UnknownItem
)

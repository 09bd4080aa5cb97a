"""The conversation as the server holds it, and what a cut leaves of a reply in it.

Every item is told to the model; what a reply was made of is kept beside it, so that a cut can fall on words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from callwright.ids import ItemId, Ms, ToolCallId
from callwright.sim.models import AgentSaid, CallerSaid, HistoryItem, SystemNote, ToolAnswered, ToolRequested
from callwright.sim.record import SpokenItem
from callwright.wire.items import (
    ContentPart,
    FunctionCallItem,
    FunctionCallOutputItem,
    Item,
    ItemReference,
    MessageItem,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callwright.sim.server.speaking import Growth, Utterance
    from callwright.sim.speech import Word

ROOT = "root"
"""As ``previous_item_id``: put the item at the front."""
_ITEM = "realtime.item"


class Refusal(NamedTuple):
    """Why a client event was refused; becomes an ``error`` event, and nothing has changed."""

    code: str
    message: str
    param: str | None = None


@dataclass(slots=True)
class Spoken:
    """A spoken reply: what it is made of, how much has left, and how much of it history keeps."""

    item_id: ItemId
    utterance: Utterance
    started_ms: Ms
    streamed_ms: Ms = 0
    kept_ms: Ms | None = None
    """None: nothing was cut."""
    tool: str | None = None
    """The tool whose spoken argument it is."""
    is_written: bool = False
    """The client has a voice of its own for it; its audio is what that is expected to take."""
    is_argument: bool = False
    """It is written as an argument of its tool's call, and not besides."""
    heard: str | None = None
    """What the client says that was heard of it; None where it has not said so, or all of it was."""
    growth: Growth | None = None
    """While more of it is still being made."""

    @property
    def left_ms(self) -> Ms:
        """Length of audio that the item has now, for the check of a truncate."""
        return self.streamed_ms if self.kept_ms is None else min(self.kept_ms, self.streamed_ms)

    def said(self, cut_suffix: str) -> AgentSaid:
        """The reply as history holds it; ``cut_suffix`` ends the text of one that was cut."""
        words = self.utterance.words
        if self.heard is not None:
            return AgentSaid(self.item_id, f"{self.heard}{cut_suffix}" if self.heard else "", is_cut=True)
        kept = words if self.kept_ms is None else kept_words(words, self.kept_ms)
        is_cut = len(kept) < len(words) or (self.growth is not None and self.kept_ms is not None)
        suffix = cut_suffix if is_cut and kept else ""
        return AgentSaid(self.item_id, " ".join(word.text for word in kept) + suffix, is_cut)

    @property
    def record(self) -> SpokenItem:
        """The reply as the model made it."""
        made = self.utterance
        return SpokenItem(
            self.item_id, self.started_ms, made.words, made.clips, made.audio_ms, self.streamed_ms, self.tool
        )


def kept_words(words: Sequence[Word], cut_ms: Ms) -> Sequence[Word]:
    """The words before a cut at ``cut_ms`` of the audio; one under it is kept if half of it or more is."""
    return [word for word in words if word.start_ms + word.end_ms <= 2 * cut_ms]


class History:
    """The ordered items of one conversation."""

    def __init__(self, cut_suffix: str) -> None:
        """``cut_suffix`` ends a text that was cut; where it is empty, a truncate deletes the text of what it cuts.

        The audio that is left, and with it what the model knows that it said, is the same either way.
        """
        self._cut_suffix = cut_suffix
        self._textless: dict[ItemId, None] = {}
        self._items: list[HistoryItem] = []
        self._spoken: dict[ItemId, Spoken] = {}
        self._posted: dict[ItemId, Item] = {}
        self._restated: dict[ItemId, ItemId] = {}
        """Items that a client put in the place of a written reply, each with that reply."""

    @property
    def items(self) -> tuple[HistoryItem, ...]:
        """What the model sees, oldest first."""
        return tuple(self._items)

    @property
    def told(self) -> tuple[HistoryItem, ...]:
        """The same, where what was put in the place of a reply counts as that reply."""
        return tuple(replace(item, item_id=self._restated.get(item.item_id, item.item_id)) for item in self._items)

    @property
    def spoken(self) -> tuple[SpokenItem, ...]:
        """Every reply that was spoken, deleted ones too, in order."""
        return tuple(each.record for each in self._spoken.values())

    @property
    def posted(self) -> frozenset[ItemId]:
        """The items that a client put here."""
        return frozenset(self._posted)

    def append(self, item: HistoryItem) -> ItemId | None:
        """Add an item at the end; returns the id of the one before it."""
        previous = self._items[-1].item_id if self._items else None
        self._items.append(item)
        return previous

    def speak(self, spoken: Spoken) -> ItemId | None:
        """Add a reply that begins to be spoken; returns the id of the item before it."""
        self._spoken[spoken.item_id] = spoken
        return self.append(spoken.said(self._cut_suffix))

    def post(self, item_id: ItemId, item: Item, after: str | None) -> ItemId | str | Refusal | None:
        """Add a client's item after another (None: at the end); returns what is to be told as the one before it."""
        if self._index(item_id) is not None:
            return Refusal("invalid_value", f"Item '{item_id}' already exists in the conversation.", "item.id")
        entry = self._read(item_id, item)
        if isinstance(entry, Refusal):
            return entry
        at = len(self._items) - 1 if after is None else -1 if after == ROOT else self._index(ItemId(after))
        if at is None:
            return Refusal("invalid_value", f"Previous item '{after}' not found in conversation.", "previous_item_id")
        self._posted[item_id] = item
        self._items.insert(at + 1, entry)
        return ROOT if after == ROOT else self._items[at].item_id if at >= 0 else None

    def put_words(self, item_id: ItemId, text: str) -> None:
        """Give a turn of the caller's its words, unless it was deleted."""
        at = self._index(item_id)
        if at is not None:
            said = self._items[at]
            assert isinstance(said, CallerSaid)
            self._items[at] = replace(said, text=text)

    def remove(self, item_id: str) -> Refusal | None:
        """Delete an item."""
        at = self._index(ItemId(item_id))
        if at is None:
            return Refusal("item_delete_invalid_item_id", f"Item with item_id not found: {item_id}", "item_id")
        del self._items[at]
        return None

    def grow(self, item_id: ItemId, utterance: Utterance) -> None:
        """A spoken reply is known up to here."""
        self._spoken[item_id].utterance = utterance
        self._retell(item_id)

    def left_of(self, item_id: str) -> Ms | None:
        """How much of a written reply what a client put right behind it holds; None for any other item.

        What stands there takes the reply's place, if it says the beginning of it.
        """
        at, reply = self._index(ItemId(item_id)), self._spoken.get(ItemId(item_id))
        if at is None or reply is None or not reply.is_written:
            return None
        behind = self._items[at + 1] if at + 1 < len(self._items) else None
        if not isinstance(behind, AgentSaid) or behind.item_id not in self._posted:
            return 0
        self._restated[behind.item_id] = reply.item_id
        words = reply.utterance.words[: len(behind.text.split())]
        return words[-1].end_ms if words else 0

    def cut(self, item_id: ItemId, end_ms: Ms) -> None:
        """Keep of a spoken reply what lies before ``end_ms``; only ever shortens."""
        spoken = self._spoken[item_id]
        spoken.kept_ms = end_ms if spoken.kept_ms is None else min(spoken.kept_ms, end_ms)
        self._retell(item_id)

    def _retell(self, item_id: ItemId) -> None:
        at = self._index(item_id)
        if at is not None:
            self._items[at] = self._spoken[item_id].said(self._cut_suffix)

    def heard(self, item_id: ItemId, text: str) -> bool:
        """Keep of a written reply what was heard; true if that is not all of it. Only ever shortens."""
        reply = self._spoken[item_id]
        before = reply.utterance.text if reply.heard is None else reply.heard
        if len(text.split()) >= len(before.split()):
            return False
        reply.heard = text.strip()
        at = self._index(item_id)
        if at is not None:
            self._items[at] = reply.said(self._cut_suffix)
        return True

    def truncate(self, item_id: str, content_index: int, end_ms: Ms) -> Refusal | None:
        """Cut as a client asks for it."""
        at = self._index(ItemId(item_id))
        if at is None:
            return Refusal("item_truncate_invalid_item_id", f"Item with item_id not found: {item_id}", "item_id")
        spoken = self._spoken.get(ItemId(item_id))
        if spoken is None or spoken.streamed_ms == 0 or spoken.is_written:
            return Refusal("unsupported_content_type", "Only model output audio messages can be truncated", "item_id")
        if content_index != 0:
            return Refusal("invalid_value", f"Content index {content_index} not found in item.", "content_index")
        if not 0 <= end_ms <= spoken.left_ms:
            message = f"Audio content of {spoken.left_ms}ms is already shorter than {end_ms}ms"
            return Refusal("invalid_value", message, "audio_end_ms")
        self.cut(spoken.item_id, end_ms)
        if not self._cut_suffix:
            self._textless[spoken.item_id] = None
        return None

    def retrieve(self, item_id: str) -> Item | Refusal:
        """An item as it is now."""
        at = self._index(ItemId(item_id))
        if at is None:
            return Refusal("item_retrieve_invalid_item_id", f"Item with item_id not found: {item_id}", "item_id")
        if ItemId(item_id) in self._textless:
            left = self._spoken[ItemId(item_id)]
            audio = left.utterance.between(0, left.left_ms)
            return _message(left.item_id, "assistant", ContentPart(type="output_audio", audio=audio))
        if (reply := self._spoken.get(ItemId(item_id))) and reply.is_written:
            text = "" if reply.is_argument else reply.said(self._cut_suffix).text
            return _message(reply.item_id, "assistant", ContentPart(type="output_text", text=text))
        posted = self._posted.get(ItemId(item_id))
        return wire_item(self._items[at]) if posted is None else stamped(posted, ItemId(item_id))

    def context(self, given: Sequence[Item | ItemReference]) -> tuple[HistoryItem, ...] | Refusal:
        """What a response sees that is given its own input instead of the history."""
        seen: list[HistoryItem] = []
        for number, item in enumerate(given):
            if isinstance(item, ItemReference):
                at = self._index(ItemId(item.id))
                entry = self._items[at] if at is not None else _unknown(item.id, f"response.input[{number}]")
            else:
                entry = self._read(ItemId(item.id or f"input_{number}"), item)
            if isinstance(entry, Refusal):
                return entry
            seen.append(entry)
        return tuple(seen)

    def _index(self, item_id: ItemId) -> int | None:
        return next((at for at, item in enumerate(self._items) if item.item_id == item_id), None)

    def _read(self, item_id: ItemId, item: Item) -> HistoryItem | Refusal:
        """What a client's item means to the model."""
        match item:
            case MessageItem(role="system") if not _others(item, "input_text"):
                return SystemNote(item_id, _text(item, "input_text"))
            case MessageItem(role="user") if not _others(item, "input_text"):
                return CallerSaid(item_id, _text(item, "input_text"))
            case MessageItem(role="assistant") if not _others(item, "output_text"):
                return AgentSaid(item_id, _text(item, "output_text"))
            case FunctionCallItem(call_id=str()):
                return _read_call(item_id, item)
            case FunctionCallOutputItem():
                return self._read_output(item_id, item)
            case MessageItem():
                kinds = ", ".join(part.type for part in item.content)
                return Refusal("invalid_value", f"Content of {item.role} items cannot be: {kinds}.", "item.content")
        return Refusal("invalid_value", "Items of this type cannot be created here.", "item.type")

    def _read_output(self, item_id: ItemId, item: FunctionCallOutputItem) -> HistoryItem | Refusal:
        calls = [each for each in self._items if isinstance(each, ToolRequested) and each.tool_call_id == item.call_id]
        if not calls:
            message = f"Tool call ID '{item.call_id}' not found in conversation."
            return Refusal("invalid_tool_call_id", message, "item.call_id")
        if any(isinstance(each, ToolAnswered) and each.tool_call_id == item.call_id for each in self._items):
            message = f"Tool call ID '{item.call_id}' already has an output."
            return Refusal("invalid_tool_call_id", message, "item.call_id")
        return ToolAnswered(item_id, calls[0].tool_call_id, item.output)


def _read_call(item_id: ItemId, item: FunctionCallItem) -> HistoryItem | Refusal:
    """A call that the model issued in an earlier session."""
    try:
        arguments = msgspec.json.decode(item.arguments, type=dict[str, object])
    except msgspec.MsgspecError:
        return Refusal("invalid_value", "Arguments of a function call are a JSON object.", "item.arguments")
    told = {name: value if isinstance(value, str) else str(value) for name, value in arguments.items()}
    return ToolRequested(item_id, ToolCallId(item.call_id or ""), item.name, told)


def _unknown(item_id: str, param: str) -> Refusal:
    return Refusal("invalid_value", f"Item with item_id not found: {item_id}", param)


def wire_item(item: HistoryItem) -> Item:
    """An item of the model's or the caller's making, finished, as the wire spells it."""
    match item:
        case CallerSaid():
            heard = ContentPart(type="input_audio", transcript=item.text)
            return _message(item.item_id, "user", heard)
        case AgentSaid():
            return _message(item.item_id, "assistant", ContentPart(type="output_audio", transcript=item.text))
        case SystemNote():
            return _message(item.item_id, "system", ContentPart(type="input_text", text=item.text))
        case ToolRequested():
            return FunctionCallItem(
                id=item.item_id,
                object=_ITEM,
                status="completed",
                name=item.name,
                call_id=item.tool_call_id,
                arguments=msgspec.json.encode(item.arguments).decode(),
            )
        case ToolAnswered():
            return FunctionCallOutputItem(
                id=item.item_id, object=_ITEM, status="completed", call_id=item.tool_call_id, output=item.output
            )


def _message(item_id: ItemId, role: Literal["system", "user", "assistant"], part: ContentPart) -> MessageItem:
    return MessageItem(id=item_id, object=_ITEM, status="completed", role=role, content=(part,))


def stamped(item: Item, item_id: ItemId) -> Item:
    """A client's item as the server tells it back."""
    return msgspec.structs.replace(item, id=item_id, object=_ITEM, status="completed")


def _text(item: MessageItem, kind: str) -> str:
    return " ".join(part.text or "" for part in item.content if part.type == kind)


def _others(item: MessageItem, kind: str) -> bool:
    return any(part.type != kind for part in item.content)

"""The conversation of one session as the wire shows it: what stands in it, in which order, and what is not told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import msgspec

from callwright.ids import ItemId, ToolCallId
from callwright.sim.models import AgentSaid, CallerSaid, HistoryItem, SystemNote, ToolAnswered, ToolRequested
from callwright.wire import client, items

_FRONT: Final = "root"


class WireHistory:
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

    def behind(self, item_id: str) -> AgentSaid | None:
        """What a client let the agent have said right behind an item."""
        at = self._order.index(item_id) + 1 if item_id in self._order else len(self._order)
        item = self.items[self._order[at]] if at < len(self._order) else None
        return item if isinstance(item, AgentSaid) and item.item_id in self.posted else None

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
        item = entry_of(event.item, event.item.id or f"posted {len(self.posted) + 1}")
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
        if told.id not in self.items and isinstance(told, items.MessageItem) and told.role == "user":
            self.turn(told.id, text_of(told) or None, after)
            return
        item = self.items.get(told.id) or entry_of(told, told.id)
        if isinstance(told, items.FunctionCallItem) and told.id not in self.items:
            return  # it is still empty
        if item is not None:
            self.put(item, after)

    def _rename(self, told: items.Item) -> None:
        """A client's item has its name from the server."""
        assert told.id is not None
        named = entry_of(told, told.id)
        for item_id in self._unnamed:
            item = self.items[item_id]
            if named is not None and replace(item, item_id=named.item_id) == named:
                del self._unnamed[item_id]
                self.items[told.id] = named
                self._order[self._order.index(item_id)] = told.id
                del self.items[item_id]
                self.posted[told.id] = self.posted.pop(item_id)
                return


def entry_of(item: items.Item, item_id: str) -> HistoryItem | None:
    """What an item that is whole means to the model; None for what is no part of the conversation here."""
    name = ItemId(item_id)
    match item:
        case items.MessageItem(role="system"):
            return SystemNote(name, text_of(item) or "")
        case items.MessageItem(role="user"):
            return CallerSaid(name, text_of(item) or "")
        case items.MessageItem(role="assistant"):
            return AgentSaid(name, text_of(item) or "")
        case items.FunctionCallItem():
            return ToolRequested(name, ToolCallId(item.call_id or ""), item.name, arguments_of(item.arguments))
        case items.FunctionCallOutputItem():
            return ToolAnswered(name, ToolCallId(item.call_id), item.output)
    return None


def text_of(item: items.MessageItem) -> str | None:
    """What a message says; None where it holds no text at all."""
    texts = [part.transcript if part.transcript is not None else part.text for part in item.content]
    known = [text for text in texts if text is not None]
    return " ".join(known).strip() if known else None


def arguments_of(text: str) -> dict[str, str]:
    """A call's arguments as texts; none where they are no JSON object."""
    try:
        told = msgspec.json.decode(text or "{}", type=dict[str, object])
    except msgspec.MsgspecError:
        return {}
    return {name: value if isinstance(value, str) else str(value) for name, value in told.items()}

"""The server's side of one call: each connection has a session of its own, and the record is of them all.

What a client tells a later session of what was before, so that the conversation goes on, is in the record once. Of the
local server's sessions everything is known; what can be known of another server's is in `elsewhere`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from callwright.runtime.call import SESSION_MS_MIN
from callwright.sim.models import AgentSaid, CallerSaid, SystemNote, ToolAnswered, ToolRequested
from callwright.sim.seeds import stream
from callwright.sim.server import ServerSession

if TYPE_CHECKING:
    import random

    from callwright.ids import ItemId, Ms
    from callwright.sim.models import HistoryItem
    from callwright.sim.record import Confirmation, SpokenItem, Truncation
    from callwright.sim.speech import Pcm


def known_limit(server: Mapping[str, Any]) -> Ms | None:
    """How long a client knows its sessions to last, by these settings of the server; None for its provider's limit.

    Sessions too short to plan for end unannounced.
    """
    limit_ms: Ms | None = server.get("longest_session_ms")
    return None if limit_ms is None or limit_ms < SESSION_MS_MIN else limit_ms


class OneSession(Protocol):
    """What is known of one session."""

    @property
    def truncations(self) -> Sequence[Truncation]:
        """Every truncate that came in."""

    @property
    def history(self) -> tuple[HistoryItem, ...]:
        """The conversation as the model sees it."""

    @property
    def spoken(self) -> tuple[SpokenItem, ...]:
        """Every reply as the model made it."""

    @property
    def posted(self) -> frozenset[ItemId]:
        """The items that the client put into the conversation."""

    @property
    def confirmations(self) -> Sequence[Confirmation]:
        """Each time the caller was found to speak over a reply."""


_Session = TypeVar("_Session", bound=OneSession)


class ServerBook(ABC, Generic[_Session]):
    """The sessions of one call, taken together."""

    def __init__(self) -> None:
        self._all: list[_Session] = []

    def tool_of(self, item_id: ItemId) -> str | None:
        """The tool that the reply with this item called, if any; it may become known after the reply began."""
        return next((spoken.tool for spoken in self.spoken if spoken.item_id == item_id), None)

    @property
    def spoken(self) -> tuple[SpokenItem, ...]:
        """Every reply as the model made it."""
        return tuple(spoken for each in self._all for spoken in each.spoken)

    @property
    def history(self) -> tuple[HistoryItem, ...]:
        """The conversation as the model saw it, from session to session."""
        seen: list[HistoryItem] = []
        for each in self._all:
            seen += list(_new(each, tuple(seen)))
        return tuple(seen)

    @property
    def truncations(self) -> tuple[Truncation, ...]:
        """Every truncate that came in."""
        return tuple(truncation for each in self._all for truncation in each.truncations)

    @property
    def confirmations(self) -> tuple[Confirmation, ...]:
        """Each time the caller was found to speak over a reply."""
        return tuple(confirmation for each in self._all for confirmation in each.confirmations)

    @property
    @abstractmethod
    def first_audio(self) -> Pcm | None:
        """The beginning of the caller's audio, as the first session read it; None where nobody tells."""

    @property
    @abstractmethod
    def unknown(self) -> tuple[ItemId, ...]:
        """The replies and the caller's turns of which nobody tells what history holds."""


class Sessions(ServerBook[ServerSession]):
    """Those with the local server. The first one is there from the start, others are made as they are wanted."""

    def __init__(self, make: Callable[[random.Random], ServerSession], seed: int) -> None:
        """``make`` makes a session whose chance comes from its argument; each has its own part of ``seed``."""
        super().__init__()
        self._make = make
        self._seed = seed
        self._all.append(make(stream(seed, "server")))
        self._connected = 0

    def next(self) -> ServerSession:
        """The session of the next connection."""
        self._connected += 1
        if self._connected > len(self._all):
            self._all.append(self._make(stream(self._seed, f"server {self._connected}")))
        return self._all[self._connected - 1]

    @property
    def first_audio(self) -> Pcm:
        """The beginning of the caller's audio, as the first session read it."""
        return self._all[0].first_audio

    @property
    def unknown(self) -> tuple[ItemId, ...]:
        """None: all is known."""
        return ()


def _new(session: OneSession, before: tuple[HistoryItem, ...]) -> Iterator[HistoryItem]:
    """What a session's history holds beyond that of the ones before it."""
    answered = {item.tool_call_id for item in before if isinstance(item, ToolAnswered)}
    noted = {item.text for item in before if isinstance(item, SystemNote)}
    for item in session.history:
        match item:
            case CallerSaid() | AgentSaid() | ToolRequested() if before and item.item_id in session.posted:
                continue
            case ToolAnswered(tool_call_id=tool_call_id) if tool_call_id in answered:
                continue
            case SystemNote(text=text) if text in noted:
                continue
        yield item

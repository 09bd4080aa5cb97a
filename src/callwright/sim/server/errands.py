"""What a session needs from outside and cannot have at once: the words of a turn, and the replies of an open model.

```
turn over ── HearWords ──────── words ──┐
          └─ response opens             └─ MakeReply ── Piece, ToolRequest, Piece ... ── Made or Failed
                    a cut ── DropReply: nothing of it is wanted any more
```

A session that was handed ears and a model that answer at once has no errands. One with errands opens the response when
the turn is over, as the other does, and lets it grow. A reply is not asked for before every turn has its words: the
history that goes with the errand is the one of that instant. Whoever owns the session runs the errands, off its clock,
and hands in what comes with the time at which it came.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from callwright.wire.objects import ResponseParams, Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callwright.ids import ItemId
    from callwright.sim.models import HistoryItem, ToolRequest
    from callwright.sim.server.history import History
    from callwright.sim.speech import Pcm, Word


@dataclass(frozen=True, slots=True, eq=False)
class HearWords:
    """Find out what was said in a turn of the caller's; ``audio`` is all of it (int16, mono, 16 kHz)."""

    item_id: ItemId
    audio: Pcm


@dataclass(frozen=True, slots=True)
class MakeReply:
    """Make the next reply to this history, as this session has it, and as this request changes that."""

    response_id: str
    history: tuple[HistoryItem, ...]
    session: Session
    asked: ResponseParams
    by_client: bool
    """A client asked for it; else the caller's turn did."""


@dataclass(frozen=True, slots=True)
class DropReply:
    """Stop making this reply."""

    response_id: str


Errand: TypeAlias = HearWords | MakeReply | DropReply


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A piece of speech (int16, mono, 16 kHz) that follows the ones before it; word times count from its start."""

    pcm: Pcm
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """The reply is whole."""


@dataclass(frozen=True, slots=True)
class Failed:
    """No more of the reply will come; ``code`` is one word for programs, ``message`` is for people."""

    code: str
    message: str


if TYPE_CHECKING:
    Part: TypeAlias = Piece | ToolRequest | Made | Failed


@dataclass(slots=True, eq=False)
class Errands:
    """What one session asks for, in order; ``session`` is its configuration as it is now."""

    history: History
    session: Session = field(default_factory=Session)
    _ready: list[Errand] = field(default_factory=list)
    _unheard: dict[ItemId, float] = field(default_factory=dict)
    """The turns that have no words yet, and how many seconds they have."""
    _waiting: dict[str, tuple[Sequence[HistoryItem] | None, ResponseParams, bool]] = field(default_factory=dict)
    """The replies that wait for those words: their own input if they have one, and what was asked."""

    def hear(self, item_id: ItemId, audio: Pcm, seconds: float) -> None:
        """Ask for a turn's words."""
        self._unheard[item_id] = seconds
        self._ready.append(HearWords(item_id, audio))

    def heard(self, item_id: ItemId) -> float:
        """A turn has its words; returns its length in seconds."""
        return self._unheard.pop(item_id)

    def make(
        self, response_id: str, seen: Sequence[HistoryItem] | None, asked: ResponseParams, *, by_client: bool
    ) -> None:
        """Ask for a reply: to what is ``seen``, or to the history as it will be."""
        self._waiting[response_id] = (seen, asked, by_client)

    def drop(self, response_id: str) -> None:
        """A reply is not wanted any more."""
        if self._waiting.pop(response_id, None) is None:
            self._ready.append(DropReply(response_id))

    def take(self) -> list[Errand]:
        """What can be done now."""
        if not self._unheard:
            for response_id, (seen, asked, by_client) in self._waiting.items():
                history = self.history.items if seen is None else tuple(seen)
                self._ready.append(MakeReply(response_id, history, self.session, asked, by_client))
            self._waiting.clear()
        ready, self._ready = self._ready, []
        return ready

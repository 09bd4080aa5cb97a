"""What becomes of replies that a voice of our own says, and what the model's server is told of them.

The server wrote such a reply and cannot know what of it was heard. Owns, per response, whether it is audible and what
was reported of it, and stops the voice where it was cut. Owns neither positions (``playout``) nor words (``heard``).

```
voice      ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│ stopped at a cut
line            ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│ played out, or cut
reports         │started  │progress  │stopped: what was heard of it
```

Reports tell what the line has played, never what was sent to it, and in numbers of words: the words themselves are with
whoever sends them. Where a server takes none, a reply that was cut is written anew in its history, as far as it was
heard, where that can be done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from callwright.core.commands import (
    DropItem,
    ReportAudible,
    ReportProgress,
    ReportStopped,
    RestateItem,
    StopVoice,
)
from callwright.core.events import AudioReceived, Event, VoiceFailed
from callwright.core.heard import HeardRecord
from callwright.core.outgoing import Outgoing
from callwright.core.plan import Can
from callwright.core.playout import Cut, Playing, Playout
from callwright.core.table import Table
from callwright.core.turns import Turns
from callwright.ids import ItemId, Ms, ResponseId

FIRST_LOOK_MS: Ms = 100
"""How often it is looked whether a reply is audible: a pulled line tells its position only when asked."""
PROGRESS_MS: Ms = 500
"""How often it is told how much of a reply was heard."""


class Voicing(Enum):
    """How far a reply has come, for the ear."""

    PENDING = auto()
    """Nothing of it is audible yet."""
    AUDIBLE = auto()
    SILENT = auto()
    """Nothing more of it will be heard."""


class Cue(Enum):
    """What happens to a reply."""

    HEARD_FIRST = auto()
    STOPPED = auto()
    """It was played to its end, or cut."""


VOICING: Table[Voicing, Cue] = Table(
    "voicing",
    Voicing.PENDING,
    {
        (Voicing.PENDING, Cue.HEARD_FIRST): Voicing.AUDIBLE,
        (Voicing.PENDING, Cue.STOPPED): Voicing.SILENT,
        (Voicing.AUDIBLE, Cue.STOPPED): Voicing.SILENT,
    },
)

_SETTLED = (Playing.PLAYED, Playing.CUT)


@dataclass(slots=True)
class _Reply:
    response_id: ResponseId
    state: Voicing = VOICING.start
    items: dict[ItemId, None] = field(default_factory=dict)
    """What it says, in order."""
    is_closed: bool = False
    """Its response has ended, and the voice is through with it."""
    told_ms: Ms = 0
    """When it was reported last."""
    due_ms: Ms | None = None
    """When to look again; None before its first audio."""


class OwnVoice:
    """The replies of one call that a voice of our own says; without one, nothing is followed."""

    def __init__(self, playout: Playout, heard: HeardRecord, turns: Turns, out: Outgoing, *, is_used: bool) -> None:
        """All of these are the session's; ``is_used`` says whether there is such a voice."""
        self._playout = playout
        self._heard = heard
        self._turns = turns
        self._out = out
        self.is_used = is_used
        self._replies: dict[ResponseId, _Reply] = {}

    def says(self, event: Event) -> bool:
        """Whether this comes from the voice, also when the model is gone."""
        return self.is_used and isinstance(event, AudioReceived)

    def began(self, response_id: ResponseId) -> None:
        """A response opened."""
        if self.is_used:
            self._replies.setdefault(response_id, _Reply(response_id))

    def has(self, response_id: ResponseId, item_id: ItemId, now_ms: Ms) -> None:
        """An item of a response has text or audio; of one that is over, it will not be heard."""
        reply = self._replies.get(response_id)
        if reply is not None:
            reply.items[item_id] = None
        elif self.is_used and self._playout.state(item_id) is None:
            self._heard.unheard(item_id, now_ms)

    def failed(self, event: VoiceFailed, now_ms: Ms) -> None:
        """The voice has ended before it had said all of an item."""
        self._out.note(f"the voice failed in response {event.response_id}", event.what)
        self._heard.unsaid_rest(event.item_id)
        if self._playout.state(event.item_id) is None:
            self._heard.unheard(event.item_id, now_ms)

    def ended(self, response_id: ResponseId) -> None:
        """A response closed, and nothing more is said of it."""
        if response_id in self._replies:
            self._replies[response_id].is_closed = True

    def session_lost(self) -> None:
        """Nobody is left who knows these replies: what came of them is played, and told to nobody."""
        for reply in self._replies.values():
            if not reply.is_closed:
                self._stop_voice(reply)
        self._replies.clear()

    def look(self, now_ms: Ms) -> None:
        """Report what has become of the replies since the last time."""
        for reply in list(self._replies.values()):
            voiced = self._voiced(reply)
            played_ms = sum(self._playout.position_ms(item_id, now_ms) for item_id in voiced)
            if reply.state is Voicing.PENDING and played_ms:
                reply.state = VOICING.after(reply.state, Cue.HEARD_FIRST)
                reply.told_ms = now_ms
                self._report(ReportAudible(self._out.next_id(), reply.response_id))
            is_cut = self._playout.is_cut(reply.response_id)
            if is_cut and not reply.is_closed:
                self._stop_voice(reply)
            if reply.is_closed and all(self._playout.state(item_id) in _SETTLED for item_id in voiced):
                self._over(reply, played_ms, now_ms, is_cut=is_cut)
            elif voiced and reply.due_ms is None:
                reply.due_ms = now_ms + FIRST_LOOK_MS

    def timer(self, now_ms: Ms) -> None:
        """Handle the deadline: tell how far the audible replies have come, as often as that is told."""
        for reply in self._replies.values():
            if reply.due_ms is None or now_ms < reply.due_ms:
                continue
            if reply.state is Voicing.PENDING:
                reply.due_ms = now_ms + FIRST_LOOK_MS
                continue
            if now_ms >= reply.told_ms + PROGRESS_MS:
                self._progress(reply, now_ms)
            reply.due_ms = reply.told_ms + PROGRESS_MS

    def next_deadline_ms(self) -> Ms | None:
        """When a look is due, whatever else happens."""
        if Can.REPORT not in self._out.can:
            return None
        dues = [reply.due_ms for reply in self._replies.values() if self._playout.is_live(reply.response_id)]
        return min((due_ms for due_ms in dues if due_ms is not None), default=None)

    def _voiced(self, reply: _Reply) -> list[ItemId]:
        return [item_id for item_id in reply.items if self._playout.state(item_id) is not None]

    def _progress(self, reply: _Reply, now_ms: Ms) -> None:
        reply.told_ms = now_ms
        voiced = self._voiced(reply)
        played_ms = sum(self._playout.position_ms(item_id, now_ms) for item_id in voiced)
        heard = tuple((item_id, self._heard.words_by(item_id, self._cut_now(item_id, now_ms))) for item_id in voiced)
        self._report(ReportProgress(self._out.next_id(), reply.response_id, played_ms, heard))

    def _cut_now(self, item_id: ItemId, now_ms: Ms) -> Cut:
        is_complete = self._playout.state(item_id) is not Playing.STREAMING
        return Cut(item_id, self._playout.position_ms(item_id, now_ms), self._playout.item_ms(item_id), is_complete)

    def _stop_voice(self, reply: _Reply) -> None:
        reply.is_closed = True
        for item_id in self._voiced(reply):
            if self._playout.state(item_id) not in _SETTLED:
                self._heard.unsaid_rest(item_id)
        self._out.add(StopVoice(reply.response_id, is_open=self._turns.response_id == reply.response_id))

    def _over(self, reply: _Reply, played_ms: Ms, now_ms: Ms, *, is_cut: bool) -> None:
        del self._replies[reply.response_id]
        reply.state = VOICING.after(reply.state, Cue.STOPPED)
        for item_id in reply.items:
            has_letters = any(map(str.isalnum, self._heard.written_of(item_id)))
            if self._playout.state(item_id) is None and (is_cut or not has_letters):
                self._heard.unheard(item_id, now_ms)
            if is_cut and Can.RESTATE in self._out.can:
                self._restate(item_id)
        if reply.items:
            dropped_ms = sum(map(self._playout.item_ms, self._voiced(reply))) - played_ms
            heard = tuple((item_id, self._heard.words_of(item_id)) for item_id in reply.items)
            self._report(ReportStopped(self._out.next_id(), reply.response_id, played_ms, max(0, dropped_ms), heard))

    def _restate(self, item_id: ItemId) -> None:
        """Let history hold what was heard of an item that was cut."""
        words, written = self._heard.words_of(item_id), self._heard.written_of(item_id)
        if written and words >= len(written.split()):
            return
        if words:
            self._out.request(RestateItem(self._out.next_id(), item_id, words))
        self._out.request(DropItem(self._out.next_id(), item_id))

    def _report(self, report: ReportAudible | ReportProgress | ReportStopped) -> None:
        if Can.REPORT in self._out.can:
            self._out.request(report)

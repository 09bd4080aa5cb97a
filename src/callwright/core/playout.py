"""What the line played of every reply item, and what is to be cut when the caller talks over it.

Owns, per item: how much audio arrived, how much of it the line has played, and whether it ended whole or cut.
Does not own what the words were (``heard``) or who may speak (``turns``).

```
model   ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│ audio ended             received_ms
line         ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│ played out   played_ms
caller                  speaks ──┐ cut: the item ends here, for the ear and for history
```

Played time is counted at the last stage that this side controls. A pulled line reports what it took: all of it
will be heard, even what a clear can no longer stop. A carrier returns marks: the position is the last returned
mark plus the time since, never beyond the next mark that is still out, never beyond what was received. A lag
that nobody reports can't be known; a carrier's lag is known because no mark comes back before it is over. Where
the model stalls so long that the line runs dry, now or a lag later, the position stands still within one frame: a
mark follows the first frame that comes after the gap.

A cut clears the line, which begins a new *generation*. Marks of an older generation mean that their audio was
dropped, and are ignored. The audio of a cut response that still arrives is dropped; late audio of any other is played.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto

from callwright.core.commands import ClearPlayout, Command, FinishItem, PlayAudio, SendMark
from callwright.core.ports import PlayedReports
from callwright.core.table import Table
from callwright.ids import ItemId, MarkId, Ms, ResponseId, Samples

FIRST_MARK_MS: Ms = 20
"""A mark follows the first frame of an item, and the first after the line ran dry: it tells when the ear gets there."""
MARK_SPACING_MS: Ms = 200
LOST_MARK_GRACE_MS: Ms = 1_000
"""How long after its expected end an item counts as played although its last mark has not come back."""
ROUNDING_MS: Ms = 1
"""A line counts in its own samples, so its total may round to one millisecond less than ours."""


class Playing(Enum):
    """How far an item has come."""

    STREAMING = auto()
    """Its audio is arriving."""
    COMPLETE = auto()
    """All its audio has arrived; the line is not through with it."""
    PLAYED = auto()
    """The line has played all of it."""
    CUT = auto()
    """It was cleared before its end."""


class Cue(Enum):
    """What happens to an item."""

    AUDIO = auto()
    AUDIO_ENDED = auto()
    PLAYED_OUT = auto()
    CUT_OFF = auto()


PLAYOUT: Table[Playing, Cue] = Table(
    "playout",
    Playing.STREAMING,
    {
        (Playing.STREAMING, Cue.AUDIO): Playing.STREAMING,
        (Playing.STREAMING, Cue.AUDIO_ENDED): Playing.COMPLETE,
        (Playing.STREAMING, Cue.CUT_OFF): Playing.CUT,
        (Playing.COMPLETE, Cue.AUDIO): Playing.COMPLETE,
        (Playing.COMPLETE, Cue.PLAYED_OUT): Playing.PLAYED,
        (Playing.COMPLETE, Cue.CUT_OFF): Playing.CUT,
        (Playing.PLAYED, Cue.AUDIO): Playing.COMPLETE,
        (Playing.CUT, Cue.AUDIO): Playing.CUT,
        (Playing.CUT, Cue.AUDIO_ENDED): Playing.CUT,
    },
)


@dataclass(frozen=True, slots=True)
class Cut:
    """An item that was cut: ``heard_ms`` of its ``received_ms`` were played."""

    item_id: ItemId
    heard_ms: Ms
    received_ms: Ms
    is_complete: bool
    """Whether all of its audio had arrived."""


@dataclass(slots=True)
class _Item:
    item_id: ItemId
    response_id: ResponseId
    generation: int
    state: Playing = PLAYOUT.start
    samples: Samples = 0
    played_ms: Ms = 0
    played_at_ms: Ms | None = None
    """Instant of the last mark that came back; None before the first, and after the line ran dry."""
    marked_ms: Ms = 0
    marks: deque[tuple[MarkId, Ms]] = field(default_factory=deque)
    """Marks that are out, oldest first, with their positions."""


class Playout:
    """The playout of one call."""

    def __init__(self, *, rate_hz: int, reports: PlayedReports) -> None:
        """``rate_hz`` is the rate of the model's audio; ``reports`` is how the line tells what it played."""
        self.rate_hz = rate_hz
        self.reports = reports
        self.generation = 0
        self.dropped_samples: Samples = 0
        """Audio of cut responses that arrived late."""
        self._items: dict[ItemId, _Item] = {}
        self._live: list[_Item] = []
        """Items that are neither played nor cut, in playing order."""
        self._cut_responses: dict[ResponseId, None] = {}
        self._ended_responses: dict[ResponseId, None] = {}
        self._played_out: list[ItemId] = []
        self._mark_count = 0
        self._dry_ms: Ms = 0
        """When a line without lag has played all that it was handed; with a lag, a gap comes so much later."""

    def audio(self, response_id: ResponseId, item_id: ItemId, samples: Samples, now_ms: Ms) -> list[Command]:
        """Take a piece of an item's audio: commands that hand it to the line, or none if it is empty or too late."""
        if not samples:
            return []
        item = self._items.get(item_id)
        if response_id in self._cut_responses or (item is not None and item.state is Playing.CUT):
            self.dropped_samples += samples
            return []
        commands: list[Command] = []
        if item is None:
            commands += self._finish_live()
            item = self._items[item_id] = _Item(item_id, response_id, self.generation)
            self._live.append(item)
        else:
            self._resume(item, now_ms)
        item.state = PLAYOUT.after(item.state, Cue.AUDIO)
        commands += self._hand_on(item, samples, now_ms)
        if item.state is Playing.STREAMING and response_id in self._ended_responses:
            item.state = PLAYOUT.after(item.state, Cue.AUDIO_ENDED)
        if item.state is Playing.COMPLETE:
            commands += self._close(item)
        return commands

    def response_ended(self, response_id: ResponseId) -> list[Command]:
        """All audio of this response has arrived; what still comes of it is late."""
        self._ended_responses[response_id] = None
        commands: list[Command] = []
        for item in list(self._live):
            if item.response_id == response_id and item.state is Playing.STREAMING:
                commands += self._finish(item)
        return commands

    def superseded(self, response_id: ResponseId) -> list[Command]:
        """Another response began before this one ended: what it may still send is not played over that one."""
        self._cut_responses[response_id] = None
        return self.response_ended(response_id)

    def played(self, item_id: ItemId, generation: int, played_ms: Ms) -> None:
        """A pulled line took ``played_ms`` of an item in all."""
        item = self._items.get(item_id)
        if item is not None and item.generation == generation and item.state is not Playing.CUT:
            item.played_ms = max(item.played_ms, min(played_ms, self._received_ms(item)))
            self._settle(item)

    def is_end(self, item_id: ItemId, generation: int, played_ms: Ms) -> bool:
        """Whether ``played`` with these would end the item. All other reports say something only at the next event."""
        item = self._items.get(item_id)
        return (
            item is not None
            and item.state is Playing.COMPLETE
            and item.generation == generation
            and played_ms >= self._received_ms(item) - ROUNDING_MS
        )

    def mark_returned(self, mark_id: MarkId, now_ms: Ms) -> None:
        """A mark came back: its position is reached, and so is every position before it.

        A mark of a cleared generation, an unknown one and one that came back before mean nothing.
        """
        for index, item in enumerate(self._live):
            position = next((at for mark, at in item.marks if mark == mark_id), None)
            if position is None:
                continue
            for earlier in self._live[:index]:
                earlier.marks.clear()
                earlier.played_ms = self._received_ms(earlier)
                self._settle(earlier)
            while item.marks and item.marks[0][0] != mark_id:
                item.marks.popleft()
            item.marks.popleft()
            item.played_ms, item.played_at_ms = position, now_ms
            self._settle(item)
            return

    def take_played_out(self) -> list[ItemId]:
        """Items that have played to their end since the last call, in order."""
        items, self._played_out = self._played_out, []
        return items

    def position_ms(self, item_id: ItemId, now_ms: Ms) -> Ms:
        """How much of an item has been played, as far as can be known (ms of its audio)."""
        item = self._items[item_id]
        if item.state in (Playing.PLAYED, Playing.CUT) or item.played_at_ms is None:
            return item.played_ms
        bound = item.marks[0][1] if item.marks else self._received_ms(item)
        return min(item.played_ms + now_ms - item.played_at_ms, bound)

    def live(self) -> tuple[ItemId, ...]:
        """The items that the line still has to play, in order."""
        return tuple(item.item_id for item in self._live)

    def item_ms(self, item_id: ItemId) -> Ms:
        """How much audio of an item has come."""
        return self._received_ms(self._items[item_id])

    def is_busy(self) -> bool:
        """Whether the line still has audio of ours to play."""
        return bool(self._live)

    def cut(self, open_response: ResponseId | None, now_ms: Ms) -> tuple[list[Command], list[Cut]]:
        """Stop whatever is queued or playing, and whatever ``open_response`` still sends.

        Returns the commands (clear first) and the items that lost something. With nothing to stop, both are empty
        and the generation stays.
        """
        if open_response is not None:
            self._cut_responses[open_response] = None
        if not self._live:
            return [], []
        cuts = []
        for item in self._live:
            heard_ms, received_ms = self.position_ms(item.item_id, now_ms), self._received_ms(item)
            item.played_ms = heard_ms
            if item.state is Playing.COMPLETE and heard_ms >= received_ms - ROUNDING_MS:
                item.state = PLAYOUT.after(item.state, Cue.PLAYED_OUT)
                self._played_out.append(item.item_id)
                continue
            cuts.append(Cut(item.item_id, heard_ms, received_ms, item.state is Playing.COMPLETE))
            self._cut_responses[item.response_id] = None
            item.state = PLAYOUT.after(item.state, Cue.CUT_OFF)
            item.marks.clear()
        self._live.clear()
        self._dry_ms = now_ms
        self.generation += 1
        return [ClearPlayout(self.generation)], cuts

    def is_cut(self, response_id: ResponseId) -> bool:
        """Whether this response was cut: nothing that it still sends is played."""
        return response_id in self._cut_responses

    def is_live(self, response_id: ResponseId) -> bool:
        """Whether the line still has audio of this response to play."""
        return any(item.response_id == response_id for item in self._live)

    def received_ms(self, response_id: ResponseId) -> Ms:
        """How much audio of this response has come."""
        return sum(self._received_ms(item) for item in self._items.values() if item.response_id == response_id)

    def confirmed_ms(self) -> Ms:
        """How much the line has confirmed as played, of all items: any change of it is progress."""
        return sum(item.played_ms for item in self._items.values())

    def report_due_ms(self) -> Ms:
        """When a line with marks should have told more than it did: its next mark is reached. 0 where none is out."""
        if not self._live or self.reports is PlayedReports.PULLED:
            return 0
        item = self._live[0]
        if item.played_at_ms is None:
            return self._dry_ms
        next_ms = item.marks[0][1] if item.marks else self._received_ms(item)
        return item.played_at_ms + next_ms - item.played_ms

    def refuse(self, response_id: ResponseId) -> None:
        """Play nothing that this response still sends."""
        self._cut_responses[response_id] = None

    def state(self, item_id: ItemId) -> Playing | None:
        """How far this item has come; None for an item without audio."""
        item = self._items.get(item_id)
        return item.state if item else None

    def next_deadline_ms(self) -> Ms | None:
        """When the item that is playing should long have ended, although its last mark has not come back."""
        if not self._live or self.reports is PlayedReports.PULLED:
            return None
        item = self._live[0]
        if item.state is not Playing.COMPLETE or item.played_at_ms is None:
            return None
        return item.played_at_ms + self._received_ms(item) - item.played_ms + LOST_MARK_GRACE_MS

    def timer(self, now_ms: Ms) -> None:
        """Handle the deadline: the item counts as played out."""
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is not None and now_ms >= deadline_ms:
            item = self._live[0]
            item.marks.clear()
            item.played_ms = self._received_ms(item)
            self._settle(item)

    def _resume(self, item: _Item, now_ms: Ms) -> None:
        received_ms = self._received_ms(item)
        if item.state is Playing.PLAYED:
            item.generation = self.generation
            self._live.append(item)
        elif item.played_at_ms is None or self.position_ms(item.item_id, now_ms) < received_ms:
            return
        item.played_ms, item.played_at_ms = received_ms, None

    def _received_ms(self, item: _Item) -> Ms:
        return item.samples * 1000 // self.rate_hz

    def _hand_on(self, item: _Item, samples: Samples, now_ms: Ms) -> list[Command]:
        commands: list[Command] = []
        is_still = item.played_at_ms is None and not item.marks
        is_after_gap = is_still or now_ms > self._dry_ms
        self._dry_ms = max(self._dry_ms, now_ms) + samples * 1000 // self.rate_hz
        if self.reports is PlayedReports.MARKS and is_after_gap:
            first = min(samples, FIRST_MARK_MS * self.rate_hz // 1000)
            commands += [self._play(item, first), *self._mark(item)]
            samples -= first
        if samples:
            commands.append(self._play(item, samples))
        if self.reports is PlayedReports.MARKS and self._received_ms(item) - item.marked_ms >= MARK_SPACING_MS:
            commands += self._mark(item)
        return commands

    def _play(self, item: _Item, samples: Samples) -> PlayAudio:
        item.samples += samples
        return PlayAudio(item.item_id, item.generation, samples)

    def _mark(self, item: _Item) -> list[Command]:
        self._mark_count += 1
        mark_id = MarkId(f"{item.generation}.{self._mark_count}")
        item.marked_ms = self._received_ms(item)
        item.marks.append((mark_id, item.marked_ms))
        return [SendMark(mark_id)]

    def _finish_live(self) -> list[Command]:
        streaming = [item for item in self._live if item.state is Playing.STREAMING]
        return [command for item in streaming for command in self._finish(item)]

    def _finish(self, item: _Item) -> list[Command]:
        item.state = PLAYOUT.after(item.state, Cue.AUDIO_ENDED)
        return self._close(item)

    def _close(self, item: _Item) -> list[Command]:
        commands: list[Command] = [FinishItem(item.item_id, item.generation)]
        if self.reports is PlayedReports.MARKS:
            commands += self._mark(item)
        self._settle(item)
        return commands

    def _settle(self, item: _Item) -> None:
        if item.state is Playing.COMPLETE and item.played_ms >= self._received_ms(item) - ROUNDING_MS:
            item.state = PLAYOUT.after(item.state, Cue.PLAYED_OUT)
            self._live.remove(item)
            self._played_out.append(item.item_id)

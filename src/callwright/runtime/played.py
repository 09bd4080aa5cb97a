"""What a line played of the audio that it was handed, and when: samples, where the core's ``playout`` has positions.

Each piece that was handed over waits here until the line tells that it was played. It is then *placed* on the line's
clock; pieces follow each other without a break unless the line had run dry between them.

```
handed     [ 600 ms of one item, marks behind 20, 220 and 420 ms ]
marks             |20            |220            (clear)
placed          [20|     200      |  elapsed  ]                   what was left is dropped: nobody heard it
```

A pulled line tells how much it took: that plays from now on. A mark tells that all before it has played up to now;
where the line was cleared, what played since the last mark is the time since then, never beyond the next mark that is
still out. All instants are those of the line's clock; places are bytes of its output format on that clock.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, TypeAlias

from callwright.ids import ItemId, MarkId, Ms

PULL_SLACK_MS: Final[Ms] = 20
"""Reports of a pulled line come so unevenly: what is apart by less is one run."""
MARK_SLACK_MS: Final[Ms] = 200
"""A mark may be so late on its way back, inside a run: a break in a word would be worse than that."""

Placed: TypeAlias = tuple[int, memoryview]
"""Audio, and the byte of the line's clock that it begins at."""


@dataclass(slots=True)
class _Piece:
    """Audio that waits."""

    key: tuple[ItemId, int]
    audio: memoryview
    begins_run: bool
    """Whether the line may have been silent before it."""


class PlayedAudio:
    """The agent's side of one line, from what was handed over to what was played when."""

    def __init__(self, bytes_per_ms: int) -> None:
        self._bytes_per_ms = bytes_per_ms
        self._waiting: deque[_Piece] = deque()
        self._handed = 0
        """Bytes that were handed over since the last clear."""
        self._done = 0
        """Of these, those that were played."""
        self._pulled: dict[tuple[ItemId, int], int] = {}
        """Bytes that a pulled line took, of each item."""
        self._marks: dict[MarkId, int] = {}
        """Marks that are out, oldest first, with the bytes before them."""
        self._reached: tuple[int, Ms] | None = None
        """The last mark that came back: the bytes before it, and when."""
        self._dry_ms: Ms = 0
        """When a line without lag has played all of it."""
        self._placed: deque[Placed] = deque()
        self._end = 0
        """Where the last of it ends."""

    @property
    def end_ms(self) -> Ms:
        """When the last that was placed has been heard."""
        return -(-self._end // self._bytes_per_ms)

    def hand_over(self, item_id: ItemId, generation: int, audio: bytes, now_ms: Ms) -> None:
        """The line was handed audio."""
        if not audio:
            return
        key = (item_id, generation)
        goes_on = self._waiting and self._waiting[-1].key == key and now_ms <= self._dry_ms
        self._waiting.append(_Piece(key, memoryview(audio), not goes_on))
        self._handed += len(audio)
        self._dry_ms = max(self._dry_ms, now_ms) + len(audio) // self._bytes_per_ms

    def mark(self, mark_id: MarkId) -> None:
        """The line was asked for a mark behind all that it was handed."""
        self._marks[mark_id] = self._handed

    def pulled(self, item_id: ItemId, generation: int, played_ms: Ms, now_ms: Ms) -> None:
        """A pulled line took ``played_ms`` of this item in all; what is new of it plays from ``now_ms`` on."""
        key = (item_id, generation)
        wanted = played_ms * self._bytes_per_ms - self._pulled.get(key, 0)
        if wanted <= 0 or all(piece.key != key for piece in self._waiting):
            return
        self._pulled[key] = self._pulled.get(key, 0) + wanted
        start = now_ms * self._bytes_per_ms
        while wanted > 0 and self._waiting:
            before = self._waiting[0].key != key  # the rest of an item, less than a millisecond: it was taken with it
            piece = self._next(len(self._waiting[0].audio) if before else wanted)
            self._place(piece.audio, start, PULL_SLACK_MS)
            wanted -= 0 if before else len(piece.audio)

    def returned(self, mark_id: MarkId, now_ms: Ms) -> None:
        """A mark came back, reached at ``now_ms``; one that was cleared, or came before, means nothing."""
        if mark_id not in self._marks:
            return
        target = self._marks[mark_id]
        while next(iter(self._marks)) != mark_id:
            del self._marks[next(iter(self._marks))]
        del self._marks[mark_id]
        pieces = []
        while self._done < target:
            pieces.append(self._next(target - self._done))
        last_run = max((index for index, piece in enumerate(pieces) if piece.begins_run), default=0)
        for piece in pieces[:last_run]:
            self._place(piece.audio, self._end)
        start = now_ms * self._bytes_per_ms - sum(len(piece.audio) for piece in pieces[last_run:])
        for piece in pieces[last_run:]:
            self._place(piece.audio, start, 0 if piece.begins_run else MARK_SLACK_MS)
            start += len(piece.audio)
        self._reached = (target, now_ms)

    def cleared(self, now_ms: Ms) -> None:
        """The line dropped what it had not played by ``now_ms``."""
        if self._reached is not None:
            position, at_ms = self._reached
            bound = next(iter(self._marks.values()), self._handed)
            self._play_on(min(position + (now_ms - at_ms) * self._bytes_per_ms, bound) - self._done)
        self._waiting.clear()
        self._marks.clear()
        self._pulled.clear()
        self._handed = self._done = 0
        self._reached = None
        self._dry_ms = now_ms

    def take(self, until_ms: Ms) -> list[Placed]:
        """What was played before ``until_ms`` and was not taken yet; nothing is placed before it any more.

        A run whose marks have not come back by then goes on without them.
        """
        until = until_ms * self._bytes_per_ms
        if self._reached is not None:
            self._play_on(until - self._end)
        taken: list[Placed] = []
        while self._placed and self._placed[0][0] < until:
            start, audio = self._placed.popleft()
            if start + len(audio) > until:
                self._placed.appendleft((until, audio[until - start :]))
                audio = audio[: until - start]
            taken.append((start, audio))
        self._end = max(self._end, until)
        return taken

    def _play_on(self, wanted: int) -> None:
        """Place so many bytes of the run that is playing, as far as there are any."""
        while wanted > 0 and self._waiting and not self._waiting[0].begins_run:
            piece = self._next(wanted)
            self._place(piece.audio, self._end)
            wanted -= len(piece.audio)

    def _next(self, wanted: int) -> _Piece:
        """The first piece, or so many bytes of it."""
        piece = self._waiting[0]
        if len(piece.audio) > wanted:
            first = _Piece(piece.key, piece.audio[:wanted], piece.begins_run)
            piece.audio, piece.begins_run = piece.audio[wanted:], False
            piece = first
        else:
            self._waiting.popleft()
        self._done += len(piece.audio)
        return piece

    def _place(self, audio: memoryview, start: int, slack_ms: Ms = 0) -> None:
        """Put audio where it began, or right behind what was before it."""
        if start - self._end < slack_ms * self._bytes_per_ms:
            start = self._end
        start = max(start, self._end)
        self._placed.append((start, audio))
        self._end = start + len(audio)

"""A baseline's goodbye: from the tool call that ends the call to the instant at which it puts down the line.

```
server   end_call   chunk  chunk          chunk ...                 done
line     ~~~~~~~~~~~~~~~~~~~~~~|  stall  |~~~~~~~~~~~~~~~~~~~~~~~~~~~~~|
                     ^ a while  ^ empty                                ^ heard
```
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from callwright.audio.formats import AudioFormat
from callwright.core.ports import Line, PlayedReports
from callwright.ids import ItemId, MarkId, Ms, Samples
from callwright.sim.baselines.habits import HangUp
from callwright.wire import server

A_WHILE_MS: Final[Ms] = 1_000
"""How long a client waits that does not look."""
CAP_MS: Final[Ms] = 8_000
"""How long a client that looks waits at most."""
_HELD_BACK_MS: Final[Ms] = 5  # what a conversion keeps of a piece until the next one comes

_AWAITED: Mapping[HangUp, tuple[type, ...]] = {
    HangUp.AFTER_A_WHILE: (),
    HangUp.WHEN_EMPTY: (server.ResponseOutputAudioDelta,),
    HangUp.WHEN_HEARD: (server.ResponseOutputAudioDone, server.ResponseDone),
}
"""What must have come of its response before an empty queue is taken for the end of the goodbye."""


class Queue:
    """What the line was handed and has not played, as its own reports tell."""

    def __init__(self, line: Line, model_format: AudioFormat) -> None:
        self._line = line
        self._rate_hz = model_format.rate_hz
        self._item_id: ItemId | None = None
        self._samples: Samples = 0
        self._played_ms: Ms = 0
        self._mark: MarkId | None = None
        self._marks = 0

    def handed(self, item_id: ItemId, samples: Samples) -> None:
        """The line was handed so much more."""
        if item_id != self._item_id:
            self._item_id, self._samples, self._played_ms = item_id, 0, 0
        self._samples += samples
        if self._line.reports is PlayedReports.MARKS:
            self._marks += 1
            self._mark = MarkId(f"chunk-{self._marks}")
            self._line.mark(self._mark)

    def played(self, item_id: ItemId, played_ms: Ms) -> None:
        """The line has taken so much of an item."""
        if item_id == self._item_id:
            self._played_ms = played_ms

    def returned(self, mark_id: MarkId) -> None:
        """The line reached a mark."""
        if mark_id == self._mark:
            self._mark = None

    @property
    def is_empty(self) -> bool:
        """Whether all of it was played."""
        if self._line.reports is PlayedReports.MARKS:
            return self._mark is None
        return self._played_ms + _HELD_BACK_MS >= self._samples * 1000 // self._rate_hz


class Goodbye:
    """What a client knows of its goodbye: of each response what has come, and of one that ends the call, its end."""

    def __init__(self, hang_up: HangUp, queue: Queue) -> None:
        self._hang_up = hang_up
        self._queue = queue
        self._seen: tuple[str, list[type]] = ("", [])
        """The response of which something came last, and what came of it."""
        self._response_id = ""
        """The response that ends the call."""
        self._over: asyncio.Future[bool] | None = None

    def begin(self, response_id: str) -> asyncio.Future[bool]:
        """A response calls for the end; the result is true when the line is to be put down, false if it is not."""
        loop = asyncio.get_running_loop()
        self._response_id = response_id
        self._over = over = loop.create_future()
        wait_ms = A_WHILE_MS if self._hang_up is HangUp.AFTER_A_WHILE else CAP_MS
        timer = loop.call_later(wait_ms / 1000, _settle, over, True)
        over.add_done_callback(lambda _over: timer.cancel())
        self.look()
        return over

    def message(self, event: object) -> None:
        """Take one event of the server."""
        match event:
            case server.ResponseDone():
                self._came(event.response.id, server.ResponseDone)
                if event.response.status == "cancelled" and event.response.id == self._response_id:
                    self._cut()
            case server.ResponseOutputAudioDelta() | server.ResponseOutputAudioDone():
                self._came(event.response_id, type(event))
            case server.InputAudioBufferSpeechStarted():
                self._cut()
            case _:
                return
        self.look()

    def look(self) -> None:
        """Put down the line if the goodbye has been played, as far as this client can tell."""
        if self._over is None or self._hang_up is HangUp.AFTER_A_WHILE or self._seen[0] != self._response_id:
            return
        if self._queue.is_empty and all(kind in self._seen[1] for kind in _AWAITED[self._hang_up]):
            _settle(self._over, True)

    def _came(self, response_id: str, kind: type) -> None:
        if response_id != self._seen[0]:
            self._seen = (response_id, [])
        self._seen[1].append(kind)

    def _cut(self) -> None:
        """The caller speaks over it: only a client that waits until it is heard minds."""
        if self._over is not None and self._hang_up is HangUp.WHEN_HEARD:
            _settle(self._over, False)


def _settle(over: asyncio.Future[bool], is_end: bool) -> None:
    if not over.done():
        over.set_result(is_end)

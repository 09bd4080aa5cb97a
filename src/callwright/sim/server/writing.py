"""Replies that are written, for a client that has a voice of its own; what it reports of them is believed.

```
server    text text text│done
client        started ─── delta ─── delta ─── stopped: what was heard
          silence │ the reply is audible          │ silence
```

The server cannot know when such a reply is heard, nor how far. While the reports say that it is audible, somebody who
speaks is judged as over a reply; of one that was cut, history keeps what the last report says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from callwright.ids import ItemId, Ms
from callwright.sim.record import Truncation
from callwright.sim.server.history import History, Refusal, Spoken
from callwright.wire.client import PolyOutputAudioDelta, PolyOutputAudioStarted, PolyOutputAudioStopped

if TYPE_CHECKING:
    from callwright.sim.server.telling import Modality

REPLIES_MAX = 64
"""How many of the latest written replies can be reported on."""


class Written:
    """The written replies of one session."""

    def __init__(self, history: History, report_lasts_ms: Ms) -> None:
        """A reply counts as audible for ``report_lasts_ms`` behind a report that says so."""
        self.modality: Modality = "audio"
        """What the session's replies are."""
        self.truncations: list[Truncation] = []
        """Every report of a reply that was cut."""
        self.told_ms: Ms = 0
        """When a reply was last reported to be audible."""
        self._history = history
        self._report_lasts_ms = report_lasts_ms
        self._replies: dict[str, Spoken] = {}
        self._audible: str | None = None
        self._when_written: list[Callable[[Ms], None]] = []

    def begun(self, response_id: str, reply: Spoken) -> None:
        """A written reply begins."""
        self._replies[response_id] = reply
        if len(self._replies) > REPLIES_MAX:
            del self._replies[next(iter(self._replies))]

    def when_written(self, action: Callable[[Ms], None]) -> None:
        """Do something when the reply that is being written is, before its response is done."""
        self._when_written.append(action)

    def take_waiting(self) -> list[Callable[[Ms], None]]:
        """What is to be done now that it is."""
        waiting, self._when_written = self._when_written, []
        return waiting

    def is_audible(self, now_ms: Ms) -> bool:
        """Whether the client says that a reply is heard."""
        return self._audible is not None and now_ms < self.told_ms + self._report_lasts_ms

    def report(
        self, event: PolyOutputAudioStarted | PolyOutputAudioDelta | PolyOutputAudioStopped, now_ms: Ms
    ) -> Refusal | None:
        """The client tells what becomes of a reply."""
        reply = self._replies.get(event.response_id)
        if reply is None:
            return Refusal("invalid_value", f"No written reply in response '{event.response_id}'.", "response_id")
        self._audible, self.told_ms = event.response_id, now_ms
        if isinstance(event, PolyOutputAudioStopped):
            self._audible = None
            self._stopped(reply.item_id, event, now_ms)
        return None

    def _stopped(self, item_id: ItemId, event: PolyOutputAudioStopped, now_ms: Ms) -> None:
        if self._history.heard(item_id, event.spoken_text):
            self.truncations.append(Truncation(item_id, event.audio_ms, now_ms, is_refused=False))

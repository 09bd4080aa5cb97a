"""The opening of a call: the line first, the model's session second, and no frame before it is understood.

Owns how far the session has come. The frames that the caller speaks meanwhile are held by the shell, which sends
them in order when ``OpenUplink`` says so.

```
line    open ▓▓▓▓▓▓▓ the caller speaks, frames are held ▓▓▓▓▓▓▓│ sent in one burst, then as they come
model        connecting ── connected ── configuration sent ────┘ taken
```

A session that ends before the call does is followed by another one, opened in the same way (``handover``).

A refused configuration applies nothing, so the call ends with an error rather than with an agent that has neither
instructions nor tools. So does one that is never answered: a caller who talks to nobody is not kept for long.
"""

from __future__ import annotations

from enum import Enum, auto

from callwright.core.table import Table
from callwright.ids import Ms

SESSION_PATIENCE_MS: Ms = 20_000
"""How long after the line opened, or a session was lost, the next may take to hear the caller; 10 s have been seen."""


class Stage(Enum):
    """How far the call has come."""

    CONNECTING = auto()
    """The line is open or opening; the model is not there yet."""
    CONFIGURING = auto()
    """The configuration was sent and not answered."""
    READY = auto()
    """The model hears the caller."""
    PARTING = auto()
    """The model is gone; the line still plays the goodbye."""
    OVER = auto()
    """The call has ended, or could not begin."""


class Cue(Enum):
    """What happens to the call as a whole."""

    CONNECTED = auto()
    ACCEPTED = auto()
    REFUSED = auto()
    MODEL_LOST = auto()
    """The model's connection ended in a goodbye, most of which may be on its way to the ear."""
    RENEWED = auto()
    """The session ended, and another one is opened."""
    ENDED = auto()


PICKUP: Table[Stage, Cue] = Table(
    "pickup",
    Stage.CONNECTING,
    {
        (Stage.CONNECTING, Cue.CONNECTED): Stage.CONFIGURING,
        (Stage.CONNECTING, Cue.RENEWED): Stage.CONNECTING,
        (Stage.CONNECTING, Cue.ENDED): Stage.OVER,
        (Stage.CONFIGURING, Cue.ACCEPTED): Stage.READY,
        (Stage.CONFIGURING, Cue.REFUSED): Stage.OVER,
        (Stage.CONFIGURING, Cue.RENEWED): Stage.CONNECTING,
        (Stage.CONFIGURING, Cue.ENDED): Stage.OVER,
        (Stage.READY, Cue.ACCEPTED): Stage.READY,
        (Stage.READY, Cue.RENEWED): Stage.CONNECTING,
        (Stage.READY, Cue.MODEL_LOST): Stage.PARTING,
        (Stage.READY, Cue.ENDED): Stage.OVER,
        (Stage.PARTING, Cue.ENDED): Stage.OVER,
    },
)


class Pickup:
    """The stage of one call."""

    def __init__(self) -> None:
        self.stage = PICKUP.start
        self.origin_ms: Ms = 0
        """The session's audio clock counts from this instant: the line's opening for the first one."""
        self._deadline_ms: Ms | None = None

    def line_opened(self, now_ms: Ms) -> None:
        """The line carries audio: the session has so long to follow."""
        self.origin_ms = now_ms
        self._deadline_ms = now_ms + SESSION_PATIENCE_MS

    def renewed(self, now_ms: Ms) -> None:
        """Another session is opened: it has so long to follow, however many are tried. Raises IllegalTransition."""
        was = self.stage
        self.move(Cue.RENEWED)
        if was is Stage.READY:
            self._deadline_ms = now_ms + SESSION_PATIENCE_MS

    def next_deadline_ms(self) -> Ms | None:
        """When a session that does not hear the caller yet counts as not coming."""
        return self._deadline_ms if self.stage in (Stage.CONNECTING, Stage.CONFIGURING) else None

    def is_late(self, now_ms: Ms) -> bool:
        """Whether that instant has come."""
        deadline_ms = self.next_deadline_ms()
        return deadline_ms is not None and now_ms >= deadline_ms

    def move(self, cue: Cue) -> Stage:
        """Go on. Raises IllegalTransition for what the stage does not allow."""
        self.stage = PICKUP.after(self.stage, cue)
        return self.stage

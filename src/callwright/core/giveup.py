"""Giving up on hold: when waiting has lasted as long as it may, the model is asked to say so and to end the call.

Owns when that is due. Does not own how long one waits (``hold``), the asking (``asking``) or the goodbye (``goodbye``).

```
hold     waits ────────── max_hold_ms ─────────│                        │ PARTING_MS
model                                          │ told and asked, once   │ has not ended the call: hung up
stage    PATIENT ──────────────────────────────│ ASKED ─────────────────│ DONE
                                                  └─ somebody is there: PATIENT
```
"""

from __future__ import annotations

from enum import Enum, auto

from callwright.core.table import Table
from callwright.ids import Ms

PARTING_MS: Ms = 15_000
"""How long the model has to end the call by itself."""


class Stage(Enum):
    """How far the patience has come."""

    PATIENT = auto()
    ASKED = auto()
    """The model was asked to end the call."""
    DONE = auto()
    """It has not."""


class Cue(Enum):
    """What happens to it."""

    TOO_LONG = auto()
    MET = auto()
    """Somebody is there after all."""
    IGNORED = auto()


GIVE_UP: Table[Stage, Cue] = Table(
    "giveup",
    Stage.PATIENT,
    {
        (Stage.PATIENT, Cue.TOO_LONG): Stage.ASKED,
        (Stage.ASKED, Cue.MET): Stage.PATIENT,
        (Stage.ASKED, Cue.IGNORED): Stage.DONE,
    },
)


class GiveUp:
    """The patience of one call."""

    def __init__(self, max_hold_ms: Ms | None) -> None:
        """None is a patience without end."""
        self.stage = GIVE_UP.start
        self._max_hold_ms = max_hold_ms
        self._due_ms: Ms | None = None

    @property
    def max_hold_s(self) -> int:
        """How long one waits at most, in whole seconds; 0 where there is no end to it."""
        return (self._max_hold_ms or 0) // 1000

    @property
    def is_reached(self) -> bool:
        """Whether the model was told to give up, and nobody has come since."""
        return self.stage is not Stage.PATIENT

    def look(self, waits_since_ms: Ms | None, now_ms: Ms, *, is_leaving: bool) -> Stage | None:
        """Go on by what is known now; the stage that has just begun, if one has.

        ``waits_since_ms`` is since when somebody is waited for, ``is_leaving`` that a goodbye is being said; one that
        is taken back leaves the model as much time again.
        """
        if self._max_hold_ms is None or self.stage is Stage.DONE:
            return None
        if is_leaving:
            self._due_ms = None
            return None
        if self.stage is Stage.ASKED and waits_since_ms is None:
            return self._move(Cue.MET, None)
        if self.stage is Stage.PATIENT:
            self._due_ms = None if waits_since_ms is None else waits_since_ms + self._max_hold_ms
        elif self._due_ms is None:
            self._due_ms = now_ms + PARTING_MS
        if self._due_ms is None or now_ms < self._due_ms:
            return None
        is_patient = self.stage is Stage.PATIENT
        return self._move(*((Cue.TOO_LONG, now_ms + PARTING_MS) if is_patient else (Cue.IGNORED, None)))

    def next_deadline_ms(self) -> Ms | None:
        """When a look is due, whatever else happens."""
        return self._due_ms

    def _move(self, cue: Cue, due_ms: Ms | None) -> Stage:
        self.stage, self._due_ms = GIVE_UP.after(self.stage, cue), due_ms
        return self.stage

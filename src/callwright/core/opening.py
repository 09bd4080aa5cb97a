"""The opening of a call that the agent makes: it listens first, and begins by itself only where nobody else does.

Owns whether anybody has begun, and when the agent is to. Does not own the asking (``asking``), nor what is heard: the
shell tells whether the line is loud.

```
line     ringing ▓▓▓▓    ▓▓▓▓  answered, and quiet ──────── opens_after_ms │ asked
stage    UNHEARD │ LISTENING ──────────────────────────────────────────────│ DONE
callee                          └─ or "Pharmacy, Sam speaking.": the server answers, DONE
```

Quiet is counted from the last sound of the line, so ringing is no reason to speak where its pauses are shorter, and
neither is music. A steady noise is quiet.
"""

from __future__ import annotations

from enum import Enum, auto

from callwright.core.commands import UnwatchCaller, WatchCaller
from callwright.core.outgoing import Outgoing
from callwright.core.table import Table
from callwright.ids import Ms


class Stage(Enum):
    """How far the opening has come."""

    UNHEARD = auto()
    """The model does not hear the line yet."""
    LISTENING = auto()
    DONE = auto()
    """Somebody has begun, or the agent is not to begin by itself."""


class Cue(Enum):
    """What happens to it."""

    HEARD = auto()
    BEGUN = auto()
    """Somebody speaks, if it is the agent."""
    QUIET = auto()
    """Nobody has for so long."""


OPENING: Table[Stage, Cue] = Table(
    "opening",
    Stage.UNHEARD,
    {
        (Stage.UNHEARD, Cue.HEARD): Stage.LISTENING,
        (Stage.LISTENING, Cue.BEGUN): Stage.DONE,
        (Stage.LISTENING, Cue.QUIET): Stage.DONE,
    },
)


class Opening:
    """The opening of one call."""

    def __init__(self, out: Outgoing, opens_after_ms: Ms | None) -> None:
        """The commands are the session's. ``opens_after_ms`` is None for an agent that never begins by itself."""
        self.stage = Stage.DONE if opens_after_ms is None else OPENING.start
        self._out = out
        self._opens_after_ms = opens_after_ms or 0
        self._is_loud = False
        self._due_ms: Ms | None = None

    @property
    def is_listening(self) -> bool:
        """Whether nobody has begun, and the agent will where nobody does."""
        return self.stage is not Stage.DONE

    def caller_loud(self, *, is_loud: bool) -> None:
        """The line rose above its noise, or fell back; ``look`` next."""
        self._is_loud = is_loud

    def look(self, now_ms: Ms, *, has_begun: bool) -> bool:
        """Whether the agent is to begin now. The model hears the line; ``has_begun`` says that somebody spoke."""
        if self.stage is Stage.UNHEARD:
            self.stage = OPENING.after(self.stage, Cue.HEARD)
            self._out.add(WatchCaller())
        if self.stage is Stage.DONE:
            return False
        if has_begun:
            self._close(Cue.BEGUN)
            return False
        if self._is_loud:
            self._due_ms = None
            return False
        if self._due_ms is None:
            self._due_ms = now_ms + self._opens_after_ms
        if now_ms < self._due_ms:
            return False
        self._close(Cue.QUIET)
        return True

    def next_deadline_ms(self) -> Ms | None:
        """When it has been quiet for long enough."""
        return self._due_ms

    def _close(self, cue: Cue) -> None:
        self.stage, self._due_ms = OPENING.after(self.stage, cue), None
        self._out.add(UnwatchCaller())

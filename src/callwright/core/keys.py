"""Keys of the telephone on their way: alone, with quiet on either side, whatever else is to be said.

Owns which keys are to be pressed, in what order, and when. Does not own how (the shell knows the line's own way, and
tones), nor what is being played (``playout``).

```
tool     asks for "2" ................................................. answered
ours     ▓▓ a reply ▓▓│ played                                             │ held audio ▓▓▓▓▓
line                   │ QUIET_MS │ 2 │ pressed                  │ QUIET_MS │
stage    WAITING ──────│ BEFORE ──│ PRESSING ───────────────────│ AFTER ───│ IDLE
                        └──────────── reply audio is held ─────────────────┘
```

Keys that are asked for meanwhile follow in their order, with one quiet between. A cut stops replies, never keys: a menu
that speaks again is no reason to leave a choice half made. Every wait has a bound: a line that shows no progress, or
does not tell that it has pressed them, keeps nothing waiting for long.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto

from callwright.core.commands import AnswerKeys, Command, HoldReply, KeysFate, NoteAnomaly, PressKeys, ReleaseReply
from callwright.core.table import Table
from callwright.ids import Ms

QUIET_MS: Ms = 200
"""How long nothing of ours is on the line before keys and after them."""
KEY_MS: Ms = 200
"""How long one key takes: 100 ms of tone and as much of gap."""
STUCK_MS: Ms = 5_000
"""How long after its last progress a line that still has something to play is waited for."""
PATIENCE_MS: Ms = 5_000
"""How much longer than the keys take a line may need to tell that they are out: some have to ask their carrier."""


class Stage(Enum):
    """How far the keys have come."""

    IDLE = auto()
    """None are asked for."""
    WAITING = auto()
    """The line still plays something of ours."""
    BEFORE = auto()
    """It is quiet; the keys are next."""
    PRESSING = auto()
    AFTER = auto()
    """They are out; it is kept quiet."""
    OVER = auto()
    """The line has ended."""


class Cue(Enum):
    """What happens to them."""

    REQUESTED = auto()
    QUIET = auto()
    DUE = auto()
    PRESSED = auto()
    NEXT = auto()
    """More keys were asked for meanwhile."""
    THROUGH = auto()
    ENDED = auto()


KEYS: Table[Stage, Cue] = Table(
    "keys",
    Stage.IDLE,
    {
        (Stage.IDLE, Cue.REQUESTED): Stage.WAITING,
        (Stage.WAITING, Cue.QUIET): Stage.BEFORE,
        (Stage.BEFORE, Cue.DUE): Stage.PRESSING,
        (Stage.PRESSING, Cue.PRESSED): Stage.AFTER,
        (Stage.AFTER, Cue.NEXT): Stage.PRESSING,
        (Stage.AFTER, Cue.THROUGH): Stage.IDLE,
        **{(stage, Cue.ENDED): Stage.OVER for stage in Stage if stage is not Stage.OVER},
    },
)


class Keys:
    """The keys of one call."""

    def __init__(self) -> None:
        self.stage = KEYS.start
        self.pressed = ""
        """All that the line was given to press, but for what it failed to."""
        self._asked: deque[str] = deque()
        """What is to be pressed, in order; the first of it is on its way."""
        self._due_ms: Ms = 0
        """When the present stage ends by itself."""
        self._played_ms: Ms = 0
        """What the line had confirmed as played when it was looked at last."""

    @property
    def is_out(self) -> bool:
        """Whether keys are on their way."""
        return self.stage not in (Stage.IDLE, Stage.OVER)

    @property
    def pressed_ms(self) -> Ms:
        """How long all that was pressed took: any change of it is progress of the line."""
        return len(self.pressed) * KEY_MS

    def requested(self, keys: str, now_ms: Ms) -> None:
        """A tool asks for keys; ``look`` next. Raises IllegalTransition when the line has ended."""
        if self.stage in (Stage.IDLE, Stage.OVER):
            self._move(Cue.REQUESTED, now_ms + STUCK_MS)
        self._asked.append(keys)

    def told(self, fate: KeysFate, now_ms: Ms) -> list[Command]:
        """The line told that the keys are out, or that it could not press them; late news is no news."""
        return self._out(fate, now_ms) if self.stage is Stage.PRESSING else []

    def look(self, now_ms: Ms, *, is_busy: bool, played_ms: Ms, at_ear_ms: Ms) -> list[Command]:
        """Go as far as is possible now.

        ``is_busy`` says that the line has something of ours to play, ``played_ms`` how much it has confirmed as played
        of all; the last of that is at the ear at ``at_ear_ms``.
        """
        commands: list[Command] = []
        if self.stage is Stage.WAITING:
            commands += self._wait(now_ms, is_busy=is_busy, played_ms=played_ms, at_ear_ms=at_ear_ms)
        if not self.is_out or now_ms < self._due_ms:
            return commands
        match self.stage:
            case Stage.BEFORE:
                commands += self._press(Cue.DUE, now_ms)
            case Stage.PRESSING:
                commands.append(NoteAnomaly("the line did not tell that keys were pressed: they count as pressed"))
                commands += self._out(KeysFate.UNCONFIRMED, now_ms)
            case Stage.AFTER if self._asked:
                commands += self._press(Cue.NEXT, now_ms)
            case Stage.AFTER:
                self._move(Cue.THROUGH, 0)
                commands.append(ReleaseReply())
        return commands

    def next_deadline_ms(self) -> Ms | None:
        """When a look is due, whatever else happens."""
        return self._due_ms if self.is_out else None

    def call_is_over(self) -> list[Command]:
        """The line has ended, and with it what is still to be pressed."""
        if self.stage is Stage.OVER:
            return []
        self._move(Cue.ENDED, 0)
        answers: list[Command] = [AnswerKeys(KeysFate.ENDED) for _ in self._asked]
        self._asked.clear()
        return answers

    def _wait(self, now_ms: Ms, *, is_busy: bool, played_ms: Ms, at_ear_ms: Ms) -> list[Command]:
        if played_ms != self._played_ms:
            self._played_ms, self._due_ms = played_ms, now_ms + STUCK_MS
        if is_busy and now_ms < self._due_ms:
            return []
        quiet_from_ms = max(now_ms, at_ear_ms) if is_busy else at_ear_ms
        self._move(Cue.QUIET, quiet_from_ms + QUIET_MS)
        stuck = NoteAnomaly("the line does not go on with what it has to play: keys are pressed all the same")
        return [stuck, HoldReply()] if is_busy else [HoldReply()]

    def _press(self, cue: Cue, now_ms: Ms) -> list[Command]:
        keys = self._asked[0]
        self._move(cue, now_ms + len(keys) * KEY_MS + PATIENCE_MS)
        return [PressKeys(keys)]

    def _out(self, fate: KeysFate, now_ms: Ms) -> list[Command]:
        self._move(Cue.PRESSED, now_ms + QUIET_MS)
        keys = self._asked.popleft()
        if fate is not KeysFate.FAILED:
            self.pressed += keys
        return [AnswerKeys(fate)]

    def _move(self, cue: Cue, due_ms: Ms) -> None:
        self.stage, self._due_ms = KEYS.after(self.stage, cue), due_ms

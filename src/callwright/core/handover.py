"""From one session of the model's to the next: a call outlives both its session's time and its connection.

Owns when a session is let go, how often and how soon another one is opened, and in which form that is told what was
said. Does not own what is told (``history``) or what the rest of the call lets go (``renewal``).

```
planned  session ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│ near its end: a quiet moment is waited for │ let go, the next ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
stage    STEADY                       │ DUE                                       │ OPENING │ PROVING    │ STEADY
lost     session ▓▓▓▓▓▓▓▓▓ the connection breaks │ pause, try │ pause, try │ the next ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
stage    STEADY                                  │ OPENING                 │ PROVING              │ STEADY
```

A session that is lost while it proves itself counts with the tries before it, and its history may be why: the next one
gets a summary. ``TRIES_MAX`` tries in a row bring a session that lasts, or the call ends; what no other session would
better, a key that is refused or a quota that is used up, ends it at once.
"""

from __future__ import annotations

from enum import Enum, auto

from callwright.core.table import Table
from callwright.ids import Ms

PAUSES_MS: tuple[Ms, ...] = (0, 500, 2_000)
"""How long is waited before each try in a row."""
TRIES_MAX = len(PAUSES_MS)
PROOF_MS: Ms = 10_000
"""How long a session that was told the history has to last before it counts as sound."""
MARGIN_MS: Ms = 300_000
"""How long before a session's end a quiet moment is waited for; of a short session, the last quarter at most."""
LAST_MS: Ms = 5_000
"""So long before its end a session is let go in any case."""

HOPELESS_CODES = (
    *("insufficient_quota", "billing_hard_limit_reached", "account_deactivated", "invalid_api_key"),
    *("invalid_organization", "model_not_found", "permission_denied"),
)
"""Errors of the server's that another session would meet, too."""
HOPELESS_CLOSES = (1000, 1008)
"""Close codes after which no other session is opened: the server is through with the call, or forbids it."""
BLAMING_CLOSES = (1002, 1003, 1007, 1009)
"""Close codes that blame what the server was sent."""


class Stage(Enum):
    """How the call stands with its model's sessions."""

    OPENING = auto()
    """A session is being opened, the first or another one."""
    STEADY = auto()
    """The session stands."""
    DUE = auto()
    """Its time is nearly over."""
    PROVING = auto()
    """It was told the history; whether it takes that is not known yet."""
    GIVEN_UP = auto()
    """There is no session, and no other one is opened."""


class Cue(Enum):
    """What happens to a session."""

    READY = auto()
    """It hears the caller, and there was no history to tell."""
    RESTORED = auto()
    """It hears the caller, and was told the history."""
    PROVEN = auto()
    NEAR = auto()
    """Its end is near."""
    LET_GO = auto()
    """It is a quiet moment, or the last one."""
    LOST = auto()
    HOPELESS = auto()


HANDOVER: Table[Stage, Cue] = Table(
    "handover",
    Stage.OPENING,
    {
        (Stage.OPENING, Cue.READY): Stage.STEADY,
        (Stage.OPENING, Cue.RESTORED): Stage.PROVING,
        (Stage.OPENING, Cue.LOST): Stage.OPENING,
        (Stage.OPENING, Cue.HOPELESS): Stage.GIVEN_UP,
        (Stage.STEADY, Cue.NEAR): Stage.DUE,
        (Stage.STEADY, Cue.LOST): Stage.OPENING,
        (Stage.STEADY, Cue.HOPELESS): Stage.GIVEN_UP,
        (Stage.DUE, Cue.LET_GO): Stage.OPENING,
        (Stage.DUE, Cue.LOST): Stage.OPENING,
        (Stage.DUE, Cue.HOPELESS): Stage.GIVEN_UP,
        (Stage.PROVING, Cue.PROVEN): Stage.STEADY,
        (Stage.PROVING, Cue.LOST): Stage.OPENING,
        (Stage.PROVING, Cue.HOPELESS): Stage.GIVEN_UP,
    },
)


class Form(Enum):
    """In which form a new session is told what was said."""

    REPLAY = auto()
    """Item by item."""
    SUMMARY = auto()
    """In a few words among its instructions: the server refused an item, or closed on them."""


class Handover:
    """The sessions of one call."""

    def __init__(self, longest_ms: Ms | None) -> None:
        """``longest_ms`` is how long a session lasts from its opening; None where there is no known limit."""
        self.stage = HANDOVER.start
        self.form = Form.REPLAY
        self.sessions = 0
        """How many have heard the caller."""
        self._longest_ms = longest_ms
        self._tries = 0
        """How many sessions were opened since one was sound."""
        self._opened_ms: Ms = 0
        self._ready_ms: Ms = 0
        self._hopeless = ""
        """Why no other session would do better; empty where that is not known."""

    @property
    def is_proving(self) -> bool:
        """Whether the session was told the history a moment ago."""
        return self.stage is Stage.PROVING

    def opens(self, now_ms: Ms) -> Ms:
        """Another session is opened; how long is waited before."""
        pause_ms = PAUSES_MS[self._tries]
        self._tries += 1
        self._opened_ms = now_ms + pause_ms
        return pause_ms

    def ready(self, now_ms: Ms) -> None:
        """The session hears the caller; any but the first was told what was said before."""
        self.sessions += 1
        self._ready_ms = now_ms
        self._move(Cue.READY if self.sessions == 1 else Cue.RESTORED)
        if self.stage is Stage.STEADY:
            self._tries = 0

    def refused(self, code: str) -> None:
        """The server answered with this error, whatever it was about."""
        if code in HOPELESS_CODES:
            self._hopeless = code

    def item_refused(self) -> None:
        """The server does not take an item of the history."""
        self.form = Form.SUMMARY

    def closed(self, code: int) -> str | None:
        """The connection ended with this close code. Returns as ``lost`` does."""
        if self.stage is Stage.PROVING and (code in BLAMING_CLOSES or self._tries == TRIES_MAX - 1):
            self.form = Form.SUMMARY
        return self.lost(is_final=code in HOPELESS_CLOSES)

    def lost(self, *, is_final: bool) -> str | None:
        """There is no session any more, or none came about; why no other one is opened, None where one is."""
        is_tried = self._tries >= TRIES_MAX
        if not (is_final or self._hopeless or is_tried):
            self._move(Cue.LOST)
            return None
        self._move(Cue.HOPELESS)
        return self._hopeless or (f"{TRIES_MAX} tries brought no session that lasts" if is_tried else "")

    def look(self, now_ms: Ms, *, is_quiet: bool) -> bool:
        """Whether the session is to be let go now; ``is_quiet`` says that nobody speaks and nothing is under way."""
        if self.stage is Stage.PROVING and now_ms >= self._ready_ms + PROOF_MS:
            self._move(Cue.PROVEN)
            self._tries = 0
        if self.stage is Stage.STEADY and self._longest_ms is not None and now_ms >= self._near_ms(self._longest_ms):
            self._move(Cue.NEAR)
        if self.stage is not Stage.DUE or not (is_quiet or now_ms >= self._last_ms()):
            return False
        self._move(Cue.LET_GO)
        return True

    def next_deadline_ms(self) -> Ms | None:
        """When the session counts as sound, when its end is near, or when it is let go in any case."""
        match self.stage:
            case Stage.PROVING:
                return self._ready_ms + PROOF_MS
            case Stage.STEADY if self._longest_ms is not None:
                return self._near_ms(self._longest_ms)
            case Stage.DUE:
                return self._last_ms()
        return None

    def _near_ms(self, longest_ms: Ms) -> Ms:
        return self._opened_ms + longest_ms - min(MARGIN_MS, longest_ms // 4)

    def _last_ms(self) -> Ms:
        return self._opened_ms + (self._longest_ms or 0) - LAST_MS

    def _move(self, cue: Cue) -> None:
        self.stage = HANDOVER.after(self.stage, cue)

"""Hanging up as a transaction: asked for, said, heard to its end, done; or taken back at any point before that.

Owns whether the end of the call is pending and when it is due. The farewell is all audio of the response that holds
the end call. Does not own what was played (``playout``), the end call's output (``toolcalls``) or the hang-up itself.

```
model    end call ▒▒▒▒▒▒ farewell ▒▒▒▒▒▒│ response ended
line               ▓▓▓▓▓▓ farewell ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│ played
stage    SPEAKING ───────────────────────│ PLAYING │ HELD while work runs │ LISTENING while the caller is loud │ DONE
caller                    speaks ─> withdrawn: the call is still open, at any stage before DONE
the last farewell         speaks ─> DOUBTED │ cancelled: withdrawn │ completed: it stands
```

Neither a stall in the stream nor an empty queue is the end of a farewell. Nor is the end of a response that closed
before its audio came: then the farewell is over when no more has come for a while. Every wait has a bound. The one on
the line counts from its last progress, so that a long farewell plays whole and a dead line keeps nobody.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from callwright.core.events import ResponseStatus
from callwright.core.plan import Ending
from callwright.core.table import Table
from callwright.ids import Ms, ResponseId

STALL_CAP_MS: Ms = 8_000
"""How long after its last progress an unfinished farewell is waited for."""
FIRST_AUDIO_MS: Ms = 1_000
"""How long the first audio of a farewell may take after its response has ended."""
MORE_AUDIO_MS: Ms = 1_000
"""How long after its latest audio a farewell counts as complete, where the end of its response does not tell."""
LATE_REPORT_MS: Ms = 1_000
"""But no line is given up sooner than so long after it should have told more: marks may be far apart, or not come."""
AT_ONCE_MS: Ms = 100
"""A response that ends so soon after its end call may have ended before its audio came."""
SAID_BEFORE_MS: Ms = 1_000
"""Unless so much of it had been said before the call: then the call stood at the end of the farewell."""
DECISION_MS: Ms = 1_000
"""How long the server may take to tell whether what is loud at the end is a turn; it takes 0.8 s."""
QUIET_MS: Ms = 400
"""A caller who has been quiet for so long did not begin a turn."""
GAP_MS: Ms = 250
"""A caller who was loud so lately is still speaking: words have gaps."""
HANDOVER_MS: Ms = 8_000
"""How long after the farewell work that still runs is waited for."""
FAREWELLS_MAX = 3
"""The farewell that stands: a caller who has one thing more to say has been let twice, and was answered by goodbyes."""
CUT_MS: Ms = 500
"""A farewell of which more than this was still to be played was cut; what is left of one that was heard is less."""
LOOK_MS: Ms = 500
"""How often the line's position is looked at: a pulled line tells it only when asked."""


class Stage(Enum):
    """How far the goodbye has come."""

    NONE = auto()
    """The call is open."""
    SPEAKING = auto()
    """The end was asked for; the response that says goodbye is open."""
    DOUBTED = auto()
    """The same, of the last farewell, and somebody speaks: the end of the response tells whether he has cut it."""
    PLAYING = auto()
    """That response has ended; the line is not through with the farewell."""
    HELD = auto()
    """The farewell was played; work whose result the caller is to hear still runs."""
    LISTENING = auto()
    """The farewell was played; the caller was loud at its end, and the server decides whether that is a turn."""
    DONE = auto()
    """Hung up."""


class Cue(Enum):
    """What happens to the goodbye."""

    REQUESTED = auto()
    SPOKEN = auto()
    RESUMED = auto()
    """Another response opened."""
    AUDIO = auto()
    """Audio came after the farewell had been played."""
    WORKING = auto()
    LOUD = auto()
    TALKED_OVER = auto()
    """A turn began, and the farewell is the last one."""
    ENDED = auto()
    WITHDRAWN = auto()


_PENDING = (Stage.SPEAKING, Stage.DOUBTED, Stage.PLAYING, Stage.HELD, Stage.LISTENING)
_OPEN = (Stage.SPEAKING, Stage.DOUBTED)

GOODBYE: Table[Stage, Cue] = Table(
    "goodbye",
    Stage.NONE,
    {
        (Stage.NONE, Cue.REQUESTED): Stage.SPEAKING,
        (Stage.SPEAKING, Cue.SPOKEN): Stage.PLAYING,
        (Stage.SPEAKING, Cue.TALKED_OVER): Stage.DOUBTED,
        (Stage.DOUBTED, Cue.SPOKEN): Stage.PLAYING,
        (Stage.PLAYING, Cue.RESUMED): Stage.SPEAKING,
        (Stage.PLAYING, Cue.WORKING): Stage.HELD,
        (Stage.PLAYING, Cue.LOUD): Stage.LISTENING,
        (Stage.HELD, Cue.RESUMED): Stage.SPEAKING,
        (Stage.HELD, Cue.AUDIO): Stage.PLAYING,
        (Stage.HELD, Cue.LOUD): Stage.LISTENING,
        (Stage.LISTENING, Cue.RESUMED): Stage.SPEAKING,
        (Stage.LISTENING, Cue.AUDIO): Stage.PLAYING,
        (Stage.LISTENING, Cue.WORKING): Stage.HELD,
        **{(stage, Cue.WITHDRAWN): Stage.NONE for stage in _PENDING},
        **{(stage, Cue.ENDED): Stage.DONE for stage in _PENDING},
    },
)


@dataclass(frozen=True, slots=True)
class Scene:
    """What the rest of the call looks like at one instant."""

    is_open: bool
    """A response is open."""
    is_busy: bool
    """The line has audio to play."""
    played_ms: Ms
    """All that the line has confirmed as played."""
    at_ear_ms: Ms
    """When the last of what was played is at the ear."""
    report_due_ms: Ms
    """When the line should have told what it played next, if it plays; 0 where it tells as it goes."""
    outstanding: int
    """How much work whose result the caller is to hear is not through."""


class Fate(Enum):
    """How a goodbye ended that was not withdrawn."""

    PLAYED = auto()
    """The line has played all of the farewell."""
    UNCONFIRMED = auto()
    """Nothing has moved for ``STALL_CAP_MS``."""
    HANDED_OVER = auto()
    """It was played, and the work did not end in time."""


class Withdrawal(Enum):
    """Why the call goes on."""

    TALKED_OVER = auto()
    """The caller spoke before the goodbye was over; the server answers him by itself."""
    RESULT = auto()
    """Work ended, and the caller is to hear of it."""


CALL_IS_OVER = json.dumps({"call": "over"})
"""The output of an end call that was carried out."""

_WITHDRAWN: Mapping[Withdrawal, tuple[str, str]] = {
    Withdrawal.TALKED_OVER: ("the caller spoke during the goodbye", "answer the caller; when the caller is done"),
    Withdrawal.RESULT: ("a result came during the goodbye", "tell the caller the result; after that"),
}


def call_is_open(why: Withdrawal, tool: str) -> str:
    """The output of an end call that was withdrawn: it has to say so, or the model takes the call for hung up."""
    because, then = _WITHDRAWN[why]
    return json.dumps({"call": "still open", "because": because, "next": f"{then}, say goodbye and call {tool} again"})


class Goodbye:
    """The goodbye of one call."""

    def __init__(self) -> None:
        self.stage = GOODBYE.start
        self.response_id: ResponseId | None = None
        """The response that holds the latest end call."""
        self.ending = Ending("agent", "")
        """How the call will have ended."""
        self._requested_ms: Ms = 0
        self._since_ms: Ms = 0
        """When the present stage began."""
        self._said_ms: Ms = 0
        """How much of the farewell had come before it was known to be one."""
        self._audio_at_ms: Ms | None = None
        """When its latest audio came."""
        self._awaits_audio = False
        """Its response has ended, but more audio may come."""
        self._progress_at_ms: Ms = 0
        """When it was last seen to come on, but for what the line played of it."""
        self._scene: Scene | None = None
        """What was seen last, in this goodbye."""
        self._moved_at_ms: Ms | None = None
        """When the line last confirmed something of it."""
        self._look_ms: Ms = 0
        self._is_loud = False
        self._quiet_at_ms: Ms | None = None
        """When the caller was last loud; None if he never was, in this goodbye."""
        self._whole: list[ResponseId] = []
        """The farewells in a row that came whole, up to the latest response that ended."""

    @property
    def is_pending(self) -> bool:
        """Whether the end of the call was asked for, and has neither come nor been withdrawn."""
        return self.stage in _PENDING

    def stands(self, unplayed_ms: Ms) -> bool:
        """Whether a turn that begins now, with so much of the farewell unplayed, leaves it as it is.

        Only the last one stands. While its response is open, how that ends tells whether a caller cut it; behind that,
        how much of it nobody has heard.
        """
        before = [each for each in self._whole if each != self.response_id]
        is_cut = self.stage not in _OPEN and unplayed_ms > CUT_MS
        return len(before) >= FAREWELLS_MAX - 1 and not is_cut

    def request(self, response_id: ResponseId, ending: Ending, now_ms: Ms, *, said_ms: Ms) -> bool:
        """The model asked for the end in this response; true if it was not pending before.

        ``said_ms`` is how much audio of the same response has come already.
        """
        self.response_id = response_id
        self._requested_ms = self._progress_at_ms = now_ms
        self._said_ms, self._audio_at_ms = said_ms, now_ms if said_ms else None
        if self.is_pending:
            return False
        self._move(Cue.REQUESTED, now_ms)
        self.ending = ending
        self._look_ms = now_ms + LOOK_MS
        self._scene = self._moved_at_ms = self._quiet_at_ms = None
        self._awaits_audio = self._is_loud = False
        return True

    def audio(self, now_ms: Ms) -> None:
        """Audio came that will be played. No effect while nothing is pending."""
        if not self.is_pending:
            return
        self._audio_at_ms = self._progress_at_ms = now_ms
        if self.stage not in _OPEN:
            self._awaits_audio = True
        if GOODBYE.allows(self.stage, Cue.AUDIO):
            self._move(Cue.AUDIO, now_ms)

    def caller_loud(self, now_ms: Ms, *, is_loud: bool) -> None:
        """The caller's audio rose above the noise around him, or fell back into it."""
        self._is_loud, self._quiet_at_ms = is_loud, now_ms

    def explained(self, reason: str) -> None:
        """The end call's function told why the call ends, in words for the log."""
        if self.ending.by == "agent":
            self.ending = Ending("agent", reason)

    def stopped(self) -> None:
        """No more audio of the farewell will be played than the line has now."""
        self._awaits_audio, self._audio_at_ms, self._said_ms = False, self._requested_ms, SAID_BEFORE_MS

    def model_gone(self, *, is_all: bool) -> None:
        """Nothing more comes from the model: no decision on whether the caller speaks and, if ``is_all``, no audio."""
        if is_all:
            self.stopped()
        self._is_loud, self._quiet_at_ms = False, None

    def response_ended(self, response_id: ResponseId, status: ResponseStatus) -> bool:
        """A response closed; true if it was the last farewell and a caller has cut it: it is to be withdrawn."""
        is_farewell = response_id == self.response_id
        is_cut = is_farewell and status is ResponseStatus.CANCELLED and self.stage is Stage.DOUBTED
        self._whole = [*self._whole, response_id] if is_farewell and status is ResponseStatus.COMPLETED else []
        return is_cut

    def talked_over(self, now_ms: Ms) -> None:
        """A turn began in the last farewell; no effect once its response has ended, for then nobody has cut it."""
        if GOODBYE.allows(self.stage, Cue.TALKED_OVER):
            self._move(Cue.TALKED_OVER, now_ms)

    def withdraw(self, now_ms: Ms) -> None:
        """The call goes on. Raises IllegalTransition if no end is pending."""
        self._move(Cue.WITHDRAWN, now_ms)

    def call_is_over(self, now_ms: Ms) -> None:
        """The call has ended, by whomever: nothing is pending any more."""
        if self.is_pending:
            self._move(Cue.ENDED, now_ms)

    def look(self, scene: Scene, now_ms: Ms) -> Fate | None:
        """Go as far as the scene allows; the fate if that is the end of the call."""
        if not self.is_pending:
            return None
        if self._scene is not None and scene.played_ms != self._scene.played_ms:
            self._moved_at_ms = now_ms
        self._scene = scene
        if now_ms >= self._look_ms:
            self._look_ms = now_ms + LOOK_MS
        if scene.is_open and GOODBYE.allows(self.stage, Cue.RESUMED):
            self._move(Cue.RESUMED, now_ms)
            self._progress_at_ms = now_ms
        if not scene.is_open and self.stage in _OPEN:
            self._spoken(now_ms)
        fate = self._fate(scene, now_ms)
        if fate is not None:
            self._move(Cue.ENDED, now_ms)
        return fate

    def next_deadline_ms(self) -> Ms | None:
        """When a look is due, whatever else happens."""
        match self.stage:
            case Stage.NONE | Stage.DONE:
                return None
            case Stage.HELD:
                return self._since_ms + HANDOVER_MS
            case Stage.LISTENING:
                return self._decided_ms()
            case _:
                due_ms = self._due_ms()
                next_ms = min(self._look_ms, self._capped_ms())
                return next_ms if due_ms is None else min(next_ms, due_ms)

    def _spoken(self, now_ms: Ms) -> None:
        self._move(Cue.SPOKEN, now_ms)
        is_at_once = now_ms - self._requested_ms <= AT_ONCE_MS and self._said_ms < SAID_BEFORE_MS
        self._awaits_audio = self._audio_at_ms is None or is_at_once

    def _fate(self, scene: Scene, now_ms: Ms) -> Fate | None:
        if self.stage in (*_OPEN, Stage.PLAYING):
            if now_ms >= self._capped_ms():
                return Fate.UNCONFIRMED
            due_ms = self._due_ms()
            if due_ms is None or now_ms < due_ms:
                return None
            self._awaits_audio = False
        if scene.outstanding:
            if self.stage is not Stage.HELD:
                self._move(Cue.WORKING, now_ms)
            return Fate.HANDED_OVER if now_ms >= self._since_ms + HANDOVER_MS else None
        if self.stage is not Stage.LISTENING and self._is_speaking(now_ms):
            self._move(Cue.LOUD, now_ms)
        if self.stage is Stage.LISTENING and now_ms < self._decided_ms():
            return None
        return Fate.PLAYED

    def _capped_ms(self) -> Ms:
        """When an unfinished farewell is waited for no longer."""
        progress_at_ms = max(self._progress_at_ms, self._moved_at_ms or 0)
        report_due_ms = self._scene.report_due_ms if self._scene else 0
        return max(progress_at_ms + STALL_CAP_MS, report_due_ms + LATE_REPORT_MS)

    def _due_ms(self) -> Ms | None:
        """When the farewell is over, as far as is known: it was played, it is at the ear, and no more is expected."""
        if self.stage in _OPEN or self._scene is None or self._scene.is_busy:
            return None
        if not self._awaits_audio:
            return self._scene.at_ear_ms
        if self._audio_at_ms is None:
            return max(self._scene.at_ear_ms, self._since_ms + FIRST_AUDIO_MS)
        return max(self._scene.at_ear_ms, self._since_ms + MORE_AUDIO_MS, self._audio_at_ms + MORE_AUDIO_MS)

    def _is_speaking(self, now_ms: Ms) -> bool:
        return self._is_loud or (self._quiet_at_ms is not None and now_ms - self._quiet_at_ms <= GAP_MS)

    def _decided_ms(self) -> Ms:
        decision_ms = self._since_ms + DECISION_MS
        if self._is_loud or self._quiet_at_ms is None:
            return decision_ms
        return min(decision_ms, self._quiet_at_ms + QUIET_MS)

    def _move(self, cue: Cue, now_ms: Ms) -> None:
        self.stage = GOODBYE.after(self.stage, cue)
        self._since_ms = now_ms

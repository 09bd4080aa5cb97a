"""Where a call is that the agent makes: ringing, in a menu, in a queue, with a person, on hold again, at a voicemail.

Owns that, with the instants, and whether the agent stays silent. It goes by what the model does, and by whose turn that
answers; it listens to nothing by itself. Does not own the keys (``keys``), or how long one waits at most (``giveup``).

```
far end   "press 2 for ..."      "connecting"  music      "pharmacy, Sam"           "hold on"   music "it's ready"
model                   keys 2         waits                     speaks      ...      waits            speaks
phase   RINGING │ MENU ──│ QUEUE ─────────────────────────│ PERSON ──────────────────── │ HOLD ───────│ PERSON
                         └─ pressed                       └─ since the turn that is answered
```

A reply that says that it presses keys is spoken to a menu, whatever it presses.

What tells of a phase comes after it began: a menu and a person are there since they began to speak, a queue since the
keys were out. A reply is speech that calls no tool of silence; the tool ``leave_voicemail`` tells of a machine.

The agent stays silent from a tool of silence (``wait``, keys) until somebody is answered otherwise, or said something
that has no answer. A turn without words, such as music, needs none: it changes nothing or, where it had to be ended by
hand and the agent has a tool of silence, begins the silence itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from itertools import pairwise

from callwright.core.table import Table
from callwright.core.toolcalls import AfterOutput
from callwright.ids import ItemId, Ms, ResponseId, ToolCallId

LEAVE_VOICEMAIL = "leave_voicemail"
"""The tool by which the model tells that it has come to a voicemail."""


class Phase(StrEnum):
    """Where the call is."""

    RINGING = "ringing"
    """Nobody, and no machine, was answered yet."""
    MENU = "menu"
    QUEUE = "queue"
    """The agent waits for a person."""
    PERSON = "person"
    HOLD = "hold"
    """It waits for one who asked it to."""
    VOICEMAIL = "voicemail"
    OVER = "over"


class Cue(Enum):
    """What the model does, or what comes of it."""

    KEYS = auto()
    PRESSED = auto()
    WAITS = auto()
    SPEAKS = auto()
    LEAVES_MESSAGE = auto()
    ENDED = auto()


WAITING = (Phase.QUEUE, Phase.HOLD)
"""One waits for somebody."""
_OPEN = tuple(phase for phase in Phase if phase is not Phase.OVER)

HOLD: Table[Phase, Cue] = Table(
    "hold",
    Phase.RINGING,
    {
        **{(phase, Cue.KEYS): Phase.MENU for phase in _OPEN},
        **{(phase, Cue.PRESSED): phase for phase in _OPEN},
        (Phase.MENU, Cue.PRESSED): Phase.QUEUE,
        **{(phase, Cue.WAITS): Phase.QUEUE for phase in _OPEN},
        (Phase.PERSON, Cue.WAITS): Phase.HOLD,
        (Phase.HOLD, Cue.WAITS): Phase.HOLD,
        **{(phase, Cue.SPEAKS): Phase.PERSON for phase in _OPEN},
        **{(phase, Cue.LEAVES_MESSAGE): Phase.VOICEMAIL for phase in _OPEN},
        **{(phase, Cue.ENDED): Phase.OVER for phase in _OPEN},
    },
)


@dataclass(frozen=True, slots=True)
class PhaseSince:
    """A phase of a call, and the instant at which it began (ms on the call's clock)."""

    phase: Phase
    since_ms: Ms


@dataclass(frozen=True, slots=True)
class HoldSummary:
    """How a call went through menus and queues."""

    keys_pressed: str
    """All keys that the line was given, in order."""
    on_hold_ms: Ms
    """How long the agent waited in all: in queues, from the keys or the announcement on, and for persons."""
    answered_after_ms: Ms | None
    """From the end of the first person's first turn, as the server marks it, to the first audio of the reply; None
    where no person was met."""
    max_hold_reached: bool
    """Whether it gave up, as waiting had lasted as long as it may."""
    phases: tuple[PhaseSince, ...]


@dataclass(slots=True)
class _Turn:
    """The latest turn of the far end."""

    item_id: ItemId
    began_ms: Ms
    ended_ms: Ms | None = None
    needs_nothing: bool = False
    """It was answered with silence: whatever is said later, without another turn, is said to nobody."""


@dataclass(slots=True)
class _Reply:
    """The latest response."""

    response_id: ResponseId
    turn: _Turn | None
    """What it answers."""
    spoke_ms: Ms | None = None
    calls: AfterOutput | None = None
    """What the tools are followed by that it calls; one that is not followed by a reply outweighs one that is."""
    claims_keys: bool = False
    """It says that keys are pressed, as one says to a menu."""


class Hold:
    """The phases of one call."""

    def __init__(self, *, can_wait: bool) -> None:
        """``can_wait`` says whether the agent has a tool that answers with silence."""
        self._can_wait = can_wait
        self.stays_silent = False
        """Whether the agent has answered with silence, and nothing was said since that needs an answer."""
        self.answered_after_ms: Ms | None = None
        """See `HoldSummary`."""
        self.waits_since_ms: Ms | None = None
        """Since when somebody is waited for, menus in between included; None while nobody is."""
        self._phases = [PhaseSince(HOLD.start, 0)]
        self._turn: _Turn | None = None
        self._reply: _Reply | None = None
        self._by_hand: ItemId | None = None
        """The latest turn that was ended by hand."""
        self._pressing: set[ToolCallId] = set()
        """The tool calls that have asked for keys."""

    @property
    def phase(self) -> Phase:
        """Where the call is."""
        return self._phases[-1].phase

    def summary(self, keys_pressed: str, *, max_hold_reached: bool) -> HoldSummary | None:
        """How a call that is over went; None for one that has neither waited nor pressed a key."""
        if not keys_pressed and not any(each.phase in WAITING for each in self._phases):
            return None
        waited = (then.since_ms - each.since_ms for each, then in pairwise(self._phases) if each.phase in WAITING)
        return HoldSummary(keys_pressed, sum(waited), self.answered_after_ms, max_hold_reached, tuple(self._phases))

    def turn_began(self, item_id: ItemId, now_ms: Ms) -> None:
        """The far end speaks, or plays something that the server takes for speech."""
        self._turn = _Turn(item_id, now_ms)

    def turn_ended(self, marked_ms: Ms) -> None:
        """Its turn is over, at this instant by the server's mark."""
        if self._turn is not None:
            self._turn.ended_ms = marked_ms

    def turn_said(self, item_id: ItemId, text: str) -> None:
        """The words of a turn are known. Those of one that was answered are no news."""
        is_answered = self._reply is not None and self._reply.turn is self._turn
        if self._turn is not None and item_id == self._turn.item_id and not is_answered and has_words(text):
            self.stays_silent = False
        elif self._can_wait and item_id == self._by_hand and not has_words(text):
            self.stays_silent = True

    def ended_by_hand(self) -> None:
        """The server did not end the turn: if it turns out to hold no word, it is music, to be waited through."""
        self._by_hand = self._turn.item_id if self._turn else None

    def words_lost(self) -> None:
        """Something was said that nobody has heard."""
        self.stays_silent = False

    def reply_began(self, response_id: ResponseId) -> None:
        """A response opened."""
        self._reply = _Reply(response_id, self._turn)

    def spoke(self, response_id: ResponseId, now_ms: Ms) -> None:
        """Audio of a response is handed to the line."""
        reply = self._followed(response_id)
        if reply is not None and reply.spoke_ms is None:
            reply.spoke_ms = now_ms

    def claimed_keys(self, response_id: ResponseId) -> None:
        """The text of a response says that keys are pressed."""
        reply = self._followed(response_id)
        if reply is not None:
            reply.claims_keys = True

    def called(self, response_id: ResponseId, name: str, after: AfterOutput) -> None:
        """A response calls a tool, which is started."""
        reply = self._followed(response_id)
        if reply is None:
            return
        if reply.calls in (None, AfterOutput.REPLY):
            reply.calls = after
        self.stays_silent = after is AfterOutput.SILENCE and reply.turn is self._turn
        if after is AfterOutput.SILENCE and reply.turn is not None:
            reply.turn.needs_nothing = True
        if name == LEAVE_VOICEMAIL and reply.turn is not None:
            self._move(Cue.LEAVES_MESSAGE, reply.turn.began_ms)

    def reply_ended(self, response_id: ResponseId, *, is_completed: bool) -> None:
        """A response closed: what it said, it said to a person, unless it ends the call, goes on waiting, or is late.

        One that broke off, and not because somebody speaks, has answered nothing.
        """
        reply = self._followed(response_id)
        if reply is not None and not is_completed and reply.turn is self._turn:
            self.stays_silent = False
        if reply is None or reply.spoke_ms is None or reply.calls in (AfterOutput.SILENCE, AfterOutput.HANG_UP):
            return
        turn = reply.turn
        if turn is not None and turn.needs_nothing:
            return
        if reply.claims_keys:
            self._move(Cue.KEYS, reply.spoke_ms if turn is None else turn.began_ms)
            self._move(Cue.PRESSED, reply.spoke_ms)
        else:
            self._met(reply.spoke_ms, turn)
        self.stays_silent = False

    def keys_asked(self, tool_call_id: ToolCallId) -> None:
        """A tool asks for keys: what was said before was a menu."""
        self._pressing.add(tool_call_id)
        self._move(Cue.KEYS, self._turn.began_ms if self._turn else 0)

    def keys_pressed(self, now_ms: Ms) -> None:
        """Keys are out."""
        self._move(Cue.PRESSED, now_ms)

    def tool_returned(self, tool_call_id: ToolCallId, after: AfterOutput, now_ms: Ms) -> None:
        """A tool has done its work."""
        if after is AfterOutput.SILENCE and tool_call_id not in self._pressing:
            self._move(Cue.WAITS, now_ms)

    def call_is_over(self, now_ms: Ms) -> None:
        """The call has ended, by whomever."""
        self._move(Cue.ENDED, now_ms)

    def _met(self, spoke_ms: Ms, turn: _Turn | None) -> None:
        """A person is spoken to since then, in answer to this turn."""
        if self.answered_after_ms is None and turn is not None and turn.ended_ms is not None:
            self.answered_after_ms = spoke_ms - turn.ended_ms
        is_there = self.phase is Phase.PERSON
        self._move(Cue.SPEAKS, spoke_ms if turn is None or is_there else turn.began_ms)

    def _followed(self, response_id: ResponseId) -> _Reply | None:
        reply = self._reply
        return reply if reply is not None and reply.response_id == response_id else None

    def _move(self, cue: Cue, since_ms: Ms) -> None:
        """Phases follow each other: none begins before the last one."""
        if not HOLD.allows(self.phase, cue):
            return
        phase = HOLD.after(self.phase, cue)
        if phase is not self.phase:
            self._phases.append(PhaseSince(phase, max(since_ms, self._phases[-1].since_ms)))
        if self.waits_since_ms is None or phase not in (Phase.MENU, *WAITING):
            self.waits_since_ms = self._phases[-1].since_ms if phase in WAITING else None


def has_words(text: str) -> bool:
    """Whether something was said: servers write music and noise in brackets, or not at all."""
    depth = 0
    for letter in text:
        depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(letter, 0)
        if depth <= 0 and letter.isalnum():
            return True
    return False

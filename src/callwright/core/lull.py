"""Silence in which the caller waits for the agent, and nothing is to come: it is broken by asking for a reply.

Owns whether the caller waits for a word of the agent's, and when a silence has lasted too long. Does not own the asking
(``asking``), nor what is asked for anyway: outputs (``toolcalls``), outcomes (``told``), a reply that does not begin
(``turns``).

```
caller    "That's all, bye."
model                     goodbye ▒▒▒▒ │ asked ─> it is done ▒▒▒▒             asked ─> goodbye ▒▒▒▒
tools        refund ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│ takes it back
stage    WAITING                       │ LEAVING                 │ SILENCE_MS │ WAITING             │ CALM
```

He waits from the end of his turn, or from a request for a reply, until a response has completed that spoke or called a
tool. One that fails, that says nothing, or that the server stops without a word of the caller, leaves him waiting; so
do first words that were lost, and a reply that only promises to look something up. A goodbye that was taken back leaves
the call to its end: whatever else is said before, the model is asked once more, to say goodbye again.

While something is under way a silence may last longer. It is broken ``ASKS_MAX`` times before the caller speaks or is
answered; a model that brings nothing even then is given up, and with it the call. So is one that calls tools, is asked
about their outputs and calls tools again, ``CALLS_MAX`` times in a row, while nobody says a word.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from callwright.claims.promises import promises
from callwright.core.events import ResponseStatus
from callwright.core.table import Table
from callwright.ids import Ms, ResponseId

SILENCE_MS: Ms = 2_000
"""How long nobody speaks before the agent is asked to: the server takes 0.8 s to tell that the caller has begun."""
UNDER_WAY_MS: Ms = 8_000
"""How long it may be while a tool runs or an outcome is to come."""
ASKS_MAX = 3
"""How often a silence is broken before the caller speaks or is answered."""
CALLS_MAX = 16
"""So many replies in a row may call tools and say nothing: each has its price, and the caller hears none of them."""


class Stage(Enum):
    """Whether the caller waits for the agent."""

    CALM = auto()
    """He does not: he was answered, or it is he who speaks."""
    WAITING = auto()
    LEAVING = auto()
    """The model wanted to end the call, and its goodbye was taken back."""
    GONE = auto()
    """The model brings nothing."""


class Cue(Enum):
    """What happens to his waiting."""

    WAITS = auto()
    """His turn is over, a reply was asked for, or he was promised something."""
    ANSWERED = auto()
    CALLER = auto()
    """He speaks."""
    LEAVES = auto()
    """The model says goodbye."""
    TAKEN_BACK = auto()
    ASKED = auto()
    GIVEN_UP = auto()


LULL: Table[Stage, Cue] = Table(
    "lull",
    Stage.CALM,
    {
        (Stage.CALM, Cue.WAITS): Stage.WAITING,
        (Stage.WAITING, Cue.ANSWERED): Stage.CALM,
        (Stage.GONE, Cue.ANSWERED): Stage.CALM,
        **{(stage, Cue.CALLER): Stage.CALM for stage in (Stage.WAITING, Stage.LEAVING, Stage.GONE)},
        **{(stage, Cue.LEAVES): Stage.CALM for stage in (Stage.WAITING, Stage.LEAVING, Stage.GONE)},
        (Stage.CALM, Cue.TAKEN_BACK): Stage.LEAVING,
        (Stage.WAITING, Cue.TAKEN_BACK): Stage.LEAVING,
        (Stage.WAITING, Cue.ASKED): Stage.WAITING,
        (Stage.LEAVING, Cue.ASKED): Stage.WAITING,
        **{(stage, Cue.GIVEN_UP): Stage.GONE for stage in (Stage.WAITING, Stage.LEAVING)},
    },
)


class _Brings(Enum):
    NOTHING = auto()
    VOICE = auto()
    CALL = auto()


@dataclass(slots=True)
class _Reply:
    """The latest response."""

    response_id: ResponseId
    brings: _Brings = _Brings.NOTHING
    text: str = ""
    status: ResponseStatus | None = None
    """None while it is open."""
    is_answer: bool = False
    """He was answered by it."""


class Lull:
    """The silences of one call."""

    def __init__(self) -> None:
        self.stage = LULL.start
        self._reply: _Reply | None = None
        """None once it was weighed, or the caller has spoken since it began."""
        self._asks = 0
        """How often a silence was broken since the caller spoke or was answered."""
        self._calls = 0
        """How many replies in a row have called tools and said nothing."""
        self._since_ms: Ms | None = None
        """Since when he waits and nobody speaks; None while somebody does, or something is asked for."""
        self._patience_ms: Ms = SILENCE_MS

    def waits(self) -> None:
        """The caller waits for a word of the agent's."""
        self._take(Cue.WAITS)

    def caller_spoke(self) -> None:
        """He begins a turn: what was, is past."""
        self._take(Cue.CALLER)
        self._asks, self._calls, self._reply = 0, 0, None

    def caller_is_through(self) -> None:
        """His turn is over."""
        self.caller_spoke()
        self._take(Cue.WAITS)

    def stopped(self) -> None:
        """The app wants the agent to be quiet."""
        self._take(Cue.CALLER)

    def interrupted(self) -> None:
        """There is no session for a while: the silence counts anew."""
        self._since_ms = None

    def leaves(self) -> None:
        """The model says goodbye: the call ends, or that is taken back."""
        self._take(Cue.LEAVES)

    def taken_back(self) -> None:
        """The call goes on."""
        self._take(Cue.TAKEN_BACK)

    def give_up(self) -> None:
        """A reply was asked for often enough, and none came."""
        self._take(Cue.GIVEN_UP)

    def goes_on(self) -> bool:
        """Whether outputs are worth a reply; a model that only goes on to call tools is given up."""
        if self._calls < CALLS_MAX:
            return True
        self._take(Cue.WAITS)
        self._take(Cue.GIVEN_UP)
        return False

    def began(self, response_id: ResponseId) -> None:
        """A response opened."""
        self._reply = _Reply(response_id)

    def spoke(self, response_id: ResponseId) -> None:
        """Audio of a response is played."""
        self._calls = 0
        if (reply := self._followed(response_id)) is not None:
            if reply.brings is _Brings.NOTHING:
                reply.brings = _Brings.VOICE
            self._weigh(reply)

    def called(self, response_id: ResponseId) -> None:
        """A response calls a tool."""
        if (reply := self._followed(response_id)) is not None:
            reply.brings = _Brings.CALL

    def wrote(self, response_id: ResponseId, text: str) -> None:
        """The text of a response, which may come behind its end."""
        if (reply := self._followed(response_id)) is not None:
            reply.text = text
            self._weigh(reply)

    def ended(self, response_id: ResponseId, status: ResponseStatus) -> None:
        """A response closed."""
        if (reply := self._followed(response_id)) is not None:
            reply.status = status
            self._weigh(reply)

    def look(self, now_ms: Ms, *, is_quiet: bool, is_under_way: bool, at_ear_ms: Ms) -> bool:
        """Whether the silence has lasted too long, and a reply is to be asked for now.

        ``is_quiet`` says that nobody speaks and nothing was asked for, ``at_ear_ms`` since when no reply is heard.
        """
        if not is_quiet:
            self._since_ms = None
            return False
        if self._since_ms is None:
            self._since_ms = max(now_ms, at_ear_ms)
        self._patience_ms = UNDER_WAY_MS if is_under_way else SILENCE_MS
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is None or now_ms < deadline_ms:
            return False
        self._since_ms = None
        if self._asks >= ASKS_MAX:
            self._take(Cue.GIVEN_UP)
            return False
        self._asks += 1
        self._take(Cue.ASKED)
        return True

    def next_deadline_ms(self) -> Ms | None:
        """When a silence has lasted too long."""
        if self._since_ms is None or self.stage not in (Stage.WAITING, Stage.LEAVING):
            return None
        return self._since_ms + self._patience_ms

    def _followed(self, response_id: ResponseId) -> _Reply | None:
        reply = self._reply
        return reply if reply is not None and reply.response_id == response_id else None

    def _weigh(self, reply: _Reply) -> None:
        """Whether a response has answered him; one that only promises something does not, the first time."""
        if reply.status is not ResponseStatus.COMPLETED or reply.brings is _Brings.NOTHING:
            return
        if not reply.is_answer:
            reply.is_answer = True
            self._calls += reply.brings is _Brings.CALL
            self._take(Cue.ANSWERED)
        if reply.brings is _Brings.CALL or reply.text:
            if reply.brings is _Brings.VOICE and not self._asks and promises(reply.text):
                self._take(Cue.WAITS)
            self._asks, self._reply = 0, None

    def _take(self, cue: Cue) -> None:
        """What has no row here makes no difference."""
        if LULL.allows(self.stage, cue):
            self.stage = LULL.after(self.stage, cue)
        if self.stage is Stage.CALM:
            self._since_ms = None

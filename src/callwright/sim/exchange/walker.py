"""Where a call is in its phone tree. Owns the place and when it is left; knows no samples.

```
node      menu                                            │ connecting │ queue
part      "For opening hours, press one..." │             │ "..."      │ music
stage     SOUNDING                          │ AWAITING_KEY│ SOUNDING   │ SOUNDING
agent                                                    key
```

Who answers judges by ear: a key is what a detector makes of the sound there, and an answer is agent speech behind the
last word of a line, with `SILENT_MS` of silence behind it. Speech over a line answers nothing, unless it outlasts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING

from callwright.audio.formats import FRAME_MS
from callwright.ids import Ms
from callwright.sim.exchange.tree import HANG_UP, Awaits, HoldMusic, Node, Part, Tree, Wait, ringing

if TYPE_CHECKING:
    from collections.abc import Mapping

SILENT_MS: Ms = 1_000
"""How long the agent is silent before a person goes on."""
RINGS = ""
"""The place before anything has answered."""


class Stage(Enum):
    """What the far end does."""

    SOUNDING = auto()
    """Something is said or played; only a key matters."""
    AWAITING_KEY = auto()
    AWAITING_ANSWER = auto()
    PASSING = auto()
    """It is silent for a while, whatever comes."""
    OVER = auto()
    """It has hung up."""


class Cue(Enum):
    """What may end a part of a node."""

    ELAPSED = auto()
    """All of it has sounded, or it was waited long enough."""
    ANSWERED = auto()
    KEY = auto()
    """A key that leads somewhere."""
    OTHER_KEY = auto()
    """One that does not, in a node with keys."""


class Move(Enum):
    """Where the call goes."""

    ON = auto()
    """To the next part; after the last, to the next round; after that to the node that follows."""
    AGAIN = auto()
    """To the next round, or to the node that follows."""
    TO_KEY = auto()
    """To the node of the key."""


MOVES: Mapping[tuple[Stage, Cue], Move] = {
    (Stage.SOUNDING, Cue.ELAPSED): Move.ON,
    (Stage.SOUNDING, Cue.KEY): Move.TO_KEY,
    (Stage.SOUNDING, Cue.OTHER_KEY): Move.AGAIN,
    (Stage.AWAITING_KEY, Cue.ELAPSED): Move.ON,
    (Stage.AWAITING_KEY, Cue.KEY): Move.TO_KEY,
    (Stage.AWAITING_KEY, Cue.OTHER_KEY): Move.AGAIN,
    (Stage.AWAITING_ANSWER, Cue.ELAPSED): Move.ON,
    (Stage.AWAITING_ANSWER, Cue.ANSWERED): Move.ON,
    (Stage.PASSING, Cue.ELAPSED): Move.ON,
}
"""What a cue does; a pair that is missing does nothing."""

_STAGES: Mapping[Awaits, Stage] = {
    Awaits.KEY: Stage.AWAITING_KEY,
    Awaits.ANSWER: Stage.AWAITING_ANSWER,
    Awaits.NOTHING: Stage.PASSING,
}


class Walker:
    """Walks a tree, 20 ms at a time.

    The call is answered by the node ``answers`` after so many rings. ``length_ms`` is how long a line is.
    """

    def __init__(self, tree: Tree, answers: str, rings: int, hold_ms: Ms, length_ms: Callable[[str], Ms]) -> None:
        self._nodes = {**tree.nodes, RINGS: ringing(rings, answers)} if rings else tree.nodes
        self._hold_ms = hold_ms
        self._length_ms = length_ms
        self.place = RINGS if rings else answers
        """The name of the node."""
        self.began_ms: Ms = 0
        """When the part that the call is in began."""
        self._at = 0
        self._rounds = 0
        self._until_ms: Ms = 0
        self._heard_ms: Ms | None = None  # the end of the agent's last sound since the part began
        self._begin(0)

    @property
    def stage(self) -> Stage:
        """What the far end does now."""
        if self.place == HANG_UP:
            return Stage.OVER
        return _STAGES[self.part.awaits] if isinstance(self.part, Wait) else Stage.SOUNDING

    @property
    def part(self) -> Part:
        """The part that the call is in; there is none when it is over."""
        return self._node.parts[self._at]

    def step(self, now_ms: Ms, *, is_audible: bool, keys: Sequence[str] = ()) -> None:
        """Let the call go on to where it is in the frame that begins at ``now_ms``.

        In that frame the agent is heard (``is_audible``), and these keys are known to have been pressed.
        """
        for key in keys:
            if self.stage is not Stage.OVER and self._node.keys:
                self._take(Cue.KEY if key in self._node.keys else Cue.OTHER_KEY, now_ms, key)
        if is_audible:
            self._heard_ms = now_ms + FRAME_MS
        while (cue := self._due(now_ms)) is not None:
            self._take(cue, now_ms)

    @property
    def _node(self) -> Node:
        return self._nodes[self.place]

    def _due(self, now_ms: Ms) -> Cue | None:
        """What ends the part at this instant; None where nothing does."""
        if self.stage is Stage.OVER:
            return None
        if self.stage is Stage.AWAITING_ANSWER and self._heard_ms is not None:
            return Cue.ANSWERED if now_ms - self._heard_ms >= SILENT_MS else None
        return Cue.ELAPSED if now_ms >= self._until_ms else None

    def _take(self, cue: Cue, now_ms: Ms, key: str = "") -> None:
        match MOVES.get((self.stage, cue)):
            case Move.ON if self._at + 1 < len(self._node.parts):
                self._at += 1
                self._begin(now_ms)
            case Move.ON | Move.AGAIN if self._rounds + 1 < self._node.rounds:
                self._rounds += 1
                self._at = 0
                self._begin(now_ms)
            case Move.ON | Move.AGAIN:
                self._enter(self._node.then, now_ms)
            case Move.TO_KEY:
                self._enter(self._node.keys[key], now_ms)

    def _enter(self, place: str, now_ms: Ms) -> None:
        self.place = place
        self._at = self._rounds = 0
        if place != HANG_UP:
            self._begin(now_ms)

    def _begin(self, now_ms: Ms) -> None:
        self.began_ms = now_ms
        self._until_ms = now_ms + self._lasts_ms(self.part)
        self._heard_ms = None

    def _lasts_ms(self, part: Part) -> Ms:
        if isinstance(part, HoldMusic):
            return self._hold_ms // part.parts
        return self._length_ms(part.line_id) if part.lasts_ms is None else part.lasts_ms

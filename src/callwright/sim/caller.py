"""The scripted caller: when he speaks, what he takes for a reply, and what he sends in between.

He hears by energy alone, at his own ear, and sends a frame every 20 ms for the whole call, silence included: a line
that stops is a dead line. A reply is agent speech that begins after his last line ended; speech that was already
running then belongs to what came before, up to the pause or the next item that ends it. A murmur over the agent's voice
takes no turn, and neither does what others say at his end; the reply stays the same.

    caller   ===line 1===                          ==line 2==                      =line 3=
    agent                    ~~~reply~~~~~~~~~~~~~~~~~|           ~~~reply~~~~~~~~
                             ^ reply.start         cut            ^ reply.start   ^ reply.end
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from callwright.audio.formats import FRAME_MS, PCM
from callwright.audio.levels import level_dbfs
from callwright.audio.mix import gain_db
from callwright.audio.resample import resample
from callwright.sim.record import CallerLine
from callwright.sim.seeds import stream
from callwright.sim.speech import RATE_HZ, Recording

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from callwright.ids import ItemId, Ms

REPLY_ENDS_AFTER_MS: Ms = 700
"""Silence after which a reply is over; longer than any pause in the recorded lines."""
AUDIBLE_DBFS = -50
"""A frame this loud is speech to the caller; the recorded lines lie at -20."""

_STILL_SPEAKING_MS: Ms = 300  # silence within speech that is taken for a pause of the same speech


class Anchor(Enum):
    """What the caller waits for before he speaks."""

    PICKUP = "pickup"
    """The line opened."""
    REPLY_START = "reply.start"
    """The first agent speech after his last line; what he says then is an interruption."""
    REPLY_END = "reply.end"
    """The end of that speech."""
    PREVIOUS_END = "previous.end"
    """The end of his own last line."""
    HOLDING = "holding"
    """The first speech of a reply that carries a tool call; what he says then is an interruption."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """An instant in the call: so long after an anchor."""

    anchor: Anchor
    offset_ms: Ms
    tool: str | None = None
    """The tool whose holding line is meant; only with `Anchor.HOLDING`."""
    is_anywhere: bool = False
    """Whether it is drawn by chance, and may as well fall into silence."""

    def __str__(self) -> str:
        anchor = f"{self.tool}.{self.anchor.value}" if self.tool else self.anchor.value
        return f"{anchor} + {self.offset_ms} ms"

    @property
    def is_interruption(self) -> bool:
        """Whether a line with this trigger is meant to be spoken over the agent."""
        return self.anchor in (Anchor.REPLY_START, Anchor.HOLDING) and not self.is_anywhere


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that the caller does: say a recorded line or, with no line, hang up."""

    when: Trigger
    line_id: str | None
    later_ms: Ms = 0
    """By so much at most the trigger is later, drawn for each call."""
    or_says: tuple[str, ...] = ()
    """Other lines; one of all is drawn for each call."""
    level_db: int = 0
    """How much louder than recorded they are."""

    def drawn(self, chance: Random) -> Step:
        """The step as it is in one call."""
        when, line_id = self.when, self.line_id
        if self.later_ms:
            when = replace(when, offset_ms=when.offset_ms + chance.randint(0, self.later_ms))
        if line_id is not None and self.or_says:
            line_id = chance.choice((line_id, *self.or_says))
        return Step(when, line_id, level_db=self.level_db)


def drawn(script: Sequence[Step], seed: int) -> tuple[Step, ...]:
    """A script as it is in the call of this seed."""
    chance = stream(seed, "caller")
    return tuple(step.drawn(chance) for step in script)


@cache
def silent_frame(rate_hz: int) -> PCM:
    """20 ms of silence, int16 mono, read-only, always the same object: who is handed it need not look inside."""
    frame = np.zeros(rate_hz * FRAME_MS // 1000, np.int16)
    frame.flags.writeable = False
    return frame


class _AgentVoice:
    """What the caller makes of the agent's speech at his ear."""

    def __init__(self) -> None:
        self.began_ms: Ms | None = None
        """Start of the reply, once it has begun."""
        self.ended_ms: Ms | None = None
        """End of the reply, once it is over."""
        self._audible_until_ms: Ms = -_STILL_SPEAKING_MS
        self._heard: ItemId | None = None
        self._old: ItemId | None = None
        self._is_old = False

    def await_reply(self, now_ms: Ms) -> None:
        """The caller's turn is over: from here on he waits for the next reply."""
        self.began_ms = self.ended_ms = None
        self._is_old = now_ms - self._audible_until_ms < _STILL_SPEAKING_MS
        self._old = self._heard

    def hear(self, now_ms: Ms, is_audible: bool, item_id: ItemId | None) -> None:
        """Take in the frame that begins at ``now_ms``, in which this item is heard."""
        silent_ms = now_ms - self._audible_until_ms
        if is_audible:
            self._heard = item_id or self._heard
            self._is_old = self._is_old and silent_ms < _STILL_SPEAKING_MS and self._heard == self._old
            if self.began_ms is None and not self._is_old:
                self.began_ms = now_ms
            self._audible_until_ms = now_ms + FRAME_MS
        elif self.began_ms is not None and self.ended_ms is None and silent_ms >= REPLY_ENDS_AFTER_MS - FRAME_MS:
            self.ended_ms = self._audible_until_ms


class ScriptedCaller:
    """Plays a script against what reaches his ear, frame by frame.

    ``rate_hz`` is the line's rate. ``tool_of`` tells which tool the reply with this item called, if any; it may come to
    know of a call after the reply's audio began.
    """

    def __init__(
        self,
        script: Sequence[Step],
        speech: Mapping[str, Recording],
        rate_hz: int,
        tool_of: Callable[[ItemId], str | None] = lambda item_id: None,
    ) -> None:
        self.rate_hz = rate_hz
        self.hung_up = False
        self._script = tuple(script)
        said = [(step.line_id, step.level_db) for step in script if step.line_id]
        self._audio = {(line_id, db): _line_audio(speech[line_id], rate_hz, db) for line_id, db in said}
        self._asides = [line_id for line_id, _ in said if speech[line_id].kind != "caller"]
        self._tool_of = tool_of
        self._silence = silent_frame(rate_hz)
        self._voice = _AgentVoice()
        self._said: list[CallerLine] = []
        self._speaking: _Speaking | None = None
        self._items: dict[ItemId, Ms] = {}  # what he hears since his last line, each since when
        self._done = 0  # steps begun

    @property
    def lines(self) -> tuple[CallerLine, ...]:
        """What he has said so far, in order; the last may not be over."""
        return (*self._said, self._line(self._speaking)) if self._speaking else tuple(self._said)

    @property
    def unspoken(self) -> tuple[str, ...]:
        """What he has not come to: ids of lines, and ``hang_up``."""
        return tuple(step.line_id or "hang_up" for step in self._script[self._done :])

    def step(self, now_ms: Ms, ear: PCM, item_id: ItemId | None) -> PCM:
        """What he sends (int16, mono, 20 ms) in the frame that begins at ``now_ms``.

        ``ear`` is what reaches his ear in the same frame, and ``item_id`` the reply that it is part of.
        """
        is_audible = ear is not self._silence and level_dbfs(ear) >= AUDIBLE_DBFS
        self._voice.hear(now_ms, is_audible, item_id)
        if is_audible and item_id and self._voice.began_ms is not None:
            self._items.setdefault(item_id, now_ms)
        if self._speaking is None and self._done < len(self._script):
            self._try_next(now_ms)
        return self._silence if self._speaking is None else self._speak(self._speaking, is_audible)

    def _try_next(self, now_ms: Ms) -> None:
        step = self._script[self._done]
        anchor_ms = self._reached(step.when)
        if anchor_ms is None or now_ms < anchor_ms + step.when.offset_ms:
            return
        self._done += 1
        if step.line_id is None:
            self.hung_up = True
        else:
            self._speaking = _Speaking(step.line_id, step.when, self._audio[step.line_id, step.level_db], now_ms)

    def _reached(self, trigger: Trigger) -> Ms | None:
        """The instant of a trigger's anchor; None while it has not come."""
        match trigger.anchor:
            case Anchor.PICKUP:
                return 0
            case Anchor.PREVIOUS_END:
                return self._said[-1].ended_ms if self._said else None
            case Anchor.REPLY_START:
                return self._voice.began_ms
            case Anchor.REPLY_END:
                return self._voice.ended_ms
            case Anchor.HOLDING:
                items = reversed(self._items.items())
                return next((began_ms for item_id, began_ms in items if self._tool_of(item_id) == trigger.tool), None)

    def _speak(self, speaking: _Speaking, is_audible: bool) -> PCM:
        frame = speaking.audio[speaking.at : speaking.at + len(self._silence)]
        speaking.at += len(frame)
        speaking.overlapped_ms += FRAME_MS * is_audible
        if speaking.at == len(speaking.audio):
            self._end_line(speaking)
        if len(frame) == len(self._silence):
            return frame
        return np.concatenate((frame, self._silence[len(frame) :]))

    def _end_line(self, speaking: _Speaking) -> None:
        line = self._line(speaking)
        self._said.append(line)
        self._speaking = None
        if not (line.overlapped_ms and line.line_id in self._asides):
            self._voice.await_reply(line.ended_ms)
            self._items.clear()

    def _line(self, speaking: _Speaking) -> CallerLine:
        ended_ms = speaking.started_ms + speaking.at * 1000 // self.rate_hz
        return CallerLine(
            line_id=speaking.line_id,
            started_ms=speaking.started_ms,
            ended_ms=ended_ms,
            trigger=str(speaking.trigger),
            is_interruption=speaking.trigger.is_interruption,
            overlapped_ms=min(speaking.overlapped_ms, ended_ms - speaking.started_ms),
        )


@dataclass(slots=True)
class _Speaking:
    """The line that he is in."""

    line_id: str
    trigger: Trigger
    audio: PCM
    started_ms: Ms
    at: int = 0
    """Samples said."""
    overlapped_ms: Ms = 0


@cache
def _line_audio(line: Recording, rate_hz: int, level_db: int) -> PCM:
    audio = gain_db(resample(line.pcm, RATE_HZ, rate_hz), level_db)
    audio.flags.writeable = False
    return audio

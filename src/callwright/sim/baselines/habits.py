"""What baselines do, as data: habits for the caller's first words, for the goodbye, for actions, and for waiting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Early(Enum):
    """What becomes of caller audio that comes before the server has taken the session's configuration."""

    DROPPED = "dropped"
    HELD = "held, and sent in order once the session stands"
    SENT = "sent as soon as the connection stands, before the configuration that says how to read it"


class HangUp(Enum):
    """When the line is put down after a tool call that ends the call."""

    AFTER_A_WHILE = "a second after the call, however long the goodbye is"
    WHEN_EMPTY = "as soon as all audio that has come was played, whether or not more is on its way"
    WHEN_HEARD = "when the response is done and the line has played it; not at all if the caller cut it"


class OnHold(Enum):
    """What is done while nobody is there, or the model means to say nothing."""

    WAITS = "every frame is sent, and no reply is asked for to a tool whose answer is silence"
    ASKS = "a reply is asked for to every tool's output, as to any other"
    SAVES = "what it takes for music is not sent"


class Key(Enum):
    """What an action is taken for the same by, and sent to its provider under."""

    CALL = "the tool call: each one is a new action"
    ORDER = "the thing acted on: whatever is asked for later, the first one stands"
    ORDER_AND_CARD = "the thing acted on and where the money goes: another card is another action"


class Tells(Enum):
    """What becomes of an action's result."""

    RESULT = "it is the tool's output, and a reply is asked for"
    UNLESS_SPOKEN = "it is the tool's output, and a reply is asked for only if the caller has not spoken meanwhile"
    UNLESS_NAMED = (
        "who asks again meanwhile is told that it is on its way; the result is the tool's output, and a reply is asked"
        " for only if none since the call has named the last four digits of the card"
    )
    NOTHING = "it is the tool's output, and nothing is asked for"
    NOTE = "the output says that it is under way; the result is a system note, and nothing is asked for"


@dataclass(frozen=True, slots=True)
class Acts:
    """What a baseline does with actions."""

    key: Key = Key.CALL
    tells: Tells = Tells.RESULT
    stops_waiting: bool = False
    """A caller who speaks cancels what is under way, on this side."""


@dataclass(frozen=True, slots=True)
class Habits:
    """What a baseline does at the edges, with actions, and on hold."""

    early: Early
    hang_up: HangUp
    acts: Acts = field(default_factory=Acts)
    on_hold: OnHold = OnHold.WAITS


HABITS: Mapping[str, Habits] = {
    "naive": Habits(Early.DROPPED, HangUp.AFTER_A_WHILE, Acts(Key.CALL, Tells.UNLESS_SPOKEN), OnHold.ASKS),
    "drops-early-audio": Habits(Early.DROPPED, HangUp.WHEN_HEARD),
    "sends-early-audio": Habits(Early.SENT, HangUp.WHEN_HEARD),
    "sleeps-at-goodbye": Habits(Early.HELD, HangUp.AFTER_A_WHILE),
    "hangs-up-when-empty": Habits(Early.HELD, HangUp.WHEN_EMPTY),
    "by-call-id": Habits(Early.HELD, HangUp.WHEN_HEARD, Acts(Key.CALL)),
    "by-order": Habits(Early.HELD, HangUp.WHEN_HEARD, Acts(Key.ORDER)),
    "by-order-and-card": Habits(Early.HELD, HangUp.WHEN_HEARD, Acts(Key.ORDER_AND_CARD)),
    "suppresses-reply": Habits(Early.HELD, HangUp.WHEN_HEARD, Acts(Key.ORDER, Tells.UNLESS_SPOKEN)),
    "counts-last-four": Habits(Early.HELD, HangUp.WHEN_HEARD, Acts(Key.ORDER, Tells.UNLESS_NAMED)),
    "posts-a-note": Habits(Early.HELD, HangUp.WHEN_HEARD, Acts(Key.ORDER, Tells.NOTE)),
    "cancels-on-barge-in": Habits(Early.HELD, HangUp.WHEN_HEARD, Acts(Key.CALL, stops_waiting=True)),
    "talks-to-the-queue": Habits(Early.HELD, HangUp.WHEN_HEARD, on_hold=OnHold.ASKS),
    "stops-on-music": Habits(Early.HELD, HangUp.WHEN_HEARD, on_hold=OnHold.SAVES),
}
"""Baselines by name: ``naive`` has every bad habit that tutorials teach, each of the others one of them."""

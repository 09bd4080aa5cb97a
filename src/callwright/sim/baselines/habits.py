"""What baselines do at the two edges of a call, as data: a habit for the caller's first words, one for the goodbye."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Habits:
    """What a baseline does at the edges."""

    early: Early
    hang_up: HangUp


HABITS: Mapping[str, Habits] = {
    "naive": Habits(Early.DROPPED, HangUp.AFTER_A_WHILE),
    "drops-early-audio": Habits(Early.DROPPED, HangUp.WHEN_HEARD),
    "sends-early-audio": Habits(Early.SENT, HangUp.WHEN_HEARD),
    "sleeps-at-goodbye": Habits(Early.HELD, HangUp.AFTER_A_WHILE),
    "hangs-up-when-empty": Habits(Early.HELD, HangUp.WHEN_EMPTY),
}
"""Baselines by name: ``naive`` has every bad habit that tutorials teach, each of the others one of them."""

"""What of a call a client that is a program does not tell, by figures and other expectations, each with the reason.

What only it could tell is left out of the verdict. What it was to do where it is seen, and did not do there, is not
scored: whether it was done nobody knows, and a call that is to show that does not hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from callwright.measure.effects import EFFECT_METRICS
from callwright.sim.record import Tells

if TYPE_CHECKING:
    from callwright.sim.record import CallRecord

_TRANSCRIPT: Final = ("unheard_words_in_transcript", "heard_words_missing")
_RECORD: Final = ("held_sent_ms", "outcomes_lost")
_BOOK: Final = ("effects", *(metric.name for metric in EFFECT_METRICS))


def untold(record: CallRecord) -> Mapping[str, str]:
    """What cannot be judged because the client does not tell it."""
    found: dict[str, str] = {}
    if record.tells is Tells.NOTHING:
        found |= dict.fromkeys(_TRANSCRIPT, "the client does not tell what it holds to have been heard")
    if record.tells is not Tells.ALL:
        found |= dict.fromkeys(_RECORD, "what the client keeps is its own")
    return found


def unseen(record: CallRecord) -> Mapping[str, str]:
    """What is not scored because the client acted elsewhere, if it acted."""
    if record.has_witness or not record.action_tools:
        return {}
    return dict.fromkeys(_BOOK, "the client sent nothing to the stand-in provider, CALLWRIGHT_PROVIDER_URL")

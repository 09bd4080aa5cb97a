"""The turns of a transcript: whose words they are, what was heard of them, and where that is known from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from callwright.ids import ItemId, Ms


class Speaker(StrEnum):
    """Whose words they are."""

    CALLER = "caller"
    AGENT = "agent"


class Source(StrEnum):
    """Where the heard text of a turn comes from."""

    PENDING = "pending"
    """Not known yet."""
    TRANSCRIBED = "transcribed"
    """A caller's turn, as the model understood it."""
    WHOLE = "whole"
    """The reply was played to its end."""
    RETRIEVED = "retrieved"
    """The server's shortened item."""
    ALIGNED = "aligned"
    """What our own voice told of the audio that was played."""
    ESTIMATED = "estimated"
    """The written words that can be taken for heard, by how much of the audio was played."""
    NONE = "none"
    """No text is to be had; of a reply that was cut, ``cut_ms`` says how much was played."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the transcript: ``heard`` is what was heard, ``written`` what the model wrote."""

    speaker: Speaker
    item_id: ItemId
    heard: str
    written: str
    source: Source
    cut_ms: Ms | None = None
    """How much of the reply's audio was played before the cut; None if it was not cut."""
    cited_topics: tuple[str, ...] = ()
    """The topics of the agent's knowledge that the reply rests on, as far as its provider tells."""
    out_of_domain: bool | None = None
    """Whether the provider holds that none of them covers it; None where it does not say."""

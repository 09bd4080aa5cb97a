"""The sides of a call's sound, as they may be handed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callwright.core.transcript import Speaker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from callwright.audio.formats import PCM
    from callwright.measure.course import Span
    from callwright.sim.record import StereoRecording


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """The sides of a recording: int16, equally long, silent where a card number was spoken."""

    rate_hz: int
    sent: PCM
    """What the client was sent of the caller."""
    said: PCM
    """What he said."""
    heard: PCM
    """What he heard of the agent."""


def hushed(recording: StereoRecording, spans: Iterable[tuple[Speaker, Span]]) -> Sides:
    """The sides of a recording, without what was spoken in these spans."""
    sent, said, heard = (side.copy() for side in (recording.sent, recording.caller, recording.agent))
    for speaker, span in spans:
        first, end = (ms * recording.rate_hz // 1000 for ms in (span.start_ms, span.end_ms))
        for side in (sent, said) if speaker is Speaker.CALLER else (heard,):
            side[first:end] = 0
    return Sides(recording.rate_hz, sent, said, heard)

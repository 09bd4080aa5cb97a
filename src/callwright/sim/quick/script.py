"""When the caller of a call without samples speaks: the triggers of a scripted caller, from what is to be heard.

A line without samples knows ahead when each piece will reach the ear, so the next instant at which the caller does
something is worked out, and again whenever more comes or something is cleared. What he takes for a reply is what a
scripted caller does: agent speech that begins after his last line, over after 700 ms of silence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from callwright.audio.formats import FRAME_MS
from callwright.sim.caller import REPLY_ENDS_AFTER_MS, Anchor, Step
from callwright.sim.record import CallerLine, EarSpan
from callwright.sim.speech import Recording

if TYPE_CHECKING:
    from callwright.ids import ItemId, Ms

_STILL_SPEAKING_MS = 300  # as the scripted caller has it


class Said(NamedTuple):
    """A line that he began."""

    step: Step
    line: Recording
    started_ms: Ms

    @property
    def ended_ms(self) -> Ms:
        """Where it ends."""
        return self.started_ms + self.line.ms


class Script:
    """What the caller does, one step after the other. ``tool_of`` tells which tool a reply's item called."""

    def __init__(self, steps: Sequence[Step], tool_of: Callable[[ItemId], str | None]) -> None:
        self._steps = tuple(steps)
        self._tool_of = tool_of
        self._done = 0
        self.said: list[Said] = []
        """The lines that he began."""

    @property
    def unspoken(self) -> tuple[Step, ...]:
        """What he has not come to."""
        return self._steps[self._done :]

    def begin(self, now_ms: Ms, line: Recording | None) -> None:
        """Take the next step: say this line, or hang up."""
        step = self._steps[self._done]
        self._done += 1
        if line is not None:
            self.said.append(Said(step, line, now_ms))

    def next_line(self) -> str | None:
        """The line of the next step; None to hang up."""
        return self._steps[self._done].line_id

    def due_ms(self, ear: Sequence[EarSpan]) -> Ms | None:
        """When the next step is due, as far as known by what is heard and will be."""
        if self._done == len(self._steps):
            return None
        when = self._steps[self._done].when
        anchor_ms = self._anchor_ms(when.anchor, when.tool, ear)
        if anchor_ms is None:
            return None
        due_ms = anchor_ms + when.offset_ms
        if when.anchor is Anchor.REPLY_END:
            due_ms = max(due_ms, anchor_ms + REPLY_ENDS_AFTER_MS - FRAME_MS)
        if self.said:
            due_ms = max(due_ms, self.said[-1].ended_ms)
        return -(-due_ms // FRAME_MS) * FRAME_MS

    def lines(self, ear: Sequence[EarSpan]) -> tuple[CallerLine, ...]:
        """What he said, beside what he heard."""
        return tuple(
            CallerLine(
                line_id=said.line.id,
                started_ms=said.started_ms,
                ended_ms=said.ended_ms,
                trigger=str(said.step.when),
                is_interruption=said.step.when.is_interruption,
                overlapped_ms=sum(_overlap(said, span) for span in ear),
            )
            for said in self.said
        )

    def _anchor_ms(self, anchor: Anchor, tool: str | None, ear: Sequence[EarSpan]) -> Ms | None:
        match anchor:
            case Anchor.PICKUP:
                return 0
            case Anchor.PREVIOUS_END:
                return self.said[-1].ended_ms if self.said else None
        reply = self._reply(ear)
        match anchor:
            case Anchor.REPLY_START:
                return reply[0].at_ms if reply else None
            case Anchor.HOLDING:
                return next((span.at_ms for span in reply if self._tool_of(span.item_id) == tool), None)
        return _end_ms(_first_run(reply)) if reply else None

    def _reply(self, ear: Sequence[EarSpan]) -> Sequence[EarSpan]:
        """What is heard after his last line, from the first that was not running already."""
        said = next((said for said in reversed(self.said) if not _is_murmur_over(said, ear)), None)
        if said is None:
            return ear
        old: EarSpan | None = None
        for at, span in enumerate(ear):
            is_running = span.at_ms <= said.ended_ms < _end_ms([span]) + _STILL_SPEAKING_MS
            goes_on = old is not None and span.item_id == old.item_id and _gap_ms(old, span) < _STILL_SPEAKING_MS
            if is_running or goes_on:
                old = span
            elif span.at_ms >= said.ended_ms:
                return ear[at:]
        return ()


def _end_ms(spans: Sequence[EarSpan]) -> Ms:
    return spans[-1].at_ms + spans[-1].to_ms - spans[-1].from_ms


def _gap_ms(span: EarSpan, following: EarSpan) -> Ms:
    return following.at_ms - _end_ms([span])


def _first_run(spans: Sequence[EarSpan]) -> Sequence[EarSpan]:
    """The spans up to the first silence that ends a reply."""
    for at in range(1, len(spans)):
        if _gap_ms(spans[at - 1], spans[at]) >= REPLY_ENDS_AFTER_MS:
            return spans[:at]
    return spans


def _overlap(said: Said, span: EarSpan) -> Ms:
    return max(0, min(said.ended_ms, _end_ms([span])) - max(said.started_ms, span.at_ms))


def _is_murmur_over(said: Said, ear: Sequence[EarSpan]) -> bool:
    return said.line.kind == "murmur" and any(_overlap(said, span) for span in ear)

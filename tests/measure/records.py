"""Call records made by hand: recorded speech laid into a recording where a test wants it, and cut where it wants it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

import callwright.apps.hotel as hotel
from callwright.audio.formats import PCM16_24K
from callwright.audio.g711 import pcmu_decode, pcmu_encode
from callwright.audio.resample import Resampler, resample
from callwright.core.transcript import Source, Speaker, Turn
from callwright.ids import ItemId, Ms
from callwright.sim.models import AgentSaid, CallerSaid, Clip
from callwright.sim.record import (
    FIRST_AUDIO_MS,
    CallerLine,
    CallRecord,
    Confirmation,
    EarSpan,
    SpokenItem,
    StereoRecording,
    Truncation,
)
from callwright.sim.server.speaking import Utterance, render
from callwright.sim.speech import RATE_HZ, Speech

HZ = 8_000
SPEECH = Speech.load(Path(hotel.__file__).parent / "speech")
LONG = tuple(Clip(line_id) for line_id in SPEECH if line_id.startswith("check-in-"))
"""The whole answer about checking in."""


@dataclass
class Laid:
    """A reply at the caller's ear from ``at_ms`` on, up to ``heard_ms`` of it (None: all)."""

    clips: Sequence[Clip]
    at_ms: Ms
    heard_ms: Ms | None = None
    booked_ms: Ms | None = None
    """What the line's books say was heard; None: the truth."""
    history: str | None = None
    """What the server holds; None: exactly the words of which half was heard."""
    transcript: str | None = None
    truncated_ms: Ms | None = None
    streamed_ms: Ms | None = None
    """What left the server; None: all."""
    breaks: Sequence[tuple[Ms, Ms]] = ()
    """At so much of the reply, the line ran dry for so long."""
    tool: str | None = None
    item_id: ItemId = field(default_factory=lambda: ItemId(""))
    made: Utterance = field(init=False)

    def __post_init__(self) -> None:
        self.made = render(self.clips, SPEECH, 200)

    def kept(self, ms: Ms) -> str:
        """The words of which at least half lies before ``ms``."""
        return " ".join(word.text for word in self.made.words if word.start_ms + word.end_ms <= 2 * ms)

    @property
    def end_ms(self) -> Ms:
        return self.made.audio_ms if self.heard_ms is None else self.heard_ms

    @property
    def sound(self) -> np.ndarray:
        """What the line plays of it, through its codec."""
        narrow = resample(np.frombuffer(self.made.audio, np.dtype("<i2")), PCM16_24K.rate_hz, HZ)
        return pcmu_decode(pcmu_encode(narrow))[: self.end_ms * HZ // 1000]

    @property
    def spans(self) -> list[EarSpan]:
        """The line's books."""
        booked_ms = self.end_ms if self.booked_ms is None else self.booked_ms
        edges = [0, *(at for at, _ in self.breaks), booked_ms]
        waited = 0
        spans = []
        for number, (first, last) in enumerate(pairwise(edges)):
            waited += self.breaks[number - 1][1] if number else 0
            spans.append(EarSpan(self.item_id, first, last, self.at_ms + first + waited))
        return spans


def said(line_id: str, at_ms: Ms, *, over: Ms | None = None) -> CallerLine:
    """A line of the caller; ``over`` makes it an interruption that overlapped so much speech."""
    return CallerLine(line_id, at_ms, at_ms + SPEECH[line_id].ms, "test", over is not None, over or 0)


def record_of(replies: Sequence[Laid], lines: Sequence[CallerLine] = (), *, length_ms: Ms = 60_000) -> CallRecord:
    """The record of a call in which these replies reached the ear and the caller said these lines, all understood."""
    agent, caller = (np.zeros(length_ms * HZ // 1000, np.int16) for _ in range(2))
    replies = [replace(reply, item_id=ItemId(f"item_{number}")) for number, reply in enumerate(replies, 1)]
    for reply in replies:
        for span in reply.spans:
            _lay(agent, reply.sound[span.from_ms * HZ // 1000 :][: _beyond(span, reply)], span.at_ms)
    for line in lines:
        _lay(caller, resample(SPEECH[line.line_id].pcm, RATE_HZ, HZ), line.started_ms)
    return CallRecord(
        scenario="by-hand",
        seed=7,
        client="callwright",
        server="polyai",
        settings={},
        trace=b"",
        turns=tuple(_turn(reply) for reply in replies),
        recording=StereoRecording(HZ, caller, agent),
        history=(
            *(CallerSaid(ItemId(f"said_{n}"), SPEECH[line.line_id].text) for n, line in enumerate(lines)),
            *(
                AgentSaid(reply.item_id, _believed(reply, reply.history), reply.heard_ms is not None)
                for reply in replies
            ),
        ),
        spoken=tuple(_spoken(reply) for reply in replies),
        ear=tuple(span for reply in replies for span in reply.spans),
        caller_lines=tuple(lines),
        unspoken=(),
        truncations=tuple(
            Truncation(reply.item_id, reply.truncated_ms, reply.at_ms + reply.end_ms, is_refused=False)
            for reply in replies
            if reply.truncated_ms is not None
        ),
        confirmations=(),
        first_audio=read_by_server(caller),
        session_ready_ms=234,
        held_sent_ms=220,
        held_lost_ms=0,
        connected_ms=length_ms - 500,
        ended_ms=length_ms,
        ended_by="caller",
        ended_because="hung up",
        hang_up_tools=("end_call",),
    )


def read_by_server(*pieces: np.ndarray) -> np.ndarray:
    """What a server reads first of these pieces of the caller's side, sent one after the other through the codec."""
    sent = pcmu_decode(pcmu_encode(np.concatenate(pieces)))
    return Resampler(HZ, RATE_HZ).process(sent)[: FIRST_AUDIO_MS * RATE_HZ // 1000]


def confirmed(record: CallRecord, at_ms: Ms) -> CallRecord:
    """The same call, in which the server tells at this instant that the caller speaks over a reply."""
    return replace(record, confirmations=(Confirmation(at_ms - 780, at_ms),))


def _beyond(span: EarSpan, reply: Laid) -> int:
    """Samples to lay for a span: what it says or, for the last one, what was truly heard."""
    last_ms = reply.end_ms if span == reply.spans[-1] else span.to_ms
    return (last_ms - span.from_ms) * HZ // 1000


def _lay(channel: np.ndarray, sound: np.ndarray, at_ms: Ms) -> None:
    first = at_ms * HZ // 1000
    channel[first : first + len(sound)] = sound[: len(channel) - first]


def _believed(reply: Laid, text: str | None) -> str:
    return reply.kept(reply.end_ms) if text is None else text


def _turn(reply: Laid) -> Turn:
    source = Source.WHOLE if reply.heard_ms is None else Source.RETRIEVED
    return Turn(Speaker.AGENT, reply.item_id, _believed(reply, reply.transcript), reply.made.text, source)


def _spoken(reply: Laid) -> SpokenItem:
    made = reply.made
    streamed_ms = made.audio_ms if reply.streamed_ms is None else reply.streamed_ms
    return SpokenItem(reply.item_id, reply.at_ms - 5, made.words, made.clips, made.audio_ms, streamed_ms, reply.tool)

"""Records of calls to a far end, made by hand: a menu, a key, a queue, a person, and an agent where a test wants it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from tests.measure.records import HZ, SPEECH, Laid, record_of, said

from callwright.audio.dtmf import TONE_MS, KeyHeard, tones
from callwright.ids import Ms
from callwright.sim.models import Clip
from callwright.sim.record import CallRecord, FarBook, FarKind, FarSpan

MENU, GREETING = "ask-check-in", "thank-you"
"""Lines that stand for what a menu and a person say."""


def rests(kind: FarKind, start_ms: Ms, end_ms: Ms) -> FarSpan:
    """The far end plays or awaits something."""
    return FarSpan(kind, None, start_ms, end_ms, "node")


def says(kind: FarKind, line_id: str, at_ms: Ms) -> FarSpan:
    """The far end speaks."""
    return FarSpan(kind, line_id, at_ms, at_ms + SPEECH[line_id].ms, "node")


RINGING = rests("ringing", 0, 4_000)
QUEUE = (
    RINGING,
    says("menu", MENU, 4_000),
    rests("menu", 4_000 + SPEECH[MENU].ms, 9_400),
    says("announcement", "go-on", 10_000),
    rests("music", 12_000, 25_000),
    says("announcement", "ask-wifi", 25_000),
    rests("music", 28_000, 40_000),
)
"""What comes before a person: a menu that "2" answers at 9.3 s, and a queue."""
KEY = ("2", 9_300)
PERSON = says("person", GREETING, 41_000)
AGAIN = (PERSON, rests("music", 46_000, 54_000), says("person", "ask-pool", 55_000))
"""A person who asks to hold on, and comes back."""
BEEP_MS = 13_000
VOICEMAIL = (
    RINGING,
    says("announcement", "ask-pool", 4_000),
    says("announcement", "ask-wifi", 9_000),
    rests("beep", BEEP_MS - 500, BEEP_MS),
    rests("recording", BEEP_MS, 40_000),
)
"""A machine that greets in two parts, beeps and records."""


def speaks(at_ms: Ms, line_id: str = "check-in-pool", tool: str | None = None) -> Laid:
    """The agent says a line."""
    return Laid((Clip(line_id),), at_ms, tool=tool)


def far_call(
    spans: Sequence[FarSpan] = (*QUEUE, *AGAIN),
    replies: Sequence[Laid] = (),
    keys: Sequence[tuple[str, Ms]] = (KEY,),
    *,
    length_ms: Ms = 65_000,
) -> CallRecord:
    """A call that the agent makes, and in which it presses these keys, each at its instant."""
    lines = [said(span.line_id, span.started_ms) for span in spans if span.line_id]
    record = record_of(replies, lines, length_ms=length_ms)
    agent = record.recording.agent.copy()
    for key, at_ms in keys:
        tone = tones(key, HZ, gap_ms=0)
        agent[at_ms * HZ // 1000 :][: len(tone)] += (tone // 4).astype(np.int16)
    book = FarBook(tuple(spans), tuple(KeyHeard(key, at_ms, at_ms + TONE_MS) for key, at_ms in keys))
    return replace(record, recording=replace(record.recording, agent=agent), far=book, ended_by="agent")

"""What a line had played and the ear had not reached when the line ended was never heard."""

from __future__ import annotations

import pytest
from tests.core.drive import R1, A

from callwright.core import events as on
from callwright.core.estimate import estimate
from callwright.core.playout import Cut
from callwright.core.ports import PlayedReports
from callwright.core.session import CallPlan, Can, Session
from callwright.core.transcript import Source

RATE_HZ = 24_000
WORDS = "one two three four"


def reply_of_one_second(latency_ms: int) -> Session:
    session = Session(CallPlan(RATE_HZ, PlayedReports.PULLED, Can.TRUNCATE | Can.RETRIEVE, {}, latency_ms))
    for event in (
        on.LineOpened(),
        on.ModelConnected(),
        on.SessionReady(),
        on.ResponseStarted(R1),
        on.AudioReceived(R1, A, RATE_HZ),
        on.ReplyWritten(R1, A, WORDS),
        on.ResponseEnded(R1, on.ResponseStatus.COMPLETED),
    ):
        session.handle(event, 0)
    return session


@pytest.mark.parametrize(("latency_ms", "heard_ms"), [(0, 800), (300, 500), (900, 0)])
def test_of_a_reply_that_was_playing_the_part_under_way_is_lost(latency_ms, heard_ms):
    session = reply_of_one_second(latency_ms)
    session.handle(on.LinePlayed(A, 0, 800), 800)
    session.handle(on.LineClosed("caller", "hung up"), 800)
    (turn,) = session.transcript()
    assert (turn.cut_ms, turn.source) == (heard_ms, Source.ESTIMATED)
    assert turn.heard == estimate(WORDS, Cut(A, heard_ms, 1_000, is_complete=True))


@pytest.mark.parametrize(
    ("hung_up_ms", "heard"), [(1_000, 700), (1_100, 800), (1_299, 999), (1_300, None), (5_000, None)]
)
def test_a_reply_that_was_played_out_is_whole_only_once_its_end_has_reached_the_ear(hung_up_ms, heard):
    session = reply_of_one_second(300)
    session.handle(on.LinePlayed(A, 0, 1_000), 1_000)
    session.handle(on.LineClosed("caller", "hung up"), hung_up_ms)
    (turn,) = session.transcript()
    assert (turn.cut_ms, turn.source) == (heard, Source.WHOLE if heard is None else Source.ESTIMATED)

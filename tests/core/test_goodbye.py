"""Hanging up is a transaction: what was said is heard to its end first, and everything before that can take it back."""

from __future__ import annotations

import json

import pytest
from tests.core.drive import BOTH_LINES, CANCELLED, K1, R1, R2, U1, A, Call, FakeLine, audio, called, ended, finished

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.session import Ending


def say_goodbye(call: Call, ms: int = 3_000, *, speed: float = 10) -> None:
    """A response that calls ``end_call`` and says goodbye, delivered ``speed`` times as fast as it plays."""
    call.at(call.now_ms, on.ResponseStarted(R1), audio(R1, A, 40), called(K1, "end_call"), finished(K1))
    call.stream(R1, A, ms - 40, speed=speed)
    call.at(call.now_ms, ended(R1))


def output(call: Call) -> str:
    posted = call.done(do.PostToolOutput)
    assert len(posted) == 1
    return posted[0].output


@pytest.mark.parametrize("reports", BOTH_LINES)
def test_c050_the_line_is_hung_up_when_the_last_of_the_goodbye_was_played(reports):
    call = Call(FakeLine(reports))
    say_goodbye(call)
    call.at(20_000)
    assert call.times(do.HangUp) == pytest.approx([3_000], abs=40)
    assert call.session.ending == Ending("agent", "output of k1")
    assert json.loads(output(call)) == {"call": "over"}
    assert call.anomalies() == []
    last = [type(command) for _, command in call.log[-3:]]
    assert last == [do.PostToolOutput, do.HangUp, do.CloseModel]


def test_a_caller_who_speaks_takes_the_hang_up_back():
    call = Call()
    say_goodbye(call)
    call.at(1_500, on.SpeechStarted(U1, 0), ended(R2, CANCELLED))
    call.at(30_000, on.SpeechStopped(U1, 0))
    assert call.times(do.HangUp) == []
    assert "still open" in output(call)

"""The line first, the model second, and no frame before it is understood."""

from __future__ import annotations

import pytest
from tests.core.drive import R1, A, audio, plan
from tests.core.machines import snapshot, written_rows

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.pickup import PICKUP, Cue, Pickup, Stage
from callwright.core.ports import PlayedReports
from callwright.core.session import Ending, Session
from callwright.errors import IllegalTransition

ROWS = """
CONNECTING CONNECTED -> CONFIGURING
CONNECTING RENEWED -> CONNECTING
CONNECTING ENDED -> OVER
CONFIGURING ACCEPTED -> READY
CONFIGURING REFUSED -> OVER
CONFIGURING RENEWED -> CONNECTING
CONFIGURING ENDED -> OVER
READY ACCEPTED -> READY
READY RENEWED -> CONNECTING
READY MODEL_LOST -> PARTING
READY ENDED -> OVER
PARTING ENDED -> OVER
"""

WAY = {
    Stage.CONNECTING: [],
    Stage.CONFIGURING: [Cue.CONNECTED],
    Stage.READY: [Cue.CONNECTED, Cue.ACCEPTED],
    Stage.PARTING: [Cue.CONNECTED, Cue.ACCEPTED, Cue.MODEL_LOST],
    Stage.OVER: [Cue.ENDED],
}
PAIRS = [(stage, cue) for stage in Stage for cue in Cue]


def at(stage: Stage) -> Pickup:
    pickup = Pickup()
    for cue in WAY[stage]:
        pickup.move(cue)
    assert pickup.stage is stage
    return pickup


def test_rows():
    assert written_rows(PICKUP) == ROWS.split("\n")[1:-1]


@pytest.mark.parametrize(("stage", "cue"), PAIRS, ids=lambda value: value.name)
def test_a_cue_is_followed_or_raises_and_changes_nothing(stage, cue):
    pickup = at(stage)
    if (stage, cue) in PICKUP.rows:
        assert pickup.move(cue) is pickup.stage is PICKUP.rows[stage, cue]
        return
    before = snapshot(pickup)
    with pytest.raises(IllegalTransition):
        pickup.move(cue)
    assert snapshot(pickup) == before


# --- joined to the session -----------------------------------------------------------------------------------------


def told(session: Session, *events: on.Event, now_ms: int = 0) -> list[do.Command]:
    for event in events:
        session.handle(event, now_ms)
    return session.commands()


def test_the_uplink_opens_once_and_only_when_the_configuration_is_taken():
    session = Session(plan())
    assert told(session, on.LineOpened()) == [do.Connect(0, 0)]
    (configure,) = told(session, on.ModelConnected())
    assert isinstance(configure, do.ConfigureSession)
    assert told(session, on.SessionReady()) == [do.OpenUplink()]
    assert told(session, on.SessionReady()) == []


@pytest.mark.parametrize("is_named", [True, False])
def test_c105_a_refused_configuration_ends_the_call_with_the_servers_words(is_named):
    """It applies nothing: the agent would have neither instructions nor tools."""
    session = Session(plan())
    (configure,) = told(session, on.ModelConnected())
    refusal = on.RequestRefused(
        "unsupported_parameter", "no such field", configure.event_id if is_named else None, "audio"
    )
    commands = told(session, refusal)
    assert [type(command) for command in commands] == [do.CloseModel, do.HangUp, do.NoteAnomaly]
    assert session.ending == Ending(
        "fault", "session.update refused: unsupported_parameter: no such field (field audio)"
    )
    assert session.ending.is_failure


def test_a_caller_who_hangs_up_while_the_model_connects_closes_it_and_nothing_follows():
    session = Session(plan())
    assert told(session, on.LineClosed("caller", "hung up")) == [do.CloseModel("line closed")]
    assert told(session, on.ModelConnected(), on.SessionReady()) == []
    assert session.ending == Ending("caller", "hung up")
    assert not session.ending.is_failure


def test_a_call_that_is_over_starts_plays_and_asks_for_nothing():
    """What was on its way when the call ended must not run a tool or reach a line that is closed."""
    session = Session(plan(PlayedReports.MARKS))
    told(session, on.ModelConnected(), on.SessionReady(), on.ResponseStarted(R1))
    ending = told(session, on.HangUpRequested("done"), now_ms=5)
    assert ending == [do.HangUp("done"), do.CloseModel("hung up")]
    late = (
        audio(R1, A, 200),
        on.ToolCalled(R1, A, "k1", "look_up", "{}"),
        on.SpeechStarted("u1", 0),
        on.ResponseEnded(R1, on.ResponseStatus.COMPLETED),
        on.InterruptRequested(),
        on.HangUpRequested("again"),
        on.LineClosed("agent", "done"),
        on.ModelClosed(1000, ""),
        on.TimerFired(),
    )
    assert told(session, *late, now_ms=60_000) == []
    assert session.next_deadline_ms() is None
    assert session.ending == Ending("agent", "done")


def test_a_callers_words_that_come_after_the_end_are_still_in_the_record():
    session = Session(plan())
    told(session, on.ModelConnected(), on.SessionReady(), on.SpeechStarted("u1", 0))
    told(session, on.LineClosed("caller", "hung up"), on.CallerTranscribed("u1", "never mind"))
    assert [turn.heard for turn in session.transcript()] == ["never mind"]


def test_c103_no_reply_is_asked_for_before_the_configuration_is_taken():
    session = Session(plan())
    told(session, on.ModelConnected(), on.ToolCalled(R1, A, "k1", "no_such", "{}"))
    kinds = [type(command) for command in told(session, on.SessionReady())]
    assert kinds == [do.OpenUplink, do.RequestReply]

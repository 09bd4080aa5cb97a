"""Whole calls that the desk makes: line, client, server and model are those of every call, the far end is a tree."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.sim.whole_call import agent_heard, check_in, digest

from callwright.audio.levels import active_spans
from callwright.errors import UsageError
from callwright.ids import Ms
from callwright.sim.exchange import Callee
from callwright.sim.exchange.tree import HANG_UP, Awaits, HoldMusic, Node, Part, Sound, Tree, Wait
from callwright.sim.record import CallRecord
from callwright.sim.world import Options, play


def held(music: Part) -> tuple[Part, ...]:
    pause = Wait(Awaits.NOTHING, 1_000)
    return (pause, music, pause)


def says(line_id: str, waits_ms: Ms = 10_000) -> tuple[Part, ...]:
    return (Sound("person", line_id), Wait(Awaits.ANSWER, waits_ms))


TREE = Tree(
    "queue",
    {
        "queue": Node(held(HoldMusic("music", 1)), "sam"),
        "sam": Node((*says("ask-pool"), *held(Sound("music", "music", 3_000)), *says("thats-all", 3_000)), HANG_UP),
        "nobody": Node((Sound("ringing", "ringing", 12_000),), HANG_UP),
        "engaged": Node((Sound("busy", "busy", 4_000),), HANG_UP),
    },
)


@cache
def call(answers: str, hiss_dbfs: int | None = None) -> CallRecord:
    """The call with seed 1, played once for all tests that look at it."""
    return played(answers, hiss_dbfs=hiss_dbfs)


def played(answers: str, options: Options | None = None, hiss_dbfs: int | None = None) -> CallRecord:
    """A call that the desk makes, on hold for 4 s, in which music is no turn."""
    callee = Callee(TREE, answers, rings=1, hold_s=4, hiss_dbfs=hiss_dbfs)
    outbound = replace(check_in(), name="outbound", caller=(), callee=callee, server={"music_turn_rate": 0})
    return play(outbound, 1, options=options)


def kinds(record: CallRecord) -> list[str]:
    assert record.far is not None
    return [span.kind for span in record.far.spans]


@pytest.mark.parametrize("hiss_dbfs", [None, -42])
def test_the_agent_waits_through_the_music_and_talks_with_the_person(hiss_dbfs: int | None) -> None:
    """C070: also where the line is never silent."""
    record = call("queue", hiss_dbfs)
    assert kinds(record) == ["ringing", "music", "person", "music", "person"]
    assert agent_heard(record)[0].endswith("You will find the pool on floor two.")
    assert (record.ended_by, record.error, record.unspoken) == ("agent", None, ())
    assert [line.line_id for line in record.caller_lines] == ["ask-pool", "thats-all"]
    assert record.far is not None
    on_hold = [(span.started_ms, span.ended_ms) for span in record.far.spans if span.kind != "person"]
    rate_hz, agent = record.recording.rate_hz, record.recording.agent
    spoken = active_spans(np.asarray(agent), rate_hz, -50, hang_ms=100)
    assert not [began for began, ended in spoken for start, end in on_hold if began < end and ended > start]


def test_the_same_seed_makes_the_same_call() -> None:
    assert digest(call("queue", -42)) == digest(played("queue", hiss_dbfs=-42))


def test_the_time_on_hold_is_changed_for_a_run() -> None:
    record = played("queue", Options(hold_s=1))
    assert record.far is not None
    music = record.far.spans[1]
    assert (music.kind, music.ended_ms - music.started_ms) == ("music", 1_000)
    assert record.settings["hold_s"] == 1
    with pytest.raises(UsageError, match="has no callee"):
        play(check_in(), 1, options=Options(hold_s=7))


@pytest.mark.parametrize(("answers", "ends_ms"), [("nobody", 18_000), ("engaged", 10_000)])
def test_nobody_can_be_reached(answers: str, ends_ms: Ms) -> None:
    """The far end ends the call, and nothing was said to it."""
    record = call(answers)
    assert (record.ended_by, record.ended_because) == ("caller", "hung up")
    assert record.ended_ms == pytest.approx(ends_ms, abs=100)
    assert record.far is not None
    assert not record.far.reached_person
    assert not record.spoken

"""Who begins a call that the agent makes: the callee, and the agent only where he says nothing."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import as_file, files

import pytest

from callwright.apps.pharmacy import QUIET_MS
from callwright.ids import Ms
from callwright.measure.far import FarSide, find_far_side
from callwright.sim.exchange import Callee
from callwright.sim.exchange.tree import HANG_UP, Awaits, Node, Sound, Tree, Wait
from callwright.sim.scenario import load_scenario
from callwright.sim.world import Options, play

ANSWERS = {
    "greets": Node((Wait(Awaits.NOTHING, 200), Sound("person", "sam-hello"), Wait(Awaits.ANSWER, 10_000)), HANG_UP),
    "silent": Node((Wait(Awaits.ANSWER, 20_000),), HANG_UP),
}


def far_side(answers: str, rings: int = 0, connect_ms: Ms = 0) -> FarSide:
    with as_file(files("callwright.apps.pharmacy") / "scenarios" / "hold.yaml") as path:
        scenario = load_scenario(path)
    scenario = replace(scenario, callee=Callee(Tree(answers, ANSWERS), answers, rings, 0))
    far = find_far_side(play(scenario, 1, options=Options(connect_ms=connect_ms)))
    assert far is not None
    return far


def test_c068_a_callee_who_greets_is_answered_behind_his_greeting() -> None:
    """From 0.2 s to about 2.1 s after the answer; 1.7 s is from the end of the case's greeting to its limit."""
    far = far_side("greets")
    (greeting,) = far.person
    assert greeting.end_ms < far.agent[0].start_ms < greeting.end_ms + 1_700


@pytest.mark.parametrize("connect_ms", [0, 9_000])
def test_c068_a_callee_who_says_nothing_is_spoken_to_at_the_limit_and_no_ring_is(connect_ms: Ms) -> None:
    """Two rings, of which a slow connection hears nothing, and which its loss is no reason to speak to."""
    far = far_side("silent", 2, connect_ms)
    ringing = far.spans("ringing")[-1]
    pause_ms = 4_000
    begins_ms = max(ringing.ended_ms - pause_ms, connect_ms) + QUIET_MS
    assert begins_ms < far.agent[0].start_ms < begins_ms + 1_500

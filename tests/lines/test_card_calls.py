"""Whole calls through the sound card's callback: the embedded server at one end, a scripted caller at the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.lines.fake_card import FakeCard
from tests.sim.whole_call import says

import callwright as cw
from callwright.apps.hotel import desk
from callwright.audio.formats import FRAME_MS, PCM16_24K
from callwright.cli.plan import ROOTS
from callwright.ids import Ms
from callwright.lines.soundcard import Glitches, sound_card
from callwright.runtime.call import Call
from callwright.sim.agents import tools_of
from callwright.sim.caller import Anchor, ScriptedCaller, Step
from callwright.sim.line import LineKind, LineSettings
from callwright.sim.loop import loop_ms
from callwright.sim.network import Network, NetworkSettings
from callwright.sim.scenario import Scenario, load_scenario, locate_scenario
from callwright.sim.server import MemoryConnector
from callwright.sim.sessions import Sessions
from callwright.sim.vloop import run_virtual
from callwright.sim.world import Options, make_session, play

SEED = 1


@cache
def scenario(name: str) -> Scenario:
    """A shipped scenario, on a sound card."""
    shipped = load_scenario(locate_scenario(name, ROOTS), tools_of)
    steps = tuple(map(as_heard, shipped.caller))
    return replace(shipped, line=LineSettings(LineKind.SPEAKER), caller=steps)


def as_heard(step: Step) -> Step:
    """A loudspeaker does not say which reply it plays: one that is named by its tool is the next that begins."""
    if step.when.anchor is not Anchor.HOLDING:
        return step
    return says(step.line_id, Anchor.REPLY_START, step.when.offset_ms)


@dataclass
class Taken:
    """A call through a fake card."""

    result: cw.CallResult
    card: FakeCard
    glitches: Glitches

    @property
    def said(self) -> list[tuple[str, str, str]]:
        return said(self.result.turns)


def said(turns: Sequence[cw.Turn]) -> list[tuple[str, str, str]]:
    return [(turn.speaker, turn.heard, turn.written) for turn in turns]


@cache
def take(name: str, opens_after_ms: Ms = 0, **card: Any) -> Taken:
    """Take the call in virtual time; when the caller hangs up, so does whoever sits at the card."""
    played = scenario(name)
    sessions = Sessions(lambda rng: make_session(played, SEED, Options(), rng=rng), SEED)
    caller = ScriptedCaller(played.caller, played.lines, PCM16_24K.rate_hz)
    fake = FakeCard(caller, **card)

    def watch(call: Call) -> None:
        fake.hung_up = lambda: call.hang_up("Ctrl-C")

    async def run() -> Taken:
        async with sound_card(portaudio=fake) as line:
            network = Network(MemoryConnector(sessions.next), NetworkSettings(opens_after_ms), loop_ms)
            result = await cw.run(desk, line, connector=network, watch=watch)
        return Taken(result, fake, line.glitches)

    return run_virtual(run())


@pytest.mark.parametrize("name", ["check-in", "talk-over"])
def test_a_call_through_the_callback_is_the_call_of_the_simulated_card(name: str) -> None:
    """What was said, heard and written is the same to the word; nothing went wrong on the way."""
    taken = take(name)
    assert taken.said == said(play(scenario(name), SEED).turns)
    assert taken.glitches == Glitches()
    assert not taken.result.lost_ms


def test_what_a_cut_reply_is_said_to_have_played_is_what_the_loudspeaker_played() -> None:
    """The cut is where the agent fell silent at the ear, within two frames, latency and all."""
    taken = take("check-in", latency_ms=100)
    (cut,) = (turn for turn in taken.result.turns if turn.cut_ms is not None)
    assert cut.heard != cut.written
    ear = taken.card.ear
    first = next(n for n, frame in enumerate(ear) if frame.any())
    silent = next(n for n in range(first, len(ear)) if not np.any(ear[n : n + 15]))
    assert cut.cut_ms == pytest.approx((silent - first) * FRAME_MS, abs=2 * FRAME_MS)


def test_a_handshake_of_three_seconds_costs_the_caller_no_word() -> None:
    """The line is open first: who speaks from the first frame on is heard whole when the session stands."""
    at_once = take("talk-over")
    late = take("talk-over", opens_after_ms=3_000)
    assert late.result.session_ready_ms is not None
    assert late.result.session_ready_ms >= 3_000
    assert late.result.held_sent_ms == pytest.approx(late.result.session_ready_ms, abs=FRAME_MS)
    assert not late.result.lost_ms
    assert [each for each in late.said if each[0] == "caller"] == [each for each in at_once.said if each[0] == "caller"]


def test_a_call_goes_on_over_calls_that_came_too_late() -> None:
    """A frame missed now and then is a click, or the end of a word; every reply comes, and is played once."""
    whole = take("pickup")
    taken = take("pickup", missed=tuple(range(100, 2_000, 97)))
    assert taken.glitches.microphone_lost == taken.glitches.loudspeaker_dry > 5
    assert [each for each in taken.said if each[0] == "agent"] == [each for each in whole.said if each[0] == "agent"]
    assert not taken.result.ending.is_failure


def test_a_card_that_is_unplugged_ends_the_call_with_the_reason() -> None:
    taken = take("check-in", unplugged_ms=3_000)
    assert (taken.result.ending.by, taken.result.ending.is_failure) == ("fault", True)
    assert "unplugged" in taken.result.ending.reason

"""A shipped scenario with an action against free speech, in virtual time: what it expects of a client holds here, too.

The server is seen through the wire alone, as any server is that is not ours.
"""

from __future__ import annotations

import asyncio
import random
from importlib import resources
from pathlib import Path

from callwright.measure.figures import METRICS, figures_of
from callwright.measure.hearing import hear_call
from callwright.measure.verdict import judge
from callwright.sim.agents import tools_of
from callwright.sim.ear import Ear
from callwright.sim.live import take_elsewhere
from callwright.sim.open.recorded import RecordedThinker
from callwright.sim.open.sessions import open_peer
from callwright.sim.record import CallRecord
from callwright.sim.rules import RulesModel
from callwright.sim.scenario import Scenario, load_scenario
from callwright.sim.server import MemoryConnector
from callwright.sim.speech import RATE_HZ, Pcm, Speech
from callwright.sim.vloop import run_virtual
from callwright.wire.profiles import POLYAI


class EarOf:
    """A `Recogniser` that knows the callers of one app, and takes its time."""

    def __init__(self, speech: Speech) -> None:
        self._ear = Ear(line for line in speech.values() if line.kind == "caller")

    async def words(self, audio: Pcm) -> str:
        await asyncio.sleep(0.15)
        return " ".join(word.text for word in self._ear.listen(audio, RATE_HZ))


def played(scenario: Scenario) -> CallRecord:
    speech = Speech.load(scenario.speech)
    recogniser, model = EarOf(speech), RulesModel.load(scenario.rules, speech, scenario.rates)
    thinker = RecordedThinker(model, speech, random.Random(1))
    connector = MemoryConnector(lambda: open_peer("polyai", recogniser, thinker, random.Random(1)))
    return run_virtual(take_elsewhere(scenario, 1, connector, POLYAI))


def test_what_a_scenario_expects_holds_where_speech_is_free() -> None:
    path = Path(str(resources.files("callwright.apps.refunds"))) / "scenarios" / "did-it-go-through.yaml"
    scenario = load_scenario(path, tools_of, METRICS)
    record = played(scenario)
    assert record.error is None
    heard = hear_call(record, scenario.lines)
    verdict = judge(figures_of(heard), scenario.expect)
    assert not verdict.failed
    assert {"missing_effects", "duplicate_effects", "untold_at_hangup"} <= set(verdict.passed)

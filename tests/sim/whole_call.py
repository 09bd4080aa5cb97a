"""Whole calls of the hotel desk: the shipped scenario, and others built from it. As a script, prints a call's hash.

``python whole_call.py SEED``
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import as_file, files
from typing import Any

from callwright.ids import ItemId, Ms
from callwright.sim.agents import load_agent
from callwright.sim.baselines import HABITS
from callwright.sim.caller import Anchor, Step, Trigger
from callwright.sim.quick import QuickCall, QuickResult, ToldSpeech, play_quick
from callwright.sim.record import CallRecord
from callwright.sim.rules import RulesModel
from callwright.sim.scenario import Scenario, load_scenario
from callwright.sim.speech import Speech
from callwright.sim.world import play

AT_THE_DESK = tuple({(each.early, each.hang_up, each.on_hold): name for name, each in HABITS.items()}.values())
"""Baselines that differ at a desk without actions: of those that differ only in what they do with actions, one."""


@cache
def check_in() -> Scenario:
    with as_file(files("callwright.apps.hotel") / "scenarios" / "check-in.yaml") as path:
        return load_scenario(path)


def scenario(*steps: Step) -> Scenario:
    """The same desk, called by somebody who does this, and answered without the notice."""
    return replace(check_in(), name="by-hand", caller=steps, rates={"forgets_notice": 1})


def says(line_id: str | None, anchor: Anchor, ms: Ms, tool: str | None = None) -> Step:
    return Step(Trigger(anchor, ms, tool), line_id)


def first(line_id: str) -> Step:
    return says(line_id, Anchor.PICKUP, 400)


def hangs_up(ms: Ms = 1_500) -> Step:
    return says(None, Anchor.REPLY_END, ms)


LOOK_UP = first("look-up-okafor")
TALKED_OVER = scenario(LOOK_UP, says("ask-breakfast", Anchor.HOLDING, 500, "look_up_booking"), hangs_up())
WAITED_FOR = scenario(LOOK_UP, hangs_up(6_000))


@cache
def check_in_call() -> CallRecord:
    """The shipped scenario with seed 1, played once for all tests that look at it."""
    return play(check_in(), 1)


def quick(made: Scenario, seed: int, **server: Any) -> QuickResult:
    """The call of a scenario, without samples."""
    speech = Speech.load(made.speech)
    told = ToldSpeech([speech[line_id] for line_id in speech])
    model = RulesModel.load(made.rules, speech, made.rates)
    line, given = replace(made.line, format=None), {**made.server, **server}
    return play_quick(QuickCall(load_agent(made.agent), model, told, made.caller, line, given, made.connection), seed)


def digest(record: CallRecord) -> str:
    """One hash over everything that is known of a call."""
    sound = record.recording
    told = repr(replace(record, recording=sound.rate_hz, trace=b""))  # type: ignore[arg-type]
    parts = (record.trace, sound.caller.tobytes(), sound.agent.tobytes(), told.encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def heard_by_the_books(record: CallRecord, item_id: ItemId, less_ms: Ms = 0) -> str:
    """The words of a reply that reached the ear: those whose middle lies in what the line played, less its end."""
    (spoken,) = (item for item in record.spoken if item.item_id == item_id)
    spans = [(span.from_ms, span.to_ms) for span in record.ear if span.item_id == item_id]
    heard = [
        word.text
        for word in spoken.words
        if any(start <= (word.start_ms + word.end_ms) / 2 <= end - less_ms for start, end in spans)
    ]
    return " ".join(heard)


def agent_heard(record: CallRecord) -> Sequence[str]:
    return [turn.heard for turn in record.turns if turn.speaker == "agent"]


if __name__ == "__main__":
    sys.stdout.write(digest(play(check_in(), int(sys.argv[1]))))

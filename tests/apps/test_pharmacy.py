"""The caller of the pharmacy stands on the public API alone, keeps quiet on hold, and brings what a person said."""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from importlib.resources import as_file, files
from typing import Any

import pytest

import callwright as cw
from callwright.apps import pharmacy
from callwright.core.toolcalls import AfterOutput
from callwright.measure.figures import measure_call
from callwright.measure.verdict import judge
from callwright.sim.exchange.tree import read_tree
from callwright.sim.record import CallRecord
from callwright.sim.scenario import Scenario, load_scenario
from callwright.sim.speech import Speech
from callwright.sim.world import OURS, Options, play

TOOLS = pharmacy.caller.tools


def test_it_uses_the_public_api_only() -> None:
    for node in ast.walk(ast.parse(inspect.getsource(pharmacy))):
        match node:
            case ast.Import(names=names):
                modules = [name.name for name in names]
            case ast.ImportFrom(module=str() as module):
                modules = [module]
            case ast.Attribute(value=ast.Name(id="cw"), attr=name):
                assert name in cw.__all__
                continue
            case _:
                continue
        for module in modules:
            assert module == "callwright" or module.partition(".")[0] in sys.stdlib_module_names, module


def test_c060_nothing_is_said_to_a_key_or_a_wait() -> None:
    assert {name: tool.after for name, tool in TOOLS.items()} == {
        "wait": AfterOutput.SILENCE,
        "press_keys": AfterOutput.SILENCE,
        "leave_voicemail": AfterOutput.HANG_UP,
        "end_call": AfterOutput.HANG_UP,
    }


@pytest.mark.parametrize(
    ("name", "arguments", "spoken"),
    [
        ("wait", [], None),
        ("press_keys", ["digits"], None),
        ("leave_voicemail", ["message"], "message"),
        ("end_call", ["result", "goodbye"], "goodbye"),
    ],
)
def test_what_a_tool_asks_for(name: str, arguments: list[str], spoken: str | None) -> None:
    parameters: Any = TOOLS[name].schema(spoken=True)["parameters"]
    assert parameters["required"] == arguments
    assert [key for key, value in parameters["properties"].items() if value.get("poly_spoken")] == [spoken] * bool(
        spoken
    )


@cache
def scenario(name: str) -> Scenario:
    with as_file(files("callwright.apps.pharmacy") / "scenarios" / f"{name}.yaml") as path:
        return load_scenario(path)


def failed(name: str, record: CallRecord) -> list[str]:
    figures = measure_call(record, Speech.load(scenario(name).speech))
    return sorted(failure.name for failure in judge(figures, scenario(name).expect).failed)


@pytest.mark.parametrize("name", ["hold", "voicemail-in-parts", "refuses-ai"])
def test_a_scenario_holds(name: str) -> None:
    """C063, C065, C068: a voicemail is told from a person, and a person is let finish his greeting."""
    assert failed(name, play(scenario(name), 1, client=OURS, options=Options())) == []


def test_who_asks_for_a_reply_after_every_output_talks_to_the_queue() -> None:
    record = play(scenario("hold"), 1, client="talks-to-the-queue", options=Options())
    assert "spoke_on_hold" in failed("hold", record)


def test_every_line_of_the_far_end_is_in_the_tree() -> None:
    directory = scenario("hold").rules.parent
    speech = Speech.load(directory / "speech")
    unused = set(speech.lines_of("caller")) - {*read_tree(directory / "riverside.tree.yaml", speech).lines}
    assert unused == {"sam-hello", "sam-not-ready"}, "these are for tests of the rules"

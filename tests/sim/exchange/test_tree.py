"""Tree files are read strictly, and every mistake is told with its place; the schema refuses the same."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import callwright
from callwright.errors import ScenarioError
from callwright.sim.exchange.callee import Callee
from callwright.sim.exchange.tree import KEYS_OF, REQUIRED, Awaits, HoldMusic, Node, Part, Sound, Tree, Wait, read_tree
from callwright.sim.scenario import load_scenario
from callwright.sim.speech import Speech

PACKAGE = Path(callwright.__file__).parent
HOTEL = PACKAGE / "apps" / "hotel"
SPEECH = Speech.load(HOTEL / "speech")
PUBLISHED = PACKAGE.parent.parent / "docs" / "reference" / "phone-tree.schema.json"
SCHEMA: dict[str, Any] = json.loads(PUBLISHED.read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

FRONT_DESK = """\
answers: menu
nodes:
  menu: {kind: menu, says: [go-on, ask-pool], keys: {1: hours, "#": queue}, waits_ms: 5000, rounds: 2, then: queue}
  hours: {kind: announcement, says: [ask-wifi], then: menu}
  queue: {kind: queue, says: [go-on], then: sam}
  sam:
    kind: person
    script:
      - {says: ask-parking}
      - {holds_ms: 8000}
      - {says: thats-all, waits_ms: 3000}
  mailbox: {kind: voicemail, says: [ask-check-in, thank-you], pause_ms: 900}
  nobody: {kind: ringing, times: 8}
  engaged: {kind: busy, lasts_ms: 4000}
"""


def read(tmp_path: Path, text: str) -> Tree:
    path = tmp_path / "desk.tree.yaml"
    path.write_text(text, "utf-8")
    return read_tree(path, SPEECH)


def held(music: Part) -> tuple[Part, ...]:
    pause = Wait(Awaits.NOTHING, 1_000)
    return (pause, music, pause)


def test_every_kind_of_node_is_read(tmp_path: Path) -> None:
    halves = held(HoldMusic("music", 2))
    assert read(tmp_path, FRONT_DESK) == Tree(
        "menu",
        {
            "menu": Node(
                (Sound("menu", "go-on"), Sound("menu", "ask-pool"), Wait(Awaits.KEY, 5000, "menu")),
                "queue",
                {"1": "hours", "#": "queue"},
                rounds=2,
            ),
            "hours": Node((Sound("announcement", "ask-wifi"),), "menu"),
            "queue": Node((*halves, Sound("announcement", "go-on"), *halves), "sam"),
            "sam": Node(
                (
                    Sound("person", "ask-parking"),
                    Wait(Awaits.ANSWER, 10_000),
                    *held(Sound("music", "music", 8_000)),
                    Sound("person", "thats-all"),
                    Wait(Awaits.ANSWER, 3_000),
                ),
                "hang_up",
            ),
            "mailbox": Node(
                (
                    Sound("announcement", "ask-check-in"),
                    Wait(Awaits.NOTHING, 900),
                    Sound("announcement", "thank-you"),
                    Sound("beep", "beep", 500),
                    Wait(Awaits.NOTHING, 60_000, "recording"),
                ),
                "hang_up",
            ),
            "nobody": Node((Sound("ringing", "ringing", 48_000),), "hang_up"),
            "engaged": Node((Sound("busy", "busy", 4_000),), "hang_up"),
        },
    )


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("answers: menu", "answers: menus", '1:10: answers: expected one of .*; got "menus"; did you mean "menu"?'),
        ("kind: busy", "kind: bussy", '14:19: nodes.engaged.kind: .* did you mean "busy"?'),
        ("lasts_ms: 4000", "times: 3", "14:25: nodes.engaged: expected one of kind, lasts_ms, then"),
        ("1: hours", "11: hours", '3:54: nodes.menu.keys: .* got "11"'),
        ("1: hours", "1: our", '3:57: nodes.menu.keys.1: .* did you mean "hours"?'),
        ('keys: {1: hours, "#": queue}', "keys: {}", "nodes.menu.keys: expected at least one key"),
        ("says: [ask-wifi]", "says: [wifi]", '4:38: nodes.hours.says 1: expected a line of the caller; got "wifi"'),
        ("then: sam", "then: hours", "3:9: nodes.menu: expected to come to an end without a key; got menu -> queue"),
        ("{holds_ms: 8000}", "{holds_ms: 8000, waits_ms: 9}", "10:36: .*expected a line \\(says\\) whose answer"),
        ("{holds_ms: 8000}", "{waits_ms: 8000}", "10:9: .*expected exactly one of says, holds_ms"),
        ("{kind: queue, says", "{kind: queue, music: ask-pool, says", "5:31: nodes.queue.music: expected one of music"),
        ("nobody:", "hang_up:", "nodes.hang_up: expected another name"),
        ("times: 8", "times: 0", "nodes.nobody.times: expected a whole number from 1 to 100"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in FRONT_DESK
    with pytest.raises(ScenarioError, match=f"desk.tree.yaml:.*{told}"):
        read(tmp_path, FRONT_DESK.replace(old, new, 1))


def test_a_tree_without_a_node_is_told_to_have_one(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"desk.tree.yaml:2:8: nodes: expected at least one node"):
        read(tmp_path, "answers: menu\nnodes: {}\n")


# --- the schema ---------------------------------------------------------------------------------------------------


def test_the_schema_in_the_package_is_the_published_one() -> None:
    assert (PACKAGE / "sim" / "exchange" / "tree.schema.json").read_text("utf-8") == PUBLISHED.read_text("utf-8")


def test_the_schema_has_the_keys_that_the_reader_takes() -> None:
    VALIDATOR.check_schema(SCHEMA)
    for part, keys in KEYS_OF.items():
        schema = SCHEMA["$defs"][part] if part else SCHEMA
        assert tuple(schema["properties"]) == keys
        assert tuple(schema.get("required", ())) == REQUIRED.get(part, ())
        assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("node", "key", "value"),
    [
        ("menu", "keys", {"12": "hours"}),
        ("menu", "keys", {}),
        ("menu", "rounds", 0),
        ("menu", "then", None),
        ("hours", "says", []),
        ("hours", "keys", {"1": "menu"}),
        ("sam", "script", [{"holds_ms": 8000, "says": "go-on"}]),
        ("sam", "script", [{"waits_ms": 8000}]),
        ("nobody", "kind", "tree"),
    ],
)
def test_schema_and_reader_refuse_the_same(tmp_path: Path, node: str, key: str, value: object) -> None:
    content = yaml.safe_load(FRONT_DESK.replace("1: hours", '"1": hours'))
    VALIDATOR.validate(content)
    content["nodes"][node][key] = value
    assert not VALIDATOR.is_valid(content)
    with pytest.raises(ScenarioError):
        read(tmp_path, yaml.safe_dump(content, sort_keys=False))


# --- who is called, in a scenario ---------------------------------------------------------------------------------

SCENARIO = """\
scenario: outbound
about: the desk calls a front desk
agent: callwright.apps.hotel:desk
line: {kind: phone}
model: {rules: %s}
callee: {tree: desk.tree.yaml, answers: sam, rings: 0, hold_s: 700}
max_hold_s: 90
limit_ms: 60000
expect: {}
"""


@pytest.fixture
def outbound(tmp_path: Path) -> Path:
    """A scenario beside its tree; the rules file is the hotel's."""
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "desk.tree.yaml").write_text(FRONT_DESK, "utf-8")
    for name in ("hotel.model.yaml", "speech"):
        (tmp_path / name).symlink_to(HOTEL / name)
    path = tmp_path / "scenarios" / "outbound.yaml"
    path.write_text(SCENARIO % "hotel.model.yaml", "utf-8")
    return path


def test_a_scenario_names_whom_the_agent_calls(outbound: Path, tmp_path: Path) -> None:
    scenario = load_scenario(outbound)
    assert scenario.callee == Callee(read(tmp_path, FRONT_DESK), "sam", 0, 700)
    assert scenario.caller == ()
    assert scenario.ends_ms == 60_000 + 700_000
    assert scenario.max_hold_s == 90


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("answers: sam", "answers: pam", '6:41: callee.answers: expected one of .*; got "pam"; did you mean "sam"?'),
        ("desk.tree", "disk.tree", '6:16: callee.tree: expected a tree file in .*; did you mean "desk.tree.yaml"?'),
        ("hold_s: 700", "hold_s: long", "6:64: callee.hold_s: expected a whole number from 0 to 21600"),
        ("max_hold_s: 90", "max_hold_s: 0", "7:13: max_hold_s: expected a whole number from 1 to 21600"),
        ("callee: {tree: desk.tree.yaml, answers: sam, rings: 0, hold_s: 700}", "caller: []", "7:1.*expected callee"),
        ("limit_ms: 60000", "caller: []", "1:1: expected exactly one of caller .*, callee"),
        ("callee: {tree", "about_it: {tree", 'expected one of .*; got "about_it"'),
    ],
)
def test_a_mistake_in_a_callee_is_told_with_its_place(outbound: Path, old: str, new: str, told: str) -> None:
    text = outbound.read_text("utf-8")
    assert old in text
    outbound.write_text(text.replace(old, new), "utf-8")
    with pytest.raises(ScenarioError, match=told):
        load_scenario(outbound)

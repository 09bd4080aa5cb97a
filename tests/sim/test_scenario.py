"""Scenario files are read strictly, and every mistake is told with its place."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import callwright
import callwright as cw
from callwright.audio.formats import PCM16_16K
from callwright.declare.actions import Money
from callwright.declare.tools import Tool
from callwright.errors import ScenarioError, UsageError
from callwright.sim.behind.backend import open_backend
from callwright.sim.behind.settings import with_provider
from callwright.sim.caller import Anchor, Step, Trigger, drawn
from callwright.sim.line import LineKind
from callwright.sim.network import NetworkSettings, Stall
from callwright.sim.provider import Charge
from callwright.sim.scenario import KEYS, REQUIRED, find_scenarios, load_scenario, locate_scenario
from callwright.sim.server.settings import SETTINGS, ServerSettings, misfit
from callwright.sim.vloop import run_virtual

PACKAGE = Path(callwright.__file__).parent
APPS = PACKAGE / "apps"
CHECK_IN = APPS / "hotel" / "scenarios" / "check-in.yaml"
PUBLISHED = PACKAGE.parent.parent / "docs" / "reference" / "scenario.schema.json"
SCHEMA: dict[str, Any] = json.loads(PUBLISHED.read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


desk = cw.Agent("desk", model=cw.polyai(), instructions="Be brief.")


@desk.tool
async def look_up_booking(ctx: cw.Context[None], surname: str, holding: cw.Spoken) -> cw.Facts:
    """Look up a booking."""
    return {}


@desk.tool(after=cw.AfterOutput.HANG_UP)
async def end_call(ctx: cw.Context[None], reason: str, goodbye: cw.Spoken) -> str:
    """Hang up."""
    return reason


@desk.tool(after=cw.AfterOutput.SILENCE)
async def wait(ctx: cw.Context[None]) -> cw.Facts:
    """Say nothing."""
    return {}


def tools_of(entry: str) -> dict[str, Tool]:
    return desk.tools


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A copy of the hotel's files in which a scenario can be spoiled; the recorded lines stay where they are."""
    (tmp_path / "hotel.model.yaml").symlink_to(APPS / "hotel" / "hotel.model.yaml")
    (tmp_path / "speech").symlink_to(APPS / "hotel" / "speech")
    (tmp_path / "scenarios").mkdir()
    return tmp_path


def write(app: Path, text: str, name: str = "check-in") -> Path:
    path = app / "scenarios" / f"{name}.yaml"
    path.write_text(text, "utf-8")
    return path


def changed(app: Path, before: str, after: str) -> Path:
    text = CHECK_IN.read_text("utf-8")
    assert before in text
    return write(app, text.replace(before, after, 1))


# --- reading ------------------------------------------------------------------------------------------------------


def test_the_check_in_scenario_is_read_whole() -> None:
    scenario = load_scenario(CHECK_IN, tools_of)
    assert (scenario.name, scenario.agent) == ("check-in", "callwright.apps.hotel:desk")
    assert (scenario.line.kind, scenario.line.hidden_lag_ms, scenario.limit_ms) == (LineKind.PHONE, 0, 120_000)
    assert scenario.caller == (
        Step(Trigger(Anchor.PICKUP, 400), "ask-check-in"),
        Step(Trigger(Anchor.REPLY_START, 6500), "ask-parking"),
        Step(Trigger(Anchor.REPLY_END, 800), "go-on"),
        Step(Trigger(Anchor.REPLY_END, 1000), None),
    )
    assert scenario.rules == APPS / "hotel" / "hotel.model.yaml"
    assert scenario.speech == APPS / "hotel" / "speech"
    assert (scenario.expect.max["heard_error_ms"], scenario.expect.heard) == (20, ("parking",))
    assert scenario.before is not None
    assert (scenario.before.client, scenario.before.must_fail) == ("naive", ("unheard_words_in_transcript",))


def test_settings_of_line_model_and_server_are_read(app: Path) -> None:
    line = "{kind: speaker, format: audio/pcm;rate=16000, fixed_lag_ms: 300, lose_marks: [2], close_at_ms: 9000}"
    text = CHECK_IN.read_text("utf-8").replace("{kind: phone}", line)
    text = text.replace("hotel.model.yaml}", "hotel.model.yaml, recaps: 1/2}")
    text += "connection: {opens_after_ms: 10000, stalls: [{at_ms: 5000, for_ms: 500}, {at_ms: 9000, for_ms: 1}]}\n"
    server = "server: {lead_ms: 100, answer_ms: [430, 640], ready_after_ms: [230, 660, 2830]}\n"
    scenario = load_scenario(write(app, f"{text}limit_ms: 5000\n{server}"))
    assert scenario.line.kind is LineKind.SPEAKER
    assert (scenario.line.stream_format, scenario.line.fixed_lag_ms) == (PCM16_16K, 300)
    assert (scenario.line.lose_marks, scenario.line.close_at_ms, scenario.limit_ms) == ((2,), 9000, 5000)
    assert scenario.rates == {"recaps": 0.5}
    assert scenario.connection == NetworkSettings(10_000, (Stall(5_000, 500), Stall(9_000, 1)))
    assert scenario.server == {"lead_ms": 100, "answer_ms": [430, 640], "ready_after_ms": [230, 660, 2830]}


def test_a_holding_line_is_a_trigger_of_a_tool_that_the_agent_has(app: Path) -> None:
    path = changed(app, "reply.start + 6500 ms", "look_up_booking.holding + 500 ms")
    trigger = load_scenario(path, tools_of).caller[1].when
    assert trigger == Trigger(Anchor.HOLDING, 500, "look_up_booking")
    assert (str(trigger), trigger.is_interruption) == ("look_up_booking.holding + 500 ms", True)


@pytest.mark.parametrize("text", ["pickup + 400 ms", "reply.end + 700 ms", "previous.end + 0 ms", "reply.start + 1 ms"])
def test_a_trigger_prints_as_it_is_written(app: Path, text: str) -> None:
    path = changed(app, "reply.start + 6500 ms", text)
    assert str(load_scenario(path).caller[1].when) == text


def test_a_range_and_a_list_are_drawn_for_each_seed(app: Path) -> None:
    text = CHECK_IN.read_text("utf-8")
    drawn_text = "reply.start + 6500..6600 ms, says: [ask-parking, go-on]"
    path = write(app, text.replace("reply.start + 6500 ms, says: ask-parking", drawn_text))
    script = load_scenario(path, tools_of).caller
    assert script[1] == Step(Trigger(Anchor.REPLY_START, 6500, is_anywhere=True), "ask-parking", 100, ("go-on",))
    steps = [drawn(script, seed)[1] for seed in range(300)]
    assert {step.when.offset_ms for step in steps} > {6500, 6600}
    assert {step.line_id for step in steps} == {"ask-parking", "go-on"}
    assert all(6500 <= step.when.offset_ms <= 6600 and step.later_ms == 0 for step in steps)
    assert [drawn(script, seed)[1] for seed in range(9)] == steps[:9]
    assert drawn(script, 1)[::2] == script[::2]


# --- mistakes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "place", "message"),
    [
        ("reply.start + 6500", "look_up_boking.holding + 4000", "8:12",
         'trigger "look_up_boking.holding": agent hotel has no such tool (look_up_booking, end_call, wait)'
         '; did you mean "look_up_booking"?'),
        ("reply.start", "reply.begin", "8:12", 'trigger "reply.begin": expected one of pickup, reply.start'),
        ("reply.start + 6500 ms", "reply.start", "8:12", "and then + N ms"),
        ("reply.start + 6500 ms", "reply.start + 4 s", "8:12", "and then + N ms"),
        ("reply.start + 6500 ms", "reply.start - 4 ms", "8:12", "and then + N ms"),
        ("reply.start + 6500 ms", "reply.start + 65..65 ms", "8:12", "the latest instant to be later than the first"),
        ("reply.end + 800 ms", "reply.end + 300..900 ms", "9:12", "expected at least 700 ms"),
        ("says: go-on", "says: [go-on]", "9:38", "expected a list of at least 2"),
        ("says: go-on", "says: [go-on, go-in]", "9:46", 'got "go-in"; did you mean "go-on"?'),
        ("reply.end + 800 ms", "reply.end + 300 ms", "9:12", "expected at least 700 ms"),
        ("pickup + 400 ms", "previous.end + 400 ms", "7:12", "expected a line of the caller before it"),
        ("says: go-on", "says: go-in", "9:38", 'expected one of 15 names, nearest go-on, '),
        ("says: go-on", "says: go-in", "9:38", 'got "go-in"; did you mean "go-on"?'),
        ("reply.start + 6500", "wait.holding + 500", "8:12",
         'trigger "wait.holding": the tool has no holding line; declare one of its arguments as callwright.Spoken'),
        ("says: go-on", "says: parking", "9:38", "caller 3.says: expected a line of the caller"),
        ("does: hang_up", "does: hangup", "10:39", 'got "hangup"; did you mean "hang_up"?'),
        ("does: hang_up", "dose: hang_up", "10:33", 'when, says, does, level_db; got "dose"; did you mean "does"?'),
        ("says: go-on", "says: go-on, does: hang_up", "9:5", "expected exactly one of says, does beside when"),
        ("kind: phone", "kind: phnoe", "4:14", 'one of phone, speaker; got "phnoe"; did you mean "phone"?'),
        ("kind: phone", "kind: phone, hiden_lag_ms: 5", "4:21", 'did you mean "hidden_lag_ms"?'),
        ("kind: phone", "kind: phone, hidden_lag_ms: -5", "4:36", "expected a whole number from 0 to 60000"),
        ("kind: phone", "kind: phone, fixed_lag_ms: 30", "4:7", "a multiple of 20 ms, not 30 ms"),
        ("kind: phone", "kind: phone, format: g711", "4:29", "unknown audio format 'g711'"),
        ("kind: phone", 'kind: phone, hidden_lag_ms: "5"', "4:36", 'got "5", a text: drop the quotes'),
        ("kind: phone", "kind: phone, clear_returns_marks: 'true'", "4:42", 'got "true", a text: drop the quotes'),
        ("{kind: phone}", "{}", "4:7", "line: expected a key 'kind', which is missing here"),
        ("{kind: phone}", "phone", "4:7", 'line: expected a mapping; got "phone"'),
        ("caller:", "server: {led_ms: 100}\ncaller:", "6:10", 'did you mean "lead_ms"?'),
        ("caller:", "server: {ready_after_ms: [9, 5, 7]}\ncaller:", "6:26", "or three with the median in the middle"),
        ("caller:", "connection: {opens_ms: 1}\ncaller:", "6:14", 'did you mean "opens_after_ms"?'),
        ("caller:", "connection: {stalls: [{at_ms: 5}]}\ncaller:", "6:23", "expected a key 'for_ms'"),
        ("caller:", "connection: {stalls: [{at_ms: 5, for_ms: 0}]}\ncaller:", "6:42", "a whole number from 1 to"),
        ("caller:", "provider: {charges: [room:7=0]}\ncaller:", "6:22", "charges 1: charge 'room:7=0': expected ID="),
        (
            "caller:",
            'provider: {charges: ["room:7=10,EUR,card:1", "room:7=20,EUR,card:1"]}\ncaller:',
            "6:46",
            "provider.charges 2: expected a charge of its own for each order; room:7 has one already",
        ),
        ("caller:", "provider: {after_ms: soon}\ncaller:", "6:22", "provider.after_ms: expected a whole number"),
        ("caller:", "earlier: {crash: {at: before fald}, caller: []}\ncaller:", "6:23", 'did you mean "before fold"?'),
        ("caller:", "earlier: {crash: {nth: 1}, caller: []}\ncaller:", "6:18", "expected a key 'at'"),
        ("caller:", "earlier: {gap_ms: 10, crash: {at: after fold}, caller: []}\ncaller:", "6:30",
         "expected restart_after_ms of at most 10, when the next call comes"),
        ("hotel.model.yaml", "hostel.model.yaml", "5:16", "expected a rules file in the scenario's directory ("),
        ("hotel.model.yaml", "hostel.model.yaml", "5:16", 'l.yaml"; did you mean "hotel.model.yaml"?'),
        ("client: naive", "client: niave", "20:18", 'before.client: expected one of callwright, naive; got "niave"'),
        ("heard_error_ms: 20", "heard_error_ms: .nan", "13:21", "expect.max.heard_error_ms: expected a number"),
        ("heard_error_ms: 20", 'heard_error_ms: "20"', "13:21", 'got "20", a text: drop the quotes'),
        ("callwright.apps.hotel:desk", "callwright.apps.hotel", "3:8", "agent: expected module:object"),
        ("scenario: check-in", "scenario: checkin", "1:11", 'expected the name of the file, "check-in"'),
        ("about:", "abuot:", "2:1", 'got "abuot"; did you mean "about"?'),
        ("about:", "scenario:", "2:1", 'expected every key once; got a second "scenario"'),
        ("heard_error_ms", "heard_eror_ms", "13:5", 'did you mean "heard_error_ms"?'),
        ("heard_error_ms: 20", "heard_error_ms: few", "13:21", "expect.max.heard_error_ms: expected a number"),
        ("heard: [parking]", "heard: [ask-parking]", "19:11", "expect.heard 1: expected a line of the agent"),
        ("must_fail: [unheard", "must_fail: [heard_words, unheard", "20:37", "before.must_fail 1: expected one of"),
        ("line: {kind: phone}", "line: {kind: phone", "5:6", "expected YAML"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_file_line_and_column(
    app: Path, before: str, after: str, place: str, message: str
) -> None:
    expect = load_scenario(CHECK_IN).expect
    metrics = [*expect.max, *expect.min]
    path = changed(app, before, after)
    with pytest.raises(ScenarioError) as error:
        load_scenario(path, tools_of, metrics, ["callwright", "naive"])
    assert str(error.value).startswith(f"{path}:{place}: "), error.value
    assert message in str(error.value)


def test_what_is_missing_is_named(app: Path) -> None:
    path = changed(app, "agent: callwright.apps.hotel:desk\n", "")
    with pytest.raises(ScenarioError, match=r":1:1: expected a key 'agent', which is missing here$"):
        load_scenario(path)


@pytest.mark.parametrize(
    ("setting", "column", "message"),
    [
        ("answer_ms: [900]", 21, "server.answer_ms: expected two whole numbers of ms, the lower one first, such as"),
        ("answer_ms: [900]", 21, "such as [430, 640]; got [900]"),
        ("answer_ms: hello", 21, 'such as [430, 640]; got "hello"'),
        ("answer_ms: 900", 21, 'such as [430, 640]; got "900"'),
        ("answer_ms: [640, 430]", 21, "the lower one first, such as [430, 640]; got [640, 430]"),
        ("answer_ms: [-4, 4]", 21, "got [-4, 4]"),
        ("answer_ms: [1.5, 4]", 21, "got [1.5, 4]"),
        ("lead_ms: -4", 19, "server.lead_ms: expected a whole number of ms from 0 to"),
        ("lead_ms: [1, 2]", 19, "got [1, 2]"),
        ("lead_ms: {}", 19, "expected a single value; got a mapping"),
        ("lead_ms: true", 19, 'got "true"'),
        ('lead_ms: "4"', 19, 'got "4", a text: drop the quotes'),
        ("chunk_ms: 0", 20, "expected a whole number of ms from 20 to 10000"),
        ("pace: 0", 16, "expected a number from 0.01 to 1000"),
        ("call_first_rate: 1.5", 27, "expected a number from 0 to 1"),
        ("item_events: 3", 23, 'expected true or false; got "3"'),
        ("sentence_pause_ms: 700", 29, "from 0 to 500: after 700 ms of silence a caller takes the reply for over"),
        ("dialect: openai", 10, 'names, nearest '),
    ],
)  # fmt: skip
def test_a_setting_of_the_server_is_read_as_strictly(app: Path, setting: str, column: int, message: str) -> None:
    path = changed(app, "caller:", f"server: {{{setting}}}\ncaller:")
    with pytest.raises(ScenarioError) as error:
        load_scenario(path)
    assert str(error.value).startswith(f"{path}:6:{column}: server"), error.value
    assert message in str(error.value)


def test_every_default_of_the_server_is_within_its_bounds() -> None:
    usual = ServerSettings()
    assert [name for name in SETTINGS if misfit(name, getattr(usual, name))] == []


def test_an_agent_that_cannot_be_loaded_is_told_at_its_place(app: Path) -> None:
    def cannot(entry: str) -> dict[str, Tool]:
        raise UsageError("/home/ada/night/desk.py:12: ZeroDivisionError: division by zero")

    path = changed(app, "scenario: check-in", "scenario: check-in")
    with pytest.raises(ScenarioError) as error:
        load_scenario(path, cannot)
    assert str(error.value) == f"{path}:3:8: agent: /home/ada/night/desk.py:12: ZeroDivisionError: division by zero"


def test_what_is_wrong_with_the_recorded_lines_is_told_before_a_call(app: Path) -> None:
    (app / "speech").unlink()
    (app / "speech").mkdir()
    (app / "speech" / "speech.json").write_text("{")
    with pytest.raises(ScenarioError, match=r":5:16: model\.rules: .*speech\.json:1:2: expected JSON"):
        load_scenario(changed(app, "scenario: check-in", "scenario: check-in"))


@pytest.mark.parametrize(
    ("provider", "more", "message"),
    [
        ("payments", "", "its action cancel needs the key provider"),
        ("bank", "provider: {answers: sync}\n", r"names the provider 'bank'.*declare it with provider=\"payments\""),
    ],
)
def test_an_action_is_played_with_the_stand_in_of_its_scenario(
    app: Path, provider: str, more: str, message: str
) -> None:
    acting = cw.Agent("desk", model=cw.polyai(), instructions="You are a desk.")

    @acting.action(kind="cancellation", provider=provider, must_hear=("subject",))
    async def cancel(ctx: cw.Context[None], holding: cw.Spoken) -> cw.Terms:
        """Cancel it."""
        return cw.Terms("order:1")

    path = changed(app, "line: {kind: phone}\n", f"{more}line: {{kind: phone}}\n")
    with pytest.raises(ScenarioError, match=rf"check-in\.yaml:3:8: agent: .*{message}"):
        load_scenario(path, lambda _entry: acting.tools)


def test_what_is_wrong_with_the_rules_is_told_before_a_call(app: Path) -> None:
    rules = app / "hotel.model.yaml"
    text = rules.read_text("utf-8").replace("arguments: {surname:", "arguments: {name:")
    rules.unlink()
    rules.write_text(text, "utf-8")
    path = changed(app, "scenario: check-in", "scenario: check-in")
    assert load_scenario(path).rules == rules
    with pytest.raises(ScenarioError, match=r'hotel\.model\.yaml:\d+:17: .* one of surname; got "name"'):
        load_scenario(path, tools_of)


def test_a_scenario_in_the_working_directory_finds_rules_one_up(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(changed(app, "scenario: check-in", "scenario: check-in").parent)
    assert load_scenario(Path("check-in.yaml")).rules == app / "hotel.model.yaml"
    (app / "scenarios" / "deeper").mkdir()
    monkeypatch.chdir(app / "scenarios" / "deeper")
    assert load_scenario(Path("../check-in.yaml")).rules == app / "hotel.model.yaml"


def test_nothing_comes_after_hanging_up(app: Path) -> None:
    path = changed(app, "says: go-on", "does: hang_up")
    with pytest.raises(ScenarioError, match=r":10:5: caller 4: expected nothing after hang_up"):
        load_scenario(path)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", b"# nothing\n", b"- a\n", b"a: b: c\n", b"a: !!python/none\n"]
)
def test_a_file_that_is_no_scenario_is_an_error_with_its_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    with pytest.raises(ScenarioError, match=r"x\.yaml:"):
        load_scenario(path)


def test_a_file_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"gone\.yaml: expected a file that can be read"):
        load_scenario(tmp_path / "gone.yaml")


# --- finding ------------------------------------------------------------------------------------------------------


def test_scenarios_are_found_by_name_and_by_path() -> None:
    assert find_scenarios([APPS])["check-in"] == CHECK_IN
    assert locate_scenario("check-in", [APPS]) == CHECK_IN
    assert locate_scenario(str(CHECK_IN), []) == CHECK_IN


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ScenarioError, match=r"got 'chek-in'; .*; did you mean \"check-in\"\?$"):
        locate_scenario("chek-in", [APPS])


def test_one_name_in_two_places_is_an_error(app: Path) -> None:
    write(app, "")
    with pytest.raises(ScenarioError, match=r"already in .* rename one"):
        find_scenarios([APPS, app])


def test_a_dialect_may_differ_in_the_lines_that_are_heard(app: Path) -> None:
    text = CHECK_IN.read_text("utf-8").partition("dialects:")[0] + "dialects: {openai: {heard: [parking]}}\n"
    scenario = load_scenario(write(app, text), tools_of)
    assert (scenario.in_dialect("openai").expect.heard, scenario.expect.heard) == (("parking",), scenario.expect.heard)
    VALIDATOR.validate(yaml.safe_load(text))


def test_a_dialect_may_differ_in_limits_and_in_what_the_baseline_fails(app: Path) -> None:
    differs = (
        "dialects:\n  plain: {max: {heard_words_missing: 9}, min: {yield_rate: 1}, must_fail: [heard, yield_rate]}\n"
    )
    text = CHECK_IN.read_text("utf-8").partition("dialects:")[0] + differs
    scenario = load_scenario(write(app, text), tools_of)
    plain = scenario.in_dialect("plain")
    assert scenario.in_dialect("polyai") == scenario
    assert plain.expect.max == {**scenario.expect.max, "heard_words_missing": 9}
    assert plain.expect.min == {**scenario.expect.min, "yield_rate": 1}
    assert plain.expect.heard == scenario.expect.heard
    assert plain.before is not None
    assert (plain.before.client, plain.before.must_fail) == ("naive", ("heard", "yield_rate"))
    with pytest.raises(ScenarioError, match="welsh"):
        load_scenario(write(app, text.replace("plain:", "welsh:")), tools_of)
    with pytest.raises(ScenarioError, match="expected a baseline"):
        load_scenario(write(app, text.replace("before:", "# before:")), tools_of)


@pytest.mark.parametrize(
    ("key", "ids"),
    [
        ('charges: ["room:7=12000,EUR,card:4242,card:8812"], ', ["room:7"]),
        ("", ["order:4417", "order:5120", "order:5530", "order:6210"]),
    ],
)
def test_a_scenarios_own_charges_are_in_its_providers_book_and_else_the_demo_shops(
    app: Path, key: str, ids: list[str]
) -> None:
    path = changed(app, "line: {kind: phone}\n", f"provider: {{{key}answers: sync}}\nline: {{kind: phone}}\n")
    behind = with_provider(load_scenario(path).behind, "settles_ms=1,timeout_ms=2")
    VALIDATOR.validate(yaml.safe_load(path.read_text("utf-8")))

    async def charged() -> list[Charge]:
        async with open_backend(behind, seed=1) as backend:
            assert backend.stand_in is not None
            return list(backend.stand_in.book.charges.values())

    charges = run_virtual(charged())
    assert [charge.id for charge in charges] == ids
    if key:
        assert charges == [Charge("room:7", Money(12_000, "EUR"), ("card:4242", "card:8812"))]


# --- the schema ---------------------------------------------------------------------------------------------------


def test_the_schema_in_the_package_is_the_published_one() -> None:
    assert (PACKAGE / "sim" / "scenario.schema.json").read_text("utf-8") == PUBLISHED.read_text("utf-8")


def test_the_schema_has_the_keys_that_the_loader_takes() -> None:
    VALIDATOR.check_schema(SCHEMA)
    for part, keys in KEYS.items():
        schema = SCHEMA["$defs"][part] if part else SCHEMA
        assert tuple(schema["properties"]) == keys
        assert tuple(schema.get("required", ())) == REQUIRED.get(part, ())
        assert schema["additionalProperties"] is False
    assert tuple(SCHEMA["properties"]["server"]["properties"]) == SETTINGS


def test_the_schema_has_the_bounds_of_the_servers_settings() -> None:
    for name, schema in SCHEMA["properties"]["server"]["properties"].items():
        for end, beyond in (("minimum", -0.001), ("maximum", 0.001)):
            if end in schema:
                assert misfit(name, schema[end]) is None, name
                assert misfit(name, schema[end] + (beyond if schema["type"] == "number" else beyond * 1000)), name


@pytest.mark.parametrize("path", find_scenarios([APPS]).values(), ids=lambda path: path.stem)
def test_the_schema_takes_every_shipped_scenario(path: Path) -> None:
    load_scenario(path)
    VALIDATOR.validate(yaml.safe_load(path.read_text("utf-8")))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("caller", [{"when": "reply.end", "says": "go-on"}]),
        ("caller", [{"when": "replies.end + 700 ms", "says": "go-on"}]),
        ("caller", [{"when": "pickup + 7 ms"}]),
        ("caller", [{"when": "pickup + 7 ms", "says": "go-on", "does": "hang_up"}]),
        ("line", {"kind": "phone", "fixed_lag_ms": 30}),
        ("line", {"hidden_lag_ms": 30}),
        ("line", {"kind": "radio"}),
        ("model", {"rules": "hotel.model.yaml", "recaps": 2}),
        ("expect", {"max": {"heard_error_ms": "few"}}),
        ("limit_ms", 10),
        ("server", {"answer_ms": [900]}),
        ("server", {"answer_ms": "hello"}),
        ("server", {"lead_ms": -4}),
        ("server", {"chunk_ms": 0}),
        ("server", {"item_events": 3}),
        ("server", {"dialect": "openai"}),
        ("server", {"sentence_pause_ms": 700}),
        ("agent", "hotel"),
        ("voice", "loud"),
    ],
)
def test_schema_and_loader_refuse_the_same(app: Path, part: str, value: object) -> None:
    content = yaml.safe_load(CHECK_IN.read_text("utf-8"))
    VALIDATOR.validate(content)
    content[part] = value
    assert not VALIDATOR.is_valid(content)
    with pytest.raises(ScenarioError):
        load_scenario(write(app, yaml.safe_dump(content, sort_keys=False)))

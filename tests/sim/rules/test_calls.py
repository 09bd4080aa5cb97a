"""What a rules model answers to a far end that it called: recordings, menus, music, a person; each history by hand."""

import random
from pathlib import Path

import pytest

import callwright
from callwright.errors import ScenarioError
from callwright.ids import ItemId, ToolCallId
from callwright.sim.models import (
    AgentSaid,
    CallerSaid,
    HistoryItem,
    Reply,
    SystemNote,
    ToolAnswered,
    ToolRequest,
    ToolRequested,
)
from callwright.sim.rules import RulesModel
from callwright.sim.rules.arguments import Behind, Key
from callwright.sim.rules.phrases import Phrase
from callwright.sim.speech import Speech

PHARMACY = Path(callwright.__file__).parent / "apps" / "pharmacy"
RULES = PHARMACY / "pharmacy.model.yaml"
LINES = Speech.load(PHARMACY / "speech")
MODEL = RulesModel.load(RULES, LINES)
WAIT = Reply((), ToolRequest("wait"))
PRESS = Reply((), ToolRequest("press_keys", {"digits": "2"}))


def reply(*history: HistoryItem, model: RulesModel = MODEL) -> Reply:
    return model.reply(history, random.Random(1))


def heard(text: str) -> CallerSaid:
    return CallerSaid(ItemId("far"), text)


def line(line_id: str) -> CallerSaid:
    return heard(LINES[line_id].text)


def said(*line_ids: str) -> AgentSaid:
    return AgentSaid(ItemId("own"), " ".join(LINES[line_id].text for line_id in line_ids))


def called(name: str, **arguments: str) -> list[HistoryItem]:
    return [
        ToolRequested(ItemId(name), ToolCallId(name), name, arguments),
        ToolAnswered(ItemId("o"), ToolCallId(name), ""),
    ]


def lines(reply: Reply) -> list[str]:
    return [clip.line_id for clip in reply.clips]


MET: list[HistoryItem] = [line("sam-greeting"), said("notice", "reason")]
"""A person has answered, and knows who calls."""

# --- recordings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "announcement",
    [
        *("hours", "hours-other", "connecting", "connecting-other", "still-busy", "still-busy-other"),
        *("voicemail-name", "voicemail-away"),
    ],
)
def test_an_announcement_is_waited_through_whatever_its_words(announcement: str) -> None:
    assert reply(line(announcement)) == WAIT


@pytest.mark.parametrize(
    "text",
    [
        "[music]",
        "",
        "You are number two in the line.",
        "Please hold on, one moment.",
        "We will have your prescription ready for you.",
        "Please press on with your day, our prescriptions are being filled.",
    ],
)
def test_music_and_what_nobody_knows_is_waited_through(text: str) -> None:
    assert reply(heard(text)) == WAIT


@pytest.mark.parametrize("menu", ["menu", "menu-other"])
def test_the_key_is_read_from_the_menu(menu: str) -> None:
    assert reply(line(menu)) == PRESS
    assert reply(line(menu), *called("press_keys", digits="2"), line(menu)) == PRESS, "and again when it is said again"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("For prescriptions, press four. For anything else, press five.", "4"),
        ("Press 7 for the shop. Press 3 for prescriptions.", "3"),
        ("To dial a prescription number, press hash.", "#"),
        ("Press one for the shop. Or one of us will see to your prescription, press star.", "*"),
        ("For prescriptions, press the key that you know.", None),
        ("", None),
    ],
)
def test_the_key_is_that_of_the_sentence_with_what_is_wanted(text: str, key: str | None) -> None:
    assert Key((Phrase(("prescription*",)),)).find(text, ()) == key


def test_a_key_that_is_not_named_is_not_guessed() -> None:
    assert reply(heard("For prescriptions, press the key that you know.")) == WAIT


def test_a_voicemail_gets_its_message_when_it_names_the_tone() -> None:
    """C065: a greeting in several turns gets one message."""
    history: list[HistoryItem] = []
    for part in ("voicemail-name", "voicemail-away"):
        history.append(line(part))
        assert reply(*history) == WAIT
        history += called("wait")
    left = reply(*history, line("voicemail-tone"))
    assert lines(left) == ["notice", "message"]
    assert left.tool is not None
    assert left.tool.name == "leave_voicemail"
    assert left.tool.arguments == {"message": f"{LINES['notice'].text} {LINES['message'].text}"}


# --- a person -----------------------------------------------------------------------------------------------------


def test_a_person_is_told_at_once_who_calls_and_once_only() -> None:
    waited = [line("menu"), *called("press_keys", digits="2"), line("still-busy"), *called("wait")]
    assert lines(reply(*waited, line("sam-greeting"))) == ["notice", "reason"]
    assert lines(reply(*waited, *MET, line("sam-hello"))) == ["reason"]


@pytest.mark.parametrize(("asked", "answer"), [("sam-spell", "spelling"), ("sam-hold", "sure")])
def test_a_person_is_answered(asked: str, answer: str) -> None:
    assert reply(*MET, line(asked)) == Reply(reply(*MET, line(asked)).clips)
    assert lines(reply(*MET, line(asked))) == [answer]


def test_what_only_a_person_says_counts_once_one_has_answered() -> None:
    for asked in ("sam-spell", "sam-hold", "sam-answer", "sam-no-machines"):
        assert reply(line(asked)) == WAIT
        assert reply(line("sam-greeting"), AgentSaid(ItemId("cut"), "Hello, this-", is_cut=True), line(asked)) == WAIT


def test_music_behind_one_word_is_waited_through() -> None:
    assert reply(*MET, line("sam-hold"), said("sure"), heard("[music]")) == WAIT


@pytest.mark.parametrize(
    ("answer", "goodbye"),
    [("sam-answer", "goodbye"), ("sam-not-ready", "goodbye"), ("sam-no-machines", "goodbye-refused")],
)
def test_the_result_is_what_the_person_said(answer: str, goodbye: str) -> None:
    end = reply(*MET, line("sam-hold"), said("sure"), heard("[music]"), *called("wait"), line(answer))
    assert lines(end) == [goodbye]
    assert end.tool == ToolRequest("end_call", {"result": LINES[answer].text, "goodbye": LINES[goodbye].text})


# --- notes --------------------------------------------------------------------------------------------------------

GIVE_UP = SystemNote(
    ItemId("n"), '{"call": "on hold", "next": "Say that you cannot wait any longer, and end the call."}'
)


def test_a_note_that_asks_to_give_up_is_followed() -> None:
    waited = [line("menu"), *called("press_keys", digits="2")]
    end = reply(*waited, GIVE_UP)
    assert lines(end) == ["notice", "goodbye-waited"]
    assert end.tool is not None
    assert end.tool.arguments["result"] == "nobody answered in time"
    assert reply(*waited, GIVE_UP, line("still-busy")) == end, "over an announcement, too"
    assert lines(reply(*waited, GIVE_UP, line("sam-greeting"))) == ["notice", "reason"], "but not over a person"
    assert reply(*waited, GIVE_UP, *called("wait"), line("still-busy")) == WAIT, "and once"
    assert lines(reply(*waited, SystemNote(ItemId("n"), "Be patient."))) == ["notice", "anybody-there"]


# --- what models were seen to do wrong ----------------------------------------------------------------------------


def slipping(**rates: float) -> RulesModel:
    return RulesModel.load(RULES, LINES, rates)


def test_a_menu_can_be_missed() -> None:
    assert reply(line("menu"), model=slipping(ignores_menu=1)) == WAIT


def test_the_first_key_can_be_the_wrong_one() -> None:
    model = slipping(picks_wrong_key=1)
    assert reply(line("menu"), model=model).tool == ToolRequest("press_keys", {"digits": "1"})
    history = [line("menu"), *called("press_keys", digits="1"), line("hours"), *called("wait"), line("menu")]
    assert reply(*history, model=model) == PRESS
    assert reply(heard("For prescriptions, press two."), model=model) == PRESS, "there is no other"


def test_a_key_can_be_pressed_again_at_an_announcement() -> None:
    model = slipping(presses_again=1)
    assert reply(line("menu"), *called("press_keys", digits="2"), line("connecting"), model=model) == PRESS
    assert reply(line("connecting"), model=model) == WAIT


def test_an_announcement_can_be_talked_to() -> None:
    assert lines(reply(line("connecting"), model=slipping(talks_to_announcements=1))) == ["notice", "say-again"]


# --- the file -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "    calls: wait\n",
            "    calls: wait\n  rest: {calls: wait}\n",
            "topics.rest: expected when or noted: anything-",
        ),
        (
            "after: greeting",
            "after: greetin",
            "topics.spelling.after: expected one of 10 names, nearest greeting, ",
        ),
        ("noted: [give up,", "after: menu\n    noted: [give up,", "topics.give-up.after: expected it beside when"),
        ("says: [sure]", "says: [sure]\n    speaks: {goodbye: [goodbye]}", "hold-on.speaks: expected it beside calls"),
        ("calls: press_keys", "calls: press_keys\n    speaks: {digits: [sure]}", "speaks: expected a tool that speaks"),
        ("{quotes: turn}", "{quotes: call}", 'result.quotes: expected one of turn; got "call"'),
        ("{key: [prescription*]}", "{key: []}", "digits.key: expected a list of at least 1; got none"),
        ("{key: [prescription*]}", "{key: [a], remembered: true}", "remembered: expected it beside after alone"),
        ("  ignores_menu:\n", "  ignores_passive_note:\n", "behaviors: expected a key 'ignores_menu'"),
    ],
)
def test_a_mistake_in_the_file_is_told_with_its_place(tmp_path: Path, before: str, after: str, message: str) -> None:
    text = RULES.read_text("utf-8")
    assert before in text
    path = tmp_path / "wrong.model.yaml"
    path.write_text(text.replace(before, after, 1), "utf-8")
    with pytest.raises(ScenarioError) as error:
        RulesModel.load(path, LINES)
    assert message in str(error.value)


def test_an_argument_can_have_been_said_before() -> None:
    assert Behind(("order",)).find("that one", ("order 4417",)) is None
    assert Behind(("order",), is_remembered=True).find("that one", ("order 4417.", "order 5530")) == "4417"

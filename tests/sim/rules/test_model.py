"""The rules model reads history and nothing else; these tests write the history by hand."""

import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import callwright
import callwright as cw
from callwright.core.notes import END_IT
from callwright.errors import ScenarioError
from callwright.ids import ItemId, ToolCallId
from callwright.sim.models import (
    AgentSaid,
    CallerSaid,
    Clip,
    HistoryItem,
    Reply,
    SystemNote,
    ToolAnswered,
    ToolRequested,
)
from callwright.sim.rules import RulesModel
from callwright.sim.speech import Speech, normalise

HOTEL = Path(callwright.__file__).parent / "apps" / "hotel"
RULES = HOTEL / "hotel.model.yaml"
SPEECH = Speech.load(HOTEL / "speech")
STEADY = RulesModel.load(RULES, SPEECH, {"recaps": 0, "forgets_notice": 1})
RECAPPING = RulesModel.load(RULES, SPEECH, {"recaps": 1, "forgets_notice": 1})
OPEN = RulesModel.load(RULES, SPEECH, {"recaps": 0})
"""It says what it is."""

CHECK_IN = [
    "check-in-time",
    "check-in-bring",
    "check-in-deposit",
    "check-in-early",
    "check-in-breakfast",
    "check-in-pool",
    "check-in-wifi",
]
OPENING = SPEECH["going-on"].text.split()
ANSWER = [word for line in CHECK_IN for word in SPEECH[line].text.split()]


def said(line_id: str) -> CallerSaid:
    return CallerSaid(ItemId(line_id), SPEECH[line_id].text)


def cut(words: Sequence[str]) -> AgentSaid:
    return AgentSaid(ItemId("cut"), " ".join(words) + "-" if words else "", is_cut=True)


def answered(*line_ids: str) -> AgentSaid:
    return AgentSaid(ItemId("whole"), " ".join(SPEECH[line].text for line in line_ids))


def reply(model: RulesModel, *history: HistoryItem, seed: int = 1) -> Reply:
    return model.reply(history, random.Random(seed))


def lines(reply: Reply) -> list[str]:
    return [clip.line_id for clip in reply.clips]


def words(reply: Reply) -> list[str]:
    return [w.text for c in reply.clips for w in SPEECH[c.line_id].words[c.first_word : c.end_word]]


def continuation(reply: Reply) -> list[str]:
    assert words(reply)[: len(OPENING)] == OPENING
    return words(reply)[len(OPENING) :]


def sentence_start(word: int) -> int:
    """The first word of the sentence that was cut before ``word``."""
    while word and ANSWER[word - 1][-1] not in ".?!":
        word -= 1
    return word


# --- what the caller asks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("ask-check-in", CHECK_IN),
        ("ask-check-in-other", CHECK_IN),
        ("ask-parking", ["parking"]),
        ("ask-parking-other", ["parking"]),
        ("ask-breakfast", ["breakfast"]),
        ("ask-breakfast-included", ["breakfast-included"]),
        ("ask-pool", ["pool"]),
        ("ask-wifi", ["wifi"]),
        ("thats-all", ["goodbye"]),
        ("thank-you", ["anything-else"]),
        ("mm-hmm", ["anything-else"]),
    ],
)
def test_the_words_of_a_question_pick_its_answer(asked: str, expected: list[str]) -> None:
    assert lines(reply(STEADY, said(asked))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Is there parking?", "parking"),
        ("i need to park my van somewhere", "parking"),
        ("WHERE DO I LEAVE THE CAR", "parking"),
        ("Is it free, the breakfast?", "breakfast-included"),
        ("Can one swim at your place?", "pool"),
        ("Tell me the Wi-Fi password.", "wifi"),
        ("When can I check in?", "check-in-time"),
        ("What time does in check work?", "check-in-time"),
    ],
)
def test_a_paraphrase_is_understood_in_any_order_and_case(text: str, expected: str) -> None:
    assert lines(reply(STEADY, CallerSaid(ItemId("i"), text)))[0] == expected


@pytest.mark.parametrize("text", ["", "[music]", "My hovercraft is full of eels."])
def test_what_is_not_understood_is_asked_again(text: str) -> None:
    assert lines(reply(STEADY, CallerSaid(ItemId("i"), text))) == ["not-understood"]


def test_a_system_note_alone_changes_nothing() -> None:
    asked = (answered("greeting"), said("ask-pool"))
    assert reply(STEADY, *asked, SystemNote(ItemId("n"), "Say goodbye.")) == reply(STEADY, *asked)


def test_the_agent_opens_a_call_that_has_no_words_yet() -> None:
    assert lines(reply(STEADY)) == ["greeting"]


def test_a_reply_that_nothing_asks_for_offers_help() -> None:
    assert lines(reply(STEADY, said("ask-pool"), answered("pool"))) == ["anything-else"]


def test_the_questions_can_come_in_another_order() -> None:
    """The model follows history, not a script: parking first, then check-in, cut by breakfast, then on."""
    history: list[HistoryItem] = [said("ask-parking-other")]
    assert lines(reply(STEADY, *history)) == ["parking"]
    history += [answered("parking"), said("ask-check-in-other")]
    assert lines(reply(STEADY, *history)) == CHECK_IN
    history += [cut(ANSWER[:15]), said("ask-breakfast")]
    assert lines(reply(STEADY, *history)) == ["breakfast"]
    history += [answered("breakfast"), said("go-on-other")]
    assert continuation(reply(STEADY, *history)) == ANSWER[15:]


# --- going on -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heard", range(1, len(ANSWER)))
def test_go_on_says_the_rest_exactly_once_from_every_word(heard: int) -> None:
    for go_on in ("go-on", "go-on-other"):
        history = (said("ask-check-in"), cut(ANSWER[:heard]), said("ask-parking"), answered("parking"), said(go_on))
        assert continuation(reply(STEADY, *history)) == ANSWER[heard:]


@pytest.mark.parametrize("heard", range(1, len(ANSWER)))
def test_a_recap_begins_with_the_cut_sentence_and_never_with_the_answer(heard: int) -> None:
    history = (said("ask-check-in"), cut(ANSWER[:heard]), said("ask-parking"), answered("parking"), said("go-on"))
    start = sentence_start(heard) or heard
    assert continuation(reply(RECAPPING, *history)) == ANSWER[start:]


def test_recaps_come_at_the_measured_rate() -> None:
    history = (said("ask-check-in"), cut(ANSWER[:12]), said("ask-parking"), answered("parking"), said("go-on"))
    model = RulesModel.load(RULES, SPEECH, {"forgets_notice": 1})
    recaps = sum(continuation(reply(model, *history, seed=seed)) == ANSWER[8:] for seed in range(700))
    assert recaps == pytest.approx(500, abs=40)


def test_an_interrupting_question_gets_its_answer_and_no_more() -> None:
    assert (
        words(reply(STEADY, said("ask-check-in"), cut(ANSWER[:9]), said("ask-parking")))
        == SPEECH["parking"].text.split()
    )


def test_nothing_cut_is_nothing_to_go_on_with() -> None:
    assert lines(reply(STEADY, said("ask-pool"), answered("pool"), said("go-on"))) == ["anything-else"]
    assert lines(reply(STEADY, said("go-on"))) == ["anything-else"]


def test_a_reply_cut_after_its_last_word_is_finished() -> None:
    assert lines(reply(STEADY, said("ask-check-in"), cut(ANSWER), said("go-on"))) == ["anything-else"]


def test_of_an_empty_cut_nothing_was_said_so_all_of_it_comes() -> None:
    history = (said("ask-check-in"), cut([]), said("ask-parking"), answered("parking"), said("go-on"))
    assert lines(reply(STEADY, *history)) == CHECK_IN


def test_a_word_cut_in_the_middle_is_said_again() -> None:
    partial = AgentSaid(ItemId("cut"), "Check in is from three in the after-", is_cut=True)
    assert continuation(reply(STEADY, said("ask-check-in"), partial, said("go-on"))) == ANSWER[7:]


def test_a_cut_behind_punctuation_is_at_the_next_word() -> None:
    partial = AgentSaid(ItemId("cut"), "Check in is from three in the afternoon.-", is_cut=True)
    assert continuation(reply(STEADY, said("ask-check-in"), partial, said("go-on"))) == ANSWER[8:]


@given(cuts=st.lists(st.integers(0, 25), max_size=6), seed=st.integers(0, 99), recaps=st.booleans())
def test_an_answer_cut_again_and_again_is_heard_once_and_never_starts_over(
    cuts: list[int], seed: int, recaps: bool
) -> None:
    """Each go-on reply is cut too, its opening included; what is heard in the end covers the answer without a gap."""
    model = RECAPPING if recaps else STEADY
    history: list[HistoryItem] = [said("ask-check-in"), cut(ANSWER[:10]), said("go-on")]
    heard = 10
    for length in cuts:
        going_on = reply(model, *history, seed=seed)
        assert lines(going_on)[0] == "going-on"
        rest = continuation(going_on)
        start = len(ANSWER) - len(rest)
        assert ANSWER[start:] == rest
        assert start == (sentence_start(heard) if recaps and sentence_start(heard) else heard)
        heard = max(heard, start + max(0, length - len(OPENING)))
        if heard >= len(ANSWER):
            break
        history += [cut(words(going_on)[:length]), said("ask-pool"), answered("pool"), said("go-on")]


@given(first=st.integers(1, len(ANSWER) - 1), second=st.integers(1, 9))
def test_the_latest_cut_reply_goes_on_first_and_then_the_one_before(first: int, second: int) -> None:
    parking = SPEECH["parking"].text.split()
    history = [said("ask-check-in"), cut(ANSWER[:first]), said("ask-parking"), cut(parking[:second]), said("go-on")]
    going_on = reply(STEADY, *history)
    assert continuation(going_on) == parking[second:]
    history += [AgentSaid(ItemId("on"), " ".join(words(going_on))), said("go-on")]
    assert continuation(reply(STEADY, *history)) == ANSWER[first:]


def test_a_history_that_runs_ahead_of_the_ear_is_gone_on_with_where_it_ends() -> None:
    """The model can't know better than its history: words that it wrongly holds are never said again."""
    history = (said("ask-check-in"), cut(ANSWER[:30]), said("go-on"))
    assert continuation(reply(STEADY, *history)) == ANSWER[30:]


# --- its own voice ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heard", [3, 5, 9])
def test_an_agent_that_hears_itself_starts_its_reply_over(heard: int) -> None:
    echo = CallerSaid(ItemId("echo"), " ".join(ANSWER[:heard]) + ".")
    assert lines(reply(STEADY, said("ask-check-in"), cut(ANSWER[: heard + 2]), echo)) == CHECK_IN


def test_starting_over_can_be_switched_off_in_a_scenario() -> None:
    deaf = RulesModel.load(RULES, SPEECH, {"starts_over_on_own_voice": 0, "forgets_notice": 1})
    echo = CallerSaid(ItemId("echo"), "photo ID and the card.")
    assert lines(reply(deaf, said("ask-check-in"), cut(ANSWER[:20]), echo)) == ["not-understood"]


def test_a_question_over_an_echo_is_still_a_question() -> None:
    mixed = CallerSaid(ItemId("echo"), "Please bring. Sorry, one thing first, is there any parking?")
    assert lines(reply(STEADY, said("ask-check-in"), cut(ANSWER[:12]), mixed)) == ["parking"]


# --- tools --------------------------------------------------------------------------------------------------------

CALL = ToolRequested(ItemId("c"), ToolCallId("call_1"), "look_up_booking", {"surname": "Okafor"})
FOUND = ToolAnswered(ItemId("o"), ToolCallId("call_1"), '{"room": 214, "nights": 2, "from": "Friday"}')
NONE = ToolAnswered(ItemId("o"), ToolCallId("call_1"), '{"found": false}')


@pytest.mark.parametrize(("asked", "surname"), [("look-up-okafor", "Okafor"), ("look-up-smith", "Smith")])
def test_a_look_up_is_called_with_the_name_and_a_holding_line(asked: str, surname: str) -> None:
    called = reply(STEADY, said(asked))
    assert called.clips == (Clip("holding-look-up"),)
    assert called.tool is not None
    assert called.tool.name == "look_up_booking"
    assert called.tool.arguments == {"surname": surname, "holding": SPEECH["holding-look-up"].text}


@pytest.mark.parametrize(
    ("text", "surname"),
    [
        ("Could you find a booking for Jones, for two nights?", "Jones"),
        ("Look up my booking, it's Smith.", "Smith"),
        ("I have a reservation under the name Okafor.", "Okafor"),
        ("Is there a look up for a booking under 214?", "214"),
    ],
)
def test_a_name_is_found_behind_the_words_that_announce_it(text: str, surname: str) -> None:
    called = reply(STEADY, CallerSaid(ItemId("i"), text))
    assert called.tool is not None
    assert called.tool.arguments["surname"] == surname


def test_a_look_up_without_a_name_asks_again() -> None:
    assert reply(STEADY, CallerSaid(ItemId("i"), "please look up my booking")).tool is None


@pytest.mark.parametrize(("output", "line"), [(FOUND, "booking-okafor"), (NONE, "booking-none")])
def test_an_output_that_was_not_told_is_told(output: ToolAnswered, line: str) -> None:
    history = (said("look-up-okafor"), CALL, answered("holding-look-up"), output)
    assert lines(reply(STEADY, *history)) == [line]
    assert lines(reply(STEADY, *history, answered(line))) == ["anything-else"]


def test_a_newer_question_goes_first_and_the_output_waits() -> None:
    history = (said("look-up-okafor"), CALL, cut(["One", "moment,"]), said("ask-breakfast"), FOUND)
    assert lines(reply(STEADY, *history)) == ["breakfast"]
    assert lines(reply(STEADY, *history, answered("breakfast"))) == ["booking-okafor"]


def test_a_cut_holding_line_is_nothing_to_go_on_with_but_its_output_is() -> None:
    history = (said("look-up-okafor"), CALL, cut(["One", "moment,"]), said("ask-pool"), answered("pool"))
    assert lines(reply(STEADY, *history, said("go-on"))) == ["anything-else"]
    assert lines(reply(STEADY, *history, FOUND, said("go-on"))) == ["booking-okafor"]


def test_a_cut_telling_of_an_output_is_gone_on_with() -> None:
    telling = SPEECH["booking-okafor"].text.split()
    history = (said("look-up-okafor"), CALL, answered("holding-look-up"), FOUND, cut(telling[:6]), said("ask-pool"))
    history += (answered("pool"), said("go-on"))
    assert continuation(reply(STEADY, *history)) == telling[6:]
    assert continuation(reply(RECAPPING, *history)) == telling[3:]


# --- hanging up ---------------------------------------------------------------------------------------------------

GOODBYE = ToolRequested(ItemId("g"), ToolCallId("call_2"), "end_call", {})
STILL_OPEN = "The call is still open: the caller spoke during the goodbye. Answer him."


def withdrawn(*outputs: str) -> list[HistoryItem]:
    """A goodbye that the caller talked over with a question, which was answered, and his second goodbye."""
    over = [said("thats-all"), GOODBYE, cut(["Thank", "you"]), said("ask-pool"), answered("pool"), said("thats-all")]
    return [*over[:4], *(ToolAnswered(ItemId("o"), ToolCallId("call_2"), output) for output in outputs), *over[4:]]


def test_a_goodbye_is_spoken_by_the_call_that_hangs_up_and_gives_the_same_reason_every_time() -> None:
    goodbye = reply(STEADY, said("thats-all"))
    assert goodbye.clips == (Clip("goodbye"),)
    assert goodbye.tool is not None
    assert (goodbye.tool.name, goodbye.tool.arguments["goodbye"]) == ("end_call", SPEECH["goodbye"].text)
    assert goodbye.tool.arguments["reason"] == "the caller needs nothing more"


def test_a_question_over_the_goodbye_is_answered() -> None:
    assert lines(reply(STEADY, *withdrawn(STILL_OPEN)[:4])) == ["pool"]
    assert lines(reply(STEADY, *withdrawn(STILL_OPEN)[:5])) == ["pool"]


@pytest.mark.parametrize("outputs", [[STILL_OPEN], []], ids=["still open", "no output"])
def test_c053_the_call_is_ended_again_after_a_goodbye_that_was_withdrawn(outputs: list[str]) -> None:
    again = reply(STEADY, *withdrawn(*outputs))
    assert lines(again) == ["goodbye"]
    assert again.tool is not None
    assert again.tool.name == "end_call"


@pytest.mark.parametrize("output", ["the caller needs nothing more", '{"status": "ending"}', '{"goodbye": "said"}', ""])
def test_c053_a_model_that_is_told_of_an_end_says_goodbye_and_never_hangs_up_again(output: str) -> None:
    poisoned = withdrawn(output)
    assert reply(STEADY, *poisoned) == Reply((Clip("goodbye"),))
    assert reply(STEADY, *poisoned, answered("goodbye"), said("thats-all")) == Reply((Clip("goodbye"),))
    doubting = RulesModel.load(RULES, SPEECH, {"believes_it_hung_up": 0, "forgets_notice": 1})
    assert reply(doubting, *poisoned).tool is not None


def test_a_result_that_comes_in_the_goodbye_is_told() -> None:
    history = [said("look-up-okafor"), CALL, answered("holding-look-up"), said("thats-all"), GOODBYE, cut(["Thank"])]
    told = ToolAnswered(ItemId("o2"), ToolCallId("call_2"), STILL_OPEN)
    for outputs in ([FOUND, told], [told, FOUND]):
        assert lines(reply(STEADY, *history, *outputs)) == ["booking-okafor"]


def test_a_goodbye_that_was_taken_back_is_said_again_when_a_note_asks_for_it_and_nobody_has_spoken_since() -> None:
    told = ToolAnswered(ItemId("o2"), ToolCallId("call_2"), STILL_OPEN)
    note = SystemNote(ItemId("n"), END_IT)
    history = [said("thats-all"), GOODBYE, answered("goodbye"), told, FOUND, answered("booking-okafor")]
    again = reply(STEADY, *history, note)
    assert lines(again) == ["goodbye"]
    assert again.tool is not None
    assert again.tool.name == "end_call"
    assert lines(reply(STEADY, *history, note, said("ask-pool"))) == ["pool"]
    assert reply(STEADY, *history).tool is None, "nobody asks for it"
    assert reply(STEADY, *history[2:], note).tool is None, "no goodbye was taken back"


# --- the notice ---------------------------------------------------------------------------------------------------

NOTICE = SPEECH["notice"].text


def with_notice(*line_ids: str, words: int | None = None) -> AgentSaid:
    said = " ".join([NOTICE, *(SPEECH[line].text for line in line_ids)]).split()
    return AgentSaid(ItemId("n"), " ".join(said[:words]) + ("-" if words else ""), is_cut=words is not None)


def test_the_notice_opens_the_first_reply_and_no_other() -> None:
    assert lines(reply(OPEN, said("ask-pool"))) == ["notice", "pool"]
    assert lines(reply(OPEN)) == ["notice", "greeting"]
    assert lines(reply(OPEN, said("ask-pool"), with_notice("pool"), said("ask-wifi"))) == ["wifi"]


def test_a_notice_before_a_spoken_argument_is_a_part_of_it() -> None:
    called = reply(OPEN, said("look-up-okafor"))
    assert lines(called) == ["notice", "holding-look-up"]
    assert called.tool is not None
    assert called.tool.arguments == {"surname": "Okafor", "holding": f"{NOTICE} {SPEECH['holding-look-up'].text}"}


@pytest.mark.parametrize("heard", range(1, 6))
def test_a_notice_that_was_cut_is_given_again(heard: int) -> None:
    assert lines(reply(OPEN, said("ask-pool"), with_notice(words=heard), said("ask-wifi"))) == ["notice", "wifi"]


def test_an_answer_is_gone_on_with_behind_the_notice() -> None:
    notice = len(NOTICE.split())
    for heard in (1, 5, 20):
        cut_late = with_notice(*CHECK_IN, words=notice + heard)
        history = (said("ask-check-in"), cut_late, said("ask-parking"), answered("parking"), said("go-on"))
        assert continuation(reply(OPEN, *history)) == ANSWER[heard:]


def test_an_output_that_was_told_behind_the_notice_is_told() -> None:
    history = (said("look-up-okafor"), CALL, FOUND, with_notice("booking-okafor"))
    assert lines(reply(OPEN, *history)) == ["anything-else"]


# --- the file -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("says: [parking]", "says: [parkin]", "topics.parking.says 1: expected one of 21 names, nearest parking, "),
        ("says: [parking]", "says: [ask-parking]", 'says 1: expected a line of the agent; got "ask-parking"'),
        ("says: [parking]", "says: []", "topics.parking.says: expected a list of at least 1; got none"),
        ("opening: [greeting]", "opening: [mm-hmm]", "opening 1: expected a line of the agent"),
        ("speaks: {holding: [holding-look-up]}", "speaks: {holding: [look-up-smith]}", "expected a line of the agent"),
        ("speaks: {holding: [holding-look-up]}", "speaks: {holding: []}", "expected a list of at least 1; got none"),
        ("when: [breakfast]", "when: []", "topics.breakfast.when: expected a list of at least 1; got none"),
        ("after: [under, is, for, name, it's]", "after: []", "surname.after: expected a list of at least 1"),
        ('when: ["214"]', "when: []", "answers 1.when: expected a list of at least 1"),
        ("says: [parking]", "says: parking", 'topics.parking.says: expected a list; got "parking"'),
        (
            "does: go_on",
            "does: go_off",
            'topics.go-on.does: expected one of go_on, tell; got "go_off"; did you mean "go_on"?',
        ),
        (
            "does: go_on",
            "dose: go_on",
            'expected one of when, noted, after, says, calls, speaks, arguments, does; got "dose"',
        ),
        ("calls: look_up_booking", "calls: look_up", 'did you mean "look_up_booking"?'),
        ("rate: 5/7", "rate: 7/5", "behaviors.recaps.rate: expected a number from 0 to 1"),
        ("going_on: going-on", "", "expected a key 'going_on'"),
        (
            "{is: the caller",
            "{is: the caller, after: [for], x: the caller",
            'expected one of after, is, key, quotes, remembered; got "x"',
        ),
        (
            "{is: the caller needs nothing more}",
            "{is: it, after: [for]}",
            "reason: expected exactly one of after, is, key, quotes",
        ),
        ("unless: [still open]", "unless: []", "hangs_up.unless: expected a list of at least 1"),
        ("notice: [notice]", "notice: [thats-all]", "notice 1: expected a line of the agent"),
        ("  believes_it_hung_up:", "  recap:", "expected one of 14 names, nearest recaps"),
    ],
)
def test_a_mistake_in_the_file_is_told_with_its_place(tmp_path: Path, before: str, after: str, message: str) -> None:
    text = RULES.read_text("utf-8")
    assert before in text
    path = tmp_path / "wrong.model.yaml"
    path.write_text(text.replace(before, after), "utf-8")
    with pytest.raises(ScenarioError) as error:
        RulesModel.load(path, SPEECH)
    assert message in str(error.value)
    line, column = (int(n) for n in str(error.value).removeprefix(f"{path}:").split(":")[:2])
    assert text.replace(before, after).splitlines()[line - 1][column - 1 :].strip()


DESK = cw.Agent("desk", model=cw.polyai(), instructions="Be brief.")


@DESK.tool
async def look_up_booking(
    ctx: cw.Context[None], surname: str, holding: cw.Spoken, nights: int | None = None, room: str | None = None
) -> cw.Facts:
    """Look up a booking."""
    return {}


@DESK.tool(after=cw.AfterOutput.HANG_UP)
async def end_call(ctx: cw.Context[None], reason: str, goodbye: cw.Spoken) -> str:
    """Hang up."""
    return reason


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "  look_up_booking:\n",
            "  look_up:\n",
            'one of look_up_booking, end_call; got "look_up"; did you mean "look_up_booking"?',
        ),
        (
            "{surname: {",
            "{surnam: {",
            'tools.look_up_booking.arguments: expected one of surname, nights, room; got "surnam"',
        ),
        ("{holding: [", "{surname: [", 'tools.look_up_booking.speaks: expected one of holding; got "surname"'),
        ("{surname: {", "{holding: {", 'arguments: expected one of surname, nights, room; got "holding"'),
        ("{surname: {", "{nights: {after: [for]}, surname: {", "it is integer"),
        ("    arguments: {", "    # arguments: {", "expected the argument 'surname', which the tool requires"),
        ("    speaks: {", "    # speaks: {", "expected the argument 'holding', which the tool requires"),
    ],
)
def test_a_call_that_the_agents_tool_would_refuse_is_told_with_its_place(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    text = RULES.read_text("utf-8")
    assert before in text
    path = tmp_path / "wrong.model.yaml"
    path.write_text(text.replace(before, after), "utf-8")
    with pytest.raises(ScenarioError) as error:
        RulesModel.load(path, SPEECH, tools=DESK.tools)
    assert re.match(rf"{re.escape(str(path))}:\d+:\d+: tools", str(error.value)), error.value
    assert message in str(error.value)


def test_calls_that_the_agents_tools_take_are_read(tmp_path: Path) -> None:
    path = tmp_path / "right.model.yaml"
    path.write_text(RULES.read_text("utf-8").replace("{surname: {", "{room: {after: [room]}, surname: {"), "utf-8")
    RulesModel.load(path, SPEECH, tools=DESK.tools)


def test_a_rate_of_no_behavior_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"no behavior 'recap' .*did you mean \"recaps\""):
        RulesModel.load(RULES, SPEECH, {"recap": 0})


def test_every_behavior_has_a_source() -> None:
    text = RULES.read_text("utf-8")
    assert text.count("source:") == text.count("rate:")


def test_words_compare_without_case_and_punctuation() -> None:
    assert normalise("Check,") == normalise("check-")


def test_a_model_tells_afterwards_which_behaviors_showed_where_they_had_an_occasion() -> None:
    model = RulesModel.load(RULES, SPEECH, {"recaps": 1, "forgets_notice": 1})
    reply(model, said("ask-parking"))
    assert model.shown == {"forgets_notice": 1}
    reply(model, said("ask-check-in"), cut(ANSWER[:10]), said("go-on"))
    assert model.shown == {"forgets_notice": 2, "recaps": 1}

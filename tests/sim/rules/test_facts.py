"""What the record says, as a rules model reads it from history and passes it on; each history is written by hand."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

import callwright
from callwright.ids import ItemId, ToolCallId
from callwright.sim.models import AgentSaid, CallerSaid, HistoryItem, Reply, SystemNote, ToolRequested
from callwright.sim.rules import RulesModel
from callwright.sim.speech import Speech

REFUNDS = Path(callwright.__file__).parent / "apps" / "refunds"
LINES = Speech.load(REFUNDS / "speech")
ASKED = CallerSaid(ItemId("ask"), LINES["refund-4417"].text)
REFUND_CALL = ToolRequested(
    ItemId("call"), ToolCallId("call-1"), "issue_refund", {"order_id": "4417", "card_last4": "4242", "holding": ""}
)
PENDING = "The refund of 32 dollars to the Visa ending in 4 2 4 2 has been submitted; there is no result yet."
DONE = "The refund of 32 dollars to the Visa ending in 4 2 4 2 is done."


def reply(model: RulesModel, *history: HistoryItem) -> Reply:
    return model.reply(history, random.Random(1))


def lines(reply: Reply) -> list[str]:
    return [clip.line_id for clip in reply.clips]


def desk(**rates: float) -> RulesModel:
    return RulesModel.load(REFUNDS / "refunds.model.yaml", LINES, rates)


def note(text: str) -> SystemNote:
    return SystemNote(ItemId(text), f'{{"say": "{text}", "next": "Never say that it is done or has failed."}}')


def heard(line_id: str, words: int | None = None) -> AgentSaid:
    text = " ".join(LINES[line_id].text.split()[:words])
    return AgentSaid(ItemId(line_id), text if words is None else f"{text}-", is_cut=words is not None)


def caller(line_id: str) -> CallerSaid:
    return CallerSaid(ItemId(line_id), LINES[line_id].text)


def test_order_and_card_are_read_from_what_the_caller_said() -> None:
    asked = reply(desk(), ASKED).tool
    assert asked is not None
    assert (asked.name, asked.arguments["order_id"], asked.arguments["card_last4"]) == ("issue_refund", "4417", "4242")


def test_another_card_is_asked_for_with_the_order_of_the_turn_before() -> None:
    changed = reply(desk(), ASKED, REFUND_CALL, caller("wrong-card-use-mastercard")).tool
    assert changed is not None
    assert (changed.arguments["order_id"], changed.arguments["card_last4"]) == ("4417", "Mastercard")


def test_a_model_that_changes_no_card_says_how_it_stands() -> None:
    kept = reply(desk(changes_card=0), ASKED, REFUND_CALL, note(PENDING), caller("wrong-card-use-mastercard"))
    assert (lines(kept), kept.tool) == (["still-processing"], None)


def test_asked_how_it_stands_it_tells_the_latest_fact() -> None:
    assert lines(reply(desk(), ASKED, REFUND_CALL, note(PENDING), caller("did-it-go-through"))) == ["still-processing"]
    assert lines(reply(desk(), ASKED, REFUND_CALL, note(PENDING), note(DONE), caller("did-it-go-through"))) == [
        "refunded-visa"
    ]


def test_asked_how_it_stands_one_that_repeats_calls_calls_again_with_the_same_arguments() -> None:
    again = reply(desk(repeats_call=1), ASKED, REFUND_CALL, note(PENDING), caller("did-it-go-through")).tool
    assert again is not None
    assert again.arguments == REFUND_CALL.arguments


def test_a_reply_that_is_asked_for_behind_a_fact_tells_it() -> None:
    history = ASKED, REFUND_CALL, note(PENDING), caller("did-it-go-through"), heard("still-processing"), note(DONE)
    assert lines(reply(desk(), *history)) == ["refunded-visa"]


def test_a_fact_of_which_the_end_was_not_said_is_told_again() -> None:
    history = ASKED, REFUND_CALL, note(DONE), heard("refunded-visa", 5), caller("ask-hours"), heard("hours")
    assert lines(reply(desk(), *history)) == ["refunded-visa"]
    assert lines(reply(desk(), *history, heard("refunded-visa"))) == ["anything-else"]


def test_a_passive_note_is_left_out_of_the_answer_to_a_turn_at_its_rate() -> None:
    history = ASKED, REFUND_CALL, note(DONE), caller("ask-hours")
    assert lines(reply(desk(), *history)) == ["hours"]
    assert lines(reply(desk(ignores_passive_note=0), *history)) == ["hours", "refunded-visa"]


def test_what_was_asked_for_during_a_turn_is_told_behind_the_answer_to_it_and_once() -> None:
    asked = replace(caller("ask-hours"), has_request=True)
    assert lines(reply(desk(), ASKED, REFUND_CALL, note(DONE), asked)) == ["hours", "refunded-visa"]
    assert lines(reply(desk(refuses_to_say=1), ASKED, REFUND_CALL, note(DONE), asked)) == ["hours", "anything-else"]
    asked = replace(caller("did-it-go-through"), has_request=True)
    assert lines(reply(desk(), ASKED, REFUND_CALL, note(DONE), asked)) == ["refunded-visa"]


@pytest.mark.parametrize(
    ("behavior", "fact", "said"),
    [
        ("claims_too_early", PENDING, "refunded-visa"),
        ("names_wrong_card", DONE, "refunded-mastercard"),
        ("refuses_to_say", DONE, "anything-else"),
    ],
)
def test_what_a_model_gets_wrong_shows_at_its_rate(behavior: str, fact: str, said: str) -> None:
    history = ASKED, REFUND_CALL, note(fact)
    model = desk(**{behavior: 0.5})
    shown = [lines(model.reply(history, random.Random(seed))) == [said] for seed in range(20)]
    assert 5 <= sum(shown) <= 15

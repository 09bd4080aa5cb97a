"""One call of each scenario that the articles tell of, on a server that is reached by its address or its name.

A server of ``callwright serve`` that asks for a key is called in every run, a live service only if that is wanted. What
a call is held to must come about on any server: what the agent does, and not in which words it speaks.
"""

from __future__ import annotations

from typing import Any

import pytest

Call = dict[str, Any]
FOR_HEARING = ("heard", "not_heard")
"""They name recorded lines, which another model does not speak."""


HEARD_ERROR_MS = 20
"""As the scenarios have it; on a machine that let the client wait it may be off by as much more."""


def worst(call: Call, name: str) -> float:
    """The largest value of a figure, which has to be there."""
    return float(max(call["values"][name]))


def is_as_late_as_the_machine(call: Call, failure: dict[str, Any]) -> bool:
    """Whether a figure failed that goes by the clock, by no more than the client's process was late itself."""
    name = failure["name"]
    return bool(name == "heard_error_ms" and worst(call, name) <= HEARD_ERROR_MS + call["late_ms"])


@pytest.fixture(autouse=True)
def came_about(call: Call) -> None:
    """The call was played to its end on a server that is not ours, and all that can be judged of it held."""
    assert call["error"] is None, call["error"]
    assert call["void"] is None
    assert not [each for each in call["failed"] if not is_as_late_as_the_machine(call, each)], call["late_ms"]
    assert call["held"] or call["failed"]
    assert call["passed"]
    assert call["live"].startswith(("ws://", "wss://"))
    assert set(call["not_judged"]) & set(FOR_HEARING)


@pytest.mark.plays("check-in")
def test_an_answer_that_is_talked_over_is_cut_where_it_was_heard(call: Call) -> None:
    assert worst(call, "replies_cut") == 1
    assert worst(call, "heard_error_ms") <= HEARD_ERROR_MS + call["late_ms"]
    assert worst(call, "yield_latency_ms") < 1500


@pytest.mark.plays("booking")
def test_a_holding_line_that_is_talked_over_is_heard_in_part_and_the_booking_is_not_read(call: Call) -> None:
    assert worst(call, "replies_cut") == 1
    assert call["ended_by"] == "agent"
    assert worst(call, "goodbye_played") == 1


@pytest.mark.plays("pickup")
def test_what_the_caller_says_before_the_session_stands_is_held_and_sent(call: Call) -> None:
    assert worst(call, "held_sent_ms") > 1000
    assert worst(call, "caller_words_missing") == 0
    assert worst(call, "goodbye_played") == 1


@pytest.mark.plays("talk-over")
def test_a_goodbye_that_is_talked_over_is_taken_back(call: Call) -> None:
    assert worst(call, "goodbyes") == 2
    assert worst(call, "late_talk_over") == 0
    assert call["ended_by"] == "agent"


@pytest.mark.plays("mm-hmm")
def test_a_murmur_over_the_agents_voice_stops_nothing(call: Call) -> None:
    assert worst(call, "replies_cut") == 0
    assert call["effects"] == ["refund order:4417 32.00 USD card:4242"]


@pytest.mark.plays("did-it-go-through")
def test_who_asks_whether_it_went_through_is_told_once_it_has_and_it_is_done_once(call: Call) -> None:
    assert call["effects"] == ["refund order:4417 32.00 USD card:4242"]
    assert worst(call, "untold_at_hangup") == worst(call, "false_claims_heard") == 0
    assert call["values"]["time_to_truth_ms"]


@pytest.mark.plays("missed-confirmation")
def test_a_confirmation_that_was_talked_over_is_told_again(call: Call) -> None:
    assert worst(call, "replies_cut") == 1
    assert worst(call, "untold_at_hangup") == worst(call, "duplicate_effects") == 0
    assert call["effects"] == ["refund order:4417 32.00 USD card:4242"]


@pytest.mark.plays("wrong-card")
def test_a_change_of_mind_pays_the_other_card_alone(call: Call) -> None:
    assert call["effects"] == ["refund order:4417 32.00 USD card:8812"]
    assert worst(call, "false_claims_heard") == worst(call, "duplicate_effects") == 0


@pytest.mark.plays("hold")
def test_on_hold_nothing_is_said_until_a_person_answers(call: Call) -> None:
    assert worst(call, "spoke_on_hold") == worst(call, "keys_not_alone") == 0
    assert worst(call, "keys_pressed") == 1
    assert worst(call, "seconds_on_hold") > 0
    assert call["values"]["answered_after_ms"]

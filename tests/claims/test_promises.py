"""A reply promises a look-up by its last sentence, and by nothing before it."""

from __future__ import annotations

import pytest

from callwright.claims.promises import promises

PROMISES = (
    "Let me check that.",
    "Sure. One moment, please.",
    "I'll look into that for you right away!",
    "Okay, I am just checking your order.",
    "Bear with me...",
    "Let me pull up your order.",
    "Give me a second to find that.",
    "Okay, checking now.",
    "One second while I check.",
    "Let me see what I can find.",
    "I'll get back to you in a moment.",
    "Allow me a moment to look that up.",
    "Please hold.",
    "Please wait a moment.",
    "Let me go ahead and pull that up.",
    "Looking that up.",
    "Let me just take a quick look.",
    "Let me double-check that.",
    "Can you hold on a moment? I'll check.",
    "I will need a moment to find it.",
    "Let me look.",
    "Let's see what we have.",
    "Just one second, Ann.",
)
NO_PROMISES = (
    "",
    "We open at nine.",
    "Let me check that. It is on its way.",
    "Let me know if there is anything else.",
    "Shall I look that up for you?",
    "One moment. Which order is it?",
    "The pool is a minute away, and the bus comes in one minute.",
    "Then I will see you at three.",
    "Your table is booked for one moment before sunset.",
    "We'll check you in at three.",
    "I'm looking forward to seeing you.",
    "I'll look after it.",
    "It takes just a minute.",
    "Hold on to your ticket.",
    "Hold the door for her.",
    "Checking out is at eleven.",
    "Let me confirm: that's two nights for two people.",
    "Let me get that straight: you want two nights.",
    "If you like, I will check that for you.",
    "I'll check with you again tomorrow.",
    "We will look into your complaint and write to you.",
    "Please wait for the bus outside.",
    "Breakfast is just a minute away.",
    "One minute on foot.",
)


@pytest.mark.parametrize("text", PROMISES)
def test_c094_who_is_to_wait_was_promised_something(text: str) -> None:
    assert promises(text)


@pytest.mark.parametrize("text", NO_PROMISES)
def test_c094_an_answer_a_question_and_a_promise_that_was_kept_are_none(text: str) -> None:
    assert not promises(text)

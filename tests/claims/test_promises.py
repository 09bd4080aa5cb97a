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
)


@pytest.mark.parametrize("text", PROMISES)
def test_c094_who_is_to_wait_was_promised_something(text: str) -> None:
    assert promises(text)


@pytest.mark.parametrize("text", NO_PROMISES)
def test_c094_an_answer_a_question_and_a_promise_that_was_kept_are_none(text: str) -> None:
    assert not promises(text)

"""A caller's yes to terms that were read back to him, told in numbers: what counts as one, and what does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.drive import BOTH_LINES, CANCELLED, K1, R1, R2, U1, U2, A, B, Call, called, ended
from tests.core.telling import OP, OTHER, SENTENCES, TOOLS, played

from callwright.claims.facts import ClaimFacts, Milestone
from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.consent import ANSWER_MS, WORDS_MAX
from callwright.ids import ItemId, Ms, ResponseId

R9 = ResponseId("r9")
QUESTION = "That is a refund of 32 dollars, to your Visa ending in 4 2 4 2. Shall I go ahead?"
CONSENT = on.Consent(1, "hash of the terms")
YES = do.Authorize(OP, 1, "hash of the terms")


def proposed(version: int = 1, op_id: str = OP, consent: on.Consent | None = CONSENT, **facts: Any) -> on.FactChanged:
    known: dict[str, Any] = {"amount_minor": 3200, "currency": "USD", "brand": "Visa", "last4": "4242", **facts}
    claim = ClaimFacts("refund", Milestone.PROPOSED, ("amount", "card"), subject="order:4417", **known)
    sentence = "Nothing has been done yet; it needs a yes first."
    return on.FactChanged(op_id, version, claim, sentence, is_settled=False, is_ours=True, consent=consent)


def asked(text: str = QUESTION, reports: Any = BOTH_LINES[0], latency_ms: Ms = 0) -> Call:
    """The terms are proposed, and this much is read back; the line has just played it."""
    call = Call(reports, tools=TOOLS, latency_ms=latency_ms)
    call.at(0, on.ResponseStarted(R1), called(K1, "issue_refund"), proposed())
    call.at(100, on.ToolFinished(K1, on.ToolOutcome.RETURNED, "{}", speaks=True), ended(R1))
    call.at(200)
    call.reply(R2, A, 8_000, text, speed=4)
    call.at(int(call.line.free_ms) + 20)
    return call


def answers(call: Call, text: str, after_ms: Ms = 500, item_id: ItemId = U1, confirm_ms: Ms = 800) -> None:
    """The caller speaks so long after the end of what the line had; the server tells it a little later."""
    began_ms = int(call.line.free_ms) + after_ms
    call.at(began_ms + confirm_ms, on.SpeechStarted(item_id, began_ms))
    call.at(call.now_ms + 700, on.SpeechStopped(item_id, 0), on.CallerTranscribed(item_id, text))


def decided(call: Call) -> list[do.Command]:
    return [command for _, command in call.log if isinstance(command, do.Authorize | do.Withdraw)]


@pytest.mark.parametrize("reports", BOTH_LINES)
@pytest.mark.parametrize("text", ["Yes.", "Yes, please.", "Sure, that works."])
def test_a_plain_yes_after_a_read_back_authorises_exactly_those_terms(reports, text):
    call = asked(reports=reports)
    assert decided(call) == []
    answers(call, text)
    assert decided(call) == [YES]


@pytest.mark.parametrize("text", ["No.", "No, wait.", "Never mind."])
def test_a_no_withdraws_what_was_proposed(text):
    call = asked()
    answers(call, text)
    assert decided(call) == [do.Withdraw(OP)]


@pytest.mark.parametrize(
    "text",
    [
        "Yes, but to the Mastercard.",
        "Which card was that?",
        "Mm-hmm.",
        "",
        "Yes, and the government said yes, yes, yes, please, right.",
        "Shall I go ahead?",
        "go ahead",
    ],
    ids=["a change", "a question", "a murmur", "nothing", "a television", "an echo", "a piece of an echo"],
)
def test_anything_else_decides_nothing_and_a_later_yes_needs_a_new_read_back(text):
    call = asked()
    answers(call, text)
    call.at(call.now_ms + 400)
    answers(call, "Yes.", 3_000, U2)
    assert decided(call) == []


def test_after_another_read_back_a_yes_counts():
    call = asked()
    answers(call, "Which card was that?")
    call.at(call.now_ms + 500)
    call.reply(R9, B, 8_000, QUESTION)
    call.at(int(call.line.free_ms) + 20)
    answers(call, "Yes.", item_id=U2)
    assert decided(call) == [YES]


@pytest.mark.parametrize(
    "text",
    [
        "That is 32 dollars. Shall I go ahead?",
        "That is 23 dollars, to your Visa ending in 4 2 4 2. Shall I go ahead?",
        "32 dollars, to your Visa ending in 4 2 4 2. It is done. Is there anything else?",
        "One moment, please.",
    ],
    ids=["no card", "another amount", "said to be done", "no question"],
)
def test_a_yes_to_something_else_is_no_consent(text):
    call = asked(text)
    answers(call, "Yes.")
    assert decided(call) == []


def test_a_yes_over_the_agents_voice_is_no_consent():
    """The turn began a second before the end of the question, and is confirmed only behind it."""
    call = asked()
    answers(call, "Yes.", after_ms=-600)
    assert decided(call) == []


def test_a_yes_that_cut_the_question_is_no_consent():
    call = Call(BOTH_LINES[0], tools=TOOLS)
    call.at(0, proposed(), on.ResponseStarted(R2))
    call.stream(R2, A, 8_000, speed=4)
    call.at(7_000, on.ReplyWritten(R2, A, QUESTION), on.SpeechStarted(U1, 6_300), ended(R2, CANCELLED))
    call.at(7_100, on.ItemRetrieved(A, QUESTION, is_cut=False))
    call.at(7_500, on.SpeechStopped(U1, 0), on.CallerTranscribed(U1, "Yes."))
    assert decided(call) == []


def test_the_end_of_a_question_that_is_under_way_to_the_ear_is_waited_for():
    call = asked(latency_ms=1_500)
    answers(call, "Yes.", after_ms=400)
    assert decided(call) == []
    call = asked(latency_ms=1_500)
    answers(call, "Yes.", after_ms=1_900)
    assert decided(call) == [YES]


@pytest.mark.parametrize(("after_ms", "counts"), [(ANSWER_MS - 100, True), (ANSWER_MS + 200, False)])
def test_a_yes_has_its_time(after_ms, counts):
    call = asked()
    answers(call, "Yes.", after_ms)
    assert bool(decided(call)) is counts


def test_where_audio_was_lost_before_the_session_a_yes_still_counts():
    """The server's audio clock is 7 s behind; it confirms speech within a second."""
    call = asked()
    at_ms = int(call.line.free_ms) + 1_200
    call.at(at_ms, on.SpeechStarted(U1, at_ms - 7_800))
    call.at(at_ms + 500, on.SpeechStopped(U1, 0), on.CallerTranscribed(U1, "Yes."))
    assert decided(call) == [YES]


def test_another_reply_between_question_and_answer_makes_a_new_read_back_necessary():
    call = asked()
    call.reply(R9, B, 1_000, "By the way, we open at nine.")
    played(call)
    answers(call, "Yes.")
    assert decided(call) == []


def test_new_terms_need_a_read_back_of_their_own():
    call = asked()
    call.at(call.now_ms, proposed(2, consent=on.Consent(2, "hash of others")))
    answers(call, "Yes.")
    assert decided(call) == []


def name_of(text: str, rev: int) -> on.FactChanged:
    """A refund in a name that has to be heard is proposed, in this revision."""
    fact = proposed(rev, consent=on.Consent(rev, f"hash of {text}"), texts=(("name", text),))
    return replace(fact, facts=replace(fact.facts, must_hear=("amount", "name")))


def test_c145_after_a_refusal_a_name_that_sounds_like_another_counts_only_spelled():
    """The order of the case: Reed is read back, "No, R-E-I-D", and what is proposed then is read back twice."""
    named = "That is a refund of 32 dollars with name {}. Shall I go ahead?"
    call = Call(BOTH_LINES[0], tools=TOOLS)
    call.at(0, name_of("Reed", 1))
    turns = (("Reed", "No, R-E-I-D."), ("Reid", "Yes."), ("R-E-I-D", "Yes."))
    for number, (name, answer) in enumerate(turns):
        call.reply(ResponseId(f"said{number}"), ItemId(f"said{number}"), 8_000, named.format(name), speed=4)
        call.at(int(call.line.free_ms) + 20)
        answers(call, answer, item_id=ItemId(f"answer{number}"))
        if number == 0:
            assert decided(call) == [do.Withdraw(OP)]
            call.at(call.now_ms + 100, name_of("Reid", 2))
            assert any("letter by letter" in str(command) for _, command in call.log)
        call.at(call.now_ms + 200)
        assert len(decided(call)) == 1 + (number == 2)
    assert decided(call)[-1] == do.Authorize(OP, 2, "hash of Reid")


def test_what_is_decided_otherwise_needs_no_yes():
    call = asked()
    cancelled = ClaimFacts("refund", Milestone.CANCELLED, subject="order:4417")
    fact = on.FactChanged(OP, 2, cancelled, SENTENCES[Milestone.CANCELLED], is_settled=True, is_ours=True)
    call.at(call.now_ms, fact)
    answers(call, "Yes.")
    assert decided(call) == []


def test_a_question_that_fits_two_proposals_is_about_neither():
    call = Call(BOTH_LINES[0], tools=TOOLS)
    call.at(0, proposed(), proposed(1, OTHER))
    call.reply(R2, A, 8_000, QUESTION, speed=4)
    call.at(int(call.line.free_ms) + 20)
    answers(call, "Yes.")
    assert decided(call) == []


def test_a_read_back_that_began_before_the_proposal_is_none():
    call = Call(BOTH_LINES[0], tools=TOOLS)
    call.at(0, on.ResponseStarted(R2), proposed())
    call.stream(R2, A, 8_000, speed=4)
    call.at(call.now_ms, on.ReplyWritten(R2, A, QUESTION), ended(R2))
    call.at(int(call.line.free_ms) + 20)
    answers(call, "Yes.")
    assert decided(call) == []


def test_words_that_come_when_the_call_is_over_decide_nothing():
    call = asked()
    began_ms = int(call.line.free_ms) + 500
    call.at(began_ms + 800, on.SpeechStarted(U1, began_ms))
    call.at(call.now_ms + 300, on.LineClosed("caller", "hung up"), on.CallerTranscribed(U1, "Yes."))
    assert decided(call) == []


@given(words=st.lists(st.sampled_from(["yes", "please", "no", "the", "visa", "okay", "go", "ahead"]), max_size=12))
@settings(max_examples=40)
def test_whatever_is_said_decides_once_at_most_and_never_at_length(words):
    call = asked()
    answers(call, " ".join(words))
    answers(call, "Yes.", 4_000, U2)
    assert len(decided(call)) <= 1
    if "no" in words or len(words) > WORDS_MAX or not words:
        assert YES not in decided(call)

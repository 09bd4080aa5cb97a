"""An outcome that a reply did not tell, or nobody heard: it is asked for again, three times at most."""

from __future__ import annotations

from tests.core.drive import (
    CANCELLED,
    R1,
    R2,
    R3,
    U1,
    A,
    B,
    C,
    Call,
    both_lines,
    ended,
)
from tests.core.telling import (
    DONE,
    OP,
    R4,
    D,
    asks,
    desk,
    fact,
    notes,
    played,
    records,
    underway,
)

from callwright.claims.facts import Milestone
from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.telling import TEXT_PATIENCE_MS
from callwright.core.told import ASKS_MAX
from callwright.core.turns import REPLY_PATIENCE_MS
from callwright.ids import ItemId, ResponseId

# --- missed ----------------------------------------------------------------------------------------------------------


@both_lines
def test_c072_a_confirmation_that_was_talked_over_is_told_again_when_the_floor_is_free(reports):
    call = desk(reports)
    underway(call)
    call.at(4_000, fact(Milestone.CONFIRMED, 3))
    call.at(4_200, on.ResponseStarted(R2))
    call.stream(R2, B, 1_200)
    call.at(call.now_ms, on.SpeechStarted(U1, 0), on.ReplyWritten(R2, B, DONE), ended(R2, CANCELLED))
    call.at(call.now_ms + 100, on.ItemRetrieved(B, "Your refund of 32 dollars", is_cut=True))
    assert records(call) == ["confirmed asked", "confirmed missed"]
    call.at(call.now_ms + 900, on.SpeechStopped(U1, 0))
    call.at(call.now_ms + 600)
    call.reply(R3, C, 1_500, "We open at nine.", speed=2)
    assert asks(call) == 1, "the reply to his question comes first"
    call.at(call.now_ms + 4_000)
    assert asks(call) == 2
    call.reply(R4, D, 8_000, DONE, speed=2)
    played(call)
    assert records(call)[-1] == "confirmed heard"
    assert asks(call) == 2


@both_lines
def test_c072_a_confirmation_that_was_cut_before_its_first_sound_is_told_by_a_later_reply(reports):
    call = desk(reports)
    underway(call)
    call.at(4_000, fact(Milestone.CONFIRMED, 3))
    call.at(4_200, on.ResponseStarted(R2))
    call.at(4_250, on.SpeechStarted(U1, 0), on.ReplyWritten(R2, B, DONE), ended(R2, CANCELLED))
    assert "confirmed heard" not in records(call)
    call.at(5_000, on.SpeechStopped(U1, 0))
    call.at(5_600)
    call.reply(R3, C, 1_500, "We open at nine.", speed=2)
    call.at(call.now_ms + 4_000)
    assert asks(call) == 2
    call.reply(R4, D, 8_000, DONE, speed=2)
    played(call)
    assert (asks(call), records(call)[-1]) == (2, "confirmed heard")


def test_a_word_at_the_cut_does_not_count():
    """The server's text ends in the last field, right at the cut: it may be torn."""
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED))
    call.at(100, on.ResponseStarted(R1))
    call.stream(R1, A, 4_000)
    call.at(
        call.now_ms, on.SpeechStarted(U1, 0), on.ReplyWritten(R1, A, DONE + " Anything else?"), ended(R1, CANCELLED)
    )
    cut = "Your refund of 32 dollars has gone through to the Visa ending in 4 2 4 2"
    call.at(call.now_ms + 50, on.ItemRetrieved(A, cut, is_cut=True))
    assert records(call)[-1] == "confirmed missed"


def test_it_is_asked_for_three_times_at_most_and_then_left_to_somebody_else():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED))
    for number in range(5):
        call.reply(ResponseId(f"x{number}"), ItemId(f"y{number}"), 800, "Sure.")
        call.at(call.now_ms + 2_000)
    assert asks(call) == ASKS_MAX
    assert records(call)[-2:] == ["confirmed missed", "confirmed deferred"]
    assert [each.op_id for each in call.session.untold()] == [OP]


def test_a_response_that_fails_counts_as_missed_with_the_same_bound():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED))
    for number in range(5):
        response = ResponseId(f"x{number}")
        call.at(call.now_ms + 500, on.ResponseStarted(response), ended(response, on.ResponseStatus.FAILED))
    assert asks(call) == ASKS_MAX
    assert records(call)[-1] == "confirmed deferred"


def test_requests_that_are_refused_or_never_answered_count_too():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED))
    call.refuse(call.done(do.RequestReply)[-1])
    call.at(call.now_ms + 5 * REPLY_PATIENCE_MS)
    assert records(call).count("confirmed asked") == ASKS_MAX
    assert records(call)[-1] == "confirmed deferred"


def test_what_was_deferred_is_heard_where_a_later_reply_tells_it():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED))
    for number in range(3):
        call.reply(ResponseId(f"x{number}"), ItemId(f"y{number}"), 800, "Sure.")
        call.at(call.now_ms + 2_000)
    call.reply(R2, B, 8_000, DONE)
    played(call)
    assert records(call)[-1] == "confirmed heard"
    assert call.session.untold() == ()


def test_a_text_that_comes_behind_the_audio_is_waited_for():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED), on.ResponseStarted(R1))
    call.stream(R1, A, 8_000)
    call.at(call.now_ms, ended(R1))
    call.at(call.now_ms + 1_500)
    assert records(call) == ["confirmed asked"]
    call.at(call.now_ms, on.ReplyWritten(R1, A, DONE))
    assert records(call) == ["confirmed asked", "confirmed heard"]


def test_a_reply_without_any_text_tells_nothing():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED))
    call.at(100, on.ResponseStarted(R1))
    call.stream(R1, A, 2_000)
    call.at(call.now_ms, ended(R1))
    call.at(call.now_ms + TEXT_PATIENCE_MS + 500)
    assert records(call)[:2] == ["confirmed asked", "confirmed missed"]


def burst(call: Call, number: int, after_ms: int) -> None:
    """The confirmation is told, and a noise of 90 ms makes the server cut it."""
    response, item = ResponseId(f"x{number}"), ItemId(f"y{number}")
    call.at(call.now_ms + 200, on.ResponseStarted(response))
    call.stream(response, item, after_ms)
    call.at(call.now_ms, on.SpeechStarted(ItemId(f"u{number}"), 0), on.ReplyWritten(response, item, DONE))
    call.at(call.now_ms, ended(response, CANCELLED), on.ItemRetrieved(item, "Your refund", is_cut=True))
    call.at(call.now_ms + 90, on.SpeechStopped(ItemId(f"u{number}"), 0))


def test_c040_an_outcome_that_a_noise_cut_is_asked_for_again_and_heard():
    """The server gives the noise no reply of its own: the wait for it has a bound, then the outcome is asked for."""
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED))
    burst(call, 1, 1_000)
    call.at(call.now_ms + REPLY_PATIENCE_MS + 100)
    assert asks(call) == 2
    call.reply(R2, B, 8_000, DONE, speed=4)
    played(call)
    assert records(call)[-1] == "confirmed heard"


def test_c040_with_a_noise_at_every_try_it_is_left_to_somebody_else_after_the_third():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED))
    for number in range(4):
        burst(call, number, 1_000)
        call.at(call.now_ms + REPLY_PATIENCE_MS + 100)
    assert records(call).count("confirmed asked") == ASKS_MAX
    assert [each.op_id for each in call.session.untold()] == [OP]


def test_c090_an_outcome_that_an_empty_response_did_not_tell_is_asked_for_again_without_the_caller():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED))
    call.at(500, on.ResponseStarted(R1), ended(R1))
    assert asks(call) == 2
    call.reply(R2, B, 8_000, DONE, speed=4)
    played(call)
    assert (asks(call), records(call)[-1]) == (2, "confirmed heard")


def test_c095_an_outcome_that_a_failed_response_did_not_tell_is_asked_for_again():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED))
    call.at(500, on.ResponseStarted(R1), on.ResponseEnded(R1, on.ResponseStatus.FAILED, "rate_limit_exceeded"))
    assert asks(call) == 2
    assert any("rate_limit_exceeded" in what for what in call.anomalies())


def test_c098_a_request_that_crosses_the_servers_own_reply_is_served_by_that_reply():
    """Its reply began behind the note: it tells the outcome, and nothing more is asked for."""
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED))
    call.at(50, on.ResponseStarted(R1))
    call.refuse(call.done(do.RequestReply)[-1], "conversation_already_has_active_response")
    call.stream(R1, A, 8_000, speed=4)
    call.at(call.now_ms, on.ReplyWritten(R1, A, DONE))
    call.at(call.now_ms, ended(R1))
    played(call)
    assert records(call) == ["confirmed asked", "confirmed heard"]
    assert asks(call) == 1


def test_after_the_third_wrong_telling_the_model_is_not_told_to_put_it_right():
    """Nothing more is asked for, so the note would be followed by nothing; somebody else puts it right."""
    call = desk()
    underway(call)
    call.at(4_000, fact(Milestone.FAILED, 3))
    for number in range(ASKS_MAX):
        before = len(notes(call))
        call.reply(ResponseId(f"x{number}"), ItemId(f"y{number}"), 8_000, DONE, speed=4)
        played(call)
        assert len(notes(call)) - before == (number < ASKS_MAX - 1)
    assert records(call)[-1] == "failed deferred"

"""A call that owes the caller an outcome, told in numbers: it is asked for until it was heard, and no longer."""

from __future__ import annotations

import pytest
from tests.core.drive import (
    BOTH_LINES,
    CANCELLED,
    K1,
    R1,
    R2,
    R3,
    U1,
    A,
    B,
    C,
    Call,
    audio,
    both_lines,
    called,
    ended,
    plan,
)
from tests.core.telling import (
    DONE,
    OP,
    OTHER,
    PENDING,
    SENTENCES,
    TOOLS,
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
from callwright.core.goodbye import HANDOVER_MS
from callwright.core.session import Session
from callwright.ids import ItemId, ResponseId, ToolCallId

# --- an outcome comes ------------------------------------------------------------------------------------------------


@both_lines
def test_an_outcome_is_noted_asked_for_and_heard_once(reports):
    call = desk(reports)
    underway(call)
    assert asks(call) == 0, "what is under way is owed to nobody"
    commands = call.at(4_000, fact(Milestone.CONFIRMED, 3))
    assert [type(command) for command in commands] == [do.PostFacts, do.RecordTold, do.RequestReply]
    call.at(4_200)
    call.reply(R2, B, 8_000, DONE, speed=4)
    assert records(call) == ["confirmed asked"], "it is not heard before the line has played it"
    played(call)
    assert records(call) == ["confirmed asked", "confirmed heard"]
    assert (asks(call), call.session.untold()) == (1, ())


def test_a_note_says_the_state_the_sentence_and_what_to_do():
    call = desk()
    underway(call)
    call.at(4_000, fact(Milestone.CONFIRMED, 3))
    assert [note["state"] for note in notes(call)] == ["running", "accepted", "confirmed"]
    assert notes(call)[-1] == {
        "fact": "refund of order:4417",
        "version": 3,
        "state": "confirmed",
        "say": SENTENCES[Milestone.CONFIRMED],
        "must_hear": ["amount", "card"],
        "next": "Tell the caller this in your next reply, in these words.",
    }
    assert "never say that it is done" in notes(call)[0]["next"]


def test_facts_that_are_known_before_the_session_is_ready_are_noted_when_it_is():
    session = Session(plan(tools=TOOLS))
    for event in (on.LineOpened(), fact(Milestone.CONFIRMED, ours=False), on.ModelConnected()):
        session.handle(event, 0)
    assert do.PostFacts not in [type(command) for command in session.commands()]
    session.handle(on.SessionReady(), 0)
    assert [type(command) for command in session.commands()] == [do.OpenUplink, do.PostFacts]


def test_a_fact_that_comes_again_or_late_changes_nothing():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED, 3))
    assert call.at(1, fact(Milestone.CONFIRMED, 3), fact(Milestone.RUNNING, 2)) == []


def test_the_exact_sentence_of_the_record_counts_in_any_language():
    call = Call(BOTH_LINES[0], tools=TOOLS, actions=frozenset({"issue_refund"}), locale="fr")
    spanish = "El reembolso esta hecho, 32 dolares."
    told = fact(Milestone.CONFIRMED)
    call.at(0, on.FactChanged(OP, 1, told.facts, spanish, is_settled=True, is_ours=True))
    call.reply(R1, A, 2_000, DONE)
    played(call)
    assert records(call)[-1] == "confirmed asked", "nothing is understood where there are no rules"
    call.reply(R2, B, 6_000, f"Bueno. {spanish} Gracias.")
    played(call)
    assert records(call)[-1] == "confirmed heard"


def test_nothing_is_told_while_the_action_has_no_output():
    call = desk()
    call.at(0, on.ResponseStarted(R1), called(K1, "issue_refund"), ended(R1), fact(Milestone.CONFIRMED))
    assert asks(call) == 0
    call.at(500, on.ToolFinished(K1, on.ToolOutcome.RETURNED, "{}", speaks=False))
    assert asks(call) == 1


# --- did it go through? ----------------------------------------------------------------------------------------------


@both_lines
def test_did_it_go_through_is_answered_and_the_outcome_is_told_all_the_same(reports):
    """The caller asks 0.8 s into the holding line; what the server answers by itself tells no outcome."""
    call = desk(reports)
    call.at(0, on.ResponseStarted(R1), called(K1, "issue_refund"), fact(Milestone.RUNNING, 1))
    call.stream(R1, A, 800)
    call.at(800, on.SpeechStarted(U1, 0), ended(R1, CANCELLED))
    call.at(1_000, on.ToolFinished(K1, on.ToolOutcome.RETURNED, "{}", speaks=False), fact(Milestone.ACCEPTED, 2))
    call.at(1_900, on.SpeechStopped(U1, 0))
    call.at(2_500)
    call.reply(R2, B, 2_000, PENDING, speed=4)
    assert asks(call) == 0
    call.at(4_000, fact(Milestone.CONFIRMED, 3))
    assert asks(call) == 1
    call.at(4_300)
    call.reply(R3, C, 8_000, DONE, speed=4)
    played(call)
    assert records(call) == ["confirmed asked", "confirmed heard"]
    assert asks(call) == 1


def test_one_reply_serves_the_callers_turn_and_the_outcome():
    """The fact comes while he speaks: the server's own reply tells it, and nothing more is asked for."""
    call = desk()
    underway(call)
    call.at(3_000, on.SpeechStarted(U1, 0))
    call.at(3_200, fact(Milestone.CONFIRMED, 3))
    call.at(3_800, on.SpeechStopped(U1, 0))
    call.at(4_400)
    call.reply(R2, B, 8_000, DONE, speed=2)
    played(call)
    assert records(call) == ["confirmed heard"]
    assert asks(call) == 0


def test_where_the_reply_to_his_turn_does_not_tell_it_it_is_asked_for_with_a_reminder():
    call = desk()
    underway(call)
    call.at(3_000, on.SpeechStarted(U1, 0))
    call.at(3_200, fact(Milestone.CONFIRMED, 3))
    call.at(3_800, on.SpeechStopped(U1, 0))
    call.at(4_400)
    call.reply(R2, B, 2_000, "We open at nine.", speed=2)
    assert asks(call) == 0, "until the reply is heard it may still tell"
    call.at(9_000)
    assert records(call) == ["confirmed missed", "confirmed asked"]
    assert asks(call) == 1
    assert notes(call)[-1]["next"].startswith("The caller has not heard this.")


def test_a_reply_that_began_before_the_fact_tells_nothing_whatever_it_says():
    call = desk()
    underway(call)
    call.at(3_000, on.ResponseStarted(R2))
    call.at(3_050, fact(Milestone.CONFIRMED, 3))
    call.stream(R2, B, 8_000, speed=4)
    call.at(call.now_ms, on.ReplyWritten(R2, B, DONE), ended(R2))
    assert asks(call) == 1
    call.at(12_000)
    assert records(call)[-1] != "confirmed heard"


def test_a_holding_line_and_a_farewell_tell_nothing():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED))
    call.at(100, on.ResponseStarted(R1), called(K1, "look_up"))
    call.stream(R1, A, 4_000, speed=4)
    call.at(call.now_ms, on.ReplyWritten(R1, A, DONE), ended(R1))
    call.at(8_000)
    assert "confirmed heard" not in records(call)


# --- what changes, and what was said wrong ---------------------------------------------------------------------------


def test_a_newer_version_makes_the_telling_of_the_older_one_void():
    call = desk()
    call.at(0, fact(Milestone.UNKNOWN, 1))
    call.at(100, on.ResponseStarted(R1))
    call.at(200, fact(Milestone.CONFIRMED, 2))
    assert records(call) == ["unknown asked", "unknown void"]
    call.stream(R1, A, 3_000)
    call.at(call.now_ms, on.ReplyWritten(R1, A, SENTENCES[Milestone.UNKNOWN]), ended(R1))
    assert records(call)[-1] == "confirmed asked"


@pytest.mark.parametrize(
    ("then", "told"), [(Milestone.CANCELLED, "cancelled heard"), (Milestone.CONFIRMED, "confirmed heard")]
)
def test_never_mind_is_answered_with_what_has_become_of_it(then, told):
    """Withdrawn before it was sent, or too late: either way he is told the truth, whatever was said meanwhile."""
    call = desk()
    call.at(0, fact(Milestone.REQUESTED))
    call.at(1_000, on.SpeechStarted(U1, 0))
    call.at(1_900, on.SpeechStopped(U1, 0), on.CallerTranscribed(U1, "Never mind."))
    call.at(2_000, on.ResponseStarted(R1), called(K1, "look_up"))
    call.at(2_300, on.ToolFinished(K1, on.ToolOutcome.RETURNED, "{}"), fact(then, 2), ended(R1))
    assert asks(call) == 1
    call.reply(R2, B, 8_000, SENTENCES[then], speed=4)
    played(call)
    assert (records(call)[-1], asks(call)) == (told, 1)


@both_lines
def test_a_murmur_that_the_server_takes_for_no_turn_stops_nothing(reports):
    call = desk(reports)
    call.at(0, fact(Milestone.CONFIRMED), on.ResponseStarted(R1))
    call.stream(R1, A, 1_200)
    call.at(call.now_ms, on.CallerLoud(is_loud=True))
    call.at(call.now_ms + 300, on.CallerLoud(is_loud=False))
    call.stream(R1, A, 6_800)
    call.at(call.now_ms, on.ReplyWritten(R1, A, DONE), ended(R1))
    played(call)
    assert (records(call)[-1], call.cuts()) == ("confirmed heard", [])


def test_what_was_heard_is_owed_anew_when_it_changes():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED, 1))
    call.reply(R1, A, 8_000, DONE)
    played(call)
    assert records(call)[-1] == "confirmed heard"
    call.at(call.now_ms, fact(Milestone.REVERSED, 2))
    assert records(call)[-1] == "reversed asked"


def test_a_wrong_statement_that_was_heard_owes_a_correction():
    call = desk()
    underway(call)
    call.at(3_000)
    call.reply(R2, B, 3_000, "Your refund has gone through.")
    played(call)
    assert records(call) == ["accepted correction", "accepted asked"]
    assert "You have said that it is done. That is wrong" in notes(call)[-1]["next"]
    call.reply(R3, C, 12_000, f"I was wrong. {SENTENCES[Milestone.ACCEPTED]}")
    played(call)
    assert records(call)[-1] == "accepted heard"
    assert asks(call) == 1


def test_a_holding_line_that_claims_too_much_is_corrected_too():
    call = desk()
    call.at(0, on.ResponseStarted(R1), called(K1, "issue_refund"))
    call.stream(R1, A, 2_000)
    call.at(call.now_ms, fact(Milestone.RUNNING), on.ToolFinished(K1, on.ToolOutcome.RETURNED, "{}", speaks=False))
    call.at(call.now_ms, on.ReplyWritten(R1, A, "I have refunded it."), ended(R1))
    call.at(5_000)
    assert records(call)[0] == "running correction"


def test_a_right_outcome_with_another_card_owes_a_correction():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED))
    call.reply(R1, A, 8_000, DONE)
    played(call)
    assert records(call)[-1] == "confirmed heard"
    call.reply(R2, B, 8_000, DONE.replace("Visa", "Mastercard").replace("4 2 4 2", "8 8 1 2"))
    played(call)
    assert "confirmed correction" in records(call)
    assert "You have named another amount or card" in notes(call)[-1]["next"]


def test_a_wrong_statement_that_nobody_heard_needs_no_correction():
    call = desk()
    underway(call)
    call.at(3_000, on.ResponseStarted(R2))
    call.stream(R2, B, 600)
    call.at(call.now_ms, on.SpeechStarted(U1, 0), on.ReplyWritten(R2, B, "Let me see. It has gone through."))
    call.at(call.now_ms, ended(R2, CANCELLED), on.ItemRetrieved(B, "Let me", is_cut=True))
    call.at(call.now_ms + 5_000)
    assert "accepted correction" not in records(call)


def test_a_claim_that_came_true_since_needs_no_correction():
    call = desk()
    underway(call)
    call.at(3_000, on.ResponseStarted(R2))
    call.stream(R2, B, 2_000)
    call.at(call.now_ms, fact(Milestone.CONFIRMED, 3), on.ReplyWritten(R2, B, "It has gone through."), ended(R2))
    call.at(call.now_ms + 3_000)
    assert records(call) == ["confirmed asked"]


def test_a_right_statement_about_one_operation_is_no_wrong_one_about_another():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED, 1), fact(Milestone.ACCEPTED, 1, OTHER, subject="order:5120", amount_minor=999))
    call.reply(R1, A, 8_000, DONE)
    played(call)
    assert records(call)[-1] == "confirmed heard"
    assert records(call, OTHER) == []


def test_one_sentence_that_fits_two_operations_tells_one_of_them():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED, 1), fact(Milestone.CONFIRMED, 1, OTHER, subject="order:5120"))
    call.reply(R1, A, 8_000, DONE)
    played(call)
    assert records(call)[-1] != records(call, OTHER)[-1]
    call.reply(R2, B, 8_000, DONE)
    played(call)
    assert (records(call)[-1], records(call, OTHER)[-1]) == ("confirmed heard", "confirmed heard")


# --- the end of the call ---------------------------------------------------------------------------------------------


def farewell(call: Call, response_id: ResponseId = R2, item_id: ItemId = B) -> None:
    call.at(call.now_ms, on.ResponseStarted(response_id), called(K1, "end_call", response_id))
    call.at(call.now_ms, on.ToolFinished(K1, on.ToolOutcome.RETURNED, "done"))
    call.stream(response_id, item_id, 1_500, speed=3)
    call.at(call.now_ms, on.ReplyWritten(response_id, item_id, "Goodbye!"), ended(response_id))


def test_a_goodbye_is_held_while_an_outcome_is_to_come_and_withdrawn_when_it_does():
    call = desk()
    call.at(0, fact(Milestone.ACCEPTED, 1))
    farewell(call)
    call.at(4_000)
    assert call.done(do.HangUp) == []
    commands = call.at(5_000, fact(Milestone.CONFIRMED, 2))
    assert {do.PostFacts, do.RequestReply, do.PostToolOutput} <= {type(command) for command in commands}
    assert not call.session.leave.goodbye.is_pending


def test_a_goodbye_is_withdrawn_for_an_outcome_that_is_owed():
    """The model says goodbye where it was to tell: the call is still open, and it is asked again."""
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED, 1))
    farewell(call)
    assert not call.session.leave.goodbye.is_pending
    assert (asks(call), records(call)) == (2, ["confirmed asked", "confirmed missed", "confirmed asked"])


def test_a_model_that_never_tells_and_only_says_goodbye_is_let_go_after_the_third_time():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED, 1))
    for number in range(3):
        response, item = ResponseId(f"x{number}"), ItemId(f"y{number}")
        call.at(call.now_ms, on.ResponseStarted(response))
        call_id = ToolCallId(f"k{number}")
        call.at(call.now_ms, on.ToolCalled(response, ItemId("i"), call_id, "end_call", "{}"))
        call.at(call.now_ms, on.ToolFinished(call_id, on.ToolOutcome.RETURNED, "done"))
        call.stream(response, item, 1_500)
        call.at(call.now_ms, on.ReplyWritten(response, item, "Goodbye!"), ended(response))
    call.at(call.now_ms + 3_000)
    assert len(call.done(do.HangUp)) == 1
    assert [each.milestone for each in call.session.untold()] == [Milestone.CONFIRMED]


def test_after_the_wait_for_an_outcome_the_line_is_hung_up_and_it_is_left_to_somebody_else():
    call = desk()
    call.at(0, fact(Milestone.ACCEPTED, 1))
    farewell(call)
    call.at(HANDOVER_MS + 5_000)
    assert len(call.done(do.HangUp)) == 1
    assert records(call) == ["accepted deferred"]
    assert [each.sentence for each in call.session.untold()] == [SENTENCES[Milestone.ACCEPTED]]
    assert any("owed the outcome of 1 action" in what for what in call.anomalies())


def test_nobody_waits_for_an_unknown_outcome_that_was_told():
    call = desk()
    call.at(0, fact(Milestone.UNKNOWN, 1))
    call.reply(R1, A, 8_000, SENTENCES[Milestone.UNKNOWN])
    played(call)
    assert records(call)[-1] == "unknown heard"
    farewell(call)
    call.at(call.now_ms + 3_000)
    assert len(call.done(do.HangUp)) == 1


def test_what_becomes_of_a_doubt_after_the_call_is_for_somebody_to_tell():
    call = desk()
    call.at(0, fact(Milestone.UNKNOWN, 1))
    call.reply(R1, A, 8_000, SENTENCES[Milestone.UNKNOWN])
    played(call)
    farewell(call)
    call.at(call.now_ms + 3_000)
    assert records(call)[-2:] == ["unknown heard", "unknown deferred"]
    assert [each.milestone for each in call.session.untold()] == [Milestone.UNKNOWN]


@both_lines
def test_whatever_is_owed_when_the_caller_hangs_up_is_deferred(reports):
    call = desk(reports)
    call.at(0, fact(Milestone.CONFIRMED), on.ResponseStarted(R1))
    call.stream(R1, A, 1_000)
    call.at(call.now_ms, on.ReplyWritten(R1, A, DONE), on.LineClosed("caller", "hung up"))
    assert records(call)[-1] == "confirmed deferred"
    assert [each.op_id for each in call.session.untold()] == [OP]


def test_a_confirmation_that_was_under_way_to_the_ear_when_the_line_ended_was_not_heard():
    call = Call(BOTH_LINES[0], tools=TOOLS, latency_ms=1_500)
    call.at(0, fact(Milestone.CONFIRMED))
    call.reply(R1, A, 8_000, DONE)
    played(call)
    assert records(call)[-1] == "confirmed heard"
    call.at(call.now_ms + 100, on.LineClosed("caller", "hung up"))
    assert records(call)[-2:] == ["confirmed missed", "confirmed deferred"]


def test_an_outcome_of_an_earlier_call_is_noted_and_asked_for_only_where_it_is_untold():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED, ours=False))
    assert (asks(call), notes(call)[-1]["next"][:29]) == (0, "This is from an earlier call.")
    call.at(1, fact(Milestone.CONFIRMED, op_id=OTHER, subject="order:5120"))
    assert asks(call) == 1


def test_what_an_earlier_call_did_is_corrected_where_it_is_told_wrongly():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED, ours=False))
    call.reply(R1, A, 2_500, "I am sorry, your refund was declined.")
    played(call)
    assert records(call)[0] == "confirmed correction"


# --- outputs that are spoken about, or not ---------------------------------------------------------------------------


@pytest.mark.parametrize(("speaks", "asked"), [(None, 1), (True, 1), (False, 0)])
def test_an_output_can_say_whether_it_is_spoken_about(speaks, asked):
    call = desk()
    call.at(0, on.ResponseStarted(R1), called(K1, "issue_refund"), audio(R1, A, 200), ended(R1))
    call.at(500, on.ToolFinished(K1, on.ToolOutcome.RETURNED, "{}", speaks=speaks))
    assert asks(call) == asked

"""What a noise, a murmur or a wrong transcription does to a call, told in numbers. The id is that of the case."""

from __future__ import annotations

import pytest
from tests.core.drive import BOTH_LINES, CANCELLED, R1, R2, U1, U2, A, B, Call, ended
from tests.core.telling import DONE, OP, TOOLS, asks, desk, fact, played, records
from tests.core.test_consent import QUESTION, YES, answers, asked, decided, proposed

from callwright.claims.facts import Milestone
from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.notice import Stage as Told
from callwright.core.plan import Keep
from callwright.core.transcript import Source
from callwright.core.turns import REPLY_PATIENCE_MS, WORDLESS_PATIENCE_MS
from callwright.ids import ItemId, ResponseId

NOTICE = "Just so you know, you are speaking with our automated assistant."


def coughs(call: Call, ms: int, text: str = "") -> None:
    """A sound of so long, that the server takes for a turn; it is written down 100 ms later, and gets no reply."""
    call.at(call.now_ms, on.SpeechStarted(U2, 0))
    call.at(call.now_ms + ms, on.SpeechStopped(U2, 0))
    call.at(call.now_ms + 100, on.CallerTranscribed(U2, text))


def asks_a_question(call: Call) -> None:
    """The caller's turn, to which a response has opened that has no audio yet."""
    call.at(0, on.SpeechStarted(U1, 0))
    call.at(1_000, on.SpeechStopped(U1, 0), on.CallerTranscribed(U1, "Is there a pool?"))
    call.at(1_100, on.ResponseStarted(R1))
    call.at(1_300)


def test_c042_a_cough_that_takes_the_reply_away_before_its_first_word_is_answered_within_two_seconds():
    call = Call()
    asks_a_question(call)
    call.at(call.now_ms, on.SpeechStarted(U2, 0), ended(R1, CANCELLED))
    call.at(call.now_ms + 150, on.SpeechStopped(U2, 0))
    stopped_ms = call.now_ms
    call.at(stopped_ms + 300, on.CallerTranscribed(U2, ""))
    call.at(stopped_ms + 2_000)
    assert len(call.times(do.RequestReply)) == 1
    call.reply(R2, B, 2_000, "There is a pool on the roof.")
    played(call)
    call.at(call.now_ms + 30_000)
    assert call.heard()[B] == ("There is a pool on the roof.", "whole")
    assert len(call.times(do.RequestReply)) == 1


def test_c042_a_turn_without_words_that_the_server_does_answer_is_not_asked_about():
    call = Call()
    coughs(call, 150)
    call.at(call.now_ms + WORDLESS_PATIENCE_MS - 100)
    call.reply(R1, A, 1_000, "Sorry?")
    call.at(call.now_ms + 30_000)
    assert call.times(do.RequestReply) == []


@pytest.mark.parametrize(
    ("text", "patience_ms"),
    [("", WORDLESS_PATIENCE_MS), ("Uh-huh, mhm.", WORDLESS_PATIENCE_MS), ("Hello?", REPLY_PATIENCE_MS)],
)
def test_c042_a_turn_with_words_keeps_the_servers_whole_time_to_answer_it(text, patience_ms):
    call = Call()
    call.at(0, on.SpeechStarted(U1, 0))
    call.at(500, on.SpeechStopped(U1, 0), on.CallerTranscribed(U1, text))
    call.at(500 + patience_ms)
    assert call.times(do.RequestReply) == [500 + patience_ms]


def test_c037_an_outcome_that_a_murmur_stopped_is_asked_for_again_and_heard():
    call = desk()
    call.at(0, fact(Milestone.CONFIRMED))
    call.at(200, on.ResponseStarted(R1))
    call.stream(R1, A, 1_000)
    call.at(call.now_ms, on.ReplyWritten(R1, A, DONE), on.SpeechStarted(U2, 0), ended(R1, CANCELLED))
    call.at(call.now_ms, on.ItemRetrieved(A, "Your refund", is_cut=True))
    call.at(call.now_ms + 400, on.SpeechStopped(U2, 0), on.CallerTranscribed(U2, "Mm-hmm."))
    call.at(call.now_ms + 2_000)
    assert asks(call) == 2
    call.reply(R2, B, 8_000, DONE, speed=4)
    played(call)
    assert records(call)[-1] == "confirmed heard"


@pytest.mark.parametrize("reports", BOTH_LINES)
def test_c038_a_yes_into_a_sentence_that_is_no_question_yet_confirms_nothing_and_one_behind_its_end_does(reports):
    call = Call(reports, tools=TOOLS)
    call.at(0, proposed(), on.ResponseStarted(R1))
    call.stream(R1, A, 8_000, speed=4)
    call.at(2_100, on.ReplyWritten(R1, A, QUESTION), on.SpeechStarted(U1, 800), ended(R1, CANCELLED))
    assert call.done(do.ClearPlayout), "whatever is said over the agent, it is quiet at once"
    call.at(2_200, on.ItemRetrieved(A, "That is a refund of", is_cut=True))
    call.at(2_500, on.SpeechStopped(U1, 1_300), on.CallerTranscribed(U1, "Yes."))
    assert decided(call) == []
    call.at(2_800)
    call.reply(R2, B, 8_000, QUESTION, speed=4)
    call.at(int(call.line.free_ms) + 20)
    answers(call, "Yes.", item_id=U2)
    assert decided(call) == [YES]


def test_c038_wrong_card_over_the_question_stops_it_at_once_and_confirms_nothing():
    call = Call(tools=TOOLS)
    call.at(0, proposed(), on.ResponseStarted(R1))
    call.stream(R1, A, 8_000, speed=4)
    commands = call.at(3_000, on.SpeechStarted(U1, 2_200))
    assert any(isinstance(command, do.ClearPlayout) for command in commands)
    call.at(3_100, on.ReplyWritten(R1, A, QUESTION), ended(R1, CANCELLED), on.SpeechStopped(U1, 3_000))
    call.at(3_200, on.CallerTranscribed(U1, "Wait, wrong card."))
    assert decided(call) == []


def test_c039_after_a_murmur_the_server_holds_what_was_heard_and_no_more():
    """So the next reply can go on from there; what it says again is counted (``answer_restates``)."""
    call = Call()
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 8_000, speed=4)
    call.at(3_600, on.SpeechStarted(U1, 2_900), ended(R1, CANCELLED))
    assert call.cuts() == [(A, call.line.heard_ms(A, call.now_ms))]
    call.at(
        3_700, on.ItemTruncated(A, 3_600), on.ItemRetrieved(A, "one two three four five six seven eight nine", True)
    )
    call.at(4_000, on.SpeechStopped(U1, 3_900), on.CallerTranscribed(U1, "Makes sense."), on.ResponseStarted(R2))
    assert call.heard()[A] == ("one two three four five six seven eight nine", "retrieved")


@pytest.mark.parametrize("text", ["", "Hello?"])
def test_c043_a_notice_that_a_noise_or_an_early_hello_cut_is_not_heard_and_another_chance_is_asked_for(text):
    call = Call(ai_notice="our automated assistant", keep=Keep.AFTER_NOTICE)
    call.at(0, on.ResponseStarted(R1))
    call.stream(R1, A, 4_000, speed=10)
    call.at(600, on.ReplyWritten(R1, A, NOTICE), on.SpeechStarted(U1, 0), ended(R1, CANCELLED))
    call.at(700, on.ItemTruncated(A, 600), on.ItemRetrieved(A, "Just so", is_cut=True))
    call.at(900, on.SpeechStopped(U1, 0), on.CallerTranscribed(U1, text))
    assert call.session.keeping.ai_notice.stage is Told.UNSAID
    call.at(call.now_ms + REPLY_PATIENCE_MS)
    assert asks(call) == 1
    call.reply(R2, B, 4_000, NOTICE)
    played(call)
    assert (call.session.keeping.ai_notice.stage, call.session.keeping.ai_notice.item_id) == (Told.HEARD, B)
    assert (call.session.transcript()[1].heard, call.session.transcript()[1].source) == (text, Source.TRANSCRIBED)


def test_c147_of_what_was_only_transcribed_nothing_is_done():
    """The model understood something else and called nothing; both texts are kept, and marked with their source."""
    call = Call(tools=TOOLS)
    for number, text in enumerate(["Yes, do it.", "Refund it to the Visa.", "That's all, goodbye."]):
        item_id = ItemId(f"u{number}")
        call.at(call.now_ms, on.SpeechStarted(item_id, 0))
        call.at(call.now_ms + 500, on.SpeechStopped(item_id, 0))
        call.at(call.now_ms + 100, on.CallerTranscribed(item_id, text))
        call.reply(ResponseId(f"r{number}"), ItemId(f"i{number}"), 1_000, "Not that card, then.")
        call.at(call.now_ms + 1_500)
    assert [*call.done(do.StartTool), *call.done(do.HangUp), *decided(call)] == []
    assert call.heard()[ItemId("u0")] == ("Yes, do it.", "transcribed")
    assert call.heard()[ItemId("i0")] == ("Not that card, then.", "whole")


@pytest.mark.parametrize("text", ["네", "예", "да"])
def test_c148_a_word_written_in_another_language_decides_nothing_and_an_owed_outcome_is_still_recognised(text):
    call = asked()
    answers(call, text)
    assert decided(call) == []
    call = desk()
    call.at(0, on.SpeechStarted(U1, 0), fact(Milestone.CONFIRMED))
    call.at(400, on.SpeechStopped(U1, 0), on.CallerTranscribed(U1, text))
    call.reply(R2, B, 8_000, DONE, speed=4)
    played(call)
    assert records(call, OP)[-1] == "confirmed heard"

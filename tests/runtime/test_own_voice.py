"""A voice of one's own says what the model writes: heard to the word, stopped at once, reported as it was played."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest
from tests.runtime.calls import ANYTHING, OPENING, PHONE, SPEAKER, after, calls, ended, expect, speech_started
from tests.runtime.calls import started as response_started
from tests.runtime.calls import take as take_call
from tests.runtime.voices import (
    FIVE,
    PROGRESS,
    STARTED,
    STOPPED,
    TEN,
    WORD_MS,
    Speaks,
    agent_of,
    delta,
    done,
    loud,
    reports,
    take,
    written,
)

import callwright as cw
from callwright.core import events as on
from callwright.errors import DeclarationError
from callwright.ids import Ms
from callwright.runtime.masked import mask_trace
from callwright.runtime.replay import Outcome, replay
from callwright.runtime.voicing import VOICE_PATIENCE_MS
from callwright.testing.scripted import close, emit
from callwright.wire import items, objects, server

# --- said


@pytest.mark.parametrize("settings", [PHONE, SPEAKER])
def test_a_written_reply_is_said_and_heard_whole(settings: Any) -> None:
    voice = Speaks()
    taken = take(voice, *written(FIVE), after(2_000), settings=settings)
    assert taken.model.of("session.update")[0]["session"]["output_modalities"] == ["text"]
    assert taken.agent_turns == [(FIVE, FIVE, "whole")]
    assert voice.texts == voice.closed == [FIVE]
    assert len(voice.pieces) == 2
    assert sum(span.to_ms - span.from_ms for span in taken.line.ear) == pytest.approx(5 * WORD_MS, abs=5)
    assert taken.result.anomalies == ()


class Eager(Speaks):
    """Says each word as it comes."""

    async def speak(self, text: AsyncIterator[str]) -> AsyncGenerator[bytes | cw.Said, None]:
        async for piece in text:
            for word in piece.split():
                yield cw.Said(loud(WORD_MS), word)


def test_the_voice_begins_while_the_model_writes() -> None:
    script = response_started(), delta("one "), after(700), delta("two"), done("one two"), ended()
    taken = take(Eager(), *script, after(1_000))
    spans = taken.line.ear
    assert spans[-1].at_ms - spans[0].at_ms > 600
    assert taken.agent_turns == [("one two", "one two", "whole")]


def test_a_response_is_open_until_the_voice_is_through_with_it() -> None:
    taken = take(Speaks(gap_ms=300), *written(FIVE), after(3_000))
    rows = [(row[0], row[2]) for row in taken.rows if row[1] == "on"]
    last_audio = max(at_ms for at_ms, name in rows if name == "AudioReceived")
    (end,) = (at_ms for at_ms, name in rows if name == "ResponseEnded")
    assert end >= last_audio > 1_400


def test_a_reply_that_comes_while_one_is_said_waits_for_its_turn() -> None:
    taken = take(Speaks(gap_ms=100), *written(FIVE), *written("six seven", "b", "r2"), after(3_000))
    assert taken.agent_turns == [(FIVE, FIVE, "whole"), ("six seven", "six seven", "whole")]
    assert taken.result.anomalies == ()


def test_text_that_comes_only_with_the_end_of_the_response_is_said() -> None:
    part = items.ContentPart(type="output_text", text=FIVE)
    item = items.MessageItem(id="a", role="assistant", content=(part,))
    taken = take(Speaks(), response_started(), ended("r1", "completed", item), after(2_000))
    assert taken.agent_turns == [(FIVE, FIVE, "whole")]


# --- cut


@pytest.mark.parametrize("settings", [PHONE, SPEAKER])
@pytest.mark.parametrize("tells", [True, False])
def test_a_cut_is_heard_to_the_word_where_the_voice_tells_its_words(settings: Any, tells: bool) -> None:
    taken = take(Speaks(tells=tells), *written(TEN), after(1_110), speech_started(), after(1_500), settings=settings)
    ((heard, text, source),) = taken.agent_turns
    ear_ms = sum(span.to_ms - span.from_ms for span in taken.line.ear)
    truth = " ".join(TEN.split()[: int(ear_ms // WORD_MS)])
    assert 1_000 < ear_ms < 1_200
    assert text == TEN
    assert (source, heard) == (("aligned", truth) if tells else ("estimated", heard))
    assert truth.startswith(heard)
    (stopped,) = taken.model.of(STOPPED)
    assert stopped["spoken_text"] == heard
    assert abs(stopped["audio_ms"] - ear_ms) <= 20
    assert stopped["audio_ms"] + stopped["dropped_ms"] == 10 * WORD_MS
    assert not taken.model.of("conversation.item.truncate") + taken.model.of("conversation.item.retrieve")


def test_a_cut_stops_the_voice_and_closes_its_generator_at_once() -> None:
    voice = Speaks(gap_ms=150)
    taken = take(voice, *written(TEN), after(1_000), speech_started(), after(2_000))
    (cut_ms,) = taken.did("ClearPlayout")
    assert taken.did("StopVoice") == [cut_ms]
    said = voice.closed[0].split()
    assert 4 <= len(said) <= 7  # it had more to say
    rows = [(row[0], row[2], row[3]) for row in taken.rows if row[1] == "on"]
    assert not [at_ms for at_ms, name, _ in rows if name == "AudioReceived" and at_ms > cut_ms]
    ((at_ms, _, end),) = [row for row in rows if row[1] == "ResponseEnded"]
    assert (at_ms, end["status"]) == (cut_ms, "cancelled")


def test_a_voice_that_does_not_let_itself_be_stopped_is_not_heard() -> None:
    class Stubborn(Speaks):
        async def speak(self, text: AsyncIterator[str]) -> AsyncGenerator[bytes | cw.Said, None]:
            async for _ in text:
                pass
            for word in TEN.split():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.15)
                yield cw.Said(loud(WORD_MS), word)

    taken = take(Stubborn(), *written(TEN), after(700), speech_started(), after(2_000))
    assert not [row for row in taken.rows if row[2] == "AudioReceived" and row[0] > taken.did("ClearPlayout")[0]]


def test_a_reply_that_was_cut_before_a_word_of_it_was_said_was_not_heard() -> None:
    voice = Speaks(delay_ms=1_000)
    taken = take(voice, *written(FIVE), after(300), speech_started(), after(1_500))
    assert taken.agent_turns == [("", FIVE, "estimated")]
    assert voice.closed == [""]
    (stopped,) = reports(taken)
    assert (stopped["type"], stopped["audio_ms"], stopped["dropped_ms"], stopped["spoken_text"]) == (STOPPED, 0, 0, "")
    assert not taken.line.ear


def test_text_that_the_server_cancels_is_on_record_as_written() -> None:
    script = response_started(), delta("one two three"), after(300), speech_started(), ended("r1", "cancelled")
    taken = take(Speaks(), *script, after(500))
    assert [turn.written for turn in taken.result.turns if turn.speaker == "agent"] == ["one two three"]


@pytest.mark.parametrize("is_written", [True, False])
def test_a_response_that_is_over_for_the_server_is_not_cancelled_there(is_written: bool) -> None:
    def interrupt(call: Any) -> None:
        asyncio.get_running_loop().call_later(0.7, call.handle, on.InterruptRequested())

    script = written(TEN) if is_written else (response_started(), delta(f"{TEN} "))
    voice = Eager() if not is_written else Speaks(gap_ms=150)
    taken = take(voice, *script, after(1_500), watch=interrupt)
    assert len(taken.did("CancelResponse")) == 1  # the core holds it open in either case
    assert len(taken.model.of("response.cancel")) == (0 if is_written else 1)
    assert len(taken.model.of(STOPPED)) == 1


def test_the_caller_who_speaks_gets_a_reply_of_its_own() -> None:
    second = written("six seven", "b", "r2")
    taken = take(Speaks(), *written(TEN), after(700), speech_started(), after(500), *second, after(1_500))
    assert taken.agent_turns[1] == ("six seven", "six seven", "whole")
    assert [event["response_id"] for event in taken.model.of(STOPPED)] == ["r1", "r2"]


# --- reported


@pytest.mark.parametrize("settings", [PHONE, SPEAKER])
def test_reports_follow_what_was_played(settings: Any) -> None:
    taken = take(Speaks(), *written(TEN), after(3_500), settings=settings)
    told = reports(taken)
    assert [event["type"] for event in told] == [STARTED, *[PROGRESS] * (len(told) - 2), STOPPED]
    first_ms = taken.line.ear[0].at_ms
    assert 0 <= taken.model.times(STARTED)[0] - first_ms <= 140
    for at_ms, event in zip(taken.model.times(PROGRESS), taken.model.of(PROGRESS), strict=True):
        assert abs(event["audio_ms"] - (at_ms - first_ms)) <= 60
    assert 3 <= len(told) - 2 <= 4
    words = " ".join(event["delta"] for event in told[1:-1]).split()
    assert words == TEN.split()[: len(words)]
    assert len(words) >= 6
    last = told[-1]
    assert (last["audio_ms"], last["dropped_ms"], last["spoken_text"]) == (10 * WORD_MS, 0, TEN)
    assert {event["response_id"] for event in told} == {"r1"}


@pytest.mark.parametrize("model", [cw.openai(), cw.plain()])
def test_only_a_server_that_takes_reports_gets_some(model: cw.ModelChoice) -> None:
    taken = take(Speaks(), *written(TEN), after(1_010), speech_started(), after(1_500), model=model)
    assert reports(taken) == []
    assert taken.agent_turns[0][2] == "aligned"


def test_where_no_report_is_taken_history_is_told_what_was_heard_instead() -> None:
    taken = take(Speaks(), *written(TEN), after(1_010), speech_started(), after(1_500), model=cw.openai())
    heard = taken.agent_turns[0][0]
    (create,), (delete,) = taken.model.of("conversation.item.create"), taken.model.of("conversation.item.delete")
    assert create["previous_item_id"] == delete["item_id"] == "a"
    assert create["item"]["content"] == [{"type": "output_text", "text": f"{heard}-"}]
    assert create["item"]["role"] == "assistant"
    kinds = [event["type"] for _, event in taken.model.sent]
    assert kinds.index("conversation.item.create") < kinds.index("conversation.item.delete")


def test_a_reply_of_which_nothing_was_heard_is_taken_out() -> None:
    script = (*written(FIVE), after(300), speech_started(), after(1_500))
    taken = take(Speaks(delay_ms=1_000), *script, model=cw.openai())
    assert [event["item_id"] for event in taken.model.of("conversation.item.delete")] == ["a"]
    assert not taken.model.of("conversation.item.create")


def test_a_plain_server_cannot_be_told() -> None:
    taken = take(Speaks(), *written(TEN), after(1_010), speech_started(), after(1_500), model=cw.plain())
    assert not taken.model.of("conversation.item.create") + taken.model.of("conversation.item.delete")


def test_no_card_number_is_in_the_trace_though_it_is_said_and_reported_in_pieces() -> None:
    text = "Your card is 4111 1111 1111 1111, is it not?"
    taken = take(Speaks(), *written(text), after(3_500), hang_up_ms=5_000)
    told = " ".join(event["delta"] for event in taken.model.of(PROGRESS))
    assert "4111 1111 1111 1111," in told
    assert [event["spoken_text"] for event in taken.model.of(STOPPED)] == [text]
    assert b"4111" not in taken.result.trace
    assert taken.result.trace.count(b"1111") == 1  # the last four, of the masked text
    assert taken.agent_turns[0][0] == "Your card is **** **** **** 1111, is it not?"


@pytest.mark.parametrize("text", [TEN, "Your card is 4111 1111 1111 1111, is it not? Thank you."])
def test_a_call_whose_words_are_estimated_is_replayed_though_they_are_masked(text: str) -> None:
    """Numbers in words become others of other lengths: what is counted by lengths is counted anew."""
    taken = take(Speaks(tells=False), *written(text), after(900), speech_started(), after(500))
    assert replay(mask_trace(taken.result.trace)).outcome is Outcome.IDENTICAL


# --- what a tool call says


@pytest.mark.parametrize("is_announced", [True, False])
def test_a_spoken_argument_is_said_while_its_tool_runs(is_announced: bool) -> None:
    before = (done("", "empty"),) if is_announced else ()
    script = (
        response_started(),
        *before,
        calls("look_up", arguments='{"holding": "One moment, please."}'),
        ended(),
        expect("conversation.item.create"),
        expect("response.create"),
        *written("Found it.", "b", "r2"),
    )
    voice = Speaks()
    taken = take(
        voice,
        *script,
        after(1_500),
        ignoring=[each for each in ANYTHING if each not in ("conversation.item.create", "response.create")],
    )
    assert voice.texts == ["One moment, please.", "Found it."]
    assert [turn[0] for turn in taken.agent_turns] == ["One moment, please.", "Found it."]
    holding = next(turn for turn in taken.result.turns if turn.speaker == "agent")
    assert holding.item_id == ("empty" if is_announced else "item of k1 aloud")
    assert taken.model.of(STOPPED)[0]["spoken_text"] == "One moment, please."
    assert taken.result.anomalies == ()


def test_what_the_model_has_said_beside_its_call_is_not_said_again() -> None:
    script = (
        response_started(),
        done("One moment, please."),
        calls("look_up", arguments='{"holding": "one moment please"}'),
        calls("look_up", arguments='{"holding": "one moment please"}'),
        ended(),
    )
    voice = Speaks()
    take(voice, *script, after(1_000))
    assert voice.texts == ["One moment, please."]


MOMENT = "One moment, please."
LOOK_UP = calls("look_up", arguments=f'{{"holding": "{MOMENT}"}}')


@pytest.mark.parametrize("wait_ms", [0, 1_200])
@pytest.mark.parametrize(
    "steps",
    [
        (LOOK_UP, delta("One mom"), delta("ent, please."), done(MOMENT)),
        (delta("One mom"), LOOK_UP, delta("ent, please."), done(MOMENT)),
        (delta("One mom"), delta("ent, please."), LOOK_UP, done(MOMENT)),
    ],
    ids=["call first", "in the midst", "behind it"],
)
def test_a_spoken_argument_that_the_server_writes_too_is_said_once_in_whatever_order(
    steps: tuple[Any, ...], wait_ms: Ms
) -> None:
    apart = [each for step in steps for each in (step, after(wait_ms))]
    voice = Speaks()
    taken = take(voice, response_started(), *apart, ended(), after(1_500), hang_up_ms=9_000)
    assert voice.texts == [MOMENT]
    assert [turn[0] for turn in taken.agent_turns] == [MOMENT]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_spoken_argument_is_said_beside_a_text_that_only_begins_alike(is_first: bool) -> None:
    text = delta("One mom"), delta("ent, I say."), done("One moment, I say.")
    steps = (LOOK_UP, *text) if is_first else (text[0], LOOK_UP, *text[1:])
    voice = Speaks()
    take(voice, response_started(), *steps, ended(), after(2_500))
    assert sorted(voice.texts) == ["One moment, I say.", MOMENT]


@pytest.mark.parametrize("model", [cw.polyai(), cw.openai()])
def test_no_model_is_asked_to_say_an_argument_that_our_voice_says(model: cw.ModelChoice) -> None:
    taken = take(Speaks(), model=model)
    (tool, _) = taken.model.of("session.update")[0]["session"]["tools"]
    holding = tool["parameters"]["properties"]["holding"]
    assert holding == {"type": "string", **({"poly_spoken": True} if model == cw.polyai() else {})}


@pytest.mark.parametrize("settings", [PHONE, SPEAKER])
def test_a_goodbye_is_said_and_heard_whole_before_the_line_ends(settings: Any) -> None:
    script = (
        response_started(),
        calls("end_call", arguments='{"reason": "done", "goodbye": "Goodbye and thank you."}'),
        ended(),
    )
    taken = take(Speaks(gap_ms=100), *script, settings=settings, hang_up_ms=20_000, is_whole=False)
    assert (taken.result.ending.by, taken.result.ending.reason) == ("agent", "done")
    assert taken.agent_turns == [("Goodbye and thank you.", "Goodbye and thank you.", "whole")]
    assert sum(span.to_ms - span.from_ms for span in taken.line.ear) == pytest.approx(4 * WORD_MS, abs=5)


def test_a_goodbye_that_is_talked_over_is_taken_back() -> None:
    goodbye = '{"reason": "done", "goodbye": "Goodbye and thank you for your call."}'
    script = response_started(), calls("end_call", arguments=goodbye), ended(), after(500), speech_started()
    taken = take(Speaks(), *script, after(1_000))
    assert "still open" in taken.model.outputs()["k1"]
    assert taken.result.ending.by == "caller"


# --- voices that fail


class Broken(Speaks):
    """Says two words, and then what is wrong with it."""

    def __init__(self, wrong: str) -> None:
        super().__init__()
        self.wrong = wrong

    async def speak(self, text: AsyncIterator[str]) -> AsyncGenerator[bytes | cw.Said, None]:
        if self.wrong == "silent":
            return
        async for _ in text:
            pass
        if self.wrong == "mute":
            await asyncio.sleep(3_600)
        if self.wrong != "early":
            yield cw.Said(loud(2 * WORD_MS), "one two")
        if self.wrong == "hangs":
            await asyncio.sleep(3_600)
        raise ValueError("my key is sk-123")


@pytest.mark.parametrize(
    ("wrong", "heard", "source", "what"),
    [
        ("raises", "one two", "aligned", "it raised ValueError"),
        ("hangs", "one two", "aligned", f"it gave nothing for {VOICE_PATIENCE_MS // 1000} s"),
        ("silent", "", "estimated", "it gave no audio"),
        ("early", "", "estimated", "it raised ValueError"),
    ],
)
def test_a_voice_that_fails_costs_the_rest_of_its_text_and_not_the_call(
    wrong: str, heard: str, source: str, what: str
) -> None:
    taken = take(Broken(wrong), *written(TEN), after(9_000), hang_up_ms=12_000, is_whole=False)
    assert taken.result.ending.by == "caller"
    assert taken.agent_turns[0] == (heard, TEN, source)
    assert f"the voice failed in response r1: {what}" in taken.result.anomalies
    assert "response r1 failed: the voice failed" in taken.result.anomalies
    assert b"sk-123" not in taken.result.trace


def test_a_goodbye_that_no_voice_says_ends_the_call_all_the_same() -> None:
    script = response_started(), calls("end_call", arguments='{"reason": "done", "goodbye": "Goodbye."}'), ended()
    taken = take(Broken("early"), *script, hang_up_ms=20_000, is_whole=False)
    assert taken.result.ending.by == "agent"


def test_a_voice_that_is_slow_is_waited_for() -> None:
    taken = take(Speaks(delay_ms=VOICE_PATIENCE_MS - 500), *written(FIVE), after(6_500), hang_up_ms=8_000)
    assert taken.agent_turns == [(FIVE, FIVE, "whole")]
    assert taken.result.anomalies == ()


def test_a_voice_may_wait_for_the_model_as_long_as_that_writes() -> None:
    script = response_started(), delta("one "), after(VOICE_PATIENCE_MS + 1_000), delta("two"), done("one two"), ended()
    taken = take(Speaks(), *script, after(1_500), hang_up_ms=9_000)
    assert taken.agent_turns == [("one two", "one two", "whole")]


# --- the model's connection breaks


@pytest.mark.parametrize("settings", [PHONE, SPEAKER])
def test_a_goodbye_that_was_written_whole_is_said_whole_though_the_server_is_gone(settings: Any) -> None:
    goodbye = '{"reason": "done", "goodbye": "Goodbye and thank you for your call."}'
    script = response_started(), calls("end_call", arguments=goodbye), ended(), after(50), close(1011)
    taken = take(Speaks(gap_ms=150), *script, settings=settings, hang_up_ms=20_000, is_whole=False)
    assert (taken.result.ending.by, taken.result.ending.reason) == ("agent", "done")
    assert taken.agent_turns[0][0] == "Goodbye and thank you for your call."
    assert sum(span.to_ms - span.from_ms for span in taken.line.ear) == pytest.approx(7 * WORD_MS, abs=5)


def test_a_reply_that_was_written_whole_is_said_whole_while_another_session_is_opened() -> None:
    script = (*written(TEN), after(50), close(1011))
    taken = take(Speaks(gap_ms=150), *script, hang_up_ms=4_000, is_whole=False)
    assert taken.agent_turns[0] == (TEN, TEN, "whole")
    assert taken.did("Connect")[1] < 500
    assert not [each for each in taken.result.anomalies if "ResponseEnded" in each]  # it ends once


def test_a_reply_that_was_not_written_whole_ends_with_what_was_said() -> None:
    script = response_started(), delta(f"{FIVE} "), after(1_500), close(1011)
    taken = take(Eager(), *script, hang_up_ms=4_000, is_whole=False)
    assert [text.strip() for text in taken.agent_turns[0][:2]] == [FIVE, FIVE]


def test_a_voice_that_has_all_of_its_text_is_waited_for_from_then_on() -> None:
    whole_ms = VOICE_PATIENCE_MS + 1_000
    script = (
        response_started(),
        delta("one "),
        after(whole_ms),
        done("one two"),
        ended(),
        after(VOICE_PATIENCE_MS + 500),
    )
    taken = take(Broken("mute"), *script, hang_up_ms=13_000)
    (failed_ms,) = [row[0] for row in taken.rows if row[2] == "VoiceFailed"]
    assert abs(failed_ms - whole_ms - VOICE_PATIENCE_MS) < 400


def test_the_voice_ends_with_the_call() -> None:
    voice = Speaks(gap_ms=200)
    taken = take(voice, *written(TEN), hang_up_ms=1_000)
    assert taken.result.ending.by == "caller"
    assert len(voice.closed) == 1
    assert len(voice.closed[0].split()) <= 5


def test_audio_of_a_server_that_was_asked_for_text_is_not_heard() -> None:
    audio = emit(server.ResponseOutputAudioDelta(response_id="r1", item_id="a", delta=loud(400)))
    taken = take(Speaks(), response_started(), audio, audio, ended(), after(500))
    assert not taken.line.ear
    assert taken.result.anomalies.count("the server sends audio although text was asked for; it is not played") == 1


def test_a_session_that_speaks_by_itself_is_not_the_one_that_was_asked_for() -> None:
    speaks = emit(server.SessionUpdated(session=objects.Session(output_modalities=("audio",))))
    taken = take_call(*OPENING[:2], speaks, agent=agent_of(Speaks()), is_whole=False)
    assert taken.result.ending.by == "fault"
    assert taken.result.ending.reason == "the session's output modality is audio, agreed was text"


@pytest.mark.parametrize(
    ("voice", "what"),
    [
        (object(), "rate_hz, whole kHz such as 24000; got None"),
        (type("V", (), {"rate_hz": 22_050, "speak": print})(), "got 22050"),
        (type("V", (), {"rate_hz": 10**9, "speak": print})(), "got 1000000000"),
        (type("V", (), {"rate_hz": 24_000})(), r"async generator speak\(text\)"),
    ],
)
def test_what_is_no_voice_is_a_mistake_in_the_declaration(voice: Any, what: str) -> None:
    with pytest.raises(DeclarationError, match=rf"test_own_voice\.py:\d+: agent 'desk': a voice has .*{what}"):
        cw.Agent("desk", model=cw.polyai(), instructions="Be brief.", voice=voice)


def test_the_class_of_a_voice_is_no_voice() -> None:
    with pytest.raises(DeclarationError, match=r"test_own_voice\.py:\d+: agent 'desk': .*its class; give Speaks\(\)"):
        cw.Agent("desk", model=cw.polyai(), instructions="Be brief.", voice=Speaks)  # type: ignore[arg-type]

"""Of a call with a person no word is kept unless the agent says that it may be, and then not before he knows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.calls import APPEND, OPENING, PHONE, Model, Taken, after, calls, emit, expect, reply, server
from tests.runtime.calls import speech_started as starts
from tests.runtime.calls import speech_stopped as stops

import callwright as cw
from callwright.core import commands as do
from callwright.core import events as on
from callwright.ids import ItemId, Ms, ResponseId, ToolCallId
from callwright.runtime.kept import WORDS, Kept, made_up, withheld
from callwright.runtime.trace import Trace
from callwright.sim.caller import Anchor, ScriptedCaller, Step, Trigger
from callwright.sim.line import SimulatedLine
from callwright.sim.server import MemoryConnector
from callwright.sim.vloop import run_virtual
from callwright.testing.scripted import Step as ModelStep

AI = "You're speaking with our automated assistant."
NOTICE = f"{AI} This call is recorded. Is that all right?"
LATER = "The pool is on floor two."
ASKED = "Is there a pool for Mr Okafor?"
NEVER = "the caller never heard that he talks to an AI"


class PersonsLine(SimulatedLine):
    """A line that may have a person at its far end."""

    reaches_person = True


def agent(**declared: Any) -> cw.Agent:
    desk = cw.Agent(
        "desk", model=cw.polyai(), instructions="Be brief.", ai_notice="our automated assistant", **declared
    )

    @desk.tool
    async def look(ctx: cw.Context[None], surname: str) -> cw.Facts:
        """Look it up."""
        return {"guest": f"{surname} has room 214"}

    return desk


CONSENTED = {"recording": "consented", "recording_notice": "this call is recorded"}


def transcribed(text: str, item_id: str) -> ModelStep:
    return emit(server.ConversationItemInputAudioTranscriptionCompleted(item_id=item_id, transcript=text))


def turn(text: str, item_id: str) -> tuple[ModelStep, ...]:
    return starts(item_id), after(400), stops(item_id), after(100), transcribed(text, item_id), after(100)


def looks_up(call_id: str, response_id: str) -> tuple[ModelStep, ...]:
    """A tool call of the model's with its answer, and a request that the server refuses in the caller's words."""
    return (
        emit(server.ResponseCreated(response=server_response(response_id))),
        calls("look", call_id, response_id, json.dumps({"surname": "Okafor"})),
        expect("conversation.item.create"),
        emit(server.ResponseDone(response=server_response(response_id, "completed"))),
        expect("response.create"),
        emit({"type": "error", "event_id": "e9", "error": {"code": "odd", "message": "Okafor?", "event_id": "cw_99"}}),
    )


def server_response(response_id: str, status: str = "in_progress") -> Any:
    from callwright.wire import objects

    return objects.Response(id=response_id, status=status)


def take(
    desk: cw.Agent, *steps: ModelStep, make_line: type[SimulatedLine] = PersonsLine, ms: Ms = 25_000, **options: Any
) -> Taken:
    model = Model(*OPENING, *steps, ignoring=(APPEND, "conversation.item.truncate", "conversation.item.retrieve"))
    caller = ScriptedCaller([Step(Trigger(Anchor.PICKUP, ms), None)], {}, PHONE.stream_format.rate_hz)
    line = make_line(PHONE, caller)
    result = run_virtual(cw.run(desk, line, connector=MemoryConnector(lambda: model), **options))
    model.finish()
    return Taken(result, model, line)


def before_and_after(answer: str = "Yes, sure.") -> tuple[ModelStep, ...]:
    """A turn before the notice, the notice, the caller's answer, and a question behind it."""
    return (
        *turn("Hello, Zenobia here.", "u0"),
        *reply(NOTICE, 5_000, "a", "r1"),
        after(1_500),
        *turn(answer, "u1"),
        *turn(ASKED, "u2"),
        *looks_up("k1", "r2"),
        *reply(LATER, 2_000, "b", "r3"),
        after(1_500),
    )


SPOKEN = ("Zenobia", "automated", "recorded", "sure", "pool", "Okafor", "214", "floor")


def found(taken: Taken, *words: str) -> list[str]:
    """Which of these words are in the trace, the transcript, the ending or the log of what was survived.

    The head of the trace is the agent's declaration, not the call.
    """
    result = taken.result
    told = b"".join(
        [
            result.trace.partition(b"\n")[2],
            repr(result.turns).encode(),
            repr(result.anomalies).encode(),
            repr(result.ending).encode(),
        ]
    )
    return [word for word in words if word.encode() in told]


def test_without_a_declaration_no_word_is_kept_and_the_call_works_as_always():
    taken = take(agent(), *before_and_after())
    assert found(taken, *SPOKEN) == []
    assert [(t.speaker, t.heard, t.source) for t in taken.result.turns][:2] == [
        ("caller", "", "transcribed"),
        ("agent", "", "whole"),
    ]
    assert not taken.result.words_kept
    assert "Okafor has room 214" in taken.model.outputs()["k1"]
    assert taken.result.ai_notice_heard_ms is not None


def test_lengths_and_times_stand_where_the_words_would():
    rows = take(agent(), *before_and_after()).rows
    assert next(row[3]["text"] for row in rows if row[2] == "CallerTranscribed") == {
        "characters": len("Hello, Zenobia here.")
    }
    assert [row[3]["arguments"] for row in rows if row[2] == "StartTool"] == [{"characters": 21}]


def test_where_a_notice_stands_in_a_reply_is_told_and_nothing_else_of_it():
    notices = {
        "ai_notice": "our automated assistant",
        "recording_notice": "this call is recorded",
        "other": "never said",
    }
    row = withheld("ReplyWritten", {"response_id": "r1", "item_id": "a", "text": NOTICE}, notices)
    assert row["text"] == {"characters": len(NOTICE), "ai_notice": 21, "recording_notice": 46}
    text = made_up(row["text"], notices)
    assert len(text) == len(NOTICE)
    assert text.split() == ["x" * 20, *" ".join(list(notices.values())[:2]).split(), "x" * 19]
    said_by_him = withheld("CallerTranscribed", {"item_id": "u1", "text": NOTICE}, notices)
    assert said_by_him["text"] == {"characters": len(NOTICE)}


@pytest.mark.parametrize("declared", [{"recording": "not_required"}, {"recording": cw.Recording.NOT_REQUIRED}])
def test_where_nobody_has_to_be_asked_all_is_kept(declared):
    taken = take(agent(**declared), *before_and_after())
    assert found(taken, *SPOKEN) == list(SPOKEN)
    assert taken.result.words_kept


def test_a_line_that_does_not_tell_counts_as_one_that_reaches_a_person():
    taken = take(agent(), *before_and_after(), make_line=UntoldLine)
    assert found(taken, *SPOKEN) == []


class UntoldLine(SimulatedLine):
    def __getattribute__(self, name: str) -> Any:
        if name == "reaches_person":
            raise AttributeError(name)
        return super().__getattribute__(name)


def test_over_a_simulated_line_all_is_kept_whatever_is_declared_and_said():
    for declared in ({}, CONSENTED):
        taken = take(agent(**declared), *before_and_after("No, do not record."), make_line=SimulatedLine)
        assert set(found(taken, *SPOKEN)) == set(SPOKEN) - {"sure"}
        assert taken.result.words_kept


def test_with_consent_nothing_is_kept_that_began_before_the_notice_was_heard():
    taken = take(agent(**CONSENTED), *before_and_after())
    assert found(taken, "Zenobia", "automated", "recorded") == []
    assert found(taken, "sure", "pool", "Okafor", "214", "floor") == ["sure", "pool", "Okafor", "214", "floor"]
    assert [turn.heard for turn in taken.result.turns] == ["", "", "Yes, sure.", ASKED, LATER]
    assert taken.result.words_kept


def test_words_said_before_the_notice_stay_withheld_however_late_they_are_understood():
    taken = take(
        agent(**CONSENTED),
        *(starts("u0"), after(400), stops("u0")),
        *reply(NOTICE, 5_000, "a", "r1"),
        *(after(1_500), transcribed("Zenobia here.", "u0"), after(100)),
    )
    assert taken.did("KeepWords")
    assert found(taken, "Zenobia") == []


def test_a_notice_that_was_cut_allows_nothing():
    taken = take(
        agent(**CONSENTED),
        emit(server.ResponseCreated(response=server_response("r1"))),
        *reply(NOTICE, 5_000, "a", "r1")[1:3],
        after(700),
        *turn("Wait, is there a pool?", "u1"),
        after(4_000),
        ms=9_000,
    )
    assert found(taken, "pool", "automated") == []
    assert taken.did("KeepWords") == []
    assert NEVER in taken.result.anomalies
    assert taken.result.ai_notice_heard_ms is None


def test_a_no_drops_what_was_kept_and_all_that_follows():
    taken = take(agent(**CONSENTED), *before_and_after("No, I would rather not."))
    assert found(taken, *SPOKEN, "rather") == []
    assert taken.did("KeepWords")
    assert len(taken.did("DropWords")) == 1
    assert not taken.result.words_kept
    assert "Okafor has room 214" in taken.model.outputs()["k1"]


def test_the_model_can_drop_everything_at_any_time_by_the_tool_that_comes_with_consent():
    stop = (
        emit(server.ResponseCreated(response=server_response("r4"))),
        calls("stop_recording", "k2", "r4"),
        expect("conversation.item.create"),
        emit(server.ResponseDone(response=server_response("r4", "completed"))),
        expect("response.create"),
        *reply("I stopped it.", 1_000, "c", "r5"),
    )
    taken = take(agent(**CONSENTED), *before_and_after(), *stop)
    assert found(taken, *SPOKEN) == []
    assert "stopped" in taken.model.outputs()["k2"]
    assert taken.did("DropWords")


def test_the_same_call_leaves_the_same_rows_whether_its_words_are_kept_or_not():
    kept = take(agent(recording="not_required"), *before_and_after())
    bare = take(agent(), *before_and_after())
    assert [row[:3] for row in kept.rows if row[1] in ("on", "do")] == [
        row[:3] for row in bare.rows if row[1] in ("on", "do")
    ]


def test_the_reason_for_which_the_agent_ends_a_call_is_in_the_models_words():
    desk = agent()

    @desk.tool(after=cw.AfterOutput.HANG_UP)
    async def end_call(ctx: cw.Context[None], reason: str, goodbye: cw.Spoken) -> str:
        """End the call."""
        return reason

    arguments = json.dumps({"reason": "Okafor is done", "goodbye": "Bye."})
    taken = take(
        desk,
        emit(server.ResponseCreated(response=server_response("r1"))),
        *reply("Bye.", 400, "a", "r1")[1:3],
        calls("end_call", "k1", "r1", arguments),
        after(400),
        emit(server.ResponseDone(response=server_response("r1", "completed"))),
        expect("conversation.item.create"),
    )
    assert taken.result.ending == cw.Ending("agent", "")
    assert found(taken, "Okafor", "Bye") == []


def test_a_notice_that_was_never_heard_is_named_and_one_that_was_is_timed():
    heard = take(agent(recording="not_required"), *reply(NOTICE, 5_000), after(2_000))
    assert heard.result.ai_notice_heard_ms in range(5_000, 6_500)
    assert heard.result.anomalies == ()
    never = take(agent(recording="not_required"), *reply(LATER, 2_000), after(2_000))
    assert never.result.anomalies == (NEVER,)


def test_the_model_is_told_what_to_say_first():
    taken = take(agent(**CONSENTED), *before_and_after())
    (update,) = taken.model.of("session.update")
    told = update["session"]["instructions"]
    assert told.startswith("Be brief.\nIn your first reply, before anything else,")
    assert '"our automated assistant"' in told
    assert '"this call is recorded"' in told
    assert "call stop_recording" in told
    assert [tool["name"] for tool in update["session"]["tools"]] == ["stop_recording", "look"]


# --- the machinery

NOT_WORDS = {
    *("SessionMismatched.field", "SessionMismatched.wanted", "SessionMismatched.got"),
    *("SpeechStarted.item_id", "SpeechStopped.item_id", "ItemPlaced.item_id", "ItemPlaced.after"),
    *("CallerTranscribed.item_id", "ResponseStarted.response_id", "AudioReceived.response_id"),
    *("AudioReceived.item_id", "ReplyWritten.response_id", "ReplyWritten.item_id", "ToolCalled.response_id"),
    *("ToolCalled.item_id", "ToolCalled.tool_call_id", "ToolCalled.name", "ResponseEnded.response_id"),
    *("ResponseEnded.status", "ResponseEnded.reason", "ItemRetrieved.item_id", "ItemTruncated.item_id"),
    *("RequestRefused.code", "RequestRefused.event_id", "RequestRefused.field", "LinePlayed.item_id"),
    *("MarkReturned.mark_id", "LineClosed.by", "LineClosed.reason", "ToolFinished.tool_call_id"),
    *(
        "ToolFinished.outcome",
        "AnswerKeys.fate",
        "KeysRequested.tool_call_id",
        "ToolFinished.raised",
        "FactChanged.op_id",
        "TruncateItem.item_id",
        "RetrieveItem.item_id",
    ),
    *("CancelResponse.response_id", "PostToolOutput.tool_call_id", "CloseModel.reason", "PlayAudio.item_id"),
    *("FinishItem.item_id", "SendMark.mark_id", "StartTool.tool_call_id", "StartTool.name"),
    *("RecordTold.op_id", "RecordTold.milestone", "RecordTold.state", "Authorize.op_id", "Authorize.params_hash"),
    *("Withdraw.op_id", "NoteAnomaly.what", "FactChanged.consent", "ConnectFailed.reason", "ConfigureSession.about"),
    *("CarryMessage.item_id", "CarryMessage.speaker", "CarryCall.tool_call_id", "CarryCall.name"),
    *("WordsVoiced.item_id", "VoiceFailed.response_id", "VoiceFailed.item_id", "StopVoice.response_id"),
    *("RestateItem.item_id", "DropItem.item_id", "ReportAudible.response_id", "ReportProgress.response_id"),
    *("ReportStopped.response_id", "ReportProgress.heard", "ReportStopped.heard"),
}
"""What is no word of the call though it may be a text: ids, codes, names of tools and fields, and our own sentences."""


def test_every_text_of_an_event_or_command_is_words_or_known_to_be_none():
    plain = {"bool", "bool | None", "int", "Ms", "Samples", "EventId"}
    texts = {
        f"{kind.__name__}.{name}"
        for kind in (*get_args(on.Event), *get_args(do.Command))
        for name in get_type_hints(kind)
        if str(kind.__annotations__[name]) not in plain
    }
    words = {f"{kind}.{name}" for kind, names in WORDS.items() for name in names}
    assert texts - NOT_WORDS - {"RequestRefused.event_id"} == words


def test_what_is_told_of_a_reply_that_had_begun_before_the_permission_is_withheld():
    kept = Kept(is_kept=False)
    kept.content(on.ResponseStarted(R))
    kept.begin()
    before = on.ResponseEnded(R, on.ResponseStatus.COMPLETED, cited='["a"]')
    assert kept.content(before)["cited"] == {"characters": 5}
    assert kept.content(replace(before, response_id=ResponseId("behind"))).cited == '["a"]'


def rows_of(trace: Trace) -> list[list[Any]]:
    return [json.loads(row) for row in trace.lines().splitlines()]


TEXT = "Okafor"
U, R, K = ItemId("u"), ResponseId("r"), ToolCallId("k")
HAPPENED = st.sampled_from(
    [
        *(on.CallerTranscribed(ItemId("u1"), TEXT), on.CallerTranscribed(ItemId("u2"), TEXT)),
        *(on.ReplyWritten(R, ItemId("a"), TEXT), on.ItemRetrieved(ItemId("a"), TEXT, is_cut=True)),
        *(on.ToolCalled(R, U, K, "look", TEXT), on.ToolFinished(K, on.ToolOutcome.RETURNED, TEXT)),
        *(on.SpeechStarted(ItemId("u1"), 0), on.RequestRefused("c", TEXT, None)),
    ]
)
CHANGES = st.sampled_from(["begin", "drop"])


@given(st.lists(st.one_of(HAPPENED, CHANGES), max_size=20), st.integers(0, 60))
def test_in_any_order_a_word_is_in_the_trace_only_by_permission(happened, fill):
    trace = Trace({}, Kept(is_kept=False))
    allowed, dropped, begun, expected = False, False, set(), 0
    for event in happened:
        if event == "drop":
            trace.drop()
            allowed, dropped, expected = False, True, 0
        elif event == "begin":
            if not dropped:
                trace.kept.begin()
                allowed = True
        else:
            ids = {getattr(event, name, None) for name in ("item_id", "tool_call_id")} - {None}
            begun |= set() if allowed else ids
            has_words = type(event).__name__ in WORDS
            expected += bool(has_words and allowed and begun.isdisjoint(ids))
            trace.happened(0, event)
        for _ in range(fill):
            trace.audio(0, sent_ms=0, held_ms=0)
    assert trace.lines().count(TEXT.encode()) == expected
    assert len([row for row in rows_of(trace) if row[1] == "on"]) == len(
        [e for e in happened if not isinstance(e, str)]
    )


def test_a_length_is_not_measured_again():
    once = withheld("ReplyWritten", {"text": "four"})
    assert once == {"text": {"characters": 4}}
    assert withheld("ReplyWritten", once) == {"text": {"characters": 4}}
    assert withheld("ItemRetrieved", {"text": None}) == {"text": None}

"""A whole call against a scripted model: how it opens and ends, what it survives, and what it asks for and when."""

from __future__ import annotations

import asyncio
import json
from itertools import permutations, product
from typing import Any

import pytest
from tests.runtime.calls import (
    ANYTHING,
    BARGE_IN,
    CREATED,
    OPENING,
    PHONE,
    SPEAKER,
    Model,
    call_item,
    calls,
    delta,
    ended,
    error,
    item_done,
    reply,
    retrieved,
    run,
    speech_started,
    speech_stopped,
    started,
    take,
    written,
)

import callwright as cw
from callwright.audio.formats import PCMA_8K
from callwright.core.ports import Connector, LineSink, ModelConnection, ModelSink
from callwright.ids import ItemId, MarkId, Ms
from callwright.sim.caller import Anchor, ScriptedCaller, Step, Trigger
from callwright.sim.line import LineKind, LineSettings, SimulatedLine
from callwright.sim.server import MemoryConnector
from callwright.sim.server.memory import MemoryConnection
from callwright.sim.vloop import run_virtual
from callwright.testing.scripted import after, close, emit, expect
from callwright.wire import objects, server

BOTH = pytest.mark.parametrize("settings", [PHONE, SPEAKER], ids=["phone", "speaker"])


def silent_line(settings: LineSettings = PHONE) -> SimulatedLine:
    return SimulatedLine(settings, ScriptedCaller((), {}, settings.stream_format.rate_hz))


# --- the opening


@BOTH
def test_a_reply_is_played_and_written_down(settings: LineSettings) -> None:
    taken = take(*OPENING, *reply("From three."), settings=settings)
    assert taken.agent_turns == [("From three.", "From three.", "whole")]
    assert (taken.result.ending, taken.result.anomalies) == (cw.Ending("caller", "hung up"), ())
    assert sum(span.to_ms - span.from_ms for span in taken.line.ear if span.item_id == "a") == 400
    assert taken.result.connected_ms == 4_020  # up to the end of the frame in which he hung up


def test_the_configuration_is_the_agents_declaration_in_the_lines_format() -> None:
    (update,) = take(*OPENING).model.of("session.update")
    assert update["session"]["instructions"] == "Be brief."
    assert [tool["name"] for tool in update["session"]["tools"]][:2] == ["look", "wait"]
    assert update["session"]["audio"]["input"]["format"] == {"type": "audio/pcmu"}


def test_c045_the_callers_first_words_are_held_and_sent_at_once_when_the_session_is_ready() -> None:
    taken = take(CREATED, expect("session.update"), after(1_000), OPENING[2], hang_up_ms=3_000)
    result, model = taken.result, taken.model
    assert (result.session_ready_ms, result.held_sent_ms, result.lost_ms) == (1_000, 1_000, 0)
    assert model.appends[:51] == [1_000] * 50 + [1_020]
    assert model.audio_ms == 3_020


def test_c046_what_was_held_for_too_long_is_counted() -> None:
    result = take(CREATED, expect("session.update"), after(7_000), OPENING[2], hang_up_ms=8_000).result
    assert (result.held_sent_ms, result.lost_ms) == (5_000, 2_000)


@pytest.mark.parametrize("event_id", ["cw_1", None])
def test_c105_a_refused_session_ends_the_call_and_names_the_field(event_id: str | None) -> None:
    """A refused update applies nothing, so there is no agent to talk to."""
    taken = take(CREATED, expect("session.update"), error(event_id, "unsupported_parameter", "session.voice"))
    assert taken.result.ending == cw.Ending(
        "fault", "session.update refused: unsupported_parameter: no (field session.voice)"
    )
    assert taken.result.ending.is_failure
    assert taken.result.session_ready_ms is None
    assert not taken.model.appends
    assert taken.model.closing == (1000, "")  # by us
    assert taken.line.recording.agent.size == 160  # 20 ms: the line was ended at once


@pytest.mark.parametrize("told", [(), ({"type": "function", "name": "look"},)])
def test_c105_a_session_without_all_tools_ends_the_call_and_hears_nothing(told: tuple[dict[str, str], ...]) -> None:
    taken = take(*OPENING[:2], emit(server.SessionUpdated(session=objects.Session(tools=told))))
    assert (taken.result.ending.by, taken.result.ending.reason[:19]) == ("fault", "the session's tools")
    assert (taken.model.appends, taken.model.closing) == ([], (1000, ""))


@pytest.mark.parametrize("spelling", ["pcm16", objects.WireFormat(type="audio/pcm", rate=24_000)])
def test_c116_another_format_than_the_one_asked_for_ends_the_call(spelling: Any) -> None:
    audio = objects.Audio(input=objects.AudioInput(format=spelling))
    taken = take(*OPENING[:2], emit(server.SessionUpdated(session=objects.Session(audio=audio))))
    assert taken.result.ending.by == "fault"
    assert taken.result.ending.reason.startswith("the session's audio.input.format is")
    assert not taken.model.appends


def test_c117_formats_that_a_later_update_resets_end_the_call() -> None:
    audio = objects.Audio(input=objects.AudioInput(format="pcm16"))
    reset = emit(server.SessionUpdated(session=objects.Session(audio=audio)))
    taken = take(*OPENING, after(500), OPENING[2], after(500), reset, delta(200))
    assert taken.result.ending.by == "fault"
    assert taken.line.ear == ()


def test_a_line_that_the_model_cannot_take_is_refused_before_the_call() -> None:
    line = silent_line(LineSettings(LineKind.PHONE, format=PCMA_8K))
    with pytest.raises(cw.UsageError, match="agent desk cannot take this line: polyai takes no audio/pcma"):
        run_virtual(run(line, MemoryConnector(lambda: pytest.fail("nothing is connected"))))


class Unreachable:
    async def connect(self, sink: ModelSink) -> ModelConnection:
        await asyncio.sleep(0.5)
        raise cw.ConnectionFailed("401: check the key", is_final=True)


def test_a_model_that_cannot_be_reached_ends_the_line() -> None:
    line = silent_line()
    with pytest.raises(cw.ConnectionFailed, match="401"):
        run_virtual(run(line, Unreachable()))
    assert line.recording.agent.size == 26 * 160  # 500 ms and the frame in it


def test_a_line_that_cannot_be_opened_is_told() -> None:
    async def twice() -> None:
        line = silent_line()
        await line.open(NoSink())
        await run(line, Unreachable())

    class NoSink:
        def on_frame(self, frame: bytes) -> None: ...

        def on_played(self, item_id: ItemId, generation: int, played_ms: Ms) -> None: ...

        def on_mark(self, mark_id: MarkId) -> None: ...

        def on_closed(self, by: str, reason: str) -> None: ...

    with pytest.raises(cw.LineFailed):
        run_virtual(twice())


def test_a_caller_who_hangs_up_before_the_session_is_ready_ends_the_call() -> None:
    taken = take(CREATED, expect("session.update"), hang_up_ms=300)
    assert taken.result.ending == cw.Ending("caller", "hung up")
    assert taken.result.session_ready_ms is None
    assert not taken.model.appends


@pytest.mark.parametrize(("steps", "what"), [((), "begin a session"), ((CREATED,), "answer session.update")])
def test_a_server_that_never_takes_the_session_ends_the_call_in_20_s(steps: tuple[Any, ...], what: str) -> None:
    taken = take(*steps, ignoring=ANYTHING, hang_up_ms=60_000, is_whole=False)
    assert taken.result.ending == cw.Ending("fault", f"the model's server did not {what} within 20 s")
    assert len(taken.line.recording.agent) <= 20_040 * 8


# --- the end


@pytest.mark.parametrize(("code", "reason"), [(1000, ""), (1008, "not allowed")])
def test_a_connection_that_closes_for_good_ends_the_call_and_the_line(code: int, reason: str) -> None:
    taken = take(
        *OPENING, started(), delta(2_000), written("Apples, pears, berries."), after(1_000), close(code, reason)
    )
    assert taken.result.ending == cw.Ending("model", f"connection closed: {code} {reason}".rstrip())
    assert taken.result.connected_ms == 1_000
    assert len(taken.line.recording.agent) <= 1_040 * 8
    ((heard, _, source),) = taken.agent_turns
    assert source == "estimated"
    assert heard == "Apples,"  # of 2 s, with more to come, 1 s was heard


def test_c083_a_tool_that_runs_at_the_end_of_the_call_is_stopped_and_told_in_the_trace() -> None:
    taken = take(*OPENING, started(), calls("endless"), ended())
    finished = [row[3] for row in taken.rows if row[1:3] == ["on", "ToolFinished"]]
    assert [(each["tool_call_id"], each["outcome"]) for each in finished] == [("k1", "cancelled")]
    assert taken.model.outputs() == {}


class Broken(SimulatedLine):
    def play(self, item_id: ItemId, generation: int, audio: bytes) -> None:
        raise cw.LineFailed("the cable is out")


def test_what_a_line_raises_ends_the_call_and_is_raised() -> None:
    """A command that cannot be carried out must not leave a call that hears nothing any more."""
    broken = Broken(PHONE, ScriptedCaller((), {}, 8_000))
    with pytest.raises(cw.LineFailed, match="the cable is out"):
        take(*OPENING, *reply("From three."), make_line=lambda settings, caller: broken)
    assert broken.recording.agent.size == 160


def test_what_is_sent_against_the_script_ends_the_call() -> None:
    with pytest.raises(cw.CallwrightError, match=r"expects response\.create; the client sent"):
        take(*OPENING, started(), calls("look"), expect("response.create"))


class Stuck:
    async def connect(self, sink: ModelSink) -> ModelConnection:
        await asyncio.sleep(3_600)
        raise cw.ConnectionFailed("no answer")


def test_c058_a_caller_who_hangs_up_does_not_wait_for_a_connection() -> None:
    async def both() -> tuple[cw.CallResult, float]:
        hang_up = Step(Trigger(Anchor.PICKUP, 300), None)
        line = SimulatedLine(PHONE, ScriptedCaller([hang_up], {}, 8_000))
        return await run(line, Stuck()), asyncio.get_running_loop().time()

    result, at_s = run_virtual(both())
    assert (result.ending, result.connected_ms, at_s) == (cw.Ending("caller", "hung up"), 0, 0.32)


@pytest.mark.parametrize("connector", [Stuck(), MemoryConnector(lambda: Model(*OPENING))], ids=["connecting", "ready"])
def test_a_call_that_is_cancelled_ends_its_line(connector: Connector) -> None:
    line = silent_line()

    async def go() -> None:
        async with asyncio.timeout(1):
            await run(line, connector)

    with pytest.raises(TimeoutError):
        run_virtual(go())
    assert 50 * 160 <= line.recording.agent.size <= 51 * 160


class Talkative(MemoryConnector):
    """Takes its time to return the connection; its server does not wait for that."""

    async def connect(self, sink: ModelSink) -> MemoryConnection:
        connection = await super().connect(sink)
        await asyncio.sleep(0.1)
        return connection


def test_a_server_that_speaks_before_the_connection_is_ours_is_answered() -> None:
    model = Model(*OPENING, *reply("From three."), after(1_000), close(1008))
    result = run_virtual(run(silent_line(), Talkative(lambda: model)))
    model.finish()
    assert result.session_ready_ms == 100
    assert [turn.heard for turn in result.turns] == ["From three."]


class Clinging(SimulatedLine):
    async def hang_up(self) -> None:
        await super().hang_up()
        raise cw.LineFailed("the carrier does not answer")


def test_a_line_that_cannot_be_ended_leaves_no_connection_open() -> None:
    """Connected time is paid for until the connection closes."""
    model = Model(*OPENING)
    line = Clinging(PHONE, ScriptedCaller([Step(Trigger(Anchor.PICKUP, 300), None)], {}, 8_000))
    with pytest.raises(cw.LineFailed, match="the carrier does not answer"):
        run_virtual(run(line, MemoryConnector(lambda: model)))
    assert model.closing == (1000, "")


class Lingering(SimulatedLine):
    async def hang_up(self) -> None:
        await super().hang_up()
        await asyncio.sleep(3_600)


def test_a_line_that_takes_for_ever_to_end_keeps_no_connection_open() -> None:
    model = Model(*OPENING)
    line = Lingering(PHONE, ScriptedCaller([Step(Trigger(Anchor.PICKUP, 300), None)], {}, 8_000))
    with pytest.raises(cw.LineFailed, match="did not end within 5 s"):
        run_virtual(run(line, MemoryConnector(lambda: model)))
    assert model.closing == (1000, "")


# --- what a call survives


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"not json",
        b"[]",
        b'{"type":"response.done"}',
        b'{"type":"response.output_audio.delta","response_id":"r1","item_id":"a","delta":"*"}',
        b'{"type":"input_audio_buffer.speech_started","item_id":7}',
        b"\xff\xfe",
        b"[" * 5_000,
    ],
)
def test_an_unreadable_message_is_noted_and_passed_over(message: bytes) -> None:
    taken = take(*OPENING, emit(message), *reply("From three."))
    assert taken.agent_turns == [("From three.", "From three.", "whole")]
    (anomaly,) = taken.result.anomalies
    assert anomaly.startswith("unreadable message: ")
    assert ["note", "NoteAnomaly"] in [row[1:3] for row in taken.rows]


def test_events_that_are_not_known_are_passed_over() -> None:
    """And counted, by name."""
    sparkles = emit({"type": "response.sparkles", "n": 1})
    taken = take(*OPENING, sparkles, emit({"type": "error", "error": {"message": "no", "mood": 7}}), sparkles)
    assert taken.result.unknown == {"response.sparkles": 2, "error: error.mood": 1}
    assert take(*OPENING, sparkles, *reply("From three.")).agent_turns == [("From three.", "From three.", "whole")]


@pytest.mark.parametrize("event_id", [None, "", "cw_999"])
def test_c010_an_error_that_names_nothing_of_ours_is_survived(event_id: str | None) -> None:
    taken = take(*OPENING, error(event_id, "server_hiccup"), *reply("From three."), error(event_id))
    assert taken.agent_turns == [("From three.", "From three.", "whole")]
    assert taken.result.anomalies[0] == "an unnamed request refused: server_hiccup: no"
    assert taken.result.ending.by == "caller"


def test_a_failed_response_is_noted() -> None:
    taken = take(*OPENING, started(), ended("r1", "failed"), *reply("From three.", response_id="r2"))
    assert taken.result.anomalies == ("response r1 failed: no reason given",)
    assert len(taken.agent_turns) == 1


@pytest.mark.parametrize("kb", [900, 1_100, 3_500])
def test_c128_a_retrieved_item_may_be_larger_than_a_socket_takes_by_default(kb: int) -> None:
    audio = bytes(kb * 1024 * 3 // 4)
    taken = take(*BARGE_IN, retrieved("From-", audio=audio), ended("r1", "cancelled"), ignoring=ANYTHING)
    assert taken.agent_turns == [("From", "From three in the afternoon.", "retrieved")]
    assert taken.result.anomalies == ()


def test_c128_beyond_the_stated_limit_a_message_is_named_and_the_call_goes_on() -> None:
    audio = bytes(17 * 1024 * 1024 * 3 // 4)
    taken = take(
        *BARGE_IN, retrieved("From-", audio=audio), retrieved("From-"), ended("r1", "cancelled"), ignoring=ANYTHING
    )
    (anomaly,) = taken.result.anomalies
    assert "at most 16777216 are accepted" in anomaly
    assert taken.agent_turns[0][2] == "retrieved"


# --- talking over


@pytest.mark.parametrize(
    ("settings", "end_ms"),
    [(PHONE, 1_010), (SPEAKER, 1_020), (LineSettings(LineKind.PHONE, hidden_lag_ms=500), 500)],
    ids=["phone", "speaker", "lag"],
)
def test_a_reply_that_is_talked_over_is_cut_at_the_ear(settings: LineSettings, end_ms: Ms) -> None:
    taken = take(
        *BARGE_IN,
        expect("conversation.item.truncate", item_id="a", content_index=0),
        expect("conversation.item.retrieve", item_id="a"),
        retrieved("From-"),
        ended("r1", "cancelled"),
        settings=settings,
    )
    (truncate,) = taken.model.of("conversation.item.truncate")
    ear_ms = taken.line.ear[-1].to_ms
    assert abs(truncate["audio_end_ms"] - ear_ms) <= 20
    assert abs(truncate["audio_end_ms"] - end_ms) <= 20
    assert taken.agent_turns == [("From", "From three in the afternoon.", "retrieved")]


def test_c014_late_audio_of_a_cut_reply_is_not_heard_and_the_next_reply_is_whole() -> None:
    taken = take(
        *BARGE_IN,
        delta(400),
        ended("r1", "cancelled"),
        delta(400),
        speech_stopped(),
        *reply("Yes.", item_id="b", response_id="r2"),
        ignoring=ANYTHING,
    )
    heard = {item_id: max(span.to_ms for span in taken.line.ear if span.item_id == item_id) for item_id in ("a", "b")}
    assert heard["a"] <= 1_040
    assert heard["b"] == 400


class Immediate(SimulatedLine):
    """Returns its marks from within ``clear``, and not only afterwards."""

    asked: list[MarkId]
    sink: LineSink

    async def open(self, sink: LineSink) -> None:
        self.asked, self.sink = [], sink
        await super().open(sink)

    def mark(self, mark_id: MarkId) -> None:
        self.asked.append(mark_id)
        super().mark(mark_id)

    def clear(self) -> None:
        super().clear()
        for mark_id in self.asked:
            self.sink.on_mark(mark_id)


def test_c025_marks_that_come_back_from_within_a_clear_wait_for_the_commands_before_them() -> None:
    taken = take(*BARGE_IN, retrieved("From-"), ended("r1", "cancelled"), make_line=Immediate, ignoring=ANYTHING)
    rows = [row[1:3] for row in taken.rows if row[1] in ("on", "do")]
    cleared = rows.index(["do", "ClearPlayout"])
    assert rows[cleared - 1 : cleared + 4] == [
        ["on", "SpeechStarted"],
        ["do", "ClearPlayout"],
        ["do", "TruncateItem"],
        ["do", "RetrieveItem"],
        ["on", "MarkReturned"],
    ]
    (truncate,) = taken.model.of("conversation.item.truncate")
    assert abs(truncate["audio_end_ms"] - taken.line.ear[-1].to_ms) <= 20
    assert taken.agent_turns[0][2] == "retrieved"


def test_what_the_server_is_not_to_be_asked_is_not_asked() -> None:
    taken = take(*BARGE_IN, ended("r1", "cancelled"), can=cw.Can.RETRIEVE, ignoring=ANYTHING)
    assert not taken.model.of("conversation.item.truncate")
    assert taken.model.of("conversation.item.retrieve")
    taken = take(*BARGE_IN, ended("r1", "cancelled"), can=cw.Can(0), ignoring=("input_audio_buffer.append",))
    assert taken.agent_turns[0][2] == "estimated"


# --- tools


def test_a_tool_is_run_with_what_the_app_gave() -> None:
    deps: dict[str, int] = {}
    taken = take(
        *OPENING,
        started(),
        calls("look", "k" * 37, arguments='{"order": "4417"}'),
        expect("conversation.item.create", item=output("k" * 37, '{"order":"4417","party":"guest:7"}')),
        ended(),
        expect("response.create"),
        *reply("Here.", response_id="r2"),
        deps=deps,
        party="guest:7",
    )
    assert deps == {"look": 1}
    assert taken.result.anomalies == ()


def output(call_id: str, text: Any = ...) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


@pytest.mark.parametrize(
    ("order", "again"), list(product(permutations(("arguments", "item", "response")), ("arguments", "item")))
)
def test_c078_a_call_that_is_announced_three_times_and_again_runs_once(order: tuple[str, ...], again: str) -> None:
    announced = {
        "arguments": calls("look"),
        "item": item_done("look"),
        "response": ended("r1", "completed", call_item("look", "k1")),
    }
    deps: dict[str, int] = {}
    first, second, third = (announced[each] for each in order)
    taken = take(
        *(*OPENING, started(), first, after(20), second, after(20), third, after(2_000), announced[again]),
        ignoring=ANYTHING,
        deps=deps,
    )
    assert deps == {"look": 1}
    assert list(taken.model.outputs()) == ["k1"]
    assert len(taken.model.of("response.create")) == 1


@pytest.mark.parametrize(
    ("name", "after_ms"), [("raises", 0), ("raises_later", 2_000), ("unwritable", 0), ("no_such_tool", 0)]
)
def test_c087_a_tool_that_fails_is_answered_and_spoken_about(name: str, after_ms: Ms) -> None:
    taken = take(
        *(*OPENING, started(), calls(name), ended()),
        expect("conversation.item.create", item=output("k1")),
        expect("response.create"),
        *reply("Sorry.", response_id="r2"),
    )
    model = taken.model
    assert model.times("conversation.item.create") == model.times("response.create") == [after_ms]
    assert model.outputs()["k1"].startswith('{"error":')
    assert "secret" not in model.outputs()["k1"]
    assert taken.agent_turns == [("Sorry.", "Sorry.", "whole")]


def test_c093_an_output_is_followed_by_a_request_for_a_reply_unless_silence_was_the_answer() -> None:
    normal = take(*OPENING, started(), calls("look"), ended(), ignoring=ANYTHING).model
    quiet = take(*OPENING, started(), calls("wait"), ended(), ignoring=ANYTHING, hang_up_ms=20_000).model
    kinds = [event["type"] for _, event in normal.sent[1:3]]
    assert kinds == ["conversation.item.create", "response.create"]
    assert quiet.outputs() == {"k1": "waited"}
    assert not quiet.of("response.create")


def test_c098_a_request_that_crosses_another_reply_is_made_once_more_after_it() -> None:
    taken = take(
        *(*OPENING, started(), calls("look"), expect("conversation.item.create", event_id="cw_2"), ended()),
        expect("response.create", event_id="cw_3"),
        started("r2"),
        error("cw_3", "conversation_already_has_active_response"),
        delta(400, "b", "r2"),
        written("One moment.", "b", "r2"),
        after(800),
        ended("r2"),
        expect("response.create", event_id="cw_4"),
        *reply("Found it.", item_id="c", response_id="r3"),
    )
    assert [heard for heard, _, _ in taken.agent_turns] == ["One moment.", "Found it."]
    assert taken.result.ending.by == "caller"


def test_c100_a_reply_is_asked_for_when_the_calling_response_is_done() -> None:
    taken = take(
        *(*OPENING, started(), delta(400), after(300), calls("look")),
        expect("conversation.item.create", item=output("k1")),
        after(1_995),
        ended(),
        expect("response.create"),
        *reply("Here.", item_id="b", response_id="r2"),
    )
    assert taken.model.times("conversation.item.create") == [305]
    assert taken.model.times("response.create") == [2_300]
    assert taken.result.anomalies == ()


def test_c104_a_named_refusal_ends_the_wait_at_once_and_requests_are_bounded() -> None:
    taken = take(
        *(*OPENING, started(), calls("look"), expect("conversation.item.create"), ended()),
        expect("response.create", event_id="cw_3"),
        error("cw_3", "rate_limit"),
        expect("response.create", event_id="cw_4"),
        error("cw_4", "rate_limit"),
        expect("response.create", event_id="cw_5"),
        error("cw_5", "rate_limit"),
        hang_up_ms=1_500,
    )
    assert taken.model.times("response.create") == [5, 5, 5]
    assert taken.result.anomalies == ("RequestReply refused: rate_limit: no",) * 3


def test_c104_a_refusal_without_a_name_ends_the_wait_within_its_limit() -> None:
    taken = take(
        *(*OPENING, started(), calls("look"), expect("conversation.item.create"), ended()),
        expect("response.create"),
        error(None, "rate_limit"),
        expect("response.create"),
        *reply("Here.", response_id="r2"),
        hang_up_ms=30_000,
    )
    assert taken.model.times("response.create") == [5, 6_005]


def test_c104_a_refused_output_is_told_with_its_code_and_the_call_goes_on() -> None:
    taken = take(
        *(*OPENING, started(), calls("look"), expect("conversation.item.create", event_id="cw_2"), ended()),
        error("cw_2", "invalid_call_id"),
        *reply("Here.", response_id="r2"),
        ignoring=ANYTHING,
    )
    assert "PostToolOutput refused: invalid_call_id: no" in taken.result.anomalies
    assert len(taken.agent_turns) == 1


@BOTH
@pytest.mark.parametrize("up_ms", [0, 80])
def test_c005_talked_over_before_the_first_sound_nothing_is_truncated(settings: LineSettings, up_ms: Ms) -> None:
    taken = take(
        *OPENING, started(), speech_started(), ended("r1", "cancelled"), delta(400), settings=settings, up_ms=up_ms
    )
    assert taken.line.ear == ()
    assert taken.agent_turns == []


# --- the clock of the call and the loop's


def test_the_call_begins_at_0_whatever_the_loop_tells() -> None:
    async def later() -> cw.CallResult:
        await asyncio.sleep(12.345)
        steps = (*OPENING, *reply("From three."), after(1_000), close(1008))
        return await run(silent_line(), MemoryConnector(lambda: Model(*steps)))

    result = run_virtual(later())
    assert result.session_ready_ms == 0
    assert [1_400, "do", "HangUp"] in [json.loads(row)[:3] for row in result.trace.splitlines()]

"""The baselines do what tutorials show: their records say what was written, and each loses what its habits lose."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.sim.whole_call import AT_THE_DESK, WAITED_FOR, agent_heard, check_in, check_in_call, heard_by_the_books

import callwright as cw
from callwright.audio.dtmf import KeyDetector
from callwright.core.ports import ModelConnection
from callwright.ids import Ms
from callwright.runtime.call import CallResult
from callwright.sim.agents import load_agent
from callwright.sim.baselines import BASELINES, HABITS
from callwright.sim.baselines.habits import Acts, Early, HangUp, OnHold
from callwright.sim.caller import Anchor, ScriptedCaller, Step, Trigger
from callwright.sim.line import LineKind, LineSettings, SimulatedLine
from callwright.sim.models import CallerSaid, ToolAnswered
from callwright.sim.record import CallRecord
from callwright.sim.scenario import Scenario, load_scenario
from callwright.sim.server import MemoryConnector
from callwright.sim.vloop import run_virtual
from callwright.sim.world import CLIENTS, Options, play
from callwright.testing.scripted import ScriptedModel, after, emit, expect
from callwright.testing.scripted import Step as ModelStep
from callwright.wire import objects, server


@cache
def naive(lag_ms: int = 0) -> CallRecord:
    return play(check_in(), 1, client="naive", options=Options(lag_ms=lag_ms))


def sent(record: CallRecord) -> list[str]:
    rows = [json.loads(row) for row in record.trace.splitlines()]
    return [what for _, kind, what in rows if kind == "sent"]


def test_baselines_are_clients_by_name() -> None:
    assert ("callwright", *BASELINES) == CLIENTS
    assert "naive" in CLIENTS


def test_c011_naive_writes_down_the_whole_reply_although_it_was_cut() -> None:
    record, ours = naive(), check_in_call()
    cut, *_ = [turn for turn in record.turns if turn.speaker == "agent"]
    assert cut.heard == cut.written
    assert len(cut.heard.split()) > len(heard_by_the_books(record, cut.item_id).split()) + 20
    ours_cut, *_ = [turn for turn in ours.turns if turn.speaker == "agent"]
    assert ours_cut.written == cut.written  # the same seed: the same call up to here


@pytest.mark.parametrize("lag_ms", [0, 1_500])
def test_c006_naive_truncates_nothing_and_clears_nothing(lag_ms: int) -> None:
    """The caller hears whatever the line was handed, long after he has begun to speak."""
    record = naive(lag_ms)
    assert record.truncations == ()
    assert sent(record) == ["session.update"]
    confirmed_ms = record.confirmations[0].at_ms
    spans = [span for span in record.ear if span.item_id == record.spoken[0].item_id]
    ends_ms = max(span.at_ms + span.to_ms - span.from_ms for span in spans)
    assert ends_ms - confirmed_ms >= 100 + lag_ms
    ours = play(check_in(), 1, options=Options(lag_ms=lag_ms))
    ours_ms = max(span.at_ms + span.to_ms - span.from_ms for span in ours.ear if span.item_id == ours.spoken[0].item_id)
    assert ours_ms - ours.confirmations[0].at_ms <= 40


def test_naive_runs_the_tool_posts_its_output_and_asks_for_a_reply() -> None:
    record = play(WAITED_FOR, 1, client="naive")
    assert sent(record) == ["session.update", "conversation.item.create", "response.create"]
    assert len([item for item in record.history if isinstance(item, ToolAnswered)]) == 1
    assert agent_heard(record)[-1] == "I found it. Room two fourteen, two nights, checking in on Friday."


def test_naive_loses_what_is_said_before_the_session_stands() -> None:
    assert (naive().held_sent_ms, check_in_call().held_sent_ms) == (0, 220)


def test_naive_ends_with_the_line() -> None:
    record = naive()
    assert (record.error, record.unspoken) == (None, ())
    assert record.connected_ms == len(record.recording.agent) // 8


# --- the edges of a call

named = pytest.mark.parametrize("name", BASELINES)
at_the_desk = pytest.mark.parametrize("name", AT_THE_DESK)
ASKED = "Good morning, could you please tell me which floor your pool is on?"
STALLED: Mapping[str, object] = {"stall_at_ms": 1_800, "stall_ms": [1_000, 1_000]}


@cache
def scenario(name: str) -> Scenario:
    with as_file(files("callwright.apps.hotel") / "scenarios" / f"{name}.yaml") as path:
        return load_scenario(path)


@cache
def edges(name: str, scenario_name: str = "pickup", lag_ms: int = 0, *, is_stalled: bool = False) -> CallRecord:
    """A call whose session takes 1 s to stand, in which the caller speaks from its first frame."""
    settings = {"ready_after_ms": [1_000, 1_000], **(STALLED if is_stalled else {})}
    return play(scenario(scenario_name), 1, client=name, options=Options(lag_ms=lag_ms, server=settings))


def first_turn(record: CallRecord) -> str:
    """The caller's first turn, as the server understood it."""
    return next(item.text for item in record.history if isinstance(item, CallerSaid))


def farewells(record: CallRecord) -> list[tuple[Ms, Ms]]:
    """Of each spoken goodbye, how much reached the ear before the end of the line, and how long it was."""
    return [
        (sum(span.to_ms - span.from_ms for span in record.ear if span.item_id == item.item_id), item.audio_ms)
        for item in record.spoken
        if item.tool == "end_call"
    ]


def is_whole(goodbye: tuple[Ms, Ms]) -> bool:
    played_ms, audio_ms = goodbye
    return played_ms >= audio_ms - 5  # a baseline leaves in the conversion what it holds back


ACTING = (
    "by-call-id",
    "by-order",
    "by-order-and-card",
    "suppresses-reply",
    "counts-last-four",
    "posts-a-note",
    "cancels-on-barge-in",
)
"""Baselines that differ in what they do with actions."""


def test_every_baseline_but_naive_has_one_bad_habit() -> None:
    for name, habits in HABITS.items():
        bad = sum(
            [
                habits.early is not Early.HELD,
                habits.hang_up is not HangUp.WHEN_HEARD,
                habits.on_hold is not OnHold.WAITS,
                name in ACTING,
            ]
        )
        assert bad == (3 if name == "naive" else 1), name
        assert name in ACTING or name == "naive" or habits.acts == Acts(), name


def test_who_takes_the_last_four_digits_for_the_outcome_never_tells_it() -> None:
    """The card is named when the change is declined; who does not count that says later that it is done."""
    with as_file(files("callwright.apps.refunds") / "scenarios" / "wrong-card-slow.yaml") as path:
        slow = load_scenario(path)
    counting, asking = (agent_heard(play(slow, 1, client=name)) for name in ("counts-last-four", "by-order"))
    assert counting[-2].endswith("The refund to your Visa ending in 4242 is on its way.")
    assert asking[-2].endswith("The refund of 32 dollars to your Visa ending in 4242 is done.")


def test_every_baseline_is_in_the_reference() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
    assert [name for name in BASELINES if f"| `{name}` |" not in page.read_text("utf-8")] == []


@at_the_desk
def test_c045_first_words_reach_the_server_only_where_they_are_held(name: str) -> None:
    """What is sent before the configuration is read in the default format, and lost like what is dropped."""
    record = edges(name)
    is_held = HABITS[name].early is Early.HELD
    assert (first_turn(record) == ASKED) is is_held
    assert first_turn(record).endswith("your pool is on?")
    assert record.held_sent_ms == {Early.HELD: 1_000, Early.SENT: 0, Early.DROPPED: 0}[HABITS[name].early]


@at_the_desk
@pytest.mark.parametrize("lag_ms", [0, 1_500])
def test_c050_a_goodbye_is_whole_only_for_who_waits_until_the_line_has_played_it(name: str, lag_ms: int) -> None:
    record = edges(name, lag_ms=lag_ms)
    (goodbye,) = farewells(record)
    if HABITS[name].hang_up is HangUp.AFTER_A_WHILE:
        assert (
            max(0, 880 - lag_ms) <= goodbye[0] <= max(0, 1_120 - lag_ms)
        )  # a call comes 120 ms before, or 46 ms after
    else:
        assert is_whole(goodbye)


def test_an_empty_queue_is_not_the_end_of_a_goodbye() -> None:
    """A stall of the stream longer than what is ahead of playback empties the queue in the middle."""
    (cut,) = farewells(edges("hangs-up-when-empty", is_stalled=True))
    (whole,) = farewells(edges("drops-early-audio", is_stalled=True))
    assert 1_700 <= cut[0] <= 2_100 < cut[1]
    assert is_whole(whole)


@at_the_desk
def test_who_does_not_wait_hangs_up_on_a_caller_who_talks_over_the_goodbye(name: str) -> None:
    record = edges(name, "talk-over")
    spoken = farewells(record)
    if HABITS[name].hang_up is HangUp.WHEN_HEARD:
        assert len(spoken) == 2
        assert is_whole(spoken[1])
        assert record.unspoken == ()
        (output,) = [item.output for item in record.history if isinstance(item, ToolAnswered)]
        assert "still open" in output
    else:
        assert len(spoken) == 1
        assert not is_whole(spoken[0])
        assert record.unspoken[-1].startswith("step 4")


desk = cw.Agent("desk", model=cw.polyai(), instructions="Be brief.")


@desk.tool(after=cw.AfterOutput.HANG_UP)
async def end_call(ctx: cw.Context[None], goodbye: cw.Spoken) -> str:
    """End the call."""
    return f"said {goodbye}"


@desk.tool(after=cw.AfterOutput.SILENCE)
async def wait(ctx: cw.Context[None]) -> str:
    """Say nothing."""
    return "waiting"


@desk.tool(after=cw.AfterOutput.SILENCE)
async def press_keys(ctx: cw.Context[None], digits: str) -> cw.Facts:
    """Press keys."""
    return await ctx.press_keys(digits)


CREATED = emit(server.SessionCreated(session=objects.Session()))
UPDATED = emit(server.SessionUpdated(session=objects.Session()))
READY = (CREATED, expect("session.update"), UPDATED, after(1_000))
PART: dict[str, Any] = {"response_id": "r", "item_id": "a", "output_index": 0, "content_index": 0}
CALL = emit(
    server.ResponseFunctionCallArgumentsDone(
        response_id="r", item_id="c", output_index=1, call_id="1", name="end_call", arguments='{"goodbye": "bye"}'
    )
)
LAST = emit(server.ResponseOutputAudioDone(**PART))
OUTPUT = expect("conversation.item.create", item={"type": "function_call_output", "call_id": "1"})
KINDS = pytest.mark.parametrize("kind", LineKind)
Taken = tuple[CallResult, "Model"]


def chunk(ms: Ms) -> ModelStep:
    return emit(server.ResponseOutputAudioDelta(**PART, delta=bytes(48 * ms)))


def done(status: str = "completed") -> ModelStep:
    return emit(server.ResponseDone(response=objects.Response(id="r", status=status)))


class Model(ScriptedModel):
    """A scripted model that keeps the types of what it is sent, in order."""

    def __init__(self, *steps: ModelStep) -> None:
        super().__init__(*steps)
        self.sent: list[str] = []
        self.line_played = np.zeros(0, np.int16)
        """What was heard at the far end of the line in the call."""

    def receive(self, data: bytes, now_ms: Ms) -> None:
        self.sent.append(json.loads(data)["type"])
        super().receive(data, now_ms)


def take(name: str, *steps: ModelStep, kind: LineKind = LineKind.PHONE, ends_ms: Ms = 12_000) -> Taken:
    """A call with a script, and a caller who says nothing and hangs up."""
    model, settings = Model(*steps), LineSettings(kind)

    async def call() -> CallResult:
        hang_up = Step(Trigger(Anchor.PICKUP, ends_ms), None)
        line = SimulatedLine(settings, ScriptedCaller([hang_up], {}, settings.stream_format.rate_hz))
        result = await BASELINES[name](desk, line, deps=None, party=None).run(MemoryConnector(lambda: model))
        model.line_played = line.recording.agent
        return result

    return run_virtual(call()), model


def put_down_ms(result: CallResult) -> Ms:
    """When the client put down the line."""
    assert (result.ending.by, result.ending.reason) == ("agent", "said bye")
    (at_ms,) = [at_ms for at_ms, kind, _ in map(json.loads, result.trace.splitlines()) if kind == "hung up"]
    return at_ms


@named
def test_c045_audio_is_before_the_configuration_on_the_wire_only_for_who_sends_it_early(name: str) -> None:
    early = after(500), CREATED, expect("session.update"), after(500), UPDATED
    result, model = take(name, *early, ends_ms=2_000)
    before = model.sent.index("session.update")
    frames = {Early.SENT: (25, 100), Early.HELD: (0, 100), Early.DROPPED: (0, 50)}[HABITS[name].early]
    assert before == pytest.approx(frames[0], abs=1)
    assert len(model.sent) - 1 == pytest.approx(frames[1], abs=2)
    assert result.session_ready_ms == 1_000
    assert result.lost_ms == (pytest.approx(1_000, abs=20) if HABITS[name].early is Early.DROPPED else 0)


@named
def test_c060_who_asks_for_a_reply_to_every_output_speaks_where_silence_was_the_answer(name: str) -> None:
    """Not before the response that called is done: the server would refuse it."""
    waits = emit(
        server.ResponseFunctionCallArgumentsDone(
            response_id="r", item_id="c", output_index=0, call_id="1", name="wait", arguments="{}"
        )
    )
    opened = emit(server.ResponseCreated(response=objects.Response(id="r", status="in_progress")))
    asks = [expect("response.create")] * (HABITS[name].on_hold is OnHold.ASKS)
    result, model = take(name, *READY, opened, waits, OUTPUT, after(200), done(), *asks, after(500), ends_ms=3_000)
    told = [kind for kind in model.sent if kind != "input_audio_buffer.append"]
    assert told == ["session.update", "conversation.item.create", *["response.create"] * len(asks)]
    assert result.ending.by == "caller"


def test_a_baseline_presses_keys_as_tones_on_the_line() -> None:
    press = emit(
        server.ResponseFunctionCallArgumentsDone(
            response_id="r", item_id="c", output_index=0, call_id="1", name="press_keys", arguments='{"digits": "2#"}'
        )
    )
    result, model = take("by-order", *READY, press, OUTPUT, done(), after(1_000), ends_ms=3_000)
    assert [key.key for key in KeyDetector(8_000).take(model.line_played)] == ["2", "#"]
    assert result.ending.by == "caller"


@pytest.mark.parametrize("name", ["naive", "sleeps-at-goodbye"])
def test_a_client_that_does_not_look_hangs_up_a_second_after_the_call(name: str) -> None:
    result, _ = take(name, *READY, chunk(3_000), CALL, LAST, done())
    assert put_down_ms(result) == 2_000


@KINDS
@pytest.mark.parametrize(
    "steps", [(chunk(400), CALL), (CALL, after(200), chunk(400))], ids=["audio-first", "call-first"]
)
def test_an_empty_queue_ends_the_call_once_the_goodbye_has_begun(kind: LineKind, steps: tuple[ModelStep, ...]) -> None:
    result, _ = take("hangs-up-when-empty", *READY, *steps, after(300), chunk(200), after(1_000), chunk(400), kind=kind)
    began_ms = 1_000 if steps[0] != CALL else 1_200
    assert began_ms + 580 <= put_down_ms(result) <= began_ms + 640


@KINDS
@pytest.mark.parametrize(
    ("steps", "played_ms"),
    [
        ((chunk(400), CALL, after(300), chunk(600), LAST, after(436), done()), 2_000),
        ((CALL, done(), after(700), chunk(400), after(600), chunk(300), LAST), 2_600),
        ((chunk(800), after(100), chunk(900), LAST, CALL, done()), 2_700),
    ],
    ids=["done-last", "done-at-once", "call-last"],
)
def test_who_waits_hangs_up_when_the_response_is_done_and_played(
    kind: LineKind, steps: tuple[ModelStep, ...], played_ms: Ms
) -> None:
    result, _ = take("drops-early-audio", *READY, *steps, kind=kind)
    assert played_ms - 20 <= put_down_ms(result) <= played_ms + 40


CUT = (
    (emit(server.InputAudioBufferSpeechStarted(item_id="u", audio_start_ms=900)), LAST, done("cancelled")),
    (LAST, done("cancelled"), emit(server.InputAudioBufferSpeechStarted(item_id="u", audio_start_ms=900))),
)


@pytest.mark.parametrize("cut", CUT, ids=["told-first", "cancelled-first"])
def test_who_waits_stays_on_the_line_when_the_goodbye_was_cut_and_can_say_another(cut: tuple[ModelStep, ...]) -> None:
    result, model = take("sends-early-audio", *READY, chunk(600), CALL, after(300), *cut, OUTPUT, ends_ms=4_000)
    model.finish()
    assert (result.ending.by, result.ending.reason) == ("caller", "hung up")
    assert model.sent.count("response.create") == 0


@pytest.mark.parametrize("name", ["naive", "sleeps-at-goodbye", "hangs-up-when-empty"])
def test_who_does_not_wait_hangs_up_whatever_the_caller_says_meanwhile(name: str) -> None:
    result, _ = take(name, *READY, chunk(600), CALL, after(300), *CUT[0])
    assert put_down_ms(result) <= 2_000


@pytest.mark.parametrize("name", ["drops-early-audio", "hangs-up-when-empty"])
def test_a_goodbye_of_which_nothing_comes_ends_after_eight_seconds(name: str) -> None:
    result, _ = take(name, *READY, CALL, done())
    assert put_down_ms(result) == 9_000


def test_a_baseline_that_reaches_no_server_ends_its_line() -> None:
    """Nobody talks on at the far end, where the call is played again beside others."""

    class Closed:
        async def connect(self, sink: object) -> ModelConnection:
            raise cw.ConnectionFailed("HTTP 429", status=429)

    async def call() -> Ms | None:
        line = SimulatedLine(LineSettings(LineKind.PHONE), ScriptedCaller([], {}, 24_000))
        with pytest.raises(cw.ConnectionFailed):
            await BASELINES["naive"](load_agent(check_in().agent), line, deps=None, party=None).run(Closed())
        return line.ended_ms

    assert run_virtual(call()) == 0

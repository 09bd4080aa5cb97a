"""The scripted caller hears by energy at his ear, frame by frame; these tests are his ear."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import callwright
from callwright.audio.formats import FRAME_MS, PCM
from callwright.audio.levels import active_spans, level_dbfs
from callwright.ids import ItemId, Ms
from callwright.sim.caller import AUDIBLE_DBFS, Anchor, ScriptedCaller, Step, Trigger, drawn, silent_frame
from callwright.sim.speech import Speech

SPEECH = Speech.load(Path(callwright.__file__).parent / "apps" / "hotel" / "speech")
RATE_HZ = 8_000
VOICE = np.full(RATE_HZ * FRAME_MS // 1000, 3000, np.int16)
"""A frame of agent speech."""
FAINT = np.full(RATE_HZ * FRAME_MS // 1000, 50, np.int16)

Spans = Sequence[tuple[Ms, Ms]]


def step(anchor: Anchor, offset_ms: Ms, line_id: str | None, tool: str | None = None) -> Step:
    return Step(Trigger(anchor, offset_ms, tool), line_id)


def call(
    script: Sequence[Step],
    agent: Spans = (),
    until_ms: Ms = 20_000,
    tool_of: Callable[[ItemId], str | None] = lambda item_id: None,
    items: Sequence[int] = range(9),
) -> tuple[ScriptedCaller, PCM]:
    """Run a script while the agent is audible in these spans; ``items`` has the number of each span's item."""
    caller = ScriptedCaller(script, SPEECH, RATE_HZ, tool_of)
    sent = []
    for now_ms in range(0, until_ms, FRAME_MS):
        speaking = [n for n, (start, end) in enumerate(agent) if start <= now_ms < end]
        ear = VOICE if speaking else silent_frame(RATE_HZ)
        sent.append(caller.step(now_ms, ear, ItemId(f"item_{items[speaking[0]]}") if speaking else None))
    return caller, np.concatenate(sent)


def starts(caller: ScriptedCaller) -> list[Ms]:
    return [line.started_ms for line in caller.lines]


def length_ms(line_id: str) -> Ms:
    return SPEECH[line_id].ms


# --- sending ------------------------------------------------------------------------------------------------------


def test_c032_silence_is_sent_between_lines_for_the_whole_call() -> None:
    _, sent = call([step(Anchor.PICKUP, 400, "go-on"), step(Anchor.PREVIOUS_END, 3000, "thank-you")])
    assert len(sent) == 20_000 * RATE_HZ // 1000
    spans = active_spans(sent, RATE_HZ, AUDIBLE_DBFS, hang_ms=500)
    assert [round(start / 100) for start, _ in spans] == [4, round((400 + length_ms("go-on") + 3000) / 100)]


def test_silence_is_one_and_the_same_frame() -> None:
    caller = ScriptedCaller((), SPEECH, RATE_HZ)
    assert caller.step(0, silent_frame(RATE_HZ), None) is caller.step(20, VOICE, ItemId("a")) is silent_frame(RATE_HZ)


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 24_000])
def test_a_line_is_sent_whole_at_the_rate_of_the_line(rate_hz: int) -> None:
    caller = ScriptedCaller([step(Anchor.PICKUP, 0, "ask-check-in")], SPEECH, rate_hz)
    sent = np.concatenate([caller.step(ms, silent_frame(rate_hz), None) for ms in range(0, 8_000, FRAME_MS)])
    assert len(sent) == 8 * rate_hz
    (line,) = caller.lines
    assert line.ended_ms - line.started_ms == pytest.approx(length_ms("ask-check-in"), abs=1)
    assert abs(level_dbfs(sent[: line.ended_ms * rate_hz // 1000]) - level_dbfs(SPEECH["ask-check-in"].pcm)) <= 1
    assert not sent[line.ended_ms * rate_hz // 1000 + rate_hz // 1000 :].any()


# --- triggers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset_ms", [0, 400, 410])
def test_pickup_counts_from_the_opening_to_the_next_frame(offset_ms: Ms) -> None:
    caller, _ = call([step(Anchor.PICKUP, offset_ms, "go-on")])
    assert starts(caller) == [-(-offset_ms // FRAME_MS) * FRAME_MS]


def test_reply_start_counts_from_the_first_agent_speech_after_his_line() -> None:
    caller, _ = call([step(Anchor.PICKUP, 0, "go-on"), step(Anchor.REPLY_START, 4000, "ask-parking")], [(3000, 9000)])
    assert starts(caller) == [0, 7000]


def test_reply_end_counts_from_the_last_agent_speech_and_ignores_pauses() -> None:
    script = [step(Anchor.PICKUP, 0, "go-on"), step(Anchor.REPLY_END, 800, "thank-you")]
    caller, _ = call(script, [(3000, 4000), (4600, 5000), (5680, 6000)])
    assert starts(caller) == [0, 6800]


def test_a_reply_that_is_over_stays_over() -> None:
    """What begins after 700 ms of silence is another reply: the time still counts from the end of the first."""
    script = [step(Anchor.PICKUP, 0, "go-on"), step(Anchor.REPLY_END, 3000, "thank-you")]
    caller, _ = call(script, [(3000, 4000), (5000, 9000)])
    assert starts(caller) == [0, 7000]


def test_the_rest_of_a_cut_reply_is_not_the_next_one() -> None:
    script = [
        step(Anchor.PICKUP, 0, "go-on"),
        step(Anchor.REPLY_START, 1000, "ask-parking"),
        step(Anchor.REPLY_START, 500, "ask-pool"),
    ]
    ended_ms = 4000 + length_ms("ask-parking")
    caller, _ = call(script, [(3000, ended_ms + 400), (ended_ms + 1200, ended_ms + 5000)])
    assert caller.lines[2].started_ms == pytest.approx(ended_ms + 1700, abs=FRAME_MS)


def test_a_pause_of_the_old_reply_at_the_end_of_his_line_makes_no_new_reply() -> None:
    script = [
        step(Anchor.PICKUP, 0, "go-on"),
        step(Anchor.REPLY_START, 1000, "ask-parking"),
        step(Anchor.REPLY_START, 0, "ask-pool"),
    ]
    ended_ms = 4000 + length_ms("ask-parking")
    old = [(3000, ended_ms - 100), (ended_ms + 100, ended_ms + 300)]
    caller, _ = call(script, [*old, (ended_ms + 1500, ended_ms + 5000)], items=[0, 0, 1])
    assert caller.lines[2].started_ms == pytest.approx(ended_ms + 1500, abs=FRAME_MS)


def test_a_reply_that_follows_the_old_one_without_a_pause_is_a_new_one() -> None:
    """A client that does not stop plays the answer right behind what was talked over."""
    script = [
        step(Anchor.PICKUP, 0, "go-on"),
        step(Anchor.REPLY_START, 1000, "ask-parking"),
        step(Anchor.REPLY_END, 800, "ask-pool"),
    ]
    ended_ms = 4000 + length_ms("ask-parking")
    caller, _ = call(script, [(3000, ended_ms + 2000), (ended_ms + 2000, ended_ms + 4000)])
    assert caller.lines[2].started_ms == pytest.approx(ended_ms + 4800, abs=FRAME_MS)


def test_a_murmur_over_the_agent_leaves_the_reply_as_it_is() -> None:
    script = [
        step(Anchor.PICKUP, 0, "go-on"),
        step(Anchor.REPLY_START, 800, "mm-hmm"),
        step(Anchor.REPLY_END, 1000, "thank-you"),
    ]
    caller, _ = call(script, [(3000, 8000)])
    assert starts(caller) == [0, 3800, 9000]
    assert caller.lines[1].overlapped_ms == pytest.approx(length_ms("mm-hmm"), abs=FRAME_MS)


def test_a_murmur_into_silence_is_a_turn_and_waits_for_a_reply() -> None:
    script = [
        step(Anchor.PICKUP, 0, "go-on"),
        step(Anchor.REPLY_END, 1000, "mm-hmm"),
        step(Anchor.REPLY_END, 1000, "thank-you"),
    ]
    caller, _ = call(script, [(3000, 5000), (8000, 9000)])
    assert starts(caller) == [0, 6000, 10_000]


def test_previous_end_counts_from_the_end_of_his_own_line() -> None:
    caller, _ = call([step(Anchor.PICKUP, 0, "go-on"), step(Anchor.PREVIOUS_END, 1000, "thank-you")])
    assert starts(caller)[1] == pytest.approx(length_ms("go-on") + 1000, abs=FRAME_MS)


@pytest.mark.parametrize("known_from_ms", [0, 3000, 3120])
def test_a_holding_line_is_the_start_of_the_reply_that_carries_the_call(known_from_ms: Ms) -> None:
    """The call may come to light before the reply's audio or after it; the time counts from the audio."""
    now_ms = 0

    def tool_of(item_id: ItemId) -> str | None:
        nonlocal now_ms
        now_ms += FRAME_MS
        return "look_up" if item_id == "item_1" and now_ms > known_from_ms - 3000 else None

    script = [step(Anchor.PICKUP, 0, "thank-you"), step(Anchor.HOLDING, 500, "ask-breakfast", "look_up")]
    caller, _ = call(script, [(1500, 2500), (3000, 9000)], tool_of=tool_of)
    assert starts(caller)[1] == 3500


def test_a_holding_line_is_remembered_while_the_next_reply_is_heard() -> None:
    script = [step(Anchor.PICKUP, 0, "thank-you"), step(Anchor.HOLDING, 5000, "ask-breakfast", "look_up")]
    tools = {"item_0": "look_up"}
    caller, _ = call(script, [(3000, 4200), (6000, 9000)], tool_of=tools.get)
    assert starts(caller) == [0, 8000]


def test_a_second_holding_line_is_not_taken_for_the_first() -> None:
    script = [
        step(Anchor.PICKUP, 0, "thank-you"),
        step(Anchor.HOLDING, 500, "ask-breakfast", "look_up"),
        step(Anchor.HOLDING, 500, "thank-you", "look_up"),
    ]
    caller, _ = call(script, [(3000, 4200), (10_000, 12_000)], tool_of=lambda item_id: "look_up")
    assert starts(caller) == [0, 3500, 10_500]


def test_a_faint_sound_is_no_reply() -> None:
    caller = ScriptedCaller([step(Anchor.REPLY_START, 0, "go-on")], SPEECH, RATE_HZ)
    for now_ms in range(0, 2000, FRAME_MS):
        caller.step(now_ms, FAINT, ItemId("item"))
    assert caller.unspoken == ("go-on",)


# --- the books ----------------------------------------------------------------------------------------------------


def test_overlap_is_counted_where_the_agent_is_audible_at_the_ear() -> None:
    script = [step(Anchor.PICKUP, 0, "go-on"), step(Anchor.REPLY_START, 1000, "ask-parking")]
    caller, _ = call(script, [(3000, 4700)])
    first, second = caller.lines
    assert (first.overlapped_ms, first.is_interruption) == (0, False)
    assert (second.overlapped_ms, second.is_interruption) == (700, True)
    assert (second.trigger, second.line_id) == ("reply.start + 1000 ms", "ask-parking")


def test_an_interruption_of_nobody_overlaps_nothing() -> None:
    script = [step(Anchor.PICKUP, 0, "go-on"), step(Anchor.REPLY_START, 4000, "ask-parking")]
    caller, _ = call(script, [(3000, 5000)])
    assert (caller.lines[1].started_ms, caller.lines[1].overlapped_ms) == (7000, 0)


def test_a_step_that_is_drawn_may_fall_into_silence_and_is_no_interruption() -> None:
    script = drawn(
        [step(Anchor.PICKUP, 0, "go-on"), Step(Trigger(Anchor.REPLY_START, 4000, is_anywhere=True), "ask-pool", 9)], 1
    )
    caller, _ = call(script, [(3000, 5000)])
    assert (caller.lines[1].overlapped_ms, caller.lines[1].is_interruption) == (0, False)


def test_c031_a_line_whose_trigger_never_comes_is_told() -> None:
    script = [step(Anchor.PICKUP, 0, "go-on"), step(Anchor.REPLY_END, 1000, "ask-pool"), step(Anchor.PICKUP, 0, None)]
    caller, _ = call(script)
    assert (len(caller.lines), caller.unspoken) == (1, ("ask-pool", "hang_up"))


def test_c031_all_lines_are_spoken_on_a_line_that_never_goes_quiet() -> None:
    script = [
        step(Anchor.PICKUP, 0, "go-on"),
        *[step(Anchor.REPLY_END, 800, line) for line in ("ask-pool", "ask-wifi")],
    ]
    caller, _ = call(script, [(3000, 4000), (12_000, 13_000)])
    assert (len(caller.lines), caller.unspoken) == (3, ())


def test_a_line_that_the_end_of_the_call_breaks_off_was_spoken_so_far() -> None:
    caller, _ = call([step(Anchor.PICKUP, 0, "ask-check-in")], until_ms=1000)
    assert caller.unspoken == ()
    assert [(line.started_ms, line.ended_ms) for line in caller.lines] == [(0, 1000)]


def test_hanging_up_is_a_step_like_any_other() -> None:
    script = [step(Anchor.PICKUP, 0, "thank-you"), step(Anchor.PREVIOUS_END, 1000, None)]
    caller, _ = call(script, until_ms=1000 + length_ms("thank-you"))
    assert not caller.hung_up
    caller, _ = call(script, until_ms=1100 + length_ms("thank-you"))
    assert caller.hung_up
    assert caller.unspoken == ()

"""A whole call that the agent ends: heard to its end, taken back, or ended by somebody else first."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest
from tests.runtime.calls import (
    ANYTHING,
    OPENING,
    PHONE,
    SPEAKER,
    Model,
    Taken,
    calls,
    delta,
    ended,
    reply,
    run,
    speech_started,
    speech_stopped,
    started,
    take,
)

import callwright as cw
from callwright.audio.formats import FRAME_MS, PCM
from callwright.ids import ItemId, Ms
from callwright.runtime.watch import SILENT_LINE_MS
from callwright.sim.caller import ScriptedCaller
from callwright.sim.line import LineSettings, SimulatedLine
from callwright.sim.server import MemoryConnector
from callwright.sim.vloop import run_virtual
from callwright.testing.scripted import Step, after, close

BOTH = pytest.mark.parametrize("settings", [PHONE, SPEAKER], ids=["phone", "speaker"])
ARGUMENTS = json.dumps({"reason": "the caller needs nothing more", "goodbye": "Goodbye."})
STANDS = cw.Ending("agent", "the caller needs nothing more")


def says_goodbye(ms: Ms, response_id: str = "r1", item_id: str = "g", call_id: str = "k1") -> tuple[Step, ...]:
    """The farewell in one burst, and the end of its response 436 ms later."""
    end_call = calls("end_call", call_id, response_id, ARGUMENTS)
    return (started(response_id), delta(ms, item_id, response_id), end_call, after(436), ended(response_id))


def bye(*steps: Step, settings: LineSettings = PHONE, hang_up_ms: Ms = 60_000) -> Taken:
    return take(*OPENING, *steps, settings=settings, hang_up_ms=hang_up_ms, ignoring=ANYTHING, is_whole=False)


def heard_ms(taken: Taken, item_id: str = "g") -> Ms:
    return sum(span.to_ms - span.from_ms for span in taken.line.ear if span.item_id == item_id)


@BOTH
@pytest.mark.parametrize("ms", [3_000, 15_000])
def test_c050_c051_the_goodbye_is_heard_whole_and_then_the_line_ends(settings: LineSettings, ms: Ms) -> None:
    taken = bye(*says_goodbye(ms), settings=settings)
    assert heard_ms(taken) == ms
    (at_ms,) = taken.did("HangUp")
    assert ms <= at_ms <= ms + 40
    assert (taken.result.ending, taken.result.anomalies) == (STANDS, ())
    assert json.loads(taken.model.outputs()["k1"]) == {"call": "over"}
    assert taken.model.closing == (1000, "")


@pytest.mark.parametrize("fixed_lag_ms", [0, 400])
@pytest.mark.parametrize("kind", [PHONE.kind, SPEAKER.kind])
def test_behind_a_lag_that_the_line_reports_the_last_word_is_heard(kind: object, fixed_lag_ms: Ms) -> None:
    taken = bye(*says_goodbye(2_000), settings=LineSettings(kind, fixed_lag_ms=fixed_lag_ms))  # type: ignore[arg-type]
    assert heard_ms(taken) == 2_000


def test_c050_the_line_stays_up_for_a_carrier_that_holds_the_goodbye_back() -> None:
    taken = bye(*says_goodbye(3_000), settings=LineSettings(PHONE.kind, hidden_lag_ms=200))
    (at_ms,) = taken.did("HangUp")
    assert heard_ms(taken) == 3_000
    assert 3_180 <= at_ms <= 3_700


def test_c050_without_any_mark_the_call_ends_at_the_cap_and_says_so() -> None:
    taken = bye(*says_goodbye(3_000), settings=LineSettings(PHONE.kind, lose_marks=tuple(range(1, 100))))
    (anomaly,) = taken.result.anomalies
    assert "unconfirmed" in anomaly
    assert taken.did("HangUp") == [8_000]
    assert taken.result.ending == STANDS


@BOTH
def test_c053_a_goodbye_that_is_talked_over_is_taken_back_and_the_next_one_ends_the_call(
    settings: LineSettings,
) -> None:
    taken = bye(
        started(), delta(3_000, "g"), calls("end_call", arguments=ARGUMENTS), after(1_000),
        speech_started(), ended("r1", "cancelled"), after(800), speech_stopped(),
        *reply("From seven to ten.", 1_000, response_id="r2"), after(2_000),
        *says_goodbye(2_000, "r3", "g2", "k2"),
        settings=settings,
    )  # fmt: skip
    told = {call: json.loads(output)["call"] for call, output in taken.model.outputs().items()}
    assert told == {"k1": "still open", "k2": "over"}
    assert len(taken.did("HangUp")) == 1
    assert heard_ms(taken) <= 1_040
    assert heard_ms(taken, "g2") == 2_000
    assert taken.model.of("response.create") == [], "the server answers the caller by itself"
    assert taken.result.ending == STANDS


@BOTH
def test_a_goodbye_that_a_result_took_back_is_said_again_when_the_result_was_told(settings: LineSettings) -> None:
    """``raises_later`` brings its result after two seconds, in the goodbye."""
    taken = bye(
        started("r0"), calls("raises_later", "k0", "r0"), ended("r0"), after(300),
        *says_goodbye(1_000), after(2_000),
        *reply("That did not work.", 1_000, response_id="r2"), after(2_500),
        *says_goodbye(1_000, "r3", "g2", "k2"),
        settings=settings,
    )  # fmt: skip
    told = {call: json.loads(output).get("call") for call, output in taken.model.outputs().items()}
    assert told == {"k0": None, "k1": "still open", "k2": "over"}
    assert len(taken.model.of("response.create")) == 2, "one for the result, one for the goodbye"
    assert "Say goodbye" in json.dumps(taken.model.of("conversation.item.create")[-2])
    assert (heard_ms(taken, "g2"), len(taken.did("HangUp")), taken.result.ending) == (1_000, 1, STANDS)


class Loud:
    """A caller who makes a noise of -20 dBFS in these spans."""

    hung_up = False

    def __init__(self, *spans: tuple[Ms, Ms]) -> None:
        self._spans = spans
        self._noise = np.where(np.arange(160) % 2, 3_277, -3_277).astype(np.int16)

    def step(self, now_ms: Ms, ear: PCM, item_id: ItemId | None) -> PCM:
        is_loud = any(start_ms <= now_ms < end_ms for start_ms, end_ms in self._spans)
        return self._noise if is_loud else np.zeros(160, np.int16)


@pytest.mark.parametrize(
    ("spans", "at_ms"),
    [
        ([], 3_000),
        ([(1_000, 1_500)], 3_000),
        ([(1_000, 2_900)], 3_300),
        ([(2_900, 9_000)], 4_000),
        ([(3_100, 9_000)], 3_000),
    ],
    ids=["quiet", "earlier", "just before", "at the end", "too late"],
)
def test_a_caller_who_is_loud_at_the_end_is_waited_for(spans: list[tuple[Ms, Ms]], at_ms: Ms) -> None:
    taken = take(
        *OPENING, *says_goodbye(3_000),
        ignoring=ANYTHING, is_whole=False, make_line=lambda settings, _caller: SimulatedLine(settings, Loud(*spans)),
    )  # fmt: skip
    (hung_up_ms,) = taken.did("HangUp")
    assert at_ms <= hung_up_ms <= at_ms + 40


def test_levels_are_measured_in_a_goodbye_only() -> None:
    taken = take(
        *OPENING, after(1_000), *says_goodbye(3_000),
        ignoring=ANYTHING, is_whole=False,
        make_line=lambda settings, _caller: SimulatedLine(settings, Loud((100, 600), (2_000, 2_200))),
    )  # fmt: skip
    assert [row[3]["is_loud"] for row in taken.rows if row[2] == "CallerLoud"] == [True, False]


def test_c059_a_caller_who_hangs_up_just_before_has_ended_the_call() -> None:
    taken = bye(*says_goodbye(3_000), hang_up_ms=2_940)
    assert (taken.result.ending, taken.result.anomalies) == (cw.Ending("caller", "hung up"), ())
    assert taken.did("HangUp") == []


def test_a_model_that_closes_after_its_response_does_not_cut_the_farewell() -> None:
    taken = bye(*says_goodbye(3_000), close(1006))
    assert heard_ms(taken) == 3_000
    assert taken.result.ending == STANDS
    assert taken.result.connected_ms == 436


def test_no_frame_is_sent_once_the_call_is_over() -> None:
    """A carrier may take its time to end the line, and sends on meanwhile."""

    class Lingering(SimulatedLine):
        async def hang_up(self) -> None:
            await asyncio.sleep(1)
            await super().hang_up()

    taken = take(*OPENING, *says_goodbye(1_000), ignoring=ANYTHING, is_whole=False, make_line=Lingering)
    (at_ms,) = taken.did("HangUp")
    assert max(taken.model.appends) <= at_ms
    assert taken.line.recording.caller.size > (at_ms + 900) * 8


# --- a line that brings nothing


class Zombie(SimulatedLine):
    """Stops to send frames after ``frames``, without a word."""

    frames = 50

    def _hear_caller(self, started_ms: Ms, at_ear: object) -> None:
        if started_ms < self.frames * FRAME_MS:
            super()._hear_caller(started_ms, at_ear)  # type: ignore[arg-type]


@pytest.mark.parametrize("frames", [0, 50])
def test_c058_a_line_without_frames_is_ended_after_30_s(frames: int) -> None:
    """Neither a stop nor a close tells that the other side has left; the place at the model is free again."""
    line = Zombie(PHONE, ScriptedCaller((), {}, 8_000))
    line.frames = frames
    model = Model(*OPENING, ignoring=ANYTHING)

    async def both() -> tuple[cw.CallResult, Ms]:
        result = await run(line, MemoryConnector(lambda: model))
        return result, round(asyncio.get_running_loop().time() * 1000)

    result, at_ms = run_virtual(both())
    assert result.ending == cw.Ending("fault", "no audio from the line for 30 s")
    assert SILENT_LINE_MS <= at_ms - frames * FRAME_MS <= SILENT_LINE_MS + 5_000
    assert model.closing == (1000, "")


def test_c058_a_caller_who_says_nothing_for_minutes_is_not_a_dead_line() -> None:
    assert bye(hang_up_ms=120_000).result.ending == cw.Ending("caller", "hung up")


# --- what is held


def test_c046_the_hold_is_a_setting_and_a_loss_is_named() -> None:
    steps = (OPENING[0], OPENING[1], after(2_600), OPENING[2])
    kept, cut = (take(*steps, ignoring=ANYTHING, hold_ms=hold_ms).result for hold_ms in (5_000, 2_000))
    assert (kept.lost_ms, kept.held_sent_ms, kept.anomalies) == (0, 2_600, ())
    assert (cut.lost_ms, cut.held_sent_ms) == (600, 2_000)
    assert ["600 ms" in anomaly for anomaly in cut.anomalies] == [True]


@pytest.mark.parametrize("hold_ms", [5_000, 2_000])
def test_a_caller_whose_first_words_were_lost_is_asked_once_nobody_has_spoken(hold_ms: Ms) -> None:
    taken = take(OPENING[0], OPENING[1], after(2_600), OPENING[2], ignoring=ANYTHING, hold_ms=hold_ms, hang_up_ms=7_000)
    times = taken.model.times("response.create")
    assert times == ([] if hold_ms == 5_000 else [4_600])


def test_a_negative_hold_is_refused_before_the_line_is_opened() -> None:
    with pytest.raises(cw.UsageError, match="hold_ms"):
        take(*OPENING, hold_ms=-20)

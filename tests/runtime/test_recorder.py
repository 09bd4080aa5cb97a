"""A recording holds both sides as they were heard, when they were heard, and of what may be kept alone."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.runtime.calls import (
    ANYTHING,
    OPENING,
    PHONE,
    SPEAKER,
    Taken,
    ended,
    humming,
    speech_started,
    started,
    written,
)
from tests.runtime.calls import take as take_call
from tests.runtime.test_kept import CONSENTED, NOTICE, PersonsLine, agent, before_and_after, reply, turn
from tests.runtime.test_kept import take as take_of
from tests.runtime.test_keys import CarriersLine, press, pressing
from tests.runtime.test_tape import files_of_at_most

import callwright as cw
from callwright.audio.dtmf import KeyDetector
from callwright.audio.formats import PCM
from callwright.audio.g711 import pcmu_decode, pcmu_encode
from callwright.core.ports import PlayedReports
from callwright.ids import Ms
from callwright.runtime.recorder import Recorder, recorder_of
from callwright.sim.caller import ScriptedCaller
from callwright.sim.line import LineKind, LineSettings, SimulatedLine
from callwright.sim.vloop import run_virtual
from callwright.testing.lines import check_line
from callwright.testing.scripted import Emit, after, emit
from callwright.testing.scripted import Step as ModelStep
from callwright.wire import server

LINES = {
    "phone": PHONE,
    "phone-hidden-lag": LineSettings(LineKind.PHONE, hidden_lag_ms=700),
    "phone-told-lag": LineSettings(LineKind.PHONE, fixed_lag_ms=100),
    "phone-drops-marks": LineSettings(LineKind.PHONE, clear_returns_marks=False),
    "speaker": SPEAKER,
    "speaker-told-lag": LineSettings(LineKind.SPEAKER, fixed_lag_ms=100),
}
EVERY = pytest.mark.parametrize("settings", LINES.values(), ids=LINES)


def voice(ms: Ms, item_id: str = "a", response_id: str = "r1") -> Emit:
    """Reply audio of which no two parts are the same: a rising tone."""
    time = np.arange(ms * 24) / 24_000
    audio = np.rint(8_000 * np.sin(2 * np.pi * (300 + 400 * time) * time + 1)).astype("<i2").tobytes()
    return emit(server.ResponseOutputAudioDelta(response_id=response_id, item_id=item_id, delta=audio))


def says(ms: Ms, item_id: str, response_id: str) -> tuple[ModelStep, ...]:
    return (
        started(response_id),
        voice(ms, item_id, response_id),
        written("Yes.", item_id, response_id),
        after(ms),
        ended(response_id),
    )


THREE = (*OPENING, *says(700, "a", "r1"), after(500), *says(413, "b", "r2"), *says(300, "c", "r3"))
"""Three replies; no pause between the last two, and a length that fills no frame."""


def sides(path: Path) -> tuple[int, PCM, PCM]:
    """Rate, left and right."""
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (2, 2)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)
        return file.getframerate(), samples[:, 0], samples[:, 1]


def recorded(directory: Path, *steps: ModelStep, **options: Any) -> tuple[Taken, PCM, PCM]:
    taken = take_call(*steps, record=directory / "call.wav", ignoring=ANYTHING, **options)
    rate_hz, far, near = sides(directory / "call.wav")
    assert rate_hz == taken.line.recording.rate_hz
    assert len(far) == len(taken.line.recording.caller)
    return taken, far, near


@EVERY
def test_the_right_side_is_what_reached_the_ear_to_the_sample(settings: LineSettings, tmp_path: Path) -> None:
    """Through pulled reports and through marks, behind a lag that is told and one that is not."""
    taken, _, near = recorded(tmp_path, *THREE, settings=settings)
    assert near.any()
    np.testing.assert_array_equal(near, taken.line.recording.agent)
    assert not taken.result.anomalies


@EVERY
@pytest.mark.parametrize("at_ms", [985, 1_013])
def test_what_was_cut_before_it_was_heard_is_not_in_it(settings: LineSettings, at_ms: Ms, tmp_path: Path) -> None:
    """Where the line has marks, the last frame may be missing in part: the client counts to the clear, not beyond."""
    taken, _, near = recorded(
        tmp_path, *OPENING, started(), voice(3_000), written("From three."), after(at_ms), speech_started(),
        settings=settings,
    )  # fmt: skip
    book = taken.line.recording.agent
    per_ms = taken.line.output_format.rate_hz // 1000
    heard, kept = (np.flatnonzero(side)[-1] + 1 for side in (book, near))
    slack_ms = 20 if taken.line.reports is PlayedReports.MARKS else 0
    assert heard - slack_ms * per_ms <= kept <= heard
    np.testing.assert_array_equal(near[:kept], book[:kept])


def test_lost_marks_move_what_is_heard_by_less_than_a_frame(tmp_path: Path) -> None:
    settings = LineSettings(LineKind.PHONE, lose_marks=(2, 3, 6))
    taken, _, near = recorded(tmp_path, *THREE, settings=settings)
    frame_bounds = [np.flatnonzero(side)[[0, -1]] for side in (taken.line.recording.agent, near)]
    assert np.abs(frame_bounds[0] - frame_bounds[1]).max() <= 160
    assert np.count_nonzero(near) == pytest.approx(np.count_nonzero(taken.line.recording.agent), abs=160)


@pytest.mark.parametrize("settings", [PHONE, SPEAKER], ids=["phone", "speaker"])
def test_the_left_side_is_the_far_end_as_it_was_received(settings: LineSettings, tmp_path: Path) -> None:
    taken, far, _ = recorded(tmp_path, *THREE, settings=settings, make_line=humming)
    said = taken.line.recording.caller
    received = pcmu_decode(pcmu_encode(said)) if settings is PHONE else said
    np.testing.assert_array_equal(far[:-160], received[:-160])  # the end, a frame that only began, is silent


def test_a_recorded_call_takes_the_same_course(tmp_path: Path) -> None:
    trace = take_call(*THREE, ignoring=ANYTHING).result.trace
    assert recorded(tmp_path, *THREE)[0].result.trace == trace


@EVERY
def test_keys_that_are_pressed_as_tones_are_on_the_agents_side(settings: LineSettings, tmp_path: Path) -> None:
    taken = press(*pressing("0042#"), record=tmp_path / "call.wav", settings=settings)
    rate_hz, _, near = sides(tmp_path / "call.wav")
    assert "".join(key.key for key in KeyDetector(rate_hz).take(near)) == "0042#"
    np.testing.assert_array_equal(near, taken.line.recording.agent)


def test_a_line_that_presses_keys_its_own_way_still_does(tmp_path: Path) -> None:
    taken = press(*pressing("27"), record=tmp_path / "call.wav", make_line=CarriersLine)
    assert isinstance(taken.line, CarriersLine)
    assert taken.line.way == "27"
    assert not sides(tmp_path / "call.wav")[2].any()


def test_a_far_end_that_sends_nothing_is_silent_for_as_long(tmp_path: Path) -> None:
    class Pausing(SimulatedLine):
        def _hear_caller(self, started_ms: Ms, at_ear: Any) -> None:
            if not 1_000 <= started_ms < 1_800:
                super()._hear_caller(started_ms, at_ear)

    _, far, _ = recorded(tmp_path, *THREE, make_line=lambda settings, caller: humming(settings, caller, Pausing))
    assert not far[8_200:14_200].any()
    assert far[14_600:].any()


@pytest.mark.parametrize("settings", [PHONE, SPEAKER], ids=["phone", "speaker"])
def test_a_line_that_is_recorded_keeps_every_rule_of_a_line(settings: LineSettings, tmp_path: Path) -> None:
    def recorded_line() -> Recorder:
        silent = ScriptedCaller((), {}, settings.stream_format.rate_hz)
        return recorder_of(SimulatedLine(settings, silent), tmp_path / "call.wav")

    run_virtual(check_line(recorded_line))


# --- what may be kept


def kept_call(directory: Path, answer: str, **declared: Any) -> tuple[Taken, Path]:
    path = directory / "call.wav"
    return take_of(agent(**declared), *before_and_after(answer), record=path), path


def test_of_a_call_with_a_person_nothing_is_recorded_where_nothing_is_declared(tmp_path: Path) -> None:
    taken, path = kept_call(tmp_path, "Yes, sure.")
    assert not path.exists()
    assert "there is no recording: nothing of this call may be kept" in taken.result.anomalies


def test_with_consent_it_begins_when_the_caller_knows(tmp_path: Path) -> None:
    taken, path = kept_call(tmp_path, "Yes, sure.", **CONSENTED)
    (allowed_ms,) = taken.did("KeepWords")
    _, far, near = sides(path)
    begins_ms = allowed_ms - allowed_ms % 20
    book = taken.line.recording
    assert len(far) == len(book.caller) - begins_ms * 8
    np.testing.assert_array_equal(near[1_600:], book.agent[begins_ms * 8 + 1_600 :])


def test_an_objection_deletes_it(tmp_path: Path) -> None:
    taken, _ = kept_call(tmp_path, "No, I would rather not.", **CONSENTED)
    assert taken.did("KeepWords")
    assert taken.did("DropWords")
    assert list(tmp_path.iterdir()) == []
    assert not any("recording" in each for each in taken.result.anomalies)


def test_an_objection_deletes_what_a_full_disk_has_left(tmp_path: Path) -> None:
    """The simulated line's own files, of one side each, stay below the limit."""
    steps = (*turn("Hello.", "u0"), *reply(NOTICE, 5_000, "a", "r1"), after(24_000))
    desk = agent(**CONSENTED)
    with files_of_at_most(600_000):
        taken = take_of(desk, *steps, *turn("No, I'd rather not.", "u1"), record=tmp_path / "call.wav", ms=34_000)
    assert taken.did("DropWords")
    assert "the recording ends before the call: File too large" in taken.result.anomalies
    assert list(tmp_path.iterdir()) == []


def test_where_nobody_has_to_be_asked_it_is_whole(tmp_path: Path) -> None:
    taken, path = kept_call(tmp_path, "Yes.", recording="not_required")
    np.testing.assert_array_equal(sides(path)[2], taken.line.recording.agent)
    assert isinstance(taken.line, PersonsLine)


# --- where it cannot be


def test_a_recording_replaces_no_file_and_makes_no_directory(tmp_path: Path) -> None:
    (tmp_path / "old.wav").write_bytes(b"kept")
    for path, named in ((tmp_path / "old.wav", "exists"), (tmp_path / "none" / "call.wav", "no directory")):
        with pytest.raises(cw.UsageError, match=named):
            take_call(*THREE, record=path)
    assert (tmp_path / "old.wav").read_bytes() == b"kept"


def test_a_disk_that_fails_ends_the_recording_and_not_the_call(tmp_path: Path) -> None:
    class FileLost(SimulatedLine):
        async def open(self, sink: Any) -> None:
            directory.rmdir()
            await super().open(sink)

    directory = tmp_path / "gone"
    directory.mkdir()
    taken = take_call(*THREE, record=directory / "call.wav", ignoring=ANYTHING, make_line=FileLost)
    assert taken.result.anomalies == ("the recording ends before the call: No such file or directory",)
    assert [turn.heard for turn in taken.result.turns] == ["Yes."] * 3

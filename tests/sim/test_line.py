"""The simulated line: what is at the ear when, what comes back, and what its books say."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import callwright
from callwright.audio.formats import PCM16_16K, PCM16_24K, PCMA_8K, PCMU_8K
from callwright.audio.g711 import pcmu_decode, pcmu_encode
from callwright.errors import AudioFormatError, LineFailed, UsageError
from callwright.ids import ItemId, MarkId, Ms
from callwright.sim.caller import Anchor, ScriptedCaller, Step, Trigger
from callwright.sim.line import LineKind, LineSettings, SimulatedLine
from callwright.sim.record import EarSpan
from callwright.sim.room import Microphone, Noise, RoomSettings
from callwright.sim.speech import Speech
from callwright.sim.vloop import run_virtual

SPEECH = Speech.load(Path(callwright.__file__).parent / "apps" / "hotel" / "speech")
PHONE = LineSettings(LineKind.PHONE)
SPEAKER = LineSettings(LineKind.SPEAKER)
A, B = ItemId("a"), ItemId("b")


class Sink:
    """Keeps what a line reports, with the line's time."""

    def __init__(self, line: SimulatedLine) -> None:
        self.line = line
        self.frames: list[bytes] = []
        self.played: list[tuple[Ms, ItemId, int, Ms]] = []
        self.marks: list[tuple[Ms, MarkId]] = []
        self.closed: list[tuple[Ms, str, str]] = []

    def on_frame(self, frame: bytes) -> None:
        self.frames.append(frame)

    def on_played(self, item_id: ItemId, generation: int, played_ms: Ms) -> None:
        self.played.append((self.line.now_ms, item_id, generation, played_ms))

    def on_mark(self, mark_id: MarkId) -> None:
        self.marks.append((self.line.now_ms, mark_id))

    def on_closed(self, by: str, reason: str) -> None:
        self.closed.append((self.line.now_ms, by, reason))


Act = Callable[[SimulatedLine], Awaitable[None]]


def call(
    settings: LineSettings, act: Act, until_ms: Ms = 6000, script: tuple[Step, ...] = ()
) -> tuple[SimulatedLine, Sink]:
    """Open a line, act on it, let it run until this instant of its clock, and hang up."""

    async def main() -> tuple[SimulatedLine, Sink]:
        line = SimulatedLine(settings, ScriptedCaller(script, SPEECH, settings.stream_format.rate_hz))
        sink = Sink(line)
        await line.open(sink)
        await act(line)
        await at(line, until_ms)
        await line.hang_up()
        return line, sink

    return run_virtual(main())


async def at(line: SimulatedLine, ms: Ms) -> None:
    """Wait for an instant of the line's clock."""
    await asyncio.sleep((ms - line.now_ms) / 1000)


def noise(settings: LineSettings, ms: Ms, seed: int = 1) -> bytes:
    """Audio of which every sample differs from silence."""
    samples = np.random.default_rng(seed).integers(1000, 8000, ms * settings.stream_format.rate_hz // 1000)
    pcm = samples.astype(np.int16)
    return pcmu_encode(pcm) if settings.stream_format == PCMU_8K else pcm.tobytes()


def span(item_id: ItemId, from_ms: Ms, to_ms: Ms, at_ms: Ms) -> EarSpan:
    return EarSpan(item_id, from_ms, to_ms, at_ms)


async def nothing(line: SimulatedLine) -> None:
    """Do nothing."""


# --- formats ------------------------------------------------------------------------------------------------------


def test_a_phone_speaks_pcmu_and_a_speaker_linear_samples_at_24_khz() -> None:
    assert (PHONE.stream_format, SPEAKER.stream_format) == (PCMU_8K, PCM16_24K)


@pytest.mark.parametrize("stream_format", [PCM16_16K, PCMA_8K])
def test_every_frame_is_20_ms_in_the_format_of_the_line_and_silence_is_silent_in_it(stream_format) -> None:
    _, sink = call(LineSettings(LineKind.PHONE, stream_format), nothing, 1000)
    assert sink.frames == [stream_format.silence(20)] * 50


def test_a_part_of_a_sample_is_refused() -> None:
    async def act(line: SimulatedLine) -> None:
        with pytest.raises(AudioFormatError, match="whole samples of 2 bytes"):
            line.play(A, 0, b"\0")

    call(SPEAKER, act)


@pytest.mark.parametrize("lag", [{"fixed_lag_ms": 30}, {"hidden_lag_ms": -1}, {"fixed_lag_ms": -20}])
def test_a_lag_that_cannot_be_is_refused(lag: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        LineSettings(LineKind.PHONE, **lag)


# --- at the ear ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(LineKind))
@pytest.mark.parametrize(("hidden_ms", "fixed_ms"), [(0, 0), (1500, 0), (0, 300), (1500, 300)])
def test_audio_is_at_the_ear_after_the_lags_and_as_it_was_handed_over(
    kind: LineKind, hidden_ms: Ms, fixed_ms: Ms
) -> None:
    settings = LineSettings(kind, hidden_lag_ms=hidden_ms, fixed_lag_ms=fixed_ms)
    audio = noise(settings, 1000)

    async def act(line: SimulatedLine) -> None:
        await at(line, 190)
        line.play(A, 0, audio[: len(audio) // 2])
        line.play(A, 0, audio[len(audio) // 2 :])

    line, _ = call(settings, act)
    start_ms = -(-(190 + hidden_ms) // 20) * 20 + fixed_ms
    assert line.ear == (span(A, 0, 1000, start_ms),)
    heard = line.recording.agent
    rate = line.recording.rate_hz // 1000
    expected = pcmu_decode(audio) if kind is LineKind.PHONE else np.frombuffer(audio, np.int16)
    assert np.array_equal(heard[start_ms * rate : (start_ms + 1000) * rate], expected)
    assert np.count_nonzero(heard) == len(expected)


def test_items_follow_each_other_without_a_gap_within_a_frame() -> None:
    async def act(line: SimulatedLine) -> None:
        line.play(A, 0, noise(PHONE, 30))
        line.play(B, 0, noise(PHONE, 50))

    line, _ = call(PHONE, act)
    assert line.ear == (span(A, 0, 30, 0), span(B, 0, 50, 30))


def test_an_end_is_padded_only_when_nothing_follows() -> None:
    async def act(line: SimulatedLine) -> None:
        line.play(A, 0, noise(PHONE, 30))
        await at(line, 50)
        line.play(A, 0, noise(PHONE, 50))

    line, _ = call(PHONE, act)
    assert line.ear == (span(A, 0, 30, 0), span(A, 30, 80, 60))


def test_a_clear_drops_what_was_not_taken_and_no_more() -> None:
    async def act(line: SimulatedLine) -> None:
        line.play(A, 0, noise(PHONE, 3000))
        await at(line, 1010)
        line.clear()
        line.play(B, 1, noise(PHONE, 100))

    line, _ = call(PHONE, act)
    assert line.ear == (span(A, 0, 1020, 0), span(B, 0, 100, 1020))


def test_a_clear_empties_the_hidden_lag_but_not_the_fixed_pipe() -> None:
    async def act(line: SimulatedLine) -> None:
        line.play(A, 0, noise(PHONE, 3000))
        await at(line, 1990)
        line.clear()

    hidden, _ = call(LineSettings(LineKind.PHONE, hidden_lag_ms=1500), act)
    assert hidden.ear == (span(A, 0, 500, 1500),)
    fixed, _ = call(LineSettings(LineKind.PHONE, fixed_lag_ms=300), act)
    assert fixed.ear == (span(A, 0, 2000, 300),)
    assert (hidden.latency_ms, fixed.latency_ms) == (0, 300)


def test_the_position_in_an_item_counts_what_was_dropped_of_it() -> None:
    async def act(line: SimulatedLine) -> None:
        line.play(A, 0, noise(PHONE, 1000))
        await at(line, 190)
        line.clear()
        line.play(A, 1, noise(PHONE, 100))

    line, _ = call(PHONE, act)
    assert line.ear == (span(A, 0, 200, 0), span(A, 1000, 1100, 200))


@given(
    pieces=st.lists(st.tuples(st.integers(1, 900), st.integers(0, 400), st.booleans()), min_size=1, max_size=8),
    hidden_ms=st.sampled_from([0, 7, 400]),
    fixed_ms=st.sampled_from([0, 60]),
)
def test_what_is_heard_is_a_part_of_what_was_handed_over_in_order(
    pieces: list[tuple[Ms, Ms, bool]], hidden_ms: Ms, fixed_ms: Ms
) -> None:
    """In any rhythm of playing and clearing the ear's books never overlap, go back or hold more than was handed."""
    handed = {ItemId(f"item_{n}"): length for n, (length, _, _) in enumerate(pieces)}
    settings = LineSettings(LineKind.PHONE, hidden_lag_ms=hidden_ms, fixed_lag_ms=fixed_ms)

    async def act(line: SimulatedLine) -> None:
        for n, (length, wait, clears) in enumerate(pieces):
            line.play(ItemId(f"item_{n}"), n, noise(settings, length))
            await at(line, line.now_ms + wait)
            if clears:
                line.clear()

    line, _ = call(settings, act, until_ms=16_000)
    for one, other in pairwise(line.ear):
        assert one.at_ms + one.to_ms - one.from_ms <= other.at_ms
        assert list(handed).index(one.item_id) <= list(handed).index(other.item_id)
    for heard in line.ear:
        assert 0 <= heard.from_ms < heard.to_ms <= handed[heard.item_id]
    if not any(clears for _, _, clears in pieces):
        assert sum(s.to_ms - s.from_ms for s in line.ear) == sum(handed.values())


# --- reports ------------------------------------------------------------------------------------------------------


def test_a_speaker_reports_each_frame_as_it_is_taken() -> None:
    async def act(line: SimulatedLine) -> None:
        line.play(A, 3, noise(SPEAKER, 50))

    _, sink = call(LineSettings(LineKind.SPEAKER, fixed_lag_ms=300), act)
    assert sink.played == [(0, A, 3, 20), (20, A, 3, 40), (40, A, 3, 50)]


def test_a_phone_reports_nothing_but_marks() -> None:
    async def act(line: SimulatedLine) -> None:
        for n in range(3):
            line.play(A, 0, noise(PHONE, 200))
            line.mark(MarkId(f"m{n}"))

    _, sink = call(PHONE, act)
    assert sink.played == []
    assert sink.marks == [(200, "m0"), (400, "m1"), (600, "m2")]


def test_a_mark_comes_back_at_its_instant_also_within_a_frame() -> None:
    async def act(line: SimulatedLine) -> None:
        for length, name in ((197, "a"), (1, "b"), (2, "c"), (50, "d")):
            line.play(A, 0, noise(PHONE, length))
            line.mark(MarkId(name))

    _, sink = call(PHONE, act)
    assert sink.marks == [(197, "a"), (198, "b"), (200, "c"), (250, "d")]


def test_c019_marks_follow_the_ear_and_not_the_handing_over() -> None:
    """6 s are handed over within 1 s on a bridge that plays 400 ms behind: at 2.5 s, 2.1 s have been heard."""

    async def act(line: SimulatedLine) -> None:
        for n in range(60):
            await at(line, n * 1000 // 60)
            line.play(A, 0, noise(PHONE, 100))
            line.mark(MarkId(str(n)))
        await at(line, 2490)
        line.clear()

    line, sink = call(LineSettings(LineKind.PHONE, hidden_lag_ms=400, clear_returns_marks=False), act)
    assert line.ear == (span(A, 0, 2100, 400),)
    assert [mark for ms, mark in sink.marks if ms < 2490] == [str(n) for n in range(20)]


def test_c025_a_clear_returns_marks_whose_audio_nobody_heard() -> None:
    async def act(line: SimulatedLine) -> None:
        line.play(A, 0, noise(PHONE, 3000))
        line.mark(MarkId("end"))
        await at(line, 410)
        line.clear()

    line, sink = call(PHONE, act)
    assert sink.marks == [(410, "end")]
    assert line.ear == (span(A, 0, 420, 0),)


def test_c025_a_carrier_that_drops_marks_at_a_clear_returns_none() -> None:
    async def act(line: SimulatedLine) -> None:
        line.play(A, 0, noise(PHONE, 3000))
        line.mark(MarkId("end"))
        await at(line, 410)
        line.clear()

    _, sink = call(LineSettings(LineKind.PHONE, clear_returns_marks=False), act)
    assert sink.marks == []


def test_c001_a_lost_mark_never_comes_back_though_its_audio_was_heard() -> None:
    async def act(line: SimulatedLine) -> None:
        for n in (1, 2, 3):
            line.play(A, 0, noise(PHONE, 200))
            line.mark(MarkId(f"m{n}"))

    line, sink = call(LineSettings(LineKind.PHONE, lose_marks=(2,)), act)
    assert [mark for _, mark in sink.marks] == ["m1", "m3"]
    assert line.ear == (span(A, 0, 600, 0),)


def test_no_report_comes_within_the_call_that_caused_it() -> None:
    """The client is never entered again while it is still handing over or clearing."""

    async def act(line: SimulatedLine) -> None:
        sink = line._sink
        assert isinstance(sink, Sink)
        line.mark(MarkId("idle"))
        line.play(A, 0, noise(PHONE, 100))
        line.mark(MarkId("cleared"))
        line.clear()
        assert sink.marks == []

    _, sink = call(PHONE, act)
    assert sink.marks == [(0, "idle"), (0, "cleared")]


def test_a_speaker_has_no_marks() -> None:
    async def act(line: SimulatedLine) -> None:
        with pytest.raises(LineFailed, match="no marks"):
            line.mark(MarkId("m"))

    call(SPEAKER, act)


# --- the caller and the recording ---------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [PHONE, SPEAKER])
def test_the_caller_is_sent_and_recorded_as_he_speaks(settings: LineSettings) -> None:
    script = (Step(Trigger(Anchor.PICKUP, 400), "go-on"),)
    line, sink = call(settings, nothing, 3000, script)
    sent = b"".join(sink.frames)
    said = line.recording.caller
    if settings is PHONE:
        assert sent == pcmu_encode(said[: len(sent)])
    else:
        assert sent == said.tobytes()[: len(sent)]
    rate = line.recording.rate_hz // 1000
    assert not said[: 400 * rate].any()
    assert np.abs(said[400 * rate : 1000 * rate]).max() > 3000
    assert len(said) == len(line.recording.agent)


def test_what_a_room_makes_of_the_caller_is_recorded_beside_what_he_said() -> None:
    room = RoomSettings(noise=Noise("street", -30))
    caller = ScriptedCaller((Step(Trigger(Anchor.PICKUP, 400), "go-on"),), SPEECH, 8000)
    line = SimulatedLine(PHONE, caller, Microphone(room, 8000, Random(1), cancels=False))
    sink = Sink(line)

    async def main() -> None:
        await line.open(sink)
        await at(line, 3000)
        await line.hang_up()

    run_virtual(main())
    recording, sent = line.recording, b"".join(sink.frames)
    assert sent == pcmu_encode(recording.sent[: len(sent)])
    assert len(recording.sent) == len(recording.caller)
    assert not recording.caller[:3200].any()
    assert recording.sent[:3200].any()


def test_the_caller_hears_after_the_fixed_lag_and_interrupts_what_he_hears() -> None:
    caller = ScriptedCaller((Step(Trigger(Anchor.REPLY_START, 500), "go-on"),), SPEECH, 8000)

    async def main() -> None:
        line = SimulatedLine(LineSettings(LineKind.PHONE, fixed_lag_ms=300), caller)
        await line.open(Sink(line))
        line.play(A, 0, noise(PHONE, 1000))
        await at(line, 4000)

    run_virtual(main())
    (said,) = caller.lines
    assert (said.started_ms, said.overlapped_ms) == (800, 500)


def test_the_caller_hangs_up_once_and_nothing_comes_after() -> None:
    async def act(line: SimulatedLine) -> None:
        line.play(A, 0, noise(PHONE, 3000))
        line.mark(MarkId("end"))
        await at(line, 2000)
        line.play(A, 0, noise(PHONE, 3000))
        line.clear()

    line, sink = call(PHONE, act, script=(Step(Trigger(Anchor.PICKUP, 1000), None),))
    assert sink.closed == [(1020, "caller", "hung up")]
    assert len(sink.frames) == 51
    assert sink.marks == []
    assert line.ear == (span(A, 0, 1020, 0),)


def test_hanging_up_ends_the_line_at_that_instant_and_only_once() -> None:
    async def act(line: SimulatedLine) -> None:
        line.play(A, 0, noise(PHONE, 3000))
        await at(line, 1010)
        await line.hang_up()
        await line.hang_up()

    line, sink = call(PHONE, act)
    assert sink.closed == [(1010, "agent", "hung up")]
    assert line.ear == (span(A, 0, 1020, 0),)
    assert len(line.recording.agent) == len(line.recording.caller) == 1020 * 8


def test_what_is_in_the_fixed_pipe_when_the_line_ends_is_not_heard() -> None:
    async def act(line: SimulatedLine) -> None:
        line.play(A, 0, noise(PHONE, 1000))
        await at(line, 990)
        await line.hang_up()

    line, _ = call(LineSettings(LineKind.PHONE, fixed_lag_ms=300), act)
    assert line.ear == (span(A, 0, 700, 300),)


def test_a_line_breaks_where_the_settings_say() -> None:
    _, sink = call(LineSettings(LineKind.PHONE, close_at_ms=500), nothing)
    assert sink.closed == [(500, "fault", "the line broke")]


def test_a_line_is_opened_once() -> None:
    async def act(line: SimulatedLine) -> None:
        with pytest.raises(LineFailed):
            await line.open(Sink(line))

    call(PHONE, act)

"""Calls without samples tell the truth: their line behaves as the simulated one, and whole calls come out alike."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.whole_call import LOOK_UP, TALKED_OVER, WAITED_FOR, check_in, first, hangs_up, quick, says, scenario

from callwright.audio.formats import PCM, PCM16_24K, PCMU_8K
from callwright.errors import AudioFormatError, UsageError
from callwright.ids import ItemId, MarkId, Ms
from callwright.sim.agents import load_agent
from callwright.sim.caller import Anchor, silent_frame
from callwright.sim.line import LineKind, LineSettings, SimulatedLine
from callwright.sim.models import AgentSaid, CallerSaid
from callwright.sim.quick import QuickCall, QuickLine, QuickResult, ToldSpeech, play_quick, spoken_line
from callwright.sim.quick.script import Script
from callwright.sim.quick.told import SILENCE, ToldEar, ToldTrack
from callwright.sim.record import CallRecord, EarSpan
from callwright.sim.rules import RulesModel
from callwright.sim.scenario import Scenario
from callwright.sim.server import ServerSettings
from callwright.sim.speech import Speech
from callwright.sim.vloop import run_virtual
from callwright.sim.world import play
from callwright.testing.lines import check_line

NOBODY = ToldSpeech([spoken_line("hello", "Hello there.", 800)])
PHONE = LineSettings(LineKind.PHONE, PCM16_24K)
SPEAKER = LineSettings(LineKind.SPEAKER)


def quick_line(line: LineSettings) -> QuickLine:
    return QuickLine(line, NOBODY, Script((), lambda item_id: None))


# --- the line


@pytest.mark.parametrize("kind", LineKind)
@pytest.mark.parametrize(("hidden_lag_ms", "fixed_lag_ms"), [(0, 0), (300, 0), (0, 200)])
def test_the_line_keeps_every_rule_of_a_line(kind: LineKind, hidden_lag_ms: Ms, fixed_lag_ms: Ms) -> None:
    line = LineSettings(kind, hidden_lag_ms=hidden_lag_ms, fixed_lag_ms=fixed_lag_ms)
    run_virtual(check_line(lambda: quick_line(line)))


@dataclass(slots=True)
class Silent:
    """Says nothing."""

    hung_up: bool = False

    def step(self, now_ms: Ms, ear: PCM, item_id: ItemId | None) -> PCM:
        return silent_frame(24_000)


@dataclass(slots=True)
class Log:
    """What a line reports."""

    marks: list[tuple[Ms, MarkId]]
    played: dict[tuple[ItemId, int], Ms]
    frames: int = 0

    def on_frame(self, frame: bytes) -> None:
        self.frames += 1

    def on_played(self, item_id: ItemId, generation: int, played_ms: Ms) -> None:
        self.played[item_id, generation] = played_ms

    def on_mark(self, mark_id: MarkId) -> None:
        self.marks.append((round(asyncio.get_running_loop().time() * 1000), mark_id))

    def on_closed(self, by: str, reason: str) -> None:
        pass


async def driven(line: QuickLine | SimulatedLine, moves: Sequence[tuple[Ms, str, Ms]]) -> tuple[Sequence[EarSpan], Log]:
    """Put a line through moves, each so long after the one before, and let it run dry."""
    log = Log([], {})
    await line.open(log)
    generation = 0
    for number, (wait_ms, move, audio_ms) in enumerate(moves):
        await asyncio.sleep(wait_ms / 1000)
        match move:
            case "play":
                line.play(ItemId(f"item_{generation}"), generation, PCM16_24K.silence(audio_ms))
            case "clear":
                generation += 1
                line.clear()
            case _ if line.reports.value == "marks":
                line.mark(MarkId(f"mark_{number}"))
    await asyncio.sleep(5)
    await line.hang_up()
    return line.ear, log


MOVES = st.lists(
    st.tuples(
        st.integers(0, 14).map(lambda frames: frames * 20), st.sampled_from(["play", "play", "mark", "clear"]),
        st.integers(1, 400),
    ),
    max_size=12,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    moves=MOVES,
    kind=st.sampled_from(LineKind),
    lags=st.sampled_from([(0, 0), (300, 0), (0, 200)]),
    returns=st.booleans(),
)
def test_the_line_plays_reports_and_clears_as_the_simulated_line_does(
    moves: list[tuple[Ms, str, Ms]], kind: LineKind, lags: tuple[Ms, Ms], returns: bool
) -> None:
    line = LineSettings(kind, PCM16_24K, *lags, clear_returns_marks=returns)
    between = [(7, "mark", 0), *moves]  # never at the instant of a frame, where either may come first
    ear, log = run_virtual(driven(quick_line(line), between))
    ear_2, log_2 = run_virtual(driven(SimulatedLine(line, Silent()), between))
    assert ear == ear_2
    assert sorted(log.marks) == sorted(log_2.marks)
    if not any(move == "clear" for _, move, _ in moves):  # a report may be late, so a clear may come before it
        assert log.played == log_2.played


def test_a_line_takes_no_format_in_which_the_code_of_a_frame_is_lost() -> None:
    with pytest.raises(UsageError, match="without samples"):
        quick_line(LineSettings(LineKind.PHONE, PCMU_8K))
    with pytest.raises(AudioFormatError, match="without samples"):
        ToldTrack(ServerSettings(), 0.5, PCMU_8K)


# --- what is told


def test_more_speech_than_there_are_codes_is_refused() -> None:
    with pytest.raises(UsageError, match="575 s"):
        ToldSpeech([spoken_line(f"line-{number}", "on and on", 100_000) for number in range(6)])


@given(st.lists(st.booleans(), min_size=20, max_size=60))
def test_voice_is_heard_as_late_as_the_detector_hears_it_and_the_clock_counts_every_sample(frames: list[bool]) -> None:
    rule = ServerSettings()
    track = ToldTrack(rule, 0.5, PCM16_24K)
    (sound, *_) = NOBODY.frames("hello")
    sent = [*frames, *[False] * 16]
    heard = [frame for is_loud in sent for frame in track.take(sound if is_loud else SILENCE)]
    assert track.clock_ms == len(heard) * 32 == len(sent) * 20 // 32 * 32
    if not any(frames):
        assert not any(frame.is_voice for frame in heard)
        return
    voiced = [frame for frame in heard if frame.is_voice]
    assert voiced[0].voice_from_ms == frames.index(True) * 20 + rule.voice_onset_ms
    assert voiced[-1].voice_to_ms == (len(frames) - frames[::-1].index(True)) * 20 + rule.voice_tail_ms


def test_the_ear_hears_the_words_of_which_half_or_more_is_there() -> None:
    speech = ToldSpeech([spoken_line("order", "one two three four", 800)])
    track, ear = ToldTrack(ServerSettings(), 0.5, PCM16_24K), ToldEar(speech)
    frames = speech.frames("order")
    samples = np.concatenate([frame.samples for frame in track.take(b"".join([*frames[16:], SILENCE * 4]))])
    assert [word.text for word in ear.listen(samples, 16_000)] == ["three", "four"]
    assert ear.kind_of(samples, 16_000) == "caller"
    assert ear.kind_of(np.zeros(512, np.int16), 16_000) is None


# --- whole calls


def told_and_heard(call: QuickResult | CallRecord) -> list[tuple[str, str]]:
    return [(turn.speaker, turn.heard) for turn in call.turns]


MURMURED_OVER = scenario(LOOK_UP, says("mm-hmm", Anchor.REPLY_START, 300), hangs_up(6_000))
ASKED_TWICE = scenario(first("ask-pool"), says("ask-wifi", Anchor.REPLY_END, 1_000), hangs_up())


@pytest.mark.parametrize("made", [TALKED_OVER, WAITED_FOR, MURMURED_OVER, ASKED_TWICE])
def test_a_call_without_samples_goes_as_the_whole_call_does(made: Scenario) -> None:
    ours, whole = quick(made, 3), play(made, 3)
    assert told_and_heard(ours) == told_and_heard(whole)
    assert [type(item) for item in ours.history] == [type(item) for item in whole.history]
    instants = [(span.at_ms, span.to_ms) for span in ours.ear if span.to_ms - span.from_ms > 20]
    whole_instants = [(span.at_ms, span.to_ms) for span in whole.ear if span.to_ms - span.from_ms > 20]
    assert np.abs(np.array(instants) - np.array(whole_instants)).max() <= 100
    assert [line.line_id for line in ours.caller_lines] == [line.line_id for line in whole.caller_lines]
    assert ours.unspoken == ()


def test_the_same_seed_gives_the_same_call_and_another_seed_another() -> None:
    ours, again, other = (quick(TALKED_OVER, seed) for seed in (5, 5, 6))
    assert (ours.trace, ours.ear, ours.history) == (again.trace, again.ear, again.history)
    assert ours.trace != other.trace


def test_what_was_said_before_the_session_was_ready_is_heard_as_far_as_it_was_held() -> None:
    made = scenario(says("ask-pool", Anchor.PICKUP, 0), hangs_up())
    whole, late = (quick(made, 1, ready_after_ms=(ms, ms)) for ms in (3_000, 6_000))
    question = "".join(Speech.load(made.speech)["ask-pool"].text)
    assert [item.text for item in whole.history if isinstance(item, CallerSaid)] == [question]
    (kept,) = (item.text for item in late.history if isinstance(item, CallerSaid))
    assert question.endswith(kept[1:])
    assert 0 < len(kept.split()) < len(question.split())


def test_a_cut_reply_ends_in_history_where_the_line_ended_it_whatever_the_lag() -> None:
    made = replace(TALKED_OVER, line=replace(TALKED_OVER.line, hidden_lag_ms=600))
    call = quick(made, 2)
    cut = next(item for item in call.history if isinstance(item, AgentSaid) and item.is_cut)
    (spoken,) = (item for item in call.spoken if item.item_id == cut.item_id)
    heard = [word.text for word in spoken.words if word.start_ms + word.end_ms <= 2 * call.heard_ms(cut.item_id)]
    assert cut.text.rstrip("-").split() == heard
    assert call.heard_ms(cut.item_id) < spoken.streamed_ms - 400


def test_a_call_that_nobody_ends_is_ended_at_its_limit() -> None:
    made = scenario(LOOK_UP)
    speech = Speech.load(made.speech)
    told = ToldSpeech([speech[line_id] for line_id in speech])
    model = RulesModel.load(made.rules, speech, made.rates)
    call = QuickCall(load_agent(made.agent), model, told, made.caller, limit_ms=20_000)
    result = play_quick(call, 1)
    assert (result.ended_ms, result.ending.by) == (20_000, "fault")
    assert check_in().limit_ms > 0

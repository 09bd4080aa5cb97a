"""The recorded voice says what is recorded, and whole calls in which the client speaks hold what the others hold."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from tests.sim.server.driving import speech

import callwright as cw
from callwright.cli.options import Setup
from callwright.cli.plan import ROOTS, make_plan
from callwright.cli.playing import Played, play_one
from callwright.errors import UsageError
from callwright.runtime.masked import mask_trace, without_words
from callwright.runtime.replay import Outcome, replay
from callwright.sim.models import Clip
from callwright.sim.scenario import find_scenarios, load_scenario
from callwright.sim.server.speaking import render
from callwright.sim.vloop import run_virtual
from callwright.sim.voice import FIRST_MS, RecordedVoice
from callwright.sim.world import Options, play

PAUSE_MS = 200
LINES = [line_id for line_id in speech() if speech()[line_id].kind == "agent"]


async def said(pieces: Sequence[str]) -> list[cw.Said]:
    async def text() -> AsyncIterator[str]:
        for piece in pieces:
            await asyncio.sleep(0.02)
            yield piece

    voice = RecordedVoice(speech(), PAUSE_MS)
    return [piece if isinstance(piece, cw.Said) else cw.Said(piece) async for piece in voice.speak(text())]


def pieces_of(text: str) -> list[str]:
    return [word if at == 0 else f" {word}" for at, word in enumerate(text.split(" "))]


@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=4, unique=True), st.integers(0, 3))
@examples(max_examples=40)
def test_a_text_made_of_recorded_lines_sounds_as_the_server_would_say_it(lines: list[str], first: int) -> None:
    clips = [Clip(lines[0], min(first, len(speech()[lines[0]].words) - 1)), *map(Clip, lines[1:])]
    made = render(clips, speech(), PAUSE_MS)
    whole = run_virtual(said(pieces_of(made.text)))
    audio = b"".join(piece.audio for piece in whole)
    expected = [speech()[clip.line_id].slice(clip.first_word, 10_000) for clip in clips]
    silence = np.zeros(PAUSE_MS * 16, np.int16)
    joined = [part for line in expected for part in (line, silence)][:-1]
    assert audio == np.concatenate(joined).astype("<i2").tobytes()
    assert " ".join(piece.text for piece in whole if piece.text) == made.text


def test_it_begins_behind_the_first_sentence_and_not_at_the_end_of_the_text() -> None:
    text = "Parking here is valet only, at forty dollars a night. The pool is on floor two."
    words = pieces_of(text)

    async def first_ms() -> int:
        async def paced() -> AsyncIterator[str]:
            for word in words:
                await asyncio.sleep(1)
                yield word

        voice = RecordedVoice(speech(), PAUSE_MS)
        pieces = voice.speak(paced())
        await anext(pieces)
        at_ms = round(asyncio.get_running_loop().time() * 1000)
        await pieces.aclose()
        return at_ms

    sentence = len(words[: words.index(" night.") + 1])
    assert run_virtual(first_ms()) <= (sentence + 1) * 1_000 + FIRST_MS


def test_words_that_are_not_recorded_are_named() -> None:
    with pytest.raises(UsageError, match="the agent's recorded lines have no word 'zebra'"):
        run_virtual(said(["Zebra."]))


# --- whole calls


@cache
def played(scenario: str, dialect: str | None = None) -> Played:
    return play_one(make_plan(scenario, Setup(voice="own", dialect=dialect)), 1)


@pytest.mark.parametrize("scenario", ["check-in", "booking", "talk-over", "did-it-go-through", "missed-confirmation"])
def test_what_must_hold_holds_where_the_client_speaks(scenario: str) -> None:
    call = played(scenario)
    assert call.run.verdict.failed == ()
    assert call.record.anomalies == ()
    assert replay(call.record.trace).outcome is Outcome.IDENTICAL
    assert b"output_modalities" not in call.record.trace
    assert call.record.settings["voice"] == "own"


def test_a_call_of_which_no_word_is_kept_is_replayed_as_any_other() -> None:
    """What is reported are numbers of words."""
    assert replay(without_words(played("talk-over").record.trace)).outcome is Outcome.IDENTICAL
    assert replay(mask_trace(played("check-in").record.trace)).outcome is Outcome.IDENTICAL


def test_a_cut_is_reported_to_the_word_that_the_ear_heard_last() -> None:
    record = played("check-in").record
    (cut,) = record.truncations
    (turn,) = [turn for turn in record.turns if turn.cut_ms is not None]
    assert (turn.source, turn.item_id) == (cw.Source.ALIGNED, cut.item_id)
    ear_ms = sum(span.to_ms - span.from_ms for span in record.ear if span.item_id == cut.item_id)
    assert abs(cut.audio_end_ms - ear_ms) <= 20
    (kept,) = [item.text for item in record.history if item.item_id == cut.item_id]  # type: ignore[union-attr]
    assert kept == f"{turn.heard}-"


def test_on_openai_no_word_too_many_stays_in_history() -> None:
    call = played("check-in", "openai")
    assert [failure.name for failure in call.run.verdict.failed] == ["heard_error_ms"]  # told in words, not in ms
    assert call.run.figures.values["unheard_words_in_history"] == (0,)
    assert call.run.figures.values["heard_words_missing"] == (0,)


@pytest.mark.parametrize("dialect", ["polyai", "openai", "plain"])
def test_a_model_goes_on_where_the_ear_left_off_though_the_connection_broke_meanwhile(dialect: str) -> None:
    """It breaks while a reply is said that was written whole, and then the caller talks over it."""
    check_in = load_scenario(find_scenarios(ROOTS)["check-in"])
    breaks = replace(check_in, connection=replace(check_in.connection, drops_at_ms=(10_500,)))
    record = play(breaks, 1, options=Options(voice="own", dialect=dialect))
    long, _, rest = [turn for turn in record.turns if turn.speaker == "agent"]
    assert long.cut_ms is not None
    assert rest.heard == f"Sure, as I was saying. {long.written.removeprefix(long.heard).strip()}"


def test_a_server_that_is_not_told_keeps_what_nobody_heard() -> None:
    call = play_one(make_plan("check-in", Setup(voice="own", no_truncate=True)), 1)
    (too_many,) = call.run.figures.values["unheard_words_in_history"]
    assert too_many is not None
    assert too_many > 50
    assert call.run.figures.values["unheard_words_in_transcript"] == (0,)
    assert call.record.truncations == ()


def test_a_baseline_has_no_voice_of_its_own() -> None:
    scenario = make_plan("check-in", Setup()).scenario
    with pytest.raises(UsageError, match="baseline naive has no voice of its own"):
        play(scenario, 1, client="naive", options=Options(voice="own"))
    with pytest.raises(UsageError, match="--voice is for callwright's own calls, and a baseline has none"):
        make_plan("check-in", Setup(client="naive", voice="own"))

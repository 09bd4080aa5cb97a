"""What a voice does wrongly, or a server that writes for it, costs a text at most, and is never taken for heard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from typing import Any

import pytest
from tests.runtime.calls import (
    ANYTHING,
    CREATED,
    OPENING,
    PHONE,
    UPDATED,
    Model,
    after,
    calls,
    ended,
    expect,
    run,
    speech_started,
)
from tests.runtime.calls import started as response_started
from tests.runtime.voices import STOPPED, TEN, WORD_MS, Speaks, agent_of, delta, done, loud, take, written

import callwright as cw
from callwright.core import events as on
from callwright.runtime.voicing import AUDIO_MS_MAX, PIECES_MAX, VOICE_PATIENCE_MS
from callwright.sim.caller import Anchor, ScriptedCaller, Step, Trigger
from callwright.sim.line import SimulatedLine
from callwright.sim.server import MemoryConnector
from callwright.sim.vloop import run_virtual
from callwright.testing.scripted import Emit, close

DISBELIEVED = "the voice tells of words that are not next, or too many for its audio: no more is believed"
WORD = loud(WORD_MS)
IN_TWO = response_started(), delta("one "), after(500), delta("two"), done("one two"), ended()


class Says(Speaks):
    """Says of a text what it is told to say of it."""

    def __init__(self, pieces: Callable[[str], Iterable[Any]]) -> None:
        super().__init__()
        self.pieces_of = pieces

    async def speak(self, text: AsyncIterator[str]) -> AsyncGenerator[Any, None]:
        whole = "".join([piece async for piece in text])
        for piece in self.pieces_of(whole):
            yield piece


def words(*said: str) -> list[cw.Said]:
    return [cw.Said(WORD, word) for word in said]


# --- what it tells of its words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEN, [word for word in TEN.split() for _ in range(2)]),
        ("Order 4417 is paid in full", ["Order", "forty", "four", "seventeen", "is", "paid", "in", "full"]),
        ("您的退款已经完成了", list("您的退款已经完成了")),
    ],
    ids=["twice", "numbers in words", "no spaces"],
)
def test_no_word_is_heard_that_was_not_said_though_a_voice_miscounts(text: str, said: list[str]) -> None:
    taken = take(Says(lambda _: words(*said)), *written(text), after(890), speech_started(), after(1_500))
    heard = taken.agent_turns[0][0].split()
    audible = " ".join(said[: (890 + 20) // WORD_MS])
    assert [word for word in heard if word.lower() not in audible.lower()] == []
    assert len(heard) <= len(said[:4])


def test_a_voice_may_leave_out_signs_and_join_words() -> None:
    voice = Says(lambda _: words("well", "check-in", "is at", "3", "sir"))
    taken = take(voice, *written("Well — check in is at “3”, sir."), after(690), speech_started(), after(500))
    assert taken.agent_turns[0][::2] == ("Well — check in is at", "aligned")
    assert taken.result.anomalies == ()


def test_a_voice_that_says_other_words_than_it_was_given_is_estimated_like_one_that_tells_none() -> None:
    script = (*written(TEN), after(890), speech_started(), after(500))
    taken, untold = take(Says(lambda _: words(*TEN.split()[::-1])), *script), take(Says(lambda _: [WORD] * 10), *script)
    assert taken.agent_turns == untold.agent_turns
    assert taken.agent_turns[0][2] == "estimated"
    assert taken.result.anomalies == (DISBELIEVED,)


def test_words_without_audio_that_could_hold_them_are_not_believed() -> None:
    for first in (b"", loud(20)):
        pieces = [cw.Said(first, TEN), *[WORD] * 10]
        taken = take(Says(lambda _, pieces=pieces: pieces), *written(TEN), after(450), speech_started(), after(500))
        assert taken.agent_turns[0][2] == "estimated"
        assert DISBELIEVED in taken.result.anomalies


def test_a_voice_that_told_of_fewer_words_than_there_are_has_not_said_the_rest() -> None:
    taken = take(Says(lambda _: words("one", "two", "three")), *written(TEN), after(2_000))
    assert taken.agent_turns == [("one two three", TEN, "aligned")]
    assert "the voice failed in response r1: it told of 3 of 10 words" in taken.result.anomalies
    assert taken.model.of(STOPPED)[0]["spoken_text"] == "one two three"


# --- what it gives


@pytest.mark.parametrize(
    ("pieces", "what"),
    [
        (["hello"], "it yielded str, not bytes or Said(bytes, str)"),
        ([None], "it yielded NoneType, not bytes or Said(bytes, str)"),
        ([cw.Said(WORD, 7)], "it yielded Said(bytes, int), not bytes or Said(bytes, str)"),  # type: ignore[arg-type]
        ([b"\0"], "it gave no audio"),
        ([cw.Said(b""), b""], "it gave no audio"),
        ([loud(AUDIO_MS_MAX), WORD], "it gave more than 10 min of audio for a text"),
    ],
)
def test_a_voice_that_gives_what_is_no_audio_of_a_text_is_told_so(pieces: list[Any], what: str) -> None:
    taken = take(Says(lambda _: pieces), *written(TEN), after(500))
    assert f"the voice failed in response r1: {what}" in taken.result.anomalies
    assert taken.agent_turns[0][0] == ""


@pytest.mark.parametrize("spoken", [None, iter(())], ids=["nothing", "an iterator"])
def test_a_voice_that_speaks_without_being_an_async_generator_is_told_so(spoken: Any) -> None:
    class Wrong(Speaks):
        def speak(self, text: AsyncIterator[str]) -> Any:  # type: ignore[override]
            return spoken

    taken = take(Wrong(), *written(TEN), after(500))
    what = f"speak(text) gave {type(spoken).__name__}, not an async generator"
    assert f"the voice failed in response r1: {what}" in taken.result.anomalies


def test_audio_in_other_types_of_bytes_is_said() -> None:
    taken = take(Says(lambda _: [bytearray(WORD), memoryview(WORD), WORD[:-1], WORD[-1:]]), *written("two"), after(900))
    assert taken.agent_turns == [("two", "two", "whole")]
    assert sum(span.to_ms - span.from_ms for span in taken.line.ear) == pytest.approx(3 * WORD_MS, abs=5)


def test_a_voice_that_yields_without_a_pause_lets_others_have_their_turn() -> None:
    turns = 0

    def pieces(_: str) -> Iterable[bytes]:
        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.get_running_loop().create_task(other())
        for _ in range(10 * PIECES_MAX):
            yield loud(1)
        task.cancel()

    take(Says(pieces), *written(TEN), after(1_000))
    assert turns >= 9


class Beats(Speaks):
    """Yields nothing, once a second, for ever."""

    async def speak(self, text: AsyncIterator[str]) -> AsyncGenerator[bytes | cw.Said, None]:
        while True:
            yield b""
            await asyncio.sleep(1)


def test_a_voice_that_yields_nothing_again_and_again_gives_nothing() -> None:
    taken = take(Beats(), *written(TEN), after(6_000), hang_up_ms=8_000)
    assert (
        f"the voice failed in response r1: it gave nothing for {VOICE_PATIENCE_MS // 1000} s" in taken.result.anomalies
    )


def test_a_voice_that_fails_while_the_model_writes_does_not_go_on_with_what_follows() -> None:
    class Fails(Speaks):
        async def speak(self, text: AsyncIterator[str]) -> AsyncGenerator[bytes | cw.Said, None]:
            self.texts.append(await anext(text))
            yield WORD
            raise ValueError

    voice = Fails()
    taken = take(voice, *IN_TWO, after(500))
    assert voice.texts == ["one "]
    assert sum(each.startswith("the voice failed") for each in taken.result.anomalies) == 1
    assert taken.agent_turns[0][1] == "one two"


def test_a_voice_that_ends_before_its_text_has_come_has_not_said_the_rest() -> None:
    class Hasty(Speaks):
        async def speak(self, text: AsyncIterator[str]) -> AsyncGenerator[bytes | cw.Said, None]:
            yield WORD

    taken = take(Hasty(), *IN_TWO, after(500))
    what = "it ended before all of its text had come"
    assert f"the voice failed in response r1: {what}" in taken.result.anomalies
    assert taken.agent_turns[0][0] in ("", "one")


class Lingers(Speaks):
    """Does not end when it is closed."""

    async def speak(self, text: AsyncIterator[str]) -> AsyncGenerator[bytes | cw.Said, None]:
        try:
            yield WORD
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(60)


def test_a_voice_that_was_cut_and_does_not_end_is_named_when_the_call_does() -> None:
    taken = take(Lingers(), *written(TEN), after(300), speech_started(), after(500), hang_up_ms=1_500)
    (note,) = [each for each in taken.result.anomalies if "was left running" in each]
    assert note.startswith("the voice does not stop when its generator is closed")


def test_a_call_that_is_cancelled_while_it_waits_for_its_voice_to_end_is_cancelled() -> None:
    async def scene() -> None:
        model = Model(*OPENING, *written(TEN), ignoring=ANYTHING)
        caller = ScriptedCaller([Step(Trigger(Anchor.PICKUP, 1_500), None)], {}, PHONE.stream_format.rate_hz)
        call = run(SimulatedLine(PHONE, caller), MemoryConnector(lambda: model), agent=agent_of(Lingers()))
        task = asyncio.get_running_loop().create_task(call)
        await asyncio.sleep(2)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(scene())


def test_a_reply_of_which_nothing_was_said_when_the_call_ended_was_not_heard() -> None:
    taken = take(Speaks(delay_ms=3_000), *written(TEN), hang_up_ms=300)
    assert taken.agent_turns == [("", TEN, "estimated")]


# --- what the server writes


@pytest.mark.parametrize("r1", [(), (delta("one two"),), (delta("one two"), done("one two"))])
def test_a_response_whose_end_is_lost_does_not_silence_the_next(r1: tuple[Emit, ...]) -> None:
    script = (response_started(), *r1, after(700), *written("three four", "b", "r2"), after(1_500))
    taken = take(Speaks(), *script)
    first = [("one two", "one two", "whole")] if r1 else []
    assert taken.agent_turns == [*first, ("three four", "three four", "whole")]
    assert taken.result.anomalies == ("response r2 began, so r1 has ended without a word",)


@pytest.mark.parametrize("behind", [delta(" and more"), done("one two")])
@pytest.mark.parametrize("wait_ms", [10, 1_000])
def test_a_text_that_has_ended_is_not_gone_on_with_nor_said_again(behind: Emit, wait_ms: int) -> None:
    voice = Speaks()
    script = (response_started(), delta("one two"), done("one two"), after(wait_ms), behind, after(10), ended())
    taken = take(voice, *script, after(1_000))
    assert voice.texts == ["one two"]
    assert taken.agent_turns == [("one two", "one two", "whole")]


def test_what_was_heard_is_what_came_in_pieces_where_the_whole_text_is_another() -> None:
    taken = take(Speaks(), response_started(), delta("one two"), done("uno dos tres"), ended(), after(1_000))
    assert taken.agent_turns == [("one two", "one two", "whole")]
    assert "the server's text is not what it had written piece by piece; the pieces are said" in taken.result.anomalies


@pytest.mark.parametrize("text", [" one two three ", "one two three"])
def test_a_whole_text_that_differs_from_its_pieces_by_spaces_is_the_same(text: str) -> None:
    voice = Speaks()
    script = (response_started(), delta(" one two"), delta(" "), done(text), ended())
    taken = take(voice, *script, after(1_000))
    assert taken.agent_turns[0][0].split() == voice.texts[0].split()
    assert voice.texts[0].split()[:2] == ["one", "two"]


def test_spaces_are_not_said() -> None:
    voice = Speaks()
    taken = take(voice, *written("    "), *written("  one", "b", "r2"), after(500))
    assert [text.strip() for text in voice.texts] == ["one"]
    assert taken.result.anomalies == ()


def test_signs_that_nobody_can_say_are_no_failure() -> None:
    taken = take(Says(lambda text: [WORD] if any(map(str.isalnum, text)) else []), *written("👍 …"), after(500))
    assert taken.agent_turns == [("", "👍 …", "estimated")]
    assert taken.result.anomalies == ()


def test_a_spoken_argument_is_said_though_its_letters_stand_within_a_word_before_it() -> None:
    goodbye = '{"reason": "done", "goodbye": "Bye."}'
    script = (response_started(), done("I heard a goodbye there."), calls("end_call", arguments=goodbye), ended())
    taken = take(Speaks(), *script, hang_up_ms=9_000, is_whole=False)
    assert [turn[0] for turn in taken.agent_turns] == ["I heard a goodbye there.", "Bye."]


def test_what_was_said_of_a_response_that_is_given_up_is_on_record() -> None:
    class Eager(Speaks):
        async def speak(self, text: AsyncIterator[str]) -> AsyncGenerator[bytes | cw.Said, None]:
            async for piece in text:
                for word in piece.split():
                    yield cw.Said(WORD, word)

    taken = take(Eager(), response_started(), delta("one two three "), hang_up_ms=14_000, is_whole=False)
    assert "response r1 brings nothing more and does not end: it is given up" in taken.result.anomalies
    assert [turn[0].split() for turn in taken.agent_turns] == [["one", "two", "three"]]


def test_a_reply_that_is_said_behind_its_session_is_open_until_it_was_heard() -> None:
    taken = take(Speaks(delay_ms=500), *written(TEN), after(50), close(1011), hang_up_ms=4_000, is_whole=False)
    (turn,) = [turn for turn in taken.result.turns if turn.speaker == "agent"]
    assert (turn.heard, turn.source, turn.cut_ms) == (TEN, "whole", None)


@pytest.mark.parametrize("is_app", [False, True])
def test_a_reply_that_is_said_behind_its_session_and_what_waits_behind_it_end_when_it_is_talked_over(
    is_app: bool,
) -> None:
    def interrupt(call: Any) -> None:
        if is_app:
            asyncio.get_running_loop().call_later(0.9, call.handle, on.InterruptRequested())

    first = Model(*OPENING, *written(TEN), after(100), close(1011), ignoring=ANYTHING)
    cut = () if is_app else (speech_started(),)
    opening = (CREATED, expect("session.update"), UPDATED)
    second = Model(*opening, *written("not now", "b", "r2"), after(700), *cut, ignoring=ANYTHING)
    models = iter((first, second))
    voice = Speaks(gap_ms=200)
    caller = ScriptedCaller([Step(Trigger(Anchor.PICKUP, 6_000), None)], {}, PHONE.stream_format.rate_hz)
    connector = MemoryConnector(lambda: next(models), up_ms=0)
    line = SimulatedLine(PHONE, caller)
    result = run_virtual(run(line, connector, agent=agent_of(voice), watch=interrupt))
    heard = [(turn.heard, turn.written) for turn in result.turns if turn.speaker == "agent"]
    assert heard == [("one two three", TEN), ("", "not now")]
    assert len(voice.closed) == 1

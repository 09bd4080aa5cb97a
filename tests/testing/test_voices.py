"""The check of voices passes what is right, and names what is wrong with each of these."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import numpy as np
import pytest
from tests.sim.server.driving import speech

import callwright as cw
from callwright.errors import DeclarationError
from callwright.sim.voice import RecordedVoice
from callwright.testing import check_voice, run_virtual

LINES = (speech()["pool"].text, speech()["parking"].text if "parking" in speech() else speech()["check-in-time"].text)


class Right:
    """Says each word in half a second."""

    rate_hz = 8_000
    word_bytes = 8_000
    tells = True

    async def speak(self, text: AsyncIterator[str]) -> AsyncGenerator[bytes | cw.Said, None]:
        for word in (await self.whole(text)).split():
            await asyncio.sleep(0.01)
            yield cw.Said(bytes(self.word_bytes), word) if self.tells else bytes(self.word_bytes)

    async def whole(self, text: AsyncIterator[str]) -> str:
        return "".join([piece async for piece in text])


class Silent(Right):
    tells = False


class Short(Right):
    word_bytes = 200


class HalfSamples(Right):
    word_bytes = 8_001


class Hangs(Right):
    async def whole(self, text: AsyncIterator[str]) -> str:
        await asyncio.sleep(3_600)
        return ""


class EachPieceApart(Right):
    """Takes every piece for whole words."""

    async def whole(self, text: AsyncIterator[str]) -> str:
        return " ".join([piece async for piece in text])


class OneAtATime(Right):
    """Keeps the text where every call of it finds it."""

    async def whole(self, text: AsyncIterator[str]) -> str:
        self.text = ""
        async for piece in text:
            self.text += piece
        return self.text


class Deaf(Right):
    """Does not let itself be stopped while it waits."""

    async def whole(self, text: AsyncIterator[str]) -> str:
        try:
            return await super().whole(text)
        except asyncio.CancelledError:
            await asyncio.sleep(3_600)
            return ""


class SlowToClose(Right):
    async def speak(self, text: AsyncIterator[str]) -> AsyncGenerator[bytes | cw.Said, None]:
        try:
            async for piece in super().speak(text):
                yield piece
        finally:
            await asyncio.sleep(3_600)


class WithoutSigns(Right):
    """Tells the bare words, as engines do that give their times."""

    async def whole(self, text: AsyncIterator[str]) -> str:
        return (await super().whole(text)).lower().replace(".", "").replace(",", "")


class Numpy(Right):
    """Yields what its engine makes, which is no bytes."""

    async def speak(self, text: AsyncIterator[str]) -> AsyncGenerator[Any, None]:
        async for _ in text:
            pass
        yield np.zeros(8_000, np.int16)


class TellsAhead(Right):
    """Gives all words with the first piece, and the audio of most of them later."""

    async def speak(self, text: AsyncIterator[str]) -> AsyncGenerator[bytes | cw.Said, None]:
        yield cw.Said(bytes(1_600), await self.whole(text))
        yield bytes(80_000)


@pytest.mark.parametrize("voice", [Right(), Silent(), WithoutSigns()])
def test_a_voice_that_is_right_passes(voice: cw.Voice) -> None:
    run_virtual(check_voice(voice))


def test_the_recorded_voice_passes() -> None:
    run_virtual(check_voice(RecordedVoice(speech(), 200), LINES))


@pytest.mark.parametrize(
    ("voice", "rule"),
    [
        (Short(), "all of a text is said: 'Good morning.*' has 87 ms of audio"),
        (HalfSamples(), "a text ends in whole samples"),
        (Hangs(), r"a piece of 'Good morning.*' comes within 5\.0 s"),
        (EachPieceApart(), "the words of the pieces are those of the text, whole and in order"),
        (OneAtATime(), "the words of the pieces are those of the text, whole and in order"),
        (Numpy(), "a piece is bytes, or Said with bytes and a str: .* got ndarray"),
        (TellsAhead(), "the words of the pieces are those of the text, whole and in order, with their audio"),
        (Deaf(), "a generator whose text does not go on ends when it is cancelled"),
        (SlowToClose(), "ends? within|a piece of .* comes within"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_what_is_wrong_is_named(voice: cw.Voice, rule: str) -> None:
    with pytest.raises(AssertionError, match=rule):
        run_virtual(check_voice(voice))


def test_what_is_no_voice_is_no_voice() -> None:
    with pytest.raises(DeclarationError, match="the voice: a voice has a rate_hz"):
        run_virtual(check_voice(object()))  # type: ignore[arg-type]

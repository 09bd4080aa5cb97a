"""What every voice must do, as one check that any implementation can be put through.

    await check_voice(MyVoice(...))

Each rule has the voice say a text or two. What is checked is what a call relies on: whole samples, all of the text and
its words in order, also where it comes in pieces or beside another text, and a generator that ends where it is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from callwright.core.estimate import is_too_short
from callwright.declare.voice import check_declared
from callwright.ids import ItemId
from callwright.runtime.voicedtext import SAMPLE_BYTES, VoicedText, kind_of, letters_of, said_of

if TYPE_CHECKING:
    from callwright.declare.voice import Voice
    from callwright.ids import Ms

_Value = TypeVar("_Value")
_TEXTS = ("Good morning. The library opens at nine.", "Please bring two books, and your card.")
_PIECE_LETTERS = 3
_THE_END: Final = object()


async def check_voice(voice: Voice, texts: Sequence[str] = _TEXTS, *, patience_ms: Ms = 5_000) -> None:
    """Put a voice through every rule, on the running loop, with two or more texts that it can say.

    ``patience_ms`` bounds the wait for a piece, and for the end of a generator that is closed. Raises AssertionError
    that names the rule which was broken, and DeclarationError for what is no voice.
    """
    check_declared("the voice", voice)
    for rule in (_says_it, _says_pieces, _says_two_at_once, _stops_while_it_speaks, _stops_while_it_waits):
        await rule(_Trial(voice, patience_ms / 1000), texts)


class _Trial:
    """Has a voice say texts."""

    def __init__(self, voice: Voice, patience_s: float) -> None:
        self.voice = voice
        self.patience_s = patience_s

    async def say(self, text: str, pieces: Sequence[str]) -> None:
        """Have a text said, and hold what comes against it."""
        voiced, words, is_believed = VoicedText(ItemId("text")), list[str](), True
        voiced.give(text)
        said = self.voice.speak(_coming(pieces))
        while (piece := await self.within(anext(said, _THE_END), f"a piece of {text!r} comes")) is not _THE_END:
            known = said_of(piece)
            assert known is not None, f"a piece is bytes, or Said with bytes and a str: {text!r} got {kind_of(piece)}"
            voiced.made_bytes += len(known.audio)
            if known.text.strip():
                words.append(known.text)
                is_believed = voiced.told(known.text, len(known.audio), self.voice.rate_hz) is not None and is_believed
        made_bytes, audio_ms = voiced.made_bytes, voiced.made_ms(self.voice.rate_hz)
        assert made_bytes % SAMPLE_BYTES == 0, f"a text ends in whole samples: {text!r} has {made_bytes} bytes"
        assert not is_too_short(audio_ms, text), f"all of a text is said: {text!r} has {audio_ms} ms of audio"
        is_right = not words or (is_believed and _plain(" ".join(words)) == _plain(text))
        assert is_right, (
            f"the words of the pieces are those of the text, whole and in order, with their audio: {text!r} was "
            f"told as {words}"
        )

    async def within(self, waited: Awaitable[_Value], what: str) -> _Value:
        """Wait for something, not for ever."""
        try:
            async with asyncio.timeout(self.patience_s):
                return await waited
        except TimeoutError:
            raise AssertionError(f"{what} within {self.patience_s:.1f} s") from None


async def _says_it(trial: _Trial, texts: Sequence[str]) -> None:
    for text in texts:
        await trial.say(text, [text])


async def _says_pieces(trial: _Trial, texts: Sequence[str]) -> None:
    await trial.say(texts[0], _pieces(texts[0]))


async def _says_two_at_once(trial: _Trial, texts: Sequence[str]) -> None:
    await asyncio.gather(*(trial.say(text, _pieces(text)) for text in texts[:2]))


async def _stops_while_it_speaks(trial: _Trial, texts: Sequence[str]) -> None:
    said = trial.voice.speak(_coming([texts[0]]))
    await trial.within(anext(said, None), "a first piece comes")
    await trial.within(said.aclose(), "a generator that is closed while it speaks ends")


async def _stops_while_it_waits(trial: _Trial, texts: Sequence[str]) -> None:
    async def listen() -> None:
        async for _ in trial.voice.speak(_coming([texts[0][:_PIECE_LETTERS]], is_all=False)):
            pass

    task = asyncio.get_running_loop().create_task(listen())
    await asyncio.sleep(0.1)
    task.cancel()
    what = "a generator whose text does not go on ends when it is cancelled"
    await trial.within(asyncio.gather(task, return_exceptions=True), what)
    assert task.cancelled(), f"{what}, and not before"


async def _coming(pieces: Sequence[str], *, is_all: bool = True) -> AsyncIterator[str]:
    for piece in pieces:
        yield piece
        await asyncio.sleep(0.01)
    if not is_all:
        await asyncio.get_running_loop().create_future()


def _plain(text: str) -> list[str]:
    """Its words without signs; those that are nothing but signs are none."""
    return [word for each in text.split() if (word := "".join(letters_of(each)))]


def _pieces(text: str) -> list[str]:
    return [text[at : at + _PIECE_LETTERS] for at in range(0, len(text), _PIECE_LETTERS)]

"""The recogniser and the voice of the extra ``local``, each in a process of its own: neither holds up the event loop.

Moonshine (MIT, English) hears, in whole turns as the session cuts them; SVOX Pico (Apache-2.0) speaks. Both bring their
models along and ask nothing of the network. A process loads its engine as it begins, and ignores Ctrl-C: it ends when
whoever began it ends it, or is gone.
"""

from __future__ import annotations

import asyncio
import importlib.util
import multiprocessing
from collections.abc import AsyncIterator, Callable
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from callwright.errors import UsageError, how_to_install
from callwright.sim.children import ctrl_c_held_back, end_with_parent
from callwright.sim.open.timing import timed
from callwright.sim.server.errands import Piece
from callwright.sim.speech import RATE_HZ, Pcm

PACKAGES: Final = ("moonshine_voice", "py_nanotts")
"""What the extra installs, as it is imported."""
_FULL_SCALE: Final = 32_768


def check_installed() -> None:
    """Raise UsageError with the line that installs the extra, where it is not installed."""
    absent = [package for package in PACKAGES if importlib.util.find_spec(package) is None]
    if absent:
        raise UsageError(f"free speech needs the packages {' and '.join(absent)}: {how_to_install('local')}")


class Worker:
    """A process in which an engine is loaded, for one errand at a time; one that has died is replaced for the next."""

    def __init__(self, load: Callable[[], None], work: Callable[[Any], Any]) -> None:
        self._load = load
        self._work = work
        self._pool = self._new()

    def _new(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, mp_context=context, initializer=_begin, initargs=(self._load,))

    async def run(self, given: Any) -> Any:
        """What the engine makes of this. Raises what it raises, and BrokenExecutor if the process dies of it."""
        pool = self._pool
        try:
            with ctrl_c_held_back():  # the process is begun with its first errand
                done = asyncio.get_running_loop().run_in_executor(pool, self._work, given)
            return await done
        except BrokenExecutor:
            if pool is self._pool:
                self._pool = self._new()
            raise

    def close(self) -> None:
        """End the process."""
        self._pool.shutdown(cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Senses:
    """The two of them; implements `Recogniser` and `Voice`."""

    ears: Worker
    mouth: Worker

    async def words(self, audio: Pcm) -> str:
        """What is said in this audio."""
        text: str = await self.ears.run(audio)
        return text

    async def speak(self, text: str) -> Piece:
        """A sentence as it sounds."""
        pcm: Pcm = await self.mouth.run(text)
        return Piece(pcm, timed(text, pcm))


@asynccontextmanager
async def open_senses() -> AsyncIterator[Senses]:
    """Both, loaded. Raises UsageError as `check_installed` does, and where one cannot be loaded."""
    check_installed()
    with closing(Worker(_load_recogniser, _recognise)) as ears, closing(Worker(_load_voice, _synthesise)) as mouth:
        senses = Senses(ears, mouth)
        try:
            await asyncio.gather(senses.words(np.zeros(RATE_HZ, np.int16)), senses.speak("Hello."))
        except BrokenExecutor as problem:
            raise UsageError(
                "the recogniser or the voice of the extra local cannot be loaded here; standard error says why"
            ) from problem
        yield senses


# --- in the processes


class _Engine(Protocol):
    def __call__(self, given: Any, /) -> Any: ...


_engines: dict[str, _Engine] = {}


def _begin(load: Callable[[], None]) -> None:
    """Load an engine in a process that ends with the one that began it."""
    end_with_parent()
    load()


def _load_recogniser() -> None:
    from moonshine_voice import ModelArch, Transcriber
    from moonshine_voice.utils import get_assets_path

    model = Path(get_assets_path()) / "tiny-en"
    transcriber = Transcriber(str(model), ModelArch.TINY, options={"identify_speakers": "false"})
    _engines["ears"] = transcriber.transcribe_without_streaming


def _recognise(audio: Pcm) -> str:
    found = _engines["ears"]((audio.astype(np.float32) / _FULL_SCALE).tolist())
    return " ".join(line.text.strip() for line in found.lines)


def _load_voice() -> None:
    from py_nanotts import NanoTTS

    _engines["mouth"] = NanoTTS().speak


def _synthesise(text: str) -> Pcm:
    return np.frombuffer(_engines["mouth"](text), "<i2").astype(np.int16)

"""The recogniser and the voice of the extra ``local``, each in a process of its own: neither holds up the event loop.

Moonshine (MIT, English) hears, in whole turns as the session cuts them; SVOX Pico (Apache-2.0) speaks. Both bring their
models along and ask nothing of the network. A process loads its engine as it begins, and ignores Ctrl-C: it ends when
whoever began it ends it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import multiprocessing
import signal
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from callwright.errors import UsageError
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
        raise UsageError(f"free speech needs the packages {' and '.join(absent)}: pip install 'callwright[local]'")


@dataclass(frozen=True, slots=True)
class Senses:
    """The two of them; implements `Recogniser` and `Voice`."""

    ears: ProcessPoolExecutor
    mouth: ProcessPoolExecutor

    async def words(self, audio: Pcm) -> str:
        """What is said in this audio."""
        text: str = await asyncio.get_running_loop().run_in_executor(self.ears, _recognise, audio)
        return text

    async def speak(self, text: str) -> Piece:
        """A sentence as it sounds."""
        pcm: Pcm = await asyncio.get_running_loop().run_in_executor(self.mouth, _synthesise, text)
        return Piece(pcm, timed(text, pcm))


@asynccontextmanager
async def open_senses() -> AsyncIterator[Senses]:
    """Both, loaded. Raises UsageError as `check_installed` does."""
    check_installed()
    spawn = multiprocessing.get_context("spawn")
    with _pool(spawn, _load_recogniser) as ears, _pool(spawn, _load_voice) as mouth:
        senses = Senses(ears, mouth)
        await asyncio.gather(senses.words(np.zeros(RATE_HZ, np.int16)), senses.speak("Hello."))
        yield senses


def _pool(context: Any, load: Callable[[], None]) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=context, initializer=load)


# --- in the processes


class _Engine(Protocol):
    def __call__(self, given: Any, /) -> Any: ...


_engines: dict[str, _Engine] = {}


def _load_recogniser() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from moonshine_voice import ModelArch, Transcriber
    from moonshine_voice.utils import get_assets_path

    model = Path(get_assets_path()) / "tiny-en"
    transcriber = Transcriber(str(model), ModelArch.TINY, options={"identify_speakers": "false"})
    _engines["ears"] = transcriber.transcribe_without_streaming


def _recognise(audio: Pcm) -> str:
    found = _engines["ears"]((audio.astype(np.float32) / _FULL_SCALE).tolist())
    return " ".join(line.text.strip() for line in found.lines)


def _load_voice() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from py_nanotts import NanoTTS

    _engines["mouth"] = NanoTTS().speak


def _synthesise(text: str) -> Pcm:
    return np.frombuffer(_engines["mouth"](text), "<i2").astype(np.int16)

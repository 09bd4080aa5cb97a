"""A voice of an agent's own: text in as the model writes it, audio out as it is made.

Without one the model's provider speaks, where it has a voice.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from inspect import isclass, iscoroutinefunction
from typing import Final, Protocol

from callwright.errors import DeclarationError

RATES_HZ: Final = range(8_000, 192_001, 1_000)
"""What a voice may come in: from a telephone's up to more than any sound card's."""


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of audio and the words that it holds, whole words and next in line; empty where it holds none."""

    audio: bytes
    text: str = ""


class Voice(Protocol):
    """What says the replies of an agent. One voice may say those of many calls at the same time."""

    @property
    def rate_hz(self) -> int:
        """Rate of its audio, whole kHz: 16 bits, linear, little-endian, mono."""

    def speak(self, text: AsyncIterator[str], /) -> AsyncGenerator[bytes | Said, None]:
        """Say one text, whose pieces come while the model writes it, from the first of them on.

        Audio may come faster than it is played. Where each piece of it comes as ``Said``, with its words, it is known
        to the word what a caller heard who talks over it; else that is estimated, rounded down. When a caller does,
        nothing more of the text is wanted: the generator is closed where it waits, so let go of what it holds in a
        ``finally``. Whatever it raises ends this text, not the call.
        """
        ...


def check_declared(what: str, voice: object) -> None:
    """Raise DeclarationError for what is no voice."""
    if voice is None:
        return
    if isclass(voice):
        raise DeclarationError(f"{what}: a voice is an object, not its class; give {voice.__name__}()")
    rate_hz = getattr(voice, "rate_hz", None)
    if not isinstance(rate_hz, int) or rate_hz not in RATES_HZ:
        raise DeclarationError(f"{what}: a voice has a rate_hz, whole kHz such as 24000; got {rate_hz!r}")
    speak = getattr(voice, "speak", None)
    if not callable(speak) or iscoroutinefunction(speak):
        raise DeclarationError(f"{what}: a voice has an async generator speak(text) that yields its audio")

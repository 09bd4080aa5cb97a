"""What a session for free speech is given: something that hears, something that thinks, something that speaks."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Protocol

from callwright.sim.ear import HeardWord

if TYPE_CHECKING:
    from callwright.sim.server.errands import MakeReply, Part, Piece
    from callwright.sim.speech import Pcm


class Recogniser(Protocol):
    """Knows the words in a turn."""

    async def words(self, audio: Pcm, /) -> str:
        """What is said in this audio (int16, mono, 16 kHz), with punctuation; empty where nothing is."""


class Voice(Protocol):
    """Speaks."""

    async def speak(self, text: str, /) -> Piece:
        """A sentence as it sounds."""


class Thinker(Protocol):
    """Makes replies."""

    def reply(self, wanted: MakeReply, /) -> AsyncGenerator[Part, None]:
        """The parts of a reply, as they come; one that ends without `Failed` is whole. It is closed to be dropped."""


class AnySound:
    """A `Hearing` that takes every sound for the caller's, and every pause for the end of a sentence."""

    def listen(self, _samples: Pcm, _rate_hz: int, /) -> list[HeardWord]:
        """Some word with which a sentence ends; what is said is found out later."""
        return [HeardWord("...", "", "caller", 0, 0, 1.0)]

    def kind_of(self, _samples: Pcm, _rate_hz: int, /) -> None:
        """No kind is known."""

    def music(self, _samples: Pcm, /) -> None:
        """No music is known."""

"""What all parts of one session work with."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from callwright.sim.server.agenda import Agenda
from callwright.sim.server.errands import Errands
from callwright.sim.server.history import History
from callwright.sim.server.settings import ServerSettings
from callwright.sim.server.speaking import Utterance, render
from callwright.sim.server.telling import Names, Teller
from callwright.sim.server.voice import Frame, VoiceTrack

if TYPE_CHECKING:
    from callwright.audio.formats import AudioFormat
    from callwright.ids import Ms
    from callwright.sim.ear import HeardWord
    from callwright.sim.models import Clip
    from callwright.sim.speech import Kind, Pcm, Recording


class Hearing(Protocol):
    """What tells words and kinds of sound from samples."""

    def listen(self, samples: Pcm, rate_hz: int, /) -> list[HeardWord]:
        """The words in these samples."""

    def kind_of(self, samples: Pcm, rate_hz: int, /) -> Kind | None:
        """What kind of sound they are, where that can be told."""

    def music(self, samples: Pcm, /) -> Follows | None:
        """The music at the end of these samples, at 16 kHz, where there is some."""


class Follows(Protocol):
    """What tells whether a sound goes on."""

    def goes_on(self, frame: Pcm, /) -> bool:
        """Whether these next samples are still it."""


class Track(Protocol):
    """What makes frames of the caller's bytes, each voice or not, and owns the audio clock; see `VoiceTrack`."""

    threshold: float

    @property
    def first(self) -> Pcm:
        """The beginning of the stream as it was read."""

    @property
    def clock_ms(self) -> Ms:
        """How much audio has come, in whole frames."""

    def set_format(self, audio_format: AudioFormat, /) -> None:
        """Read what follows in this format."""

    def reset(self) -> None:
        """Forget what was heard."""

    def is_silent(self, audio: bytes, /) -> bool:
        """Whether these bytes are digital silence."""

    def can_skip(self) -> bool:
        """Whether silence that comes now would change nothing but the clock."""

    def skip(self, nbytes: int, /) -> None:
        """Let the clock go on by so many bytes of silence."""

    def take(self, audio: bytes, /) -> list[Frame]:
        """The frames that these bytes complete."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Where a session meets samples: how it reads the caller's, and how it makes those of a reply."""

    track: Callable[[float, AudioFormat], Track] = VoiceTrack
    """Makes a track, given the threshold of voice and the format."""
    render: Callable[[Sequence[Clip], Mapping[str, Recording], Ms, AudioFormat], Utterance] = render
    """Makes a reply of clips, given the recordings, the pause between lines and the format."""


REAL = Samples()
"""Both as they are in a whole call."""


@dataclass(frozen=True, slots=True)
class Common:
    """One of each for the whole session."""

    settings: ServerSettings
    rng: random.Random
    agenda: Agenda
    history: History
    names: Names
    teller: Teller
    samples: Samples = REAL
    errands: Errands | None = None
    """Where words and replies are not there at once."""

    @staticmethod
    def for_session(
        settings: ServerSettings, rng: random.Random, samples: Samples = REAL, *, has_errands: bool = False
    ) -> Common:
        """A new session's; its ids carry a tag that is drawn from ``rng``."""
        names = Names(f"{rng.getrandbits(32):08x}")
        teller = Teller(names.next("conv"), with_items=settings.item_events)
        history = History(settings.speaks.profile.cut_suffix)
        errands = Errands(history) if has_errands else None
        return Common(settings, rng, Agenda(), history, names, teller, samples, errands)

"""A room: from what the caller says and what the loudspeaker plays to what a microphone in it hears.

    caller  -> level -> [ mouth to microphone ] ----------------------+
    played  -> delay -> [ loudspeaker to microphone ] -> gain (echo) -+-> microphone
    bed     -> level -------------------------------------------------+

Samples only, 20 ms at a time. What comes out is rounded to int16, and depends on settings, samples and seed alone.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from enum import Enum

import numpy as np

from callwright.audio.echo import CANCELS, OutputDevice
from callwright.audio.formats import FRAME_MS, PCM
from callwright.audio.mix import gain_factor, saturated
from callwright.errors import UsageError
from callwright.ids import Ms
from callwright.sim.room.beds import BEDS, LINE_DBFS, bed_lines, bed_loop
from callwright.sim.room.convolve import Convolver, Floats
from callwright.sim.room.responses import DRY, check_room, load_response
from callwright.sim.speech import Recording

ECHO_DELAY_MS: Ms = 40
"""How late an echo is where nothing is said of it: as in the live measurements, Oct 2026."""
LONGEST_DELAY_MS: Ms = 2000
LEVELS_DB = (-60, 20)
"""From how much softer to how much louder a line may be than it is recorded."""
LOUDEST_DBFS = -10
SOFTEST_DBFS = -90
_NOISE = re.compile(r"(?P<bed>[\w-]+):(?P<level>-\d{1,2})")


class Aec(Enum):
    """Whether the client cancels its echo."""

    AUTO = "auto"
    """As the output device wants it."""
    ON = "on"
    OFF = "off"
    AEC3 = "aec3"
    """On, and WebRTC's instead of the built-in one: the extra ``aec``."""

    def __str__(self) -> str:
        return self.value

    def cancels(self, device: OutputDevice) -> bool:
        """Whether there is a canceller where the agent's voice comes out of this device."""
        return CANCELS[device] if self is Aec.AUTO else self is not Aec.OFF


@dataclass(frozen=True, slots=True)
class Noise:
    """A bed that sounds for the whole call, from a place in it that the seed draws."""

    bed: str
    level_dbfs: int
    """RMS level at the microphone while the bed sounds."""

    def __post_init__(self) -> None:
        bed_lines(self.bed)
        if not SOFTEST_DBFS <= self.level_dbfs <= LOUDEST_DBFS:
            raise UsageError(f"expected a level from {SOFTEST_DBFS} to {LOUDEST_DBFS} dBFS; got {self.level_dbfs}")

    def __str__(self) -> str:
        return f"{self.bed}:{self.level_dbfs}"

    @staticmethod
    def parse(text: str) -> Noise:
        """A bed and its level, such as ``news:-35``. Raises UsageError."""
        parsed = _NOISE.fullmatch(text)
        if parsed is None:
            example = f"BED:LEVEL in dBFS, such as {next(iter(BEDS))}:-35"
            raise UsageError(f'expected {example}; got "{text}"')
        return Noise(parsed["bed"], int(parsed["level"]))


@dataclass(frozen=True, slots=True)
class RoomSettings:
    """What the room at the caller's end is like. Raises UsageError where that can't be."""

    name: str = DRY
    """Whose impulse responses are heard; see `ROOMS`."""
    echo: float = 0.0
    """How loud the loudspeaker is at the microphone: a factor of what it plays, 0 to 1."""
    echo_delay_ms: Ms = ECHO_DELAY_MS
    """From the ear to the microphone."""
    level_db: int = 0
    """How much louder than recorded the caller is."""
    noise: Noise | None = None
    aec: Aec = Aec.AUTO

    def __post_init__(self) -> None:
        check_room(self.name)
        if not 0 <= self.echo <= 1:
            raise UsageError(f"expected an echo from 0 to 1 of what is played; got {self.echo}")
        if not 0 <= self.echo_delay_ms <= LONGEST_DELAY_MS:
            raise UsageError(f"expected an echo delay from 0 to {LONGEST_DELAY_MS} ms; got {self.echo_delay_ms} ms")
        if not LEVELS_DB[0] <= self.level_db <= LEVELS_DB[1]:
            raise UsageError(f"expected a level from {LEVELS_DB[0]} to {LEVELS_DB[1]} dB; got {self.level_db} dB")

    @property
    def is_still(self) -> bool:
        """Whether the microphone hears what the caller says, and nothing else."""
        return self.name == DRY and not self.echo and not self.level_db and self.noise is None

    @property
    def lines(self) -> tuple[Recording, ...]:
        """The recorded lines that are heard of it beside the caller and the agent."""
        return bed_lines(self.noise.bed) if self.noise else ()


class Room:
    """One call's room at the line's rate; ``rng`` says where its bed begins."""

    def __init__(self, settings: RoomSettings, rate_hz: int, rng: random.Random) -> None:
        self._frame = rate_hz * FRAME_MS // 1000
        response = load_response(settings.name, rate_hz)
        self._mouth = Convolver(response.mouth * gain_factor(settings.level_db), self._frame)
        self._echo = Convolver(response.loudspeaker * settings.echo, self._frame) if settings.echo else None
        self._on_its_way: PCM = np.zeros(settings.echo_delay_ms * rate_hz // 1000, np.int16)
        self._bed = _Loop(settings.noise, rate_hz, rng) if settings.noise else None

    def apply(self, caller: PCM, played: PCM) -> PCM:
        """What the microphone hears (int16, mono, 20 ms) while these are said and played.

        Where nothing is added to silence, that is the caller's own frame.
        """
        parts: list[Floats] = []
        if caller.any() or not self._mouth.is_still:
            parts.append(self._mouth.process(caller.astype(np.float64)))
        if self._echo is not None:
            arrived = self._delayed(played)
            if arrived.any() or not self._echo.is_still:
                parts.append(self._echo.process(arrived.astype(np.float64)))
        if self._bed is not None:
            parts.append(self._bed.next(self._frame))
        return saturated(sum(parts[1:], parts[0])) if parts else caller

    def _delayed(self, played: PCM) -> PCM:
        waiting = np.concatenate((self._on_its_way, played))
        self._on_its_way = waiting[len(played) :]
        return waiting[: len(played)]


class _Loop:
    """A bed at its level, over and over."""

    def __init__(self, noise: Noise, rate_hz: int, rng: random.Random) -> None:
        self._samples = bed_loop(noise.bed, rate_hz)
        self._gain = gain_factor(noise.level_dbfs - LINE_DBFS)
        self._at = rng.randrange(len(self._samples))

    def next(self, count: int) -> Floats:
        samples = self._samples[self._at : self._at + count]
        if len(samples) < count:
            samples = np.concatenate((samples, self._samples[: count - len(samples)]))
        self._at = (self._at + count) % len(self._samples)
        return np.asarray(samples * self._gain)

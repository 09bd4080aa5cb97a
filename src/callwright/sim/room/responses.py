"""How rooms ring: impulse responses from the caller's mouth, and from a loudspeaker, to the microphone.

Each room is a WAV file of ``responses/``, rendered once by ``scripts/render_rooms.py``: 24 kHz, int16, one channel for
each of the two ways, the direct sound at the beginning. Both are read with energy 1, so that a room changes how a voice
sounds and not how loud it is.
"""

from __future__ import annotations

import wave
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from callwright.audio.resample import resample
from callwright.errors import UsageError
from callwright.sim.advice import did_you_mean, one_of
from callwright.sim.room.convolve import Floats

DRY = "dry"
"""The room that adds nothing."""
ROOMS = (DRY, "phone-booth", "office", "living-room", "kitchen", "car")
"""All rooms by name."""


class Response(NamedTuple):
    """Impulse responses at one rate, float64, each of energy 1."""

    mouth: Floats
    loudspeaker: Floats


def check_room(name: str) -> None:
    """Raise UsageError for a room that does not exist."""
    if name not in ROOMS:
        raise UsageError(f'expected a room ({one_of(ROOMS)}); got "{name}"{did_you_mean(name, ROOMS)}')


@cache
def load_response(name: str, rate_hz: int) -> Response:
    """The responses of a room at this rate. Raises UsageError for a room that does not exist."""
    check_room(name)
    if name == DRY:
        return Response(np.ones(1), np.ones(1))
    path = files("callwright.sim.room") / "responses" / f"{name}.wav"
    with path.open("rb") as file, wave.open(file) as sound:
        samples = np.frombuffer(sound.readframes(sound.getnframes()), "<i2").reshape(-1, sound.getnchannels())
        from_hz = sound.getframerate()
    both = (resample(np.ascontiguousarray(way), from_hz, rate_hz).astype(np.float64) for way in samples.T)
    return Response(*(way / np.sqrt(way @ way) for way in both))

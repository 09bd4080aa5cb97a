"""What else can be heard at the caller's end: a news reader, somebody in the room, voices, a street, music, coughs.

A bed is a loop of recorded lines with pauses between them; the lines are in ``speech/`` (spoken) and ``beds/`` (made of
noise and tones). The ear knows them like those of an agent, and tells their kind from their samples.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import cast

import numpy as np

from callwright.audio.resample import resample
from callwright.errors import UsageError
from callwright.ids import Ms
from callwright.sim.advice import did_you_mean, one_of
from callwright.sim.room.convolve import Floats
from callwright.sim.speech import RATE_HZ, Recording, Speech

LINE_DBFS = -20
"""Level of a recorded line while it sounds."""


@dataclass(frozen=True, slots=True)
class Bed:
    """Lines in a row, over and over."""

    lines: tuple[str, ...]
    pause_ms: Ms
    """After each line."""


BEDS: Mapping[str, Bed] = {
    "news": Bed(("news-bridge", "news-weather", "news-harvest", "news-match"), 300),
    "neighbour": Bed(("neighbour-keys", "neighbour-dinner"), 2500),
    "babble": Bed(("babble",), 0),
    "street": Bed(("street",), 0),
    "music": Bed(("music",), 0),
    "coughs": Bed(("cough",), 7000),
}
"""All beds by name."""


@cache
def room_lines() -> Mapping[str, Recording]:
    """Every line that a room can be heard to say, by id; its samples are read when they are asked for."""
    room = files("callwright.sim.room")
    return together(Speech.load(room / "speech"), Speech.load(room / "beds"))


def together(*parts: Mapping[str, Recording]) -> Mapping[str, Recording]:
    """The lines of all, by id; where several have one, that of the first."""
    return ChainMap(*(cast(MutableMapping[str, Recording], part) for part in parts))  # only read, so never written to


def bed_lines(name: str) -> tuple[Recording, ...]:
    """The recorded lines of a bed. Raises UsageError for a bed that does not exist."""
    if name not in BEDS:
        raise UsageError(f'expected a bed ({one_of(BEDS)}); got "{name}"{did_you_mean(name, BEDS)}')
    return tuple(room_lines()[line_id] for line_id in BEDS[name].lines)


@cache
def bed_loop(name: str, rate_hz: int) -> Floats:
    """One round of a bed at this rate: float64 in int16 steps, `LINE_DBFS` while it sounds, read-only."""
    pause = np.zeros(BEDS[name].pause_ms * rate_hz // 1000, np.int16)
    parts = [part for line in bed_lines(name) for part in (resample(line.pcm, RATE_HZ, rate_hz), pause)]
    loop = np.concatenate(parts).astype(np.float64)
    loop.flags.writeable = False
    return loop

"""Renders what a simulated room adds to a call: impulse responses, and sounds that nobody speaks.

    python scripts/render_rooms.py

writes ``responses/`` and ``beds/`` below ``src/callwright/sim/room``. Only who changes a room needs this script; it
needs ``pyroomacoustics``, which nothing else does. The same versions give the same bytes.

A response is a WAV file (24 kHz, int16, at most 300 ms) with two channels: from the caller's mouth, and from the
loudspeaker, each to the microphone and with its direct sound at the beginning. A bed is a recorded line like those of
``speech/``; the babble is made of these.
"""

from __future__ import annotations

import argparse
import json
import sys
import wave
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from render_speech import levelled, wav

from callwright.sim.speech import RATE_HZ, Pcm, Speech

ROOM = Path(__file__).parent.parent / "src/callwright/sim/room"
RESPONSE_HZ = 24_000
LONGEST_MS = 300
FADE_MS = 60
"""At the end of a response that is cut."""
LEAD = 8
"""Samples of a response before its direct sound: the rise of a sound that falls between two samples."""
DROPPED_DB = -60
"""A response ends where so little of its energy is left."""
LARGEST_ORDER = 60
SEED = 20
BED_S = 12

Floats = np.ndarray[Any, np.dtype[np.float64]]
Place = tuple[float, float, float]


@dataclass(frozen=True)
class Shoebox:
    """A room without corners: its sides in m, how long it rings (s to -60 dB), and where things are in it."""

    sides: Place
    rings_s: float
    microphone: Place
    mouth: Place
    loudspeaker: Place


ROOMS = {
    "phone-booth": Shoebox((0.9, 0.9, 2.2), 0.12, (0.45, 0.50, 1.50), (0.45, 0.42, 1.50), (0.45, 0.60, 1.45)),
    "office": Shoebox((4.2, 3.2, 2.7), 0.30, (2.00, 1.50, 1.10), (2.00, 1.20, 1.20), (2.10, 1.60, 1.10)),
    "living-room": Shoebox((5.5, 4.2, 2.5), 0.40, (2.50, 1.80, 0.90), (2.50, 1.52, 1.00), (2.60, 1.90, 0.90)),
    "kitchen": Shoebox((3.4, 2.8, 2.5), 0.50, (1.50, 1.20, 1.00), (1.50, 1.02, 1.08), (1.58, 1.28, 1.00)),
    "car": Shoebox((2.3, 1.4, 1.15), 0.07, (0.70, 0.70, 0.90), (0.95, 0.45, 0.85), (0.50, 0.20, 0.40)),
}


def responses(room: Shoebox) -> list[Floats]:
    """From mouth and loudspeaker to the microphone, by image sources; whole, with energy 1."""
    import pyroomacoustics as acoustics

    absorption, order = acoustics.inverse_sabine(room.rings_s, room.sides)
    material = acoustics.Material(absorption)
    box = acoustics.ShoeBox(room.sides, fs=RESPONSE_HZ, materials=material, max_order=min(order, LARGEST_ORDER))
    box.add_source(room.mouth)
    box.add_source(room.loudspeaker)
    box.add_microphone(room.microphone)
    box.compute_rir()
    return [trimmed(np.asarray(response, np.float64)) for response in box.rir[0]]


def trimmed(response: Floats) -> Floats:
    """The response from its direct sound on, without what is too weak or too late to matter."""
    response = response[max(0, int(np.abs(response).argmax()) - LEAD) :]
    left = np.cumsum((response**2)[::-1])[::-1]
    end = min(int((left > left[0] * 10 ** (DROPPED_DB / 10)).sum()), LONGEST_MS * RESPONSE_HZ // 1000)
    fade = min(end // 2, FADE_MS * RESPONSE_HZ // 1000)
    kept = response[:end] * np.concatenate((np.ones(end - fade), np.linspace(1, 0, fade)))
    return np.asarray(kept / np.sqrt(np.sum(kept**2)))


def write_responses(target: Path) -> None:
    """One file a room."""
    target.mkdir(exist_ok=True)
    for name, room in ROOMS.items():
        both = responses(room)
        length = max(map(len, both))
        rows = np.stack([np.pad(one, (0, length - len(one))) for one in both])
        samples = np.rint(rows / np.abs(rows).max() * 32767).astype("<i2")
        with wave.open(str(target / f"{name}.wav"), "wb") as file:
            file.setnchannels(len(rows))
            file.setsampwidth(2)
            file.setframerate(RESPONSE_HZ)
            file.writeframes(samples.T.tobytes())
        print(f"{name}: {length * 1000 // RESPONSE_HZ} ms")


def babble(speech: Mapping[str, Pcm], rng: np.random.Generator) -> Floats:
    """Eight voices at once, each the given lines turned round, at a speed of its own: speech that says nothing."""
    total = np.zeros(BED_S * RATE_HZ)
    for speed in np.linspace(0.84, 1.19, 8):
        row = np.concatenate([speech[name][::-1] for name in rng.permutation(sorted(speech))]).astype(np.float64)
        voice = np.interp(np.arange(int(len(row) / speed)) * speed, np.arange(len(row)), row)
        total += np.resize(voice, len(total)) * rng.uniform(0.6, 1.0)
    return total


def street(rng: np.random.Generator) -> Floats:
    """Low noise, with cars that come and go."""
    count = BED_S * RATE_HZ
    slope = np.fft.rfftfreq(count, 1 / RATE_HZ).clip(40) ** -0.9
    noise = np.fft.irfft(np.fft.rfft(rng.standard_normal(count)) * slope)
    swell = np.full(count, 0.4)
    time_s = np.arange(count) / RATE_HZ
    for at_s in (2.2, 5.9, 9.4):
        swell += np.exp(-(((time_s - at_s) / rng.uniform(0.6, 1.0)) ** 2))
    return np.asarray(noise * swell)


def music(_rng: np.random.Generator) -> Floats:
    """Broken chords on a plucked string of four partials."""
    total = np.zeros(BED_S * RATE_HZ)
    step_s = 0.25
    chords = ((0, 4, 7, 12), (9, 12, 16, 21), (5, 9, 12, 17), (7, 11, 14, 19))
    for number in range(int(BED_S / step_s)):
        chord = chords[number // 8 % len(chords)]
        pitch_hz = 220 * 2 ** (chord[(0, 1, 2, 3, 2, 1, 2, 1)[number % 8]] / 12)
        begin = int(number * step_s * RATE_HZ)
        time_s = np.arange(min(int(1.2 * RATE_HZ), len(total) - begin)) / RATE_HZ
        for partial, gain in enumerate((1.0, 0.5, 0.3, 0.15), 1):
            total[begin : begin + len(time_s)] += (
                gain * np.sin(2 * np.pi * partial * pitch_hz * time_s) * np.exp(-3 * partial**0.5 * time_s)
            )
    return total


def cough(rng: np.random.Generator) -> Floats:
    """Two bursts of breath, the second weaker, with the colour of a throat."""
    total = np.zeros(int(0.55 * RATE_HZ))
    for begin_s, long_s, gain in ((0.0, 0.22, 1.0), (0.30, 0.22, 0.6)):
        count = int(long_s * RATE_HZ)
        spectrum = np.fft.rfft(rng.standard_normal(count))
        at_hz = np.fft.rfftfreq(count, 1 / RATE_HZ)
        throat = sum(1 / (1 + ((at_hz - peak_hz) / wide_hz) ** 2) for peak_hz, wide_hz in ((550, 200), (1500, 350)))
        time_s = np.arange(count) / RATE_HZ
        shape = np.minimum(time_s / 0.008, 1) * np.exp(-time_s / 0.06)
        total[int(begin_s * RATE_HZ) :][:count] += gain * np.fft.irfft(spectrum * throat, count) * shape
    return total


BEDS: Mapping[str, tuple[str, str, Callable[[Mapping[str, Pcm], np.random.Generator], Floats]]] = {
    # id:     kind,     what is in it,  how it is made
    "babble": ("bed", "[voices]", babble),
    "street": ("bed", "[street]", lambda _, rng: street(rng)),
    "music": ("music", "[music]", lambda _, rng: music(rng)),
    "cough": ("murmur", "[cough]", lambda _, rng: cough(rng)),
}


def write_beds(target: Path, speech: Mapping[str, Pcm]) -> None:
    """The sounds and their index. A sound without words has one mark for every half second of it."""
    target.mkdir(exist_ok=True)
    index: dict[str, Any] = {}
    for name, (kind, mark, make) in BEDS.items():
        pcm = levelled(np.asarray(make(speech, np.random.default_rng([SEED, *name.encode()])) / 65536))
        length_ms = len(pcm) * 1000 // RATE_HZ
        starts = range(0, length_ms, 500)
        marks = [[mark, start, min(start + 500, length_ms)] for start in starts]
        (target / f"{name}.wav").write_bytes(wav(pcm))
        text = " ".join([mark] * len(marks))
        index[name] = {"voice": "nobody", "kind": kind, "text": text, "file": f"{name}.wav", "ms": length_ms,
                       "words": marks}  # fmt: skip
    rows = (f" {json.dumps(key)}: {json.dumps(entry)}" for key, entry in index.items())
    (target / "speech.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
    print(f"{target.name}: {len(index)} sounds, {sum(entry['ms'] for entry in index.values()) / 1000:.1f} s")


def main() -> int:
    """Render everything. Returns the exit code."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    spoken = Speech(ROOM / "speech")
    write_beds(ROOM / "beds", {name: line.pcm for name, line in spoken.items() if line.kind == "bed"})
    try:
        write_responses(ROOM / "responses")
    except ModuleNotFoundError as problem:
        print(f"render_rooms: {problem}: install pyroomacoustics to render the responses", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How many words the ear hears, how many it makes up, and what it costs, for each thing that can befall a line.

Run: ``python bench/ear.py``. Every recorded line of the hotel goes through every condition. Columns:

- heard: words heard, of those that are in the samples, in percent;
- made up: words heard that are not in the samples;
- ms/s: CPU milliseconds a second of sound, on one thread.

An unknown line is one that the bank is not given; its figure of 100 % would be no words at all, so only `made up`
counts. Some lines share words in one voice ("on floor two"): these are the ones that are heard there.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Callable, Iterator
from importlib.resources import files

import numpy as np

from callwright.audio.g711 import pcmu_decode, pcmu_encode
from callwright.audio.resample import resample
from callwright.sim.ear import Ear
from callwright.sim.speech import PER_MS, RATE_HZ, Pcm, Recording, Speech

Case = tuple[Ear, Pcm, int, list[tuple[str, str]]]
"""The ear, samples, their rate in Hz, and the words that are in them."""

BANK = Speech.load(files("callwright.apps") / "hotel" / "speech")
LINES = list(BANK.values())
EAR = Ear(LINES)
RNG = np.random.default_rng(1)


def as_pcm(samples: np.ndarray) -> Pcm:
    """Int16 samples, clipped at full scale."""
    return np.clip(np.round(samples), -32768, 32767).astype(np.int16)


def words(recording: Recording, first: int = 0, last: int | None = None) -> list[tuple[str, str]]:
    """Words of a line, each with the line that it belongs to."""
    return [(recording.id, word.text) for word in recording.words[first:last]]


def padded(recording: Recording) -> np.ndarray:
    """The line with 0.2 s of silence at both ends."""
    return np.pad(recording.pcm, 200 * PER_MS).astype(float)


def with_noise(recording: Recording, snr_db: float) -> Pcm:
    """The line in pink noise; `snr_db` is the level of the line over that of the noise."""
    samples = padded(recording)
    spectrum = np.fft.rfft(RNG.standard_normal(len(samples)))
    pink = np.fft.irfft(spectrum / np.sqrt(np.maximum(np.arange(len(spectrum)), 1)), len(samples))
    level = np.sqrt((recording.pcm.astype(float) ** 2).mean()) * 10 ** (-snr_db / 20)
    return as_pcm(samples + pink / pink.std() * level)


def drifted(recording: Recording, ppm: float) -> Pcm:
    """The line as a clock plays it that is `ppm` slow."""
    dense = np.fft.irfft(np.fft.rfft(recording.pcm), 4 * len(recording.pcm)) * 4
    at = np.arange(int(len(recording.pcm) * (1 + ppm * 1e-6))) / (1 + ppm * 1e-6)
    return as_pcm(np.interp(at * 4, np.arange(len(dense)), dense))


def alone(change: Callable[[Recording], Pcm]) -> Iterator[Case]:
    """Every line by itself, after `change`."""
    for recording in LINES:
        yield EAR, change(recording), RATE_HZ, words(recording)


def coded() -> Iterator[Case]:
    """Every line through a telephone codec."""
    for recording in LINES:
        yield EAR, pcmu_decode(pcmu_encode(resample(recording.pcm, RATE_HZ, 8000))), 8000, words(recording)


def late() -> Iterator[Case]:
    """0.3 s cut off the start; a word of which at least half is left counts as there."""
    cut = 300
    for recording in LINES:
        first = sum(word.start_ms + word.end_ms < 2 * cut for word in recording.words)
        if first < len(recording.words) - 1:
            yield EAR, recording.pcm[cut * PER_MS :], RATE_HZ, words(recording, first)


def cut_short() -> Iterator[Case]:
    """The first half of the words, then silence."""
    for recording in LINES:
        count = len(recording.words) // 2
        if count > 1:
            samples = np.concatenate([recording.slice(0, count), np.zeros(RATE_HZ // 2, np.int16)])
            yield EAR, samples, RATE_HZ, words(recording, 0, count)


def together(gain: float) -> Iterator[Case]:
    """Two lines, the second a quarter of a second later and `gain` times as strong."""
    half = len(LINES) // 2
    for one, other in zip(LINES[:half], LINES[half:], strict=False):
        samples = np.zeros(max(len(one.pcm), len(other.pcm) + RATE_HZ // 4))
        samples[: len(one.pcm)] += one.pcm
        samples[RATE_HZ // 4 :][: len(other.pcm)] += gain * other.pcm
        yield EAR, as_pcm(samples), RATE_HZ, words(one) + words(other)


def in_a_row() -> Iterator[Case]:
    """Three lines without a pause."""
    for three in zip(LINES[::3], LINES[1::3], LINES[2::3], strict=False):
        samples = np.concatenate([recording.pcm for recording in three])
        yield EAR, samples, RATE_HZ, [word for recording in three for word in words(recording)]


def unknown() -> Iterator[Case]:
    """Every line, for an ear that knows all others."""
    for recording in LINES:
        yield Ear(other for other in LINES if other is not recording), recording.pcm, RATE_HZ, []


def noise_alone() -> Iterator[Case]:
    """Pink noise as loud as speech."""
    for recording in LINES[::5]:
        yield EAR, as_pcm(with_noise(recording, 0) - padded(recording)), RATE_HZ, []


CONDITIONS = {
    "clean": lambda: alone(lambda r: r.pcm),
    "6 dB up": lambda: alone(lambda r: as_pcm(r.pcm * 2.0)),
    "echo alone (30 %)": lambda: alone(lambda r: as_pcm(r.pcm * 0.3)),
    "μ-law, 8 kHz": coded,
    "200 ppm slow": lambda: alone(lambda r: drifted(r, 200)),
    "200 ppm fast": lambda: alone(lambda r: drifted(r, -200)),
    "start cut by 0.3 s": late,
    "cut in the middle": cut_short,
    "three in a row": in_a_row,
    "two at once": lambda: together(1.0),
    "two at once, -10 dB": lambda: together(0.316),
    "pink noise, 10 dB": lambda: alone(lambda r: with_noise(r, 10)),
    "pink noise, 5 dB": lambda: alone(lambda r: with_noise(r, 5)),
    "pink noise, 0 dB": lambda: alone(lambda r: with_noise(r, 0)),
    "unknown line": unknown,
    "noise alone": noise_alone,
}


def measure(cases: Iterator[Case]) -> str:
    """One row of the table."""
    found = wanted = made_up = 0
    cpu_s = sound_s = 0.0
    for ear, samples, rate_hz, there in cases:
        begun = time.process_time()
        heard = [(word.line_id, word.text) for word in ear.listen(samples, rate_hz)]
        cpu_s += time.process_time() - begun
        sound_s += len(samples) / rate_hz
        good = sum(word in there for word in heard)
        found, wanted, made_up = found + good, wanted + len(there), made_up + len(heard) - good
    share = f"{100 * found / wanted:6.1f} %" if wanted else "       -"
    return f"{share} {made_up:8} {1000 * cpu_s / sound_s:8.1f}"


def kind_cost_ms() -> float:
    """CPU time of telling the kind of a sound from its first 600 ms."""
    begun = time.process_time()
    for recording in LINES:
        EAR.kind_of(recording.pcm[: 600 * PER_MS], RATE_HZ)
    return (time.process_time() - begun) * 1000 / len(LINES)


def main() -> None:
    """Prints the table."""
    print(f"{'condition':22} {'heard':>8} {'made up':>8} {'ms/s':>8}")
    for name, cases in CONDITIONS.items():
        print(f"{name:22} {measure(cases())}")
    print(f"kind of 600 ms: {kind_cost_ms():.1f} ms")


if __name__ == "__main__":
    main()

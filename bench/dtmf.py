"""Which tones the detector of keys takes for a key, and what it costs.

Run: ``python bench/dtmf.py``. Each limit is played with all 16 keys, in four phases against the detector's windows, at
8 kHz through μ-law and at 24 kHz: the share that was heard, once and rightly, beside what must be. Where the norms give
a range in between, both are right. Then what a second of sound costs, in frames of 20 ms.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import timeit
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callwright.audio.dtmf import COLUMNS_HZ, KEYS, ROWS_HZ, KeyDetector, tones
from callwright.audio.formats import PCM
from callwright.audio.g711 import pcmu_decode, pcmu_encode
from callwright.audio.levels import tone_amplitude

PAD = "123A456B789C*0#D"
PAUSE_MS = 150
ACCEPT, REJECT, EITHER = "accept", "reject", ""


@dataclass(frozen=True)
class Tone:
    """A key as another generator may send it: lengths in ms, levels in dBm0, deviations in percent."""

    ms: int = 50
    low: float = -10
    high: float = -8
    low_off: float = 0
    high_off: float = 0
    noise: float | None = None
    hole_ms: int = 0
    """Nothing sounds for so long in the middle; the tone is longer by it."""
    gap_ms: int = PAUSE_MS

    def samples(self, keys: str, rate_hz: int, seed: int) -> PCM:
        """The keys with a gap before each, one of 150 ms before and behind all, and noise all the time."""
        chance = np.random.default_rng(seed)
        per_ms = rate_hz // 1000
        parts = [np.zeros(PAUSE_MS * per_ms + int(chance.integers(5 * per_ms)))]
        for key in keys:
            parts += [self._key(key, rate_hz, chance), np.zeros(self.gap_ms * per_ms)]
        total = np.concatenate((*parts, np.zeros(PAUSE_MS * per_ms)))
        if self.noise is not None:
            total += chance.normal(0, tone_amplitude(self.noise) / 2**0.5, len(total))
        return np.rint(total).clip(-32768, 32767).astype(np.int16)

    def _key(self, key: str, rate_hz: int, chance: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        row, column = divmod(PAD.index(key), 4)
        time = np.arange((self.ms + self.hole_ms) * rate_hz // 1000) / rate_hz
        low_hz, high_hz = ROWS_HZ[row] * (1 + self.low_off / 100), COLUMNS_HZ[column] * (1 + self.high_off / 100)
        low, high = (
            tone_amplitude(level) * np.sin(2 * np.pi * (hz * time + chance.random()))
            for level, hz in ((self.low, low_hz), (self.high, high_hz))
        )
        hole = slice(self.ms * rate_hz // 2000, (self.ms // 2 + self.hole_ms) * rate_hz // 1000)
        tone: np.ndarray[tuple[int], np.dtype[np.float64]] = low + high
        tone[hole] = 0
        return tone


LIMITS: Sequence[tuple[str, Tone, str]] = [
    *[(f"tone of {ms} ms", Tone(ms), must) for ms, must in ((20, REJECT), (24, REJECT), (30, EITHER), (40, ACCEPT))],
    ("tone of 2 s", Tone(2_000), ACCEPT),
    ("tone of 40 ms, then a gap of 40 ms", Tone(40, gap_ms=40), ACCEPT),
    *[(f"interruption of {ms} ms in 100 ms", Tone(100, hole_ms=ms), ACCEPT) for ms in (5, 10)],
    *[(f"both tones {off:+} %", Tone(low_off=off, high_off=off), ACCEPT) for off in (-1.5, 1.5)],
    ("both tones +1.5 %, 40 ms", Tone(40, low_off=1.5, high_off=1.5), ACCEPT),
    *[(f"both tones {off:+} %", Tone(low_off=off, high_off=off), EITHER) for off in (-1.8, 1.8, 2.5)],
    *[(f"low tone {off:+} %, 500 ms", Tone(500, low_off=off), REJECT) for off in (-3.5, 3.5)],
    *[(f"high tone {off:+} %, 500 ms", Tone(500, high_off=off), REJECT) for off in (-3.5, 3.5)],
    *[(f"high {db:+} dB against low", Tone(low=-14, high=-14 + db), ACCEPT) for db in (-8, 4)],
    *[(f"high {db:+} dB against low", Tone(low=-14, high=-14 + db), REJECT) for db in (-12, 8)],
    *[(f"each tone {dbm0} dBm0", Tone(low=dbm0, high=dbm0), ACCEPT) for dbm0 in (-3, -20, -36)],
    ("each tone -55 dBm0", Tone(low=-55, high=-55), REJECT),
    *[(f"noise {db} dB below each tone", Tone(high=-10, noise=-10 - db), ACCEPT) for db in (20, 15, 12)],
    ("noise as loud as each tone", Tone(high=-10, noise=-10), EITHER),
    ("one tone alone, low", Tone(500, high=-90), REJECT),
    ("one tone alone, high", Tone(500, low=-90), REJECT),
]
"""What of a key varies, and what must become of it (`protocol.md` of the design: Q.24 as commonly summed up)."""


def heard(tone: Tone, keys: str, rate_hz: int, seed: int) -> str:
    """The keys that are heard of these; at 8 kHz they pass through μ-law."""
    samples = tone.samples(keys, rate_hz, seed)
    if rate_hz == 8_000:
        samples = pcmu_decode(pcmu_encode(samples))
    return "".join(key.key for key in KeyDetector(rate_hz).take(samples))


def micros_a_second(rate_hz: int, samples: PCM) -> float:
    """Microseconds of CPU for a second of these samples, taken over and over in frames of 20 ms."""
    frames = np.split(samples, 50)
    detector = KeyDetector(rate_hz)
    return min(timeit.repeat(lambda: [detector.take(frame) for frame in frames], number=1, repeat=50)) * 1e6


def main() -> None:
    """Print both tables."""
    say = sys.stdout.write
    say(f"{'limit':38} {'must':8} {'8 kHz μ-law':>12} {'24 kHz':>8}\n")
    for name, tone, must in LIMITS:
        shares = [
            sum(heard(tone, key, rate_hz, seed) == key for key in KEYS for seed in range(4)) / (4 * len(KEYS))
            for rate_hz in (8_000, 24_000)
        ]
        say(f"{name:38} {must or 'either':8} {shares[0]:>12.0%} {shares[1]:>8.0%}\n")
    say(f"\n{'CPU, us a second of sound':38} {'silence':>12} {'noise':>8} {'keys':>8}\n")
    for rate_hz in (8_000, 16_000, 24_000, 48_000):
        noise = np.random.default_rng(1).integers(-4_000, 4_000, rate_hz).astype(np.int16)
        sounds = (np.zeros(rate_hz, np.int16), noise, tones("12345", rate_hz))
        silence, noisy, keys = (micros_a_second(rate_hz, sound) for sound in sounds)
        say(f"{rate_hz:>5} Hz {'':29} {silence:>12.0f} {noisy:>8.0f} {keys:>8.0f}\n")


if __name__ == "__main__":
    main()

"""What the sample-rate filters do to a signal, and what they and G.711 cost.

Run: ``python bench/audio.py``. Timings are the least of many repeats on one thread; run it alone on a quiet machine.
Where soxr or scipy are installed, their streams are measured beside ours. Columns:

- gain at 100 to 3400 Hz, dB: how flat the telephone band passes;
- alias, dB: what is left of a full tone at 4.4 and 5 kHz (above half of 8 kHz), or, going up, of the images of 3.4 kHz;
- SINAD at 1 kHz, dB: the tone against all the rest;
- delay, ms: how late the content is, and (held) how much of 2 s had not come out before the flush;
- microseconds per frame of 20 ms, int16 in and out.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import importlib
import sys
import timeit
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from callwright.audio.formats import PCM
from callwright.audio.g711 import pcma_decode, pcma_encode, pcmu_decode, pcmu_encode
from callwright.audio.resample import Resampler

PAIRS = ((24, 8), (8, 24), (24, 16), (16, 24), (16, 8), (8, 16), (48, 24))
PEAK = 16_000
FLAT_HZ = (100, 1_000, 3_000, 3_400)
STOP_HZ = (4_400, 5_000)


@dataclass(frozen=True)
class Stream:
    """One stream of a resampler: a frame in, what came out."""

    process: Callable[[PCM], PCM]
    flush: Callable[[], PCM]


@dataclass(frozen=True)
class Kind:
    """A resampler to measure; ``start`` takes the two rates in Hz."""

    name: str
    start: Callable[[int, int], Stream]


def ours(from_hz: int, to_hz: int) -> Stream:
    """A stream of this library."""
    resampler = Resampler(from_hz, to_hz)
    return Stream(resampler.process, resampler.flush)


def kinds() -> list[Kind]:
    """Ours, and what else is installed."""
    found = [Kind("callwright", ours)]
    try:
        soxr = importlib.import_module("soxr")
    except ImportError:
        pass
    else:

        def soxr_stream(from_hz: int, to_hz: int) -> Stream:
            stream = soxr.ResampleStream(from_hz, to_hz, 1, dtype="int16", quality="HQ")
            return Stream(stream.resample_chunk, lambda: stream.resample_chunk(np.zeros(0, np.int16), last=True))

        found.append(Kind("soxr HQ", soxr_stream))
    try:
        signal = importlib.import_module("scipy.signal")
    except ImportError:
        pass
    else:

        def scipy_stream(from_hz: int, to_hz: int) -> Stream:
            def process(frame: PCM) -> PCM:
                out = signal.resample_poly(frame.astype(np.float64), to_hz // 1000, from_hz // 1000)
                return np.rint(out).clip(-32768, 32767).astype(np.int16)

            return Stream(process, lambda: np.zeros(0, np.int16))

        found.append(Kind("scipy/chunk", scipy_stream))
    return found


def tone(hz: float, rate_hz: int, seconds: float = 2.0) -> PCM:
    """A sine of `PEAK`, starting at phase 0 (int16, mono)."""
    return np.rint(PEAK * np.sin(2 * np.pi * hz / rate_hz * np.arange(int(rate_hz * seconds)))).astype(np.int16)


def run(kind: Kind, from_hz: int, to_hz: int, samples: PCM) -> tuple[PCM, float]:
    """All output for frames of 20 ms, and how many ms of it came only with the flush."""
    stream = kind.start(from_hz, to_hz)
    frame = from_hz // 50
    pieces = [stream.process(samples[at : at + frame]) for at in range(0, len(samples), frame)]
    before = sum(map(len, pieces))
    tail = stream.flush()
    return np.concatenate((*pieces, tail)), (len(samples) * to_hz / from_hz - before) * 1000 / to_hz


def fit(samples: PCM, hz: float, rate_hz: int) -> tuple[float, float, float]:
    """Amplitude, phase (radians at the first sample) and RMS of the rest, for the middle second."""
    start = rate_hz // 2
    at = np.arange(start, start + rate_hz)
    basis = np.stack((np.sin(2 * np.pi * hz / rate_hz * at), np.cos(2 * np.pi * hz / rate_hz * at)), axis=1)
    middle = samples[start : start + rate_hz].astype(np.float64)
    weights = np.linalg.lstsq(basis, middle, rcond=None)[0]
    rest = middle - basis @ weights
    return float(np.hypot(*weights)), float(np.arctan2(weights[1], weights[0])), float(np.sqrt(np.mean(rest**2)))


def db(ratio: float) -> float:
    """Decibels of a ratio of amplitudes."""
    return float(20 * np.log10(max(ratio, 1e-7)))


def stop_band(kind: Kind, from_hz: int, to_hz: int) -> list[float]:
    """Down to 8 kHz: what is left of a tone that 8 kHz cannot hold. Up: all that is beside 3.4 kHz."""
    if to_hz == 8_000:
        outs = [run(kind, from_hz, to_hz, tone(hz, from_hz))[0][to_hz // 2 : -to_hz // 2] for hz in STOP_HZ]
        return [db(float(np.sqrt(np.mean(out.astype(np.float64) ** 2)) * 2**0.5 / PEAK)) for out in outs]
    amplitude, _, rest = fit(run(kind, from_hz, to_hz, tone(3_400, from_hz))[0], 3_400, to_hz)
    return [db(rest * 2**0.5 / amplitude)]


def micros(call: Callable[[], object]) -> float:
    """The least time of one call, in microseconds."""
    return min(timeit.repeat(call, number=200, repeat=200)) / 200 * 1e6


def row(kind: Kind, from_hz: int, to_hz: int) -> str:
    """One line of the table."""
    gains = [db(fit(run(kind, from_hz, to_hz, tone(hz, from_hz))[0], hz, to_hz)[0] / PEAK) for hz in FLAT_HZ]
    _, _, rest = fit(run(kind, from_hz, to_hz, tone(1_000, from_hz))[0], 1_000, to_hz)
    out, held_ms = run(kind, from_hz, to_hz, tone(50, from_hz))
    delay_ms = -fit(out, 50, to_hz)[1] / (2 * np.pi * 50) * 1000
    stream = kind.start(from_hz, to_hz)
    frame = tone(440, from_hz, 0.02)
    flat = " ".join(f"{gain:+6.2f}" for gain in gains)
    stop = " ".join(f"{level:5.0f}" for level in stop_band(kind, from_hz, to_hz))
    sinad = -db(rest * 2**0.5 / PEAK)
    return (
        f"{kind.name:12} {from_hz // 1000:2}->{to_hz // 1000:<2} {flat}  {stop:11}  {sinad:5.0f}  "
        f"{delay_ms:5.2f} {held_ms:6.1f}  {micros(lambda: stream.process(frame)):6.1f}"
    )


def main() -> None:
    """Print the tables."""
    say = sys.stdout.write
    say("resampler    kHz    gain 100, 1000, 3000, 3400 Hz    alias        SINAD  delay  held  us/frame\n")
    for from_khz, to_khz in PAIRS:
        for kind in kinds():
            say(row(kind, from_khz * 1000, to_khz * 1000) + "\n")
    samples = tone(440, 8_000, 0.02)
    pcmu, pcma = pcmu_encode(samples), pcma_encode(samples)
    say("\nG.711, one frame of 160 samples           us\n")
    for name, call in (
        ("pcmu encode", lambda: pcmu_encode(samples)),
        ("pcmu decode", lambda: pcmu_decode(pcmu)),
        ("pcma encode", lambda: pcma_encode(samples)),
        ("pcma decode", lambda: pcma_decode(pcma)),
    ):
        say(f"{name:37} {micros(call):6.2f}\n")


if __name__ == "__main__":
    main()

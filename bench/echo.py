"""What each canceller leaves of the echo and of the caller, and what it costs, for each thing that can befall a room.

Run: ``python bench/echo.py [--rate 16000] [--only WORD] [--canceller NAME] [--lines refunds] [--seed 2]``. WebRTC's
canceller is measured beside ours where the extra ``aec`` is installed. The agent speaks for half a minute, nearly
without a pause; the caller talks over it three times (32 words), from 11 s on. Ours is tuned on the lines of the hotel
at seed 0; another app or another seed draws other lines and another noise. Columns:

- 2 s, on, after: echo return loss enhancement in dB while only the agent speaks: when it has done so for 2 s (to 4 s),
  from 8 s to 11 s, and when the caller has spoken (24.5 s to 28.5 s);
- words: how many of the caller's words the ear hears, of those that it hears through the same canceller while the agent
  is silent: WebRTC's is 13 ms late and moves phases, which by itself costs words at an ear that compares waveforms;
- voice: for how many of the 15 s in which only the agent speaks a voice is heard; a server takes it for the caller's;
- hidden: how much of the caller's voice comes out more than 6 dB softer than through the same canceller while the agent
  is silent, in percent of the frames of 20 ms in which he is within 20 dB of his loudest;
- delay, drift: what the canceller reports at the end, in ms and ppm;
- us: CPU microseconds per 20 ms, in the cheapest second of 3 to 10 s. Run it alone on a quiet machine.

A clock that is ``ppm`` fast is the loudspeaker's. A clipped loudspeaker cuts off what is above that part of the agent's
peak. Echoes come from the rooms of the simulator.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import importlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from random import Random

import numpy as np
from earshot import Detector

from callwright.audio.echo import Canceller, NoCanceller
from callwright.audio.echo_kalman import KalmanCanceller
from callwright.audio.formats import PCM
from callwright.audio.levels import window_rms
from callwright.audio.resample import resample
from callwright.sim.ear import Ear
from callwright.sim.room.responses import DRY, ROOMS, load_response
from callwright.sim.speech import RATE_HZ, Speech

SECONDS = 30
AGENT_ONLY_S = (0.3, 10.9), (24.5, 28.9)
WINDOW = 256
ALONE_S = (2.3, 4.3), (8.0, 11.0), (24.5, 28.5)
PAUSE_S = 0.25
"""Between two lines of the agent."""
CALLER_MS_MAX = 4_000
"""A drawn line of the caller is over before his next one."""


@dataclass(frozen=True)
class Script:
    """Who says which lines of an app."""

    app: str
    seed: int
    agent: tuple[str, ...]
    caller: tuple[str, ...]

    @property
    def bank(self) -> Speech:
        """The recorded lines."""
        return recorded(self.app)


TUNED_ON = Script(
    "hotel",
    0,
    ("greeting", "check-in-deposit", "check-in-early", "check-in-wifi", "booking-okafor", "parking", "goodbye"),
    ("ask-parking", "ask-pool", "look-up-okafor"),
)


@cache
def recorded(app: str) -> Speech:
    """The lines of an app."""
    return Speech.load(files("callwright.apps") / app / "speech")


@cache
def ear(app: str) -> Ear:
    """Knows the lines of an app."""
    return Ear(recorded(app).values())


def drawn(app: str, seed: int) -> Script:
    """Half a minute of the agent's lines, and three of the caller's."""
    if (app, seed) == (TUNED_ON.app, TUNED_ON.seed):
        return TUNED_ON
    bank, random = recorded(app), Random(seed)
    agent = [name for name, line in bank.items() if line.kind == "agent"]
    caller = [name for name, line in bank.items() if line.kind == "caller" and line.ms <= CALLER_MS_MAX]
    spoken_s, lines = 0.0, list[str]()
    for name in random.sample(agent, len(agent)):
        if spoken_s < SECONDS:
            spoken_s += bank[name].ms / 1000 + PAUSE_S
            lines.append(name)
    return Script(app, seed, tuple(lines), tuple(random.sample(caller, 3)))


@dataclass(frozen=True)
class Scene:
    """One condition; an echo of 30 %, 40 ms late, in the living room, unless it says otherwise."""

    name: str
    room: str = "living-room"
    gain: float = 0.3
    delay_ms: int = 40
    moves: tuple[tuple[float, int], ...] = ()
    """From when on (s) the delay is another (ms)."""
    ppm: int = 0
    clip: float = 1.0
    caller_db: int = 0
    caller_at_s: tuple[float, ...] = (11.0, 15.0, 20.0)
    noise_dbfs: int = -70


SCENES = [
    *(Scene(f"room: {room}", room) for room in ROOMS),
    *(Scene(f"gain {gain:.0%}", gain=gain) for gain in (0.05, 0.15, 0.5)),
    *(Scene(f"delay {delay_ms} ms", delay_ms=delay_ms) for delay_ms in (0, 200, 450)),
    *(Scene(f"drift {ppm} ppm", ppm=ppm) for ppm in (50, 100, 200, -200)),
    Scene("clipped at 1/2", clip=0.5),
    Scene("clipped at 1/4", clip=0.25),
    Scene("delay moves", moves=((6.0, 70), (18.5, 55))),
    Scene("caller 12 dB softer, gain 50%", gain=0.5, caller_db=-12),
    Scene("caller talks at once", caller_at_s=(0.6, 11.0, 15.0)),
    Scene("noise at -50 dBFS", noise_dbfs=-50),
    Scene("200 ppm, 200 ms, clipped, kitchen", "kitchen", ppm=200, delay_ms=200, clip=0.5),
    Scene("no echo", DRY, gain=0.0),
    Scene("no echo, caller talks at once", DRY, gain=0.0, caller_at_s=(0.6, 11.0, 15.0)),
    Scene("no echo, caller 12 dB softer", DRY, gain=0.0, caller_db=-12),
]


@dataclass(frozen=True)
class Sound:
    """A scene as samples: what is played, what the microphone brings, and what it is made of (float)."""

    far: PCM
    near: PCM
    echo: np.ndarray
    caller: np.ndarray


def as_pcm(samples: np.ndarray) -> PCM:
    """Int16 samples, clipped at full scale."""
    return np.rint(samples).clip(-32768, 32767).astype(np.int16)


def spoken(bank: Speech, ids: tuple[str, ...], at_s: tuple[float, ...], rate_hz: int) -> np.ndarray:
    """Recorded lines, each from its time on."""
    out = np.zeros(SECONDS * rate_hz)
    for line, start_s in zip(ids, at_s, strict=True):
        samples = resample(bank[line].pcm, RATE_HZ, rate_hz)
        start = int(start_s * rate_hz)
        out[start : start + len(samples)] += samples[: max(0, len(out) - start)]
    return out


def drifted(samples: np.ndarray, ppm: float) -> np.ndarray:
    """The samples as a clock plays them that is so much fast."""
    if not ppm:
        return samples
    dense = np.fft.irfft(np.fft.rfft(samples), 8 * len(samples)) * 8
    return np.interp(np.arange(len(samples)) * (1 + ppm * 1e-6) * 8, np.arange(len(dense)), dense)


def ringing(samples: np.ndarray, response: np.ndarray) -> np.ndarray:
    """The samples in a room."""
    size = 1 << (len(samples) + len(response)).bit_length()
    return np.fft.irfft(np.fft.rfft(samples, size) * np.fft.rfft(response, size), size)[: len(samples)]


def delayed(samples: np.ndarray, scene: Scene, rate_hz: int) -> np.ndarray:
    """The samples late by the scene's delays."""
    out = np.zeros(len(samples))
    changes = [(0.0, scene.delay_ms), *scene.moves, (float(SECONDS), 0)]
    for (from_s, delay_ms), (to_s, _) in pairwise(changes):
        at = np.arange(int(from_s * rate_hz), int(to_s * rate_hz))
        source = at - delay_ms * rate_hz // 1000
        out[at] = np.where(source >= 0, samples[source], 0.0)
    return out


@cache
def sound(scene: Scene, script: Script, rate_hz: int) -> Sound:
    """Plays a scene."""
    lengths = [script.bank[line].ms / 1000 + PAUSE_S for line in script.agent]
    starts = tuple(0.3 + sum(lengths[:i]) for i in range(len(lengths)))
    far = spoken(script.bank, script.agent, starts, rate_hz)
    response = load_response(scene.room, rate_hz)
    top = scene.clip * np.abs(far).max()
    played = drifted(far, scene.ppm).clip(-top, top)
    echo = delayed(ringing(played, response.loudspeaker), scene, rate_hz) * scene.gain
    mouth = spoken(script.bank, script.caller, scene.caller_at_s, rate_hz)
    caller = ringing(mouth, response.mouth) * 10 ** (scene.caller_db / 20)
    noise = np.random.default_rng(1 + script.seed).normal(0, 32768 * 10 ** (scene.noise_dbfs / 20), len(far))
    return Sound(as_pcm(far), as_pcm(echo + caller + noise), echo, caller)


def words(samples: PCM, script: Script, rate_hz: int) -> set[tuple[str, int]]:
    """The caller's words that the ear hears, each with the second it comes in."""
    heard = ear(script.app).listen(resample(samples, rate_hz, RATE_HZ), RATE_HZ)
    return {(word.text, word.start_ms // 1000) for word in heard if word.line_id in script.caller}


def voiced_s(samples: PCM, rate_hz: int) -> float:
    """For how long a voice is detected while only the agent speaks."""
    detector, narrow = Detector(), resample(samples, rate_hz, RATE_HZ)
    starts = range(0, len(narrow) - WINDOW + 1, WINDOW)
    voiced = [start / RATE_HZ for start in starts if detector.predict_i16(narrow[start : start + WINDOW]) >= 0.5]
    return sum(any(from_s <= at_s < to_s for from_s, to_s in AGENT_ONLY_S) for at_s in voiced) * WINDOW / RATE_HZ


def hidden(out: PCM, alone: PCM, rate_hz: int) -> float:
    """The part of the caller's frames, 0 to 1, that come out more than 6 dB softer than with a silent agent."""
    said, heard = (window_rms(samples, rate_hz // 50) for samples in (alone, out))
    loud = said > said.max() / 10
    return float(np.mean(heard[loud] < said[loud] / 2))


def below_db(loud: np.ndarray, soft: np.ndarray, span_s: tuple[float, float], rate_hz: int) -> float:
    """How much softer the second is, over a span."""
    span = slice(*(int(at_s * rate_hz) for at_s in span_s))
    return float(10 * np.log10(((loud[span] ** 2).sum() + 1) / ((soft[span] ** 2).sum() + 1)))


def run(canceller: Canceller, played: Sound, rate_hz: int) -> tuple[PCM, float]:
    """What comes out for frames of 20 ms, and the microseconds a frame."""
    out, costs = list[PCM](), []
    frame = rate_hz // 50
    for second in range(SECONDS):
        begun = time.process_time()
        out += [
            canceller.process(played.near[at : at + frame], played.far[at : at + frame])
            for at in range(second * rate_hz, (second + 1) * rate_hz, frame)
        ]
        costs.append((time.process_time() - begun) / 50 * 1e6)
    return np.concatenate(out), min(costs[3:10])


def row(scene: Scene, script: Script, make: Callable[[int], Canceller], rate_hz: int) -> str:
    """One line of the table."""
    played = sound(scene, script, rate_hz)
    canceller = make(rate_hz)
    out, cost_us = run(canceller, played, rate_hz)
    rest = out - played.caller
    erle = [f"{below_db(played.echo, rest, span, rate_hz):5.1f}" if scene.gain else "    -" for span in ALONE_S]
    if scene.caller_at_s[0] < ALONE_S[0][1]:
        erle[0] = "    -"
    alone = make(rate_hz).process(as_pcm(played.caller), np.zeros_like(played.far))
    there, kept = words(alone, script, rate_hz), words(out, script, rate_hz)
    voice = f"{voiced_s(out, rate_hz):5.2f}" if scene.caller_at_s[0] > AGENT_ONLY_S[0][1] else "    -"
    report = canceller.report
    said = "    -      -" if report.delay_ms is None else f"{report.delay_ms:5} {report.drift_ppm:6}"
    lost = hidden(out, alone, rate_hz)
    return f"{' '.join(erle)}  {len(kept & there):3}/{len(there):<3} {voice} {lost:6.1%} {said} {cost_us:5.0f}"


def cancellers() -> Iterator[tuple[str, Callable[[int], Canceller]]]:
    """None, ours, and WebRTC's where it is installed."""
    yield "none", lambda _: NoCanceller()
    yield "kalman", KalmanCanceller
    try:
        yield "aec3", importlib.import_module("callwright.lines.aec3").Aec3Canceller
    except ImportError:
        print("aec3: not installed (the extra `aec`)")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=int, default=24_000)
    parser.add_argument("--only", default="", help="a part of the scenes' names")
    parser.add_argument("--canceller", default="", help="none, kalman or aec3")
    parser.add_argument("--lines", default=TUNED_ON.app, help="hotel or refunds")
    parser.add_argument("--seed", type=int, default=TUNED_ON.seed, help="draws the lines and the noise")
    asked = parser.parse_args()
    script = drawn(asked.lines, asked.seed)
    found = [(name, make) for name, make in cancellers() if asked.canceller in name]
    print(f"{'scene':34} canceller   2 s    on after    words voice hidden delay  drift    us")
    for scene in SCENES:
        for name, make in found:
            if asked.only in scene.name:
                print(f"{scene.name:34} {name:9} {row(scene, script, make, asked.rate)}", flush=True)


if __name__ == "__main__":
    main()

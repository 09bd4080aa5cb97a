"""Renders recorded lines, with the times of their words, from a list of texts.

    python scripts/render_speech.py src/callwright/apps/hotel/speech.yaml

writes ``speech/`` beside ``speech.yaml``: one WAV file a line (16 kHz, mono, G.711 μ-law) and the index
``speech.json``. The same list gives the same bytes. Only who changes a text needs this script; it calls the C library
of flite 2.2:

    apt-get install flite1-dev        (Debian and Ubuntu)
    brew install flite                (macOS)

The list holds ``voices`` (flite's, by the name that is used here) and ``lines``, each with ``id``, ``voice``, ``kind``,
``text`` and, only where the engine would misread the text, ``say``, which has as many words.
Every line is trimmed to at most 20 ms of silence at both ends, and has a level of -20 dBFS rms while it speaks.
"""

from __future__ import annotations

import argparse
import ctypes
import ctypes.util
import json
import re
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from callwright.audio.g711 import pcmu_encode
from callwright.errors import UsageError
from callwright.sim.speech import Kind
from callwright.sim.yamlfile import read_yaml

RATE_HZ = 16_000
EDGE_MS = 12
"""Silence kept at both ends."""
LEVEL_DBFS = -20.0
PEAK_DBFS = -3.1
FRAME = RATE_HZ // 200
"""5 ms: the step in which speech is looked for at the ends."""
SPEECH_BELOW_PEAK_DB = 40
PACE = 1.1
"""Slower than the voices' own pace, so that the shortest words are long enough to tell apart."""
SHORTEST_WORD_MS = 60
"""A shorter one ("a") takes half of what is missing from the word before and half from the one after it."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Spoken:
    """What an engine says: samples (float64, 16 kHz, full scale 1.0) and the start and end of each word, in s."""

    samples: Floats
    words: list[tuple[float, float]]


class _Relation(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("features", ctypes.c_void_p), ("utterance", ctypes.c_void_p),
                ("head", ctypes.c_void_p), ("tail", ctypes.c_void_p))  # fmt: skip


class _Wave(ctypes.Structure):
    _fields_ = (("type", ctypes.c_char_p), ("rate", ctypes.c_int), ("count", ctypes.c_int),
                ("channels", ctypes.c_int), ("samples", ctypes.POINTER(ctypes.c_short)))  # fmt: skip


class _Voice(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("features", ctypes.c_void_p))


class Flite:
    """The part of flite's C library that speaks a text and tells when each of its words is spoken."""

    def __init__(self) -> None:
        self._flite = self._library("flite")
        for name in ("flite_usenglish", "flite_cmulex"):
            self._library(name)
        self._flite.flite_init()
        self._voices: dict[str, int] = {}

    @staticmethod
    def _library(name: str) -> ctypes.CDLL:
        path = ctypes.util.find_library(name)
        if path is None:
            raise UsageError(f"the library of flite is not installed, or has no lib{name}; see --help")
        return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)

    def _call(self, name: str, result: Any, *arguments: Any) -> Any:
        function = getattr(self._flite, name)
        function.restype = result
        function.argtypes = [ctypes.c_char_p if isinstance(a, bytes) else ctypes.c_void_p for a in arguments]
        return function(*arguments)

    def _item(self, name: str, *arguments: Any) -> Any:
        return self._call(name, ctypes.c_void_p, *arguments)

    def _voice(self, name: str) -> int:
        if name not in self._voices:
            register = getattr(self._library(f"flite_cmu_us_{name}"), f"register_cmu_us_{name}")
            register.restype, register.argtypes = ctypes.POINTER(_Voice), [ctypes.c_void_p]
            voice = register(None)
            set_float = self._flite.feat_set_float
            set_float.restype, set_float.argtypes = None, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_float]
            set_float(voice.contents.features, b"duration_stretch", PACE)
            self._voices[name] = ctypes.cast(voice, ctypes.c_void_p).value or 0
        return self._voices[name]

    def _segment(self, word: int, step: str) -> int:
        """The first or last sound of a word; `step` is ``item_daughter`` or ``item_last_daughter``."""
        syllable = self._item(step, self._item("item_as", word, b"SylStructure"))
        return int(self._item("item_as", self._item(step, syllable), b"Segment"))

    def _end_s(self, segment: int | None) -> float:
        return float(self._call("ffeature_float", ctypes.c_float, segment, b"end")) if segment else 0.0

    def speak(self, text: str, voice: str) -> Spoken:
        """Speaks `text`; one span a whitespace-separated word of it, from its first to its last sound."""
        utterance = self._item("flite_synth_text", text.encode(), self._voice(voice))
        words = []
        token = _Relation.from_address(self._item("utt_relation", utterance, b"Token")).head
        while token:
            first = self._segment(self._item("item_daughter", token), "item_daughter")
            last = self._segment(self._item("item_last_daughter", token), "item_last_daughter")
            words.append((self._end_s(self._item("item_prev", first)), self._end_s(last)))
            token = self._item("item_next", token)
        wave = _Wave.from_address(self._item("utt_wave", utterance))
        if wave.rate != RATE_HZ:
            raise UsageError(f"voice {voice} speaks at {wave.rate} Hz, not at {RATE_HZ}")
        samples = np.ctypeslib.as_array(wave.samples, (wave.count,)).astype(np.float64) / 32768
        self._call("delete_utterance", None, utterance)
        return Spoken(samples, words)


def trimmed(spoken: Spoken) -> Spoken:
    """Cuts the silence before the first and after the last sound down to `EDGE_MS`."""
    frames = spoken.samples[: len(spoken.samples) // FRAME * FRAME].reshape(-1, FRAME)
    power = (frames**2).mean(axis=1)
    loud = np.flatnonzero(power > power.max() * 10 ** (-SPEECH_BELOW_PEAK_DB / 10))
    edge = EDGE_MS * RATE_HZ // 1000
    first, final = round(spoken.words[0][0] * RATE_HZ), round(spoken.words[-1][1] * RATE_HZ)
    begin = max(0, int(loud[0]) * FRAME - edge, first - edge)
    end = min(len(spoken.samples), int(loud[-1] + 1) * FRAME + edge, final + edge)
    last = (end - begin) / RATE_HZ
    words = [(max(0.0, a - begin / RATE_HZ), min(last, b - begin / RATE_HZ)) for a, b in spoken.words]
    return Spoken(spoken.samples[begin:end], words)


def widened(words: list[tuple[float, float]]) -> list[list[int]]:
    """Word times in whole ms, none shorter than `SHORTEST_WORD_MS`."""
    spans = [[round(a * 1000), round(b * 1000)] for a, b in words]
    for i, span in enumerate(spans):
        missing = SHORTEST_WORD_MS - (span[1] - span[0])
        if missing > 0:
            span[0], span[1] = span[0] - (missing + 1) // 2, span[1] + (missing + 1) // 2
            if i:
                spans[i - 1][1] = min(spans[i - 1][1], span[0])
            if i + 1 < len(spans):
                spans[i + 1][0] = max(spans[i + 1][0], span[1])
    return spans


def levelled(samples: Floats) -> np.ndarray[Any, np.dtype[np.int16]]:
    """Brings the level while speaking to `LEVEL_DBFS`, or the peak to `PEAK_DBFS` where that comes first."""
    frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
    power = (frames**2).mean(axis=1)
    active = power[power > power.max() * 10 ** (-SPEECH_BELOW_PEAK_DB / 10)].mean()
    gain = min(10 ** (LEVEL_DBFS / 20) / np.sqrt(active), 10 ** (PEAK_DBFS / 20) / np.abs(samples).max())
    return np.round(samples * gain * 32768).astype(np.int16)


def wav(pcm: np.ndarray[Any, np.dtype[np.int16]]) -> bytes:
    """A WAV file (16 kHz, mono, format 7: G.711 μ-law) of int16 samples."""
    data = bytes(pcmu_encode(pcm))
    layout = struct.pack("<HHIIHHH", 7, 1, RATE_HZ, RATE_HZ, 1, 8, 0)
    chunks = [(b"fmt ", layout), (b"fact", struct.pack("<I", len(data))), (b"data", data)]
    body = b"".join(name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)
                    for name, content in chunks)  # fmt: skip
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WAVE" + body


def plan(source: Path) -> dict[str, dict[str, str]]:
    """Reads a list of texts: what is known of each line, by id; ``engine`` is flite's voice. Raises ScenarioError."""
    parts = read_yaml(source).mapping(("voices", "lines"), required=("voices", "lines"))
    voices = {name: voice.text() for name, voice in parts["voices"].mapping().items()}
    lines: dict[str, dict[str, str]] = {}
    for entry in parts["lines"].sequence(1):
        required = ("id", "voice", "kind", "text")
        line = entry.mapping((*required, "say"), required)
        line_id = line["id"].text()
        if not re.fullmatch(r"[\w-]+", line_id):
            raise line["id"].expected("letters, digits and hyphens: the file is named by it")
        if line_id in lines:
            raise line["id"].expected("an id that no line before has")
        kind, voice = line["kind"].choice(get_args(Kind)), line["voice"].choice(voices)
        text = line["text"].text()
        say = line["say"].text() if "say" in line else text
        lines[line_id] = {"voice": voice, "kind": kind, "text": text, "say": say, "engine": voices[voice]}
    return lines


def render(source: Path, lines: dict[str, dict[str, str]], flite: Flite) -> None:
    """Writes the files of one list of texts, and removes those of lines that are gone."""
    target = source.parent / source.stem
    target.mkdir(exist_ok=True)
    index: dict[str, Any] = {}
    for line_id, line in lines.items():
        spoken = trimmed(flite.speak(line["say"], line["engine"]))
        texts = line["text"].split()
        if len(texts) != len(spoken.words):
            raise UsageError(f"{source}: {line_id}: {len(texts)} words of text, but {len(spoken.words)} are spoken")
        words = [[text, *span] for text, span in zip(texts, widened(spoken.words), strict=True)]
        pcm = levelled(spoken.samples)
        name = f"{line_id}.wav"
        (target / name).write_bytes(wav(pcm))
        index[line_id] = {
            **{key: line[key] for key in ("voice", "kind", "text")},
            "file": name, "ms": round(len(pcm) * 1000 / RATE_HZ), "words": words,
        }  # fmt: skip
    for stale in sorted(set(target.glob("*.wav")) - {target / entry["file"] for entry in index.values()}):
        stale.unlink()
    rows = (f" {json.dumps(key)}: {json.dumps(entry, ensure_ascii=False)}" for key, entry in index.items())
    (target / "speech.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
    sys.stdout.write(f"{target}: {len(index)} lines, {sum(entry['ms'] for entry in index.values()) / 1000:.1f} s\n")


def main() -> int:
    """Render the lists that the command line names. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="+", type=Path, help="a list of texts, such as speech.yaml")
    sources: list[Path] = parser.parse_args().source
    try:
        plans = {source: plan(source) for source in sources}
        flite = Flite()
        for source, lines in plans.items():
            render(source, lines, flite)
    except (UsageError, OSError) as problem:
        print(f"render_speech: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

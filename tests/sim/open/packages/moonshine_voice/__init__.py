"""Stands in for the package of this name in the processes of the senses: the ear, on the hotel's recorded lines."""

from __future__ import annotations

import enum
from types import SimpleNamespace

import numpy as np


class ModelArch(enum.Enum):
    TINY = 0


class Transcriber:
    def __init__(self, model_path: str, model_arch: ModelArch, *, options: dict[str, str]) -> None:
        assert model_path.endswith("tiny-en")
        assert model_arch is ModelArch.TINY
        assert options == {"identify_speakers": "false"}

    def transcribe_without_streaming(self, samples: list[float]) -> SimpleNamespace:
        if not any(samples):
            return SimpleNamespace(lines=[])
        from tests.sim.server.driving import ear  # takes a second to be made

        heard = ear().listen((np.array(samples) * 32_768).astype(np.int16), 16_000)
        text = " ".join(word.text for word in heard)
        return SimpleNamespace(lines=[SimpleNamespace(text=f" {text}")] if text else [])

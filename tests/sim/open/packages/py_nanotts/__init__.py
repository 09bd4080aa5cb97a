"""Stands in for the package of this name in the processes of the senses: 60 ms of a tone for each letter."""

import os

import numpy as np


class NanoTTS:
    def __init__(self) -> None:
        if "STAND_IN_IS_BROKEN" in os.environ:
            raise OSError("this machine cannot run it")

    def speak(self, text: str) -> bytes:
        if text == "nothing can be said of this":
            raise RuntimeError("the engine has failed")
        if text == "the process dies of this":
            os._exit(3)
        tone = 4_000 * np.sin(np.arange(960 * len(text)) / 20)
        return tone.astype("<i2").tobytes()

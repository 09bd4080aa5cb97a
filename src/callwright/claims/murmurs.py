"""Whether a turn of the caller's is a listener's sound and no more ("Mm-hmm"), which not every server answers."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W\d_]+")
_SOUNDS = ("m", "mm", "mmm", "mhm", "mmhm", "mmhmm", "hm", "hmm", "uh", "huh", "uhuh", "um", "ah", "oh", "eh")


def says_nothing(text: str) -> bool:
    """Whether nothing in it has to be answered: no word at all, or listeners' sounds alone."""
    return all(word in _SOUNDS for word in _WORD.findall(text.lower()))

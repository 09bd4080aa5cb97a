"""Phrases by which a simulated model knows what was said: words in any order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callwright.sim.speech import normalise

if TYPE_CHECKING:
    from callwright.sim.yamlfile import Field


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that must all occur, in any order; one that ends in ``*`` stands for every word that begins so."""

    words: tuple[str, ...]

    def fits(self, said: Sequence[str]) -> bool:
        """Whether every word of the phrase occurs in ``said``."""
        return all(any(_matches(word, heard) for heard in said) for word in self.words)


def fits_any(phrases: Sequence[Phrase], text: str) -> bool:
    """Whether one of the phrases fits the words of a tool's output or a note."""
    words = re.findall(r"\w+", text.lower())
    return any(phrase.fits(words) for phrase in phrases)


def read_phrases(field: Field) -> tuple[Phrase, ...]:
    """Read a list of at least one phrase. Raises ScenarioError."""
    return tuple(
        Phrase(tuple(normalise(word) + "*" * word.endswith("*") for word in phrase.text().split()))
        for phrase in field.sequence(1)
    )


def _matches(pattern: str, word: str) -> bool:
    return word.startswith(pattern[:-1]) if pattern.endswith("*") else word == pattern

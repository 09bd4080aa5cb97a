"""Where the arguments of a simulated model's tool call come from.

An argument is found in the words that it answers, or is always the same; a call is made only where every one is there.

```
{after: [order, for]}         the first name or number behind one of these words: "order 4417" gives 4417
{is: he needs nothing more}   always this
{key: [repair*]}              the key that a menu names with one of these phrases: "For repairs, press two." gives 2
{quotes: turn}                all that was said, as it was written down
```
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Protocol

from callwright.claims.presses import KEY_NAMED
from callwright.sim.rules.phrases import Phrase, read_phrases
from callwright.sim.speech import normalise

if TYPE_CHECKING:
    from callwright.sim.yamlfile import Field

_SENTENCE = re.compile(r"[^.!?]+")


class Source(Protocol):
    """Where one argument comes from."""

    def find(self, said: str, before: Sequence[str]) -> str | None:
        """The argument in what was ``said``, or in the turns ``before``, the latest first; None where it is not."""


@dataclass(frozen=True, slots=True)
class Behind:
    """The first name or number (no small first letter) behind one of some words."""

    cues: tuple[str, ...]
    is_remembered: bool = False
    """It may have been said in an earlier turn."""

    def find(self, said: str, before: Sequence[str]) -> str | None:
        """See `Source.find`."""
        turns = (said, *before) if self.is_remembered else (said,)
        value = next(chain.from_iterable(map(self._in, turns)), None)
        return value and value.strip(".,;:!?")

    def _in(self, said: str) -> Iterator[str]:
        words = pairwise(said.split())
        return (word for cue, word in words if normalise(cue) in self.cues and not word[0].islower())


@dataclass(frozen=True, slots=True)
class Constant:
    """The same in every call."""

    text: str

    def find(self, said: str, before: Sequence[str]) -> str | None:
        """See `Source.find`."""
        return self.text


@dataclass(frozen=True, slots=True)
class Quote:
    """What was said, whole."""

    def find(self, said: str, before: Sequence[str]) -> str | None:
        """See `Source.find`."""
        return said


@dataclass(frozen=True, slots=True)
class Key:
    """The key that a menu names in one sentence with what is wanted."""

    wanted: tuple[Phrase, ...]

    def find(self, said: str, before: Sequence[str]) -> str | None:
        """See `Source.find`."""
        return next((key for key, is_wanted in self._named(said) if is_wanted), None)

    def other(self, said: str) -> str | None:
        """The first key of the menu that stands for something else."""
        return next((key for key, is_wanted in self._named(said) if not is_wanted), None)

    def _named(self, said: str) -> Iterator[tuple[str, bool]]:
        """The keys of a menu, the last of each sentence, and whether each is for what is wanted."""
        for sentence in _SENTENCE.findall(said):
            words = [normalise(word) for word in sentence.split()]
            keys = [KEY_NAMED[word] for word in words if word in KEY_NAMED]
            if keys:
                yield keys[-1], any(phrase.fits(words) for phrase in self.wanted)


def read_sources(arguments: Mapping[str, Field]) -> dict[str, Source]:
    """Read where each argument comes from. Raises ScenarioError."""
    return {name: _source(argument) for name, argument in arguments.items()}


def _source(argument: Field) -> Source:
    parts = argument.mapping((*_READERS, "remembered"))
    kinds = [kind for kind in _READERS if kind in parts]
    if len(kinds) != 1:
        raise argument.error(f"expected exactly one of {', '.join(_READERS)}")
    if "remembered" in parts and kinds != ["after"]:
        raise parts["remembered"].error("expected it beside after alone")
    return _READERS[kinds[0]](parts)


def _behind(parts: Mapping[str, Field]) -> Source:
    cues = tuple(normalise(word.text()) for word in parts["after"].sequence(1))
    return Behind(cues, "remembered" in parts and parts["remembered"].flag())


def _quote(parts: Mapping[str, Field]) -> Source:
    parts["quotes"].choice(("turn",))
    return Quote()


_READERS: Mapping[str, Callable[[Mapping[str, Field]], Source]] = {
    "after": _behind,
    "is": lambda parts: Constant(parts["is"].text()),
    "key": lambda parts: Key(read_phrases(parts["key"])),
    "quotes": _quote,
}

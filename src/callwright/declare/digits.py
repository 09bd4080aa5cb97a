"""A number that a caller dictates, as an argument: how many digits it has, checked before anything is run.

Callers pause between groups of digits, and a model calls with what it has so far. Half a number is refused here, in
words that tell the model to wait or to ask.

```
caller   "4 1 7"  1.2 s  "8 8 2"  1.0 s  "0 9"
model    look_up("417")  refused: 3 of 8 digits        look_up("417 882 09")  runs with "41788209"
```
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from callwright.errors import UsageError

_BETWEEN = re.compile(r"(?<=[0-9])[ .\-]+(?=[0-9])")


@dataclass(frozen=True, slots=True)
class Digits:
    """Beside a str in ``Annotated[str, Digits(8)]``: a number of so many digits, or of ``least`` to ``most``.

    Its function gets the digits alone, without the blanks, dots and hyphens that divide them.

    Raises:
        ValueError: no number has so many digits.
    """

    least: int
    most: int | None = None
    """As ``least`` where it is not given."""

    def __post_init__(self) -> None:
        if not 0 < self.least <= self.longest:
            raise ValueError(f"a number has one digit or more, and at most as many as its most, not {self}")

    @property
    def longest(self) -> int:
        """How many digits it has at most."""
        return self.least if self.most is None else self.most

    def __str__(self) -> str:
        """For a description: ``8 digits``, ``10 to 11 digits``."""
        many = f"{self.least}" if self.least == self.longest else f"{self.least} to {self.longest}"
        return f"{many} digit{'' if many == '1' else 's'}"

    def problem(self, name: str, digits: str) -> str:
        """What the model is told where an argument is no such number; empty where it is one. It quotes no digit."""
        if not re.fullmatch("[0-9]+", digits):
            return f"{name} is to be {self}, in figures and nothing else; nothing was done"
        if len(digits) < self.least:
            return (
                f"{name} is incomplete: it has {len(digits)} of {self}, so nothing was done. The caller may only have "
                "paused: ask for the rest, join it to what you have, and call again with the whole number"
            )
        if len(digits) > self.longest:
            return f"{name} has {len(digits)} digits, and is to be {self}; nothing was done. Ask for it again"
        return ""


def checked(arguments: Mapping[str, Any], numbers: Mapping[str, Digits]) -> dict[str, Any]:
    """Arguments whose numbers are digits alone. Raises UsageError, worded for the model, where one does not fit."""
    given = dict(arguments)
    for name, digits in numbers.items():
        if (value := given[name]) is None:
            continue
        given[name] = _BETWEEN.sub("", value.strip())
        if problem := digits.problem(name, given[name]):
            raise UsageError(problem)
    return given

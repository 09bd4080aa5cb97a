"""When the stand-in provider's faults happen: it owns their chances, and counts how often each one did.

Each fault has random numbers of its own, so that another one more or less moves none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from callwright.sim.provider.settings import FAULTS, NOTED
from callwright.sim.seeds import stream

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from callwright.ids import Ms
    from callwright.sim.provider.settings import Fault


class Faults:
    """The faults of one provider. From ``until_ms`` on none happens any more."""

    def __init__(self, rates: Mapping[str, Fault], seed: int, until_ms: Ms | None = None) -> None:
        self.fired: dict[str, int] = dict.fromkeys([*FAULTS, *NOTED], 0)
        """How often each fault happened, and how often what is only noted did."""
        self._rates = rates
        self._seed = seed
        self._until_ms = until_ms
        self._chances: dict[str, Random] = {}

    def happens(self, name: str, now_ms: Ms) -> bool:
        """Whether a fault happens on this occasion; it is counted if so."""
        fault = self._rates.get(name)
        if fault is None or (self._until_ms is not None and now_ms >= self._until_ms):
            return False
        if fault.times is not None and self.fired[name] >= fault.times:
            return False
        if self._chance(name).random() >= fault.rate:
            return False
        self.fired[name] += 1
        return True

    def note(self, name: str) -> None:
        """Count what is only noted."""
        self.fired[name] += 1

    def between(self, name: str, low_high: tuple[int, int]) -> int:
        """A number for a fault, such as a length of time; both ends are included."""
        return self._chance(name).randint(*low_high)

    def coin(self, name: str) -> bool:
        """One of two ways in which a fault shows."""
        return self._chance(name).random() < 0.5

    def _chance(self, name: str) -> Random:
        if name not in self._chances:
            self._chances[name] = stream(self._seed, f"provider/{name}")
        return self._chances[name]

"""The ear: which words of known recorded lines are in a stretch of samples. See `Ear`."""

from callwright.sim.ear.ear import Ear, HeardWord, Placement

__all__ = ["Ear", "HeardWord", "Placement"]

"""The naive clients that claims are compared with, by name: how realtime agents are usually written."""

from collections.abc import Callable, Mapping
from functools import partial

from callwright.sim.baselines.habits import HABITS
from callwright.sim.baselines.naive import NaiveClient

BASELINES: Mapping[str, Callable[..., NaiveClient]] = {
    name: partial(NaiveClient, name, habits) for name, habits in HABITS.items()
}
"""Clients by the name that the command line and scenarios use.

Each takes agent and line, and ``deps``, ``party`` and ``provider`` by name.
"""

__all__ = ["BASELINES", "HABITS", "NaiveClient"]

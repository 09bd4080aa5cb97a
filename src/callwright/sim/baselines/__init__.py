"""The naive clients that claims are compared with, by name: how realtime agents are usually written."""

from callwright.sim.baselines.naive import NaiveClient

BASELINES = {"naive": NaiveClient}
"""Clients by the name that the command line and scenarios use."""

__all__ = ["BASELINES", "NaiveClient"]

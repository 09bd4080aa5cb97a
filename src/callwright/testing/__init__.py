"""The public test kit: a strict scripted model, suites that any line or connection must pass, and virtual time."""

from callwright.sim.server.memory import MemoryConnector
from callwright.sim.vloop import run_virtual
from callwright.testing.connections import check_connector, check_websocket
from callwright.testing.lines import check_line
from callwright.testing.scripted import ScriptedModel, after, close, emit, expect

__all__ = [
    "MemoryConnector",
    "ScriptedModel",
    "after",
    "check_connector",
    "check_line",
    "check_websocket",
    "close",
    "emit",
    "expect",
    "run_virtual",
]

"""The public test kit: a scripted model, suites for what is written to the interfaces, virtual time, and replay."""

from callwright.sim.server.memory import MemoryConnector
from callwright.sim.vloop import run_virtual
from callwright.testing.connections import check_connector, check_websocket
from callwright.testing.lines import check_line
from callwright.testing.providers import ProviderSamples, check_adapter
from callwright.testing.replaying import replay_trace
from callwright.testing.scripted import ScriptedModel, after, close, emit, expect
from callwright.testing.stores import check_store
from callwright.testing.voices import check_voice

__all__ = [
    "MemoryConnector",
    "ProviderSamples",
    "ScriptedModel",
    "after",
    "check_adapter",
    "check_connector",
    "check_line",
    "check_store",
    "check_voice",
    "check_websocket",
    "close",
    "emit",
    "expect",
    "replay_trace",
    "run_virtual",
]

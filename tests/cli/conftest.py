"""Commands that run in this process play each call once, however many tests ask for it.

The same scenario, seed, client and options give the same record, byte for byte; that they do is tested where calls are
played (``tests/sim/test_world.py``), and here with commands in processes of their own.
"""

from __future__ import annotations

import pytest

from callwright.cli import playing
from callwright.sim.record import CallRecord
from callwright.sim.scenario import Scenario
from callwright.sim.world import Options, play

_PLAYED: dict[tuple[str, bytes], CallRecord] = {}


def _play_once(scenario: Scenario, seed: int, *, client: str, options: Options) -> CallRecord:
    key = repr((scenario, seed, client, options)), scenario.rules.read_bytes()
    if key not in _PLAYED:
        _PLAYED[key] = play(scenario, seed, client=client, options=options)
    return _PLAYED[key]


@pytest.fixture(autouse=True)
def _calls_are_played_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "play", _play_once)

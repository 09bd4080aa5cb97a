"""``--real-time``: the same commands by the wall clock."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tests.cli.calling import HOTEL, callwright

SCENARIO = """
scenario: gone
about: the caller hangs up before he has said anything
agent: callwright.apps.hotel:desk
line: {kind: phone}
model: {rules: RULES}
expect: {not_heard: [parking]}
caller:
  - {when: pickup + 800 ms, does: hang_up}
"""


@pytest.fixture
def gone(tmp_path: Path) -> Path:
    path = tmp_path / "gone.yaml"
    path.write_text(SCENARIO.replace("RULES", str(HOTEL / "hotel.model.yaml")), "utf-8")
    return path


def test_a_call_takes_its_time_and_its_figures_say_so(gone: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    result = callwright("call", gone, "--real-time", "--json", "--out", tmp_path)
    assert time.monotonic() - began >= 0.8
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["settings"] == {"real_time": True}


def test_a_batch_in_real_time_is_played_again_in_real_time(gone: Path) -> None:
    gone.write_text(gone.read_text("utf-8").replace("not_heard:", "heard:"), "utf-8")
    result = callwright("measure", gone, "--real-time", columns=200)
    assert result.exit_code == 1
    assert f"callwright call {gone} --seed 1 --real-time" in result.stderr


def test_the_demo_plays_both_clients_at_the_same_time(gone: Path, tmp_path: Path) -> None:
    """One after the other they would take twice as long as one."""
    callwright("demo", gone, "--out", tmp_path)  # loads what is loaded once
    began = time.monotonic()
    callwright("call", gone, "--real-time", "--out", tmp_path)
    one_s = time.monotonic() - began
    result = callwright("demo", gone, "--real-time", "--out", tmp_path)
    assert one_s >= 0.8
    assert time.monotonic() - began - one_s < 1.8 * one_s
    assert result.exit_code == 0, result.output
    assert "naive" in result.stdout
    assert {path.name for path in tmp_path.iterdir()} >= {
        "gone-naive-lag-ms-1500-real-time-1",
        "gone-callwright-lag-ms-1500-real-time-1",
    }

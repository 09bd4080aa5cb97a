"""Two processes with one file on a real disk want the same at the same time: it is done once.

The provider remembers no key, so only the ledger stands between two wishes and two effects. The control shows that the
race would find them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def race(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "bench" / "race.py"), "--at", str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_two_processes_that_race_for_one_order_make_one_operation_and_one_effect(tmp_path):
    raced = race(tmp_path, "--rounds", "20", "--waiting", "4")
    assert raced.returncode == 0, raced.stdout + raced.stderr
    assert "answers: 20 created," in raced.stdout
    assert "20 rounds, 4 left waiting: 0 not done exactly once" in raced.stdout


def test_two_processes_that_race_with_a_file_each_are_caught_doing_everything_twice(tmp_path):
    raced = race(tmp_path, "--rounds", "2", "--waiting", "1", "--apart")
    assert raced.returncode == 1, raced.stdout + raced.stderr
    assert "order:left:0: 2 requests, 2 effects" in raced.stdout
    assert "2 rounds, 1 left waiting: 3 not done exactly once" in raced.stdout

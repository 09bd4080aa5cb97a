"""A process killed for good, with a file on a real disk: the next one finds what it left, and there is one effect."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

KILLED = Path(__file__).parent / "killed.py"


def live(folder: Path, point: str) -> subprocess.CompletedProcess[str]:
    paths = [str(folder / "ledger.db"), str(folder / "book.txt")]
    return subprocess.run(
        [sys.executable, str(KILLED), *paths, point], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    "point",
    ["after advance", "before provider", "after provider", "before fold", "after fold", "before wait"],
)
def test_f26_killed_at_a_point_and_started_again_there_is_one_effect(point, tmp_path):
    assert live(tmp_path, point).returncode == -signal.SIGKILL
    last = live(tmp_path, "nowhere")
    assert (last.stdout.split(), last.returncode) == (["confirmed", "0"], 0), last.stderr
    assert len((tmp_path / "book.txt").read_text(encoding="utf-8").split()) == 1

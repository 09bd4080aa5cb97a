"""``callwright demo``: what a newcomer sees first."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.calling import callwright


@pytest.mark.parametrize("columns", [80, 120])
def test_the_demo_fits_the_terminal_and_is_plain_in_a_pipe(columns: int, tmp_path: Path) -> None:
    result = callwright("demo", "--out", tmp_path, columns=columns)
    assert result.exit_code == 0, result.output
    lines = [line for line in result.stdout.splitlines() if str(tmp_path) not in line]
    assert max(map(len, lines)) <= columns
    assert [line for line in lines if line != line.rstrip()] == []
    assert "\x1b" not in result.stdout
    assert not result.stderr


def test_the_demo_marks_what_the_naive_client_believes_and_nobody_heard(tmp_path: Path) -> None:
    naive, ours = callwright("demo", "--out", tmp_path, columns=120).stdout.split("\ncallwright  ")
    assert "[of one hundred dollars" in naive.replace("\n", " ")
    assert "words that the caller never heard" in naive
    assert "Client and server believe what the caller heard, and nothing else." in ours
    assert "[of one" not in ours
    assert {path.name for path in tmp_path.iterdir()} == {
        "check-in-naive-lag-ms-1500-1",
        "check-in-callwright-lag-ms-1500-1",
    }

"""Calling the command line from tests: in this process, or as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import resources
from pathlib import Path

from click.testing import CliRunner, Result

from callwright.cli.main import main

HOTEL = Path(str(resources.files("callwright.apps.hotel")))
CHECK_IN = HOTEL / "scenarios" / "check-in.yaml"


def callwright(*arguments: object, columns: int = 80) -> Result:
    """Run a command in this process."""
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(main, [str(each) for each in arguments])


def process(*arguments: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a process."""
    return subprocess.run(
        [sys.executable, "-m", "callwright", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "80", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def variant(directory: Path, name: str, *changes: tuple[str, str]) -> Path:
    """The scenario check-in under another name, with parts of its text replaced."""
    text = CHECK_IN.read_text("utf-8")
    rules = HOTEL / "hotel.model.yaml"
    for old, new in (("scenario: check-in", f"scenario: {name}"), ("hotel.model.yaml", str(rules)), *changes):
        assert old in text
        text = text.replace(old, new)
    path = directory / f"{name}.yaml"
    path.write_text(text, "utf-8")
    return path

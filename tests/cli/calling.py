"""Calling the command line from tests: in this process, or as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from callwright.cli.main import main
from callwright.wire.profiles import PROFILES

HOTEL = Path(str(resources.files("callwright.apps.hotel")))
CHECK_IN = HOTEL / "scenarios" / "check-in.yaml"

WITH_CTRL_C = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may have had it ignored
from callwright.cli.main import main
main(sys.argv[1:])
"""
"""The command line in a process that takes Ctrl-C, whatever its parent does with it."""


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


def interrupted(at: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command, and press Ctrl-C once standard error says a line that begins like this.

    A terminal sends it to the whole group of processes. Who is left afterwards would keep standard error open.
    """
    command = [sys.executable, "-c", WITH_CTRL_C, *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        assert running.stderr
        told = [running.stderr.readline()]
        while not told[-1].startswith(at):
            assert told[-1], "".join(told)
            told.append(running.stderr.readline())
        os.killpg(running.pid, signal.SIGINT)
        stdout, stderr = running.communicate(timeout=60)
    return subprocess.CompletedProcess(command, running.returncode, stdout, "".join(told) + stderr)


def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that names no server and has no key."""
    for profile in PROFILES.values():
        monkeypatch.delenv(profile.key_env, raising=False)
        monkeypatch.delenv(profile.url_env, raising=False)


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

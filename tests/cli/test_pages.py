"""What the documentation says of commands is what they do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cli.calling import HOTEL, process

from callwright.apps.hotel import desk
from callwright.sim.rules import RulesModel
from callwright.sim.speech import Speech

ROOT = Path(__file__).parent.parent.parent
TUTORIAL = ROOT / "docs" / "tutorial" / "first-call.md"
FILE = re.compile(r"^`night/(\S+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ callwright (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_generated_pages_are_fresh() -> None:
    """The output in the README is that of a run; the references are the schema's and the settings' own."""
    command = [sys.executable, str(ROOT / "scripts" / "generated_pages.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tutorial_works_when_it_is_followed(tmp_path: Path) -> None:
    """Its files are written as they stand there, and its commands end as it says."""
    text = TUTORIAL.read_text("utf-8")
    shutil.copytree(HOTEL / "speech", tmp_path / "speech")
    for name, content in FILE.findall(text):
        (tmp_path / name).write_text(content, "utf-8")
    commands = COMMAND.findall(text)
    assert len(commands) == 3
    results = [process(*command.replace("--runs 20", "--runs 2").split(), cwd=tmp_path) for command in commands]
    assert [result.returncode for result in results] == [0, 0, 1], results[0].stdout + results[0].stderr
    assert "held    heard_error_ms" in results[0].stdout

    scenario = tmp_path / "booking.yaml"
    scenario.write_text(
        scenario.read_text("utf-8").replace("look_up_booking.holding", "look_up_boking.holding"), "utf-8"
    )
    assert "mkdir ../night" in text  # outside the clone, where it is nobody's untracked file
    wrong = process("call", "booking.yaml", cwd=tmp_path)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("callwright: booking.yaml:8:12: trigger ")


def test_the_example_of_the_rules_reference_can_be_played_by(tmp_path: Path) -> None:
    """It has every key that the page lists, and the reader of rules files takes it."""
    page = (ROOT / "docs" / "reference" / "rules.md").read_text("utf-8")
    example = next(code for language, code in FENCE.findall(page) if language == "yaml")
    path = tmp_path / "example.model.yaml"
    path.write_text(example, "utf-8")
    RulesModel.load(path, Speech.load(HOTEL / "speech"), tools=desk.tools)
    keys = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert {"opening", "recaps", "when", "answers"} <= {*keys}
    assert not [key for key in keys if not re.search(rf"\b{key}:", example)]


def test_the_line_of_the_how_to_is_a_line() -> None:
    """Its code is run as it stands there, and put through what every line must do."""
    page = (ROOT / "docs" / "how-to" / "bring-a-line.md").read_text("utf-8")
    line, check, _ = (code for language, code in FENCE.findall(page) if language == "python")
    names: dict[str, Any] = {}
    exec(line + check, names)
    names["test_my_line"]()

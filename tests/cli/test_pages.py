"""What the documentation says of commands is what they do."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from scripts import generated_pages
from tests.cli.calling import HOTEL, callwright, process

from callwright.apps.hotel import desk
from callwright.sim.rules import RulesModel
from callwright.sim.speech import Speech

ROOT = Path(__file__).parent.parent.parent
TUTORIAL = ROOT / "docs" / "tutorial" / "first-call.md"
FILE = re.compile(r"^`night/(\S+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ callwright (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_generated_pages_are_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    """The output in the README is that of a run; the references are the schema's and the settings' own."""
    assert generated_pages.main(check=True) == 0, capsys.readouterr().out


def test_the_tutorial_works_when_it_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files are written as they stand there, and its commands end as it says; the first one is a process."""
    text = TUTORIAL.read_text("utf-8")
    shutil.copytree(HOTEL / "speech", tmp_path / "speech")
    for name, content in FILE.findall(text):
        (tmp_path / name).write_text(content, "utf-8")
    commands = COMMAND.findall(text)
    assert len(commands) == 3
    first = process(*commands[0].split(), cwd=tmp_path)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "held    heard_error_ms" in first.stdout
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    others = [callwright(*command.replace("--runs 20", "--runs 2").split()) for command in commands[1:]]
    assert [result.exit_code for result in others] == [0, 1], others[0].output
    assert sys.modules.pop("desk").__file__ == str(tmp_path / "desk.py")

    scenario = tmp_path / "booking.yaml"
    scenario.write_text(
        scenario.read_text("utf-8").replace("look_up_booking.holding", "look_up_boking.holding"), "utf-8"
    )
    assert "mkdir ../night" in text  # outside the clone, where it is nobody's untracked file
    wrong = callwright("call", "booking.yaml")
    assert wrong.exit_code == 2
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

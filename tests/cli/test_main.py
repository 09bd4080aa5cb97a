"""How commands end: exit codes, and one line on standard error that says what to do."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.calling import WITH_CTRL_C, callwright, process, variant

from callwright.cli.main import COMMANDS, main

BASELINE = "before: {client: naive, must_fail: [unheard_words_in_transcript]}"


def refused(*arguments: object) -> str:
    """What standard error says to a command that is refused with 2."""
    result = callwright(*arguments)
    assert result.exit_code == 2, result.output
    assert not result.stdout
    return result.stderr


def test_help_names_every_command_and_python_m_is_the_same() -> None:
    result = process("--help")
    assert result.returncode == 0
    assert result.stdout.startswith("Usage: callwright ")
    assert not [name for name in COMMANDS if f"\n  {name}" not in result.stdout]


def test_an_unknown_scenario_is_refused_in_one_line_with_a_suggestion() -> None:
    message = refused("call", "chek-in")
    assert message.count("\n") == 1
    assert 'did you mean "check-in"?' in message


def test_an_unknown_client_is_refused_with_those_there_are() -> None:
    assert "'callwright', 'naive'" in refused("call", "check-in", "--client", "naif")


def test_a_mistake_in_a_scenario_is_refused_with_its_place(tmp_path: Path) -> None:
    path = variant(tmp_path, "wrong", ("kind: phone", "kind: phnoe"))
    assert f'{path}:4:14: line.kind: expected one of phone, speaker; got "phnoe"' in refused("call", path)


def test_a_metric_that_is_not_there_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    path = variant(tmp_path, "wrong", ("starts_over: 0", "starts_ofer: 0"))
    assert 'did you mean "starts_over"?' in refused("measure", path)


def test_a_server_setting_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = variant(tmp_path, "wrong", ("line: {kind: phone}", "line: {kind: phone}\nserver: {anser_ms: 100}"))
    message = refused("call", path)
    assert "anser_ms" in message
    assert "answer_ms" in message


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "nowhere.yaml" in refused("call", tmp_path / "nowhere.yaml")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--before", "--client", "naive"), "leave out --client"),
        (("--lag-fixed-ms", "30"), "20 ms"),
        (("--lag-ms", "-1"), "--lag-ms"),
        (("--seed", "-1"), "--seed"),
        (("--out", ""), "expected a directory"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: tuple[str, ...], said: str, tmp_path: Path) -> None:
    assert said in refused("call", "check-in", "--out", tmp_path, *options)


def test_a_baseline_is_refused_where_the_scenario_has_none(tmp_path: Path) -> None:
    path = variant(tmp_path, "plain", (BASELINE, ""), ("must_fail: [heard_error_ms, yield_rate]", ""))
    assert "has no baseline" in refused("call", path, "--before")


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file", "utf-8")
    told = refused("call", "check-in", "--out", tmp_path / "taken" / "below")
    assert "--out" in told
    assert "taken is in the way: choose another" in told


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("arguments", [["--help"], ["scenarios"]])
def test_an_output_that_is_full_is_told_in_one_line(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "callwright", *arguments]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == "callwright: the output cannot be written: No space left on device\n"


def test_an_output_without_blocks_is_drawn_in_ascii(tmp_path: Path) -> None:
    arguments = ["call", "check-in", "--out", str(tmp_path)]
    result = CliRunner(charset="ascii", env={"COLUMNS": "80"}).invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert re.search(r"^caller hears  \.+=?#+", result.stdout, re.MULTILINE)


def test_progress_is_shown_on_a_terminal_only_and_not_on_standard_output(tmp_path: Path) -> None:
    """Standard error is a terminal here, standard output a pipe."""
    mine, theirs = pty.openpty()
    command = [sys.executable, "-m", "callwright", "measure", "check-in", "--json"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        stdout, _ = process.communicate(timeout=60)
    told = os.read(mine, 100_000).decode()
    os.close(mine)
    assert process.returncode == 0
    assert "check-in" in told
    assert "100%" in told
    assert json.loads(stdout)["runs"] == 1


def test_ctrl_c_ends_with_130_and_tells_what_was_finished(tmp_path: Path) -> None:
    """Finished runs are summed up, and their files stay. Each failed run is told at once, so two are over by then."""
    command = [sys.executable, "-c", WITH_CTRL_C, "measure", "check-in", "--client", "naive", "--json"]
    with subprocess.Popen(
        [*command, "--runs", "200", "--out", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        told = [process.stderr.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert [line.split(":")[0] for line in told] == ["FAILED check-in seed 1", "FAILED check-in seed 2"]
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    summary = json.loads(stdout)
    assert stderr.endswith(f"callwright: interrupted after {summary['runs']} of 200 runs of check-in\n")
    assert 2 <= summary["runs"] < 200
    assert summary["metrics"]["connected_s"]["n"] == summary["runs"]
    assert (tmp_path / "check-in-naive-2" / "call.wav").is_file()

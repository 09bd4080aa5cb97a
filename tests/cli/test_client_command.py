"""``--client-command``: a program takes the calls of a scenario."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.calling import HOTEL, callwright
from tests.sim.clients import doing

SCENARIO = f"""
scenario: gone
about: the caller hangs up before he has said anything
agent: callwright.apps.hotel:desk
line: {{kind: phone}}
model: {{rules: {HOTEL / "hotel.model.yaml"}}}
expect: {{not_heard: [parking], max: {{unheard_words_in_transcript: 0}}}}
caller:
  - {{when: pickup + 300 ms, does: hang_up}}
"""
LISTENS = ("async for message in line:", "    if isinstance(message, str) and '\"end\"' in message:", "        break")


@pytest.fixture
def gone(tmp_path: Path) -> Path:
    path = tmp_path / "gone.yaml"
    path.write_text(SCENARIO, "utf-8")
    return path


def test_a_program_takes_a_call_and_what_it_prints_is_among_the_files(gone: Path, tmp_path: Path) -> None:
    command = doing(tmp_path, "print('picked up')", *LISTENS)
    result = callwright("call", gone, "--client-command", command, "--json", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["client"] == "command"
    assert told["settings"] == {"real_time": True, "client_command": command}
    assert told["not_judged"].keys() == {"unheard_words_in_transcript"}
    assert (tmp_path / "out" / "gone-command-1" / "client.log").read_text("utf-8") == "picked up\n"


def test_a_program_that_does_not_come_to_the_call_is_wrong_use(gone: Path) -> None:
    result = callwright("call", gone, "--client-command", "sh -c 'echo no key; exit 3'")
    assert result.exit_code == 2
    assert result.stderr.endswith(
        "ended (exit code 3) before it connected to CALLWRIGHT_AUDIO_URL; its last lines:\n  no key\n"
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--client-command", "x", "--client", "naive"], "--client cannot be asked of a program"),
        (["--client-command", "x", "--before"], "--before cannot be asked of a program"),
        (["--client-command", "x", "--tools", "blocking"], "--tools cannot be asked of a program"),
        (["--client-command", "x", "--connect-ms", "5"], "--connect-ms cannot be asked of a program"),
        (["--client-command", "x", "--server", "polyai"], "--server cannot be asked of a program"),
        (["--client-command", "a 'b"], "No closing quotation"),
        (["--client-command", ""], "expected a program and its arguments; got nothing"),
        (["--client-command", "no-such-program"], "no-such-program: cannot be started: No such file or directory"),
    ],
)
def test_what_cannot_be_is_named(options: list[str], told: str, gone: Path) -> None:
    result = callwright("call", gone, *options)
    assert result.exit_code == 2
    assert told in result.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_whoever_is_interrupted_takes_the_program_along(number: signal.Signals, code: int, tmp_path: Path) -> None:
    """The program holds the other end of a pipe; the end of what is read there is its own end."""
    stays = tmp_path / "stays.yaml"
    stays.write_text(SCENARIO.replace("gone", "stays").replace("300 ms", "60000 ms"), "utf-8")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = doing(tmp_path, f"pipe = open({str(pipe)!r}, 'w')", "print('up', file=pipe, flush=True)", *LISTENS)
    call = [sys.executable, "-m", "callwright", "call", str(stays), "--client-command", command, "--out", str(tmp_path)]
    with subprocess.Popen(call, stderr=subprocess.PIPE, text=True) as process, pipe.open() as reading:
        assert reading.readline() == "up\n"
        process.send_signal(number)
        assert reading.read() == ""
        assert process.wait(10) == code
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_a_program_is_compared_with_whoever_else_takes_the_calls(gone: Path, tmp_path: Path) -> None:
    command = doing(tmp_path, *LISTENS)
    result = callwright("measure", gone, "--client-command", command, "--against", "--client naive", "--json")
    assert result.exit_code == 0, result.output
    against = json.loads(result.stdout)["against"]
    assert (against["client"], against["settings"]) == ("naive", {})

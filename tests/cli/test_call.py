"""``callwright call``: what it shows, what it writes, and how it judges."""

from __future__ import annotations

import hashlib
import json
import wave
from pathlib import Path

import numpy as np
from tests.cli.calling import callwright


def test_a_call_is_shown_and_its_files_are_written(tmp_path: Path) -> None:
    handed_on = ("--report", tmp_path / "pages" / "call.html", "--export", tmp_path / "judged")
    result = callwright("call", "check-in", "--lag-ms", 1500, "--out", tmp_path, *handed_on)
    assert result.exit_code == 0, result.output
    directory = tmp_path / "check-in-callwright-lag-ms-1500-1"
    assert f"files   {directory}/{{call.wav,trace.jsonl,figures.json}}\n" in result.stdout
    assert result.stdout.startswith("callwright  check-in, seed 1, --lag-ms 1500\n")
    assert "_rate" not in result.stdout  # a share of so few events says nothing
    assert "held    heard_error_ms" in result.stdout
    figures = json.loads((directory / "figures.json").read_text("utf-8"))
    trace = (directory / "trace.jsonl").read_bytes()
    assert json.loads(trace.splitlines()[0])[1] == "trace"
    runs = hashlib.sha256(hashlib.sha256(trace).hexdigest().encode())
    assert figures["trace_sha256"] == runs.hexdigest()
    assert figures["settings"] == {"lag_ms": 1500}
    cut = next(reply for reply in figures["replies"] if reply["was_cut"])
    assert cut["heard"] == cut["in_transcript"]
    assert cut["written"].startswith(cut["heard"])
    assert len(cut["written"]) > len(cut["heard"])
    page = (tmp_path / "pages" / "call.html").read_text("utf-8")
    assert "callwright: check-in, seed 1, --lag-ms 1500" in page
    assert (tmp_path / "judged" / directory.name / "stereo.wav").read_bytes() == (directory / "call.wav").read_bytes()


def test_the_recording_has_the_caller_left_and_the_agent_right(tmp_path: Path) -> None:
    """In the third second the caller asks, in the ninth the agent answers."""
    callwright("call", "check-in", "--out", tmp_path)
    with wave.open(str(tmp_path / "check-in-callwright-1" / "call.wav")) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (2, 2, 8000)
        sound = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2).astype(float)
    loudness = [np.sqrt((sound[second * 8000 : (second + 1) * 8000] ** 2).mean(axis=0)) for second in (2, 8)]
    assert loudness[0][0] > 500 > loudness[0][1]
    assert loudness[1][1] > 500 > loudness[1][0]


def test_a_baseline_fails_what_is_expected_and_must_fail_it(tmp_path: Path) -> None:
    """--client judges a baseline like any client; --before wants exactly the failures that the scenario names."""
    plain = callwright("call", "check-in", "--client", "naive", "--out", tmp_path)
    before = callwright("call", "check-in", "--before", "--out", tmp_path)
    assert (plain.exit_code, before.exit_code) == (1, 0)
    assert "failed  unheard_words_in_transcript: wanted at most 0" in plain.stdout
    assert "(as it must)" in before.stdout.replace("\n", " ")


def test_json_is_one_object_and_nothing_else(tmp_path: Path) -> None:
    result = callwright("call", "check-in", "--seed", 3, "--json", "--out", tmp_path)
    summary = json.loads(result.stdout)
    assert (summary["seed"], summary["runs"]) == (3, 1)
    assert not result.stderr

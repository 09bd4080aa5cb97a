"""``callwright replay``: what it prints of recorded calls, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.calling import callwright
from tests.runtime.test_replay import SCRIPTED, changed, line_of, objected, recorded


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One trace of each outcome, and a file that is none."""
    same = recorded(*SCRIPTED["cut"])
    directory = tmp_path_factory.mktemp("traces")
    contents = {
        "same": same,
        "other": changed(same, line_of(same, "TruncateItem"), audio_end_ms=1),
        "private": objected(),
        "none": b"{}\n",
    }
    for name, content in contents.items():
        (directory / f"{name}.jsonl").write_bytes(content)
    return {name: directory / f"{name}.jsonl" for name in contents}


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["same"], 0),
        (["same", "same"], 0),
        (["other"], 1),
        (["private"], 2),
        (["same", "private", "other"], 1),
        (["same", "private"], 2),
        (["same", "none"], 2),
    ],
)
def test_the_exit_code_tells_whether_all_are_the_same(traces: dict[str, Path], names: list[str], code: int) -> None:
    assert callwright("replay", *(traces[name] for name in names)).exit_code == code


def test_each_trace_is_told_by_its_name_and_several_are_counted(traces: dict[str, Path]) -> None:
    same, other = traces["same"], traces["other"]
    told = callwright("replay", same, other).stdout.splitlines()
    assert told[0].startswith(f"{same}: identical: ")
    assert told[1].startswith(f"{other}:{line_of(same.read_bytes(), 'TruncateItem')}: different at ")
    assert told[-1] == "1 of 2 identical"


def test_what_is_no_trace_is_refused_with_its_line(traces: dict[str, Path], tmp_path: Path) -> None:
    assert callwright("replay", traces["none"]).stderr == (
        f"callwright: {traces['none']}:1: expected a row of a trace, [t_ms, kind, ...] as JSON\n"
    )
    assert callwright("replay", tmp_path / "missing.jsonl").exit_code == 2


def test_as_json_there_is_one_object_for_each_trace(traces: dict[str, Path]) -> None:
    told = callwright("replay", "--json", traces["same"], traces["other"]).stdout
    same, other = map(json.loads, told.splitlines())
    assert (same["outcome"], same["difference"]) == ("identical", None)
    assert other["outcome"] == "different"
    assert other["difference"]["line"] == line_of(traces["same"].read_bytes(), "TruncateItem")
